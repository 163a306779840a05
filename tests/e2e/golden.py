#!/usr/bin/env python3
"""A transcript of the verbs' tables, messages and exit codes against a coordinator: tests/golden/cli/verbs.txt.

Whatever differs between runs (ages, random names, addresses) is replaced by a word. MUSTER_GOLDEN_WRITE=1 rewrites the file (`./dev golden`).
"""
import difflib
import os
import re
import shlex
import sys
import unittest

import cli

GOLDEN = cli.ROOT / "tests/golden/cli/verbs.txt"

FAILS = """apiVersion: batch/v1
kind: Job
metadata: {name: rows, annotations: {muster.dev/backoff-base: 10ms}}
spec:
  completionMode: Indexed
  completions: 4
  parallelism: 1
  backoffLimitPerIndex: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        command: [sh, -c, 'case $JOB_COMPLETION_INDEX in 1) echo row 1 is bad >&2; exit 42;; 2) kill -9 $$$$;; esac; echo done']
"""
WRONG = """apiVersion: batch/v1
kind: Job
metadata: {name: Wrong_Name}
spec:
  completionMode: Indexed
  parallelism: -1
  template:
    spec:
      restartPolicy: Always
      containers:
      - name: main
        command: ["true"]
"""


def job(name, script, **spec):
    fields = "".join(f"  {k}: {v}\n" for k, v in {"completions": 1, "parallelism": 1, "backoffLimit": 0, **spec}.items())
    return (f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n{fields}  template:\n    spec:\n      restartPolicy: Never\n"
            f"      containers:\n      - name: main\n        command: {script}\n")


os.environ["MUSTER_KEEPER_CGROUP"] = "off"  # so that every machine enforces the same limits


class Verbs(cli.Cluster):
    maxDiff = None

    def neutral(self, text):
        text = text.replace(self.api, "ADDR").replace(str(self.dir), "DIR")
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", text)
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID", text)
        text = re.sub(r"\b(rows|one|slow|late|missing|nonindexed)(-\d)?-[a-z0-9]{5}\b", r"\1\2-XXXXX", text)
        text = re.sub(r"(muster\.dev/pid|Pid): +\d+", r"\1: PID", text)
        text = re.sub(r"\b\d+(ms|s)\b(?!\w)", "SPAN", text)
        text = re.sub(r"(Peak memory: +)\d+[KM]i", r"\1SIZE", text)
        text = re.sub(r"\b\d\d:\d\d\n", "CLOCK\n", text)
        return re.sub(r"(?<=\S) {2,}(?=\S)", "  ", text)

    def say(self, line, stdin=None, code=None):
        words = shlex.split(line)
        r = cli.subprocess.run([cli.MUSTER, *words], input=stdin, capture_output=True, text=True, timeout=60, env=self.env, cwd=self.dir)
        if code is not None:
            self.assertEqual(r.returncode, code, r.stdout + r.stderr)
        # Progress lines depend on timing.
        err = "".join(x + "\n" for x in r.stderr.splitlines() if not re.match(r"^\d+(/\d+)?( succeeded)?  running ", x))
        self.text.append(self.neutral(f"$ muster {line}\n{r.stdout}{err}exit {r.returncode}\n"))

    def test_transcript_of_verbs_is_as_checked_in(self):
        self.text = ["# What the verbs print and return, in this order, against a coordinator with the node n1 of 4 slots.\n"]
        say = self.say
        say("get jobs")
        say("get nodes")
        say("create -f -", stdin=WRONG)
        say("create -f -", stdin=FAILS + "  paralelism: 1\n")
        say("create -f -", stdin="a: b\n  c: [\n")
        say("create -f -", stdin="kind: Pod\napiVersion: v1\n")
        say("create -f missing.yaml")
        self.file("rows.yaml", FAILS)
        say("create -f rows.yaml", code=0)
        say("create -f rows.yaml", code=5)
        say("wait job/rows --timeout 60s", code=1)
        say("wait job/rows --for=condition=Failed", code=0)
        say("get jobs")
        say("get jobs -o wide")
        say("get jobs -o name")
        say("get jobs -l no=such")
        say("get pods")
        say("get pods -o wide -A")
        say("get events")
        say("get job rows nope")
        say("describe job rows")
        say("logs job/rows --index 1 --attempt 0")
        say("logs job/rows --index 1 --attempt 7")
        say("logs job/rows")
        say("logs nope")
        self.file("one.yaml", job("one", '["true"]'))
        say("run one.yaml", code=0)
        self.file("missing.yaml", job("missing", "[/no/such/program]"))
        say("run missing.yaml", code=1)
        self.file("late.yaml", job("late", "[sleep, '1000']", activeDeadlineSeconds=1))
        say("run late.yaml", code=1)
        self.file("slow.yaml", job("slow", "[sleep, '1000']"))
        say("apply -f slow.yaml")
        say("apply -f slow.yaml")
        cli.poll("it runs", lambda: self.status("slow").get("ready") == 1)
        say("wait job/slow --timeout 50ms", code=124)
        say("describe node n1")
        say("scale job/slow --completions 3", code=5)
        say("scale job/slow --parallelism 2")
        say("suspend job/slow nope")
        say("resume job/slow")
        say("delete job slow nope", code=3)
        say("wait job/slow --timeout 60s", code=3)
        say("cordon n1 nope")
        say("get nodes")
        say("drain n1", code=0)
        say("uncordon n1")
        say("drain nope", code=3)
        say("describe pod nope")
        say("kubeconfig -n lab")
        say("get jobs --api 127.0.0.1:9", code=4)
        text = "\n".join(self.text)
        if os.environ.get("MUSTER_GOLDEN_WRITE"):
            GOLDEN.write_text(text)
            return
        wanted = GOLDEN.read_text()
        if text != wanted:
            self.fail("`./dev golden` rewrites it\n" + "".join(difflib.unified_diff(
                wanted.splitlines(True), text.splitlines(True), "tests/golden/cli/verbs.txt", "now")))


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
