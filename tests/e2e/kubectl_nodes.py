#!/usr/bin/python3
"""An unmodified kubectl: logs, nodes, and what muster does not support.

    MUSTER=build/release/muster [KUBECTL=/usr/bin/kubectl] tests/e2e/kubectl_nodes.py [TEST…]
"""
import datetime
import json
import pathlib
import sys

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

    def test_logs_since_filters_by_the_times_of_the_pod(self):
        self.complete(self.create(self.job("recent", LINES, 1)))
        pod = self.pod("recent")
        self.assertEqual(len(self.kubectl("logs", pod, "--since=1h").splitlines()), 3)
        self.assertEqual(self.kubectl("logs", pod, "--since-time=2999-01-01T00:00:00Z"), "")
        self.assertEqual(len(self.kubectl("logs", pod, "--since-time=2020-01-01T00:00:00Z").splitlines()), 3)
        self.assertIn("without the time of each line", self.refused("logs", pod, "--timestamps"))

    def later(self, job):
        """A time shortly after the pod's start, while it runs."""
        begun = json.loads(self.kubectl("get", self.pod(job), "-o", "json"))["status"]["startTime"]
        return (datetime.datetime.fromisoformat(begun) + datetime.timedelta(seconds=60)).isoformat()

    def test_logs_since_a_time_within_a_pods_life_are_whole_with_a_warning(self):
        self.runs(self.create(self.sleeper("old", 1)), 1)
        # The pod still runs, so all of its log is shown, with a warning that this may be too much.
        done = self.run_kubectl("logs", "job/old", f"--since-time={self.later('old')}")
        self.assertEqual(done.stdout, "begun\n")
        if VERSION >= (1, 27):
            self.assertIn("Warning: the times of lines are not known", done.stderr)

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
