#!/usr/bin/python3
"""The documentation's examples: each manifest in docs/job.md ends as its first line says, and the commands in README's first cluster,
docs/from-*.md and docs/site.md print what is shown.

    MUSTER=build/release/muster tests/e2e/docs.py
    MUSTER_DOCS_WRITE=1 tests/e2e/docs.py Transcripts     updates the output shown in docs/from-*.md
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSTER = os.path.abspath(os.environ.get("MUSTER", ROOT / "build/release/muster"))
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests"))
import guards  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/e2e/lib"))
from transcripts import Followed  # noqa: E402


class Docs(unittest.TestCase):
    def test_each_job_example_ends_as_documented(self):
        examples = re.findall(r"^```yaml\n# (\w+)(?:: (\w+))?\n(.*?)^```", 
                              (ROOT / "docs/job.md").read_text() + (ROOT / "docs/volumes.md").read_text(), re.M | re.S)
        self.assertGreater(len(examples), 9)
        for end, reason, text in examples:
            name = re.search(r"name: ([\w-]+)", text).group(1)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                manifest = pathlib.Path(folder) / "job.yaml"
                manifest.write_text("apiVersion: batch/v1\nkind: Job\n" + text)
                done = subprocess.run([MUSTER, "run", "--timeout", "60s", "--data-dir", folder + "/data", str(manifest)],
                                      text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=90, cwd=folder)
                self.assertEqual(done.returncode, 0 if end == "Complete" else 1, done.stdout + done.stderr)
                self.assertIn(f"job/{name} {end}", done.stderr)
                if end == "Failed":
                    self.assertIn(reason, done.stderr)

    def test_table_of_guards_is_up_to_date(self):
        self.assertIn(guards.table(), (ROOT / "docs/security.md").read_text(), "write it by tests/guards.py --write")
        guards.edited()  # the code of each guard is where the list says


class Transcripts(Followed):
    def test_from_slurm_prints_what_is_shown(self):
        self.follow("from-slurm", MUSTER_API=self.served())

    def test_queues_of_a_site_print_what_is_shown(self):
        self.follow("site", "Queues", MUSTER_API=self.served())

    def test_from_parallel_prints_what_is_shown(self):
        self.follow("from-parallel")

    @unittest.skipUnless(shutil.which("kubectl"), "needs kubectl")
    def test_from_kubernetes_prints_what_is_shown(self):
        self.follow("from-kubernetes", MUSTER_API=self.served())


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and ip(8), to make network namespaces")
class FirstCluster(unittest.TestCase):
    """README's two machines are network namespaces connected by a wire, each with its own home; ssh and scp lead from one to the other."""
    ADDRESSES = {"head": "10.78.0.1", "c01": "10.78.0.2"}

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-docs-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.spaces = {host: f"mudoc{os.getpid()}{host}" for host in self.ADDRESSES}
        self.shells = {}
        for host, space in self.spaces.items():
            made = subprocess.run(["ip", "netns", "add", space], capture_output=True, text=True)
            if made.returncode:
                self.skipTest(f"network namespaces cannot be made here: {made.stderr.strip()}")
            self.addCleanup(subprocess.run, ["ip", "netns", "del", space])
            hosts = pathlib.Path("/etc/netns") / space  # ip(8) mounts it over /etc/hosts
            hosts.mkdir(parents=True)
            self.addCleanup(shutil.rmtree, hosts)
            (hosts / "hosts").write_text("".join(f"{ip} {name}\n" for name, ip in self.ADDRESSES.items()) + "127.0.0.1 localhost\n")
            (self.dir / host).mkdir()
        self.addCleanup(self.stop)  # runs before the namespaces' names are deleted
        head, c01 = self.spaces.values()
        subprocess.run(["ip", "-n", head, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", c01], check=True)
        for host, space in self.spaces.items():
            for words in (["address", "add", self.ADDRESSES[host] + "/24", "dev", "wire"], ["link", "set", "wire", "up"],
                          ["link", "set", "lo", "up"]):
                subprocess.run(["ip", "-n", space, *words], check=True)
        (self.dir / "ssh").write_text(f"#!/bin/sh\nexport HOME={self.dir}/$1\nspace={self.spaces['head'][:-4]}$1\nshift\n"
                                      'exec ip netns exec $space "$@"\n')
        (self.dir / "scp").write_text(f'#!/bin/sh\nexec cp $2 {self.dir}/${{3%:}}\n')
        for tool in ("ssh", "scp"):
            (self.dir / tool).chmod(0o755)
        for host, space in self.spaces.items():
            env = {"PATH": f"{self.dir}:{pathlib.Path(MUSTER).parent}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.dir / host)}
            self.shells[host] = subprocess.Popen(["ip", "netns", "exec", space, "bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                 stderr=subprocess.STDOUT, text=True, cwd=self.dir / host, env=env)

    def stop(self):
        for space in self.spaces.values():
            found = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True).stdout.split()
            subprocess.run(["kill", "-KILL", *found], capture_output=True)
        for shell in self.shells.values():
            shell.communicate()

    def type(self, host, command):
        """Types a command; returns everything printed until the next prompt, including by background processes."""
        shell = self.shells[host]
        shell.stdin.write(f"{command}\necho \"prompt after $?\"\n")
        shell.stdin.flush()
        lines = []
        for line in shell.stdout:
            if line.startswith("prompt after"):
                self.assertEqual(line, "prompt after 0\n", (command, lines))
                return lines
            lines.append(line)
        raise AssertionError(f"{command}: the shell has ended: {lines}")

    def test_readme_first_cluster_prints_what_is_shown(self):
        def shape(line):  # without what differs between runs
            if re.match(r"\d+/\d+  running", line):
                return "progress"
            return re.sub(r"(?<=state in )\S+|sh-\w{5}|[0-9a-f]{16}|\d+", "-", " ".join(line.split()))
        block = re.search(r"### A first cluster\n.*?```console\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
        shown, printed = [], []
        for line in block.splitlines():
            host, prompt, command = line.partition("$ ")
            if prompt and host in self.spaces:
                printed += self.type(host, command.replace("/var/tmp/muster", f"{self.dir}/state"))
            else:
                shown.append(line)
        self.assertEqual(set(map(shape, shown)) - {"progress"}, set(map(shape, printed)) - {"progress"}, "".join(printed))


if __name__ == "__main__":
    unittest.main(verbosity=2)
