"""The command line as a single user runs it: each test has its own home and directory.

MUSTER names the executable. Waits poll with a deadline.
"""
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import unittest

MUSTER = os.path.abspath(os.environ.get("MUSTER", "build/release/muster"))
DEADLINE = float(os.environ.get("DEADLINE", "40"))  # seconds


def poll(what, check):
    end = time.monotonic() + DEADLINE
    while True:
        if result := check():
            return result
        if time.monotonic() > end:
            raise AssertionError(f"not within {DEADLINE:g} s: {what}")
        time.sleep(0.02)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class CommandCase(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="muster-test-", ignore_cleanup_errors=True)
        self.dir = pathlib.Path(self.tmp.name)
        self.addCleanup(self.tmp.cleanup)
        self.env = {k: v for k, v in os.environ.items()
                    if (not k.startswith("MUSTER_") or k == "MUSTER_KEEPER_CGROUP") and k not in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "NO_COLOR")}
        (self.dir / "tmp").mkdir()
        self.env.update(HOME=str(self.dir), TMPDIR=str(self.dir / "tmp"), MUSTER_SYSTEM_CONFIG=str(self.dir / "system.yaml"))

    def muster(self, *words, code=0, stdin=None, umask=-1, **env):
        """Runs a command, which must exit with `code`; `env`: additional variables."""
        given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        r = subprocess.run([MUSTER, *words], **given, capture_output=True, text=True, timeout=3 * DEADLINE,
                           env={**self.env, **env}, cwd=self.dir, umask=umask)
        self.assertEqual(r.returncode, code, f"muster {' '.join(words)}\n{r.stdout}{r.stderr}")
        return r

    def start(self, *words, **popen):
        """Starts a command that is ended with the test. Its output is in `stdout`."""
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": self.env, **popen}
        p = subprocess.Popen([MUSTER, *words], text=True, cwd=self.dir, **given)
        self.addCleanup(self.stop, p)
        return p

    def stop(self, p):
        if p.poll() is None:
            p.terminate()
            try:
                p.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        for pipe in (p.stdout, p.stderr):
            if pipe is not None:
                pipe.close()

    def file(self, name, text):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name
