#!/usr/bin/python3
"""What other users and pods on the machine can read or change in the daemons' files, with real processes.

    MUSTER=build/release/muster tests/e2e/agent_security.py [TEST…]
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import Cluster, World, condition, eventually, exit_code, finished, parent  # noqa: E402

NOBODY = 65534


def environment_of(pid):
    return pathlib.Path(f"/proc/{pid}/environ").read_bytes()


def memory_peak(pid):
    """The peak resident memory in bytes."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no VmHWM of {pid}")


def shell_job(name, script, env=(), **spec):
    container = {"name": "main", "image": "none", "command": ["sh", "-c", script],
                 "env": [{"name": key, "value": value} for key, value in env]}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"completions": 1, "backoffLimit": 0, **spec,
                     "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}


class OpenUmask(Cluster):
    """A cluster whose daemons start with a umask that hides nothing."""

    def _spawn(self, name, args):
        with open(self.dir / f"{name}.log", "ab") as log:
            return subprocess.Popen([self.bin, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, umask=0)


class Secretive(Cluster):
    def _spawn(self, name, args):
        with open(self.dir / f"{name}.log", "ab") as log:
            return subprocess.Popen([self.bin, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                    env={**os.environ, "SITE_TOKEN": "hunter2", "MUSTER_API_TOKEN": "hunter2", "TZ": "UTC"})


class Expansion(World):
    def test_p05_variables_that_double_each_other_fail_their_pod_and_nothing_else(self):
        cluster = self.cluster(agents=1)
        agent = cluster.agents["node-0"].pid
        env = [("V0", "x")] + [(f"V{i}", f"$(V{i - 1})$(V{i - 1})") for i in range(1, 41)]
        self.submit(cluster, shell_job("doubling", "true", env))
        job = cluster.wait("doubling", finished)
        self.assertEqual(condition(job, "Failed")["reason"], "BackoffLimitExceeded")
        pod, = self.pods_of(cluster, "doubling")
        self.assertEqual(exit_code(pod), 126)
        self.assertIn("env V17", json.dumps(pod["status"]))
        self.submit(cluster, shell_job("after", "true"))
        self.assertTrue(condition(cluster.wait("after", finished), "Complete"))
        self.assertEqual(cluster.agents["node-0"].pid, agent)
        self.assertLess(memory_peak(agent), 256 << 20)


class Directories(World):
    def private(self, folder):
        files = 0
        for path in [folder, *folder.rglob("*")]:
            mode = path.lstat().st_mode
            self.assertEqual(mode & 0o077, 0, f"{path} has mode {mode:o}")
            files += path.is_file()
        return files

    def test_p07_all_files_are_private_whatever_the_umask_and_pods_keep_theirs(self):
        cluster = self.cluster(agents=1, kind=OpenUmask)
        noted = cluster.dir / "noted"
        self.submit(cluster, shell_job("mask", f"umask > {noted}; echo text"))
        cluster.wait("mask", finished)
        self.assertEqual(noted.read_text().strip(), "0000", "a pod has the umask that its agent was started with")
        self.assertGreater(self.private(cluster.dir / "coordinator"), 5)
        self.assertGreater(self.private(cluster.dir / "node-0"), 5)

    def test_p07_links_that_were_put_there_are_not_followed(self):
        with tempfile.TemporaryDirectory(prefix="muster-links-") as folder:
            victim = pathlib.Path(folder) / "victim"
            victim.write_text("precious")

            class Planted(Cluster):
                def start_coordinator(cluster):
                    for where, name in (("coordinator", "endpoints.json.new"), ("node-0", "identity.new")):
                        (cluster.dir / where).mkdir(mode=0o755)
                        (cluster.dir / where / name).symlink_to(victim)
                    super().start_coordinator()

            self.cluster(agents=1, kind=Planted)
            self.assertEqual(victim.read_text(), "precious")

    def refusal(self, *args):
        done = subprocess.run([os.environ["MUSTER"], *map(str, args)], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=20)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_p07_a_directory_of_another_owner_is_refused(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give directories away")
        with tempfile.TemporaryDirectory(prefix="muster-owner-") as folder:
            theirs = pathlib.Path(folder) / "theirs"
            theirs.mkdir()
            os.chown(theirs, NOBODY, NOBODY)
            for verb in (["coordinator", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--data-dir", theirs],
                         ["agent", "--coordinator", "127.0.0.1:1", "--work-dir", theirs]):
                self.assertIn(f"belongs to user {NOBODY}", self.refusal(*verb))
            self.assertEqual(list(theirs.iterdir()), [])
            # Our own directory, but it was world-writable and has another user's file in it.
            ours = pathlib.Path(folder) / "ours"
            ours.mkdir()
            ours.chmod(0o777)
            (ours / "endpoints.json.new").symlink_to("/nowhere")
            os.lchown(ours / "endpoints.json.new", NOBODY, NOBODY)
            self.assertIn("was accessible to other users", self.refusal("coordinator", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                                                             "--data-dir", ours))
            self.assertEqual(ours.stat().st_mode & 0o777, 0o700)


class Environment(World):
    def test_p10_keeper_and_pods_inherit_only_listed_variables(self):
        cluster = self.cluster(agents=1, kind=Secretive)
        noted = cluster.dir / "noted"
        self.submit(cluster, shell_job("env", f"env > {noted}.new; mv {noted}.new {noted}; sleep 300", [("MINE", "yes")]))
        eventually(noted.exists, "the pod told its environment")
        pod, = self.pods_of(cluster, "env")
        pid = int(pod["metadata"]["annotations"]["muster.dev/pid"])
        for name, environment in (("pod", noted.read_bytes()), ("keeper", environment_of(parent(pid))),
                                  ("agent", environment_of(cluster.agents["node-0"].pid))):
            self.assertNotIn(b"hunter2", environment, name)
            self.assertIn(b"PATH=", environment, name)
            self.assertIn(b"TZ=UTC", environment, name)
        self.assertIn(b"MINE=yes", noted.read_bytes())
        names = {line.split("=")[0] for line in environment_of(parent(pid)).decode().split("\0") if line}
        allowed = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR"}
        self.assertEqual({name for name in names if not name.startswith("MUSTER_KEEPER_")} - allowed, set())


if __name__ == "__main__":
    unittest.main(verbosity=2)
