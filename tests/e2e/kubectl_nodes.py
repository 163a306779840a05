#!/usr/bin/python3
"""An unmodified kubectl: logs, nodes, and what muster does not support.

    MUSTER=build/release/muster [KUBECTL=/usr/bin/kubectl] tests/e2e/kubectl_nodes.py [TEST…]
"""
import datetime
import json
import pathlib
import sys
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from kube_client import VERSION, Kubectl, main, since  # noqa: E402
from world import disruption, eventually  # noqa: E402

LINES = 'for n in 1 2 3; do echo "line $n of $JOB_COMPLETION_INDEX"; done'


class Logs(Kubectl):
    def pod(self, job, index=0):
        return self.kubectl("get", "pods", "-l", f"batch.kubernetes.io/job-name={job},batch.kubernetes.io/job-completion-index={index}",
                            "-o", "name").strip()

    def test_of_a_pod_and_of_a_job(self):
        self.complete(self.create(self.job("lines", LINES, 1)))
        whole = "line 1 of 0\nline 2 of 0\nline 3 of 0\n"
        self.assertEqual(self.kubectl("logs", "job/lines"), whole)
        pod = self.pod("lines")
        self.assertEqual(self.kubectl("logs", pod), whole)
        self.assertEqual(self.kubectl("logs", pod, "-c", "main"), whole)
        self.assertEqual(self.kubectl("logs", pod, "--tail=1"), "line 3 of 0\n")
        self.assertEqual(self.kubectl("logs", pod, "--tail=0"), "")
        self.assertEqual(self.kubectl("logs", pod, "--limit-bytes=6"), "line 1")
        self.assertIn("container other is not valid for pod", self.refused("logs", pod, "-c", "other"))
        self.assertIn('previous terminated container "main"', self.refused("logs", pod, "--previous"))
        self.assertIn("not found", self.refused("logs", "nobody"))

    def test_since_leaves_out_what_is_older(self):
        self.complete(self.create(self.job("recent", LINES, 1)))
        pod = self.pod("recent")
        self.assertEqual(len(self.kubectl("logs", pod, "--since=1h").splitlines()), 3)
        self.assertEqual(self.kubectl("logs", pod, "--since-time=2999-01-01T00:00:00Z"), "")
        self.assertEqual(len(self.kubectl("logs", pod, "--since-time=2020-01-01T00:00:00Z").splitlines()), 3)

    def gated(self, name):
        """A pod that prints to both outputs, then waits for a file, then prints again: its name, the file, and the path of its log."""
        go = self.it.dir / f"go-{name}"
        self.runs(self.create(self.job(name, f'echo one; echo err >&2; while [ ! -e {go} ]; do sleep 0.05; done; echo two', 1)), 1)
        pod = self.pod(name)
        eventually(lambda: len(self.kubectl("logs", pod).splitlines()) == 2, "what it prints first")
        return pod, go, f"/api/v1/namespaces/default/{pod.replace('pod', 'pods')}/log"

    def test_lines_have_the_times_at_which_they_were_written(self):
        begun = datetime.datetime.now(datetime.timezone.utc)
        pod, go, path = self.gated("timed")
        shown = self.kubectl("logs", pod, "--timestamps")
        between = datetime.datetime.now(datetime.timezone.utc)
        # Times of files may lag behind by a tick of the kernel.
        margin = datetime.timedelta(milliseconds=20)
        eventually(lambda: datetime.datetime.now(datetime.timezone.utc) > between + 2 * margin, "the clock")
        go.touch()
        self.complete("timed")
        text = self.kubectl("logs", pod, "--timestamps")
        self.assertTrue(text.startswith(shown), f"{shown} became\n{text}")
        for line in text.splitlines():
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z \w+$")
        self.assertEqual([line.split()[1] for line in text.splitlines()], ["one", "err", "two"])
        times = [datetime.datetime.fromisoformat(line.split()[0][:26] + "+00:00") for line in text.splitlines()]
        self.assertEqual(times, sorted(times))
        self.assertTrue(begun - margin <= times[0] <= times[1] <= between < times[2], f"{begun} {between} {text}")
        # Clients of kubectl's kind send whole seconds; others need not.
        since_time = between.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.assertEqual(self.it.api.call("GET", f"{path}?sinceTime={since_time}")[1], "two\n")
        self.assertEqual(self.it.api.call("GET", f"{path}?sinceTime={since_time}&timestamps=true")[1], text.splitlines(True)[2])
        self.assertEqual(self.kubectl("logs", pod, "--tail=2"), "err\ntwo\n", "of both outputs together")
        self.assertEqual(self.kubectl("logs", pod, "--tail=1", "--timestamps", "--since=1h"), text.splitlines(True)[2])
        self.assertEqual(self.kubectl("logs", pod, "--timestamps", "--limit-bytes=33"), text[:33])
        prefixed = self.kubectl("logs", pod, "--timestamps", "--all-containers", "--prefix", "--tail=1")
        self.assertRegex(prefixed, r"^\[pod/timed-0-\w+/main\] \S+Z two\n$")

    def test_wrong_options_are_answered_as_by_kubernetes(self):
        self.complete(self.create(self.job("wrong", LINES, 1)))
        pod = self.pod("wrong")
        name = pod.split("/")[1]
        path = f"/api/v1/namespaces/default/pods/{name}/log"
        for query, code, message in (("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
                                     ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
                                     ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
                                     ("sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "at most one of `sinceTime` or `sinceSeconds` may be specified"),
                                     ("tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
                                     ("sinceTime=noon", 400, 'parsing time "noon"')):
            got, status = self.it.api.call("GET", f"{path}?{query}")
            self.assertEqual((got, status["reason"]), (code, "Invalid" if code == 422 else "BadRequest"), query)
            self.assertIn(message, status["message"])
            if code == 422:
                self.assertIn(f'PodLogOptions "{name}" is invalid', status["message"])
                self.assertTrue(status["details"]["causes"], query)

    def test_of_a_container_that_was_restarted(self):
        go, runs = self.it.dir / "go", self.it.dir / "runs"
        job = self.job("again", f'echo x >> {runs}; n=$(wc -l < {runs}); echo "run $n"; [ $n -lt 3 ] && exit 1; while [ ! -e {go} ]; do sleep 0.05; done', 1)
        job["metadata"]["annotations"] = {"muster.dev/restart-delay": "50ms"}
        job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
        self.create(job)
        pod = eventually(lambda: self.pod("again"), "its pod")
        eventually(lambda: self.run_kubectl("logs", pod).stdout == "run 3\n", "its third run")
        self.assertEqual(self.kubectl("logs", pod, "--previous"), "run 2\n")
        self.assertEqual(self.kubectl("logs", pod, "--previous", "--tail=1"), "run 2\n")
        self.assertRegex(self.kubectl("logs", pod, "-p", "--timestamps"), r"^\S+Z run 2\n$")
        follower = self.start("logs", "-f", pod, "--since=1h")
        try:
            self.assertEqual(follower.stdout.readline(), "run 3\n")
            go.touch()
            self.assertEqual(follower.communicate(timeout=30)[0], "")
        finally:
            follower.kill()
        self.complete("again")
        self.assertEqual(self.kubectl("logs", pod), "run 3\n")
        self.assertEqual(self.kubectl("logs", pod, "--previous"), "run 2\n")
        self.assertEqual(self.muster("logs", pod, cluster=self.it).stdout, "run 1\nrun 2\nrun 3\n")

    def test_follow_ends_with_the_process_that_is_followed(self):
        go = self.it.dir / "go"
        job = self.job("once", f'while [ ! -e {go} ]; do sleep 0.05; done; echo over; exit 1', 1)
        job["metadata"]["annotations"] = {"muster.dev/restart-delay": "1h"}
        job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
        self.runs(self.create(job), 1)
        follower = self.start("logs", "-f", self.pod("once"))
        try:
            go.touch()
            # The first restart is at once, the second waits.
            self.assertEqual(follower.communicate(timeout=30)[0], "over\n")
        finally:
            follower.kill()
        waiting = "jsonpath={.items[0].status.containerStatuses[0].state.waiting.reason}"
        eventually(lambda: self.kubectl("get", "pods", "-o", waiting) == "CrashLoopBackOff", "its second end")
        for flags in ((), ("--previous",)):
            self.assertEqual(self.kubectl("logs", self.pod("once"), *flags), "over\n", flags)

    def test_of_a_failed_job_is_kept(self):
        for name, more in (("indexed", {}), ("plain", {"completionMode": "NonIndexed"})):
            job = self.job(name, 'echo "the reason"; exit 1', 1, backoffLimit=1, **more)
            job["metadata"]["annotations"] = {"muster.dev/restart-delay": "50ms"}
            job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
            self.create(job)
            self.kubectl("wait", f"job/{name}", "--for=condition=Failed", "--timeout=30s")
            self.assertEqual(set(self.muster("logs", f"job/{name}", cluster=self.it).stdout.splitlines()), {"the reason"}, name)

    def test_requests_of_stern_and_k9s(self):
        pod, go, path = self.gated("watched")
        with urllib.request.urlopen(f"{self.it.api.base}{path}?container=main&follow=true&sinceSeconds=172800&timestamps=true", timeout=30) as stern, \
                urllib.request.urlopen(f"{self.it.api.base}{path}?container=main&follow=true&tailLines=100&timestamps=true", timeout=30) as k9s:
            for response in (stern, k9s):
                self.assertEqual([response.readline().decode().split(" ", 1)[1] for _ in range(2)], ["one\n", "err\n"])
            go.touch()
            for response in (stern, k9s):
                self.assertRegex(response.read().decode(), r"^\S+Z two\n$")
        code, head = self.it.api.call("GET", f"{path}?container=main&limitBytes=5000&timestamps=true")
        self.assertEqual((code, len(head.splitlines())), (200, 3))

    def test_logs_by_label_with_prefix(self):
        self.complete(self.create(self.job("many", LINES, 2)))
        printed = self.kubectl("logs", "-l", "app=demo", "--tail=1", "--prefix")
        self.assertEqual(sorted(line.split("] ")[1] for line in printed.splitlines()), ["line 3 of 0", "line 3 of 1"])

    def test_of_several_containers(self):
        job = self.job("pair", "echo from main", 1)
        spec = job["spec"]["template"]["spec"]
        spec["containers"].append({"name": "side", "command": ["echo", "from side"]})
        spec["initContainers"] = [{"name": "first", "command": ["echo", "from first"]}]
        self.complete(self.create(job))
        pod = self.pod("pair")
        self.assertEqual(self.kubectl("logs", pod, "-c", "side"), "from side\n")
        self.assertEqual(self.kubectl("logs", pod, "-c", "first"), "from first\n")
        # kubectl requests the containers in any order.
        self.assertEqual(sorted(self.kubectl("logs", pod, "--all-containers").splitlines()), ["from first", "from main", "from side"])

    def test_follow_prints_until_the_pod_ends(self):
        go = self.it.dir / "go"
        self.runs(self.create(self.job("followed", f'echo one; while [ ! -e {go} ]; do sleep 0.05; done; echo two', 1)), 1)
        follower = self.start("logs", "-f", "job/followed")
        try:
            self.assertEqual(follower.stdout.readline(), "one\n")
            go.touch()
            self.assertEqual(follower.communicate(timeout=30)[0], "two\n")
            self.assertEqual(follower.returncode, 0)
        finally:
            follower.kill()


class Nodes(Kubectl):
    def test_a_pod_that_gets_no_node_has_an_event(self):
        job = self.job("nowhere", "true", 1)
        job["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
        self.create(job)
        words = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."

        def events():
            return json.loads(self.kubectl("get", "events", "-o", "json", "--field-selector", "reason=FailedScheduling,type=Warning"))["items"]
        event, = eventually(events, "its event")
        self.assertEqual((event["message"], event["count"], event["source"]["component"]), (words, 1, "default-scheduler"))
        pod = json.loads(self.kubectl("get", "pods", "-o", "json"))["items"][0]
        self.assertEqual(event["involvedObject"]["uid"], pod["metadata"]["uid"])
        scheduled, = [c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled"]
        self.assertEqual((scheduled["reason"], scheduled["message"]), ("Unschedulable", words))
        self.assertRegex(self.kubectl("describe", "pod", pod["metadata"]["name"]), r"Warning +FailedScheduling .*default-scheduler +0/1 nodes are available")

    def node(self, path):
        return self.kubectl("get", "node", "node-0", "-o", f"jsonpath={{{path}}}")

    def test_get_and_describe(self):
        row, = self.table("nodes")
        self.assertEqual((row["NAME"], row["STATUS"]), ("node-0", "Ready"))
        self.runs(self.create(self.sleeper("here")))
        described = self.kubectl("describe", "node", "node-0")
        for part in (r"Ready +True .* AgentReady", r"pods: +8", r"Non-terminated Pods: +\(2 in total\)", r"here-0-"):
            self.assertRegex(described, part)

    def test_cordoned_node_gets_no_pods_until_uncordoned(self):
        self.assertEqual(self.kubectl("cordon", "node-0"), "node/node-0 cordoned\n")
        self.assertEqual(self.table("nodes")[0]["STATUS"], "Ready,SchedulingDisabled")
        self.create(self.job("waits", completions=1))
        eventually(lambda: self.pods_of(self.it, "waits"), "its pod is there")
        self.assertEqual([p["status"]["phase"] for p in self.pods_of(self.it, "waits")], ["Pending"])
        self.assertEqual(self.kubectl("uncordon", "node-0"), "node/node-0 uncordoned\n")
        self.complete("waits")

    def test_drain_evicts_pods_and_cordons_the_node(self):
        job = self.sleeper("moved", backoffLimit=0, podFailurePolicy={"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]})
        self.runs(self.create(job))
        watched = {p["metadata"]["name"] for p in self.pods_of(self.it, "moved")}
        printed = self.kubectl("drain", "node-0")
        for name in watched:
            self.assertIn(f"pod/{name} evicted", printed)
        self.assertEqual(self.node(".spec.unschedulable"), "true")
        after = self.pods_of(self.it, "moved")
        self.assertTrue(all(p["status"]["phase"] == "Pending" for p in after if p["metadata"]["name"] not in watched))
        self.assertTrue(all(disruption(p) == "EvictionByEvictionAPI" for p in after if p["metadata"]["name"] in watched))
        self.assertNotIn("failed", self.it.api.job("moved")["status"], "an evicted pod is ignored by the job's policy")
        self.kubectl("uncordon", "node-0")
        self.runs("moved")

    def test_taints_are_set_overwritten_and_removed(self):
        self.assertIn("tainted", self.kubectl("taint", "nodes", "node-0", "gpu=yes:NoSchedule"))
        self.assertEqual(json.loads(self.node(".spec.taints")), [{"effect": "NoSchedule", "key": "gpu", "value": "yes"}])
        self.assertIn("already has gpu taint", self.refused("taint", "nodes", "node-0", "gpu=no:NoSchedule"))
        self.kubectl("taint", "nodes", "node-0", "gpu=no:NoSchedule", "--overwrite")
        tolerant = self.job("tolerant")
        tolerant["spec"]["template"]["spec"]["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
        self.complete(self.create(tolerant))
        self.assertIn("untainted", self.kubectl("taint", "nodes", "node-0", "gpu-"))
        self.assertEqual(self.node(".spec.taints"), "")

    def test_label_and_annotate(self):
        self.kubectl("label", "node", "node-0", "disk=fast")
        self.assertEqual([r["NAME"] for r in self.table("nodes", "-l", "disk=fast")], ["node-0"])
        self.kubectl("annotate", "node", "node-0", "note=replace fan")
        self.assertEqual(self.node(".metadata.annotations.note"), "replace fan")
        self.kubectl("label", "node", "node-0", "disk-")
        self.assertIn("No resources found", self.run_kubectl("get", "nodes", "-l", "disk").stderr)

    def test_delete_a_pod(self):
        self.runs(self.create(self.sleeper("again", 1, backoffLimit=3)), 1)
        pod, = self.pods_of(self.it, "again")
        self.kubectl("delete", "pod", pod["metadata"]["name"], "--grace-period=1")
        eventually(lambda: [p for p in self.pods_of(self.it, "again") if p["metadata"]["uid"] != pod["metadata"]["uid"]], "it is replaced")


class NotServed(Kubectl):
    def test_unsupported_verbs_name_an_alternative(self):
        self.runs(self.create(self.sleeper("alive", 1)), 1)
        pod = self.pods_of(self.it, "alive")[0]["metadata"]["name"]
        for args, word in {("attach", pod): "logs -f",
                           ("port-forward", pod, "8080"): "no network of its own",
                           ("run", "x", "--image=none"): "kubectl create job"}.items():
            with self.subTest(args[0]):
                self.assertIn(word, self.refused(*args))
        self.assertIn("Metrics API not available", self.refused("top", "pods"))
        self.assertRegex(self.refused("rollout", "status", "job/alive"), "no status viewer|not supported")

    @since(27, "a manifest checked by the server")
    def test_unsupported_kinds_are_refused(self):
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}
        self.assertIn('no matches for kind "Secret"', self.refused("create", "-f", "-", stdin=json.dumps(manifest)))


if __name__ == "__main__":
    main()
