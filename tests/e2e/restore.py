#!/usr/bin/python3
"""Old copies of the data-dir, and what is to be done about them: refusals, backup, restore, verify.

    MUSTER=build/release/muster tests/e2e/restore.py [TEST…]
"""
import hashlib
import os
import pathlib
import shutil
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished, matches, sh_job  # noqa: E402

UNTIL_GO = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'
# What a process leaves that only looked: who holds the directory, and RocksDB's own log of messages.
PASSING = {"lock", "LOCK", "LOG"}


def picture(folder):
    """Every file of a data-dir that holds state, with a hash of what is in it."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in PASSING}


class OldCopies(World):
    def stopped(self, cluster):
        """The data-dir, after the coordinator was killed."""
        cluster.kill_coordinator()
        return cluster.dir / "coordinator"

    def ends_by_itself(self, cluster):
        """Starts the coordinator, which is refused: what it says. Meanwhile it serves nobody."""
        log = cluster.dir / "coordinator.log"
        before = log.stat().st_size
        with self.assertRaisesRegex(AssertionError, "the coordinator ended"):
            cluster.start_coordinator()
        self.assertNotEqual(cluster.coord.returncode, 0)
        return log.read_text(errors="replace")[before:]

    def test_p11_an_older_copy_is_refused_however_often_it_is_started(self):
        cluster = self.cluster(agents=2, slots=2)
        witness = self.witness(cluster)
        self.submit(cluster, sh_job("before", "true", 2))
        cluster.wait("before", finished)
        data = self.stopped(cluster)
        copy = cluster.dir / "copy"
        shutil.copytree(data, copy)
        cluster.start_coordinator()
        self.submit(cluster, witness.job("after", "code=0", 4))
        self.assertEqual(cluster.wait("after", finished)["status"]["succeeded"], 4)
        cluster.wait_nodes()
        newest = self.stopped(cluster)

        newest.rename(cluster.dir / "newest")
        copy.rename(data)
        (data / "endpoints.json").unlink()
        was = picture(data)
        for _ in range(6):
            said = self.ends_by_itself(cluster)
            self.assertIn("muster restore", said)
            self.assertRegex(said, "node-[01] was told of epoch 2")
            self.assertEqual(picture(data), was, "a refused start has written")
        for agent in cluster.agents.values():
            self.assertIsNone(agent.poll(), "an agent left")

        data.rename(copy)
        (cluster.dir / "newest").rename(data)
        cluster.start_coordinator()
        self.assertEqual(cluster.api.job("after")["status"]["succeeded"], 4)
        self.assertEqual(cluster.wait("before", finished)["status"]["succeeded"], 2)
        witness.check(self)
        self.nothing_left(witness)

    def test_p11_a_copy_that_served_alone_is_refused_too(self):
        """Started while no agent can reach it, a copy raises its numbers as it likes: they prove nothing."""
        cluster = self.cluster(agents=1)
        witness = self.witness(cluster)
        data = self.stopped(cluster)
        copy = cluster.dir / "copy"
        shutil.copytree(data, copy)
        cluster.start_coordinator()
        self.submit(cluster, witness.job("mine", "code=0", 2))
        cluster.wait("mine", finished)
        cluster.wait_nodes()
        self.stopped(cluster)
        data.rename(cluster.dir / "newest")
        copy.rename(data)
        listen, cluster.listen = cluster.listen, "127.0.0.1:0"
        for _ in range(4):
            cluster.start_coordinator()
            for _ in range(3):
                self.submit(cluster, witness.job(f"alone-{os.urandom(4).hex()}", UNTIL_GO, 1))
            cluster.kill_coordinator()
            cluster.listen = "127.0.0.1:0"
        cluster.listen = listen
        self.assertIn("muster restore", self.ends_by_itself(cluster))

    def test_p11_two_coordinators_on_copies_never_merge(self):
        cluster = self.cluster(agents=1)
        witness = self.witness(cluster)
        data = self.stopped(cluster)
        copy = cluster.dir / "copy"
        shutil.copytree(data, copy)
        cluster.start_coordinator()  # epoch 2, with a number of its own
        cluster.wait_nodes()
        # The other one is at epoch 2 as well, with another number; the agent is led there by its port.
        self.stopped(cluster)
        data.rename(cluster.dir / "first")
        copy.rename(data)
        self.assertTrue(matches("was told of epoch 2", self.ends_by_itself(cluster)))
        self.assertIsNone(cluster.agents["node-0"].poll())
        data.rename(copy)
        (cluster.dir / "first").rename(data)
        cluster.start_coordinator()
        self.submit(cluster, witness.job("goes-on", "code=0", 2))
        self.assertEqual(cluster.wait("goes-on", finished)["status"]["succeeded"], 2)

    def test_p11_nodes_that_are_away_do_not_keep_the_service_down(self):
        cluster = self.cluster(agents=1)
        cluster.wait_nodes()
        cluster.kill_agent("node-0")
        cluster.kill_coordinator()
        cluster.start_coordinator()
        self.assertEqual(cluster.api.call("GET", "/readyz")[0], 200)
        self.assertIn("serving without them", cluster.log("coordinator"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
