#!/usr/bin/python3
"""One fault at a time, with real processes: lost keepers and nodes, duplicate daemons, full disks, foreign data, bad input.

    MUSTER=build/release/muster tests/e2e/faults.py [TEST…]
"""
import contextlib
import fcntl
import itertools
import json
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from rows import Rows  # noqa: E402
from world import (Cluster, Memory, Witness, World, condition, disruption, eventually, exit_code, finished, matches,  # noqa: E402
                   parent, processes_of, sh_job)

UNTIL_GO = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'


class Processes(World):
    def test_a_killed_keeper_ends_its_pods_as_disrupted(self):
        cluster = self.cluster(agents=1, slots=4, grace="30s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("keeper", "[ $a -ge 1 ] || sleep 300; code=0", 3))
        memory = Memory(cluster, "keeper")
        eventually(lambda: len(witness.starts()) == 3, "three pods run")
        # A keeper that dies before it has recorded a start leaves a pod that never had a container.
        eventually(lambda: cluster.api.job("keeper")["status"].get("ready") == 3, "their starts are noted")
        pods = [pid for _, _, _, pid in witness.starts()]
        self.seen(witness, pods)
        keepers = {parent(pid) for pid in pods}
        self.assertEqual(len(keepers), 1, "one keeper a node")
        os.kill(keepers.pop(), signal.SIGKILL)
        job = cluster.wait("keeper", finished, 30)
        memory.end(self)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (3, 3))
        lost = [p for p in self.pods_of(cluster, "keeper") if p["status"]["phase"] == "Failed"]
        self.assertEqual([(disruption(p), exit_code(p)) for p in lost], [("TerminationByKubelet", 137)] * 3)
        self.assertEqual([pid for pid in pods if os.path.exists(f"/proc/{pid}") and pid in processes_of(witness.folder)], [])
        starts = [(index, attempt) for index, attempt, _, _ in witness.starts()]
        self.assertEqual(len(starts), len(set(starts)), "an attempt was started twice")
        self.nothing_left(witness)

    def test_pods_are_replaced_when_keeper_and_agent_are_killed(self):
        cluster = self.cluster(agents=1, slots=4, grace="30s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("both", "[ $a -ge 1 ] || sleep 300; code=0", 2))
        eventually(lambda: len(witness.starts()) == 2, "two pods run")
        keeper = parent(witness.starts()[0][3])
        cluster.kill_agent("node-0")
        os.kill(keeper, signal.SIGKILL)
        cluster.start_agent("node-0")
        job = cluster.wait("both", finished, 30)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (2, 2))
        self.nothing_left(witness)

    def test_missing_command_fails_the_pod(self):
        cluster = self.cluster(agents=1)
        witness = self.witness(cluster)
        for name, command, code in (("absent", "/no/such/command", 127), ("unfit", "/etc/passwd", 126)):
            job = witness.job(name, "code=0", 1, backoffLimit=0)
            job["spec"]["template"]["spec"]["containers"][0]["command"] = [command]
            self.submit(cluster, job)
            done = cluster.wait(name, finished)
            self.assertEqual(condition(done, "Failed")["reason"], "BackoffLimitExceeded")
            pods = self.pods_of(cluster, name)
            self.assertEqual([exit_code(p) for p in pods], [code])
            self.assertIn(command, json.dumps(pods[0]["status"]), "the reason names the command")
            described = self.muster("describe", "job", name, cluster=cluster)
            self.assertEqual(described.returncode, 0, described.stderr)
            self.assertIn(command, described.stdout)
            self.assertIn(str(code), described.stdout)


class Nodes(World):
    def test_agents_go_on_while_the_coordinator_is_away(self):
        cluster = self.cluster(agents=2, slots=3, grace="3s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("away", UNTIL_GO + "; [ $i -ne 4 ] || [ $a -ge 1 ] || code=9", 6))
        eventually(lambda: len(witness.starts()) == 6, "six pods run")
        eventually(lambda: cluster.api.job("away")["status"].get("ready") == 6, "all six are known to run")
        cluster.kill_coordinator()
        gone = time.monotonic()
        (witness.folder / "go").touch()
        eventually(lambda: len(witness.ends()) == 6, "they end without a coordinator")
        # Longer than the grace: a coordinator that was down must not declare nodes lost.
        eventually(lambda: time.monotonic() - gone > 7, "seven seconds", 10)
        for agent in cluster.agents.values():
            self.assertIsNone(agent.poll(), "an agent left")
        cluster.start_coordinator()
        job = cluster.wait("away", finished)
        witness.check(self)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (6, 1))
        self.assertEqual([disruption(p) for p in self.pods_of(cluster, "away") if disruption(p)], [])
        self.nothing_left(witness)

    def test_a_lost_node_is_replaced_and_fenced_when_it_comes_back(self):
        cluster = self.cluster(agents=1, slots=2, grace="2s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("lost", "echo here $JOB_COMPLETION_INDEX; " + UNTIL_GO, 2, backoffLimitPerIndex=2))
        memory = Memory(cluster, "lost")
        eventually(lambda: cluster.api.job("lost")["status"].get("ready") == 2, "both pods run on node-0")
        old = [pid for _, _, _, pid in witness.starts()]
        self.seen(witness, old)
        cluster.start_agent("node-1")
        cluster.wait_nodes()
        os.kill(cluster.agents["node-0"].pid, signal.SIGSTOP)
        self.addCleanup(lambda: cluster.agents["node-0"].poll() is None and os.kill(cluster.agents["node-0"].pid, signal.SIGCONT))

        eventually(lambda: len(witness.starts()) == 4, "both pods run again", 30)
        lost = [p for p in self.pods_of(cluster, "lost") if p["status"]["phase"] == "Failed"]
        self.assertEqual([disruption(p) for p in lost], ["DeletionByTaintManager"] * 2)
        self.assertEqual({p["spec"]["nodeName"] for p in lost}, {"node-0"})
        os.kill(cluster.agents["node-0"].pid, signal.SIGCONT)
        eventually(lambda: not set(old) & set(processes_of(witness.folder)), "the old copies are ended")
        cluster.wait_nodes()
        # Their logs are still readable on a node that has registered again.
        for pod in lost:
            said = self.muster("logs", pod["metadata"]["name"], cluster=cluster)
            self.assertEqual(said.stdout, f"here {pod['metadata']['annotations']['batch.kubernetes.io/job-completion-index']}\n", said.stderr)
        (witness.folder / "go").touch()
        job = cluster.wait("lost", finished)
        memory.end(self)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (2, 2))
        self.assertEqual(sorted((i, a) for i, a, _, _ in witness.starts()), [(0, 0), (0, 1), (1, 0), (1, 1)])
        self.nothing_left(witness)

    def test_fenced_pods_never_overlap(self):
        """One cluster loses an agent for good, another its coordinator: the keepers end the pods of jobs that ask for fencing, and no others."""
        lost, away = self.cluster(agents=1, slots=4, grace="2s"), self.cluster(agents=1, slots=4, grace="30s")
        jobs = {}
        for cluster in (lost, away):
            for name in ("fenced", "plain"):
                witness = Witness(cluster.dir / f"witness-{name}")
                job = witness.job(name, UNTIL_GO, 2, backoffLimitPerIndex=1)
                job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
                if name == "fenced":
                    job["metadata"].setdefault("annotations", {})["muster.dev/fence-after"] = "15s"
                self.submit(cluster, job)
                jobs[cluster, name] = witness
                eventually(lambda: cluster.api.job(name)["status"].get("ready") == 2, f"both pods of {name} run")
        old = {of: {pid for _, _, _, pid in witness.starts()} for of, witness in jobs.items()}
        lost.start_agent("node-1")
        lost.wait_nodes()
        lost.kill_agent("node-0")
        away.kill_coordinator()
        eventually(lambda: len(jobs[lost, "plain"].starts()) == 4, "plain pods are replaced", 30)
        alive = set(processes_of(jobs[lost, "plain"].folder))
        self.assertTrue(old[lost, "plain"] <= alive, "beside the old ones, which nothing ends")
        overlap = []

        def replaced():
            started = {pid for _, _, _, pid in jobs[lost, "fenced"].starts()} - old[lost, "fenced"]
            if started:
                overlap.extend(old[lost, "fenced"] & set(processes_of(jobs[lost, "fenced"].folder)))
            return len(started) == 2
        eventually(replaced, "fenced pods are replaced", 60)
        self.assertEqual(overlap, [])
        self.assertEqual([disruption(p) for p in self.pods_of(lost, "fenced") if p["status"]["phase"] == "Failed"], ["DeletionByTaintManager"] * 2)
        eventually(lambda: not old[away, "fenced"] & set(processes_of(jobs[away, "fenced"].folder)), "they are ended", 30)
        self.assertTrue(old[away, "plain"] <= set(processes_of(jobs[away, "plain"].folder)))
        away.start_coordinator()
        eventually(lambda: len(jobs[away, "fenced"].starts()) == 4, "and replaced once it is back", 30)
        failed = [p for p in self.pods_of(away, "fenced") if p["status"]["phase"] == "Failed"]
        self.assertEqual([disruption(p) for p in failed], ["DeletionByTaintManager"] * 2)
        self.assertIn("no contact with the coordinator", json.dumps(failed[0]["status"]))
        for cluster, name in jobs:
            (jobs[cluster, name].folder / "go").touch()
        for cluster, name in jobs:
            self.assertEqual(cluster.wait(name, finished)["status"].get("failed", 0), 0 if (cluster, name) == (away, "plain") else 2)
        lost.start_agent("node-0")
        for witness in jobs.values():
            self.nothing_left(witness)

    def freeze(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))

    def test_p12_a_frozen_node_starts_nothing_late(self):
        cluster = self.cluster(agents=1, slots=2, grace="2s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("warm", "code=0", 2))
        cluster.wait("warm", finished)
        os.remove(witness.path)
        keeper = self.keeper_of(cluster, "node-0")
        self.freeze(keeper)
        self.submit(cluster, witness.job("late", UNTIL_GO, 2, backoffLimitPerIndex=2))
        eventually(lambda: [p["spec"].get("nodeName") for p in self.pods_of(cluster, "late")] == ["node-0"] * 2, "both are bound to node-0")
        bound = time.monotonic()
        eventually(lambda: time.monotonic() - bound > 0.5, "the agent has ordered the starts")
        self.freeze(cluster.agents["node-0"].pid)
        cluster.start_agent("node-1")
        eventually(lambda: len(witness.starts()) == 2, "both pods run on node-1", 30)
        os.kill(keeper, signal.SIGCONT)
        log = next(cluster.dir.glob("node-0*/**/keeper.log"))
        eventually(lambda: log.read_text().count("not started") == 2, "the keeper has refused both starts")
        os.kill(cluster.agents["node-0"].pid, signal.SIGCONT)
        cluster.wait_nodes()
        (witness.folder / "go").touch()
        job = cluster.wait("late", finished)
        witness.check(self)
        self.assertEqual(sorted((i, a) for i, a, _, _ in witness.starts()), [(0, 1), (1, 1)])
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (2, 2))
        self.nothing_left(witness)

    def ready(self, cluster, node):
        """Status and reason of the node's Ready condition."""
        conditions = cluster.api.call("GET", f"/api/v1/nodes/{node}")[1]["status"]["conditions"]
        found = next(c for c in conditions if c["type"] == "Ready")
        return found["status"], found["reason"]

    def in_trouble(self, cluster, witness, reason):
        """While the only node has this problem and the job "held" has pods, every view reports it and nothing starts."""
        eventually(lambda: self.ready(cluster, "node-0") == ("False", reason), f"Ready is False: {reason}")
        self.assertTrue(matches(r"node-0\s+NotReady", self.muster("get", "nodes", cluster=cluster).stdout))
        self.assertIn(reason, self.muster("describe", "node", "node-0", cluster=cluster).stdout)
        self.assertIn(reason, self.muster("why", "job/held", cluster=cluster).stdout)
        self.assertIn(reason, self.muster("why", "job/held/0", cluster=cluster).stdout)
        name = f"waits-{reason.lower()}"
        self.submit(cluster, witness.job(name, "code=0", 1))
        eventually(lambda: self.pods_of(cluster, name), "its pod is there")
        why = self.muster("why", f"job/{name}", cluster=cluster)
        self.assertIn(reason, why.stdout)
        self.assertNotIn("nodeName", self.pods_of(cluster, name)[0]["spec"])
        job = cluster.api.job("held")["status"]
        self.assertEqual(job.get("failed"), None, "its pods are neither lost nor failed")
        return name

    def test_p13_ends_are_reported_after_the_keeper_could_not_write(self):
        cluster = self.cluster(agents=1, slots=4, grace="2s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("held", UNTIL_GO, 2, backoffLimit=0))
        memory = Memory(cluster, "held")
        eventually(lambda: cluster.api.job("held")["status"].get("ready") == 2, "both pods run")
        keeper = self.keeper_of(cluster, "node-0")
        _, most = resource.prlimit(keeper, resource.RLIMIT_FSIZE)
        resource.prlimit(keeper, resource.RLIMIT_FSIZE, (0, most))
        (witness.folder / "go").touch()
        eventually(lambda: len(witness.ends()) == 2, "both pods have ended")
        waits = self.in_trouble(cluster, witness, "SpoolNotWritable")
        job = cluster.wait("held", finished)  # the disk may be gone for good
        resource.prlimit(keeper, resource.RLIMIT_FSIZE, (most, most))
        memory.end(self)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (2, None))
        eventually(lambda: self.ready(cluster, "node-0") == ("True", "AgentReady"), "the node is ready again")
        self.assertEqual(cluster.wait(waits, finished)["status"]["succeeded"], 1)
        self.nothing_left(witness)

    def test_p13_ends_are_reported_after_the_keeper_hung(self):
        cluster = self.cluster(agents=1, slots=4, grace="2s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("held", UNTIL_GO, 2, backoffLimit=0))
        eventually(lambda: cluster.api.job("held")["status"].get("ready") == 2, "both pods run")
        keeper = self.keeper_of(cluster, "node-0")
        self.freeze(keeper)
        (witness.folder / "go").touch()
        waits = self.in_trouble(cluster, witness, "KeeperNotResponding")
        os.kill(keeper, signal.SIGCONT)
        job = cluster.wait("held", finished)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (2, None))
        self.assertEqual(cluster.wait(waits, finished)["status"]["succeeded"], 1)
        eventually(lambda: self.ready(cluster, "node-0") == ("True", "AgentReady"), "the node is ready again")
        self.nothing_left(witness)

    def test_agent_with_a_taken_name_is_refused(self):
        cluster = self.cluster(agents=1, slots=2)
        witness = self.witness(cluster)
        other = subprocess.Popen([os.environ["MUSTER"], "agent", "--coordinator", cluster.listen, "--name", "node-0",
                                  "--work-dir", str(cluster.dir / "other")], stdin=subprocess.DEVNULL,
                                 stdout=open(cluster.dir / "other.log", "wb"), stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (other.kill(), other.wait()))
        eventually(lambda: matches("node-0", cluster.log("other")) and
                   matches("taken|in use|alive|held|holds|another|already", cluster.log("other")), "a refusal that names it")
        self.submit(cluster, witness.job("mine", "code=0", 4))
        self.assertEqual(cluster.wait("mine", finished)["status"]["succeeded"], 4)
        self.assertEqual(len(cluster.api.call("GET", "/api/v1/nodes")[1]["items"]), 1)


def agent_that_sees(cluster, name, what, where, slots=2):
    """Starts an agent for which `what` is at the path `where`."""
    agent = shlex.join([cluster.bin, "agent", "--coordinator", cluster.listen, "--name", name, "--slots", str(slots), "--work-dir", str(cluster.dir / name)])
    cluster.agents[name] = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", f"mount --bind {what} {where} && exec {agent}"], stdin=subprocess.DEVNULL,
        stdout=open(cluster.dir / f"{name}.log", "wb"), stderr=subprocess.STDOUT, start_new_session=True)


class Reboots(World):
    """Nodes that are rebooted when nothing runs on them."""

    def cordoned(self, cluster, node):
        return cluster.api.call("GET", f"/api/v1/nodes/{node}")[1]["spec"].get("unschedulable", False)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root, for another boot id")
    def test_a_node_is_rebooted_once_it_is_idle_and_taken_back(self):
        cluster = self.cluster(agents=1, slots=2, grace="2s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("work", UNTIL_GO, 2))
        eventually(lambda: len(witness.starts()) == 2, "both run")
        asked = cluster.dir / "asked"
        with open(cluster.dir / "said", "w+") as said:
            reboot = subprocess.Popen([os.environ["MUSTER"], "reboot", "node-0", "--when-idle", "--command", f"echo {{}} >{asked}", "--api", cluster.api_addr],
                                      stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
            self.addCleanup(lambda: (reboot.kill(), reboot.wait()))
            eventually(lambda: self.cordoned(cluster, "node-0"), "cordoned")
            self.assertFalse(asked.exists(), "its pods run")
            (witness.folder / "go").touch()
            self.assertEqual(eventually(lambda: asked.exists() and asked.read_text(), "told to reboot"), "node-0\n")
            # An agent that is only restarted is not back after a boot.
            cluster.kill_agent("node-0")
            cluster.start_agent("node-0")
            cluster.wait_nodes()
            looks = time.monotonic() + 1.5  # it looks every half second
            while time.monotonic() < looks:
                self.assertIsNone(reboot.poll(), "an agent that restarts is not back after a boot")
                time.sleep(0.05)
            self.assertTrue(self.cordoned(cluster, "node-0"))
            cluster.kill_agent("node-0")
            boot = cluster.dir / "boot_id"
            boot.write_text("00000000-0000-4000-8000-000000000000\n")
            agent_that_sees(cluster, "node-0", boot, "/proc/sys/kernel/random/boot_id")
            self.assertEqual(reboot.wait(30), 0)
            said.seek(0)
            shown = said.read()
        order = [shown.find(words) for words in ("node/node-0 drained: no pods left\n", f"node/node-0: echo node-0 >{asked}\n",
                                                 "node/node-0 is back after ", "node/node-0 uncordoned\n")]
        self.assertEqual(order, sorted(order), shown)
        self.assertNotIn(-1, order, shown)
        self.assertFalse(self.cordoned(cluster, "node-0"))
        self.assertEqual(cluster.wait("work", finished)["status"].get("failed"), None)
        self.assertEqual(len(witness.starts()), 2, "nothing was run twice")
        witness.check(self)

    def test_a_node_that_is_not_rebooted_stays_cordoned(self):
        cluster = self.cluster(agents=2, slots=1)
        for words, code, why in ((("--command", "exit 3"), 1, "the command ended with exit code 3"),
                                 (("--command", "exit 255", "--back-within", "1s"), 124, "node/node-0 is not back after 1s"),
                                 (("--command", "true", "--back-within", "1s"), 124, "node/node-0 is not back after 1s")):
            ran = self.muster("reboot", "node-0", "node-1", *words, cluster=cluster)
            self.assertEqual(ran.returncode, code, ran.stderr)
            self.assertIn(f"{why}: node/node-0 stays cordoned\n  undo:    muster uncordon node-0\n", ran.stderr)
            # A node that has been told to reboot is not told again.
            self.assertEqual("  resume:  muster reboot node-0 node-1 --command 'exit 3'\n" in ran.stderr, code == 1, ran.stderr)
            self.assertTrue(self.cordoned(cluster, "node-0"))
            self.assertFalse(self.cordoned(cluster, "node-1"), "the next one is left alone")
        # The reason of somebody else's cordon stays.
        self.muster("uncordon", "node-0", cluster=cluster)
        self.muster("cordon", "node-0", "--reason", "replace DIMM", cluster=cluster)
        self.muster("reboot", "node-0", "--command", "exit 3", cluster=cluster)
        reasons = json.loads(cluster.api.call("GET", "/api/v1/nodes/node-0")[1]["metadata"]["annotations"]["muster.dev/reasons"])
        self.assertEqual([one["reason"] for one in reasons], ["replace DIMM"])
        for words, why in ((("node-9", "--command", "true"), 'nodes "node-9" not found'), (("node-0",), "--command"),
                           (("node-0", "--command", ""), "--command: must not be empty"),
                           (("node-0", "--command", "true", "--now", "--when-idle"), "--when-idle, --now and --deadline are mutually exclusive")):
            ran = self.muster("reboot", *words, cluster=cluster)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn(why, ran.stderr)


class SitesTrouble(World):
    """What one node cannot do, or takes away, is not the failure of an index."""

    def typed(self, cluster, name, count, *command, more=()):
        ran = self.muster("submit", "--name", name, "-n", str(count), *more, "--", *command, cluster=None,
                          env={**os.environ, "MUSTER_API": cluster.api_addr})
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def without(self, cluster, name, folder, slots=2):
        """A node on which this folder is empty."""
        empty = cluster.dir / "empty"
        empty.mkdir(exist_ok=True)
        agent_that_sees(cluster, name, empty, folder, slots)
        cluster.wait_nodes()

    def test_p15_pods_avoid_a_node_without_the_program(self):
        cluster = self.cluster(agents=1, slots=2, grace="30s")
        project = cluster.dir / "project"
        project.mkdir()
        (project / "step").write_text("#!/bin/sh\nexit 0\n")
        (project / "step").chmod(0o755)
        (project / "there").mkdir()
        self.without(cluster, "bad", project)
        self.typed(cluster, "program", 20, "./step", more=("--chdir", str(project)))
        job = cluster.wait("program", finished)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (20, None))
        self.typed(cluster, "directory", 20, "true", more=("--chdir", str(project / "there")))
        job = cluster.wait("directory", finished)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed")), (20, None))
        self.assertIn("cannot start its pods, which are placed elsewhere: cwd", cluster.log("coordinator"))

    def test_p15_pod_that_no_node_can_start_fails_with_reason(self):
        cluster = self.cluster(agents=2, slots=2, grace="30s")
        self.submit(cluster, sh_job("nowhere", "true", 3))
        cluster.wait("nowhere")
        job = sh_job("missing", "true", 3, backoffLimitPerIndex=0)
        job["spec"]["template"]["spec"]["containers"][0]["workingDir"] = "/no/such/directory"
        self.submit(cluster, job)
        status = cluster.wait("missing", finished)["status"]
        self.assertEqual((status.get("failed"), status.get("failedIndexes")), (3, "0-2"))
        for pod in self.pods_of(cluster, "missing"):
            if pod["status"]["phase"] == "Failed":
                self.assertEqual(exit_code(pod), 126)

    def test_p15_a_typing_error_does_not_wait_for_busy_nodes(self):
        cluster = self.cluster(agents=3, slots=1, grace="30s")
        self.typed(cluster, "busy", 1, "sleep", "300", more=("--node-selector", "kubernetes.io/hostname=node-1"))
        eventually(lambda: cluster.api.job("busy")["status"].get("ready") == 1, "one node is busy")
        self.typed(cluster, "typo", 3, "/no/such/command")
        failed = cluster.wait("typo", finished)["status"]["conditions"][-1]
        self.assertEqual(failed["reason"], "StartFailure")
        self.assertIn("No such file or directory (nodes ", failed["message"])
        for name in ("node-0", "node-2", "no other node had room to try"):
            self.assertIn(name, failed["message"])
        why = self.muster("why", "job/typo", cluster=cluster).stdout
        self.assertIn("(nodes ", why)
        self.typed(cluster, "unfit", 3, "/etc/passwd")
        failed = cluster.wait("unfit", finished)["status"]["conditions"][-1]
        self.assertIn("exec /etc/passwd: Permission denied (node", failed["message"])

    def test_p15_a_script_without_its_interpreter_fails_at_once(self):
        cluster = self.cluster(agents=2, slots=1, grace="30s")
        script = cluster.dir / "step"
        script.write_text("#!/no/such/interpreter\n")
        script.chmod(0o755)
        self.typed(cluster, "busy", 1, "sleep", "300", more=("--node-selector", "kubernetes.io/hostname=node-1"))
        eventually(lambda: cluster.api.job("busy")["status"].get("ready") == 1, "one node is busy")
        said = f"exec {script}: bad interpreter: No such file or directory"
        self.typed(cluster, "typed", 3, str(script))
        failed = cluster.wait("typed", finished)["status"]["conditions"][-1]
        self.assertEqual(failed["message"], f"The command cannot be started: {said} (node node-0)")
        job = sh_job("manifest", "true", 1, backoffLimitPerIndex=0)
        job["spec"]["template"]["spec"]["containers"][0]["command"] = [str(script)]
        self.submit(cluster, job)
        self.assertEqual(cluster.wait("manifest", finished)["status"].get("failedIndexes"), "0")
        self.assertEqual([exit_code(pod) for pod in self.pods_of(cluster, "manifest")], [126])

    def test_p15_a_job_keeps_away_from_a_node_and_says_so(self):
        cluster = self.cluster(agents=1, slots=1, grace="30s")
        project = cluster.dir / "project"
        project.mkdir()
        (project / "step").write_text("#!/bin/sh\nexec sleep 300\n")
        (project / "step").chmod(0o755)
        self.without(cluster, "bad", project)
        self.typed(cluster, "some", 2, "./step", more=("--chdir", str(project)))
        eventually(lambda: "(1 avoided, 1 full)" in self.muster("why", "job/some", cluster=cluster).stdout, "why names the bad node")

    def test_p15_a_start_failure_ends_the_job_while_its_pods_run_elsewhere(self):
        cluster = self.cluster(agents=2, slots=5, grace="30s")
        project = cluster.dir / "project"
        project.mkdir()
        step = project / "step"
        step.write_text("#!/bin/sh\n[ $JOB_COMPLETION_INDEX = 3 ] || exec sleep 300\n"
                        f"until [ -e {project}/go ]; do sleep 0.05; done; rm {step}; exit 1\n")
        step.chmod(0o755)
        self.typed(cluster, "gone", 4, "./step", more=("--chdir", str(project), "--retries", "1"))
        eventually(lambda: cluster.api.job("gone")["status"].get("ready") == 4, "all four run")
        (project / "go").touch()
        status = cluster.wait("gone", finished, 60)["status"]
        self.assertEqual(status["conditions"][-1]["reason"], "StartFailure")
        self.assertIn("The command cannot be started", status["conditions"][-1]["message"])

    def test_p15_a_drained_node_costs_no_index(self):
        cluster = self.cluster(agents=1, slots=2, grace="30s")
        witness = self.witness(cluster)
        script = witness.job("x", "[ $a -ge 1 ] || sleep 300; code=0", 1)["spec"]["template"]["spec"]["containers"][0]["command"]
        self.typed(cluster, "moved", 2, *script, more=("--env", f"WITNESS={witness.folder}"))
        eventually(lambda: len(witness.starts()) == 2, "both run")
        cluster.start_agent("node-1", slots=2)
        cluster.wait_nodes()
        drained = self.muster("drain", "node-0", "--now", cluster=cluster)
        self.assertEqual(drained.returncode, 0, drained.stderr)
        status = cluster.wait("moved", finished, 40)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failedIndexes") or ""), (2, ""))
        self.nothing_left(witness)

    def condition(self, cluster, node, kind):
        code, shown = cluster.api.call("GET", f"/api/v1/nodes/{node}")
        return next((c for c in shown["status"]["conditions"] if c["type"] == kind), None) if code == 200 else None

    def node_events(self, cluster, node):
        events = cluster.api.call("GET", "/api/v1/namespaces/default/events")[1]["items"]
        return [e["reason"] for e in events if e["involvedObject"]["kind"] == "Node" and e["involvedObject"]["name"] == node]

    def test_p15_a_stopped_agent_costs_no_index_until_the_maximum(self):
        cluster = self.cluster(agents=2, slots=2, grace="30s")
        script = ("sh", "-c", "[ $MUSTER_ATTEMPT -ge 1 ] || exec sleep 300")
        for name, more in (("spared", ()), ("counted", ("--disruptions-max", "0"))):
            self.typed(cluster, name, 1, *script, more=more)
            pod = eventually(lambda name=name: next((p for p in self.pods_of(cluster, name) if p["status"]["phase"] == "Running"), None), "it runs")
            agent = cluster.agents.pop(pod["spec"]["nodeName"])
            agent.terminate()
            status = cluster.wait(name, finished, 40)["status"]
            agent.wait()
            self.assertEqual((status.get("succeeded"), status.get("failedIndexes") or ""), (1, "") if name == "spared" else (None, "0"))
            cluster.start_agent(pod["spec"]["nodeName"], slots=2)
            cluster.wait_nodes()
        why = self.muster("why", "job/counted/0", cluster=cluster).stdout
        self.assertIn("it counts as a failure (muster.dev/disruptions-max: 0)", why)
        self.assertIn("TerminationByKubelet", why)
        attempts = self.muster("get", "attempts", "job/counted", "-o", "json", cluster=cluster).stdout
        self.assertIn("muster.dev/disruptions-max: 0", attempts)

    def test_p15_a_node_that_starts_nothing_is_closed_until_it_is_uncordoned(self):
        cluster = self.cluster(agents=1, slots=2, grace="8s")
        project = cluster.dir / "project"
        (project / "there").mkdir(parents=True)
        self.without(cluster, "bad", project, slots=12)
        self.typed(cluster, "many", 40, "sleep", "0.05", more=("--chdir", str(project / "there")))
        closed = eventually(lambda: self.condition(cluster, "bad", "StartsFailing"), "it is closed")
        self.assertEqual(closed["status"], "True")
        self.assertIn("starts in a row have failed here: cwd", closed["message"])
        self.assertEqual(self.ready(cluster, "bad"), ("False", "StartsFailing"))
        status = cluster.wait("many", finished)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failed")), (40, None))
        eventually(lambda: "StartsFailing" in self.node_events(cluster, "bad"), "an event")
        self.assertEqual(cluster.api.metrics()["muster_nodes_starts_failing"], 1)
        self.assertIn("gets no new pods (StartsFailing)", cluster.log("coordinator"))
        # Even what could start there gets no slot.
        self.typed(cluster, "anywhere", 4, "sh", "-c", "sleep 0.1", more=("--node-selector", "kubernetes.io/hostname=bad"))
        eventually(lambda: "StartsFailing" in self.muster("why", "job/anywhere", cluster=cluster).stdout, "why says so")
        self.assertFalse([p for p in self.pods_of(cluster, "anywhere") if p["spec"].get("nodeName")])
        uncordoned = self.muster("uncordon", "bad", cluster=cluster)
        self.assertEqual(uncordoned.returncode, 0, uncordoned.stderr)
        self.assertEqual(cluster.wait("anywhere", finished)["status"].get("succeeded"), 4)
        self.assertIsNone(self.condition(cluster, "bad", "StartsFailing"))
        eventually(lambda: "StartsSucceeding" in self.node_events(cluster, "bad"), "an event")
        self.assertEqual(cluster.api.metrics()["muster_nodes_starts_failing"], 0)

    def test_p15_a_job_that_cannot_start_anywhere_closes_no_node(self):
        cluster = self.cluster(agents=2, slots=12, grace="8s")
        self.typed(cluster, "typo", 100, "true", more=("--chdir", "/no/such/directory"))
        status = cluster.wait("typo", finished, 30)["status"]
        self.assertEqual(status["conditions"][-1]["reason"], "StartFailure")
        self.typed(cluster, "next", 10, "true")
        self.assertEqual(cluster.wait("next", finished, 20)["status"].get("succeeded"), 10)
        for node in ("node-0", "node-1"):
            self.assertEqual(self.ready(cluster, node), ("True", "AgentReady"))

    def test_p15_a_failed_health_check_keeps_pods_away(self):
        cluster = self.cluster(agents=0, grace="30s")
        state = cluster.dir / "state"
        state.write_text("ERROR: nhc: check_fs_mount: /scratch not mounted\n")
        cluster.start_agent("node-0", slots=2, extra=["--health-check", f"cat {state}; ! [ -s {state} ]", "--health-check-every", "1s"])
        eventually(lambda: (self.condition(cluster, "node-0", "Healthy") or {}).get("message") == state.read_text().strip(), "its output is shown")
        self.assertEqual(self.condition(cluster, "node-0", "Healthy")["status"], "False")
        self.assertEqual(self.ready(cluster, "node-0"), ("False", "HealthCheckFailed"))
        self.typed(cluster, "waits", 4, "true")
        eventually(lambda: "check_fs_mount" in self.muster("why", "job/waits", cluster=cluster).stdout, "why says so")
        self.assertFalse([p for p in self.pods_of(cluster, "waits") if p["spec"].get("nodeName")])
        self.assertEqual(cluster.api.metrics()["muster_nodes_health_check_failing"], 1)
        state.write_text("")
        self.assertEqual(cluster.wait("waits", finished)["status"].get("succeeded"), 4)
        self.assertEqual(self.condition(cluster, "node-0", "Healthy")["status"], "True")
        eventually(lambda: {"HealthCheckFailed", "HealthCheckPassed"} <= set(self.node_events(cluster, "node-0")), "events")

    def test_p15_a_full_disk_holds_starts_and_fails_nothing(self):
        class SmallDisk(Cluster):
            """The node's work-dir is a small file system of its own."""

            def start_agent(self, name, slots=None, extra=()):
                (self.dir / name).mkdir(exist_ok=True)
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "none", self.dir / name], check=True)
                super().start_agent(name, slots, extra)

            def close(self):
                subprocess.run(["umount", "-l", *[self.dir / name for name in self.agents]], check=True)
                super().close()
        cluster = self.cluster(agents=1, slots=2, grace="30s", kind=SmallDisk)
        self.typed(cluster, "before", 2, "true")
        cluster.wait("before")
        filler = cluster.dir / "node-0/filler"
        self.assertEqual(self.ready(cluster, "node-0"), ("True", "AgentReady"))
        file = os.open(filler, os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):
            while True:
                os.write(file, b"x" * 4096)
        os.close(file)
        eventually(lambda: self.ready(cluster, "node-0") == ("False", "DiskPressure"), "the node says so")
        self.assertIn("(--disk-reserve): no pods start until there is more", self.muster("describe", "node", "node-0", cluster=cluster).stdout)
        self.typed(cluster, "full", 4, "echo", "x")
        eventually(lambda: "DiskPressure" in self.muster("why", "job/full", cluster=cluster).stdout, "why says so")
        filler.unlink()
        status = cluster.wait("full", finished, 90)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failed")), (4, None))

    ready = Nodes.ready

    def test_p11_output_beyond_the_maximum_is_cut(self):
        cluster = self.cluster(agents=1, slots=2, grace="30s", agent_extra=["--output-max", "1Mi"])
        self.typed(cluster, "chatty", 1, "sh", "-c", f"while [ ! -e {cluster.dir}/go ]; do head -c 300000 /dev/zero | tr '\\0' x; sleep 0.01; done")
        output = eventually(lambda: next((cluster.dir / "node-0/logs").glob("*/*.stdout"), None), "its output")
        eventually(lambda: b"(--output-max)" in output.read_bytes(), "a line that says so")
        eventually(lambda: output.stat().st_size < 1.1 * 2**20, "it stays cut")
        (cluster.dir / "go").touch()
        self.assertEqual(cluster.wait("chatty", finished)["status"].get("succeeded"), 1)
        self.assertIn("this output is cut here, at 1048576 bytes", self.muster("logs", "job/chatty", cluster=cluster).stdout)

    def test_p27_pods_are_replaced_if_the_keeper_cannot_restart(self):
        cluster = self.cluster(agents=0, grace="60s")
        programs = cluster.dir / "programs"
        programs.mkdir()
        for name in ("muster", "muster-keeper"):
            shutil.copy2(pathlib.Path(cluster.bin).resolve().parent / name, programs / name)
        built, cluster.bin = cluster.bin, str(programs / "muster")
        cluster.start_agent("node-0", slots=2)
        cluster.bin = built
        cluster.wait_nodes()
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("held", UNTIL_GO, 4, backoffLimit=6))
        eventually(lambda: len(witness.starts()) == 2, "two run")
        eventually(lambda: cluster.api.job("held")["status"].get("ready") == 2, "their starts are noted")
        keeper = self.keeper_of(cluster, "node-0")
        (programs / "muster-keeper").unlink()
        os.kill(keeper, signal.SIGKILL)
        eventually(lambda: self.ready(cluster, "node-0") == ("False", "KeeperNotRunning"), "the node says so")
        eventually(lambda: not any(pod["spec"].get("nodeName") for pod in self.pods_of(cluster, "held") if pod["status"]["phase"] in ("Pending", "Running")),
                   "no pod is held there", 40)
        self.nothing_left(witness)
        (witness.folder / "go").touch()
        cluster.start_agent("node-1", slots=4)
        status = cluster.wait("held", finished, 40)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failed")), (4, 2))
        witness_starts = [(index, attempt) for index, attempt, _, _ in witness.starts()]
        self.assertEqual(len(witness_starts), len(set(witness_starts)), "an attempt was started twice")

    def test_p32_a_keepers_socket_that_was_deleted_is_made_anew(self):
        cluster = self.cluster(agents=1, slots=2, grace="60s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("kept", UNTIL_GO, 2))
        eventually(lambda: len(witness.starts()) == 2, "both run")
        agent = cluster.agents.pop("node-0")
        agent.kill()
        agent.wait()
        (cluster.dir / "node-0/keeper/socket").unlink()
        cluster.start_agent("node-0", slots=2)
        cluster.wait_nodes()
        (witness.folder / "go").touch()
        self.assertEqual(cluster.wait("kept", finished, 40)["status"].get("succeeded"), 2)
        self.assertEqual(len(witness.starts()), 2, "they are the same processes")

    def test_p27_a_deleted_work_dir_ends_the_agent_and_its_pods(self):
        cluster = self.cluster(agents=1, slots=2, grace="2s")
        witness = self.witness(cluster)
        self.typed(cluster, "moved", 2, *witness.job("x", "[ $a -ge 1 ] || sleep 300; code=0", 1)["spec"]["template"]["spec"]["containers"][0]["command"],
                   more=("--env", f"WITNESS={witness.folder}"))
        eventually(lambda: len(witness.starts()) == 2, "both run")
        shutil.rmtree(cluster.dir / "node-0")
        self.assertEqual(cluster.agents["node-0"].wait(timeout=40), 4, cluster.log("node-0"))
        self.assertIn("was deleted while in use: start the agent again", cluster.log("node-0"))
        self.nothing_left(witness)
        cluster.start_agent("node-0")
        status = cluster.wait("moved", finished, 60)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failedIndexes") or ""), (2, ""))

    def test_p27_deleted_log_directory_is_recreated(self):
        cluster = self.cluster(agents=1, slots=2, grace="30s")
        self.typed(cluster, "many", 200, "sh", "-c", "sleep 0.02; echo x")
        eventually(lambda: cluster.api.job("many")["status"].get("succeeded", 0) > 10, "it runs")
        shutil.rmtree(cluster.dir / "node-0/logs")
        status = cluster.wait("many", finished, 60)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failed")), (200, None))


class Unread(Cluster):
    """A cluster whose daemons log everything to small pipes, or to terminals that are stopped; nobody reads them unless a test does."""
    PIPE_BYTES = 4096
    terminals = False

    def __init__(self, *args, **kwargs):
        self.readers = {}
        super().__init__(*args, **kwargs)

    def _spawn(self, name, args):
        if self.terminals:
            ours, theirs = os.openpty()
            termios.tcflow(theirs, termios.TCOOFF)  # Ctrl-S
        else:
            ours, theirs = os.pipe()
            fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, self.PIPE_BYTES)
        self.readers[name] = ours
        try:
            return subprocess.Popen([self.bin, *args, "--log-level", "debug"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, start_new_session=True)
        finally:
            os.close(theirs)

    def log(self, name):
        return "nobody has read it"

    def read_log(self, name, until):
        """Reads the log until it holds this, or its writer has ended."""
        text, reader = b"", self.readers[name]
        os.set_blocking(reader, False)

        def look():
            nonlocal text
            with contextlib.suppress(BlockingIOError):
                while chunk := os.read(reader, 65536):
                    text += chunk
                return True  # the writer has ended
            return re.search(until, text.decode())
        eventually(look, f"{until} in the log of {name}")
        return text.decode()

    def close(self):
        super().close()
        for reader in self.readers.values():
            os.close(reader)


class UnreadTerminals(Unread):
    terminals = True


class Logs(World):
    DROPPED = r"[0-9TZ:.-]+ warning %s: ([0-9]+) lines were dropped: nobody reads the log\n"

    def run_jobs(self, cluster, name="quiet", count=60):
        """Each job logs a few lines; together they fill the pipes several times."""
        for number in range(count):
            code, answer = cluster.api.create(sh_job(f"{name}-{number}", "true", 2))
            self.assertEqual(code, 201, answer)
        for number in range(count):
            self.assertEqual(cluster.wait(f"{name}-{number}")["status"].get("succeeded"), 2)
        self.assertEqual(Nodes.ready(self, cluster, "node-0"), ("True", "AgentReady"))

    def overflow(self, cluster):
        """Requests that are not HTTP are logged; sends more of them than the log may hold while nobody reads it."""
        host, port = cluster.api_addr.rsplit(":", 1)

        def dropped():
            return cluster.api.metrics()["muster_log_lines_dropped_total"]

        def more():
            for _ in range(100):
                with socket.create_connection((host, int(port)), timeout=10) as bad:
                    bad.sendall(f"GET / HTTP/1.1\r\nContent-Length: {'x' * 2000}\r\n\r\n".encode())
                    self.assertIn(b"400", bad.recv(100))
            return dropped() > 0
        self.assertEqual(dropped(), 0)
        eventually(more, "lines are dropped", 60)

    def test_p28_daemons_serve_while_nobody_reads_their_logs(self):
        cluster = self.cluster(agents=1, slots=4, grace="3s", kind=Unread)
        agent = cluster.agents["node-0"]
        self.run_jobs(cluster)
        self.overflow(cluster)
        self.run_jobs(cluster, "later", 5)
        text = cluster.read_log("coordinator", self.DROPPED % "coordinator")
        self.assertRegex(text, self.DROPPED % "coordinator")
        for line in text.splitlines()[:-1]:
            self.assertRegex(line, r"^[0-9T:.-]+Z [a-z]+ coordinator: |^muster coordinator is serving: ", "a line is torn")
        self.assertIsNone(agent.poll())

    def test_p28_a_terminal_stopped_with_ctrl_s_stops_no_daemon(self):
        cluster = self.cluster(agents=1, slots=4, grace="3s", kind=UnreadTerminals)
        self.run_jobs(cluster)

    def test_p28_a_daemon_whose_log_nobody_reads_can_be_stopped(self):
        cluster = self.cluster(agents=1, slots=4, grace="3s", kind=Unread)
        self.run_jobs(cluster)
        agent = cluster.agents["node-0"]
        for daemon, one in ((agent, signal.SIGUSR2), (cluster.coord, signal.SIGTERM)):
            daemon.send_signal(one)
            self.assertEqual(daemon.wait(timeout=20), 0)


    def test_p28_a_keeper_whose_log_nobody_reads_serves(self):
        cluster = self.cluster(agents=0, grace="30s")
        (cluster.dir / "node-0/keeper").mkdir(mode=0o700, parents=True)
        (cluster.dir / "node-0").chmod(0o700)
        os.mkfifo(cluster.dir / "node-0/keeper/keeper.log", 0o600)
        log = os.open(cluster.dir / "node-0/keeper/keeper.log", os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, log)
        size = fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, Unread.PIPE_BYTES)
        cluster.start_agent("node-0", slots=4)
        cluster.wait_nodes()
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("running", UNTIL_GO, 1))
        eventually(witness.starts, "a pod runs")
        keeper = self.keeper_of(cluster, "node-0")

        def is_full():
            os.kill(keeper, signal.SIGTERM)  # which it logs that it ignores
            return int.from_bytes(fcntl.ioctl(log, termios.FIONREAD, bytes(4)), sys.byteorder) > size - 200
        eventually(is_full, "its log is full")
        for number in range(20):
            is_full()
            self.submit(cluster, sh_job(f"more-{number}", "true", 1))
            self.assertEqual(cluster.wait(f"more-{number}")["status"].get("succeeded"), 1)
        (witness.folder / "go").touch()
        cluster.wait("running")
        told = os.read(log, 65536).decode()
        self.assertRegex(told, "ignoring SIGTERM: [0-9]+ processes are running\n")


class FatalSignals(World):
    FATAL = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)

    def test_p31_the_first_fatal_signal_from_outside_ends_a_daemon(self):
        no_core = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, no_core[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_CORE, no_core)
        cluster = self.cluster(agents=1, slots=2, grace="60s")
        for number, one in enumerate(self.FATAL):
            with self.subTest(one.name):
                cluster.coord.send_signal(one)
                self.assertEqual(cluster.coord.wait(timeout=20), -one)
                cluster.start_coordinator()
                agent = cluster.agents["node-0"]
                agent.send_signal(one)
                self.assertEqual(agent.wait(timeout=20), -one)
                keeper = self.keeper_of(cluster, "node-0")
                os.kill(keeper, one)
                eventually(lambda: not os.path.exists(f"/proc/{keeper}"), "the keeper has ended")
                cluster.start_agent("node-0")
                eventually(lambda: Nodes.ready(self, cluster, "node-0") == ("True", "AgentReady"), "the node is back")
                self.submit(cluster, sh_job(f"after-{number}", "true", 2))
                self.assertEqual(cluster.wait(f"after-{number}")["status"].get("succeeded"), 2)


class DataDir(World):
    def refused(self, cluster, *words):
        """Checks that a second coordinator on this data-dir exits at once with a message that contains these words."""
        done = self.muster("coordinator", "--data-dir", str(cluster.dir / "coordinator"), "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0")
        self.assertNotEqual(done.returncode, 0)
        for word in (str(cluster.dir / "coordinator"), *words):
            self.assertIn(word, done.stderr)

    def test_second_coordinator_on_a_data_dir_is_refused(self):
        cluster = self.cluster(agents=1)
        witness = self.witness(cluster)
        self.refused(cluster, "in use", str(cluster.coord.pid))
        self.submit(cluster, witness.job("still", "code=0", 2))
        self.assertEqual(cluster.wait("still", finished)["status"]["succeeded"], 2)

    def test_data_dir_of_unknown_format_is_refused(self):
        cluster = self.cluster(agents=0)
        cluster.kill_coordinator()
        with Rows(cluster.dir / "coordinator") as rows:
            was = rows.put(b"mformat", b"99")
        self.refused(cluster, "format 99")
        with Rows(cluster.dir / "coordinator") as rows:
            rows.put(b"mformat", was)
        cluster.start_coordinator()

    def test_full_disk_loses_no_accepted_job(self):
        class SmallDisk(Cluster):
            """A cluster whose data-dir is a small file system."""
            mounted = False

            def start_coordinator(self):
                data = self.dir / "coordinator"
                if not self.mounted:
                    data.mkdir(mode=0o700)
                    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,mode=0700", "tmpfs", str(data)], capture_output=True).returncode:
                        data.rmdir()
                        raise unittest.SkipTest("no right to mount a small file system")
                    self.mounted = True
                super().start_coordinator()

            def close(self):
                coordinator, self.coord = self.coord, None
                if coordinator is not None and coordinator.poll() is None:
                    coordinator.kill()
                    coordinator.wait()
                if self.mounted:
                    subprocess.run(["umount", "-l", str(self.dir / "coordinator")])
                super().close()

        cluster = self.cluster(agents=0, kind=SmallDisk)
        witness = self.witness(cluster)
        data = cluster.dir / "coordinator"
        accepted, names = [], itertools.count()

        def create():
            # Use a new name each time: a create without an answer may have been stored nevertheless.
            name = f"full-{next(names)}"
            job = witness.job(name, "code=0", 1)
            job["metadata"]["annotations"] = {"example.com/bulk": "x" * 200_000}
            try:
                code, answer = cluster.api.create(job)
            except OSError as broken:
                return str(broken)
            if code == 201:
                accepted.append(name)
                return None
            return json.dumps(answer)

        self.assertIsNone(create())
        with open(data / "filler", "wb") as filler:
            try:
                while True:
                    filler.write(b"\0" * 65536)
                    filler.flush()
            except OSError:
                pass
        refusal = eventually(create, "a create that is refused")
        eventually(lambda: matches("no space left", refusal + cluster.log("coordinator")), "a message that says why")
        with open(data / "filler", "r+b") as filler:
            filler.truncate(0)
        if cluster.coord.poll() is None:
            cluster.kill_coordinator()
        cluster.start_coordinator()
        for name in accepted:
            cluster.api.job(name)
        self.assertIsNone(create(), "with room again jobs are accepted")


class BadInput(World):
    GOOD = """apiVersion: batch/v1
kind: Job
metadata: {name: good}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, command: ["true"]}
"""
    BROKEN = GOOD.replace("kind: Job", "kind: [Job")
    TWO_WRONG = GOOD.replace("spec:\n  template", "spec:\n  parallelism: -1\n  completions: -2\n  backoffLimit: -3\n  template")
    UNKNOWN = GOOD.replace("  template:", "  paralelism: 2\n  template:", 1)

    def test_invalid_manifests_are_refused_by_the_api(self):
        cluster = self.cluster(agents=1)

        def post(text, query=""):
            code, answer = cluster.api.call("POST", cluster.api.jobs() + query, text.encode(), "application/yaml")
            return code, answer

        code, answer = post(self.BROKEN)
        self.assertEqual((code, answer["kind"]), (400, "Status"))
        self.assertTrue(matches(r"line \d+.*column \d+", answer["message"]), answer["message"])
        code, answer = post(self.TWO_WRONG)
        self.assertEqual(code, 422)
        self.assertEqual({c["field"] for c in answer["details"]["causes"]}, {"spec.parallelism", "spec.completions", "spec.backoffLimit"})
        code, answer = post(self.UNKNOWN, "?fieldValidation=Strict")
        self.assertEqual(code, 400)
        self.assertIn("paralelism", answer["message"])
        self.assertEqual(post(self.GOOD)[0], 201)
        code, answer = post(self.GOOD)
        self.assertEqual((code, answer["reason"]), (409, "AlreadyExists"))
        self.assertEqual([j["metadata"]["name"] for j in cluster.api.call("GET", cluster.api.jobs())[1]["items"]], ["good"])

    def test_invalid_manifests_are_refused_by_the_command_line(self):
        cluster = self.cluster(agents=1)

        def create(text):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(text)
                file.flush()
                return self.muster("create", "-f", file.name, cluster=cluster)

        absent = self.muster("create", "-f", "/no/such/file.yaml", cluster=cluster)
        self.assertEqual(absent.returncode, 5)
        self.assertIn("/no/such/file.yaml", absent.stderr)
        broken = create(self.BROKEN)
        self.assertEqual(broken.returncode, 5)
        self.assertTrue(matches(r"line \d+.*column \d+|:\d+:\d+", broken.stderr), broken.stderr)
        wrong = create(self.TWO_WRONG)
        self.assertEqual(wrong.returncode, 5)
        for field in ("spec.parallelism", "spec.completions", "spec.backoffLimit"):
            self.assertIn(field, wrong.stderr)
        unknown = create(self.UNKNOWN)
        self.assertEqual(unknown.returncode, 5)
        self.assertIn("paralelism", unknown.stderr)
        self.assertEqual(create(self.GOOD).returncode, 0)
        again = create(self.GOOD)
        self.assertEqual(again.returncode, 5)
        self.assertIn("good", again.stderr)
        self.assertEqual(self.muster("get", "jobs", "nobody", cluster=cluster).returncode, 3)
        self.assertEqual(self.muster("get", "jobs", "--api", "127.0.0.1:1").returncode, 4)
        self.assertEqual(self.muster("get").returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
