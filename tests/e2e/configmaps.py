#!/usr/bin/python3
"""ConfigMaps and Namespaces used through an unmodified kubectl, what pods get from config maps, and what survives a crash.

    MUSTER=build/release/muster [KUBECTL=/usr/bin/kubectl] tests/e2e/configmaps.py [TEST…]
"""
import base64
import json
import pathlib
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from kube_client import Kubectl, main, since  # noqa: E402
from world import World, eventually, sh_job  # noqa: E402

MAPS = "/api/v1/namespaces/default/configmaps"


def config_map(name, data=None, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {}, **more}


def with_env(job, env=None, env_from=None):
    container = job["spec"]["template"]["spec"]["containers"][0]
    container["env"] = env or []
    if env_from:
        container["envFrom"] = env_from
    return job


def key_ref(variable, name, key, **more):
    return {"name": variable, "valueFrom": {"configMapKeyRef": {"name": name, "key": key, **more}}}


class Objects(Kubectl):
    def get(self, name):
        return json.loads(self.kubectl("get", "cm", name, "-o", "json"))

    def test_kubectl_creates_shows_and_deletes_config_maps(self):
        binary, text = self.home / "bin.dat", self.home / "text.conf"
        binary.write_bytes(bytes(range(256)))
        text.write_text("a = 1\n")
        self.kubectl("create", "configmap", "a", "--from-literal=x=1", "--from-literal=y=2", f"--from-file={binary}", f"--from-file={text}")
        made = self.get("a")
        self.assertEqual(made["data"], {"x": "1", "y": "2", "text.conf": "a = 1\n"})
        self.assertEqual(base64.b64decode(made["binaryData"]["bin.dat"]), bytes(range(256)))
        self.assertEqual({r["NAME"]: r["DATA"] for r in self.table("cm")}, {"a": "4", "kube-root-ca.crt": "1"})
        described = self.kubectl("describe", "cm", "a")
        self.assertIn("bin.dat: 256 bytes", described)
        self.assertIn("text.conf", described)
        self.assertIn("already exists", self.refused("create", "configmap", "a"))
        self.kubectl("delete", "cm", "a")
        self.assertIn("NotFound", self.refused("get", "cm", "a"))

    def test_kubectl_changes_config_maps(self):
        self.kubectl("create", "configmap", "a", "--from-literal=x=1", "--from-literal=y=2")
        self.kubectl("label", "cm", "a", "tier=web")
        self.kubectl("annotate", "cm", "a", "note=first")
        self.kubectl("patch", "cm", "a", "-p", '{"data": {"x": "3", "y": null}}')
        self.kubectl("edit", "cm", "a", KUBE_EDITOR="sed -i s/first/second/")
        made = self.get("a")
        self.assertEqual((made["data"], made["metadata"]["labels"], made["metadata"]["annotations"]), ({"x": "3"}, {"tier": "web"}, {"note": "second"}))
        self.assertEqual([r["NAME"] for r in self.table("cm", "-l", "tier=web")], ["a"])
        made["metadata"]["resourceVersion"] = "1"
        self.assertIn("Conflict", self.refused("replace", "-f", "-", stdin=json.dumps(made)))

    def test_kubectl_applies_config_maps(self):
        for more in [], ["--server-side"]:
            with self.subTest(more):
                name = f"a{len(more)}"
                for value in "1", "2":
                    self.kubectl("apply", *more, "-f", "-", stdin=json.dumps(config_map(name, {"k": value, "old" if value == "1" else "new": ""})))
                self.assertEqual(self.get(name)["data"], {"k": "2", "new": ""})

    @since(26, "apply --server-side by several managers")
    def test_config_map_fields_have_managers(self):
        self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(config_map("a", {"k": "1"})))
        other = ["apply", "--server-side", "--field-manager=other", "-f", "-"]
        self.assertIn("conflict with \"kubectl\": .data.k", self.refused(*other, stdin=json.dumps(config_map("a", {"k": "2"}))))
        self.kubectl(*other, stdin=json.dumps(config_map("a", {"j": "2"})))
        self.assertEqual(self.get("a")["data"], {"k": "1", "j": "2"})

    def test_invalid_and_immutable_config_maps_are_refused(self):
        for wrong, said in {
                json.dumps(config_map("a", {"no/key": ""})): "a valid config key must consist of alphanumeric characters",
                json.dumps(config_map("a", {"k": "x" * (1 << 20), "l": "x"})): "may not be more than 1048576 bytes",
                json.dumps(config_map("a", {"k": ""}, binaryData={"k": ""})): "duplicate of key present in binaryData",
                json.dumps(config_map("a", binaryData={"k": "not base64!"})): "illegal base64 data",
                json.dumps(config_map("A_B")): "a lowercase RFC 1123 subdomain",
                json.dumps(config_map("kube-root-ca.crt")): "AlreadyExists"}.items():
            self.assertIn(said, self.refused("create", "-f", "-", stdin=wrong))
        self.kubectl("create", "-f", "-", stdin=json.dumps(config_map("fixed", {"k": "1"}, immutable=True)))
        self.assertIn("field is immutable when `immutable` is set", self.refused("patch", "cm", "fixed", "-p", '{"data": {"k": "2"}}'))
        self.assertIn("field is immutable when `immutable` is set", self.refused("patch", "cm", "fixed", "-p", '{"immutable": false}'))
        self.assertIn("Forbidden", self.refused("delete", "cm", "kube-root-ca.crt"))
        self.kubectl("delete", "cm", "fixed")

    def test_config_map_watch_reports_changes(self):
        self.kubectl("create", "configmap", "a", "--from-literal=x=1")
        watch = self.start("get", "cm", "-w", "--output-watch-events")
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(watch.stdout))
        reader.start()
        self.addCleanup(reader.join, 10)
        self.addCleanup(watch.kill)
        eventually(lambda: any(line.split()[:2] == ["ADDED", "a"] for line in lines), "the first object")
        self.kubectl("create", "configmap", "b", "--from-literal=x=1")
        self.kubectl("delete", "cm", "b")
        eventually(lambda: any(line.split()[:2] == ["DELETED", "b"] for line in lines), "the removal")


class Namespaces(Kubectl):
    def phase(self, name):
        return next((r["STATUS"] for r in self.table("ns") if r["NAME"] == name), None)

    def test_namespace_deletion_removes_its_objects(self):
        self.kubectl("create", "namespace", "blue")
        self.assertIn("AlreadyExists", self.refused("create", "namespace", "blue"))
        self.kubectl("label", "ns", "blue", "team=x")
        self.assertEqual([r["NAME"] for r in self.table("ns", "-l", "team=x")], ["blue"])
        self.assertIn("team=x", self.kubectl("describe", "ns", "blue"))
        self.kubectl("create", "-n", "blue", "configmap", "c", "--from-literal=a=b")
        self.create({**self.sleeper("runs"), "metadata": {"name": "runs", "namespace": "blue"}})
        self.kubectl("delete", "ns", "blue", timeout=40)  # waits until it is gone
        self.assertIsNone(self.phase("blue"))
        self.assertIn("NotFound", self.refused("get", "ns", "blue"))
        for kind in "jobs", "pods", "cm":
            self.assertIn("No resources found", self.run_kubectl("get", kind, "-n", "blue").stderr)

    def test_namespace_in_use_exists_without_creation(self):
        self.kubectl("create", "-n", "green", "configmap", "c", "--from-literal=a=b")
        self.assertEqual(self.phase("green"), "Active")
        self.kubectl("label", "ns", "green", "team=x")
        self.kubectl("delete", "ns", "green", timeout=40)
        self.assertIsNone(self.phase("green"))
        self.assertIn("this namespace may not be deleted", self.refused("delete", "ns", "default"))

    def test_terminating_namespace_waits_for_its_pods(self):
        job = self.job("slow", "trap '' TERM; echo begun; while :; do sleep 0.1; done", completions=1)
        job["metadata"]["namespace"] = "red"
        job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
        self.create(job)
        self.kubectl("wait", "-n", "red", "job/slow", "--for=jsonpath={.status.ready}=1", "--timeout=30s")
        self.kubectl("delete", "ns", "red", "--wait=false")
        self.assertEqual(self.phase("red"), "Terminating")
        self.assertIn("because it is being terminated", self.refused("create", "-n", "red", "configmap", "late"))
        eventually(lambda: not self.table("jobs", "-n", "red") if "No res" not in self.run_kubectl("get", "jobs", "-n", "red").stderr else True,
                   "the job is deleted")
        self.it.kill_coordinator()
        self.it.restart_coordinator()
        self.assertEqual(self.phase("red"), "Terminating")
        self.kubectl("delete", "pods", "-n", "red", "--all", "--grace-period=0", "--force", "--wait=false")
        eventually(lambda: self.phase("red") is None, "the namespace is gone")

    def test_finalizers_keep_a_namespace(self):
        self.kubectl("create", "namespace", "held")
        space = json.loads(self.kubectl("get", "ns", "held", "-o", "json"))
        space["spec"]["finalizers"].append("example.com/hold")
        self.assertEqual(self.it.api.call("PUT", "/api/v1/namespaces/held/finalize", space)[0], 200)
        self.kubectl("create", "-n", "held", "configmap", "c", "--from-literal=a=b")
        self.kubectl("delete", "ns", "held", "--wait=false")
        eventually(lambda: json.loads(self.kubectl("get", "ns", "held", "-o", "json"))["spec"]["finalizers"] == ["example.com/hold"],
                   "nothing is left in it")
        self.assertIn("NotFound", self.refused("get", "-n", "held", "cm", "c"))
        self.assertIn("object is being deleted", self.refused("create", "namespace", "held"))
        space = json.loads(self.kubectl("get", "ns", "held", "-o", "json"))
        space["spec"]["finalizers"] = []
        self.assertEqual(self.it.api.call("PUT", "/api/v1/namespaces/held/finalize", space)[0], 200)
        eventually(lambda: self.phase("held") is None, "it is gone")

    def test_service_accounts_are_watched(self):
        watch = self.start("get", "sa", "-A", "-w", "--output-watch-events")
        lines = []
        reader = threading.Thread(target=lambda: lines.extend(watch.stdout))
        reader.start()
        self.addCleanup(reader.join, 10)
        self.addCleanup(watch.kill)
        eventually(lambda: any(line.split()[:3] == ["ADDED", "default", "default"] for line in lines), "the first one")
        self.kubectl("create", "namespace", "blue")
        eventually(lambda: any(line.split()[:3] == ["ADDED", "blue", "default"] for line in lines), "that of the new namespace")
        self.kubectl("delete", "ns", "blue", timeout=40)
        eventually(lambda: any(line.split()[:3] == ["DELETED", "blue", "default"] for line in lines), "its removal")

    def test_objects_that_clients_expect_exist(self):
        self.assertEqual([r["NAME"] for r in self.table("sa")], ["default"])
        self.assertEqual(json.loads(self.kubectl("get", "sa", "default", "-o", "json"))["metadata"]["namespace"], "default")
        self.assertEqual(json.loads(self.kubectl("get", "cm", "kube-root-ca.crt", "-o", "json"))["data"], {"ca.crt": ""})
        self.assertIn("configmaps", self.kubectl("api-resources", "-o", "name"))
        self.assertIn("base64", self.kubectl("explain", "configmap.binaryData"))


class Pods(Kubectl):
    def put(self, name, data):
        self.kubectl("apply", "-f", "-", stdin=json.dumps(config_map(name, data)))

    def logs(self, name):
        return self.kubectl("logs", f"job/{name}").splitlines()

    def reason(self, name):
        states = [s["state"] for p in self.pods_of(self.it, name) for s in p["status"].get("containerStatuses", [])]
        return [s["waiting"] for s in states if s.get("waiting", {}).get("reason") == "CreateContainerConfigError"]

    def test_config_maps_set_variables(self):
        self.put("a", {"x": "1", "y": "two words", "z": "$(x)"})
        self.put("b", {"x": "b's"})
        job = with_env(self.job("j", 'echo "$A|$p_y|$p_z|$x|$GONE|$C"', completions=1),
                       [key_ref("A", "a", "x"), key_ref("GONE", "a", "no", optional=True), key_ref("NONE", "no", "no", optional=True),
                        {"name": "C", "value": "$(A)$(p_y)"}],
                       [{"prefix": "p_", "configMapRef": {"name": "a"}}, {"configMapRef": {"name": "b"}},
                        {"configMapRef": {"name": "no", "optional": True}}])
        del job["spec"]["template"]["spec"]["containers"][0]["env"][2]
        self.complete(self.create(job))
        self.assertEqual(self.logs("j")[0], "1|two words|$(x)|b's||1two words")

    def test_pod_waits_for_missing_config_map(self):
        self.create(with_env(self.job("j", 'echo "$A"', completions=2), [key_ref("A", "late", "k")]))
        waiting = eventually(lambda: self.reason("j"), "a pod waits")
        self.assertEqual(waiting[0]["message"], 'configmap "late" not found')
        self.assertIn("CreateContainerConfigError", [r["STATUS"] for r in self.table("pods")])
        self.assertIn('configmap "late" not found', self.muster("why", "job/j", cluster=self.it).stdout)
        self.create(self.job("other"))
        self.complete("other")  # not delayed
        self.put("late", {"wrong": "1"})
        eventually(lambda: [w["message"] for w in self.reason("j")][:1] == ["couldn't find key k in ConfigMap default/late"], "the key is missing")
        self.put("late", {"k": "here"})
        self.complete("j")
        self.assertEqual(self.logs("j")[0], "here")
        job = json.loads(self.kubectl("get", "job", "j", "-o", "json"))
        self.assertEqual(job["status"].get("failed", 0), 0)

    def test_config_map_volume_has_keys_as_files(self):
        """A volume has the keys as files. Like variables, it waits for the config map."""
        job = self.job("f", "cat /files/a /files/sub/b; ls /files | xargs; touch /files/x 2>&1 || echo refused", completions=1)
        pod = job["spec"]["template"]["spec"]
        pod["volumes"] = [{"name": "v", "configMap": {"name": "m", "items": [{"key": "a", "path": "a"}, {"key": "b", "path": "sub/b", "mode": 0o400}]}}]
        pod["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/files"}]
        created = self.create(job)
        eventually(lambda: self.reason("f"), "a pod waits")
        self.put("m", {"a": "one\n", "b": "two\n", "c": "not shown"})
        self.complete(created)
        printed = self.logs("f")
        self.assertEqual((printed[:3], printed[-1]), (["one", "two", "a sub"], "refused"))

    def test_a_waiting_pod_can_be_deleted(self):
        self.create(with_env(self.job("j", "true", completions=1), [key_ref("A", "never", "k")]))
        eventually(lambda: self.reason("j"), "a pod waits")
        self.kubectl("delete", "job", "j", timeout=20)
        eventually(lambda: not self.pods_of(self.it, "j"), "its pods are gone")

    def test_each_start_sees_the_current_value(self):
        script = '[ "$A" = 2 ] && exit 0; touch {0}; while [ ! -e {1} ]; do sleep 0.05; done; exit 1'
        for policy in "Never", "OnFailure":
            with self.subTest(policy):
                self.put("a", {"k": "1"})
                began, go_on = self.it.dir / f"began{policy}", self.it.dir / f"go{policy}"
                job = with_env(self.job(f"j{policy.lower()}", script.format(began, go_on), completions=1, backoffLimit=3), [key_ref("A", "a", "k")])
                job["spec"]["template"]["spec"]["restartPolicy"] = policy
                self.create(job)
                eventually(began.exists, "the first attempt")
                self.put("a", {"k": "2"})
                go_on.touch()
                self.complete(job["metadata"]["name"])

    def test_pod_waits_for_config_map_across_agent_and_coordinator_kills(self):
        self.create(with_env(self.job("j", 'echo "$A"', completions=3), [key_ref("A", "late", "k")]))
        eventually(lambda: self.reason("j"), "a pod waits")
        self.it.kill_agent("node-0")
        self.it.start_agent("node-0", slots=self.SLOTS)
        self.it.kill_coordinator()
        self.put_after_restart("late", {"k": "here"})
        self.complete("j")

    def put_after_restart(self, name, data):
        self.it.restart_coordinator()
        self.put(name, data)

    def test_exec_has_the_variables(self):
        self.put("a", {"k": "joined"})
        self.create(with_env(self.sleeper("j", completions=1), [key_ref("A", "a", "k")]))
        pod = eventually(lambda: [p["metadata"]["name"] for p in self.pods_of(self.it, "j") if p["status"]["phase"] == "Running"], "it runs")[0]
        done = self.muster("exec", "--api", self.it.api_addr, pod, "--", "sh", "-c", 'echo "$A"')
        self.assertEqual(done.stdout, "joined\n", done.stderr)


class Durable(World):
    def test_acknowledged_config_maps_survive_coordinator_kills(self):
        it = self.cluster(agents=0)
        answered, stop = [], threading.Event()

        def write(worker):
            n = 0
            while not stop.is_set():
                n += 1
                name = f"c{worker}-{n}"
                try:
                    code, _ = it.api.call("POST", MAPS, config_map(name, {"k": "v" * 1000}))
                except OSError:
                    continue
                if code == 201:
                    answered.append(name)
        for _ in range(2):
            stop.clear()
            before = len(answered)
            writers = [threading.Thread(target=write, args=(f"{len(answered)}-{i}",)) for i in range(4)]
            for one in writers:
                one.start()
            eventually(lambda before=before: len(answered) > before + 50, "some are answered")
            it.kill_coordinator()
            stop.set()
            for one in writers:
                one.join()
            it.restart_coordinator()
        code, body = it.api.call("GET", MAPS)
        self.assertEqual(code, 200)
        self.assertLessEqual(set(answered), {one["metadata"]["name"] for one in body["items"]})


class CommandLine(World):
    MANIFEST = "\n---\n".join(json.dumps(one) for one in (
        config_map("settings", {"k": "from the file"}),
        with_env(sh_job("j", 'echo "$A"', 1), [key_ref("A", "settings", "k")])))

    def setUp(self):
        self.file = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-")) / "all.yaml"
        self.file.write_text(self.MANIFEST)
        self.addCleanup(lambda: (self.file.unlink(), self.file.parent.rmdir()))

    def test_run_reads_a_config_map_of_its_manifest(self):
        done = self.muster("run", "-f", str(self.file))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("from the file", done.stdout + done.stderr)

    def test_create_and_apply(self):
        it = self.cluster()
        done = self.muster("create", "-f", str(self.file), cluster=it)
        self.assertEqual(done.stdout, "configmap/settings created\njob.batch/j created\n", done.stderr)
        done = self.muster("apply", "-f", str(self.file), cluster=it)
        self.assertIn("configmap/settings", done.stdout, done.stderr)
        it.wait("j", lambda j: any(c["type"] == "Complete" for c in j["status"].get("conditions", [])))
        done = self.muster("run", "-f", str(self.file), cluster=it)
        self.assertIn("already exists", done.stderr)


if __name__ == "__main__":
    main()
