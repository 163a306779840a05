#!/usr/bin/python3
"""Damaged databases: an unreadable block of a table, and a missing database.

    MUSTER=build/release/muster tests/e2e/damage.py [TEST…]
"""
import contextlib
import http.client
import os
import pathlib
import random
import shutil
import signal
import string
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, condition, eventually, finished, sh_job  # noqa: E402

UNTIL_GO = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'


def noise(seed, size=9000):
    """Text that does not compress and fills a whole block (4 KiB)."""
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=size))


class Damage(World):
    def settle(self, cluster):
        """Moves all rows into a table: each start flushes the log into one."""
        cluster.restart_coordinator()
        cluster.kill_coordinator()

    def damage(self, cluster, text):
        """Flips a bit in the first block that contains this text; returns a function that undoes it."""
        for path in sorted((cluster.dir / "coordinator" / "db").glob("*.sst")):
            whole = path.read_bytes()
            at = whole.find(text[:40].encode())
            if at < 0:
                continue
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1:])
            return lambda: path.write_bytes(whole)
        self.fail("the text is in no table")

    def wide(self, job, text):
        """Adds this text to the job as an annotation."""
        job["metadata"].setdefault("annotations", {})["example.com/wide"] = text
        return job

    def call(self, cluster, method, path, body=None, kind="application/json"):
        return cluster.api.call(method, path, body, kind)

    def test_p14_attempts_that_cannot_be_read_fail_one_request(self):
        cluster = self.cluster(agents=1)
        witness = self.witness(cluster)
        text = noise(1, 200)
        job = witness.job("hist", "code=0", 60, backoffLimitPerIndex=0)
        job["spec"]["template"]["spec"]["containers"][0]["command"] = ["/no/such/" + text]
        self.submit(cluster, job)
        self.submit(cluster, witness.job("other", "code=0", 1))
        cluster.wait("hist", finished)
        cluster.wait("other", finished)
        self.settle(cluster)
        self.damage(cluster, text)  # attempts are the first rows of a table
        cluster.start_coordinator()
        path = "/apis/muster.dev/v1/namespaces/default/jobs/{}/attempts"
        code, answer = self.call(cluster, "GET", path.format("hist"))
        self.assertEqual((code, answer["kind"], answer["reason"]), (500, "Status", "InternalError"))
        self.assertIn("attempts of job", answer["message"])
        self.assertIn("damaged", answer["message"])
        code, answer = self.call(cluster, "GET", path.format("other"))
        self.assertEqual((code, len(answer["items"])), (200, 1))
        self.submit(cluster, witness.job("later", "code=0", 1))
        cluster.wait("later", finished)

    def test_p14_a_job_that_cannot_be_read_is_quarantined_and_its_pods_live(self):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        for name, seed in (("before", 2), ("victim", 3), ("after", 4)):
            self.submit(cluster, self.wide(witness.job(name, UNTIL_GO, 1), noise(seed)))
        eventually(lambda: len(witness.starts()) == 3, "three pods run")
        eventually(lambda: all(cluster.api.job(n)["status"].get("ready") == 1 for n in ("before", "victim", "after")), "all ready")
        self.settle(cluster)
        undo = self.damage(cluster, noise(3))
        cluster.start_coordinator()
        cluster.wait_nodes()
        self.assertIn("IS QUARANTINED", cluster.log("coordinator"))
        self.assertEqual(self.call(cluster, "GET", cluster.api.jobs() + "/victim")[0], 404, "its name is lost with the row")
        self.assertEqual(self.call(cluster, "GET", cluster.api.jobs() + "/before")[0], 200)
        self.assertEqual(self.damaged(cluster), 1)
        (witness.folder / "go").touch()
        cluster.wait("before", finished)
        cluster.wait("after", finished)
        self.nothing_left(witness)
        self.assertEqual(sorted(code for *_, code in witness.ends()), [0, 0, 0], "all ended by themselves")
        # Reports that were withheld are counted once the job can be read again.
        cluster.kill_coordinator()
        undo()
        cluster.start_coordinator()
        job = cluster.wait("victim", finished)
        self.assertIsNotNone(condition(job, "Complete"), job["status"])
        self.assertEqual(job["status"]["succeeded"], 1)
        self.assertEqual(len(witness.starts()), 3, "nothing ran twice")

    def damaged(self, cluster):
        host, _, port = cluster.api_addr.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith('muster_jobs{state="damaged"}'))

    def test_p14_a_job_whose_state_is_damaged_says_so(self):
        cluster = self.cluster(agents=1)
        witness = self.witness(cluster)
        for name in ("before", "victim"):
            job = witness.job(name, "code=0", 1, managedBy="example.com/other")
            self.submit(cluster, job)
            # A status that fills a block by itself.
            status = {"conditions": [{"type": "example.com/Said", "status": "True", "reason": "Said", "message": noise(name)}]}
            code, answer = self.call(cluster, "PATCH", cluster.api.jobs() + f"/{name}/status", {"status": status},
                                     "application/merge-patch+json")
            self.assertEqual(code, 200, answer)
        self.submit(cluster, witness.job("after", "code=0", 1))
        cluster.wait("after", finished)
        self.settle(cluster)
        self.damage(cluster, noise("victim"))
        cluster.start_coordinator()
        cluster.wait_nodes()
        job = cluster.api.job("victim")
        said = condition(job, "muster.dev/Damaged")
        self.assertEqual((said["status"], said["reason"]), ("True", "Unreadable"))
        self.assertIn("damaged", said["message"])
        self.assertIsNotNone(condition(cluster.api.job("after"), "Complete"))
        self.assertIsNone(condition(cluster.api.job("before"), "muster.dev/Damaged"))
        self.assertEqual(self.damaged(cluster), 1)
        self.assertIn("Damaged", self.muster("get", "jobs", cluster=cluster).stdout)
        self.assertIn("muster.dev/Damaged: Unreadable", self.muster("describe", "job", "victim", cluster=cluster).stdout)
        for method, body in (("PATCH", {"metadata": {"labels": {"a": "b"}}}), ("DELETE", {})):
            code, answer = self.call(cluster, method, cluster.api.jobs() + "/victim", body, "application/merge-patch+json"
                                     if method == "PATCH" else "application/json")
            self.assertEqual(code, 500, answer)
            self.assertIn("quarantined", answer["message"])
        code, answer = cluster.api.create(witness.job("victim", "code=0", 1))
        self.assertEqual(code, 409, "its name is taken")
        self.submit(cluster, witness.job("new", "code=0", 1))
        cluster.wait("new", finished)

    def test_a_job_that_crashes_the_coordinator_is_set_aside(self):
        """muster-planted crashes whenever a pod of this job ends. After three starts the other jobs continue without it; none of its state is lost."""
        planted = pathlib.Path(os.environ["MUSTER"]).resolve().parent / "muster-planted"
        if not planted.exists():
            self.skipTest(f"there is no {planted}")
        cluster = self.cluster(agents=1, slots=4)
        usual, cluster.bin = cluster.bin, str(planted)
        witness = self.witness(cluster)
        os.environ["PLANTED_FAULT"] = "poisons"
        self.addCleanup(os.environ.pop, "PLANTED_FAULT")
        cluster.restart_coordinator()
        cluster.wait_nodes()
        for name in ("poison", "fine"):
            self.submit(cluster, witness.job(name, UNTIL_GO, 1))
            eventually(lambda: cluster.api.job(name)["status"].get("ready") == 1, f"{name} runs")
        (witness.folder / "go").touch()
        for crash in range(3):
            self.assertEqual(cluster.coord.wait(30), -signal.SIGABRT, f"crash {crash}")
            try:
                cluster.start_coordinator()
            except AssertionError:  # it crashed before it had written its addresses
                self.assertEqual(cluster.coord.wait(30), -signal.SIGABRT)
        cluster.wait("fine", finished)
        crashes = cluster.dir / "coordinator" / "crashes"
        self.assertIn("aside 1\n", crashes.read_text())
        said = condition(cluster.api.job("poison"), "muster.dev/Damaged")
        self.assertIn("crashed on it in three consecutive starts", said["message"])
        self.assertIn("IS QUARANTINED", cluster.log("coordinator"))
        self.assertEqual(self.damaged(cluster), 1)
        cluster.restart_coordinator()
        self.assertIsNotNone(condition(cluster.api.job("poison"), "muster.dev/Damaged"), "it stays set aside")
        cluster.kill_coordinator()
        cluster.bin = usual
        cluster.start_coordinator()
        self.assertIsNotNone(condition(cluster.api.job("poison"), "muster.dev/Damaged"), "also in a start of the same version")
        cluster.kill_coordinator()
        crashes.unlink()
        cluster.start_coordinator()
        job = cluster.wait("poison", finished)
        self.assertEqual((job["status"].get("succeeded"), job["status"].get("failed", 0)), (1, 0), "its end was kept by the agent")
        self.assertEqual(len(witness.starts()), 2, "nothing ran twice")

    def test_p14_coordinator_refuses_to_start_without_its_database(self):
        cluster = self.cluster(agents=1)
        cluster.kill_coordinator()
        data = cluster.dir / "coordinator"
        shutil.rmtree(data / "db")
        os.unlink(data / "commit")
        with self.assertRaises(Exception):
            cluster.start_coordinator()
        said = cluster.log("coordinator")
        self.assertIn("cluster-id", said)
        self.assertIn("muster restore", said)
        self.assertFalse((data / "db" / "CURRENT").exists(), "a refused start makes no database")

    def test_p29_a_data_dir_that_is_deleted_ends_the_coordinator(self):
        cluster = self.cluster(agents=1)
        self.assertEqual(cluster.api.create(sh_job("before", "true", 1))[0], 201)
        shutil.rmtree(cluster.dir / "coordinator")
        with contextlib.suppress(OSError, http.client.HTTPException):
            code, answer = cluster.api.create(sh_job("after", "true", 1))
            self.assertNotEqual(code, 201, "a write that went nowhere was acknowledged")
        self.assertEqual(cluster.coord.wait(timeout=20), 1)
        self.assertIn("nothing written there would be kept", cluster.log("coordinator"))

    def test_p29_deleted_data_dir_ends_the_idle_coordinator(self):
        cluster = self.cluster(agents=0)
        shutil.rmtree(cluster.dir / "coordinator")
        self.assertEqual(cluster.coord.wait(timeout=20), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
