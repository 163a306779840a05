#!/usr/bin/python3
"""Several coordinators on bad disks, with a bad store, and on a network that is cut: nothing acknowledged is lost, and they serve again.

    MUSTER=build/release/muster tests/e2e/standby_faults.py [TEST…]

Needs etcd, etcdctl and a C compiler. Full disks and cut networks need root.
"""
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from coordinators import Coordinator, Coordinators, Seen  # noqa: E402
from world import ROOT, Memory, Witness, eventually, finished, sh_job  # noqa: E402

SERVES_AGAIN = 20  # seconds; how long it takes is measured elsewhere


class Load:
    """Creates jobs one after the other at any coordinator that answers, and remembers which were acknowledged. Others run on an agent, whose
    pods are witnesses of what ran, and whose statuses are remembered as clients see them at each coordinator."""

    witnesses = itertools.count()

    def __init__(self, site, threads=2, bytes_each=0):
        self.site, self.made, self.stopping = site, [], threading.Event()
        self.text = "x" * bytes_each
        self.numbers = itertools.count()
        if not site.agents:
            site.start_agent("n1")
        self.number = next(self.witnesses)
        self.witness = Witness(site.dir / f"witness-{self.number}")
        self.ran, self.memories = [], []  # names of jobs that run, and what was seen of them
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        self.runner = threading.Thread(target=self.run_pods, daemon=True)
        for one in [*self.threads, self.runner]:
            one.start()

    def run(self):
        while not self.stopping.is_set():
            name = f"load-{next(self.numbers)}"
            if self.created(sh_job(name, "true", 1, suspend=True, annotations={"text": self.text})):
                self.made.append(name)

    def created(self, job):
        """Whether a coordinator has acknowledged it."""
        for one in self.site.all:
            try:
                code, _ = one.api.call("POST", one.api.jobs(), job, timeout=3)
            except OSError:
                continue
            if code in (201, 409):  # 409: an earlier attempt had succeeded, but its answer was lost
                return True
        return False

    def run_pods(self):
        """One job after the other. All have their indexes in one witness, so the indexes of each are numbers of their own."""
        while not self.stopping.is_set():
            name = f"pods-{self.number}-{len(self.ran)}"
            job = self.witness.job(name, "sleep 0.0$((i % 7)); code=$((i % 5 == 0 && a == 0))", 60, parallelism=4, backoffLimitPerIndex=3)
            job["spec"]["backoffLimit"] = None
            env = job["spec"]["template"]["spec"]["containers"][0]["env"]
            env.append({"name": "FIRST", "value": str(1000 * len(self.ran))})
            script = job["spec"]["template"]["spec"]["containers"][0]["command"]
            script[-1] = script[-1].replace("i=${JOB_COMPLETION_INDEX:-$MUSTER_POD_NAME};", "i=$((JOB_COMPLETION_INDEX + FIRST));")
            if not self.created(job):
                continue
            self.ran.append(name)
            self.memories += [Memory(Seen(one), name) for one in self.site.all]
            while not self.stopping.is_set() and not self.is_over(name):
                self.stopping.wait(0.1)

    def is_over(self, name):
        for one in self.site.all:
            try:
                code, job = one.api.call("GET", f"{one.api.jobs()}/{name}", timeout=3)
            except OSError:
                continue
            if code == 200:
                return finished(job)
        return False

    def goes_on(self, test, more=10):
        before = len(self.made)
        eventually(lambda: len(self.made) >= before + more, "jobs are acknowledged", SERVES_AGAIN)

    def end(self, test):
        """All that was acknowledged is there."""
        self.stopping.set()
        for one in [*self.threads, self.runner]:
            one.join(30)
        test.site.wait_serving(timeout=SERVES_AGAIN)
        self.check_pods(test)
        for one in self.site.all:
            code, jobs = one.api.call("GET", one.api.jobs(), timeout=30)
            test.assertEqual(code, 200, jobs)
            test.assertLessEqual(set(self.made), {job["metadata"]["name"] for job in jobs["items"]})


    def check_pods(self, test):
        """Nothing ran twice, nothing that was shown was taken back, and each end counts as it was."""
        test.assertGreater(len(self.ran), 0)
        for name in self.ran:
            eventually(lambda name=name: self.is_over(name), f"{name} ends", 60)
        for memory in self.memories:
            memory.end(test)
        self.witness.check(test)
        ends = self.witness.ends()
        for number, name in enumerate(self.ran):
            status = self.site.leader().api.job(name)["status"]
            test.assertEqual(status.get("succeeded"), 60, status)
            failed = sum(1 for index, _, _, code in ends if index // 1000 == number and code != 0)
            test.assertEqual(status.get("failed", 0), failed, name)


class Faults(unittest.TestCase):
    ETCDS = 1

    def setUp(self):
        self.site = self.make()
        self.addCleanup(self.end)

    def make(self):
        return Coordinators(2, self.ETCDS)

    def end(self):
        outcome = self._outcome.result
        if any(getattr(test, "test_case", test) is self for test, _ in [*outcome.failures, *outcome.errors]):
            for log in sorted(self.site.dir.glob("*.d/*.log")):
                print(f"---- {log.parent.name}\n" + "\n".join(line for line in log.read_text(errors="replace").splitlines()
                                                              if " created" not in line)[-4000:])
        self.site.close()

    def another_leads(self, than):
        eventually(lambda: self.site.leader() is not than, "another one leads", SERVES_AGAIN)
        return self.site.leader()

    def back(self, one):
        """Starts one that has ended, or should have."""
        if one.process.poll() is None:
            one.kill()
        one.start()
        self.site.wait_in_sync(one, timeout=SERVES_AGAIN)


class Disks(Faults):
    def make(self):
        self.tools = pathlib.Path(tempfile.mkdtemp(prefix="muster-disk-"))
        self.addCleanup(shutil.rmtree, self.tools, ignore_errors=True)
        shim = self.tools / "slow_disk.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, ROOT / "tests/e2e/lib/slow_disk.c", "-ldl"], check=True)
        tools = self.tools

        class Shimmed(Coordinators):
            def make(self, name):
                one = super().make(name)
                one.env = {"LD_PRELOAD": str(shim), "HUNG": str(tools / f"{name}.hung")}
                return one
        return Shimmed(2)

    def hang(self, one):
        pathlib.Path(one.env["HUNG"]).touch()
        self.addCleanup(pathlib.Path(one.env["HUNG"]).unlink, missing_ok=True)

    def heal(self, one):
        pathlib.Path(one.env["HUNG"]).unlink()

    def test_a_leader_whose_disk_hangs_gives_up_the_lead(self):
        load = Load(self.site)
        load.goes_on(self)
        leader = self.site.leader()
        self.hang(leader)
        self.another_leads(leader)
        load.goes_on(self)
        self.assertIn("giving up the lead", leader.log())
        self.heal(leader)
        leader.process.wait(10)
        self.back(leader)
        load.end(self)

    def test_a_follower_whose_disk_hangs_is_left_behind_and_comes_back(self):
        load = Load(self.site)
        load.goes_on(self)
        follower = self.site.follower()
        self.hang(follower)
        self.site.wait_out_of_sync(follower)
        load.goes_on(self)
        self.heal(follower)
        self.site.wait_in_sync(follower, timeout=SERVES_AGAIN)
        load.end(self)

    def test_a_slow_disk_slows_and_loses_nothing(self):
        follower = self.site.follower()
        follower.kill()
        follower.env["SLOW_MS"] = "50"
        follower.start()
        self.site.wait_in_sync(follower)
        load = Load(self.site)
        load.goes_on(self)
        leader = self.site.leader()
        leader.kill()
        self.another_leads(leader)
        load.goes_on(self, 5)
        self.back(leader)
        load.end(self)

    def test_a_replica_killed_while_it_catches_up_by_the_stream(self):
        leader, follower = self.site.leader(), self.site.follower()
        load = Load(self.site)
        follower.env["SLOW_MS"] = "20"  # so that it takes a while
        for _ in range(4):
            follower.kill()
            self.site.wait_out_of_sync(follower)
            load.goes_on(self, 100)
            follower.start()
            follower.says("follows " + leader.peers)
        follower.kill()
        del follower.env["SLOW_MS"]
        self.back(follower)
        self.assertIs(self.site.leader(), leader)
        self.assertNotIn("has a copy of the journal", self.stream_log(follower))
        leader.kill()
        self.another_leads(leader)
        load.goes_on(self)
        self.back(leader)
        load.end(self)

    @staticmethod
    def stream_log(one):
        """Since it first followed: it may have copied the journal when it joined."""
        return one.log().partition("follows ")[2]

    def test_a_follower_whose_clock_is_wrong_is_refused_until_it_is_right(self):
        leader, follower = self.site.leader(), self.site.follower()
        follower.kill()
        self.site.wait_out_of_sync(follower)
        follower.env["CLOCK_AHEAD"] = "300"
        follower.start()
        eventually(lambda: re.search("refuses this coordinator: its clock is (299|300|301) s ahead of the leader's: set both by NTP", follower.log()),
                   "it is refused")
        self.assertNotIn(follower.peers, self.site.etcd.get("configuration")["inSync"])
        follower.kill()
        del follower.env["CLOCK_AHEAD"]
        self.back(follower)
        self.assertIs(self.site.leader(), leader)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to mount a small file system")
    def test_a_full_disk_of_the_leader_and_then_of_the_follower(self):
        for of in ("leader", "follower"):
            with self.subTest(of=of):
                one = getattr(self.site, of)()
                one.kill()
                small = self.tools / of
                small.mkdir()
                subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "none", small], check=True)
                self.addCleanup(subprocess.run, ["umount", "-l", small])
                self.site.wait_serving(self.site.leader(), SERVES_AGAIN) if of == "follower" else self.another_leads(one)
                shutil.copytree(one.data, small / "data")  # its seat comes along
                old, one.data = one.data, small / "data"
                one.start()
                self.site.wait_in_sync(one, timeout=SERVES_AGAIN)
                if of == "leader":
                    self.assertEqual(self.site.muster("promote", one.peers, of=one).returncode, 0)
                    eventually(lambda one=one: self.site.leader() is one, "it leads", SERVES_AGAIN)
                    self.site.wait_in_sync()
                load = Load(self.site, bytes_each=100_000)
                load.goes_on(self)
                self.fill(small, leave=2_000_000)
                eventually(lambda one=one: one.process.poll() is not None, "it ends", 60)
                self.assertIn("no space left", one.log())
                load.goes_on(self)
                shutil.rmtree(one.data)
                one.data = old
                shutil.rmtree(old)
                one.start("--join-token", self.token(one))
                self.site.wait_in_sync(one, timeout=SERVES_AGAIN)
                load.end(self)

    @staticmethod
    def fill(folder, leave):
        """Fills the file system of this folder, except for so many bytes."""
        with open(folder / "ballast", "wb") as ballast:
            disk = os.statvfs(folder)
            os.posix_fallocate(ballast.fileno(), 0, max(disk.f_bavail * disk.f_bsize - leave, 1))

    def token(self, one):
        path = self.site.dir / f"again-{one.name}.token"
        path.unlink(missing_ok=True)
        other = next(other for other in self.site.all if other is not one)
        done = self.site.muster("token", "create", "--coordinator", one.name, "--out", path, of=other)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path


class Stores(Faults):
    ETCDS = 3

    def test_without_a_quorum_it_goes_on_and_then_changes_the_lead(self):
        load = Load(self.site)
        self.site.etcd.stop(2)
        leader = self.site.all[0]
        leader.says("the store does not renew the lease")
        load.goes_on(self)
        self.site.etcd.go_on()
        eventually(self.site.etcd.answers, "etcd answers")
        leader.kill()
        self.another_leads(leader)
        load.goes_on(self)
        self.back(leader)
        load.end(self)

    def test_one_member_of_etcd_after_the_other_restarts(self):
        load = Load(self.site)
        for i, member in enumerate(self.site.etcd.members):
            member.kill()
            member.wait()
            load.goes_on(self)
            self.site.etcd.start(i, "existing")
            eventually(self.site.etcd.answers, "etcd answers")
        leader = self.site.leader()
        leader.kill()
        self.another_leads(leader)
        load.goes_on(self)
        self.back(leader)
        load.end(self)

    def test_all_members_of_etcd_restart_at_once_and_the_leader_dies_meanwhile(self):
        load = Load(self.site)
        load.goes_on(self)
        self.site.wait_in_sync()
        leader = self.site.leader()
        self.site.etcd.kill()
        leader.says("the store does not renew the lease")
        load.goes_on(self)
        leader.kill()
        for i in range(len(self.site.etcd.members)):
            self.site.etcd.start(i, "existing")
        eventually(self.site.etcd.answers, "etcd answers")
        self.another_leads(leader)
        load.goes_on(self)
        self.back(leader)
        load.end(self)

    def test_a_replica_killed_while_it_copies(self):
        leader, follower = self.site.all
        follower.kill()
        shutil.rmtree(follower.data)
        self.site.wait_out_of_sync(follower)
        load = Load(self.site, bytes_each=20_000)
        load.goes_on(self, 300)
        leader.kill()
        leader.start()  # so that it must send a copy
        load.goes_on(self)
        token = self.site.join_token(follower)
        for _ in range(5):
            follower.start("--join-token", token)
            eventually(lambda: (follower.data / "incoming").exists() or "is in sync" in follower.log() or
                       "has a copy" in follower.log(), "it copies")
            follower.kill()
        follower.start("--join-token", token)
        self.site.wait_in_sync(follower, timeout=60)
        leader.kill()
        self.another_leads(leader)
        load.goes_on(self)
        self.back(leader)
        load.end(self)


class Spaces(Coordinators):
    """Each coordinator in its network namespace, all on one bridge, which has an address for the tests and one for etcd."""
    NET = "10.79.3"
    HOST = f"{NET}.250"
    AGENT_FLAGS = ("--insecure",)

    made = itertools.count()

    def __init__(self):
        self.tag = f"{os.getpid() % 100000}{next(self.made)}"
        self.bridge = f"mub{self.tag}"
        self.spaces, self.wires = [], []
        self.ip("link", "add", self.bridge, "type", "bridge")
        for address in (f"{self.NET}.1", self.HOST):
            self.ip("address", "add", f"{address}/24", "dev", self.bridge)
        self.ip("link", "set", self.bridge, "up")
        super().__init__(2, flags=("--node-grace", "5s", "--insecure"))

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    def make(self, name):
        number = len(self.spaces) + 2
        space, wire = self.space(name), f"mw{self.tag}{name}"
        self.wires.append(wire)
        self.ip("netns", "add", space)
        self.spaces.append(space)
        self.ip("link", "add", wire, "type", "veth", "peer", "name", "wire", "netns", space)
        self.ip("link", "set", wire, "master", self.bridge, "up")
        for words in (["address", "add", f"{self.NET}.{number}/24", "dev", "wire"], ["link", "set", "wire", "up"], ["link", "set", "lo", "up"]):
            self.ip("-n", space, *words)
        return Coordinator(self, name, f"{self.NET}.{number}", ["ip", "netns", "exec", space])

    def space(self, name):
        return f"mus{self.tag}{name}"

    def cut(self, one, *others):
        """Nothing goes from `one` to these addresses."""
        for other in others:
            self.ip("-n", self.space(one.name), "route", "add", "blackhole", f"{other}/32")

    def mend(self, one, *others):
        for other in others:
            self.ip("-n", self.space(one.name), "route", "del", "blackhole", f"{other}/32")

    def close(self):
        super().close()
        for wire in [*self.wires, self.bridge]:
            subprocess.run(["ip", "link", "del", wire], check=False)
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], check=False)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and ip(8), to make network namespaces")
class Cuts(Faults):
    def make(self):
        return Spaces()

    def test_the_leader_is_cut_from_its_replica(self):
        leader, follower = self.site.all
        load = Load(self.site)
        load.goes_on(self)
        self.site.cut(leader, follower.host)
        self.site.wait_out_of_sync(follower)
        load.goes_on(self)
        self.assertIs(self.site.leader(), leader)
        self.site.mend(leader, follower.host)
        self.site.wait_in_sync(follower, timeout=SERVES_AGAIN)
        load.end(self)

    def test_the_leader_is_cut_from_etcd(self):
        leader, follower = self.site.all
        load = Load(self.site)
        load.goes_on(self)
        self.site.cut(leader, self.site.HOST)
        leader.says("the store does not renew the lease")
        eventually(lambda: self.site.etcd.get("leader") is None, "its lease has run out")
        load.goes_on(self)
        self.assertIs(self.site.leader(), leader)
        self.site.mend(leader, self.site.HOST)
        load.goes_on(self)
        load.end(self)

    def test_the_leader_is_cut_from_both(self):
        leader, follower = self.site.all
        load = Load(self.site)
        load.goes_on(self)
        self.site.cut(leader, follower.host, self.site.HOST)
        self.another_leads(leader)
        self.assertEqual(leader.process.wait(SERVES_AGAIN), 1)
        load.goes_on(self)
        self.site.mend(leader, follower.host, self.site.HOST)
        self.back(leader)
        load.end(self)


if __name__ == "__main__":
    unittest.main(verbosity=2)
