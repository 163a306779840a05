#!/usr/bin/python3
"""GPUs that an agent finds. The machine needs none: the agent sees another /dev, in a mount namespace of its own.

    MUSTER=build/release/muster tests/e2e/gpus.py [TEST…]
"""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished  # noqa: E402

# A /dev with what programs need, and four GPUs.
DEV = """set -e
mkdir -p "$1"
mount -t tmpfs none "$1"
for name in null zero full random urandom tty ptmx; do
  [ -e /dev/$name ] || continue
  touch "$1/$name"
  mount --bind /dev/$name "$1/$name"
done
mkdir "$1/shm"
mount --bind /dev/shm "$1/shm"
ln -s /proc/self/fd "$1/fd"
touch "$1/nvidia0" "$1/nvidia1" "$1/nvidia2" "$1/nvidia3" "$1/nvidiactl"
mount --move "$1" /dev
shift
exec "$@"
"""


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root, for another /dev")
class Gpus(World):
    def agent(self, cluster, *flags, **env):
        command = [cluster.bin, "agent", "--coordinator", cluster.listen, "--name", "n1", "--slots", "4", "--work-dir", str(cluster.dir / "n1"), *flags]
        with open(cluster.dir / "n1.log", "ab") as log:
            cluster.agents["n1"] = subprocess.Popen(["unshare", "-m", "sh", "-c", DEV, "sh", str(cluster.dir / "dev"), *command], stdin=subprocess.DEVNULL,
                                                    stdout=log, stderr=log, start_new_session=True, env={**os.environ, **env})
        cluster.wait_nodes()

    def has(self, cluster):
        return cluster.api.call("GET", "/api/v1/nodes/n1")[1]["status"]["capacity"].get("nvidia.com/gpu")

    def visible(self, cluster, name, count, *flags):
        """What each index of a job sees in CUDA_VISIBLE_DEVICES, while all of them run."""
        out = cluster.dir / name
        out.mkdir()
        script = f'echo "$CUDA_VISIBLE_DEVICES" >{shlex.quote(str(out))}/$MUSTER_INDEX.part; mv {out}/$MUSTER_INDEX.part {out}/$MUSTER_INDEX; ' \
                 f'while [ ! -e {out}/go ]; do sleep 0.05; done'
        done = self.muster("submit", "--name", name, "-n", str(count), *flags, "--api", cluster.api_addr, "--", "sh", "-c",
                           script.replace("$MUSTER_INDEX", "$JOB_COMPLETION_INDEX"))
        self.assertEqual(done.returncode, 0, done.stderr)
        eventually(lambda: sum((out / str(i)).exists() for i in range(count)) == count, "all run")
        seen = sorted((out / str(i)).read_text().strip() for i in range(count))
        (out / "go").touch()
        self.assertEqual(cluster.wait(name, finished)["status"]["succeeded"], count)
        return seen

    def test_the_gpus_of_the_machine_are_declared(self):
        cluster = self.cluster(agents=0)
        self.agent(cluster)
        self.assertEqual(self.has(cluster), "4")
        self.assertEqual(self.visible(cluster, "each", 4, "--gpus", "1"), ["0", "1", "2", "3"])
        self.assertEqual(self.visible(cluster, "none", 1), ["-1"], "a pod that requests none sees none")
        self.assertIn("found 4 of nvidia.com/gpu", cluster.log("n1"))

    def test_an_allocation_has_the_gpus_that_it_was_given(self):
        cluster = self.cluster(agents=0)
        self.agent(cluster, CUDA_VISIBLE_DEVICES="2,3")
        self.assertEqual(self.has(cluster), "2")
        self.assertEqual(self.visible(cluster, "each", 2, "--gpus", "1"), ["2", "3"])

    def test_the_operator_has_the_last_word(self):
        cluster = self.cluster(agents=0)
        self.agent(cluster, "--resource", "nvidia.com/gpu=1")
        self.assertEqual(self.has(cluster), "1")
        cluster.kill_agent("n1")
        self.agent(cluster, "--gpus", "none")
        eventually(lambda: self.has(cluster) is None, "none are declared")
        self.assertEqual(self.visible(cluster, "free", 1), [""])


if __name__ == "__main__":
    unittest.main()
