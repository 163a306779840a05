#!/usr/bin/python3
"""Faults of real networks, processes and machines: partitions, bad links, frozen processes, reused pids, exhausted descriptors.

    MUSTER=build/release/muster tests/e2e/network.py [TEST…]      MUSTER_LONG=1 makes the repeated faults longer

The coordinator and each agent are on separate hosts (lib/hosts.py). The pods write what they do to a witness, on a disk that no network
fault affects; `proven` compares it with the job's status and history.
"""
import contextlib
import itertools
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from hosts import DOWN, UP, Hosts, become_head  # noqa: E402
from world import Memory, Witness, World, eventually, finished, indexes, processes_of, sh_job, untaint  # noqa: E402

RESTARTS = 100 if os.environ.get("MUSTER_LONG") else 30
UNTIL_OPEN = ': < "$WITNESS/gate"; code=0'


def setUpModule():
    become_head()


def state(pid):
    """The process's state letter, as in proc(5)."""
    return pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]


def environment(pid):
    return pathlib.Path("/proc", str(pid), "environ").read_bytes().split(b"\0")


class Network(World):
    def hosts(self, *args, **kwargs):
        return self.cluster(*args, kind=Hosts, **kwargs)

    def gated(self, cluster):
        """A witness whose pods can wait for open_gate() without using CPU."""
        witness = self.witness(cluster)
        os.mkfifo(witness.folder / "gate")
        return witness

    def open_gate(self, witness):
        self.addCleanup(os.close, os.open(witness.folder / "gate", os.O_RDWR))

    def attempts(self, cluster, name):
        """The job's history, by index and attempt."""
        path, found, token = f"/apis/muster.dev/v1/namespaces/default/jobs/{name}/attempts", {}, ""
        while token is not None:
            code, page = cluster.api.call("GET", f"{path}?continue={token}")
            self.assertEqual(code, 200, page)
            for item in page["items"]:
                key = item["index"], item["attempt"]
                self.assertFalse(key in found, f"{key} is in the history twice")
                found[key] = item
            token = page["metadata"].get("continue")
        return found

    def all_run(self, cluster, name, count):
        eventually(lambda: cluster.api.job(name)["status"].get("ready") == count, f"{count} pods of {name} are known to run", 30)

    def ready(self, cluster, node):
        conditions = cluster.api.call("GET", f"/api/v1/nodes/{node}")[1]["status"]["conditions"]
        return next(c["status"] for c in conditions if c["type"] == "Ready")

    def proven(self, cluster, witness, name, completions):
        """Checks that the job is complete and each attempt is counted once, as the witness saw it. Returns the attempts whose node was lost: only
        they may overlap with their replacements, and they count as failed whatever they did."""
        status = cluster.wait(name, finished, 60)["status"]
        attempts = self.attempts(cluster, name)
        lost = {key for key, item in attempts.items() if item["cause"] == "node-lost"}
        live, started, ended = {}, set(), set()
        for index, attempt, what, value in witness.lines():
            key = index, attempt
            if what == "start":
                self.assertFalse(key in started, f"{key} was started twice")
                self.assertTrue(key in attempts, f"the coordinator does not know of the start of {key}")
                self.assertLessEqual(live.get(index, set()), lost, f"{key} began while another attempt was alive, whose node was not lost")
                started.add(key)
                live.setdefault(index, set()).add(key)
            else:
                live[index].remove(key)
                ended.add(key)
                if key not in lost:
                    self.assertEqual((attempts[key]["cause"], attempts[key]["exitCode"]), ("exited", value), key)
        self.assertLessEqual(set().union(*live.values()), lost, "started, and neither ended nor lost")
        self.assertLessEqual({key for key, item in attempts.items() if item["cause"] == "exited"}, ended, "counted, and never seen")
        self.tally(status, attempts, completions, lost)
        self.nothing_left(witness)
        return lost

    def tally(self, status, attempts, completions, failed):
        """Checks that each index succeeded once, only the attempts `failed` failed, and the status says exactly that."""
        good = [key[0] for key, item in attempts.items() if item["counted"] == "succeeded"]
        bad = {key for key, item in attempts.items() if item["counted"] == "failed"}
        self.assertTrue(sorted(good) == list(range(completions)), f"{len(good)} successes of {len(set(good))} indexes")
        self.assertEqual(bad, failed)
        self.assertTrue(indexes(status["completedIndexes"]) == set(good), status["completedIndexes"])
        self.assertEqual((status["succeeded"], status.get("failed", 0)), (len(good), len(bad)))
        self.assertEqual((status.get("active", 0), status.get("terminating", 0), status["uncountedTerminatedPods"]), (0, 0, {}))


class Checks(Network):
    def test_a_false_witness_is_noticed(self):
        """Errors that `proven` did not detect would go unnoticed in every other test here."""
        cluster = self.hosts(agents=1, slots=3)
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("true", "code=0", 3))
        self.assertEqual(self.proven(cluster, witness, "true", 3), set())
        said = witness.path.read_text()
        for forgery, words in ((said + "1 0 start 7\n1 0 end 0\n", "started twice"),
                               (said + "1 1 start 7\n1 1 end 0\n", "does not know of the start"),
                               ("1 0 start 7\n2 0 start 7\n2 0 end 0\n0 0 start 7\n0 0 end 0\n", "neither ended nor lost"),
                               (said.replace("2 0 end 0", "2 0 end 9"), "'exited', 9"),
                               ("\n".join(line for line in said.splitlines() if not line.startswith("2 ")) + "\n", "never seen")):
            witness.path.write_text(forgery)
            with self.assertRaisesRegex(AssertionError, words):
                self.proven(cluster, witness, "true", 3)
        witness.path.write_text(said)
        status = cluster.api.job("true")["status"]
        attempts = self.attempts(cluster, "true")
        self.tally(status, attempts, 3, set())
        for lie in ({"succeeded": 2}, {"failed": 1}, {"completedIndexes": "0-1"}, {"active": 1}):
            with self.assertRaises(AssertionError):
                self.tally({**status, **lie}, attempts, 3, set())


class Partitions(Network):
    def cut_off(self, *ways):
        """node-0 is cut off until it is lost. Its pods are replaced on node-1, and ended when it comes back."""
        cluster = self.hosts(agents=1, slots=4, grace="2s")
        witness = self.gated(cluster)
        self.submit(cluster, witness.job("cut", UNTIL_OPEN, 4))
        memory = Memory(cluster, "cut")
        self.all_run(cluster, "cut", 4)
        old = {pid for _, _, _, pid in witness.starts()}
        self.seen(witness, old)
        cluster.start_agent("node-1")
        cluster.wait_nodes()
        wire = cluster.wire("node-0")
        wire.cut = set(ways)
        eventually(lambda: self.ready(cluster, "node-0") != "True", "node-0 is lost")
        eventually(lambda: len(witness.starts()) == 8, "all pods run on node-1, too")
        self.assertLessEqual(old, set(processes_of(witness.folder)), "its pods run on")
        for way in (UP, DOWN):
            (self.assertGreater if way in ways else self.assertEqual)(wire.dropped[way], 0, way)
        wire.cut = set()
        eventually(lambda: not old & set(processes_of(witness.folder)), "the old copies are ended")
        cluster.wait_nodes()
        self.open_gate(witness)
        self.assertEqual(self.proven(cluster, witness, "cut", 4), {(i, 0) for i in range(4)})
        memory.end(self)

    def test_pods_are_replaced_if_both_directions_are_cut(self):
        self.cut_off(UP, DOWN)

    def test_pods_are_replaced_if_agent_to_coordinator_is_cut(self):
        self.cut_off(UP)

    def test_pods_are_replaced_if_coordinator_to_agent_is_cut(self):
        self.cut_off(DOWN)

    def test_partition_shorter_than_the_grace_costs_no_pod(self):
        """Pods end and start throughout; no cut costs a pod."""
        cluster = self.hosts(agents=2, slots=4, grace="8s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("short", "sleep 0.3; code=0", 120, parallelism=8))
        memory = Memory(cluster, "short")
        host = cluster.hosts["node-0"]
        for ways in ({UP, DOWN}, {UP}, {DOWN}, "link"):
            due = len(witness.ends()) + 8
            eventually(lambda: len(witness.ends()) >= due, "pods end")
            if ways == "link":
                host.link("down")
            else:
                host.wire.cut = ways
            time.sleep(1.2)
            host.wire.cut = set()
            host.link("up")
        self.assertEqual(self.proven(cluster, witness, "short", 120), set())
        memory.end(self)


class BadLinks(Network):
    def test_job_completes_despite_latency_loss_and_reordering(self):
        cluster = self.hosts(agents=3, slots=4, grace="20s")
        for name in cluster.hosts:
            wire = cluster.wire(name)
            wire.delay, wire.jitter, wire.loss = 0.02, 0.02, 0.03
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("stream", "code=0", 300, parallelism=30))
        memory = Memory(cluster, "stream")
        self.assertEqual(self.proven(cluster, witness, "stream", 300), set())
        memory.end(self)
        for name in cluster.hosts:
            self.assertGreater(min(cluster.wire(name).dropped.values()), 0, name)


class Freezes(Network):
    def test_frozen_daemons_lose_nothing(self):
        cluster = self.hosts(agents=2, slots=4, grace="8s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("frozen", "sleep 0.2; code=0", 150, parallelism=8))
        memory = Memory(cluster, "frozen")
        eventually(lambda: len(witness.ends()) >= 4, "pods end")
        agents = [agent.pid for agent in cluster.agents.values()]
        keepers = [self.keeper_of(cluster, name) for name in cluster.agents]
        everything = [cluster.coord.pid, *agents, *keepers]
        for victims in ([cluster.coord.pid], agents[:1], keepers[:1], [agents[1], keepers[1]], None, everything):
            due = len(witness.ends()) + 4
            eventually(lambda: len(witness.ends()) >= due, "pods end")
            frozen = processes_of(witness.folder) if victims is None else victims
            self.send(frozen, signal.SIGSTOP)
            for pid in victims or []:
                eventually(lambda: state(pid) == "T", f"{pid} stands still")
            time.sleep(0.7)
            self.send(frozen, signal.SIGCONT)
        self.assertEqual(self.proven(cluster, witness, "frozen", 150), set())
        memory.end(self)

    def send(self, pids, number):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # a pod that has ended
                os.kill(pid, number)


class Restarts(Network):
    def test_repeated_agent_restarts_start_each_of_100_pods_once(self):
        cluster = self.hosts(agents=1, slots=100, grace="60s")
        witness = self.gated(cluster)
        self.submit(cluster, witness.job("hundred", UNTIL_OPEN, 100))
        memory = Memory(cluster, "hundred")
        self.all_run(cluster, "hundred", 100)
        for round_ in range(RESTARTS):
            cluster.kill_agent("node-0")
            if round_ == RESTARTS // 2:
                self.open_gate(witness)  # half of the restarts happen while pods end or after they have ended
            registered = cluster.log("node-0").count("registered with")
            cluster.start_agent("node-0")
            if round_ % 3:  # every third agent is killed before or during its registration
                eventually(lambda: cluster.log("node-0").count("registered with") > registered, "registered")
        self.assertEqual(self.proven(cluster, witness, "hundred", 100), set())
        self.assertEqual(len(witness.starts()), 100, "every pod was started once")
        memory.end(self)

    def test_ten_thousand_ends_during_coordinator_downtime_are_counted(self):
        """They end while the coordinator is down."""
        count = 10_000
        cluster = self.hosts(agents=2, slots=count // 2, grace="60s", agent_extra=["--hollow", "--hollow-duration", "6s"])
        untaint(cluster)
        self.submit(cluster, sh_job("wave", "true", count))
        self.all_run(cluster, "wave", count)
        cluster.kill_coordinator()
        time.sleep(6)  # what was running then has ended by now
        began = time.monotonic()
        cluster.start_coordinator()
        memory = Memory(cluster, "wave")
        status = cluster.wait("wave", finished, 60)["status"]
        print(f"{count} ends counted {time.monotonic() - began:.1f} s after the start of the coordinator", flush=True)
        memory.end(self)
        attempts = self.attempts(cluster, "wave")
        self.assertEqual(len(attempts), count, "none ran again")
        self.tally(status, attempts, count, set())


INIT = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\nwhile True: signal.pause()"
# Claims each pid given as an argument for a new session leader, and prints the pids that it got.
TAKE_PIDS = """
import subprocess, sys
for pid in map(int, sys.argv[1:]):
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(pid - 1))
    print(subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL).pid)
"""


class PidSpace(Hosts):
    """A cluster whose nodes are in their own pid namespace."""

    def __init__(self, *args, **kwargs):
        self.space = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", INIT])
        try:
            children = pathlib.Path(f"/proc/{self.space.pid}/task/{self.space.pid}/children")
            self.init = int(eventually(children.read_text, "the first process of the pid namespace"))
            eventually(lambda: pathlib.Path(f"/proc/{self.init}/comm").read_text().startswith("python"), "it runs")
        except BaseException:
            self.space.kill()
            raise
        super().__init__(*args, **kwargs)

    def inside(self):
        return ["nsenter", "--target", str(self.init), "--pid", "--mount"]

    def command(self, name):
        return [*super().command(name), *self.inside()]

    def pids(self):
        """Our pid by theirs, for all processes in the namespace except its init."""
        found = {}
        space = os.readlink(f"/proc/{self.init}/ns/pid")
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            with contextlib.suppress(OSError):
                if pid != self.init and os.readlink(f"/proc/{pid}/ns/pid") == space and state(pid) != "Z":
                    status = pathlib.Path(f"/proc/{pid}/status").read_text()
                    found[int(re.search(r"^NSpid:.*\s(\d+)$", status, re.M)[1])] = pid
        return found

    def close(self):
        super().close()
        self.space.kill()
        self.space.wait()


@unittest.skipUnless(os.access("/proc/sys/kernel/ns_last_pid", os.W_OK), "this kernel cannot choose pids (CONFIG_CHECKPOINT_RESTORE)")
class Reuse(Network):
    def test_foreign_processes_with_the_pids_of_agent_keeper_and_pods_are_left_alone(self):
        cluster = self.cluster(agents=1, slots=4, grace="30s", kind=PidSpace)
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("reuse", "[ $a -ge 1 ] || sleep 300; code=0", 3))
        self.all_run(cluster, "reuse", 3)
        ours = cluster.pids()
        self.assertIn(self.keeper_of(cluster, "node-0"), ours.values())
        self.assertLessEqual({pid for _, _, _, pid in witness.starts()}, set(ours))
        # The third pod is spared, so it is affected only by its keeper's end and the next agent.
        spared = {pid for pid in processes_of(witness.folder) if b"JOB_COMPLETION_INDEX=2" in environment(pid)}
        killed = {inner: pid for inner, pid in ours.items() if pid not in spared}
        for pid in killed.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        cluster.agents["node-0"].wait()
        eventually(lambda: not set(cluster.pids()) & set(killed), "they are gone")
        taken = subprocess.run([*cluster.inside(), sys.executable, "-c", TAKE_PIDS, *map(str, killed)], check=True, capture_output=True, text=True,
                               timeout=30)
        self.assertEqual(list(map(int, taken.stdout.split())), list(killed), "each pid is reused")
        foreign = {inner: cluster.pids()[inner] for inner in killed}

        cluster.start_agent("node-0")
        status = cluster.wait("reuse", finished)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failed")), (3, 3))
        starts = [line[:2] for line in witness.starts()]
        self.assertEqual(sorted(starts), [(i, a) for i in range(3) for a in range(2)])
        self.nothing_left(witness)
        now = cluster.pids()
        self.assertEqual({inner: now.get(inner) for inner in foreign}, foreign, "nobody touched them")
        self.assertEqual({pid: state(pid) for pid in foreign.values()}, dict.fromkeys(foreign.values(), "S"))


class Descriptors(Network):
    def limit(self, pid, spare):
        """Lets the process open only `spare` more descriptors; returns a function that restores its limit."""
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = set(map(int, os.listdir(f"/proc/{pid}/fd")))
        free = next(n for n in itertools.count() if n not in used)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free + spare, hard))
        return lambda: os.path.exists(f"/proc/{pid}") and resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))

    def test_coordinator_without_descriptors_loses_nothing(self):
        """Clients take all descriptors while pods end and a node has to reconnect."""
        cluster = self.hosts(agents=2, slots=4, grace="20s")
        witness = self.gated(cluster)
        self.submit(cluster, witness.job("full", UNTIL_OPEN, 8))
        self.all_run(cluster, "full", 8)
        restore = self.limit(cluster.coord.pid, 4)
        host, port = cluster.api_addr.rsplit(":", 1)
        crowd = [socket.create_connection((host, int(port)), timeout=5) for _ in range(60)]
        try:
            eventually(lambda: not self.answers(cluster), "no more clients are served")
            cluster.kill_agent("node-0")
            cluster.start_agent("node-0")
            self.open_gate(witness)
            eventually(lambda: len(witness.ends()) == 8, "all pods have ended")
            self.assertFalse(self.answers(cluster))
            self.assertIsNone(cluster.coord.poll())
        finally:
            for one in crowd:
                one.close()
            restore()
        eventually(lambda: self.answers(cluster), "clients are served again")
        self.assertEqual(self.proven(cluster, witness, "full", 8), set())
        cluster.wait_nodes()

    def answers(self, cluster):
        host, port = cluster.api_addr.rsplit(":", 1)
        try:
            with socket.create_connection((host, int(port)), timeout=0.5) as one:
                one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return one.recv(100).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def test_keeper_without_descriptors_delays_starts(self):
        """Running pods are unaffected. The node says why none can start, and they start later."""
        cluster = self.hosts(agents=1, slots=8, grace="20s")
        witness, late = self.gated(cluster), Witness(cluster.dir / "late")
        self.submit(cluster, witness.job("held", UNTIL_OPEN, 4))
        self.all_run(cluster, "held", 4)
        keeper = self.keeper_of(cluster, "node-0")
        restore = self.limit(keeper, 0)
        self.submit(cluster, late.job("late", "code=0", 4))
        eventually(lambda: cluster.log("node-0").count("CannotStartPods: ") >= 2, "starts have failed twice")
        self.assertIn("Too many open files", cluster.log("node-0"))
        self.open_gate(witness)
        self.assertEqual(self.proven(cluster, witness, "held", 4), set())
        self.assertEqual(late.lines(), [])
        restore()
        status = cluster.wait("late", finished, 90)["status"]
        late.check(self)
        self.assertEqual(sorted(index for index, _, _, _ in late.ends()), [0, 1, 2, 3])
        self.tally(status, self.attempts(cluster, "late"), 4, set())
        self.assertEqual(self.keeper_of(cluster, "node-0"), keeper, "it has survived")

    def test_agent_without_descriptors_exits_and_its_successor_reports_all_ends(self):
        """It cannot read logs. It cannot store a starting coordinator's epoch, so it exits and says why; the next agent reports all ends."""
        cluster = self.hosts(agents=1, slots=8, grace="20s")
        witness, late = self.gated(cluster), Witness(cluster.dir / "late")
        self.submit(cluster, witness.job("held", "echo hello; " + UNTIL_OPEN, 4))
        self.all_run(cluster, "held", 4)
        pod = self.pods_of(cluster, "held")[0]["metadata"]["name"]
        self.limit(cluster.agents["node-0"].pid, 0)
        self.assertNotIn("hello", self.muster("logs", pod, cluster=cluster).stdout, "it has a descriptor left")
        cluster.kill_coordinator()
        self.open_gate(witness)
        eventually(lambda: len(witness.ends()) == 4, "the pods end meanwhile")
        cluster.start_coordinator()
        self.assertEqual(cluster.agents["node-0"].wait(20), 4)
        self.assertRegex(cluster.log("node-0"), "muster: agent: .*: Too many open files\n")
        cluster.start_agent("node-0")
        self.assertEqual(self.proven(cluster, witness, "held", 4), set())
        self.submit(cluster, late.job("late", "code=0", 4))
        self.assertEqual(self.proven(cluster, late, "late", 4), set())
        self.assertEqual(self.muster("logs", pod, cluster=cluster).stdout, "hello\n")


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
