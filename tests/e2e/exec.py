#!/usr/bin/python3
"""Commands in running pods (`muster exec`), whatever is killed meanwhile, and MPI programs in one line (`muster mpirun`).

    MUSTER=build/release/muster tests/e2e/exec.py [TEST…]

An MPI test is skipped if its MPI is not installed.
"""
import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
for inherited in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # nohup and the like ignore them, and muster keeps that
    signal.signal(inherited, signal.default_int_handler if inherited == signal.SIGINT else signal.SIG_DFL)

from kube_client import KUBECTL, VERSION  # noqa: E402
from world import Cluster, World, condition, eventually, finished, processes_of  # noqa: E402

MUSTER = os.path.abspath(os.environ["MUSTER"])
# Pods run until the file `go` exists.
WAITS = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'
# Prints 0, then the rest up to 39 once the file `count` exists.
COUNTS = 'i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); until [ -e "$WITNESS/count" ]; do sleep 0.02; done; done; exit 9'
COUNTED = "".join(f"{i}\n" for i in range(40))


class Typist:
    """A user at a terminal in which a command runs."""

    def __init__(self, words, rows=24, columns=80, **env):
        self.master, self.slave = os.openpty()
        self.resize(rows, columns)
        self.modes = termios.tcgetattr(self.slave)
        self.screen = b""
        self.process = subprocess.Popen(words, stdin=self.slave, stdout=self.slave, stderr=self.slave, preexec_fn=self.own,
                                        env={**os.environ, "TERM": "vt220", **env})

    @staticmethod
    def own():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            self.screen += os.read(self.master, 1 << 16)

    def sees(self, text, timeout=20):
        """Waits for the text, then drops the screen's contents up to its end; returns what was before it."""
        deadline = time.monotonic() + timeout
        while text.encode() not in self.screen:
            if time.monotonic() > deadline:
                raise AssertionError(f"{text!r} is not on the screen: {self.screen}")
            select.select([self.master], [], [], 0.1)
            self.read()
        before, _, self.screen = self.screen.partition(text.encode())
        return before.decode(errors="replace")

    def wait(self, timeout=20):
        """Waits for the end; the terminal's modes must be restored."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < deadline:
            select.select([self.master], [], [], 0.05)
            self.read()
        if termios.tcgetattr(self.slave) != self.modes:
            raise AssertionError("the terminal is not as it was")
        return self.process.wait(1)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


class Case(World):
    def start(self, completions=1, **cluster):
        """Starts a cluster in which job `j` runs, and records its pods' names by index."""
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
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def command_pid(self, name):
        """The pid that a command in the pod writes to a file."""
        path = self.seeing.folder / name
        eventually(lambda: path.exists() and path.read_text().endswith("\n"), name)
        return int(path.read_text())

    def at_a_terminal(self, *command, **how):
        typist = Typist(self.words("-it", self.pod[0], "--", *command), **how)
        self.addCleanup(typist.close)
        return typist

    def sessions(self):
        """The processes of commands, without the pods' own."""
        return [pid for pid in processes_of(self.seeing.folder)
                if any("marker-of-a-session" in word for word in self.command_line(str(pid)))]

    def none_left(self, timeout=15):
        eventually(lambda: not self.sessions(), "no process of a session is left", timeout)

    def count_across(self, kill, start):
        """While a command counts, something is killed and started again. Nothing of its output is lost."""
        process = self.begin(COUNTS)
        self.assertEqual(process.stdout.readline(), b"0\n")
        kill()
        (self.seeing.folder / "count").touch()  # the command continues
        start()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out.decode()), (9, COUNTED[2:]), err)


class Exec(Case):
    def test_exec_returns_both_streams_and_runs_in_the_pods_context(self):
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

    def test_exec_exits_with_code_of_the_command(self):
        self.start()
        self.shell("exit 0")
        self.shell("exit 7", code=7)
        self.shell("exit 255", code=255)
        self.shell("kill -TERM $$", code=143)
        self.shell("kill -KILL $$", code=137)
        self.assertIn(b"/no/such/program", self.run_in(self.pod[0], "/no/such/program", code=127).stderr)
        self.assertIn(b"/etc/passwd", self.run_in(self.pod[0], "/etc/passwd", code=126).stderr)

    def test_exec_reports_errors(self):
        self.start()
        self.assertIn(b"not found", self.run_in("nobody-0-abcde", "true", code=3).stderr)
        self.assertIn(b"not found", self.run_in("job/nothing", "true", code=3).stderr)
        for flags, why in (("-it", b"standard input is not a terminal"), ("-t", b"-t needs -i")):
            refused = subprocess.run(self.words(flags, self.pod[0], "--", "sh"), capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(why, refused.stderr)
        absent = subprocess.run([MUSTER, "exec", "--api", "127.0.0.1:1", self.pod[0], "--", "true"], capture_output=True, timeout=30)
        self.assertEqual(absent.returncode, 4)
        (self.seeing.folder / "go").touch()
        self.it.wait("j", finished)
        late = self.run_in(self.pod[0], "true", code=5).stderr
        self.assertIn(b"has ended", late)
        self.assertIn(b"no running pod", self.run_in("job/j", "true", code=5).stderr)

    def test_exec_returns_100_megabytes_to_a_slow_reader(self):
        """Two streams at once, to a reader that pauses until everything is written."""
        self.start()
        size = 100 << 20
        script = f"head -c {size} /dev/zero | tr '\\0' 'x' & head -c {size // 10} /dev/zero >&2; wait; : > $WITNESS/written"
        digest, read, paused = hashlib.sha256(), 0, False
        with tempfile.TemporaryFile() as err:
            process = subprocess.Popen(self.words(self.pod[0], "--", "sh", "-c", script), stdout=subprocess.PIPE, stderr=err,
                                       stdin=subprocess.DEVNULL)
            self.addCleanup(process.stdout.close)
            while part := process.stdout.read(1 << 16):
                digest.update(part)
                read += len(part)
                if read > 20 << 20 and not paused:
                    eventually((self.seeing.folder / "written").exists, "the command has written all")
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

    def test_interrupt_kills_a_command_that_ignores_sigterm(self):
        self.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("trap '' TERM; echo on; while :; do sleep 1; done # marker-of-a-session")
            self.assertEqual(process.stdout.readline(), b"on\n")
            self.assertTrue(self.sessions())  # a child that has not yet called exec also has the marker
            process.send_signal(number)
            self.assertEqual(process.wait(10), 130)
            self.none_left()
        self.assertIn(self.seeing.starts()[0][3], processes_of(self.seeing.folder), "the pod itself runs on")

    def test_command_ends_with_its_pod(self):
        self.start()
        process = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        (self.seeing.folder / "go").touch()
        self.assertEqual(process.wait(20), 137)
        self.it.wait("j", finished)
        self.assertIsNotNone(condition(self.it.api.job("j"), "Complete"))
        self.none_left()

    def test_output_survives_a_coordinator_kill(self):
        self.start()
        self.count_across(self.it.kill_coordinator, self.it.start_coordinator)

    def test_interrupt_works_while_the_coordinator_is_down(self):
        self.start()
        process = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        self.it.kill_coordinator()
        process.send_signal(signal.SIGINT)
        self.it.start_coordinator()
        self.assertEqual(process.wait(20), 130)
        self.none_left()

    def test_output_survives_an_agent_kill(self):
        self.start()
        self.count_across(lambda: self.it.kill_agent("node-0"), lambda: self.it.start_agent("node-0"))

    def test_output_is_kept_when_the_command_ends_unread(self):
        """Its pod ends, too. Output and exit code are still available to a client that comes back."""
        self.start()
        process = self.begin('echo first; until [ -e "$WITNESS/on" ]; do sleep 0.05; done; echo last; : > "$WITNESS/over"; exit 5')
        self.assertEqual(process.stdout.readline(), b"first\n")
        self.it.kill_coordinator()
        (self.seeing.folder / "on").touch()
        eventually((self.seeing.folder / "over").exists, "the command ends")
        (self.seeing.folder / "go").touch()
        eventually(lambda: not processes_of(self.seeing.folder), "the pod ends")
        self.it.start_coordinator()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (5, b"last\n"), err)

    def test_abandoned_session_ends_and_slow_reader_keeps_it(self):
        """A session ends a minute after it was last read and never restarts; a session that is read continues."""
        self.start()
        slow = self.begin(f'head -c {4 << 20} /dev/zero; until [ -e "$WITNESS/on" ]; do sleep 0.1; done; echo last; exit 6')
        self.assertTrue(select.select([slow.stdout], [], [], 20)[0])  # the pipe holds only the first part of the output
        gone = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(gone.stdout.readline(), b"on\n")
        stopped = self.begin('echo on >> "$WITNESS/runs"; echo on; sleep 300 # marker-of-a-session')
        self.assertEqual(stopped.stdout.readline(), b"on\n")
        stopped.send_signal(signal.SIGSTOP)
        gone.kill()
        gone.wait()
        self.none_left(90)
        (self.seeing.folder / "on").touch()
        out, err = slow.communicate(timeout=60)
        self.assertEqual((len(out), out[-5:], slow.returncode), ((4 << 20) + 5, b"last\n", 6), err)
        stopped.send_signal(signal.SIGCONT)
        err = stopped.communicate(timeout=30)[1]
        self.assertEqual(stopped.returncode, 5, err)
        self.assertIn(b"the exit code of the command is not known: the session is over", err)
        self.assertEqual((self.seeing.folder / "runs").read_text(), "on\n")

    def test_session_is_reachable_only_through_its_pod(self):
        self.start(completions=2)
        path = {i: f"/apis/muster.dev/v1/namespaces/default/pods/{pod}/exec" for i, pod in self.pod.items()}
        session = "0123456789abcdef" * 2
        again = {"session": session, "resume": True}

        def post(index, body):
            def served():
                code, answer = self.it.api.call("POST", path[index], body)
                return code != 503 and (code, answer.get("message"))
            return eventually(served, "an answer")
        over = (409, "the session is over")
        self.assertEqual(post(0, again), over)
        self.assertEqual(post(0, {"session": session, "command": ["sleep", "300"]})[0], 201)
        self.assertEqual(post(1, again), (404, "there is no such session"))
        self.it.restart_coordinator()
        self.assertEqual(self.it.api.call("GET", f"{path[0]}?session={session}")[0], 404)
        self.assertEqual(post(1, again), (409, "the session belongs to another pod"))
        self.assertEqual(post(0, again)[0], 201)
        self.assertEqual(self.it.api.call("DELETE", f"{path[0]}?session={session}")[0], 200)
        eventually(lambda: post(0, again) == over, "its end")

    def test_exec_selects_a_container(self):
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

    def test_exec_reaches_every_container_while_it_runs(self):
        self.it = self.cluster(agents=1, slots=4)
        self.seeing = self.witness(self.it)
        folder = self.seeing.folder
        folders = {name: folder / f"in-{name}" for name in ("prepare", "sidecar", "main", "side")}
        for path in folders.values():
            path.mkdir()

        def container(name, until, **more):
            env = [{"name": "WITNESS", "value": str(folder)}, {"name": "WHO", "value": name}]
            script = f"trap 'exit 0' TERM; while [ ! -e \"$WITNESS/{until}\" ]; do sleep 0.05; done"
            return {"name": name, "command": ["sh", "-c", script], "env": env, "workingDir": str(folders[name]), **more}
        job = self.seeing.job("all", WAITS, 1)
        pod = job["spec"]["template"]["spec"]
        pod["initContainers"] = [container("sidecar", "never", restartPolicy="Always"), container("prepare", "prepared")]
        pod["containers"] = [container("main", "go"), container("side", "side-ends")]
        self.submit(self.it, job)

        def run_in(name, code=0):
            done = subprocess.run(self.words("job/all", "-c", name, "--", "sh", "-c", "echo $WHO; pwd"), capture_output=True, timeout=30)
            self.assertEqual(done.returncode, code, done.stderr)
            if code == 0:
                self.assertEqual((done.stdout.decode(), done.stderr), (f"{name}\n{folders[name]}\n", b""))
            return done.stderr.decode()

        def runs(name):
            shown = self.pods_of(self.it, "all")
            status = shown[0]["status"] if shown else {}
            statuses = (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or [])
            return any(one["name"] == name and "running" in one["state"] for one in statuses)

        def over_websocket(name):
            """As kubectl does it: what is printed, and the result."""
            client = WebSocket(self.it.api_addr, self.pods_of(self.it, "all")[0]["metadata"]["name"],
                               f"command=printenv&command=WHO&container={name}&stdout=true")
            self.addCleanup(client.close)
            heard = client.hear_all()
            return heard.get(1, b"").decode(), json.loads(heard[3])

        def refusal(name, words):
            done = subprocess.run(self.words(self.pods_of(self.it, "all")[0]["metadata"]["name"], "-c", name, "--", "true"),
                                  capture_output=True, timeout=30)
            self.assertEqual((done.returncode, done.stderr.decode()), (5, f"muster: {words}\n"))
        eventually(lambda: runs("prepare") and runs("sidecar"), "the init containers run")
        run_in("prepare")
        run_in("sidecar")
        pod_name = self.pods_of(self.it, "all")[0]["metadata"]["name"]
        refusal("main", f"pod {pod_name}: its container does not run")  # as the keeper says: it is the first
        refusal("none", f"container none is not valid for pod {pod_name}")
        self.assertIn("job/all has no pod in which container side is running", run_in("side", code=5))
        self.assertEqual(over_websocket("prepare"), ("prepare\n", {"metadata": {}, "status": "Success"}))
        self.assertEqual(over_websocket("main")[1]["message"], "Internal error occurred: its container does not run")
        (folder / "prepared").touch()
        eventually(lambda: runs("main") and runs("side"), "the containers run")
        for name in ("sidecar", "main", "side"):
            run_in(name)
            self.assertEqual(over_websocket(name)[0], f"{name}\n")
        refusal("prepare", "container prepare is not running")
        # A command ends with its container, not with the pod.
        process = subprocess.Popen(self.words("job/all", "-c", "side", "--", "sh", "-c", "echo on; sleep 300 # marker-of-a-session"),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        self.addCleanup(self.drop, process)
        self.assertEqual(process.stdout.readline(), b"on\n")
        (folder / "side-ends").touch()
        self.assertEqual(process.wait(20), 137)
        self.none_left()
        run_in("main")
        refusal("side", "container side is not running")
        (folder / "go").touch()
        self.it.wait("all", finished)
        self.assertIsNotNone(condition(self.it.api.job("all"), "Complete"))


class Input(Case):
    """Standard input of commands (-i)."""

    def feed(self, *command, **how):
        process = subprocess.Popen(self.words("-i", self.pod[0], "--", *command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **how)
        self.addCleanup(self.drop, process)
        return process

    def test_input_is_passed_unchanged(self):
        self.start()
        for size in (0, 1, 65_536, 5 << 20):
            data = os.urandom(size)
            process = self.feed("sh", "-c", "cat; exit 3")
            out, err = process.communicate(data, timeout=60)
            self.assertEqual((process.returncode, hashlib.sha256(out).hexdigest()), (3, hashlib.sha256(data).hexdigest()), err)
        self.none_left()

    def test_input_is_read_as_it_is_written(self):
        self.start()
        process = self.feed("cat")
        for word in (b"one\n", b"two\n"):
            process.stdin.write(word)
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), word)
        process.stdin.close()
        self.assertEqual(process.wait(10), 0)

    def test_command_may_leave_input_unread(self):
        self.start()
        with tempfile.TemporaryFile() as big:
            big.truncate(50 << 20)
            done = subprocess.run(self.words("-i", self.pod[0], "--", "head", "-c", "10"), stdin=big, capture_output=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (0, bytes(10)), done.stderr)
        closed = self.feed("sh", "-c", "exec <&-; echo on; until [ -e $WITNESS/on ]; do sleep 0.05; done; exit 4")
        self.assertEqual(closed.stdout.readline(), b"on\n")
        closed.stdin.write(b"for nobody")
        closed.stdin.flush()
        (self.seeing.folder / "on").touch()
        self.assertEqual(closed.wait(20), 4)

    def test_unread_input_is_bounded_and_interruptible(self):
        """No more than a few hundred KiB are in flight, and the command can be interrupted."""
        self.start()
        process = self.feed("sh", "-c", "echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        os.set_blocking(process.stdin.fileno(), False)
        taken, idle_since = 0, time.monotonic()
        while time.monotonic() - idle_since < 2:
            if not select.select([], [process.stdin], [], 0.1)[1]:
                continue
            taken += os.write(process.stdin.fileno(), bytes(1 << 16))
            idle_since = time.monotonic()
            self.assertLess(taken, 1 << 20)
        self.assertGreaterEqual(taken, 1 << 16)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 130)
        self.none_left()

    def killed_meanwhile(self, kill, again):
        self.start()
        data = os.urandom(8 << 20)
        # The command stops reading halfway, so that input is waiting everywhere.
        process = self.feed("sh", "-c", 'head -c 1000000; : > $WITNESS/half; until [ -e $WITNESS/on ]; do sleep 0.02; done; exec cat')
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.seek(0)
            feeder = subprocess.Popen(["cat"], stdin=file, stdout=process.stdin)
        process.stdin.close()
        process.stdin = None
        eventually((self.seeing.folder / "half").exists, "it has read some of it")
        kill()
        (self.seeing.folder / "on").touch()
        again()
        out, err = process.communicate(timeout=60)
        feeder.wait(10)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual((len(out), hashlib.sha256(out).hexdigest()), (len(data), hashlib.sha256(data).hexdigest()), err)

    def test_input_survives_a_coordinator_kill(self):
        self.killed_meanwhile(lambda: self.it.kill_coordinator(), lambda: self.it.start_coordinator())

    def test_input_survives_an_agent_kill(self):
        self.killed_meanwhile(lambda: self.it.kill_agent("node-0"), lambda: self.it.start_agent("node-0"))

    def test_input_survives_kills_of_agent_and_coordinator(self):
        self.start()
        data = os.urandom(24 << 20)
        process = self.feed("cat")
        feeder = threading.Thread(target=lambda: (process.stdin.write(data), process.stdin.close()))
        feeder.start()
        out = b""
        for _ in range(4):
            out += process.stdout.read(3 << 20)
            self.it.kill_agent("node-0")
            self.it.kill_coordinator()
            self.it.start_agent("node-0")
            self.it.start_coordinator()
        out += process.stdout.read()
        feeder.join(10)
        self.assertEqual(process.wait(10), 0, process.stderr.read())
        self.assertEqual((len(out), hashlib.sha256(out).hexdigest()), (len(data), hashlib.sha256(data).hexdigest()))

    def test_wrong_input_offsets_are_not_taken(self):
        self.start()
        path = f"/apis/muster.dev/v1/namespaces/default/pods/{self.pod[0]}/exec"
        session = "0123456789abcdef" * 2

        def put(offset, data=b"", eof=0, id=session):
            done = subprocess.run(["curl", "-s", "-X", "PUT", "--data-binary", "@-", "-H", "Content-Type: application/octet-stream",
                                   f"http://{self.it.api_addr}{path}?session={id}&offset={offset}&eof={eof}"],
                                  input=data, capture_output=True, timeout=30)
            answer = json.loads(done.stdout)
            return answer.get("code") or (answer["taken"], answer["closed"])
        self.assertEqual(self.it.api.call("POST", path, {"session": session, "command": ["cat"], "stdin": True})[0], 201)
        self.assertEqual(put(0, b"hello"), (5, False))
        self.assertEqual(put(1000, b"beyond"), (5, False))
        self.assertEqual(put(2**64 - 1, b"beyond", 1), (5, False))
        self.assertEqual(put(2**64, b"x"), 400)
        self.assertEqual(put(-1, b"x"), 400)
        self.assertEqual(put(5, bytes((64 << 10) + 1)), 413)
        self.assertEqual(put(5, b"x", id="f" * 32), 404)
        self.assertEqual(put(0, b"HELLO world"), (11, False))
        self.assertEqual(put(11, b"", 1), (11, True))
        self.assertEqual(put(11, b"late"), (11, True))
        output = eventually(lambda: (found := self.it.api.call("GET", f"{path}?session={session}")[1])["ended"] and found, "its end")
        self.assertEqual(output["stdout"], "aGVsbG8gd29ybGQ=")
        other = "fedcba9876543210" * 2
        self.assertEqual(self.it.api.call("POST", path, {"session": other, "command": ["cat"]})[0], 201)
        self.assertEqual(put(0, b"x", id=other), (0, True))


class Terminal(Case):
    """Commands in a terminal (-it)."""

    def shell_at_a_terminal(self, **how):
        typist = self.at_a_terminal("sh", "-i", **how)
        typist.type("PS1=; echo re''ady\n")
        typist.sees("ready\r\n")
        return typist

    def test_interactive_shell_has_size_signals_and_exit_code(self):
        self.start()
        typist = self.shell_at_a_terminal(rows=33, columns=101)
        typist.type("echo $TERM $MUSTER_POD_NAME; stty size; test -t 0 && test -t 1 && test -t 2 && echo al''l\n")
        typist.sees(f"vt220 {self.pod[0]}\r\n33 101\r\nall\r\n")
        # SIGWINCH and Ctrl-C go to the foreground process.
        typist.type("sh -c 'trap \"stty size\" WINCH; echo $$ > $WITNESS/pid; while :; do sleep 0.05; done'\n")
        pid = self.command_pid("pid")
        typist.resize(44, 55)
        typist.sees("44 55\r\n")
        typist.type("\x03")
        eventually(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "its end")
        typist.type("echo code $?\n")
        typist.sees("code 130\r\n")
        typist.type("exit 7\n")
        self.assertEqual(typist.wait(), 7)
        self.none_left()

    def test_keys_are_echoed_at_once(self):
        self.start()
        typist = self.at_a_terminal("sh", "-c", "echo on; cat")
        typist.sees("on\r\n")
        took = []
        for _ in range(40):
            began = time.monotonic()
            typist.type("x")
            typist.sees("x")
            took.append(time.monotonic() - began)
        took.sort()
        print(f"a key is echoed after {took[20] * 1000:.1f} ms (median), {took[-1] * 1000:.1f} ms (longest)", file=sys.stderr)
        self.assertLess(took[20], 2, "it would be seconds if one request waited for the other")
        typist.type("\n\x04")
        self.assertEqual(typist.wait(), 0)

    def test_the_terminal_is_restored(self):
        self.start()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            typist = self.at_a_terminal("sh", "-c", "echo on; sleep 300 # marker-of-a-session")
            typist.sees("on\r\n")
            self.assertNotEqual(termios.tcgetattr(typist.slave), typist.modes)
            typist.process.send_signal(number)
            self.assertEqual(typist.wait(), 130)
            self.none_left()
        missing = self.at_a_terminal("no-such-program")
        self.assertEqual(missing.wait(), 127)
        missing.sees("exec no-such-program: No such file or directory")
        gone = Typist(self.words("-it", "nobody-0-abcde", "--", "sh"))
        self.addCleanup(gone.close)
        self.assertEqual(gone.wait(), 3)
        (self.seeing.folder / "go").touch()
        self.it.wait("j", finished)
        over = self.at_a_terminal("sh")
        self.assertEqual(over.wait(), 5)
        over.sees("has ended")

    def test_shell_ends_with_its_pod(self):
        self.start()
        typist = self.shell_at_a_terminal()
        (self.seeing.folder / "go").touch()
        self.assertEqual(typist.wait(), 137)
        self.it.wait("j", finished)
        self.assertEqual(processes_of(self.seeing.folder), [])

    def test_shell_survives_kills_of_coordinator_and_agent(self):
        self.start()
        typist = self.shell_at_a_terminal()
        typist.type("x=still\n")
        self.it.kill_coordinator()
        typist.type("echo $x-he''re\n")
        self.it.start_coordinator()
        typist.sees("still-here\r\n")
        self.it.kill_agent("node-0")
        typist.resize(10, 20)
        typist.type("until [ \"$(stty size)\" = '10 20' ]; do sleep 0.05; done; echo si''zed\n")
        self.it.start_agent("node-0")
        typist.sees("sized\r\n")
        typist.type("exit 3\n")
        self.assertEqual(typist.wait(), 3)

    def test_closed_terminal_leaves_no_processes(self):
        self.start()
        typist = self.at_a_terminal("sh", "-c", "trap '' HUP; echo on; sleep 300 & wait # marker-of-a-session")
        typist.sees("on\r\n")
        os.close(typist.master)
        typist.master = os.open("/dev/null", os.O_RDONLY)
        self.assertEqual(typist.process.wait(20), 130)
        self.none_left()


class WebSocket:
    """The client's end of a WebSocket to a pod's exec, which can also break the protocol (RFC 6455)."""

    def __init__(self, api_addr, pod, query, protocol="v5.channel.k8s.io"):
        host, port = api_addr.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.sendall((f"GET /api/v1/namespaces/default/pods/{pod}/exec?{query} HTTP/1.1\r\nHost: {api_addr}\r\n"
                             "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        self.head = b"".join(iter(self.file.readline, b"\r\n")).decode()

    @staticmethod
    def frame(opcode, payload, last=True, mask=b"mask"):
        size = len(payload)
        length = bytes([size]) if size < 126 else b"\x7e" + struct.pack(">H", size) if size < 1 << 16 else b"\x7f" + struct.pack(">Q", size)
        masked = bytes(a ^ b for a, b in zip(payload, itertools.cycle(mask)))
        return bytes([(0x80 if last else 0) | opcode, 0x80 | length[0]]) + length[1:] + mask + masked

    def say(self, channel, payload):
        self.socket.sendall(self.frame(2, bytes([channel]) + payload))

    def hear(self):
        """The next frame, (opcode, payload); None at the end of the connection."""
        try:
            head = self.file.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7f
            if size > 125:
                size = int.from_bytes(self.file.read(2 if size == 126 else 8), "big")
            return head[0] & 15, self.file.read(size)
        except ConnectionError:
            return None

    def hear_all(self):
        """The payloads of each channel, until the Close."""
        channels = {}
        while (heard := self.hear()) is not None:
            opcode, payload = heard
            if opcode == 8:
                channels["close"] = int.from_bytes(payload[:2], "big")
                break
            if opcode == 2:
                channels[payload[0]] = channels.get(payload[0], b"") + payload[1:]
        return channels

    def close(self):
        self.file.close()
        self.socket.close()


class Channels(Case):
    """The protocol of `kubectl exec`, without kubectl, and peers that break it."""

    def connect(self, command, wishes="stdin=true&stdout=true&stderr=true", **how):
        query = "&".join(f"command={urllib.parse.quote(word)}" for word in command)
        client = WebSocket(self.it.api_addr, self.pod[0], f"{query}&{wishes}", **how)
        self.addCleanup(client.close)
        self.assertIn(" 101 ", client.head.splitlines()[0])
        self.assertEqual(client.hear(), (2, b"\1"))
        return client

    def test_channels_of_both_versions(self):
        self.start()
        for version in ("v5", "v4"):
            client = self.connect(["sh", "-c", "head -c 5; echo err >&2; exit 7"], protocol=f"v1.channel.k8s.io, {version}.channel.k8s.io")
            self.assertIn(f"Sec-WebSocket-Protocol: {version}.channel.k8s.io\r\n", client.head)
            client.say(0, b"hello")
            heard = client.hear_all()
            self.assertEqual((heard[1], heard[2], heard["close"]), (b"hello", b"err\n", 1000))
            status = json.loads(heard[3])
            self.assertEqual((status["status"], status["reason"], status["details"]["causes"]),
                             ("Failure", "NonZeroExitCode", [{"reason": "ExitCode", "message": "7"}]))
        client = self.connect(["cat"])
        client.say(0, b"all")
        client.say(255, b"\0")
        heard = client.hear_all()
        self.assertEqual((heard[1], json.loads(heard[3])["status"]), (b"all", "Success"))
        self.none_left()

    def test_pings_of_a_quiet_session_are_answered(self):
        """kubectl gives up a session whose pings are not answered for a minute."""
        self.start()
        client = self.connect(["sh", "-c", "sleep 300 # marker-of-a-session"])
        for ping in (b"a", b"b", b"c"):
            client.socket.sendall(WebSocket.frame(9, ping))
            while (heard := client.hear())[0] != 10:
                self.assertEqual(heard, (2, b"\1"))
            self.assertEqual(heard, (10, ping))

    def test_peer_that_breaks_the_protocol_is_cut_off(self):
        self.start()
        frame = WebSocket.frame
        for name, bad in {"too long": frame(2, bytes(300 << 10)), "a lie about the length": b"\x82\xff" + b"\x7f" * 8 + b"mask",
                          "no beginning": frame(0, b"x"), "unfinished": frame(2, b"\0a", last=False) + frame(2, b"\0b"),
                          "a ping in parts": frame(9, b"x", last=False), "unknown": frame(3, b"x"),
                          "pings without end": frame(9, b"") * (1 << 18), "fragments without end": frame(2, b"", last=False) + frame(0, b"", last=False) * (1 << 18),
                          "unmasked pongs without end": b"\x8a\0" * (1 << 20)}.items():
            with self.subTest(name):
                client = self.connect(["sh", "-c", "echo on; sleep 300 # marker-of-a-session"])
                self.assertEqual(client.hear(), (2, b"\1on\n"))
                threading.Thread(target=self.send, args=(client, bad)).start()
                while client.hear() is not None:
                    pass
                self.none_left()
                self.assertEqual(self.it.api.call("GET", "/readyz")[0], 200)

    @staticmethod
    def send(client, data):
        with contextlib.suppress(OSError):  # it is cut off
            client.socket.sendall(data)

    def test_flood_keeps_nobody_waiting(self):
        self.start()
        client = self.connect(["sh", "-c", "cat > /dev/null # marker-of-a-session"])
        stop = threading.Event()

        def flood():
            data = WebSocket.frame(2, b"\7for no channel") * 4096
            with contextlib.suppress(OSError):
                while not stop.is_set():
                    client.socket.sendall(data)
        thread = threading.Thread(target=flood)
        thread.start()
        try:
            for _ in range(20):
                began = time.monotonic()
                self.assertEqual(self.it.api.call("GET", self.it.api.jobs())[0], 200)
                self.assertLess(time.monotonic() - began, 5)
        finally:
            stop.set()
            thread.join()

    def test_client_that_reads_nothing_costs_little_and_may_vanish(self):
        self.start()
        client = self.connect(["sh", "-c", "head -c 200000000 /dev/zero; : > $WITNESS/written; sleep 300 # marker-of-a-session"])
        eventually((self.seeing.folder / "written").exists, "the command is not held up", 60)
        status = pathlib.Path(f"/proc/{self.it.coord.pid}/status").read_text()
        self.assertLess(int(re.search(r"VmRSS:\s+(\d+)", status)[1]), 150 << 10, "KiB")
        client.close()
        self.none_left()


class WithKubectl(Case):
    """`kubectl exec` and `cp`, unmodified, over WebSocket."""

    def setUp(self):
        if VERSION < (1, 31):
            self.skipTest("kubectl exec over WebSocket needs kubectl 1.31")

    def start(self, completions=1, **cluster):
        super().start(completions, **cluster)
        self.home = self.it.dir / "home"
        self.home.mkdir()
        self.env = {**os.environ, "HOME": str(self.home), "KUBECONFIG": str(self.home / "none")}

    def words(self, *args):
        """Of `kubectl exec`, so that the other helpers use it."""
        return [KUBECTL, "--server", f"http://{self.it.api_addr}", "exec", *args]

    def kubectl(self, *args, code=0):
        done = subprocess.run([KUBECTL, "--server", f"http://{self.it.api_addr}", *map(str, args)], capture_output=True, env=self.env,
                              stdin=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def test_streams_exit_codes_and_errors(self):
        self.start()
        done = self.shell("echo out; echo err >&2; echo $MUSTER_POD_NAME; exit 7", code=7)
        self.assertEqual(done.stdout.decode(), f"out\n{self.pod[0]}\n")
        self.assertEqual(done.stderr.decode(), "err\ncommand terminated with exit code 7\n")
        self.assertIn(b"No such file", self.run_in(self.pod[0], "/no/such/program", code=127).stderr)
        self.assertIn(b'pods "nobody" not found', self.run_in("nobody", "true", code=1).stderr)
        self.assertIn(b"container x is not valid", self.kubectl("exec", self.pod[0], "-c", "x", "--", "true", code=1).stderr)
        self.assertEqual(self.kubectl("exec", self.pod[0], "-c", "main", "--", "echo", "hi").stdout, b"hi\n")
        data = bytes(range(256)) * (64 << 10)
        echo = subprocess.run(self.words("-i", self.pod[0], "--", "cat"), input=data, capture_output=True, env=self.env, timeout=120)
        self.assertEqual(echo.returncode, 0, echo.stderr)
        self.assertEqual(hashlib.sha256(echo.stdout).hexdigest(), hashlib.sha256(data).hexdigest())
        # A command that leaves its input unread.
        some = subprocess.run(self.words("-i", self.pod[0], "--", "head", "-c", "3"), input=data, capture_output=True, env=self.env, timeout=60)
        self.assertEqual((some.returncode, some.stdout), (0, data[:3]), some.stderr)

    def test_shell_at_a_terminal(self):
        self.start()
        typist = self.at_a_terminal("sh", "-i", rows=33, columns=101, HOME=str(self.home))
        typist.type("PS1=; echo re''ady\n")
        typist.sees("ready\r\n")
        typist.type("stty size; test -t 0 && test -t 2 && echo al''l\n")
        typist.sees("33 101\r\nall\r\n")
        typist.resize(44, 55)
        os.kill(typist.process.pid, signal.SIGWINCH)
        typist.type("until [ \"$(stty size)\" = '44 55' ]; do sleep 0.05; done; echo si''zed\n")
        typist.sees("sized\r\n")
        typist.type("sh -c 'echo $$ > $WITNESS/pid; exec sleep 300' # marker-of-a-session\n")
        pid = self.command_pid("pid")
        typist.type("\x03")
        eventually(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "its end")
        typist.type("echo code $?\n")
        typist.sees("code 130\r\n")
        typist.type("exit 7\n")
        self.assertEqual(typist.wait(), 7)
        self.none_left()

    def test_cp_copies_directories_both_ways(self):
        self.start()
        source, there, back = (self.it.dir / name for name in ("source", "there", "back"))
        (source / "sub").mkdir(parents=True)
        there.mkdir()
        (source / "big").write_bytes(os.urandom(5 << 20))
        (source / "sub" / "small").write_text("text")
        self.kubectl("cp", source, f"{self.pod[0]}:{there}/copy")
        self.kubectl("cp", f"{self.pod[0]}:{there}/copy", back)
        for folder in (there / "copy", back):
            self.assertEqual((folder / "big").read_bytes(), (source / "big").read_bytes())
            self.assertEqual((folder / "sub" / "small").read_text(), "text")

    def test_command_ends_with_its_client_and_survives_an_agent_kill(self):
        self.start()
        process = self.begin("trap '' TERM HUP; echo on; while :; do sleep 1; done # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        process.kill()
        process.wait()
        self.none_left()
        self.count_across(lambda: self.it.kill_agent("node-0"), lambda: self.it.start_agent("node-0"))

    def test_slow_reader_gets_everything(self):
        self.start()
        size = 50 << 20
        process = self.begin(f"head -c {size} /dev/zero; : > $WITNESS/written")
        eventually((self.seeing.folder / "written").exists, "the command has written all, unread")
        out, err = process.communicate(timeout=120)
        self.assertEqual((process.returncode, len(out)), (0, size), err)

    def test_coordinator_that_ends_ends_the_command(self):
        self.start()
        process = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        self.it.restart_coordinator()
        self.assertNotEqual(process.wait(30), 0)
        self.none_left(90)


RING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, size, sum = 0, code = argc > 1 ? atoi(argv[1]) : 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const char *pod = getenv("MUSTER_POD_NAME"), *a = getenv("PASSED_A"), *b = getenv("PASSED_B");
  printf("rank %d of %d sum %d pod %s a %s b %s\n", rank, size, sum, pod ? pod : "-", a ? a : "-", b ? b : "-");
  fflush(stdout);
  MPI_Finalize();
  return rank == 0 ? code : 0;
}
"""


class Mpirun(unittest.TestCase):
    """`muster mpirun` with each MPI, on this machine, without a coordinator."""
    KINDS = {"openmpi": ("mpicc.openmpi", "mpirun.openmpi"), "mpich": ("mpicc.mpich", "mpiexec.hydra")}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="muster-mpirun-")
        cls.dir = pathlib.Path(cls.folder.name)
        (cls.dir / "ring.c").write_text(RING)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def program(self, kind):
        compiler, launcher = self.KINDS[kind]
        for tool in (compiler, launcher):
            if shutil.which(tool) is None:
                self.skipTest(f"{tool} is not installed")
        program = self.dir / f"ring.{kind}"
        if not program.exists():
            subprocess.run([compiler, self.dir / "ring.c", "-o", program], check=True, timeout=120)
        return str(program)

    def mpirun(self, *args, code=0, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("MUSTER_", "OMPI_"))}
        if os.geteuid() == 0:
            clean.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run([MUSTER, "mpirun", "--timeout", "60s", *map(str, args)], text=True, capture_output=True, timeout=120,
                              cwd=self.dir, stdin=subprocess.DEVNULL, env={**clean, **env})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def ranks(self, done):
        """The words that each rank printed, ordered by rank."""
        return sorted((line.split() for line in re.findall(r"rank \d+ of \d+ sum .*", done.stdout)), key=lambda words: int(words[1]))

    def check(self, kind):
        program = self.program(kind)
        done = self.mpirun("-N", 3, "--oversubscribe", "--mpi", kind, "--name", "ring", "-x", "PASSED_A", "-x", "PASSED_B=two words", "--", program,
                           PASSED_A="1", SLURM_JOB_ID="7", SLURM_NODELIST="nowhere", PMI_RANK="5", OMPI_MCA_plm_rsh_agent="none")
        ranks = self.ranks(done)
        self.assertEqual([" ".join(words[:6]) for words in ranks], [f"rank {i} of 3 sum 3" for i in range(3)], done.stdout)
        self.assertEqual(len({words[7] for words in ranks}), 3, "each rank in its own pod: " + done.stdout)
        for words in ranks:
            self.assertEqual(" ".join(words[8:]), "a 1 b two words")
        self.assertIn("job/ring Complete: the leader (index 0) succeeded, took", done.stderr)

        done = self.mpirun("-N", 2, "--slots", 2, "-np", 3, "--oversubscribe", "--tag-output", "--mpi", kind, "--", program)
        self.assertEqual(len(self.ranks(done)), 3, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^\[[^\]]*1\]" if kind == "mpich" else r"(?m)^\[1,1\]<stdout>:")

        failed = self.mpirun("-N", 2, "--mpi", kind, "--name", "bad", "--", program, 7, code=7)
        self.assertIn("job/bad Failed: the leader (index 0) failed", failed.stderr)

    def test_mpirun_runs_with_openmpi(self):
        self.check("openmpi")

    def test_mpirun_runs_with_mpich(self):
        self.check("mpich")

    def test_mpirun_runs_with_the_installed_launcher(self):
        version = subprocess.run(["mpirun", "--version"], text=True, capture_output=True).stdout if shutil.which("mpirun") else ""
        kind = "openmpi" if "Open MPI" in version else "mpich" if "HYDRA" in version else None
        if kind is None:
            self.skipTest("mpirun is not installed")
        done = self.mpirun("-N", 2, "--", self.program(kind))
        self.assertEqual(len(self.ranks(done)), 2, done.stdout)

    def test_on_a_coordinator(self):
        program = self.program("openmpi")
        with Cluster(agents=2, slots=2) as cluster:
            cluster.wait_nodes()
            done = self.mpirun("--api", cluster.api_addr, "-N", 3, "--mpi", "openmpi", "--", program)
            self.assertEqual(len(self.ranks(done)), 3, done.stdout)
            job, = cluster.api.call("GET", cluster.api.jobs())[1]["items"]
            self.assertEqual(job["metadata"]["annotations"]["muster.dev/mpi"], "openmpi,slots=1")
            self.assertEqual(json.dumps(job["spec"]["successPolicy"]["rules"][0]["succeededIndexes"]), '"0"')

    def test_more_ranks_than_this_machine_has_cpus_are_refused(self):
        cpus = len(os.sched_getaffinity(0))
        done = self.mpirun("-N", 1, "--slots", cpus + 1, "--", "true", code=2)
        self.assertEqual(done.stderr, f"muster: mpirun: this machine has {cpus} CPU{'s' * (cpus > 1)}, and a pod needs {cpus + 1}; select a coordinator "
                         "whose nodes have more with --api or MUSTER_API, or let ranks share CPUs with --oversubscribe\n")
        self.assertIn(f"{cpus + 1} pods that start together need 1 each", self.mpirun("-N", cpus + 1, "--", "true", code=2).stderr)
        self.assertIn("3 each", self.mpirun("-N", cpus, "--cpus-per-rank", 3, "--", "true", code=2).stderr)

    def test_mpirun_reports_a_missing_launcher(self):
        done = self.mpirun("-N", 2, "--name", "none", "--", "/no/such/program", code=127, PATH=str(self.dir))
        self.assertIn("mpirun", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
