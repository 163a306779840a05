"""Shared by the end-to-end suites: a cluster of real processes, a witness written by its pods, and a client that remembers every status.

The driver is tests/conformance/harness.py; MUSTER names the executable.
Every wait polls with a deadline.
"""
import contextlib
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import unittest

from index_text import indexes  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[3]
os.environ.setdefault("MUSTER", str(ROOT / "build" / "release" / "muster"))
sys.path.insert(0, str(ROOT / "tests/conformance"))
from harness import Cluster, condition, finished, sh_job  # noqa: E402,F401

PAUSE = 0.02  # seconds between two polls


def eventually(look, what, timeout=20):
    """Polls look() and returns its first true result. An unreachable coordinator counts as false."""
    deadline = time.monotonic() + timeout
    answer = None
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            answer = look()
            if answer:
                return answer
        time.sleep(PAUSE)
    raise AssertionError(f"{what}: not in {timeout} s; last: {answer!r}")


def start_daemon(command, folder, **more):
    """Starts a muster daemon; its output goes to VERB.log in the folder."""
    command = list(map(str, command))
    verb = next(word for word in command if word in ("coordinator", "agent"))
    with open(pathlib.Path(folder) / f"{verb}.log", "ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **more)


def untaint(cluster):
    """Lets any job run on the hollow nodes."""
    for node in eventually(lambda: cluster.api.call("GET", "/api/v1/nodes")[1]["items"], "a node"):
        cluster.api.call("PATCH", f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"taints": None}},
                         "application/merge-patch+json")


def processes_of(folder):
    """Processes whose environment names this folder: the pods of one test."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            environment = pathlib.Path("/proc", pid, "environ").read_bytes().split(b"\0")
            state = pathlib.Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0]
            if f"WITNESS={folder}".encode() in environment and state != "Z":
                found.append(int(pid))
    return found


def parent(pid):
    return int(pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[1])


class Witness:
    """The ground truth, written by the pods: one line at the start and one before exit, each a single append."""

    # In a manifest, $$ becomes $ for the shell.
    SCRIPT = (
        'i=${JOB_COMPLETION_INDEX:-$MUSTER_POD_NAME}; a=$MUSTER_ATTEMPT; '
        'printf "%s %s start %s\\n" "$i" "$a" $$$$ >> "$WITNESS/lines"; '
        "WORK; "
        'printf "%s %s end %s\\n" "$i" "$a" "$code" >> "$WITNESS/lines"; exit "$code"'
    )

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.path = self.folder / "lines"

    def job(self, name, work, completions, **spec):
        """An Indexed job whose pods do `work`, which sets $code from $i and $a."""
        job = sh_job(name, self.SCRIPT.replace("WORK", work), completions, **spec)
        job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "WITNESS", "value": str(self.folder)}]
        return job

    def lines(self):
        return self.read(self.path)

    @staticmethod
    def read(path):
        """(index, attempt, "start" or "end", pid or exit code), in order. A torn last line is left out."""
        if not path.exists():
            return []
        whole = path.read_text().rpartition("\n")[0].splitlines()
        return [(int(i), int(a), what, int(value)) for i, a, what, value in (line.split() for line in whole)]

    def ends(self):
        return [line for line in self.lines() if line[2] == "end"]

    def starts(self):
        return [line for line in self.lines() if line[2] == "start"]

    def check(self, test):
        """No attempt was started twice, and no index had two live pods."""
        live, seen = {}, set()
        for index, attempt, what, _ in self.lines():
            if what == "start":
                test.assertNotIn((index, attempt), seen, f"attempt {attempt} of index {index} was started twice")
                test.assertNotIn(index, live, f"attempt {attempt} of index {index} began while {live.get(index)} was alive")
                seen.add((index, attempt))
                live[index] = attempt
            else:
                test.assertEqual(live.pop(index, None), attempt, f"index {index}")
        test.assertEqual(live, {}, "started and never ended")


class Memory(threading.Thread):
    """A client that polls a job and remembers every status: no status that was shown may be taken back."""

    def __init__(self, cluster, name):
        super().__init__(daemon=True)
        self.cluster, self.name = cluster, name
        self.stopping = threading.Event()
        self.wrong = []
        self.reads = 0
        self.start()

    def run(self):
        before = {}
        while not self.stopping.wait(PAUSE):
            try:
                code, job = self.cluster.api.call("GET", f"{self.cluster.api.jobs()}/{self.name}", timeout=5)
            except OSError:
                continue
            if code == 503 or code == 429:
                continue
            if code != 200:
                self.wrong.append(f"an accepted job answers {code}")
                continue
            self.reads += 1
            before = self.compare(before, job)

    def compare(self, before, job):
        status = job.get("status", {})
        now = {
            "version": int(job["metadata"]["resourceVersion"]),
            "succeeded": status.get("succeeded", 0),
            "failed": status.get("failed", 0),
            "completed": indexes(status.get("completedIndexes")),
            "failed_indexes": indexes(status.get("failedIndexes")),
            "start": status.get("startTime"),
            "completion": status.get("completionTime"),
            "conditions": {c["type"] for c in status.get("conditions") or [] if c["status"] == "True"},
        }
        for key, old in before.items():
            new = now[key]
            kept = (old is None or new == old) if key in ("start", "completion") else new >= old
            if not kept:
                self.wrong.append(f"{key} went from {old} to {new}")
        if status.get("ready", 0) > status.get("active", 0):
            self.wrong.append(f"ready {status.get('ready')} is above active {status.get('active')}")
        if now["completed"] & now["failed_indexes"]:
            self.wrong.append(f"completed and failed: {now['completed'] & now['failed_indexes']}")
        return now

    def end(self, test):
        self.stopping.set()
        self.join(10)
        test.assertEqual(self.wrong, [])
        test.assertGreater(self.reads, 0, "the job was never read")


class World(unittest.TestCase):
    """A test with its own cluster; a failure prints the end of every log."""

    def cluster(self, *args, kind=Cluster, **kwargs):
        made = kind(*args, **kwargs)
        self.addCleanup(self.end, made)
        made.wait_nodes()
        return made

    def end(self, cluster):
        outcome = self._outcome.result
        if any(test is self for test, _ in [*outcome.failures, *outcome.errors]):
            for log in sorted(cluster.dir.glob("*.log")):
                print(f"---- {log.name}\n{log.read_text(errors='replace')[-3000:]}")
            self.tell_open(cluster)
        self.end_agents(cluster)
        cluster.close()
        self.sweep(cluster.dir / "witness")  # ends whatever a failed test left running

    @staticmethod
    def end_agents(cluster):
        """Ends the agents before their coordinator: without one, an agent waits seconds for its reports to be acknowledged."""
        agents = [agent for agent in cluster.agents.values() if agent.poll() is None]
        for agent in agents:
            agent.terminate()
        for agent in agents:
            with contextlib.suppress(subprocess.TimeoutExpired):
                agent.wait(5)

    @staticmethod
    def tell_open(cluster):
        """Prints what has not ended according to the witness, /proc and the API. If they differ, something was lost."""
        with contextlib.suppress(OSError, AssertionError):
            for pod in cluster.api.pods():
                if pod["status"]["phase"] in ("Pending", "Running"):
                    print(f"open: pod {pod['metadata']['name']} {pod['status']['phase']} on {pod['spec'].get('nodeName')}, "
                          f"pid {pod['metadata'].get('annotations', {}).get('muster.dev/pid')}")
        folder = cluster.dir / "witness"
        if folder.exists():
            lines = Witness.read(folder / "lines")
            ended = {line[:2] for line in lines if line[2] == "end"}
            for index, attempt, what, pid in lines:
                if what == "start" and (index, attempt) not in ended:
                    print(f"open: index {index} attempt {attempt} wrote its start as pid {pid} and no end")
            print(f"open: processes of pods: {processes_of(folder)}")

    @staticmethod
    def sweep(witness):
        for pid in processes_of(witness):
            with contextlib.suppress(OSError):
                os.kill(pid, 9)

    def witness(self, cluster):
        return Witness(cluster.dir / "witness")

    def submit(self, cluster, job):
        code, answer = cluster.api.create(job)
        self.assertEqual(code, 201, answer)
        return answer

    def seen(self, witness, pids):
        """Checks that the scan of /proc finds these processes; otherwise nothing_left() would prove nothing."""
        self.assertLessEqual(set(pids), set(processes_of(witness.folder)))

    def nothing_left(self, witness):
        eventually(lambda: not processes_of(witness.folder), "no process of a pod is left", 10)

    def keeper_of(self, cluster, node):
        """The pid of the node's keeper; its children look like it until they call exec."""
        work_dir = str(cluster.dir / node)

        def keepers():
            return [int(pid) for pid in filter(str.isdigit, os.listdir("/proc"))
                    if (words := self.command_line(pid)) and words[0].endswith("muster-keeper") and words[1].startswith(work_dir)]
        return eventually(lambda: len(found := keepers()) == 1 and found, f"one keeper below {work_dir}")[0]

    @staticmethod
    def command_line(pid):
        try:
            return pathlib.Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:
            return []

    def pods_of(self, cluster, name):
        return cluster.api.pods(f"batch.kubernetes.io/job-name={name}")

    def muster(self, *args, cluster=None, **kwargs):
        """Runs muster, against the cluster if one is given."""
        api = ["--api", cluster.api_addr] if cluster else []
        return subprocess.run([os.environ["MUSTER"], *args, *api], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, **kwargs)


def disruption(pod):
    """The reason of the pod's DisruptionTarget condition, or None."""
    for c in pod["status"].get("conditions") or []:
        if c["type"] == "DisruptionTarget" and c["status"] == "True":
            return c["reason"]
    return None


def exit_code(pod):
    for container in pod["status"].get("containerStatuses") or []:
        if "terminated" in container.get("state", {}):
            return container["state"]["terminated"]["exitCode"]
    return None


def matches(pattern, text):
    return re.search(pattern, text, re.S | re.I)
