"""Shared by the kubectl suites: this machine's unmodified kubectl against a new cluster.

A complete run needs kubectl 1.27. With an older one (Debian's is 1.20), tests marked `since` are skipped by name; with none, the suite
says so in one line and succeeds.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from world import World, sh_job

KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")


def client_version():
    """kubectl's version, for example (1, 32)."""
    printed = subprocess.run([KUBECTL, "version", "--client", "-o", "json"], text=True, capture_output=True, timeout=60, check=True)
    version = json.loads(printed.stdout)["clientVersion"]
    return int(version["major"]), int("".join(filter(str.isdigit, version["minor"])))


VERSION = client_version() if KUBECTL else (0, 0)


def main():
    suite = pathlib.Path(sys.argv[0]).name
    if not KUBECTL:
        print(f"{suite}: skipped: no kubectl on the PATH (Debian: apt-get install kubernetes-client; the whole suite needs 1.27)")
        sys.exit(0)
    if VERSION < (1, 27):
        print(f"{suite}: kubectl {VERSION[0]}.{VERSION[1]} runs a part of this; the whole suite needs 1.27")
    unittest.main(verbosity=2, warnings="ignore")


def since(minor, what):
    """Marks a test that needs kubectl 1.`minor`."""
    return unittest.skipIf(VERSION < (1, minor), f"{what} needs kubectl 1.{minor}")


class Kubectl(World):
    """A test with a cluster of one node and a home directory for kubectl's caches."""
    SLOTS = 8

    def setUp(self):
        self.it = self.cluster(agents=1, slots=self.SLOTS)
        self.home = self.it.dir / "home"
        self.home.mkdir()

    def start(self, *args, **env):
        """Starts kubectl in the background."""
        return subprocess.Popen([KUBECTL, "--server", f"http://{self.it.api_addr}", *map(str, args)], text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "HOME": str(self.home), "KUBECONFIG": str(self.home / "none"), **env})

    def run_kubectl(self, *args, stdin="", timeout=60, **env):
        process = self.start(*args, **env)
        try:
            out, err = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"kubectl {args} did not end in {timeout} s\n{out}\n{err}")
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    def kubectl(self, *args, **more):
        """Runs kubectl, which must succeed; returns its output."""
        done = self.run_kubectl(*args, **more)
        self.assertEqual(done.returncode, 0, f"kubectl {args}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def refused(self, *args, **more):
        """Runs kubectl, which must fail; returns its error output."""
        done = self.run_kubectl(*args, **more)
        self.assertNotEqual(done.returncode, 0, f"kubectl {args} succeeded: {done.stdout}")
        return done.stderr

    def table(self, *args):
        """The rows that `kubectl get …` prints, as dictionaries by column."""
        head, *rows = self.kubectl("get", *args).splitlines()
        columns = list(re.finditer(r"\S+(?: \S+)*", head))
        ends = [c.start() for c in columns[1:]] + [None]
        return [{c.group(): row[c.start():end].strip() for c, end in zip(columns, ends)} for row in rows]

    def create(self, job, *flags):
        self.kubectl("create", "-f", "-", *flags, stdin=json.dumps(job))
        return job["metadata"]["name"]

    def job(self, name, script="true", completions=2, **spec):
        made = sh_job(name, script, completions, **spec)
        made["metadata"]["labels"] = {"app": "demo"}
        made["spec"]["template"]["metadata"] = {"labels": {"app": "demo"}}
        return made

    def sleeper(self, name, completions=2, **spec):
        return self.job(name, "echo begun; exec sleep 600", completions, **spec)

    def runs(self, name, ready=2):
        self.kubectl("wait", f"job/{name}", f"--for=jsonpath={{.status.ready}}={ready}", "--timeout=30s") if VERSION >= (1, 23) else \
            self.it.wait(name, lambda j: j.get("status", {}).get("ready") == ready)
        return name

    def complete(self, name):
        self.kubectl("wait", f"job/{name}", "--for=condition=Complete", "--timeout=30s")
        return name
