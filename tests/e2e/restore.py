#!/usr/bin/python3
"""Old copies of the data-dir, and the remedies: refusal, backup, restore, verify.

    MUSTER=build/release/muster tests/e2e/restore.py [TEST…]
"""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished, matches, sh_job  # noqa: E402

UNTIL_GO = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'
# Files that even a process that only reads may write: locks, and RocksDB's message log.
PASSING = {"lock", "LOCK", "LOG"}


def picture(folder):
    """Every state file in a data-dir, with a hash of its contents."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in PASSING}


class OldCopies(World):
    def stopped(self, cluster):
        """Kills the coordinator; returns its data-dir."""
        cluster.kill_coordinator()
        return cluster.dir / "coordinator"

    def ends_by_itself(self, cluster):
        """Starts the coordinator, which must refuse to serve and exit; returns its message."""
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
            self.assertRegex(said, "node-[01] has seen epoch 2")
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

    def test_p11_old_copy_that_raised_its_epochs_alone_is_refused(self):
        """A copy that starts out of the agents' reach can raise its numbers at will, so they prove nothing."""
        cluster = self.cluster(agents=1)
        witness = self.witness(cluster)
        data = self.stopped(cluster)
        copy = cluster.dir / "copy"
        shutil.copytree(data, copy)
        cluster.start_coordinator()
        self.submit(cluster, witness.job("mine", "code=0", 2))
        cluster.wait("mine", finished)
        cluster.wait_nodes()
        cluster.kill_coordinator()
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
        cluster.start_coordinator()  # epoch 2, with its own nonce
        cluster.wait_nodes()
        # The copy is also at epoch 2, but with a different nonce. The agent finds it on the same port.
        cluster.kill_coordinator()
        data.rename(cluster.dir / "first")
        copy.rename(data)
        self.assertTrue(matches("has seen epoch 2", self.ends_by_itself(cluster)))
        self.assertIsNone(cluster.agents["node-0"].poll())
        data.rename(copy)
        (cluster.dir / "first").rename(data)
        cluster.start_coordinator()
        self.submit(cluster, witness.job("goes-on", "code=0", 2))
        self.assertEqual(cluster.wait("goes-on", finished)["status"]["succeeded"], 2)

    def test_p11_coordinator_serves_while_nodes_are_away(self):
        cluster = self.cluster(agents=1)
        cluster.wait_nodes()
        cluster.kill_agent("node-0")
        cluster.kill_coordinator()
        cluster.start_coordinator()
        self.assertEqual(cluster.api.call("GET", "/readyz")[0], 200)
        self.assertIn("serving without them", cluster.log("coordinator"))


class Restore(World):
    def backup(self, cluster, name="backup", **kwargs):
        folder = cluster.dir / name
        made = self.muster("backup", str(folder), cluster=cluster, **kwargs)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.sound(folder)
        return folder

    def sound(self, folder):
        verified = self.muster("verify", "--data-dir", str(folder))
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertIn("sound: ", verified.stdout)

    def restored(self, cluster, backup):
        """Kills the coordinator and replaces its data-dir with one restored from this backup."""
        cluster.kill_coordinator()
        data = cluster.dir / "coordinator"
        data.rename(cluster.dir / "before")
        done = self.muster("restore", str(backup), "--data-dir", str(data))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.sound(data)
        cluster.start_coordinator()

    def test_p11_a_backup_under_load_is_restored_and_the_job_finishes(self):
        cluster = self.cluster(agents=2, slots=4)
        witness = self.witness(cluster)
        self.submit(cluster, sh_job("load", "sleep 0.03", 400, parallelism=8))
        self.submit(cluster, witness.job("long", UNTIL_GO, 3))
        eventually(lambda: len(witness.starts()) == 3, "three pods run")
        eventually(lambda: cluster.api.job("long")["status"].get("ready") == 3, "all three are known to run")
        eventually(lambda: cluster.api.job("load")["status"].get("succeeded", 0) >= 50, "the load is under way")
        version = int(cluster.api.job("long")["metadata"]["resourceVersion"])
        backup = self.backup(cluster)
        live = self.muster("verify", cluster=cluster)
        self.assertEqual(live.returncode, 0, live.stdout + live.stderr)
        done = cluster.wait("load", finished)
        self.assertEqual(done["status"]["succeeded"], 400)
        cluster.wait_nodes()

        self.restored(cluster, backup)
        self.assertGreater(int(cluster.api.job("long")["metadata"]["resourceVersion"]), version)
        again = cluster.wait("load", finished, 60)
        self.assertEqual((again["status"]["succeeded"], again["status"]["completedIndexes"]), (400, "0-399"))
        cluster.wait_nodes()
        self.assertEqual(cluster.api.job("long")["status"].get("ready"), 3, "what ran before the backup was taken back")
        (witness.folder / "go").touch()
        self.assertEqual(cluster.wait("long", finished)["status"]["succeeded"], 3)
        witness.check(self)  # each index ran once
        self.sound_live(cluster)
        self.nothing_left(witness)

    def sound_live(self, cluster):
        live = self.muster("verify", cluster=cluster)
        self.assertEqual((live.returncode, "sound: " in live.stdout), (0, True), live.stdout + live.stderr)

    def test_p11_pods_unknown_after_restore_are_listed_and_left_alone(self):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        backup = self.backup(cluster)
        self.submit(cluster, witness.job("unknown", UNTIL_GO, 2))
        eventually(lambda: cluster.api.job("unknown")["status"].get("ready") == 2, "two pods run")
        cluster.wait_nodes()
        running = [pid for _, _, _, pid in witness.starts()]

        self.restored(cluster, backup)
        self.assertEqual(cluster.api.call("GET", f"{cluster.api.jobs()}/unknown")[0], 404)

        def strangers():
            node = cluster.api.call("GET", "/api/v1/nodes/node-0")[1]
            return next((c["message"] for c in node["status"]["conditions"] if c["type"] == "UnknownPods"), "")
        self.assertRegex(eventually(strangers, "they are listed"), r"j\d+/0#0, j\d+/1#0")
        # They stay listed, and alive, after both daemons restart.
        cluster.restart_coordinator()
        cluster.kill_agent("node-0")
        cluster.start_agent("node-0")
        cluster.wait_nodes()
        eventually(strangers, "they are still listed")
        self.seen(witness, running)
        # A job created under the same name is a different job: it gets new pods, whatever is still running.
        self.submit(cluster, sh_job("unknown", "true", 2))
        self.assertEqual(cluster.wait("unknown", finished)["status"]["succeeded"], 2)
        self.seen(witness, running)
        (witness.folder / "go").touch()
        self.nothing_left(witness)
        witness.check(self)
        cluster.kill_agent("node-0")
        cluster.start_agent("node-0")
        eventually(lambda: not strangers(), "none is left")

    def test_p11_an_operator_ends_pods_unknown_after_a_restore(self):
        cluster = self.cluster(agents=1, slots=4)
        witness = self.witness(cluster)
        backup = self.backup(cluster)
        self.submit(cluster, witness.job("unknown", UNTIL_GO, 2))
        eventually(lambda: cluster.api.job("unknown")["status"].get("ready") == 2, "two pods run")
        none = self.muster("node", "end-unknown", "node-0", cluster=cluster)
        self.assertEqual((none.returncode, none.stdout), (0, "node/node-0 runs no unknown pods\n"), none.stderr)
        self.assertEqual(self.muster("node", "end-unknown", "node-9", cluster=cluster).returncode, 3)
        self.restored(cluster, backup)

        def strangers():
            node = cluster.api.call("GET", "/api/v1/nodes/node-0")[1]
            return [c["message"] for c in node["status"]["conditions"] if c["type"] == "UnknownPods"]
        eventually(strangers, "they are listed")
        self.submit(cluster, sh_job("known", "sleep 300", 1))
        known = eventually(lambda: next((p for p in self.pods_of(cluster, "known") if p["status"]["phase"] == "Running"), None), "it runs")
        ended = self.muster("node", "end-unknown", "node-0", cluster=cluster)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertRegex(ended.stdout, r"^node/node-0 ends j\d+/0#0, j\d+/1#0\n$")
        self.nothing_left(witness)
        self.assertEqual(strangers(), [])
        # Nothing else is touched, and they do not come back.
        cluster.restart_coordinator()
        cluster.wait_nodes()
        self.assertEqual(strangers(), [])
        now = self.pods_of(cluster, "known")
        self.assertEqual([(p["metadata"]["uid"], p["status"]["phase"]) for p in now], [(known["metadata"]["uid"], "Running")])
        live = self.muster("verify", cluster=cluster)
        self.assertEqual(live.returncode, 0, live.stdout + live.stderr)

    def test_p11_backup_restore_and_verify_refuse_wrong_arguments(self):
        cluster = self.cluster(agents=0)
        backup = self.backup(cluster)
        again = self.muster("backup", str(backup), cluster=cluster)
        self.assertEqual(again.returncode, 5, again.stdout)
        self.assertIn("already exists", again.stderr)
        data = cluster.dir / "coordinator"
        busy = self.muster("verify", "--data-dir", str(data))
        self.assertEqual(busy.returncode, 5, busy.stdout)
        self.assertIn("in use", busy.stderr)
        cluster.kill_coordinator()
        occupied = self.muster("restore", str(backup), "--data-dir", str(data))
        self.assertEqual(occupied.returncode, 5)
        self.assertIn("is not empty", occupied.stderr)
        nothing = self.muster("restore", str(cluster.dir / "nothing"), "--data-dir", str(cluster.dir / "new"))
        self.assertEqual(nothing.returncode, 3, nothing.stderr)
        offline = self.muster("backup", str(cluster.dir / "offline"), "--data-dir", str(data))
        self.assertEqual(offline.returncode, 0, offline.stderr)
        self.sound(cluster.dir / "offline")
        manifest = backup / "manifest"
        manifest.write_text(manifest.read_text().replace("commit ", "commit 1", 1).replace("file ", "file 1", 1))
        damaged = self.muster("verify", "--data-dir", str(backup))
        self.assertEqual(damaged.returncode, 1)
        self.assertIn("the backup is damaged", damaged.stdout)
        self.assertNotEqual(self.muster("restore", str(backup), "--data-dir", str(cluster.dir / "new")).returncode, 0)

    def test_p25_data_dir_taken_over_by_a_restore_is_not_served(self):
        cluster = self.cluster(agents=0)
        backup = self.backup(cluster)
        data, new = cluster.dir / "coordinator", cluster.dir / "new"
        trial = self.muster("restore", str(backup), "--data-dir", str(cluster.dir / "trial"))
        self.assertNotIn("taken over", trial.stdout, "it is being served")
        cluster.kill_coordinator()
        done = self.muster("restore", str(backup), "--data-dir", str(new))
        self.assertIn(f"{data} is marked as taken over", done.stdout)
        refused = self.muster("coordinator", "--data-dir", str(data), "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0")
        self.assertEqual(refused.returncode, 5, refused.stderr)
        self.assertIn(f"{data} has been taken over by {new}, restored at", refused.stderr)
        (data / "taken-over").unlink()
        cluster.start_coordinator()

    def test_p11_journal_is_inspected_and_exported_beside_a_coordinator(self):
        cluster = self.cluster(agents=1, slots=2)
        data = cluster.dir / "coordinator"
        self.submit(cluster, sh_job("seen", "true", 2))
        cluster.wait("seen", finished)

        def look(folder, code=0):
            """What inspect and export print for a data-dir, which they must not change."""
            shown = self.muster("journal", "inspect", str(folder), "-o", "json")
            self.assertEqual(shown.returncode, code, shown.stdout + shown.stderr)
            lines = self.muster("journal", "export", str(folder))
            return json.loads(shown.stdout), [json.loads(line) for line in lines.stdout.splitlines()]

        live, lines = look(data)
        self.assertEqual(live["pid"], cluster.coord.pid)
        self.assertEqual(live["problems"], [])
        self.assertEqual(live["rows"]["job"], 1)
        for more in range(20):  # while the coordinator keeps writing
            self.submit(cluster, sh_job(f"more-{more}", "true", 1))
            look(data)
        cluster.wait("more-19", finished)
        cluster.kill_coordinator()
        was = picture(data)
        stopped, lines = look(data)
        self.assertNotIn("pid", stopped)
        self.assertEqual(stopped["commit"], stopped["acknowledged"])
        self.assertEqual(picture(data), was)
        records = [line for line in lines if line["kind"] == "record"]
        self.assertEqual(sum(stopped["records"].values()), len(records))
        order = [(line["job"], line["sequence"]) for line in records]
        self.assertEqual(order, sorted(order))
        ended = [pod for line in records if line["record"] == "PodsEnded" and line["job"] == 1 for pod in line["pods"]]
        self.assertEqual(sorted((pod["index"], pod["counted"]) for pod in ended), [(0, "succeeded"), (1, "succeeded")])
        secrets = [line for line in lines if line.get("name") in ("cluster_key", "seal_key", "permit_key", "authority")]
        self.assertTrue(secrets)
        for line in secrets:
            self.assertEqual(set(line), {"kind", "name", "withheld"})

        copy = cluster.dir / "copy"
        shutil.copytree(data, copy)
        self.assertEqual(look(copy)[1], lines)
        newest = max((copy / "db").glob("*.log"), key=lambda path: path.name)
        newest.write_bytes(newest.read_bytes()[:-40])
        torn, _ = look(copy, code=1)
        self.assertIn("acknowledged data is missing", torn["problems"][0])
        next((copy / "db").glob("MANIFEST-*")).write_bytes(b"x" * 4096)
        damaged = self.muster("journal", "inspect", str(copy))
        self.assertEqual(damaged.returncode, 5, damaged.stdout + damaged.stderr)
        self.assertIn("the journal is damaged", damaged.stderr)
        nothing = self.muster("journal", "export", str(cluster.dir))
        self.assertEqual(nothing.returncode, 3)
        self.assertIn("neither a data-dir nor a backup", nothing.stderr)
        if os.geteuid() == 0:
            os.chmod(cluster.dir, 0o755)
            stranger = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", os.environ["MUSTER"], "journal", "inspect", str(data)],
                                      capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual(stranger.returncode, 4, stranger.stdout + stranger.stderr)
            self.assertIn("Permission denied", stranger.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
