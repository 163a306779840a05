#!/usr/bin/python3
"""The parts of a pod's spec that apply to a process, on real daemons: variables with facts about the node, securityContext, nodes by name and preference.

    MUSTER=build/release/muster tests/e2e/podspec.py [TEST…]
"""
import json
import os
import pathlib
import re
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, condition, eventually, finished, sh_job  # noqa: E402

RESTRICTED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": False, "privileged": False, "capabilities": {"drop": ["ALL"]}}
STATUS = "grep -E '^(NoNewPrivs|CapEff|CapBnd)' /proc/self/status"


def pod_of(job):
    return job["spec"]["template"]["spec"]


def main_of(job):
    return pod_of(job)["containers"][0]


class PodSpec(World):
    def setUp(self):
        self.c = self.cluster(agents=2, slots=2, agent_extra=("--cpu", "3", "--memory", "5Gi", "--node-ip", "127.0.0.9"))

    def run_job(self, job, want="Complete"):
        self.submit(self.c, job)
        name = job["metadata"]["name"]
        eventually(lambda: finished(self.c.api.job(name)), f"the end of {name}", 40)
        attempts = self.c.api.call("GET", f"/apis/muster.dev/v1/namespaces/default/jobs/{name}/attempts")[1]["items"]
        self.assertTrue(condition(self.c.api.job(name), want), attempts)
        return attempts

    def says(self, *words, code=0):
        done = self.muster(*words, cluster=self.c)
        self.assertEqual(done.returncode, code, done)
        return done.stdout

    def log(self, name):
        return self.says("logs", f"job/{name}", "--index", "0")

    def test_downward_variables_have_node_and_resources(self):
        job = sh_job("facts", "env | grep ^T_ | sort", 1)
        fields = {"T_HOST": "status.hostIP", "T_POD": "status.podIPs", "T_NODE": "spec.nodeName", "T_ACCOUNT": "spec.serviceAccountName"}
        amounts = {"T_CPU": {"resource": "limits.cpu", "divisor": "1m"}, "T_CPUS": {"resource": "limits.cpu"},
                   "T_MEMORY": {"resource": "limits.memory", "divisor": "1Gi"}, "T_REQUEST": {"resource": "requests.memory", "divisor": "1Ki"},
                   "T_OTHER": {"resource": "limits.cpu", "containerName": "other"}}
        main_of(job)["resources"] = {"requests": {"memory": "1M"}, "limits": {"cpu": "1500m"}}
        main_of(job)["env"] = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()] + [
            {"name": name, "valueFrom": {"resourceFieldRef": source}} for name, source in amounts.items()]
        pod_of(job)["containers"].append({"name": "other", "command": ["true"]})
        self.run_job(job)
        pod, = self.pods_of(self.c, "facts")
        node = pod["spec"]["nodeName"]
        values = dict(re.findall(r"(T_\w+)=(.*)", self.log("facts")))
        self.assertEqual(values, {"T_HOST": "127.0.0.9", "T_POD": "127.0.0.9", "T_NODE": node, "T_ACCOUNT": "default", "T_CPU": "1500", "T_CPUS": "2",
                                  "T_MEMORY": "5", "T_REQUEST": "977", "T_OTHER": "3"})
        for ip in ("hostIP", "podIP"):
            self.assertEqual((pod["status"][ip], pod["status"][ip + "s"]), ("127.0.0.9", [{"ip": "127.0.0.9"}]))
        shown = self.c.api.call("GET", f"/api/v1/nodes/{node}")[1]["status"]["addresses"]
        self.assertIn({"type": "InternalIP", "address": "127.0.0.9"}, shown)
        self.assertIn("127.0.0.9", self.says("get", "pods", "-o", "wide"))

    def test_restricted_pod_drops_privileges(self):
        job = sh_job("restricted", STATUS, 1)
        pod_of(job)["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}, "runAsUser": os.geteuid(), "runAsGroup": os.getegid()}
        main_of(job)["securityContext"] = RESTRICTED
        self.run_job(job)
        status = dict(line.split(":\t") for line in self.log("restricted").splitlines())
        self.assertEqual((status["NoNewPrivs"], int(status["CapEff"], 16)), ("1", 0))
        if os.geteuid() == 0:
            self.assertEqual(int(status["CapBnd"], 16), 0)
        # Some of these settings, for a pod that runs in its own namespaces.
        job = sh_job("mounts", f"{STATUS}; test -w /data && echo mounted", 1)
        pod_of(job)["volumes"] = [{"name": "d", "emptyDir": {}}]
        main_of(job)["volumeMounts"] = [{"name": "d", "mountPath": "/data"}]
        main_of(job)["securityContext"] = RESTRICTED
        self.run_job(job)
        said = self.log("mounts")
        self.assertIn("mounted\n", said)
        self.assertRegex(said, r"CapEff:\t0+\n")
        self.assertRegex(said, r"CapBnd:\t0+\n")
        self.run_job(sh_job("plain", STATUS, 1))
        self.assertIn("NoNewPrivs:\t0", self.log("plain"))

    def test_a_command_in_a_restricted_pod_is_restricted(self):
        job = sh_job("joined", "sleep 60", 1)
        main_of(job)["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["NET_RAW"]}}
        self.submit(self.c, job)
        pod = eventually(lambda: [p for p in self.pods_of(self.c, "joined") if p["status"]["phase"] == "Running"], "the pod runs")[0]
        done = self.muster("--api", self.c.api_addr, "exec", pod["metadata"]["name"], "--", "sh", "-c", STATUS)
        self.assertEqual(done.returncode, 0, done)
        said = done.stdout
        self.assertIn("NoNewPrivs:\t1", said)
        self.assertEqual(int(re.search(r"CapEff:\t(\w+)", said)[1], 16) & 1 << 13, 0)
        self.says("delete", "job", "joined")

    def test_run_as_another_user_does_not_start(self):
        other = os.geteuid() + 1
        for name, context, why in (("user", {"runAsUser": other}, f"runAsUser is {other}, but this node runs processes as uid {os.geteuid()}"),
                                   ("group", {"runAsGroup": other}, f"runAsGroup is {other}")):
            job = sh_job(name, "echo ran", 1, backoffLimit=0)
            pod_of(job)["securityContext"] = context
            end = self.run_job(job, "Failed")[0]
            self.assertEqual((end["exitCode"], end["cause"]), (126, "start-failed"))
            self.assertIn(why, end["message"])
        job = sh_job("nonroot", "echo ran", 1, backoffLimit=0)
        main_of(job)["securityContext"] = {"runAsNonRoot": True}
        if os.geteuid() == 0:
            self.assertIn("container has runAsNonRoot and image will run as root", self.run_job(job, "Failed")[0]["message"])
            self.assertNotIn("ran", self.log("nonroot"))
        else:
            self.run_job(job)

    def test_pods_run_on_the_node_of_node_name(self):
        job = sh_job("named", "true", 6)
        pod_of(job)["nodeName"] = "node-1"
        self.run_job(job)
        self.assertEqual({p["spec"]["nodeName"] for p in self.pods_of(self.c, "named")}, {"node-1"})
        job = sh_job("nowhere", "true", 1)
        pod_of(job)["nodeName"] = "node-9"
        self.submit(self.c, job)
        eventually(lambda: "spec.nodeName is node-9, and there is no such node" in self.says("why", "job/nowhere"), "it waits")
        self.c.start_agent("node-9")
        eventually(lambda: finished(self.c.api.job("nowhere")), "the end of nowhere", 40)

    def test_node_affinity_is_required_and_preferred(self):
        job = sh_job("rather", "true", 2)
        pod_of(job)["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}}]}}
        self.run_job(job)
        self.assertEqual({p["spec"]["nodeName"] for p in self.pods_of(self.c, "rather")}, {"node-1"})
        job = sh_job("must", "true", 6)
        pod_of(job)["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["node-1"]}]}]}}}
        self.run_job(job)
        self.assertEqual({p["spec"]["nodeName"] for p in self.pods_of(self.c, "must")}, {"node-0"})
        job = sh_job("spread", "true", 1)
        pod_of(job)["topologySpreadConstraints"] = [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}]
        file = self.c.dir / "spread.json"
        file.write_text(json.dumps(job))
        done = self.muster("create", "-f", str(file), cluster=self.c)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(": spec.template.spec.topologySpreadConstraints: stored and ignored", done.stderr)

    def test_a_node_that_left_is_known_to_the_next_coordinator(self):
        agent = self.c.agents["node-1"]
        agent.terminate()
        agent.wait(20)
        left = lambda: re.search(r"(?m)^node-1 +Left \(", self.says("get", "nodes"))  # noqa: E731
        eventually(left, "it has left")
        self.c.kill_coordinator()
        self.c.start_coordinator()
        self.assertTrue(eventually(left, "it has left, also for this coordinator"))
        self.c.start_agent("node-1")
        eventually(lambda: re.search(r"(?m)^node-1 +Ready", self.says("get", "nodes")), "it is back")

    def test_why_names_the_fail_index_rule_once(self):
        job = sh_job("once", "exit 42", 1, backoffLimitPerIndex=1, podFailurePolicy={"rules": [
            {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]})
        self.run_job(job, "Failed")
        self.assertEqual(self.says("why", "job/once/0").count("FailIndex rule"), 1)

    def test_prefixed_logs_keep_empty_and_unterminated_lines(self):
        self.run_job(sh_job("lines", "printf 'a\\n\\nb'", 2))
        self.assertEqual(self.says("logs", "job/lines"), "".join(f"{i}#0 | a\n{i}#0 | \n{i}#0 | b\n" for i in range(2)))


if __name__ == "__main__":
    unittest.main()
