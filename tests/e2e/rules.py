#!/usr/bin/python3
"""Rules that involve several jobs, nodes or coordinators: feature gates across restarts, priorities, taints, devices, orphans.

    MUSTER=build/release/muster tests/e2e/rules.py [TEST…]
"""
import os
import pathlib
import re
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, condition, eventually, finished, sh_job  # noqa: E402

UNTIL_GO = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'


class Gates(World):
    """A coordinator restarts with different gates while jobs are running."""

    def with_gates(self, cluster, gates):
        cluster.kill_coordinator()
        cluster.extra = ["--feature-gates", gates] if gates else []
        cluster.start_coordinator()
        cluster.wait_nodes()

    def test_p23_gates_switch_off_and_on_with_a_job_in_flight(self):
        cluster = self.cluster(agents=1, slots=8)
        witness = self.witness(cluster)
        # Index 0 always fails, the others wait for the file.
        work = 'code=0; if [ "$i" = 0 ]; then code=1; else while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; fi'
        self.submit(cluster, witness.job("flight", work, 3, backoffLimitPerIndex=1, backoffLimit=1000,
                                         successPolicy={"rules": [{"succeededIndexes": "1,2"}]}))
        eventually(lambda: cluster.api.job("flight")["status"].get("failedIndexes") == "0", "index 0 has failed")
        failed = cluster.api.job("flight")["status"]["failed"]
        self.with_gates(cluster, "JobBackoffLimitPerIndex=false,JobSuccessPolicy=false")
        # With the gates off, a new job loses the fields, an existing job keeps them, and earlier decisions stand.
        dropped = self.submit(cluster, witness.job("dropped", "code=0", 1, backoffLimitPerIndex=1,
                                                   successPolicy={"rules": [{"succeededCount": 1}]}))
        self.assertNotIn("backoffLimitPerIndex", dropped["spec"])
        self.assertNotIn("successPolicy", dropped["spec"])
        cluster.wait("dropped", finished, 20)
        kept = cluster.api.job("flight")
        self.assertEqual(kept["spec"]["backoffLimitPerIndex"], 1)
        eventually(lambda: cluster.api.job("flight")["status"]["failed"] > failed, "off: index 0 runs again, and fails")
        self.assertNotIn("failedIndexes", cluster.api.job("flight")["status"])
        self.assertEqual(len(witness.starts()), len(set(witness.starts())))
        (witness.folder / "go").touch()
        eventually(lambda: cluster.api.job("flight")["status"].get("succeeded") == 2, "both have succeeded")
        self.assertFalse(finished(cluster.api.job("flight")), "off: no rule of success ends it")
        self.with_gates(cluster, "")
        # With the gates back on, the rules consider the whole state, not only what has happened since.
        job = cluster.wait("flight", finished, 20)
        self.assertEqual(condition(job, "Complete")["reason"], "SuccessPolicy")

    def test_elastic_off_makes_completions_immutable(self):
        cluster = self.cluster(agents=1, slots=4, extra=["--feature-gates", "ElasticIndexedJob=false"])
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("fixed", UNTIL_GO, 2))
        patch = {"spec": {"completions": 1, "parallelism": 1}}
        code, answer = cluster.api.patch("fixed", patch)
        self.assertEqual(code, 422, answer)
        self.assertIn("field is immutable", str(answer))
        self.with_gates(cluster, "ElasticIndexedJob=true")
        code, answer = cluster.api.patch("fixed", patch)
        self.assertEqual(code, 200, answer)
        (witness.folder / "go").touch()
        job = cluster.wait("fixed", finished, 20)
        self.assertEqual(job["status"]["completedIndexes"], "0")

    def test_unknown_feature_gate_is_refused_by_name(self):
        done = self.muster("coordinator", "--data-dir", "/nonexistent", "--feature-gates", "JobSucessPolicy=false")
        self.assertEqual(done.returncode, 2)
        self.assertIn('unknown feature gate "JobSucessPolicy"', done.stderr)


class Placement(World):
    def template(self, job, **spec):
        job["spec"]["template"]["spec"].update(spec)
        return job

    def test_higher_priority_preempts_a_lower_one(self):
        cluster = self.cluster(agents=1, slots=2)
        witness = self.witness(cluster)
        low = witness.job("low", UNTIL_GO, 2)
        low["spec"]["podFailurePolicy"] = {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
        self.submit(cluster, self.template(low, terminationGracePeriodSeconds=1))
        eventually(lambda: cluster.api.job("low")["status"].get("ready") == 2, "the slots are taken")
        self.submit(cluster, self.template(witness.job("high", "code=0", 1), priority=100))
        cluster.wait("high", finished, 20)
        reasons = [c["reason"] for p in self.pods_of(cluster, "low") for c in p["status"].get("conditions", [])
                   if c["type"] == "DisruptionTarget"]
        self.assertLessEqual(set(reasons), {"PreemptionByScheduler"})
        (witness.folder / "go").touch()
        job = cluster.wait("low", finished, 20)
        self.assertTrue(condition(job, "Complete"))
        self.assertNotIn("failed", job["status"], "a preempted pod is ignored by its policy")
        started = [index for index, _, what, _ in witness.lines() if what == "start"]
        self.assertGreaterEqual(len(started), 4, "one of the low ones ran twice")

    def test_long_pods_behind_short_ones_find_the_free_slots(self):
        """Prefetch is sized for short pods; long pods must not wait as prefetched pods while another node is idle."""
        cluster = self.cluster(agents=2, slots=8)
        witness = self.witness(cluster)
        work = 'code=0; if [ "$i" -ge 400 ]; then while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; fi'
        self.submit(cluster, witness.job("mixed", work, 416, parallelism=100, backoffLimitPerIndex=0))
        eventually(lambda: cluster.api.job("mixed")["status"].get("ready") == 16, "each slot has a long one", 30)
        (witness.folder / "go").touch()
        job = cluster.wait("mixed", finished, 30)
        self.assertTrue(condition(job, "Complete"), job["status"])
        self.assertNotIn("failed", job["status"], "what was returned counts nowhere")
        witness.check(self)

    def test_p18_required_limits_keep_pods_off_nodes_that_do_not_enforce_them(self):
        """`./dev vm limits` covers nodes that enforce them. This one never does, whatever the machine offers."""
        os.environ["MUSTER_KEEPER_CGROUP"] = "off"
        self.addCleanup(os.environ.pop, "MUSTER_KEEPER_CGROUP")
        cluster = self.cluster(agents=1, slots=2, extra=["--require-limits"])
        node = cluster.api.call("GET", "/api/v1/nodes")[1]["items"][0]
        limits = next(c for c in node["status"]["conditions"] if c["type"] == "LimitsEnforced")
        self.assertEqual((limits["status"], limits["reason"]), ("False", "CgroupControllersUnavailable"))
        self.assertIn("MUSTER_KEEPER_CGROUP=off", limits["message"])
        self.assertIn("memory and cpu limits of containers are not enforced: MUSTER_KEEPER_CGROUP=off",
                      "".join(log.read_text() for log in cluster.dir.glob("node-*.log")))
        self.assertEqual(self.muster("submit", "--api", cluster.api_addr, "-n", "1", "--mem", "64Mi", "--", "true").stderr, "")
        limited = sh_job("limited", "true", 1)
        limited["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
        self.submit(cluster, limited)
        self.submit(cluster, sh_job("free", "true", 1))
        cluster.wait("free", finished, 20)
        self.assertEqual(cluster.api.job("limited")["status"].get("ready"), 0, "it was not placed")
        self.assertIn("does not enforce the pod's limits (--require-limits)",
                      self.muster("why", "job/limited/0", cluster=cluster).stdout)

    def test_a_memory_limit_that_nothing_enforces_is_announced_once(self):
        os.environ["MUSTER_KEEPER_CGROUP"] = "off"
        self.addCleanup(os.environ.pop, "MUSTER_KEEPER_CGROUP")
        cluster = self.cluster(agents=1, slots=2)
        there = ("--api", cluster.api_addr)
        for args, times in ((("run",), 1), (("run", "-q"), 0), (("run", *there), 1), (("run", "-q", *there), 0), (("submit", *there), 1),
                            (("submit", *there, "--node-selector", "rack=none"), 0)):
            done = self.muster(*args, "-n", "1", "--mem", "64Mi", "--", "true")
            self.assertEqual(done.returncode, 0, done.stderr)
            said = re.findall("^muster: warning: the memory limit is not enforced on (?:this machine|node-0): .*MUSTER_KEEPER_CGROUP=off.*$", done.stderr, re.M)
            self.assertEqual(len(said), times, (args, done.stderr))
            self.assertEqual(done.stderr.count("warning"), times, done.stderr)
        self.assertNotIn("warning", self.muster("run", "-n", "1", "--cpus", "1", "--", "true").stderr)

    def test_placement_respects_taints_selectors_and_cordon(self):
        cluster = self.cluster(agents=2, slots=4)
        witness = self.witness(cluster)
        call = cluster.api.call
        merge = "application/merge-patch+json"
        nodes = [n["metadata"]["name"] for n in call("GET", "/api/v1/nodes")[1]["items"]]
        call("PATCH", f"/api/v1/nodes/{nodes[0]}", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
                                                   "metadata": {"labels": {"disk": "fast"}}}, merge)
        self.submit(cluster, witness.job("plain", "code=0", 4))
        cluster.wait("plain", finished, 20)
        self.assertEqual({p["spec"]["nodeName"] for p in self.pods_of(cluster, "plain")}, {nodes[1]})
        tolerant = self.template(witness.job("tolerant", "code=0", 2), nodeSelector={"disk": "fast"},
                                 tolerations=[{"key": "gpu", "operator": "Exists"}])
        self.submit(cluster, tolerant)
        cluster.wait("tolerant", finished, 20)
        self.assertEqual({p["spec"]["nodeName"] for p in self.pods_of(cluster, "tolerant")}, {nodes[0]})
        # Taints and labels set by users survive a coordinator restart.
        cluster.restart_coordinator()
        cluster.wait_nodes()
        node = call("GET", f"/api/v1/nodes/{nodes[0]}")[1]
        self.assertEqual(node["spec"]["taints"], [{"key": "gpu", "effect": "NoSchedule"}])

    def disruptions(self, cluster, job):
        return [(c["reason"], c["message"]) for p in self.pods_of(cluster, job) for c in p["status"].get("conditions", [])
                if c["type"] == "DisruptionTarget"]

    def test_no_execute_taint_evicts_pods(self):
        cluster = self.cluster(agents=2, slots=2)
        witness = self.witness(cluster)
        work = '[ "$a" -ge 1 ] || while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'
        job = self.template(witness.job("driven", work, 4, backoffLimit=0), terminationGracePeriodSeconds=1)
        job["spec"]["podFailurePolicy"] = {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
        self.submit(cluster, job)
        eventually(lambda: cluster.api.job("driven")["status"].get("ready") == 4, "all run")
        node = self.pods_of(cluster, "driven")[0]["spec"]["nodeName"]
        taint = {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
        code, answer = cluster.api.call("PATCH", f"/api/v1/nodes/{node}", taint, "application/merge-patch+json")
        self.assertEqual(code, 200, answer)
        # Deleted pods disappear once they have ended; the history keeps them.
        history = "/apis/muster.dev/v1/namespaces/default/jobs/driven/attempts"
        attempts = lambda: cluster.api.call("GET", history)[1]["items"]
        eventually(lambda: len(attempts()) >= 2, "those of that node are gone")
        ended = attempts()[:2]
        self.assertEqual({(a["node"], a["disruption"], a["counted"]) for a in ended}, {(node, "DeletionByTaintManager", "ignored")})
        (witness.folder / "go").touch()
        done = cluster.wait("driven", finished, 30)
        self.assertTrue(condition(done, "Complete"), done["status"])
        self.assertNotIn("failed", done["status"])
        self.nothing_left(witness)

    def test_a_node_short_of_memory_evicts(self):
        # More than any machine has, so the node is always short of memory.
        cluster = self.cluster(agents=1, slots=2, agent_extra=["--evict-memory", "1000Ti"])
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("large", UNTIL_GO, 1, backoffLimit=0))
        done = cluster.wait("large", finished, 30)
        self.assertEqual(condition(done, "Failed")["reason"], "BackoffLimitExceeded")
        self.assertEqual(self.disruptions(cluster, "large"), [("TerminationByKubelet", "The node was low on resource: memory.")])
        self.assertEqual(self.pods_of(cluster, "large")[0]["status"]["reason"], "Evicted")
        self.nothing_left(witness)

    def test_a_deleted_nodes_pods_are_disrupted_and_run_again(self):
        cluster = self.cluster(agents=2, slots=2)
        witness = self.witness(cluster)
        work = '[ "$a" -ge 1 ] || while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'
        self.submit(cluster, witness.job("moved", work, 4))
        eventually(lambda: cluster.api.job("moved")["status"].get("ready") == 4, "all run")
        victim = self.pods_of(cluster, "moved")[0]["spec"]["nodeName"]
        code, answer = cluster.api.call("DELETE", f"/api/v1/nodes/{victim}")
        self.assertEqual(code, 200, answer)
        eventually(lambda: cluster.api.job("moved")["status"].get("failed") == 2, "its pods are lost")
        lost = [p for p in self.pods_of(cluster, "moved") if p["status"]["phase"] == "Failed"]
        self.assertEqual({c["reason"] for p in lost for c in p["status"]["conditions"] if c["type"] == "DisruptionTarget"},
                         {"DeletionByPodGC"})
        eventually(lambda: victim in [n["metadata"]["name"] for n in cluster.api.call("GET", "/api/v1/nodes")[1]["items"]],
                   "its agent, which is alive, registers anew")
        (witness.folder / "go").touch()
        job = cluster.wait("moved", finished, 30)
        self.assertEqual((job["status"]["succeeded"], job["status"]["failed"]), (4, 2))
        self.nothing_left(witness)

    def test_devices_are_never_shared(self):
        cluster = self.cluster(agents=1, slots=8, agent_extra=["--resource", "nvidia.com/gpu=3"])
        witness = self.witness(cluster)
        work = 'd="$WITNESS/gpu-$CUDA_VISIBLE_DEVICES"; mkdir "$d" && sleep 0.2 && rmdir "$d"; code=$?'
        job = witness.job("gpus", work, 9)
        job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
        self.submit(cluster, job)
        done = cluster.wait("gpus", finished, 30)
        self.assertTrue(condition(done, "Complete"), done["status"])
        self.assertNotIn("failed", done["status"])

    def test_orphans_run_on_without_their_job(self):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("parent", UNTIL_GO, 2))
        eventually(lambda: cluster.api.job("parent")["status"].get("ready") == 2, "both run")
        cluster.api.delete("parent", "Orphan")
        self.assertEqual(cluster.api.call("GET", "/apis/batch/v1/namespaces/default/jobs/parent")[0], 404)
        cluster.restart_coordinator()
        cluster.wait_nodes()
        pods = self.pods_of(cluster, "parent")
        self.assertEqual([p["status"]["phase"] for p in pods], ["Running"] * 2)
        self.assertTrue(all("ownerReferences" not in p["metadata"] for p in pods))
        (witness.folder / "go").touch()
        eventually(lambda: [p["status"]["phase"] for p in self.pods_of(cluster, "parent")] == ["Succeeded"] * 2, "both end")
        for pod in pods:
            cluster.api.call("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
        eventually(lambda: not self.pods_of(cluster, "parent"), "they are gone when they are deleted")

    def test_p20_finalizer_keeps_the_propagation_policy(self):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        path = "/apis/batch/v1/namespaces/default/jobs/"
        for name, policy, runs_on in (("back", "Background", False), ("orph", "Orphan", True), ("raw", None, True)):
            job = witness.job(name, UNTIL_GO, 1)
            job["metadata"]["finalizers"] = ["example.com/audit"]
            self.submit(cluster, job)
            eventually(lambda: cluster.api.job(name)["status"].get("ready") == 1, "it runs")
            code, answer = cluster.api.call("DELETE", path + name, {"propagationPolicy": policy} if policy else None)
            self.assertEqual(code, 200, answer)
            cluster.restart_coordinator()
            cluster.wait_nodes()
            shown = cluster.api.job(name)
            self.assertIn("deletionTimestamp", shown["metadata"])
            self.assertEqual([p["status"]["phase"] for p in self.pods_of(cluster, name)], ["Running"])
            code, answer = cluster.api.patch(name, {"metadata": {"finalizers": None}})
            self.assertEqual(code, 200, answer)
            eventually(lambda: cluster.api.call("GET", path + name)[0] == 404, "the job goes with its last finalizer")
            if runs_on:
                self.assertEqual([p["status"]["phase"] for p in self.pods_of(cluster, name)], ["Running"])
            else:
                eventually(lambda: not self.pods_of(cluster, name), "its pods end then")

    def test_p19_gated_pods_do_not_run(self):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        job = witness.job("gated", "code=0", 1)
        job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
        self.submit(cluster, job)
        eventually(lambda: self.pods_of(cluster, "gated"), "its pod exists")
        scheduled = self.pods_of(cluster, "gated")[0]["status"]["conditions"][0]
        self.assertEqual((scheduled["type"], scheduled["status"], scheduled["reason"]), ("PodScheduled", "False", "SchedulingGated"))
        open_gates = {"spec": {"template": {"spec": {"schedulingGates": None}}}}
        self.assertEqual(cluster.api.patch("gated", open_gates)[0], 422, "not while it is not suspended")
        self.assertEqual(cluster.api.patch("gated", {"spec": {"suspend": True}})[0], 200)
        eventually(lambda: condition(cluster.api.job("gated"), "Suspended"), "it is suspended")
        code, answer = cluster.api.patch("gated", open_gates)
        self.assertEqual(code, 200, answer)
        self.assertEqual(cluster.api.patch("gated", {"spec": {"suspend": False}})[0], 200)
        self.assertTrue(condition(cluster.wait("gated", finished, 20), "Complete"))


class Away(World):
    """Pods that end while the coordinator is down or frozen."""

    def overdue(self, freeze):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        # Both end before the deadline, while no coordinator can receive their reports.
        work = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=$i'
        began = time.monotonic()
        self.submit(cluster, witness.job("ok", work, 2, activeDeadlineSeconds=1000, backoffLimit=5))
        self.submit(cluster, witness.job("bad", work, 2, activeDeadlineSeconds=1000, backoffLimit=0))
        for name in ("ok", "bad"):
            eventually(lambda: cluster.api.job(name)["status"].get("ready") == 2, "both run")
        deadline = int(time.monotonic() - began) + 5
        for name in ("ok", "bad"):
            self.assertEqual(cluster.api.patch(name, {"spec": {"activeDeadlineSeconds": deadline}})[0], 200)
        if freeze:
            os.kill(cluster.coord.pid, signal.SIGSTOP)
        else:
            cluster.kill_coordinator()
        (witness.folder / "go").touch()
        eventually(lambda: len(witness.ends()) == 4, "all have ended")
        eventually(lambda: time.monotonic() > began + deadline + 1, "the deadline is over")
        if freeze:
            os.kill(cluster.coord.pid, signal.SIGCONT)
        else:
            cluster.start_coordinator()
        ok, bad = (cluster.wait(name, finished, 30) for name in ("ok", "bad"))
        self.assertEqual(ok["status"].get("completedIndexes"), "0", ok["status"])
        self.assertEqual(ok["status"].get("failed"), 1, ok["status"])
        self.assertEqual(condition(ok, "Failed")["reason"], "DeadlineExceeded")
        self.assertEqual(condition(bad, "Failed")["reason"], "BackoffLimitExceeded")
        self.assertEqual(bad["status"].get("completedIndexes"), "0", bad["status"])

    def test_p15_ends_before_the_deadline_count_after_coordinator_downtime(self):
        self.overdue(freeze=False)

    def test_p15_ends_before_the_deadline_count_after_coordinator_freeze(self):
        self.overdue(freeze=True)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
