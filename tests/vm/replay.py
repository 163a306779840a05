"""Disks as left by a power cut just before a flush, opened by muster itself and compared with what was known then.

`states` rebuilds the coordinator's disk from a recording, for `wrong`. A `Pair` holds the disks of both machines at one instant, just before a flush of
the node's disk: its agent and keeper must find their files intact, and report the ends of pods in the spool.

The writes since the previous flush may all be there, or none, or each may be kept, lost or torn. What the client knew when the flush came must be
there in any case, since no answer that depends on that flush had been sent. No mount is needed: e2fsck replays the file system's journal and debugfs
copies the files, so this runs on the host, without root.
"""
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

from disk import kept_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))
from work_dirs import adopt, keepers  # noqa: E402

HOLE = bytes(1 << 16)
JOBS = "/apis/batch/v1/namespaces/default/jobs"
OWN = "/apis/muster.dev/v1/namespaces/default/jobs"
LOSSES = ("none kept", "all kept", "torn")


def states(recording, chosen, seed, folder):
    """Yields (name, image, memory) for the chosen flush numbers of a recording. The image is overwritten each time."""
    memory, base, log = recording
    safe, image = folder / "safe.img", folder / "state.img"
    write(safe, base)
    rng, memory, pending, number = random.Random(seed), memory.copy(), [], 0
    with open(safe, "r+b", buffering=0) as file:
        for entry in log:
            if entry is None:
                if number in chosen:
                    for loss in lose(safe, image, pending, rng):
                        yield f"flush {number}, {loss}", image, memory
                number += 1
                for offset, data in pending:
                    os.pwrite(file.fileno(), data, offset)
                pending = []
            elif isinstance(entry[0], int):
                pending.append(entry)
            else:
                memory.learn(entry)


def write(path, bytes_):
    """Writes a sparse file."""
    with open(path, "wb") as file:
        file.truncate(len(bytes_))
        for at in range(0, len(bytes_), len(HOLE)):
            block = bytes_[at:at + len(HOLE)]
            if block != HOLE:
                file.seek(at)
                file.write(block)


def lose(safe, image, pending, rng):
    """For each way to lose the unflushed writes, builds the image from the safe one and yields a description."""
    for loss in LOSSES if pending else LOSSES[:1]:
        subprocess.run(["cp", "--sparse=always", safe, image], check=True)
        kept = {"none kept": [], "all kept": pending}.get(loss)
        put(image, [part for one in pending for part in kept_of(one, rng)] if kept is None else kept)
        yield f"{len(pending)} writes unflushed, {loss}"


def put(image, writes):
    with open(image, "r+b", buffering=0) as file:
        for offset, data in writes:
            os.pwrite(file.fileno(), data, offset)


def extract(image, folder):
    """Copies the files out of an image after replaying the file system's journal."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    subprocess.run(["e2fsck", "-y", "-E", "journal_only", image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["debugfs", "-R", f"rdump / {folder}", image], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def coordinator(muster, data_dir, api, agents, grace="1s"):
    """Runs a coordinator on this directory. Yields a function that returns (the jobs it serves, None) or (None, why it serves none)."""
    command = [muster, "coordinator", "--data-dir", data_dir, "--api", f"127.0.0.1:{api}", "--listen", f"127.0.0.1:{agents}", "--node-grace", grace,
               "--log-level", "warn"]
    log = pathlib.Path(data_dir).with_suffix(".log")
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def served():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            answer = get(api, JOBS)
            if answer:
                return answer["items"], None
            time.sleep(0.02)
        return None, log.read_text(errors="replace")[-1000:]
    try:
        yield served
    finally:
        process.kill()
        process.wait()


def get(api, path):
    """Returns the answer if it arrives and its status is 200."""
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError), \
            contextlib.closing(http.client.HTTPConnection("127.0.0.1", api, timeout=10)) as link:
        link.request("GET", path)
        answer = link.getresponse()
        body = json.loads(answer.read())
        return body if answer.status == 200 else None


def must_get(api, path):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer = get(api, path)
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"no answer from {path}")


def wrong(muster, image, memory, folder, ports):
    """Returns the problems found on this disk, one per line."""
    files = folder / "files"
    extract(image, files)
    data = files / "coordinator"
    if not (data / "cluster-id").exists():
        return [] if not memory.jobs else ["jobs were accepted, but there is no data-dir"]
    (data / "standby").unlink(missing_ok=True)  # with it, a coordinator does not start alone
    recount = subprocess.run([muster, "verify", "--data-dir", data], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if recount.returncode:
        return [f"verify: {recount.stdout.strip()}"]
    with coordinator(muster, data, *ports) as served:
        jobs, why = served()
    return memory.wrong(jobs) if jobs is not None else [f"the coordinator cannot serve this data-dir: {why}"]


class Pair:
    """The disks of the machines "head" and "node" just before a flush of the node's disk, and what was known then."""

    def __init__(self, folder, number, machines, client):
        """The caller holds the lock of the node's disk."""
        node, head = machines["node"].disk, machines["head"].disk
        self.folder, self.name = folder / f"pair-{number}", f"flush {node.flushes} of node's disk"
        self.folder.mkdir()
        with client.lock:
            self.memory = client.memory.copy()
        with head.lock:
            write(self.folder / "head.img", head.safe)
        write(self.folder / "node.img", node.safe)
        self.pending = list(node.cache)
        self.synced = {}  # the exits that count if no unflushed write is kept; that state comes first

    def states(self, rng):
        for loss in lose(self.folder / "node.img", self.folder / "state.img", self.pending, rng):
            yield f"{self.name}, {loss}"

    def wrong(self, muster, ports, codes):
        """Restarts both machines on the current state. `codes` has the exit code of each pod that exited during the whole run, by (job, index,
        attempt). Returns (problems, the number of ends that only the node's disk had)."""
        head, node = self.folder / "head", self.folder / "node"
        extract(self.folder / "head.img", head)
        extract(self.folder / "state.img", node)
        if not (head / "coordinator" / "cluster-id").exists():
            return [], 0
        with coordinator(muster, head / "coordinator", *ports) as served:
            served()
            before = self.exits(ports[0])
        extract(self.folder / "head.img", head)
        with coordinator(muster, head / "coordinator", *ports, grace="30s") as served, contextlib.ExitStack() as agents:
            for name, files in (("head", head), ("node", node)):
                agents.enter_context(self.agent(muster, name, files, ports[1]))
            jobs, why = served()
            if jobs is None:
                return [f"the coordinator cannot serve this data-dir: {why}"], 0
            deadline = time.monotonic() + 60
            while not self.ready(ports[0]):
                if time.monotonic() > deadline:
                    return [f"the nodes are not both ready: {self.logs()}"], 0
                time.sleep(0.02)
            problems, after = self.memory.wrong(jobs), self.exits(ports[0])
            while self.synced.keys() - after.keys() and time.monotonic() < deadline:
                time.sleep(0.1)
                after = self.exits(ports[0])
            found = {} if self.synced.keys() <= after.keys() else dict(self.attempts(ports[0]))
        problems += [f"{pod} exited with {code}, and now with {after.get(pod)}" for pod, code in before.items() if after.get(pod) != code]
        problems += [f"{pod} counts as exit {code}, the witness has {codes.get(pod)}" for pod, code in after.items() if codes.get(pod) != code]
        self.synced = self.synced or after
        problems += [f"the end of {pod} was flushed, but is lost: it exited with {self.synced[pod]}, and now {found.get(pod)}; {self.logs()}"
                     for pod in self.synced.keys() - after.keys()]
        if "damaged" in self.logs():
            problems.append(self.logs())
        return problems, len(after.keys() - before.keys())

    @contextlib.contextmanager
    def agent(self, muster, name, files, port):
        work = files / "agent"
        work.mkdir(mode=0o700, exist_ok=True)
        adopt(work)
        with open(files.with_suffix(".log"), "wb") as log:
            process = subprocess.Popen([muster, "agent", "--coordinator", f"127.0.0.1:{port}", "--name", name, "--slots", "4", "--work-dir", work,
                                        "--log-level", "warn"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.kill()
            process.wait()
            for keeper in keepers(work):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(keeper, 9)

    def logs(self):
        return "\n".join(path.read_text(errors="replace")[-1000:] for path in (*self.folder.glob("*.log"), *self.folder.glob("*/agent/keeper/keeper.log")))

    @staticmethod
    def ready(api):
        nodes = (get(api, "/api/v1/nodes") or {"items": []})["items"]
        conditions = [{one["type"]: one["status"] for one in node["status"]["conditions"]} for node in nodes]
        return sum(one.get("Ready") == "True" for one in conditions) == 2

    @staticmethod
    def attempts(api):
        """Yields each pod that has ended, and its entry in the history."""
        for job in must_get(api, JOBS)["items"]:
            name, more = job["metadata"]["name"], ""
            while more is not None:
                page = must_get(api, f"{OWN}/{name}/attempts?limit=1000{more}")
                for one in page["items"]:
                    yield (name, one["index"], one["attempt"]), one
                following = page["metadata"].get("continue")
                more = f"&continue={following}" if following else None

    @classmethod
    def exits(cls, api):
        """Returns the exit code of each pod that counts as exited, except pods started only now, whose program does not exist here."""
        return {pod: one["exitCode"] for pod, one in cls.attempts(api) if one["cause"] == "exited" and one["exitCode"] < 126}
