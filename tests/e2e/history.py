#!/usr/bin/python3
"""The history of attempts, their logs, `why`, and rounds: across coordinator restarts and after the pods are gone.

    MUSTER=build/release/muster tests/e2e/history.py [TEST…]
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, condition, eventually, finished, sh_job  # noqa: E402

WORK = ('echo "out of $JOB_COMPLETION_INDEX#$MUSTER_ATTEMPT"; echo "err of $JOB_COMPLETION_INDEX#$MUSTER_ATTEMPT" >&2; '
        '[ -e "$OK" ] || case $JOB_COMPLETION_INDEX in 1|3) exit 7;; esac')


class History(World):
    def setUp(self):
        self.it = self.cluster(agents=1, slots=8)
        self.ok = self.it.dir / "ok"

    def muster(self, *args):
        return subprocess.run([os.environ["MUSTER"], *map(str, args)], text=True, capture_output=True, timeout=60,
                              env={**os.environ, "MUSTER_API": self.it.api_addr, "NO_COLOR": "1"})

    def says(self, *args, code=0):
        done = self.muster(*args)
        self.assertEqual(done.returncode, code, f"muster {args}\n{done.stdout}\n{done.stderr}")
        return done.stdout if code == 0 else done.stderr

    def failed_job(self, name="sweep", **spec):
        job = sh_job(name, WORK, 5, backoffLimitPerIndex=1, **spec)
        job["metadata"].setdefault("annotations", {})["muster.dev/backoff-base"] = "10ms"
        job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "OK", "value": str(self.ok)}]
        self.it.api.create(job)
        return self.it.wait(name, finished, 30)

    def attempts(self, *flags):
        return json.loads(self.says("get", "attempts", "job/sweep", "-o", "json", *flags))["items"]

    def test_every_attempt_is_listed_and_survives(self):
        self.failed_job()
        seen = self.attempts()
        keys = sorted((a["index"], a["attempt"], a["exitCode"], a["counted"]) for a in seen)
        self.assertEqual(keys, [(0, 0, 0, "succeeded"), (1, 0, 7, "failed"), (1, 1, 7, "failed"), (2, 0, 0, "succeeded"),
                                (3, 0, 7, "failed"), (3, 1, 7, "failed"), (4, 0, 0, "succeeded")])
        for pod in self.it.api.pods():
            self.it.api.call("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
        eventually(lambda: self.it.api.pods() == [], "the pods are gone")
        self.it.kill_coordinator()
        self.it.start_coordinator()
        self.it.wait_nodes()
        self.assertEqual(self.attempts(), seen)
        self.assertEqual({(a["index"], a["attempt"]) for a in self.attempts("--index", "1,4", "--failed")}, {(1, 0), (1, 1)})
        table = self.says("get", "attempts", "job/sweep", "--index", "1").splitlines()
        self.assertEqual(table[0].split(), ["INDEX", "ATTEMPT", "NODE", "STARTED", "RAN", "CPU", "MEMORY", "COUNTED", "AS", "CAUSE"])
        self.assertEqual(table[1].split()[:2] + table[1].split()[-3:], ["1", "0", "failure", "exit", "7"])
        # Logs outlive their pods.
        self.assertEqual(self.says("logs", "job/sweep", "--index", "1", "--attempt", "0"), "out of 1#0\nerr of 1#0\n")
        self.assertEqual(self.says("logs", "job/sweep", "--index", "0,2"), "0#0 | out of 0#0\n0#0 | err of 0#0\n2#0 | out of 2#0\n2#0 | err of 2#0\n")
        self.assertEqual(self.says("logs", "job/sweep", "--failed", "--tail", "1"),
                         "1#1 | err of 1#1\n3#1 | err of 3#1\n")
        self.assertIn("not found", self.says("logs", "job/sweep", "--index", "1", "--attempt", "9", code=3))
        self.assertIn("no pod yet", self.says("logs", "job/sweep", "--index", "1,2", "--attempt", "9", code=3))
        self.assertIn("is not a set of numbers such as 3,7-9", self.says("logs", "job/sweep", "--index", "3-1", code=2))
        self.assertIn("attempts of which job", self.says("get", "attempts", code=2))

    def trace(self, *words):
        return json.loads(self.says("trace", *words, "-o", "json"))

    def check_steps(self, trace, names):
        self.assertEqual([s["step"] for s in trace["steps"]], names)
        for step in trace["steps"]:
            self.assertEqual(step["by"], "node" if step["step"] in ("started", "ended") else "coordinator", step)
            self.assertRegex(step["at"], r"\.\d{3}Z$")
            self.assertGreaterEqual(step.get("sinceSeconds", 0), 0)
        own = [s["at"] for s in trace["steps"] if s["by"] == "coordinator"]
        self.assertEqual(own, sorted(own))

    def test_a_trace_has_each_step_and_outlives_pod_and_job(self):
        whole = ["accepted", "created", "bound", "started", "ended", "counted"]
        self.failed_job()
        last = self.trace("job/sweep/3")
        self.check_steps(last, whole)
        self.assertEqual((last["job"], last["attempt"]["index"], last["attempt"]["attempt"]), ("sweep", 3, 1))
        self.assertEqual([s.get("what") for s in last["steps"][2:]], ["to " + last["attempt"]["node"], None, "exit 7", "failure"])
        first = self.trace(last["others"][0]["pod"])
        self.check_steps(first, whole)
        self.assertEqual(first["others"], [last["attempt"]])
        table = self.says("trace", "job/sweep", "--index", "3")
        self.assertEqual([line.split()[0] for line in table.splitlines()], ["pod/" + last["attempt"]["pod"] + ":", "STEP", *whole, "Other", "ATTEMPT", "0"])
        # Of one that runs, and of one that waits.
        self.it.api.create(sh_job("long", f"until [ -e {self.ok} ]; do sleep 0.05; done", 9, parallelism=9))
        eventually(lambda: self.it.api.job("long")["status"].get("ready") == 8, "eight run and one waits")
        seen = [[s["step"] for s in self.trace(f"job/long/{i}")["steps"]] for i in range(9)]
        self.assertEqual(seen.count(whole[:4]), 8, seen)
        waits = next(steps for steps in seen if steps != whole[:4])
        self.assertIn(waits, (whole[:2], whole[:3]), "it may wait on its node")
        self.assertIn("It has not ended: muster why job/long/0", self.says("trace", "job/long/0"))
        self.ok.touch()
        self.it.wait("long", finished, 30)
        # The pods are gone, then the coordinator is another one, then the job is gone, too.
        for pod in self.it.api.pods():
            self.it.api.call("DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
        eventually(lambda: self.it.api.pods() == [], "the pods are gone")
        self.assertEqual(self.trace(last["attempt"]["pod"]), last)
        self.it.kill_coordinator()
        self.it.start_coordinator()
        self.it.wait_nodes()
        self.assertEqual(self.trace("job/sweep/3"), last)
        self.says("delete", "job", "sweep")
        def gone():
            found = self.muster("trace", "job/sweep/3")
            return found.returncode == 0 and "(deleted " in found.stdout
        eventually(gone, "the job is only in the history")
        self.assertEqual(self.trace("job/sweep/3")["steps"], last["steps"])
        self.assertEqual(self.trace(first["attempt"]["pod"])["steps"], first["steps"])
        # Another one of its name.
        self.failed_job()
        self.assertNotEqual(self.trace("job/sweep/3")["attempt"]["podUID"], last["attempt"]["podUID"])
        self.assertEqual(self.trace(last["attempt"]["pod"])["attempt"]["podUID"], last["attempt"]["podUID"])

    def test_what_has_no_trace_says_why(self):
        self.failed_job()
        job = sh_job("plain", "true", 2)
        del job["spec"]["completionMode"]
        self.it.api.create(job)
        self.it.wait("plain", finished, 30)
        pod = next(p["metadata"]["name"] for p in self.it.api.pods() if p["metadata"]["name"].startswith("plain-"))
        self.check_steps(self.trace(pod), ["accepted", "created", "bound", "started", "ended", "counted"])
        self.it.api.call("DELETE", f"/api/v1/namespaces/default/pods/{pod}")
        eventually(lambda: pod not in [p["metadata"]["name"] for p in self.it.api.pods()], "the pod is gone")
        self.assertEqual(self.trace(pod)["attempt"]["pod"], pod)
        self.it.api.create(sh_job("held", "true", 1, suspend=True))
        for words, code, why in ((("job/sweep/9",), 3, "job/sweep has no index 9: it has 5, from 0"),
                                 (("job/none/0",), 3, 'jobs.batch "none" not found'),
                                 (("sweep-1-zzzzz",), 3, 'pods "sweep-1-zzzzz" not found'),
                                 (("nothing",), 3, 'pods "nothing" not found'),
                                 (("job/plain/0",), 5, "job/plain is NonIndexed, so its pods have no index"),
                                 (("job/held/0",), 3, "index 0 of job/held has no pod yet, or none that is kept: muster why job/held/0"),
                                 (("job/sweep", "--task", "1"), 5, "array"),
                                 (("job/sweep",), 2, "name an index"),
                                 (("job/sweep/1", "-o", "xml"), 2, "json")):
            self.assertIn(why, self.says("trace", *words, code=code))

    def test_attempts_of_a_nonindexed_job_are_numbered(self):
        for name, restart in (("never", "Never"), ("inplace", "OnFailure")):
            job = sh_job(name, "echo try $MUSTER_ATTEMPT; exit 3", 1, backoffLimit=2)
            job["metadata"].setdefault("annotations", {}).update({"muster.dev/backoff-base": "10ms", "muster.dev/restart-delay": "10ms"})
            del job["spec"]["completionMode"]
            job["spec"]["template"]["spec"]["restartPolicy"] = restart
            self.it.api.create(job)
            self.it.wait(name, finished, 30)
        failed = self.it.api.job("never")["status"]["conditions"][-1]
        self.assertEqual((failed["reason"], failed["message"]), ("BackoffLimitExceeded", "Job has reached the specified backoff limit"))
        items = json.loads(self.says("get", "attempts", "job/never", "-o", "json"))["items"]
        self.assertEqual([(a["number"], a["attempt"]) for a in items], [(0, 0), (1, 1), (2, 2)])
        rows = self.says("get", "attempts", "job/never").splitlines()[1:]
        self.assertEqual([r.split()[:2] for r in rows], [["-", "0"], ["-", "1"], ["-", "2"]])
        self.assertEqual([line.split("| ")[1] for line in self.says("logs", "job/never").splitlines()], ["try 0", "try 1", "try 2"])
        self.assertIn("more pods failed than spec.backoffLimit (2) allows", self.says("wait", "job/never", code=1))
        # One attempt, whose restarts count, with a row for each run before the last.
        *runs, row = self.says("get", "attempts", "job/inplace").splitlines()[1:]
        self.assertEqual(row.split()[:2], ["-", "0"])
        # The job's failure may find a later run at work, and end it.
        self.assertRegex(row, rf"failure +(exit 3|SIGTERM \(exit 143\)), after {len(runs)} restarts?$")
        self.assertGreaterEqual(len(runs), 1)
        for number, run in enumerate(runs):
            self.assertEqual(run.split()[:2], ["-", "0"])
            self.assertRegex(run, f"restarted +exit 3, run {number} of main$")
        self.assertIn("containers were restarted at least 2 times, which reaches spec.backoffLimit (2)", self.says("wait", "job/inplace", code=1))

    def test_runs_of_a_restarted_pod_are_told_apart(self):
        """Also after restarts of the agent and the coordinator in between; of many, the newest ten."""
        count = self.it.dir / "count"
        script = (f'n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) > {count}; until [ $n -lt $(cat {count}.max) ]; do sleep 0.02; done; '
                  'case $n in 1) kill -9 $$$$;; 13) exit 0;; *) exit $((20 + n));; esac')
        job = sh_job("runs", script, 1, backoffLimit=100)
        job["metadata"].setdefault("annotations", {})["muster.dev/restart-delay"] = "0s"
        job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"

        def runs_until(n):
            (self.it.dir / "count.max").write_text(f"{n}\n")
            eventually(lambda: count.exists() and count.read_text() == f"{n + 1}\n", f"run {n}")
            eventually(lambda: self.it.api.pods()[0]["status"]["containerStatuses"][0]["restartCount"] == n, f"run {n} is reported")
        (self.it.dir / "count.max").write_text("0\n")
        self.it.api.create(job)
        eventually(count.exists, "the first run")
        runs_until(1)
        self.it.kill_agent("node-0")
        self.it.start_agent("node-0")
        self.it.wait_nodes()
        runs_until(2)
        runs_until(3)
        known = "exit 20, SIGKILL (exit 137), exit 22"
        self.assertIn(f"attempt 0 was restarted in place after: {known}", self.says("why", "job/runs/0"))
        pod = self.it.api.pods()[0]["metadata"]["name"]
        self.assertRegex(self.says("describe", "pod", pod),
                         r"Restarted after: +exit 20, run 0 of main; SIGKILL \(exit 137\), run 1 of main; exit 22, run 2 of main")
        self.it.kill_coordinator()
        self.it.start_coordinator()
        self.it.wait_nodes()
        self.assertIn(f"attempt 0 was restarted in place after: {known}", self.says("why", "job/runs/0"))
        runs_until(13)
        (self.it.dir / "count.max").write_text("14\n")
        self.it.wait("runs", finished, 30)
        self.assertIsNotNone(condition(self.it.api.job("runs"), "Complete"))
        item, = json.loads(self.says("get", "attempts", "job/runs", "-o", "json"))["items"]
        self.assertEqual((item["restarts"], item["counted"]), (13, "succeeded"))
        self.assertEqual([(run["run"], run["exitCode"]) for run in item["runs"]], [(n, 20 + n) for n in range(3, 13)])
        self.assertTrue(all(run["started"] <= run["ended"] and "usage" in run for run in item["runs"]), item["runs"])
        *rows, last = self.says("get", "attempts", "job/runs").splitlines()[1:]
        self.assertEqual([row.split(", run ")[1] for row in rows], [f"{n} of main" for n in range(3, 13)])
        self.assertRegex(last, "success +exit 0, after 13 restarts$")

    def test_why_says_what_an_index_waits_for(self):
        self.failed_job()
        why = self.says("why", "job/sweep/1")
        self.assertIn("job/sweep/1 Failed: the index failed 2 times, more than spec.backoffLimitPerIndex (1) allows", why)
        self.assertIn("attempt 1 on node", why)
        self.assertIn("Succeeded", self.says("why", "job/sweep/0"))
        self.assertIn("the job is Failed: FailedIndexes", self.says("why", "job/sweep"))
        self.assertIn("not one of 0-4", self.says("why", "job/sweep/5", code=5))
        self.says("why", "job/none", code=3)
        waiting = sh_job("waits", "true", 1)
        waiting["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "ssd"}
        self.it.api.create(waiting)
        eventually(lambda: "Pending" in self.says("why", "job/waits/0"), "it waits for a node")
        self.assertIn("labels do not match the job's nodeSelector", self.says("why", "job/waits"))
        slow = sh_job("slow", "exit 3", 1, backoffLimitPerIndex=3)
        slow["metadata"].setdefault("annotations", {})["muster.dev/backoff-base"] = "10m"
        self.it.api.create(slow)
        eventually(lambda: "Backoff" in self.says("why", "job/slow/0"), "it is in its backoff")
        answer = json.loads(self.says("why", "job/slow/0", "-o", "json"))
        self.assertEqual(answer["state"], "Backoff")
        self.assertIn("until", answer)
        self.assertIn("exit 3", answer["details"][0])

    def test_retry_round_runs_only_failed_indexes(self):
        before = self.failed_job()
        self.ok.touch()
        said = self.says("retry", "job/sweep", "--failed", "--wait")
        self.assertIn("job.batch/sweep-r2 created: round 2 of job/sweep, indexes 1,3", said)
        self.assertIn("sweep-r2 Complete", said)
        described = self.says("describe", "job", "sweep-r2")
        self.assertRegex(described, r"Round: +2 of job/sweep")
        self.assertRegex(described, r"Indexes: +1,3 only")
        again = self.it.api.job("sweep-r2")
        self.assertEqual(again["status"]["completedIndexes"], "1,3")
        self.assertEqual(again["spec"]["completions"], 5)
        self.assertEqual(again["metadata"]["annotations"]["muster.dev/retry-of"], "sweep")
        self.assertEqual(self.it.api.job("sweep")["status"], before["status"], "the job that failed stays as it is")
        self.assertEqual({p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
                          for p in self.it.api.pods() if "sweep-r2" in p["metadata"]["name"]}, {"1", "3"})
        self.assertIn("2/2", self.says("get", "job", "sweep-r2"))
        self.assertIn("all of its indexes have succeeded", self.says("retry", "job/sweep-r2", code=5))
        self.assertIn("what it has left is done, or runs, in job/sweep-r2", self.says("retry", "job/sweep", "--failed", code=5))
        self.assertIn("already exists", self.says("retry", "job/sweep", "--index", "1,3", "--name", "sweep-r2", code=5))
        self.assertIn("it has no index 7", self.says("retry", "job/sweep", "--index", "7", code=5))
        self.assertIn("sweep-r3", self.says("retry", "job/sweep-r2", "--index", "3"))
        code, answer = self.it.api.patch("sweep-r2", {"metadata": {"annotations": {"muster.dev/indexes": "2"}}})
        self.assertEqual(code, 422, answer)

    def test_finished_jobs_are_read_from_disk_and_bounded(self):
        self.it.kill_coordinator()
        self.it.extra = ["--finished-jobs-max", "3"]
        self.it.start_coordinator()
        self.it.wait_nodes()
        for n in range(6):
            self.it.api.create(sh_job(f"small-{n}", "true", 1))
            self.it.wait(f"small-{n}", finished, 20)
        names = lambda: [j["metadata"]["name"] for j in self.it.api.call("GET", self.it.api.jobs())[1]["items"]]
        eventually(lambda: names() == ["small-3", "small-4", "small-5"], "the oldest are gone")
        self.it.kill_coordinator()
        self.it.start_coordinator()
        self.it.wait_nodes()
        self.assertEqual(names(), ["small-3", "small-4", "small-5"])
        code, changed = self.it.api.patch("small-4", {"metadata": {"labels": {"kept": "yes"}}})
        self.assertEqual((code, changed["metadata"]["labels"]["kept"]), (200, "yes"))
        self.assertEqual(self.it.api.job("small-4")["status"]["succeeded"], 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
