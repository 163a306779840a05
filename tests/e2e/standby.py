#!/usr/bin/python3
"""Several coordinators: what a follower has and does, how the lead changes, and that nothing acknowledged is lost meanwhile.

    MUSTER=build/release/muster tests/e2e/standby.py [TEST…]

Needs etcd and etcdctl. The coordinators are processes on loopback addresses.
"""
import contextlib
import http.client
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import prometheus  # noqa: E402
from coordinators import MUSTER, Coordinator, Coordinators, free_ports  # noqa: E402
from world import ROOT, Memory, Witness, condition, eventually, finished, processes_of, sh_job  # noqa: E402

SERVES_AGAIN = 15  # seconds; how long it takes is measured by `muster drill` and in bench/, not here


class Site(unittest.TestCase):
    COUNT = 2

    def setUp(self):
        self.site = Coordinators(self.COUNT)
        self.addCleanup(self.end)

    def end(self):
        outcome = self._outcome.result
        if any(test is self for test, _ in [*outcome.failures, *outcome.errors]):
            for log in sorted(self.site.dir.glob("*.d/*.log")):
                print(f"---- {log.parent.name}\n{log.read_text(errors='replace')[-3000:]}")
        self.site.close()

    def create(self, name, of=None, **more):
        code, answer = (of or self.site.all[0]).api.create(sh_job(name, "true", 1, suspend=True, **more))
        self.assertEqual(code, 201, answer)

    def names(self, of):
        code, jobs = of.api.call("GET", of.api.jobs())
        self.assertEqual(code, 200, jobs)
        return {job["metadata"]["name"] for job in jobs["items"]}


class Following(Site):
    def test_requests_to_a_follower_are_answered_by_the_leader(self):
        leader, follower = self.site.all
        self.site.start_agent("n1")
        self.create("by-leader")
        self.create("by-follower", of=follower)
        self.assertEqual(self.names(leader), {"by-leader", "by-follower"})
        self.assertEqual(self.names(follower), self.names(leader))
        done = self.site.muster("run", "-n", 2, "--", "echo", "over", of=follower)
        self.assertEqual((done.returncode, sorted(done.stdout.split())), (0, ["0", "1", "over", "over", "|", "|"]), done.stderr)
        who = self.site.muster("get", "nodes", of=follower)
        self.assertIn("n1", who.stdout)

    def test_a_watch_through_a_follower_sees_changes(self):
        follower = self.site.all[1]
        stop = threading.Event()
        self.addCleanup(stop.set)
        seen = []

        def watch():
            with contextlib.suppress(OSError):
                for kind, job in follower.api.watch(follower.api.jobs(), "", stop):
                    seen.append((kind, job["metadata"]["name"]))
        threading.Thread(target=watch, daemon=True).start()
        self.create("watched")
        eventually(lambda: ("ADDED", "watched") in seen, "the watch shows the job")

    def test_a_follower_that_was_away_has_what_it_missed(self):
        leader, follower = self.site.all
        follower.kill()
        self.site.wait_out_of_sync(follower)
        for i in range(20):
            self.create(f"missed-{i}")
        follower.start()
        self.site.wait_in_sync(follower)
        leader.kill()
        self.site.wait_serving(follower, SERVES_AGAIN)
        self.assertEqual(self.names(follower), {f"missed-{i}" for i in range(20)})

    def test_a_follower_that_lost_its_disk_copies_the_journal(self):
        leader, follower = self.site.all
        self.create("before")
        follower.kill()
        shutil.rmtree(follower.data)
        self.site.wait_out_of_sync(follower)
        self.create("after")
        leader.kill()  # what it committed is not in its memory when it comes back, so it must send a copy
        leader.start()
        self.site.wait_serving(leader, SERVES_AGAIN)
        follower.start("--join-token", self.site.join_token(follower))
        self.site.wait_in_sync(follower)
        self.assertIn("has a copy of the journal", follower.log())
        self.assertNotIn("missing or damaged", follower.log())
        leader.kill()
        self.site.wait_serving(follower, SERVES_AGAIN)
        self.assertEqual(self.names(follower), {"before", "after"})

    def test_a_follower_is_backed_up_by_its_files(self):
        leader, follower = self.site.all
        for i in range(5):
            self.create(f"one-{i}")
        self.site.wait_in_sync()
        copy = self.site.dir / "copy"
        done = self.site.muster("backup", copy, "--data-dir", follower.data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.create("later")
        checked = self.site.muster("verify", "--data-dir", copy)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertIn("5 jobs", checked.stdout)
        again = self.site.muster("backup", copy, "--data-dir", follower.data)
        self.assertIn("already exists", again.stderr)
        leader.kill()
        self.site.wait_serving(follower, SERVES_AGAIN)  # the copy has left it as it was
        self.assertIn("later", self.names(follower))

    def test_a_replica_that_may_lack_something_does_not_lead(self):
        leader, follower = self.site.all
        follower.freeze()
        self.create("without-it")  # after the leader's patience
        self.site.wait_out_of_sync(follower)
        leader.kill()
        follower.thaw()
        follower.says("this replica may lack what was acknowledged: waiting for " + leader.peers)
        leader.start()
        self.site.wait_serving(leader, SERVES_AGAIN)
        self.site.wait_in_sync(follower)
        self.assertEqual(self.names(follower), {"without-it"})

    def test_both_killed_and_either_started_first(self):
        for first in (1, 0):
            with self.subTest(first=first):
                self.site.wait_in_sync()
                name = f"before-{first}"
                self.create(name, of=self.site.leader())
                for one in self.site.all:
                    one.kill()
                one = self.site.all[first]
                one.start()
                self.site.wait_serving(one, SERVES_AGAIN)
                self.assertIn(name, self.names(one))
                self.site.all[1 - first].start()


class Metrics(Site):
    """What each coordinator serves at its --metrics-listen."""

    def restart_with_metrics(self):
        """Restarts the coordinators, the follower first, so that the same one leads."""
        self.at = {one: f"127.0.0.1:{port}" for one, port in zip(self.site.all, free_ports(2))}
        for one in reversed(self.site.all):
            one.kill()
        for one in self.site.all:
            one.start("--metrics-listen", self.at[one])
        self.site.wait_serving(None, SERVES_AGAIN)
        self.site.wait_in_sync()

    def read(self, one):
        with urllib.request.urlopen(f"http://{self.at[one]}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def status(self, one, method, path):
        with contextlib.closing(http.client.HTTPConnection(self.at[one], timeout=10)) as link:
            link.request(method, path)
            return link.getresponse().status

    def values(self, one):
        return {name: found[0][1] for name, found in prometheus.samples(self.read(one)).items()}

    def test_a_follower_serves_its_own(self):
        self.restart_with_metrics()
        leader, follower = self.site.leader(), self.site.follower()
        for i in range(5):
            self.create(f"one-{i}", of=leader)
        of = {"muster_coordinator_leader": 0, "muster_coordinator_store_answers": 1, "muster_follower_connected": 1, "muster_follower_in_sync": 1,
              "muster_follower_lag_commits": 0}
        eventually(lambda: of.items() <= self.values(follower).items(), "the follower is in sync")
        now = self.values(follower)
        self.assertEqual(now["muster_coordinator_term"], self.values(leader)["muster_coordinator_term"])
        self.assertGreaterEqual(now["muster_follower_commit_duration_seconds_count"], 5)
        self.assertGreater(now["muster_follower_commit_duration_seconds_sum"], 0)
        self.assertNotIn("muster_jobs", now)
        self.assertEqual(self.values(leader)["muster_coordinator_leader"], 1)
        self.assertIn("muster_jobs", self.values(leader))
        # As documented, by name and type.
        part = (ROOT / "docs/metrics.md").read_text().split("## Of a coordinator that follows")[1].split("\n## ")[0]
        documented = {name: kind for names, kind in re.findall(r"^\| (`[^|]*`) \| (\w+) \|", part, re.M) for name in re.findall(r"`(\w+)`", names)}
        self.assertEqual(prometheus.types(self.read(follower)), documented)
        for path, code in (("/healthz", 200), ("/apis", 404), ("/metrics?x", 200)):
            with self.subTest(path=path):
                self.assertEqual(self.status(follower, "GET", path), code)
        self.assertEqual(self.status(follower, "POST", "/metrics"), 405)

    def test_a_follower_says_that_it_follows_nobody_and_then_leads(self):
        self.restart_with_metrics()
        leader, follower = self.site.leader(), self.site.follower()
        term = self.values(follower)["muster_coordinator_term"]
        self.site.etcd.stop()
        eventually(lambda: self.values(follower)["muster_coordinator_store_answers"] == 0, "the store is silent", 30)
        self.assertEqual(self.values(follower)["muster_follower_connected"], 1)
        leader.kill()
        eventually(lambda: self.values(follower)["muster_follower_connected"] == 0, "nobody leads", 30)
        self.assertNotIn("muster_follower_lag_commits", self.values(follower))
        self.site.etcd.go_on()
        eventually(lambda: self.values(follower).get("muster_coordinator_leader") == 1, "it leads", 30)
        self.assertGreater(self.values(follower)["muster_coordinator_term"], term)
        leader.start("--metrics-listen", self.at[leader])
        eventually(lambda: self.values(leader)["muster_follower_in_sync"] == 1, "the former leader follows", 30)


class Leading(Site):
    def test_kills_of_the_leader_under_load_lose_and_repeat_nothing(self):
        self.site.start_agent("n1", slots=6)
        witness = Witness(self.site.dir / "witness")
        job = witness.job("load", "sleep 0.0$((i % 7)); code=$((i % 5 == 0 && a == 0))", 400, parallelism=6, backoffLimitPerIndex=3)
        job["spec"]["backoffLimit"] = None
        code, answer = self.site.api.create(job)
        self.assertEqual(code, 201, answer)
        memories = [Memory(_Seen(one), "load") for one in self.site.all]
        for _ in range(3):
            done = len(witness.ends())
            eventually(lambda done=done: len(witness.ends()) >= min(done + 40, 470), "pods end", 60)
            self.site.wait_in_sync()
            killed = self.site.leader()
            killed.kill()
            eventually(lambda killed=killed: self.site.leader() is not killed, "another one leads", SERVES_AGAIN)
            killed.start()
        leader = self.site.leader()
        self.site.wait_serving(leader, SERVES_AGAIN)
        eventually(lambda: finished(leader.api.job("load")), "the job ends", 90)
        for memory in memories:
            memory.end(self)
        witness.check(self)
        status = leader.api.job("load")["status"]
        self.assertTrue(condition({"status": status}, "Complete"), status)
        self.assertEqual((status["succeeded"], status["completedIndexes"]), (400, "0-399"))
        failed = sum(1 for *_, code in witness.ends() if code != 0)
        self.assertEqual(status.get("failed", 0), failed)
        eventually(lambda: not processes_of(witness.folder), "no process is left")

    def test_a_frozen_leader_answers_nothing_any_more(self):
        leader, follower = self.site.all
        self.create("before")
        leader.freeze()
        eventually(lambda: self.site.leader() is follower, "the follower leads", SERVES_AGAIN)
        self.site.wait_serving(follower, SERVES_AGAIN)
        self.create("after", of=follower)
        # Its port still accepts, so these wait for the frozen process; it must not answer from what it knew.
        answers = []

        def ask():
            try:
                answers.append(leader.api.call("GET", leader.api.jobs(), timeout=20)[0])
            except OSError as e:
                answers.append(e)
        asking = [threading.Thread(target=ask) for _ in range(4)]
        for one in asking:
            one.start()
        eventually(lambda: _backlog(leader.api_addr) >= 4, "the requests wait")
        leader.thaw()
        for one in asking:
            one.join(30)
        self.assertEqual([one for one in answers if isinstance(one, int)], [])
        self.assertEqual(leader.process.wait(10), 1)
        self.assertIn("the lease of the lead has run out", leader.log())
        leader.start()
        self.site.wait_in_sync(leader)
        self.assertEqual(self.names(leader), {"before", "after"})

    def test_a_leader_that_ends_in_order_hands_over_and_no_request_fails(self):
        first, second = self.site.all
        stop = threading.Event()
        failed, made = [], []

        def ask(number):
            i = 0
            while not stop.is_set():
                i += 1
                name = f"job-{number}-{i}"
                try:
                    code, answer = second.api.create(sh_job(name, "true", 1, suspend=True))
                    (made if code == 201 else failed).append(name if code == 201 else (name, code, answer))
                except OSError as e:
                    failed.append((name, e))
        asking = [threading.Thread(target=ask, args=(number,)) for number in range(3)]
        for one in asking:
            one.start()
        eventually(lambda: len(made) > 20, "jobs are created")
        first.process.terminate()
        self.assertEqual(first.process.wait(20), 0)
        before = len(made)
        eventually(lambda: len(made) > before + 20, "jobs are created by the other one", SERVES_AGAIN)
        stop.set()
        for one in asking:
            one.join()
        self.assertEqual(failed[:5], [])
        self.assertLessEqual(set(made), self.names(second))

    def test_without_a_store_the_leader_goes_on_with_its_replicas_only(self):
        leader, follower = self.site.all
        self.site.etcd.stop()
        self.addCleanup(self.site.etcd.go_on)
        leader.says("the store does not renew the lease")
        until = time.monotonic() + 5  # its lease has run out by then
        while time.monotonic() < until:
            self.create(f"alone-{time.monotonic_ns()}")
        made = self.names(leader)
        follower.kill()
        # It can neither commit without that replica nor remove it, so it must end.
        with self.assertRaises(OSError):
            leader.api.create(sh_job("never", "true", 1, suspend=True))
        self.assertEqual(leader.process.wait(10), 1)
        self.site.etcd.go_on()
        follower.start()
        self.site.wait_serving(follower, SERVES_AGAIN)
        self.assertLessEqual(made, self.names(follower))

    def test_a_restarted_leader_leads_again_at_once_if_nobody_else_may(self):
        leader, follower = self.site.all
        follower.process.terminate()
        self.assertEqual(follower.process.wait(10), 0)
        self.site.wait_out_of_sync(follower)
        self.create("kept")
        leader.kill()
        leader.start()
        leader.says("in term 2")
        self.site.wait_serving(leader, SERVES_AGAIN)
        self.assertEqual(self.names(leader), {"kept"})


class Refusals(Site):
    COUNT = 1

    def refused(self, *words, of=None, **kinds):
        done = subprocess.run([*map(str, (of or self.site.all[0]).command()), *map(str, words)], text=True, capture_output=True, timeout=30)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_a_replica_does_not_start_alone(self):
        one = self.site.all[0]
        one.kill()
        done = subprocess.run([MUSTER, "coordinator", "--data-dir", one.data, "--api", one.api_addr, "--listen", one.listen], text=True,
                              capture_output=True, timeout=30)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is a replica of a cluster with several coordinators", done.stderr)
        self.assertIn("start it with --store and --peers", done.stderr)

    def test_a_wiped_store_is_refused_until_it_is_to_be_written_anew(self):
        one = self.site.all[0]
        self.create("kept")
        self.site.etcd.wipe()
        one.says("the store no longer holds the configuration")
        one.kill()
        self.assertIn("start the coordinator that led last", self.refused())
        one.start("--new-store")
        self.site.wait_serving(one, SERVES_AGAIN)
        self.assertEqual(self.names(one), {"kept"})

    def test_the_store_of_another_cluster_is_refused(self):
        one = self.site.all[0]
        one.kill()
        other = Coordinators(1)
        self.addCleanup(other.close)
        self.site.store = other.store
        why = self.refused()
        self.assertIn("is the data-dir of cluster", why)
        self.assertIn("but the store is that of cluster", why)
        self.assertIn("etcd:URL/PREFIX", why)

    def test_an_empty_data_dir_needs_a_token(self):
        second = Coordinator(self.site, "c2")
        why = self.refused(of=second)
        self.assertIn("muster token create --coordinator", why)
        path = self.site.dir / "node.token"
        made = self.site.muster("token", "create", "--node", "n1", "--out", path)
        if made.returncode == 0:  # the coordinator serves agents of other machines
            self.assertIn("it is not a coordinator's", self.refused("--join-token", path, of=second))

    def test_the_token_of_another_cluster_proves_nothing(self):
        other = Coordinators(1)
        self.addCleanup(other.close)
        second = Coordinator(self.site, "c2")
        second.start("--join-token", other.join_token(second))
        second.says("cannot be followed: its certificate was not issued by this cluster's authority")
        self.addCleanup(second.kill)
        self.assertNotIn(second.peers, self.site.etcd.get("configuration")["members"])

    def test_flags(self):
        for words, why in (
                (["--store", "etcd:http://127.0.0.1:1"], "--store and --peers belong together"),
                (["--peers", "127.0.0.1:9"], "--store and --peers belong together"),
                (["--join-token", "f"], "needs --store"),
                (["--store", "zk:http://h", "--peers", "127.0.0.1:9"], "--store"),
                (["--store", "etcd:http://127.0.0.1:1", "--peers", "127.0.0.1:0"], "needs a port"),
                (["--store", "etcd:http://127.0.0.1:1", "--peers", "127.0.0.1:9", "--replica-patience", "1ms"], "must be 100ms to 60s"),
                (["--store", "etcd:https://127.0.0.1:1", "--peers", "127.0.0.1:9", "--store-cert", "f"], "--store-cert and --store-key"),
                (["--store", "etcd:http://127.0.0.1:1", "--peers", "127.0.0.1:9", "--join-token", "/none"], "--join-token /none")):
            with self.subTest(words=words):
                port, listen = free_ports(2)
                done = subprocess.run([MUSTER, "coordinator", "--data-dir", self.site.dir / "flags", "--api", f"127.0.0.1:{port}", "--listen",
                                       f"127.0.0.1:{listen}", *words], text=True, capture_output=True, timeout=30)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(why, done.stderr)


class Three(Site):
    COUNT = 3

    def test_the_lead_moves_through_all_three(self):
        names = set()
        for i in range(4):
            self.site.wait_in_sync()
            leader = self.site.leader()
            self.create(f"in-{i}", of=leader)
            names.add(f"in-{i}")
            leader.kill()
            eventually(lambda leader=leader: self.site.leader() is not leader, "another one leads", SERVES_AGAIN)
            now = self.site.leader()
            self.site.wait_serving(now, SERVES_AGAIN)
            self.assertEqual(self.names(now), names)
            leader.start()


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and ip(8): the ports of the examples may be in use here")
class Docs(unittest.TestCase):
    def test_the_commands_of_the_document_work(self):
        document = (ROOT / "docs/standby.md").read_text()
        commands = [line[2:] for block in re.findall(r"```console\n(.*?)```", document, re.S) for line in block.splitlines()
                    if line.startswith("$ ")]
        self.assertGreater(len(commands), 8)
        with tempfile.TemporaryDirectory(prefix="muster-standby-docs-") as folder:
            script = ["ip link set lo up", f"cd {folder}", "set -x", *(line.replace("/var/tmp/muster", folder) for line in commands)]
            # The follower is in sync before the leader is killed.
            kill = next(i for i, line in enumerate(script) if line.startswith("pkill"))
            script.insert(kill, "until muster get coordinators | grep 7213 | grep -qE '\\b(true|yes)\\b'; do sleep 0.1; done")
            env = {"PATH": f"{pathlib.Path(MUSTER).resolve().parent}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": folder}
            done = subprocess.run(["unshare", "-n", "-p", "-f", "--mount-proc", "--kill-child", "bash", "-e"], input="\n".join(script), text=True,
                                  capture_output=True, timeout=120, env=env, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("10/10 succeeded", done.stderr)


class _Seen:
    """What Memory expects of a cluster."""

    def __init__(self, one):
        self.api = one.api


def _backlog(address):
    """Connections of this address that no process has accepted yet, and those that it has."""
    port = f"{int(address.rpartition(':')[2]):04X}"
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(1 for line in lines if line.split()[1].endswith(":" + port) and line.split()[3] == "01")


if __name__ == "__main__":
    os.environ.setdefault("TMPDIR", "/tmp")
    unittest.main(verbosity=2)
