"""A client that keeps the coordinator busy and remembers all its answers (memory.py).

Each event is also a mark in the recording of the coordinator's disk, so that replay.py can compare the disk at any moment with what the client knew then.
"""
import contextlib
import http.client
import json
import random
import threading

from memory import STEP, Memory, facts

JOBS = "/apis/batch/v1/namespaces/default/jobs"
OWN = "/apis/muster.dev/v1/namespaces/default/jobs"
UNREACHABLE = (OSError, http.client.HTTPException, ValueError)  # a ValueError: the answer was cut off


def job(name, completions, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {
        "completions": completions, "parallelism": completions, "completionMode": "Indexed", **spec,
        # Pods lost with their machine count nowhere, so every index ends as planned.
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none", "command": ["/muster/pod"]}]}}}}


class Client:
    def __init__(self, port, disk, seed):
        self.port, self.disk = port, disk
        self.memory, self.lock = Memory(), threading.Lock()
        self.wrong, self.reads, self.number, self.step = [], 0, 0, 0
        self.rng = random.Random(f"{seed} client")
        self.stopping = threading.Event()
        self.threads = []

    def start(self):
        self.threads = [threading.Thread(target=loop, daemon=True) for loop in (self.keep_reading, self.keep_writing)]
        for thread in self.threads:
            thread.start()

    def stop_writing(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)

    def call(self, method, path, body=None, kind="application/json", timeout=10):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(link):
            link.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": kind} if body is not None else {})
            answer = link.getresponse()
            return answer.status, json.loads(answer.read())

    def learn(self, *event):
        with self.lock:
            self.memory.learn(event)
            self.disk.mark(event)

    def record(self):
        """Starts recording the disk and returns what the client knows at that point."""
        with self.lock:
            self.disk.record()
            return self.memory.copy()

    def read(self):
        """Lists all jobs and compares them with what was known before the request. Returns None if the request was not served."""
        with self.lock:
            before = self.memory.copy()
        try:
            code, answer = self.call("GET", JOBS)
        except UNREACHABLE:
            return None
        if code != 200:
            return None
        with self.lock:
            # A job created or deleted since the request may or may not be in the list.
            before.perhaps_there |= self.memory.perhaps_there
            before.perhaps_gone |= self.memory.perhaps_gone
            self.wrong += before.wrong(answer["items"])
            self.reads += 1
            for item in answer["items"]:
                event = ("shown", item["metadata"]["name"], facts(item))
                if item["metadata"]["name"] not in self.memory.gone | self.memory.perhaps_gone:
                    self.memory.learn(event)
                    self.disk.mark(event)
        return answer["items"]

    def keep_reading(self):
        while not self.stopping.wait(0.2):
            self.read()

    def keep_writing(self):
        """Creates small jobs, deletes some that have finished, and annotates the long one."""
        while not self.stopping.wait(0.3 * self.rng.random()):
            with contextlib.suppress(*UNREACHABLE):
                what = self.rng.randrange(7)
                if what < 3:
                    self.create(*self.small())
                elif what < 5:
                    self.annotate()
                else:
                    self.delete_one()

    def small(self):
        """Every seventh job fails; it has only one index, because a failing job kills its other pods."""
        self.number += 1
        completions = self.rng.randrange(1, 4) if self.number % 7 else 1
        return f"small-{self.number}", completions, {"backoffLimit": self.rng.randrange(2)}

    def create(self, name, completions, spec):
        self.learn("submitting", name)
        code, answer = self.call("POST", JOBS, job(name, completions, **spec))
        if code == 201:
            self.learn("accepted", name, answer["metadata"]["uid"])
        return code

    def annotate(self):
        """Adds a new annotation to the long job each time, because a request that timed out may still be served after later ones."""
        self.step += 1
        code, answer = self.call("PATCH", f"{JOBS}/long", {"metadata": {"annotations": {f"{STEP}{self.step}": ""}}}, "application/merge-patch+json")
        if code == 200:
            self.learn("shown", "long", facts(answer))

    def delete_one(self):
        with self.lock:
            over = [name for name, known in self.memory.jobs.items() if name != "long" and known.get("conditions", set()) & {"Complete", "Failed"}
                    and name not in self.memory.perhaps_gone]
        if len(over) < 5:
            return
        name = self.rng.choice(over)
        self.learn("deleting", name)
        code, _ = self.call("DELETE", f"{JOBS}/{name}?propagationPolicy=Background")
        if code == 200:
            self.learn("deleted", name)

    def attempts(self, name):
        """Returns the history of a job's attempts."""
        found, more = [], ""
        while True:
            code, page = self.call("GET", f"{OWN}/{name}/attempts?limit=1000{more}")
            if code != 200:
                raise OSError(f"{name}: {code} {page}")
            found += page["items"]
            more = page["metadata"].get("continue")
            if not more:
                return found
            more = f"&continue={more}"
