#!/usr/bin/python3
"""Several coordinators: what a follower has and does, how the lead changes, and that nothing acknowledged is lost meanwhile.

    MUSTER=build/release/muster tests/e2e/standby.py [TEST…]      MUSTER_LONG=1 freezes for a minute, too

Needs etcd and etcdctl. The coordinators are processes on loopback addresses.
"""
import contextlib
import http.client
import json
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
from coordinators import MUSTER, Coordinator, Coordinators, Seen, free_ports  # noqa: E402
from world import ROOT, Memory, Witness, condition, eventually, finished, processes_of, sh_job, start_daemon  # noqa: E402

SERVES_AGAIN = 15  # seconds; how long it takes is measured by `muster drill` and in bench/, not here
LONG = bool(os.environ.get("MUSTER_LONG"))


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
        for path, code in (("/healthz", 200), ("/readyz", 200), ("/apis", 404), ("/metrics?x", 200)):
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
        self.assertEqual(self.status(follower, "GET", "/readyz"), 503)
        eventually(lambda: self.values(follower)["muster_follower_connected"] == 0, "nobody leads", 30)
        self.assertNotIn("muster_follower_lag_commits", self.values(follower))
        self.site.etcd.go_on()
        eventually(lambda: self.values(follower).get("muster_coordinator_leader") == 1, "it leads", 30)
        self.assertGreater(self.values(follower)["muster_coordinator_term"], term)
        leader.start("--metrics-listen", self.at[leader])
        eventually(lambda: self.values(leader)["muster_follower_in_sync"] == 1, "the former leader follows", 30)
        self.assertEqual(self.status(leader, "GET", "/readyz"), 200)

    def test_a_store_that_is_wiped_is_told_until_it_is_written_anew(self):
        self.restart_with_metrics()
        leader, follower = self.site.leader(), self.site.follower()
        # The store is silent first, and the lines about that say nothing of what it holds later.
        self.site.etcd.stop()
        leader.says("the store does not renew the lease")
        self.site.etcd.wipe()
        leader.says("the store no longer holds the configuration")
        eventually(lambda: self.values(leader)["muster_coordinator_store_wiped"] == 1, "the leader's metrics tell")
        eventually(lambda: self.values(follower)["muster_coordinator_store_wiped"] == 1, "the follower's metrics tell")
        self.assertEqual(self.values(follower)["muster_follower_in_sync"], 0)
        self.assertEqual(self.status(follower, "GET", "/readyz"), 503)
        self.assertIn("no coordinator can take over: the consensus store was wiped", self.site.muster("get", "coordinators", of=leader).stderr)
        for one in self.site.all:
            self.assertIn("the consensus store was wiped: restart the leader with --new-store, once",
                          self.site.muster("describe", "coordinator", one.peers, of=leader).stdout)
        self.create("meanwhile", of=leader)  # as long as its replica answers
        follower.kill()
        self.assertEqual(leader.process.wait(20), 1)
        self.assertIn("start this coordinator with --new-store, once", leader.log())
        leader.start("--new-store", "--metrics-listen", self.at[leader])
        self.site.wait_serving(leader, SERVES_AGAIN)
        follower.start("--metrics-listen", self.at[follower])
        self.site.wait_in_sync()
        self.assertEqual(self.names(follower), {"meanwhile"})
        self.assertEqual(self.values(leader)["muster_coordinator_store_wiped"], 0)
        self.assertEqual(self.site.muster("get", "coordinators", of=leader).stderr, "")

    def test_the_lead_goes_back_and_forth(self):
        self.restart_with_metrics()
        processes = [one.process.pid for one in self.site.all]
        for _ in range(2):
            before, after = self.site.leader(), self.site.follower()
            done = self.site.muster("demote", of=before)
            self.assertEqual(done.returncode, 0, done.stderr)
            eventually(lambda after=after: self.values(after)["muster_coordinator_leader"] == 1, "the other one leads", SERVES_AGAIN)
            eventually(lambda before=before: self.values(before).get("muster_follower_in_sync") == 1, "the former leader follows", SERVES_AGAIN)
            self.assertEqual(self.values(before)["muster_coordinator_leader"], 0)
            self.assertNotIn("muster_jobs", self.values(before))
            self.assertNotIn("muster_follower_commit", self.values(after))
            for one in self.site.all:
                self.assertIsNone(one.process.poll(), one.log())
        self.assertEqual([one.process.pid for one in self.site.all], processes)


class Leading(Site):
    def test_kills_of_the_leader_under_load_lose_and_repeat_nothing(self):
        self.site.start_agent("n1", slots=6)
        witness = Witness(self.site.dir / "witness")
        job = witness.job("load", "sleep 0.0$((i % 7)); code=$((i % 5 == 0 && a == 0))", 400, parallelism=6, backoffLimitPerIndex=3)
        job["spec"]["backoffLimit"] = None
        code, answer = self.site.api.create(job)
        self.assertEqual(code, 201, answer)
        memories = [Memory(Seen(one), "load") for one in self.site.all]
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

    @unittest.skipUnless(LONG, "takes more than a minute")
    def test_a_leader_that_was_frozen_for_a_minute_ends_and_follows(self):
        leader, follower = self.site.all
        self.create("before")
        leader.freeze()
        eventually(lambda: self.site.leader() is follower, "the follower leads", SERVES_AGAIN)
        until = time.monotonic() + 60
        made = {"before"}
        while time.monotonic() < until:
            name = f"meanwhile-{len(made)}"
            self.create(name, of=follower)
            made.add(name)
            time.sleep(0.5)
        leader.thaw()
        self.assertEqual(leader.process.wait(10), 1)
        leader.start()
        self.site.wait_in_sync(leader)
        self.assertEqual(self.names(leader), made)
        self.assertIs(self.site.leader(), follower)

    def test_a_leader_that_ends_in_order_hands_over_and_no_request_fails(self):
        first, second = self.site.all
        asking = Asking(second, second, second)
        asking.goes_on()
        first.process.terminate()
        self.assertEqual(first.process.wait(20), 0)
        asking.goes_on()
        self.assertEqual(asking.end(), [])
        self.assertLessEqual(set(asking.made()), self.names(second))

    def test_a_demoted_leader_follows_at_once_and_no_request_fails_at_either_address(self):
        asking = Asking(*self.site.all, *self.site.all)
        for _ in range(4):
            asking.goes_on()
            before, after = self.site.leader(), self.site.follower()
            done = self.site.muster("demote", of=before)
            self.assertEqual(done.returncode, 0, done.stderr)
            eventually(lambda after=after: self.site.leader() is after, "the other one leads", SERVES_AGAIN)
            asking.goes_on()
            self.site.wait_in_sync()
            # What is not serving yet refuses nobody: a refusal is an error in the log, and delays the next attempt.
            self.assertNotIn("refuses this coordinator", before.log())
        self.assertEqual(asking.end(), [])
        for one in self.site.all:
            self.assertLessEqual(set(asking.made()), self.names(one))

    def test_whoever_has_connected_before_a_demotion_and_asks_late_is_answered(self):
        before = self.site.leader()
        late = []
        for one in self.site.all:
            late.append(http.client.HTTPConnection(one.api_addr, timeout=SERVES_AGAIN))
            self.addCleanup(late[-1].close)
            late[-1].connect()
        demoting = subprocess.Popen([MUSTER, "demote"], stdout=subprocess.DEVNULL, env={**os.environ, "MUSTER_API": before.api_addr})
        eventually(lambda: not self.answers(before), "it accepts no connection for half a second")
        for i, one in enumerate(late):
            one.request("POST", before.api.jobs(), json.dumps(sh_job(f"late-{i}", "true", 1, suspend=True)), {"Content-Type": "application/json"})
            self.assertEqual(one.getresponse().status, 201, i)
        self.assertEqual(demoting.wait(SERVES_AGAIN), 0)

    @staticmethod
    def answers(one):
        """On a new connection."""
        try:
            with contextlib.closing(http.client.HTTPConnection(one.api_addr, timeout=0.5)) as asking:
                asking.request("GET", "/readyz")
                return asking.getresponse() is not None
        except OSError:
            return False

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
        # If the store finds its last request, to go on without that replica, before it finds that the lease has run out, only it may lead.
        follower.start()
        leader.start()
        self.site.wait_in_sync()
        for one in self.site.all:
            self.site.wait_serving(one, SERVES_AGAIN)
            self.assertLessEqual(made, self.names(one))

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


class Remote(Coordinators):
    """Coordinators that serve other machines, too."""

    def make(self, name):
        one = super().make(name)
        one.api_tls, one.listen_tls = (f"{one.host}:{port}" for port in free_ports(2))
        plain = one.command
        one.command = lambda *more: plain("--api-tls", one.api_tls, "--listen-tls", one.listen_tls, *more)
        return one


class Elsewhere(unittest.TestCase):
    """Users and agents of other machines, with tokens and certificates, over TLS."""

    def test_tokens_and_certificates_count_after_a_takeover(self):
        site = Remote(2)
        self.addCleanup(site.close)
        leader, follower = site.all
        token, joins = site.dir / "user.token", site.dir / "node.token"
        token.touch(0o600)
        made = site.muster("token", "create")
        self.assertEqual(made.returncode, 0, made.stderr)
        token.write_text(made.stdout)
        made = site.muster("token", "create", "--node", "far", "--out", joins)
        self.assertEqual(made.returncode, 0, made.stderr)
        folder = site.dir / "far.d"
        folder.mkdir()
        site.agents["far"] = start_daemon([MUSTER, "agent", "--coordinator", ",".join(one.listen_tls for one in site.all), "--name", "far",
                                           "--work-dir", site.dir / "far", "--slots", 2, "--token-file", joins], folder)
        env = {"PATH": "/usr/bin:/bin", "HOME": str(site.dir), "MUSTER_API": ",".join(f"https://{one.api_tls}" for one in site.all)}

        def muster(*words, api=None):
            return subprocess.run([MUSTER, words[0], "--token-file", token, *map(str, words[1:])], text=True, capture_output=True, timeout=120, cwd=site.dir,
                                  env={**env, **({"MUSTER_API": f"https://{api}"} if api else {})})
        eventually(lambda: "far" in muster("get", "nodes", "-o", "name").stdout, "the agent is there")
        manifest = site.dir / "long.json"
        manifest.write_text(json.dumps(sh_job("long", "sleep 0.2", 40, parallelism=2)))
        done = muster("create", "-f", manifest)
        self.assertEqual(done.returncode, 0, done.stderr)
        eventually(lambda: site.api.job("long")["status"].get("succeeded", 0) >= 4, "pods end")
        site.wait_in_sync()
        leader.kill()
        eventually(lambda: site.leader() is follower, "the other one leads", SERVES_AGAIN)
        waited = muster("wait", "job/long", "--timeout", "90s")
        self.assertEqual(waited.returncode, 0, waited.stdout + waited.stderr)
        status = follower.api.job("long")["status"]
        self.assertEqual((status["succeeded"], status.get("failed", 0)), (40, 0), status)
        self.assertEqual(muster("get", "nodes", "-o", "name", api=follower.api_tls).stdout.strip(), "node/far")
        # At the former leader, too, which passes the connection on.
        leader.start()
        site.wait_in_sync(leader)
        after = muster("run", "-n", 2, "--", "true", api=leader.api_tls)
        self.assertEqual(after.returncode, 0, after.stderr)
        self.assertIn("2/2 succeeded", after.stderr)


class Strays(Site):
    """Replicas that leave the store of their cluster, and come back."""

    def test_a_replica_makes_no_cluster_of_its_own_on_a_wiped_store(self):
        leader, follower = self.site.all  # the follower has joined in this process
        leader.freeze()
        self.site.etcd.wipe()
        eventually(lambda: follower.process.poll() is not None, "it ends")
        self.assertIn("start the coordinator that led last", follower.log())
        self.assertIsNone(self.site.etcd.get("configuration"))

    def test_two_leaders_by_configuration_are_refused(self):
        for leader, stray in (self.site.all, self.site.all[::-1]):
            with self.subTest(stray=stray.name):
                self.site.wait_in_sync()
                self.assertIs(self.site.leader(), leader)
                stray.kill()
                self.site.wait_out_of_sync(stray)
                store, self.site.store = self.site.store, self.site.store + "/elsewhere"
                done = subprocess.run([*map(str, stray.command("--new-store"))], text=True, capture_output=True, timeout=60)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, f"with --new-store .* but coordinator {leader.peers} leads cluster .*: use its --store, or stop it first")
                self.site.store = store
                stray.start()
                self.site.wait_in_sync(stray)
                self.assertEqual(self.site.muster("demote", of=leader).returncode, 0)
                eventually(lambda stray=stray: self.site.leader() is stray, "it leads", SERVES_AGAIN)

    def test_what_a_replica_gives_up_is_told(self):
        leader, stray = self.site.all
        stray.kill()
        self.site.wait_out_of_sync(stray)
        leader.kill()
        store, self.site.store = self.site.store, self.site.store + "/elsewhere"
        for more in (["--new-store"], []):  # it leads twice
            stray.start(*more)
            self.site.wait_serving(stray, SERVES_AGAIN)
            self.create("given-up" + "-again" * (not more), of=stray)
            stray.kill()
        self.site.store = store
        leader.start()
        self.site.wait_serving(leader, SERVES_AGAIN)
        stray.start()
        stray.says("it has been used with another store")  # the leader's term is not above its own
        for _ in range(2):
            leader.kill()
            leader.start()
            self.site.wait_serving(leader, SERVES_AGAIN)
        self.site.wait_in_sync(stray)
        self.assertRegex(stray.log(), r"lacks term \d+, which this data-dir had: commits \d+ to \d+ are given up")
        self.assertEqual(self.names(stray), set())

    def test_a_coordinator_that_is_removed_is_gone_at_once(self):
        leader, follower = self.site.all
        follower.process.terminate()
        follower.process.wait(10)
        for i in range(5):
            with self.subTest(i=i):
                removed = self.site.muster("remove", f"coordinator/{follower.peers}")
                self.assertEqual(removed.returncode, 0, removed.stderr)
                self.assertNotIn(follower.peers, self.site.muster("get", "coordinators").stdout)
                self.assertNotIn(follower.peers, self.site.etcd.get("configuration")["members"])
                follower.start()
                self.site.wait_in_sync(follower)
                follower.process.terminate()
                follower.process.wait(10)
        self.site.etcd.stop()
        removed = self.site.muster("remove", f"coordinator/{follower.peers}")
        self.assertNotEqual(removed.returncode, 0, removed.stdout)


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
        self.assertRegex(second.log(), "warning coordinator: the leader, .*: make one with `muster token create --coordinator")
        self.addCleanup(second.kill)
        self.assertNotIn(second.peers, self.site.etcd.get("configuration")["members"])

    def test_a_taken_port_of_the_peers_offers_no_other_than_by_name(self):
        second = Coordinator(self.site, "c2")
        second.peers = self.site.all[0].peers
        why = self.refused(of=second)
        self.assertIn(f"--peers {second.peers}: address already in use; choose another port or stop", why)

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


class Asking:
    """Creates jobs at each of these coordinators, one after the other and all at once."""

    def __init__(self, *ends):
        self.stop, self.failed = threading.Event(), []
        self.acknowledged = [[] for _ in ends]  # names
        self.threads = [threading.Thread(target=self.ask, args=(number, one)) for number, one in enumerate(ends)]
        for one in self.threads:
            one.start()

    def ask(self, number, one):
        i = 0
        while not self.stop.is_set():
            i += 1
            name = f"job-{number}-{i}"
            try:
                code, answer = one.api.create(sh_job(name, "true", 1, suspend=True))
            except OSError as e:
                code, answer = None, e
            if code == 201:
                self.acknowledged[number].append(name)
            else:
                self.failed.append((name, code, answer))

    def made(self):
        return [name for names in self.acknowledged for name in names]

    def goes_on(self, more=10):
        """At each address."""
        before = [len(names) for names in self.acknowledged]
        eventually(lambda: all(len(names) >= was + more for names, was in zip(self.acknowledged, before)) or self.failed,
                   "jobs are created", SERVES_AGAIN)

    def end(self):
        """The requests that have failed."""
        self.stop.set()
        for one in self.threads:
            one.join()
        return self.failed[:5]


def _backlog(address):
    """Connections of this address that no process has accepted yet, and those that it has."""
    port = f"{int(address.rpartition(':')[2]):04X}"
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(1 for line in lines if line.split()[1].endswith(":" + port) and line.split()[3] == "01")


if __name__ == "__main__":
    os.environ.setdefault("TMPDIR", "/tmp")
    unittest.main(verbosity=2)
