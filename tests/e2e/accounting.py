#!/usr/bin/python3
"""`muster history` and `muster report`: jobs of all time, each of them once, across crashes, deletion, expiry and restore.

    MUSTER=build/release/muster tests/e2e/accounting.py [TEST…]
"""
import json
import os
import pathlib
import random
import shutil
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished, sh_job  # noqa: E402


class Accounting(World):
    def said(self, cluster, *args, code=0, env=()):
        ran = self.muster(*args, env={**os.environ, "MUSTER_API": cluster.api_addr, "NO_COLOR": "1", **dict(env)})
        self.assertEqual(ran.returncode, code, f"muster {args}\n{ran.stdout}\n{ran.stderr}")
        return ran.stdout

    def history(self, cluster, *flags):
        return json.loads(self.said(cluster, "history", "-o", "json", "--limit", "0", *flags))["items"]

    def entries(self, cluster, *flags):
        return {entry["name"]: entry for entry in self.history(cluster, *flags)}

    def report(self, cluster, *flags):
        return json.loads(self.said(cluster, "report", "-o", "json", *flags))["items"]

    def gone(self, cluster, name):
        eventually(lambda: cluster.api.call("GET", f"{cluster.api.jobs()}/{name}")[0] == 404, f"{name} is gone")

    def run_job(self, cluster, name, script="true", completions=3, **spec):
        self.submit(cluster, sh_job(name, script, completions, **spec))
        return cluster.wait(name, finished)

    def test_deleted_and_expired_jobs_stay_with_what_they_used(self):
        cluster = self.cluster(slots=4)
        self.run_job(cluster, "done", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
        self.run_job(cluster, "bad", "[ $JOB_COMPLETION_INDEX != 1 ]", backoffLimitPerIndex=1)
        self.submit(cluster, sh_job("short", "true", 3, ttlSecondsAfterFinished=0))
        self.submit(cluster, sh_job("long", "sleep 600", 2))
        eventually(lambda: self.entries(cluster)["long"]["state"] == "Running", "it runs")
        self.submit(cluster, sh_job("never", "true", 1, suspend=True))
        self.gone(cluster, "short")
        before = self.entries(cluster)
        self.assertEqual({n: e["state"] for n, e in before.items()},
                         {"done": "Complete", "bad": "Failed", "short": "Complete", "long": "Running", "never": "Suspended"})
        for name in ("done", "bad", "long", "never"):
            cluster.api.delete(name)
            self.gone(cluster, name)
        eventually(lambda: self.entries(cluster)["long"]["attempts"] == 2, "its pods have ended")
        after = self.entries(cluster)
        self.assertEqual({n: (e["state"], e["removal"]) for n, e in after.items()},
                         {"done": ("Complete", "Deleted"), "bad": ("Failed", "Deleted"), "short": ("Complete", "Expired"),
                          "long": ("Deleted", "Deleted"), "never": ("Deleted", "Deleted")})
        self.assertGreater(after["done"]["usage"]["userSeconds"], 0)
        for name in ("done", "bad", "short"):
            self.assertEqual({**before[name], "removal": "", "removed": ""}, {**after[name], "removal": "", "removed": ""}, name)
        self.assertEqual([after["bad"][f] for f in ("succeeded", "failedIndexes", "attempts", "failedAttempts")], [2, 1, 4, 2])
        self.assertEqual(set(self.entries(cluster, "--state", "expired")), {"short"})
        self.assertEqual(set(self.entries(cluster, "--state", "deleted,failed")), {"bad", "long", "never"})
        self.assertEqual(set(self.entries(cluster, "--name", "n*")), {"never"})
        # Their attempts are kept with them.
        attempts = json.loads(self.said(cluster, "history", "job/bad", "job/long", "--attempts", "-o", "json"))["items"]
        self.assertEqual(sorted((a["job"]["name"], a["index"], a["counted"]) for a in attempts),
                         [("bad", 0, "succeeded"), ("bad", 1, "failed"), ("bad", 1, "failed"), ("bad", 2, "succeeded"),
                          ("long", 0, "released"), ("long", 1, "released")])
        self.said(cluster, "verify")

    def test_each_job_counts_once_whatever_crashes(self):
        cluster = self.cluster(slots=8)
        draw = random.Random(7)
        made = []
        for turn in range(6):
            for number in range(6):
                name = f"j{number}"  # names are used again
                job = sh_job(name, "exit $((JOB_COMPLETION_INDEX == 3))", 4, backoffLimitPerIndex=0)
                if number == 0:
                    job["spec"]["ttlSecondsAfterFinished"] = 0
                made.append(self.submit(cluster, job)["metadata"]["uid"])
            ended = draw.sample(range(1, 6), 3)
            for number in ended:
                cluster.wait(f"j{number}", finished)
            for number in range(1, 6):  # some have ended, some are running
                cluster.api.delete(f"j{number}")
            cluster.kill_coordinator()
            cluster.start_coordinator()
            cluster.wait_nodes()
            for number in range(6):
                self.gone(cluster, f"j{number}")
        history = self.history(cluster)
        self.assertEqual(len(history), 36)
        uids = [entry["uid"] for entry in history]
        self.assertEqual(len(set(uids)), 36, "each once")
        self.assertEqual(set(uids), set(made))
        for entry in history:
            self.assertIn(entry["removal"], ("Deleted", "Expired"), entry)
            if entry["state"] == "Failed":
                self.assertEqual([entry[f] for f in ("succeeded", "failedIndexes", "attempts", "failedAttempts")], [3, 1, 4, 1], entry)
        total = self.report(cluster, "--by", "namespace")
        self.assertEqual(len(total), 1)
        for field in ("attempts", "succeeded", "failedIndexes", "failedAttempts"):
            self.assertEqual(total[0][field], sum(entry[field] for entry in history), field)
        self.assertEqual(total[0]["jobs"], 36)
        by_state = {item["by"]["state"]: item["jobs"] for item in self.report(cluster, "--by", "state")}
        self.assertEqual(sum(by_state.values()), 36)
        # Nothing more after another restart, and none is lost.
        cluster.kill_coordinator()
        cluster.start_coordinator()
        self.assertEqual(self.history(cluster), history)

    def test_restored_state_has_its_history(self):
        cluster = self.cluster(slots=4)
        self.run_job(cluster, "first")
        cluster.api.delete("first")
        self.gone(cluster, "first")
        self.run_job(cluster, "second")
        backup = cluster.dir / "backup"
        self.said(cluster, "backup", str(backup))
        before = self.history(cluster)
        cluster.api.delete("second")
        self.gone(cluster, "second")
        cluster.kill_coordinator()
        data = next(path for path in cluster.dir.iterdir() if (path / "db").is_dir() and path != backup)
        shutil.rmtree(data)
        self.assertEqual(self.muster("restore", str(backup), "--data-dir", str(data)).returncode, 0)
        cluster.start_coordinator()
        cluster.wait_nodes()
        self.assertEqual(self.history(cluster), before)
        self.run_job(cluster, "third")
        self.assertEqual([entry["name"] for entry in self.history(cluster)], ["first", "second", "third"])
        self.assertEqual(self.report(cluster, "--by", "state")[0]["jobs"], 3)

    def test_history_is_bounded_and_can_be_switched_off(self):
        cluster = self.cluster(slots=4, extra=["--history-max", "0"])
        refused = self.muster("history", cluster=cluster)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("--history-max 0", refused.stderr)
        self.run_job(cluster, "before")
        cluster.kill_coordinator()
        cluster.extra = []
        cluster.start_coordinator()
        cluster.wait_nodes()
        self.assertEqual([e["name"] for e in self.history(cluster)], ["before"], "it ended while there was no history")

    def test_tables_are_for_scripts_and_in_local_time(self):
        cluster = self.cluster(slots=4)
        self.run_job(cluster, "a", "exit 1", completions=1, backoffLimit=0)
        self.run_job(cluster, "b")
        zone = {"TZ": "XYZ-5:30"}
        header, *lines = [line.split("\t") for line in self.said(cluster, "history", "-o", "tsv", env=zone).splitlines()]
        rows = [dict(zip(header, line)) for line in lines]
        self.assertEqual([(r["Name"], r["State"], r["Succeeded"], r["Attempts"]) for r in rows], [("a", "Failed", "0", "1"), ("b", "Complete", "3", "3")])
        for row in rows:
            for instant in ("Created", "Started", "Ended"):
                self.assertRegex(row[instant], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+05:30$")
        # What it prints, it also reads.
        self.assertEqual([e["name"] for e in self.history(cluster, "--until", rows[0]["Created"])], [])
        self.assertEqual([e["name"] for e in self.history(cluster, "--since", "1h", "--sort", "name", "--reverse")], ["b", "a"])
        self.assertEqual(self.history(cluster, "--until", "1h"), [])
        table = self.said(cluster, "history").splitlines()
        self.assertEqual(table[0].split(), ["NAME", "USER", "QUEUE", "STATE", "INDEXES", "CREATED", "ENDED", "ELAPSED", "CPU", "MEMORY"])
        self.assertRegex(table[1], r"^a +- +default +Failed \(BackoffLimitExceeded\) +0/1 ")
        last = self.muster("history", "--limit", "1", "-o", "name", cluster=cluster)
        self.assertEqual((last.stdout, last.stderr), ("job.batch/b\n", "showing the last 1 of 2 jobs by created; --limit 0 shows all\n"))
        report = self.said(cluster, "report", "--by", "state,month").splitlines()
        self.assertEqual(len(report), 4, "a header, two states and their total")
        self.assertRegex(report[1], r"^Complete +\d{4}-\d\d +1 +0 +3/3 +3 +0 ")
        self.assertRegex(report[3], r"^TOTAL +2 +1 +3/4 +4 +1 ")
        self.assertEqual(self.report(cluster, "--until", "1h"), [])
        for flags, why in ((["--since", "soon"], "--since `soon`: must be an instant"), (["--state", "done"], "--state done: must be"),
                           (["--by", "day,month"], "choose day or month, not both"), (["--by", "color"], "--by color: must be")):
            verb = "report" if flags[0] == "--by" else "history"
            wrong = self.muster(verb, *flags, cluster=cluster)
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            self.assertIn(why, wrong.stderr)


if __name__ == "__main__":
    unittest.main()
