#!/usr/bin/python3
"""Real processes under kill -9 of coordinator and agents, at seeded random instants; every counter must match the witness.

    MUSTER=build/release/muster tests/e2e/chaos.py [TEST…]      CHAOS_SEED=4711 repeats a run, as far as timing allows
CHAOS_INDEXES, CHAOS_COORDINATOR_KILLS, CHAOS_AGENT_KILLS make it longer (400, 20, 10; with MUSTER_LONG=1: 3000, 1000, 100, ten minutes).
"""
import os
import pathlib
import random
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import Memory, World, condition, eventually, finished, indexes  # noqa: E402

SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1, 1_000_000))
LONG = bool(os.environ.get("MUSTER_LONG"))
INDEXES = int(os.environ.get("CHAOS_INDEXES") or (3000 if LONG else 400))
COORDINATOR_KILLS = int(os.environ.get("CHAOS_COORDINATOR_KILLS") or (1000 if LONG else 20))
AGENT_KILLS = int(os.environ.get("CHAOS_AGENT_KILLS") or (100 if LONG else 10))

# The attempts that fail: every third index fails once, every seventh twice, every fiftieth for good.
WORK = ("n=0; [ $((i % 3)) -eq 0 ] && n=1; [ $((i % 7)) -eq 0 ] && n=2; [ $((i % 50)) -eq 49 ] && n=99; "
        "sleep 0.$((i % 5 + 2)); code=0; [ $a -ge $n ] || code=$((n + 1))")
LIMIT = 2  # retries of an index


def failing_attempts(index):
    n = 99 if index % 50 == 49 else 2 if index % 7 == 0 else 1 if index % 3 == 0 else 0
    return min(n, LIMIT + 1)


class Chaos(World):
    def test_counters_match_the_witness_under_random_kills(self):
        rng = random.Random(SEED)
        print(f"CHAOS_SEED={SEED}", flush=True)
        cluster = self.cluster(agents=3, slots=6, base="100ms", top="400ms", grace="30s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("chaos", WORK, INDEXES, parallelism=15, backoffLimitPerIndex=LIMIT))
        memory = Memory(cluster, "chaos")

        fails = sum(failing_attempts(i) for i in range(INDEXES))
        dead_indexes = {i for i in range(INDEXES) if failing_attempts(i) > LIMIT}
        attempts = fails + INDEXES - len(dead_indexes)
        # The progress at which each victim is killed; never in the last tenth, so that no kill hits a finished job.
        kills = ["coordinator"] * COORDINATOR_KILLS + ["agent"] * AGENT_KILLS
        rng.shuffle(kills)
        at = sorted(rng.randrange(0, attempts * 9 // 10) for _ in kills)
        done = {"coordinator": 0, "agent": 0}
        while kills:
            due = at[len(at) - len(kills)]
            eventually(lambda: len(witness.ends()) >= due, f"{due} of {attempts} attempts ended", 60)
            victims = [kills.pop()]
            if kills and kills[-1] != victims[0] and rng.random() < 0.5:
                victims.append(kills.pop())  # both at once
            time.sleep(rng.random() * 0.2)  # at a random instant
            agent = rng.choice(sorted(cluster.agents))
            for victim in victims:
                done[victim] += 1
                (cluster.kill_coordinator if victim == "coordinator" else lambda: cluster.kill_agent(agent))()
            time.sleep(rng.choice((0, 0, 0.3)) * rng.random())
            for victim in victims if rng.random() < 0.5 else reversed(victims):
                (cluster.start_coordinator if victim == "coordinator" else lambda: cluster.start_agent(agent))()
        self.assertEqual((done["coordinator"], done["agent"]), (COORDINATOR_KILLS, AGENT_KILLS))

        job = cluster.wait("chaos", finished, 90)
        memory.end(self)
        witness.check(self)
        status, ends = job["status"], witness.ends()
        good = [line[0] for line in ends if line[3] == 0]
        self.assertEqual(len(ends), attempts, "attempts that ran")
        self.assertEqual(len(good), len(set(good)), "an index succeeded twice")
        self.assertEqual(status.get("succeeded", 0), len(good))
        self.assertEqual(indexes(status.get("completedIndexes")), set(good))
        self.assertEqual(status.get("failed", 0), len(ends) - len(good))
        self.assertEqual(indexes(status.get("failedIndexes")), dead_indexes)
        self.assertEqual(status.get("active", 0) + status.get("terminating", 0) + status.get("ready", 0), 0)
        self.assertEqual(status.get("uncountedTerminatedPods"), {})
        self.assertEqual(condition(job, "Failed")["reason"], "FailedIndexes")
        self.check_pods(cluster, ends)
        self.nothing_left(witness)
        print(f"proof {COORDINATOR_KILLS + AGENT_KILLS} daemons killed under load\nproof {len(ends)} ends of processes checked", flush=True)

    def check_pods(self, cluster, ends):
        """Each attempt has a Pod with the exit code that the witness recorded."""
        found = {}
        for pod in self.pods_of(cluster, "chaos"):
            index = int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])
            found.setdefault(index, []).append(pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"])
            self.assertNotIn("batch.kubernetes.io/job-tracking", pod["metadata"].get("finalizers") or [])
        truth = {}
        for index, _, _, code in ends:
            truth.setdefault(index, []).append(code)
        self.assertEqual({i: sorted(c) for i, c in found.items()}, {i: sorted(c) for i, c in truth.items()})

    def test_coordinator_killed_in_a_loop_loses_nothing(self):
        rng = random.Random(SEED)
        cluster = self.cluster(agents=1, slots=4, grace="30s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("loop", "sleep 0.4; code=0; [ $i -ne 2 ] || [ $a -ge 1 ] || code=3", 12, parallelism=4))
        memory = Memory(cluster, "loop")
        cluster.kill_coordinator()
        for _ in range(12):
            # Killed at a random instant during startup, sometimes before it serves.
            coordinator = cluster._spawn("coordinator", [
                "coordinator", "--data-dir", str(cluster.dir / "coordinator"), "--api", cluster.api_addr, "--listen", cluster.listen,
                "--node-grace", cluster.grace, "--pod-failure-backoff-base", cluster.base, "--pod-failure-backoff-max", cluster.top])
            time.sleep(rng.random() * 0.4)
            self.assertIsNone(coordinator.poll(), "it ended by itself: " + cluster.log("coordinator")[-600:])
            coordinator.kill()
            coordinator.wait()
        cluster.start_coordinator()
        job = cluster.wait("loop", finished, 60)
        memory.end(self)
        witness.check(self)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed", 0)), (12, 1))
        self.nothing_left(witness)

    def test_agent_killed_in_a_loop_loses_nothing(self):
        rng = random.Random(SEED)
        cluster = self.cluster(agents=1, slots=4, grace="30s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("loop", "sleep 0.4; code=0", 16, parallelism=4))
        memory = Memory(cluster, "loop")
        for _ in range(12):
            time.sleep(rng.random() * 0.3)
            cluster.kill_agent("node-0")
            cluster.start_agent("node-0")
        job = cluster.wait("loop", finished, 60)
        memory.end(self)
        witness.check(self)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed", 0)), (16, 0))
        self.nothing_left(witness)

    def test_an_accepted_job_and_delete_survive(self):
        cluster = self.cluster(agents=1, slots=4, grace="30s")
        witness = self.witness(cluster)
        for round_ in range(5):
            name = f"kept-{round_}"
            self.submit(cluster, witness.job(name, "code=0", 2))
            cluster.restart_coordinator()
            self.assertEqual(cluster.wait(name, finished)["status"]["succeeded"], 2)
            code, answer = cluster.api.delete(name)
            self.assertEqual(code, 200, answer)
            cluster.restart_coordinator()
            code, _ = eventually(lambda: (lambda a: a if a[0] != 503 else None)(
                cluster.api.call("GET", f"{cluster.api.jobs()}/{name}")), "an answer")
            self.assertEqual(code, 404)
        self.nothing_left(witness)


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
