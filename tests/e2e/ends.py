#!/usr/bin/python3
"""Nodes that end (muster agent --until) and nodes that are reserved (muster reserve), with real processes.

    MUSTER=build/release/muster tests/e2e/ends.py [TEST…]
"""
import http.client
import json
import os
import pathlib
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, disruption, eventually, finished  # noqa: E402

LATER = ("sh", "-c", "[ $MUSTER_ATTEMPT -ge 1 ] || exec sleep 300")


class Ends(World):
    def typed(self, cluster, name, count, *command, more=()):
        ran = self.muster("submit", "--name", name, "-n", str(count), *more, "--", *command, cluster=None,
                          env={**os.environ, "MUSTER_API": cluster.api_addr})
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def said(self, *args, cluster):
        ran = self.muster(*args, cluster=cluster)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def running(self, cluster, name):
        return eventually(lambda: [p for p in self.pods_of(cluster, name) if p["status"]["phase"] == "Running"], f"{name} runs")

    def placed(self, cluster, name):
        return [p for p in self.pods_of(cluster, name) if p["spec"].get("nodeName")]

    def test_a_node_that_ends_costs_typed_jobs_nothing(self):
        cluster = self.cluster(agents=0, grace="30s")
        cluster.start_agent("ending", slots=2, extra=["--until", "+8s"])
        cluster.wait_nodes()
        self.typed(cluster, "moved", 2, *LATER, more=("--grace", "1s"))
        self.running(cluster, "moved")
        wide = self.said("get", "nodes", "-o", "wide", cluster=cluster)
        self.assertRegex(wide.splitlines()[0], r"ENDS")
        self.assertRegex(wide, r" in \ds")
        # What cannot end in time waits, and is told why.
        self.typed(cluster, "long", 1, "true", more=("--time", "2h"))
        eventually(lambda: "ending at " in (why := self.muster("why", "job/long", cluster=cluster).stdout) and "may run 2h" in why, "why says so")
        self.assertFalse(self.placed(cluster, "long"))
        agent = cluster.agents.pop("ending")
        self.assertEqual(agent.wait(30), 0, "the agent has left")
        cluster.start_agent("next", slots=2)
        status = cluster.wait("moved", finished, 40)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failed"), status.get("failedIndexes") or ""), (2, None, ""))
        self.assertEqual(cluster.wait("long", finished, 40)["status"].get("succeeded"), 1)
        attempts = self.said("get", "attempts", "job/moved", "-o", "json", cluster=cluster)
        self.assertIn("the node ends (--until)", attempts)
        self.assertIn("TerminationByKubelet", attempts)

    def test_the_end_of_an_allocation_of_slurm_is_the_default(self):
        cluster = self.cluster(agents=0, grace="30s")
        os.environ["SLURM_JOB_END_TIME"] = str(int(time.time()) + 3600)
        try:
            cluster.start_agent("node-0", slots=1)
        finally:
            del os.environ["SLURM_JOB_END_TIME"]
        cluster.wait_nodes()
        code, node = cluster.api.call("GET", "/api/v1/nodes/node-0")
        self.assertEqual(code, 200)
        self.assertIn("muster.dev/until", node["metadata"]["annotations"])

    def test_a_past_end_is_refused(self):
        for until, wrong in (("2020-01-01T00:00", "is in the past"), ("soon", "must be an instant")):
            ran = self.muster("agent", "--hollow", "--until", until, "--coordinator", "127.0.0.1:1")
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertIn(wrong, ran.stderr)

    def test_maintenance_begins_and_ends_and_outlives_the_coordinator(self):
        cluster = self.cluster(agents=2, slots=1, grace="8s")
        self.typed(cluster, "moved", 2, *LATER, more=("--grace", "1s"))
        eventually(lambda: len(self.running(cluster, "moved")) == 2, "both run")
        said = self.said("reserve", "fw", "--nodes", "node-0", "--from", "+1s", "--for", "12s", "--reason", "new firmware", cluster=cluster)
        self.assertIn("node/node-0 reserved from", said)
        cluster.kill_coordinator()
        cluster.start_coordinator()
        listed = eventually(lambda: self.muster("reserve", cluster=cluster).stdout, "it is listed")
        self.assertIn("fw", listed)
        self.assertIn("new firmware", listed)
        eventually(lambda: not [p for p in self.pods_of(cluster, "moved") if p["spec"].get("nodeName") == "node-0"
                                and p["status"]["phase"] == "Running"], "what ran there has ended", 30)
        ended = [p for p in self.pods_of(cluster, "moved") if p["spec"].get("nodeName") == "node-0"]
        for pod in ended:
            self.assertEqual(disruption(pod), "DeletionByTaintManager")
        why = eventually(lambda: (text := self.muster("why", "job/moved/0", cluster=cluster).stdout
                                  + self.muster("why", "job/moved/1", cluster=cluster).stdout) and "reserved until" in text and text, "why says so")
        self.assertIn("new firmware", why)
        # Afterwards the node is open again; the other is still taken.
        eventually(lambda: cluster.api.job("moved")["status"].get("succeeded") == 1, "it ran again there", 40)

    def test_reserved_nodes_start_nothing_that_could_not_end_before(self):
        cluster = self.cluster(agents=1, slots=4, grace="8s")
        self.said("reserve", "fw", "--nodes", "node-0", "--from", "+1h", "--for", "1h", cluster=cluster)
        self.assertRegex(self.said("describe", "node", "node-0", cluster=cluster),
                         r"Reserved: +fw from 2\S+Z until 2\S+Z for maintenance, by \S+\n")
        self.typed(cluster, "endless", 1, "true")
        self.typed(cluster, "long", 1, "true", more=("--time", "2h"))
        self.typed(cluster, "short", 1, "true", more=("--time", "10m"))
        self.assertEqual(cluster.wait("short", finished, 30)["status"].get("succeeded"), 1)
        eventually(lambda: "no time limit (--time)" in self.muster("why", "job/endless", cluster=cluster).stdout, "why says so")
        self.assertIn("may run 2h", self.said("why", "job/long", cluster=cluster))
        self.assertFalse(self.placed(cluster, "endless") + self.placed(cluster, "long"))
        self.said("reserve", "fw", "--delete", cluster=cluster)
        for name in ("endless", "long"):
            self.assertEqual(cluster.wait(name, finished, 30)["status"].get("succeeded"), 1)

    def test_users_and_groups_that_do_not_exist_are_warned_of(self):
        cluster = self.cluster(agents=2, slots=1)
        ran = self.muster("reserve", "course", "--nodes", "node-0,node-1", "--from", "+1h", "--for", "1h", "--user", "nosuchuser,root", cluster=cluster)
        self.assertEqual((ran.returncode, ran.stderr), (0, "muster: warning: reservation course: there is no user nosuchuser now\n"))
        text = "from=2099-01-01T00:00:00Z until=2099-01-02T00:00:00Z groups=nosuchgroup:4711,root:4711,4712:4712"
        link = http.client.HTTPConnection(cluster.api_addr, timeout=20)
        self.addCleanup(link.close)
        link.request("PATCH", "/api/v1/nodes/node-0", json.dumps({"metadata": {"annotations": {"reservation.muster.dev/lab": text}}}),
                     {"Content-Type": "application/merge-patch+json"})
        answer = link.getresponse()
        self.assertEqual(answer.status, 200, answer.read())
        warnings = " ".join(answer.headers.get_all("Warning"))
        for words in ("reservation lab: there is no group nosuchgroup now", "reservation lab: the gid of group root is 0 on the coordinator's machine, not 4711"):
            self.assertIn(words, warnings)
        for word in ("course", "4712"):  # known already; a gid
            self.assertNotIn(word, warnings)

    def test_bad_reservations_are_refused(self):
        cluster = self.cluster(agents=1, slots=1)
        for args, code, wrong in (
                (("fw", "--nodes", "node-0", "--from", "2020-01-01T00:00", "--for", "1h"), 2, "is in the past"),
                (("fw", "--nodes", "node-0", "--from", "+1h", "--for", "0s"), 2, "must be at least 1s"),
                (("fw", "--from", "+1h", "--for", "1h"), 2, "reserve which nodes?"),
                (("fw", "--nodes", "node-0"), 2, "reserve when?"),
                (("fw", "--nodes", "node-0", "--from", "+1h", "--for", "1h", "--group", "no-such-group"), 2, "there is no group"),
                (("a/b", "--nodes", "node-0", "--from", "+1h", "--for", "1h"), 2, "must be a name"),
                (("fw", "--nodes", "node-0,c99", "--from", "+1h", "--for", "1h"), 3, "there is no node c99"),
                (("fw", "--node-selector", "rack=7", "--from", "+1h", "--for", "1h"), 3, "no node has labels"),
                (("fw", "--delete"), 3, "there is no reservation fw")):
            ran = self.muster("reserve", *args, cluster=cluster)
            self.assertEqual(ran.returncode, code, f"{args}: {ran.stderr}")
            self.assertIn(wrong, ran.stderr)
        code, answer = cluster.api.call("PATCH", "/api/v1/nodes/node-0", {"metadata": {"annotations": {"reservation.muster.dev/x": "soon"}}},
                                        ctype="application/merge-patch+json")
        self.assertEqual(code, 422, answer)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
