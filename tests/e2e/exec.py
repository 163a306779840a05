#!/usr/bin/python3
"""Commands in running pods (`muster exec`), whatever is killed meanwhile.

    MUSTER=build/release/muster tests/e2e/exec.py [TEST…]
"""
import hashlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, condition, eventually, finished, processes_of  # noqa: E402

MUSTER = os.path.abspath(os.environ["MUSTER"])
# Its pods run until they are told to go on.
WAITS = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'
# Prints a line and counts to 40, in 4 s.
COUNTS = "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); sleep 0.1; done; exit 9"
COUNTED = "".join(f"{i}\n" for i in range(40))


class Case(World):
    def start(self, completions=1, **cluster):
        """A cluster whose job `j` runs, and its pods' names by index."""
        self.it = self.cluster(agents=1, slots=4, grace="30s", **cluster)
        self.seeing = self.witness(self.it)
        self.submit(self.it, self.seeing.job("j", WAITS, completions))
        eventually(lambda: self.it.api.job("j")["status"].get("ready") == completions, "the pods run")
        pods = self.pods_of(self.it, "j")
        self.pod = {int(p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]): p["metadata"]["name"] for p in pods}

    def words(self, *args):
        return [MUSTER, "exec", "--api", self.it.api_addr, *args]

    def run_in(self, pod, *command, code=0, timeout=60):
        done = subprocess.run(self.words(pod, "--", *command), capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def shell(self, script, index=0, **how):
        return self.run_in(self.pod[index], "sh", "-c", script, **how)

    def begin(self, script, index=0):
        process = subprocess.Popen(self.words(self.pod[index], "--", "sh", "-c", script), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(self.drop, process)
        return process

    @staticmethod
    def drop(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            pipe.close()

    def sessions(self):
        """Processes of commands, without those of the pods themselves."""
        return [pid for pid in processes_of(self.seeing.folder) if b"marker-of-a-session" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]

    def none_left(self, timeout=15):
        def gone():
            try:
                return not self.sessions()
            except OSError:
                return False
        eventually(gone, "no process of a session is left", timeout)


class Exec(Case):
    def test_both_streams_and_the_pods_context(self):
        self.start(completions=2)
        done = self.shell('echo $JOB_COMPLETION_INDEX $MUSTER_POD_NAME; pwd; echo to stderr >&2; cat', index=1)
        where = os.readlink(f"/proc/{self.seeing.starts()[0][3]}/cwd")
        self.assertEqual(done.stdout.decode(), f"1 {self.pod[1]}\n{where}\n")
        self.assertEqual(done.stderr.decode(), "to stderr\n")
        by_index = subprocess.run(self.words("job/j", "--index", "0", "--", "printenv", "MUSTER_POD_NAME"), capture_output=True, timeout=30)
        self.assertEqual(by_index.stdout.decode().strip(), self.pod[0])
        self.none_left()

    def test_output_comes_as_it_is_written(self):
        self.start()
        process = self.begin("echo first; sleep 300 # marker-of-a-session")
        began = time.monotonic()
        self.assertEqual(process.stdout.readline(), b"first\n")
        self.assertLess(time.monotonic() - began, 5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 130)
        self.none_left()

    def test_exit_codes(self):
        self.start()
        self.shell("exit 0")
        self.shell("exit 7", code=7)
        self.shell("exit 255", code=255)
        self.shell("kill -TERM $$", code=143)
        self.shell("kill -KILL $$", code=137)
        self.assertIn(b"/no/such/program", self.run_in(self.pod[0], "/no/such/program", code=127).stderr)
        self.assertIn(b"/etc/passwd", self.run_in(self.pod[0], "/etc/passwd", code=126).stderr)

    def test_errors(self):
        self.start()
        self.assertIn(b"not found", self.run_in("nobody-0-abcde", "true", code=3).stderr)
        self.assertIn(b"not found", self.run_in("job/nothing", "true", code=3).stderr)
        refused = subprocess.run(self.words("-it", self.pod[0], "--", "sh"), capture_output=True, timeout=30)
        self.assertEqual(refused.returncode, 2)
        self.assertIn(b"not supported", refused.stderr)
        absent = subprocess.run([MUSTER, "exec", "--api", "127.0.0.1:1", self.pod[0], "--", "true"], capture_output=True, timeout=30)
        self.assertEqual(absent.returncode, 4)
        (self.seeing.folder / "go").touch()
        self.it.wait("j", finished)
        late = self.run_in(self.pod[0], "true", code=5).stderr
        self.assertIn(b"has ended", late)
        self.assertIn(b"no running pod", self.run_in("job/j", "true", code=5).stderr)

    def test_100_megabytes(self):
        """Through a reader that pauses; two streams at once."""
        self.start()
        size = 100 << 20
        script = f"head -c {size} /dev/zero | tr '\\0' 'x' & head -c {size // 10} /dev/zero >&2; wait"
        digest, read, paused = hashlib.sha256(), 0, False
        with tempfile.TemporaryFile() as err:
            process = subprocess.Popen(self.words(self.pod[0], "--", "sh", "-c", script), stdout=subprocess.PIPE, stderr=err,
                                       stdin=subprocess.DEVNULL)
            self.addCleanup(process.stdout.close)
            while part := process.stdout.read(1 << 16):
                digest.update(part)
                read += len(part)
                if read > 20 << 20 and not paused:
                    time.sleep(2)
                    paused = True
            self.assertEqual(process.wait(60), 0)
            self.assertEqual(err.seek(0, 2), size // 10)
        self.assertEqual(read, size)
        self.assertEqual(digest.hexdigest(), hashlib.sha256(b"x" * size).hexdigest())

    def test_a_reader_that_leaves_ends_the_command(self):
        self.start()
        line = " ".join(f"'{word}'" for word in self.words(self.pod[0], "--", "sh", "-c", "while :; do echo y; sleep 0.01; done # marker-of-a-session"))
        done = subprocess.run(["bash", "-c", f"{line} | head -1; exit ${{PIPESTATUS[0]}}"], capture_output=True, timeout=30)
        self.assertEqual((done.stdout, done.returncode), (b"y\n", 141), done.stderr)
        self.none_left()

    def test_an_interrupt_kills_what_ignores_sigterm(self):
        self.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("trap '' TERM; echo on; while :; do sleep 1; done # marker-of-a-session")
            self.assertEqual(process.stdout.readline(), b"on\n")
            self.assertEqual(len(self.sessions()), 1)
            process.send_signal(number)
            self.assertEqual(process.wait(10), 130)
            self.none_left()
        self.assertIn(self.seeing.starts()[0][3], processes_of(self.seeing.folder), "the pod itself runs on")

    def test_the_pod_ends_meanwhile(self):
        self.start()
        process = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        (self.seeing.folder / "go").touch()
        self.assertEqual(process.wait(20), 137)
        self.it.wait("j", finished)
        self.assertIsNotNone(condition(self.it.api.job("j"), "Complete"))
        self.none_left()

    def test_the_coordinator_is_killed_meanwhile(self):
        self.start()
        process = self.begin(COUNTS)
        self.assertEqual(process.stdout.readline(), b"0\n")
        self.it.kill_coordinator()
        time.sleep(0.5)  # the command goes on
        self.it.start_coordinator()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out.decode()), (9, COUNTED[2:]), err)

    def test_an_interrupt_while_the_coordinator_is_away(self):
        self.start()
        process = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        self.it.kill_coordinator()
        process.send_signal(signal.SIGINT)
        self.it.start_coordinator()
        self.assertEqual(process.wait(20), 130)
        self.none_left()

    def test_the_agent_is_killed_meanwhile(self):
        self.start()
        process = self.begin(COUNTS)
        self.assertEqual(process.stdout.readline(), b"0\n")
        self.it.kill_agent("node-0")
        time.sleep(0.5)
        self.it.start_agent("node-0")
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out.decode()), (9, COUNTED[2:]), err)

    def test_the_command_ends_while_nobody_reads(self):
        """And its pod, too: the output and the exit code are still there for the client that comes back."""
        self.start()
        process = self.begin('echo first; until [ -e "$WITNESS/on" ]; do sleep 0.05; done; echo last; exit 5')
        self.assertEqual(process.stdout.readline(), b"first\n")
        self.it.kill_coordinator()
        (self.seeing.folder / "on").touch()
        time.sleep(1)
        (self.seeing.folder / "go").touch()
        eventually(lambda: not processes_of(self.seeing.folder), "the pod ends")
        self.it.start_coordinator()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (5, b"last\n"), err)

    def test_a_client_that_dies_leaves_nothing(self):
        self.start()
        process = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        process.kill()
        process.wait()
        self.none_left(90)

    def test_several_containers(self):
        self.it = self.cluster(agents=1, slots=4)
        self.seeing = self.witness(self.it)
        job = self.seeing.job("two", WAITS, 1)
        containers = job["spec"]["template"]["spec"]["containers"]
        containers.append({**containers[0], "name": "side"})
        self.submit(self.it, job)
        eventually(lambda: self.it.api.job("two")["status"].get("ready") == 1, "the pod runs")
        done = subprocess.run(self.words("job/two", "--", "echo", "hi"), capture_output=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (0, b"hi\n"), done.stderr)
        self.assertIn(b"container main, the first of main, side", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
