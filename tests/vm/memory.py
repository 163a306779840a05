"""What the API has told a client and must therefore never take back.

A fold over events, so that replay.py can compute it for any moment:

    ("accepted", NAME, UID)      a create was answered with 201
    ("submitting", NAME)         a create was sent: the job may exist
    ("deleting", NAME)           a delete was sent: the job may be gone
    ("deleted", NAME)            a delete was answered with 200
    ("shown", NAME, FACTS)       a GET showed this (`facts`)
"""
import copy
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "lib"))
from index_text import indexes  # noqa: E402

GROW = ("version", "generation", "succeeded", "failed", "completed", "failed_indexes", "conditions", "steps")
STAY = ("uid", "start", "completion")  # once set
STEP = "step/"                         # prefix of the annotations that the client adds one by one


def facts(job):
    """Returns the fields of a Job object that may only grow or must not change."""
    meta, status = job["metadata"], job.get("status", {})
    return {
        "version": int(meta["resourceVersion"]), "generation": meta.get("generation", 0), "uid": meta["uid"],
        "steps": {key for key in meta.get("annotations") or {} if key.startswith(STEP)},
        "succeeded": status.get("succeeded", 0), "failed": status.get("failed", 0),
        "completed": indexes(status.get("completedIndexes")), "failed_indexes": indexes(status.get("failedIndexes")),
        "conditions": {one["type"] for one in status.get("conditions") or [] if one["status"] == "True"},
        "start": status.get("startTime"), "completion": status.get("completionTime"),
    }


def later(one, other):
    return one | other if isinstance(one, set) else max(one, other)


class Memory:
    def __init__(self, events=()):
        self.jobs = {}     # name: the latest facts shown
        self.gone = set()  # names of deleted jobs
        self.perhaps_gone, self.perhaps_there = set(), set()
        for event in events:
            self.learn(event)

    def copy(self):
        return copy.deepcopy(self)

    def learn(self, event):
        what, name = event[:2]
        if what == "submitting":
            self.perhaps_there.add(name)
        elif what == "accepted":
            self.jobs.setdefault(name, {"uid": event[2]})
        elif what == "deleting":
            self.perhaps_gone.add(name)
        elif what == "deleted":
            self.jobs.pop(name, None)
            self.gone.add(name)
        elif what == "shown":
            known, now = self.jobs.setdefault(name, {}), event[2]
            for key in GROW:  # answers may overtake each other
                known[key] = later(known.get(key, now[key]), now[key])
            known.update((key, now[key]) for key in STAY if now[key] is not None)

    def wrong(self, items):
        """Returns a line for each fact taken back by a list of all jobs that was requested after every event in this memory."""
        found, problems = {job["metadata"]["name"]: job for job in items}, []
        problems += [f"{name}: deleted, but reappeared" for name in sorted(self.gone & found.keys())]
        problems += [f"{name}: listed, but never submitted" for name in sorted(found.keys() - self.jobs.keys() - self.perhaps_there - self.gone)]
        for name, before in self.jobs.items():
            if name in found:
                problems += [f"{name}: {problem}" for problem in self.taken_back(before, facts(found[name]))]
            elif name not in self.perhaps_gone:
                problems.append(f"{name}: lost")
        return problems

    @staticmethod
    def taken_back(before, now):
        for key in GROW:
            if key in before and not now[key] >= before[key]:
                yield f"{key} went from {before[key]} to {now[key]}"
        for key in STAY:
            if before.get(key) is not None and now[key] != before[key]:
                yield f"{key} changed from {before[key]} to {now[key]}"
        if now["completed"] & now["failed_indexes"]:
            yield f"completed and failed: {now['completed'] & now['failed_indexes']}"
