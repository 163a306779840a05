"""The witness of the pods in virtual machines: records each start and end before the pod (pod.c) continues.

It runs on the host, so it knows what the machines did even if their disks have forgotten. Each machine has its own listener.
"""
import contextlib
import dataclasses
import socket
import threading
import time


@dataclasses.dataclass
class Run:
    """One process of a pod."""
    job: str
    index: int
    attempt: int
    machine: str
    boot: int
    code: int | None = None  # None: killed, or its machine lost power

    @property
    def pod(self):
        return self.job, self.index, self.attempt


class Witness:
    """Everything the machines have run. `plan(job, index, attempt)` returns a pod's run time in milliseconds and its exit code."""

    def __init__(self, plan):
        self.plan = plan
        self.lock = threading.Lock()
        self.runs, self.live, self.wrong = [], {}, []

    def started(self, run):
        with self.lock:
            other = self.live.get((run.job, run.index))
            if other:
                self.wrong.append(f"{run.job}/{run.index}: attempt {run.attempt} on {run.machine} began beside attempt {other.attempt} on {other.machine}")
            self.live[run.job, run.index] = run
            self.runs.append(run)

    def ended(self, run, code, killed):
        with self.lock:
            if killed:
                self.wrong.append(f"{run.pod} was killed on {run.machine}, which had power")
            run.code = code
            if self.live.get((run.job, run.index)) is run:
                del self.live[run.job, run.index]

    def ends(self):
        with self.lock:
            return sum(run.code is not None for run in self.runs)


class Listener(threading.Thread):
    """Receives the reports of one machine's pods."""

    def __init__(self, witness, machine, is_cut):
        """`is_cut` is an event that is set while the machine has no power."""
        super().__init__(daemon=True)
        self.witness, self.machine, self.is_cut, self.boot = witness, machine, is_cut, 0
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.lock, self.threads = threading.Lock(), []
        self.start()

    def run(self):
        while True:
            try:
                link, _ = self.socket.accept()
            except OSError:
                return
            thread = threading.Thread(target=self.serve, args=(link,), daemon=True)
            with self.lock:
                thread.start()
                self.threads = [one for one in self.threads if one.is_alive()] + [thread]

    def serve(self, link):
        with link, contextlib.suppress(OSError), link.makefile("r") as lines:
            words = lines.readline().split()
            if len(words) != 4:
                return
            _, job, index, attempt = words
            run = Run(job, int(index), int(attempt), self.machine, self.boot)
            ms, code = self.witness.plan(run.job, run.index, run.attempt)
            self.witness.started(run)
            with contextlib.suppress(OSError):
                link.sendall(b"%d %d\n" % (ms, code))
            words = []
            with contextlib.suppress(OSError):
                words = lines.readline().split()
            ended = len(words) == 2
            # The client deletes only finished jobs, and a failing job has one index, so only a power cut can kill a pod.
            self.witness.ended(run, int(words[1]) if ended else None, killed=not ended and not self.is_cut.is_set())
            link.sendall(b"ok\n")

    def power_is_off(self):
        """Call once QEMU has exited: waits until everything its pods sent has been recorded."""
        deadline = time.monotonic() + 20
        with self.lock:
            threads = list(self.threads)
        for thread in threads:
            thread.join(max(0, deadline - time.monotonic()))
        self.boot += 1

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
