#!/usr/bin/python3
"""Queues and priority classes with real processes: limits, nodes, and what operators change.

    MUSTER=build/release/muster tests/e2e/queues.py [TEST…]
"""
import json
import os
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished  # noqa: E402


class Queues(World):
    def said(self, cluster, *args, code=0):
        ran = self.muster(*args, cluster=None, env={**os.environ, "MUSTER_API": cluster.api_addr})
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        return ran.stdout + ran.stderr

    def placed(self, cluster, name):
        return [p["spec"]["nodeName"] for p in self.pods_of(cluster, name) if p["spec"].get("nodeName")]

    def why(self, cluster, name, words):
        return eventually(lambda: words in (why := self.muster("why", f"job/{name}", cluster=cluster).stdout) and why, f"why says {words!r}")

    def test_a_limit_makes_pods_wait_and_holds_after_a_crash(self):
        cluster = self.cluster(slots=8)
        self.said(cluster, "queue", "small", "--limit", "pods=2")
        self.assertRegex(self.said(cluster, "queue"), r"small +<all> +<all> +1 ")
        self.said(cluster, "submit", "-p", "small", "--name", "many", "-n", "6", "--", "sleep", "300")
        eventually(lambda: len(self.placed(cluster, "many")) == 2, "two pods run")
        self.why(cluster, "many", "the pods in queue small have 2 of at most 2 pods, and the job wants 4 more")
        # Another queue is not held up.
        self.said(cluster, "submit", "--name", "other", "-n", "3", "--wait", "--timeout", "60s", "--", "true")
        cluster.kill_coordinator()
        cluster.start_coordinator()
        cluster.wait_nodes()
        self.said(cluster, "submit", "-p", "small", "--name", "late", "-n", "1", "--", "true")
        self.why(cluster, "late", "the pods in queue small have 2 of at most 2 pods")
        self.assertEqual(len(self.placed(cluster, "many")), 2)
        self.said(cluster, "queue", "small", "--limit", "pods=5")
        eventually(lambda: len(self.placed(cluster, "many")) + len(self.placed(cluster, "late")) >= 4, "a change acts at once")

    def test_the_partition_of_a_script_is_its_queue_if_there_is_one(self):
        cluster = self.cluster(slots=2)
        self.said(cluster, "queue", "short", "--max-time", "1h", "--limit", "pods=1")
        script = cluster.dir / "job.sh"

        def queue_of(partition, *flags, warns=""):
            script.write_text(f"#!/bin/sh\n#SBATCH --partition={partition} -t 10:00\ntrue\n")
            said = self.said(cluster, "submit", *flags, "--wait", "--timeout", "60s", script)
            self.assertIn(warns, said)
            self.assertEqual("warning" in said, bool(warns), said)
            job = json.loads(self.said(cluster, "get", said.split(" created")[0].split("\n")[-1].replace(".batch", ""), "-o", "json"))
            return job["metadata"]["annotations"].get("muster.dev/queue", "default")

        self.assertEqual(queue_of("short"), "short")
        self.assertEqual(queue_of("long,short"), "short")
        self.assertEqual(queue_of("default"), "default")
        self.assertEqual(queue_of("short", "-p", "default"), "default")
        self.assertEqual(queue_of("../x", warns="--partition=../x is ignored: there is no queue of that name"), "default")
        # Its limits hold.
        script.write_text("#!/bin/sh\n#SBATCH -p short --time 2:00:00\ntrue\n")
        self.assertIn("--time: ", self.said(cluster, "submit", script, code=5))
        self.said(cluster, "submit", "--partition", "short", "--name", "typed", "-n", "1", "--wait", "--timeout", "60s", "--", "true")

    def test_what_a_limit_never_allows_is_refused(self):
        cluster = self.cluster(slots=8)
        self.assertIn("there is no queue nosuch now", self.said(cluster, "queue", "tiny", "--limit", "pods=2", "--preempts", "nosuch"))
        self.assertIn("there is no group nosuchgroup now", self.said(cluster, "queue", "lab", "--groups", "nosuchgroup"))
        self.assertIn("there is no user nosuchuser now", self.said(cluster, "queue", "lab", "--users", "nosuchuser"))
        refused = self.said(cluster, "submit", "-p", "tiny", "--gang", "-n", "5", "--", "true", code=5)
        self.assertIn("a gang of 5 pods takes 5 pods, and queue tiny allows 2; an operator may raise the limit (muster queue tiny --limit pods=N)", refused)
        self.said(cluster, "submit", "-p", "tiny", "--gang", "-n", "2", "--name", "fits", "--wait", "--timeout", "60s", "--", "true")
        self.said(cluster, "submit", "-p", "tiny", "--gang", "-n", "2", "--name", "now", "--hold", "--", "true")
        self.said(cluster, "queue", "tiny", "--limit", "pods=1")
        self.said(cluster, "release", "job/now")
        self.why(cluster, "now", "it can never start: it takes at least 2 pods at once, and queue tiny allows 1; an operator may raise the limit")

    def test_pods_go_to_the_nodes_of_their_queue(self):
        cluster = self.cluster(agents=0)
        cluster.start_agent("plain", slots=2)
        cluster.start_agent("fast", slots=2, extra=["--label", "disk=ssd"])
        cluster.wait_nodes()
        self.said(cluster, "queue", "ssd", "--nodes", "disk=ssd", "--max-time", "1h", "--time", "10m")
        self.said(cluster, "submit", "--queue", "ssd", "--name", "io", "-n", "4", "--", "sleep", "300")
        eventually(lambda: len(self.placed(cluster, "io")) == 2, "two pods run")
        self.assertEqual(set(self.placed(cluster, "io")), {"fast"})
        self.said(cluster, "throttle", "job/io", "4")
        job = cluster.api.job("io")
        self.assertEqual(job["spec"]["template"]["spec"]["activeDeadlineSeconds"], 600)
        refused = self.said(cluster, "submit", "--queue", "ssd", "--time", "2h", "-n", "1", "--", "true", code=5)
        self.assertIn("must not be above the time limit of queue ssd, 3600 (1h)", refused)
        self.assertIn("--time: Invalid value", refused)
        self.assertIn("--queue: Not found: \"sdd\"; muster get queues lists the queues",
                      self.said(cluster, "submit", "--queue", "sdd", "-n", "1", "--", "true", code=5))
        self.assertRegex(self.said(cluster, "describe", "job/io"), r"Queue: +ssd")
        self.assertRegex(self.said(cluster, "get", "jobs", "-o", "wide"), r"QUEUE +USER .*\nio .* ssd +")
        # An operator moves it, and back.
        self.said(cluster, "set", "job/io", "--queue", "default")
        eventually(lambda: sorted(self.placed(cluster, "io")) == ["fast", "fast", "plain", "plain"], "all run")
        self.assertIn("set by", self.said(cluster, "why", "job/io"))
        self.said(cluster, "queue", "ssd", "--delete")
        self.said(cluster, "set", "job/io", "--queue", "none")
        self.assertIn("not found", self.said(cluster, "queue", "ssd", code=3))
        self.assertEqual(self.said(cluster, "queue", "default"), "{}\n", "it exists, and says nothing")

    def test_large_demands_start_beside_short_pods_on_several_nodes(self):
        cluster = self.cluster(agents=2, slots=4)
        self.said(cluster, "submit", "--name", "short", "-n", "100000", "--", "sleep", "0.2")
        path = "/apis/batch/v1/namespaces/default/jobs/short"
        eventually(lambda: cluster.api.call("GET", path)[1]["status"].get("succeeded", 0) > 50, "pods end")
        for name, flags in (("one", ["-n", "1", "--cpus", "1"]), ("gang", ["-n", "6", "--gang"])):
            self.said(cluster, "submit", "--name", name, *flags, "--wait", "--timeout", "30s", "--", "true")
        self.said(cluster, "delete", "job/short")

    def test_small_pods_flow_around_a_reservation_if_they_end_before_it(self):
        """EASY backfill: places are kept for a gang until a job ends that has a time limit."""
        cluster = self.cluster(slots=4)
        self.said(cluster, "submit", "--name", "now", "-n", "3", "--time", "10m", "--grace", "1s", "--", "sleep", "1000")
        eventually(lambda: len(self.placed(cluster, "now")) == 3, "three of four slots are taken")
        self.said(cluster, "submit", "--name", "gang", "-n", "4", "--gang", "--", "true")
        self.why(cluster, "gang", "places are being kept for it; all of them are expected to be free in about")
        self.said(cluster, "submit", "--name", "long", "-n", "1", "--time", "1h", "--", "true")
        self.said(cluster, "submit", "--name", "short", "-n", "1", "--time", "1m", "--wait", "--timeout", "60s", "--", "true")
        self.assertEqual((self.placed(cluster, "long"), self.placed(cluster, "gang")), ([], []), "a pod that might run until then waits")
        self.said(cluster, "delete", "job/now")
        for name in ("gang", "long"):
            self.said(cluster, "wait", f"job/{name}", "--timeout", "60s")

    def test_an_operators_time_limit_is_that_of_pods_that_start_later(self):
        cluster = self.cluster(slots=1)
        self.said(cluster, "submit", "--name", "slow", "-n", "2", "--grace", "1s", "--", "sh", "-c",
                  "[ $JOB_COMPLETION_INDEX = 0 ] && exec sleep 1; exec sleep 300")
        eventually(lambda: self.placed(cluster, "slow"), "the first pod runs")
        self.assertIn("has time limit 2s", self.said(cluster, "set", "job/slow", "--time", "2s"))
        status = cluster.wait("slow", finished, 60)["status"]
        self.assertEqual((status.get("completedIndexes"), status.get("failedIndexes")), ("0", "1"))

    def test_an_operators_time_limit_is_that_of_pods_that_run(self):
        cluster = self.cluster(slots=3)
        for name, seconds in (("longer", "4"), ("shorter", "300"), ("unlimited", "5")):
            self.said(cluster, "submit", "--name", name, "-n", "1", "--grace", "1s", *([] if name == "shorter" else ["--time", "3s"]),
                      "--", "sleep", seconds)
        for name in ("longer", "shorter", "unlimited"):
            eventually(lambda: self.placed(cluster, name), "it runs")
        self.said(cluster, "set", "job/longer", "--time", "1h")
        self.said(cluster, "set", "job/unlimited", "--time", "unlimited")
        # The agent after this one knows the limits that the pods started with.
        cluster.kill_agent("node-0")
        cluster.start_agent("node-0")
        cluster.wait_nodes()
        for name in ("longer", "unlimited"):
            self.assertEqual(cluster.wait(name, finished, 60)["status"].get("succeeded"), 1, name)
        self.said(cluster, "set", "job/shorter", "--time", "1s")
        status = cluster.wait("shorter", finished, 60)["status"]
        self.assertEqual(status.get("failed"), 1)
        self.assertIn("DeadlineExceeded", self.said(cluster, "get", "attempts", "job/shorter"))

    def test_limits_change_one_by_one(self):
        cluster = self.cluster()
        for flags, limits in ((["--limit", "pods=3,cpu=2"], {"pods": "3", "cpu": "2"}), (["--limit", "pods=5"], {"pods": "5", "cpu": "2"}),
                              (["--limit", "pods=none"], {"cpu": "2"}), (["--limit", "none,jobs=1"], {"jobs": "1"}), (["--limit", "jobs=none"], None)):
            self.said(cluster, "queue", "q", *flags, "--weight", "2")
            spec = cluster.api.call("GET", "/apis/muster.dev/v1/queues/q")[1]["spec"]
            self.assertEqual({k: str(v) for k, v in spec["limits"].items()} if "limits" in spec else None, limits, flags)
        for flag, weights in (("ann=2,bob=3", {"ann": 2, "bob": 3}), ("bob=5", {"ann": 2, "bob": 5}), ("ann=none", {"bob": 5}), ("none", None)):
            self.said(cluster, "queue", "q", "--user-weight", flag)
            self.assertEqual(cluster.api.call("GET", "/apis/muster.dev/v1/queues/q")[1]["spec"].get("userWeights"), weights, flag)

    def test_what_a_queue_cannot_mean_is_refused(self):
        cluster = self.cluster()
        for words, flags in (("must be NAME=VALUE, or none", ["q", "--nodes", "ssd"]), ("must be a whole number, or none", ["q", "--weight", "x"]),
                             ("must be such as 90m, 12h or 1:30:00, or none", ["q", "--time", "soon"]), ("the name of the queue is missing", ["--weight", "2"]),
                             ("--user-weight: `ann=some`: must be USER=N", ["q", "--user-weight", "ann=some"]),
                             ("--user-weight: `2`: must be USER=N", ["q", "--user-weight", "2"]),
                             ("goes without flags", ["q", "--delete", "--weight", "2"])):
            self.assertIn(words, self.said(cluster, "queue", *flags, code=2))
        for flag in ("--users", "--limit", "--nodes", "--weight"):
            self.assertIn(f"{flag}: the value is empty", self.said(cluster, "queue", "q", flag, "", code=2))
        self.assertIn("--index: the value is empty", self.said(cluster, "cancel", "job/x", "--index", "", code=2))
        self.assertIn("--user: the value is empty", self.said(cluster, "reserve", "r", "--nodes", "node-0", "--user", "", code=2))
        for words, flags in (("must be between 1 and 1000000", ["--weight", "0"]), ("must be pods, jobs, cpu, memory or a device", ["--limit", "gpu=1"]),
                             ("spec.userWeights[ann]: Invalid value: 0: must be between 1 and 1000000", ["--user-weight", "ann=0"]),
                             ("must not be above spec.timeLimit.max", ["--time", "2h", "--max-time", "1h"])):
            self.assertIn(words, self.said(cluster, "queue", "q", *flags, code=5))
        self.assertIn("one of --priority, --queue and --time is required", self.said(cluster, "set", "job/x", code=2))
        self.assertIn("--priority: `1000000001`: must be a whole number from -1000000000 to 1000000000, or none",
                      self.said(cluster, "set", "job/x", "--priority", "1000000001", code=2))
        for words in (("hold", "job/x"), ("cordon", "node-0"), ("drain", "node-0"), ("taint", "node-0", "a=b:NoSchedule")):
            self.assertIn("--reason: must have at most 1024 bytes, and has 1025", self.said(cluster, *words, "--reason", "x" * 1025, code=2))
        self.assertIn("--time: `2147483648s`: must be at most 2147483647s", self.said(cluster, "set", "job/x", "--time", "2147483648s", code=2))


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
