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
from coordinators import Coordinator, Coordinators  # noqa: E402
from world import ROOT, eventually, sh_job  # noqa: E402

SERVES_AGAIN = 20  # seconds; how long it takes is measured elsewhere


class Load:
    """Creates jobs one after the other at any coordinator that answers, and remembers which were acknowledged."""

    def __init__(self, site, threads=2, bytes_each=0):
        self.site, self.made, self.stopping = site, [], threading.Event()
        self.text = "x" * bytes_each
        self.numbers = itertools.count()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(threads)]
        for one in self.threads:
            one.start()

    def run(self):
        while not self.stopping.is_set():
            name = f"load-{next(self.numbers)}"
            job = sh_job(name, "true", 1, suspend=True, annotations={"text": self.text})
            for one in self.site.all:
                try:
                    code, _ = one.api.call("POST", one.api.jobs(), job, timeout=3)
                except OSError:
                    continue
                if code in (201, 409):  # 409: an earlier attempt had succeeded, but its answer was lost
                    self.made.append(name)
                    break

    def goes_on(self, test, more=10):
        before = len(self.made)
        eventually(lambda: len(self.made) >= before + more, "jobs are acknowledged", SERVES_AGAIN)

    def end(self, test):
        """All that was acknowledged is there."""
        self.stopping.set()
        for one in self.threads:
            one.join(30)
        test.site.wait_serving(timeout=SERVES_AGAIN)
        for one in self.site.all:
            code, jobs = one.api.call("GET", one.api.jobs(), timeout=30)
            test.assertEqual(code, 200, jobs)
            test.assertLessEqual(set(self.made), {job["metadata"]["name"] for job in jobs["items"]})


class Faults(unittest.TestCase):
    ETCDS = 1

    def setUp(self):
        self.site = self.make()
        self.addCleanup(self.end)

    def make(self):
        return Coordinators(2, self.ETCDS)

    def end(self):
        outcome = self._outcome.result
        if any(test is self for test, _ in [*outcome.failures, *outcome.errors]):
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
                load = Load(self.site, bytes_each=100_000)
                eventually(lambda one=one: one.process.poll() is not None, "it ends", 60)
                self.assertIn("no space left", one.log())
                load.goes_on(self)
                shutil.rmtree(one.data)
                one.data = old
                shutil.rmtree(old)
                one.start("--join-token", self.token(one))
                self.site.wait_in_sync(one, timeout=SERVES_AGAIN)
                load.end(self)

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
