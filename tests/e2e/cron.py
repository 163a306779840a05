#!/usr/bin/python3
"""Cron jobs: what muster's own commands and an unmodified kubectl make of them, and that a scheduled time has one job whatever is killed.

    MUSTER=build/release/muster [KUBECTL=/usr/bin/kubectl] tests/e2e/cron.py [TEST…]
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from kube_client import Kubectl, main, since  # noqa: E402
from world import World, eventually  # noqa: E402

CRONS = "/apis/batch/v1/namespaces/default/cronjobs"


def cron_job(name, schedule, script="echo ran", **spec):
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "command": ["sh", "-c", script]}]}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": pod}}}, **spec}}


class Schedules(World):
    """Of a cluster with one node."""

    def setUp(self):
        self.it = self.cluster(agents=1, slots=8)

    def call(self, method, path, body=None):
        more = {"ctype": "application/merge-patch+json"} if method == "PATCH" else {}
        return self.it.api.call(method, path, body, **more)

    def run_muster(self, *args, code=0):
        done = self.muster("--api", self.it.api_addr, *args)
        self.assertEqual(done.returncode, code, f"{args}\n{done.stdout}{done.stderr}")
        return done.stderr if code else done.stdout

    def create(self, cron):
        code, body = self.call("POST", CRONS, cron)
        self.assertEqual(code, 201, body)
        return body

    def cron(self, name):
        return self.call("GET", f"{CRONS}/{name}")[1]

    def jobs(self, cron):
        """The jobs of a cron job, by name."""
        found = self.call("GET", "/apis/batch/v1/namespaces/default/jobs")[1]["items"]
        return {j["metadata"]["name"]: j for j in found
                if any(o["uid"] == cron["metadata"]["uid"] for o in j["metadata"].get("ownerReferences", []))}

    def complete(self, jobs):
        return [n for n, j in jobs.items() if any(c["type"] == "Complete" for c in j["status"].get("conditions", []))]

    def events(self):
        return {e["reason"] for e in self.call("GET", "/api/v1/namespaces/default/events")[1]["items"]
                if e["involvedObject"]["kind"] == "CronJob"}

    def test_job_runs_at_its_time_and_is_seen_to_complete(self):
        cron = self.create(cron_job("tick", "@every 1s"))
        eventually(lambda: self.complete(self.jobs(cron)), "a job has completed")
        status = eventually(lambda: (s := self.cron("tick")["status"]).get("lastSuccessfulTime") and s, "it is seen")
        self.assertIn("lastScheduleTime", status)
        self.assertLessEqual({"SuccessfulCreate", "SawCompletedJob"}, self.events())
        # Within a minute there is one job, whose name is that of the minute.
        for name in self.jobs(cron):
            self.assertRegex(name, r"^tick-\d{8}$")

    def test_missed_time_is_made_up_for_once_after_a_crash(self):
        cron = self.create(cron_job("tick", "@every 1s", "sleep 600"))
        first = eventually(lambda: self.jobs(cron), "a job was created")
        for _ in range(3):
            self.it.kill_coordinator()
            self.it.restart_coordinator()
            eventually(lambda: self.cron("tick")["status"].get("active"), "its status has it")
            now = self.jobs(cron)
            self.assertEqual({n: now[n]["metadata"]["uid"] for n in first}, {n: j["metadata"]["uid"] for n, j in first.items()})
            active = [a["name"] for a in self.cron("tick")["status"]["active"]]
            self.assertEqual(len(active), len(set(active)))

    def test_deletion_takes_the_jobs_along_unless_they_are_orphaned(self):
        for policy, left in ("Background", False), ("Orphan", True):
            cron = self.create(cron_job("tick", "@every 1s", "sleep 600"))
            name = next(iter(eventually(lambda: self.jobs(cron), "a job was created")))
            self.assertEqual(self.call("PATCH", f"{CRONS}/tick", {"spec": {"suspend": True}})[0], 200)
            code, body = self.call("DELETE", f"{CRONS}/tick?propagationPolicy={policy}")
            self.assertEqual(code, 200, body)
            path = f"/apis/batch/v1/namespaces/default/jobs/{name}"
            if left:
                self.assertNotIn("ownerReferences", self.call("GET", path)[1]["metadata"])
                self.assertEqual(self.call("DELETE", path + "?propagationPolicy=Background")[0], 200)
            else:
                eventually(lambda: self.call("GET", path)[0] == 404, "the job is gone")

    def test_operations_of_the_api(self):
        """Those of Kubernetes' conformance: create, get, list, watch, update, patch, status, delete, delete the collection."""
        group = self.call("GET", "/apis/batch/v1")[1]["resources"]
        self.assertLessEqual({"cronjobs", "cronjobs/status"}, {one["name"] for one in group})
        made = [self.create(dict(cron_job(f"c{i}", "*/1 * * * *", suspend=True), metadata={"name": f"c{i}", "labels": {"set": "one"}}))
                for i in range(3)]
        self.assertEqual(self.cron("c0")["spec"]["concurrencyPolicy"], "Allow")
        for path in (CRONS, "/apis/batch/v1/cronjobs"):
            self.assertEqual(len(self.call("GET", f"{path}?labelSelector=set%3Done")[1]["items"]), 3)
        began = self.call("GET", CRONS)[1]["metadata"]["resourceVersion"]
        code, patched = self.call("PATCH", f"{CRONS}/c0", {"metadata": {"annotations": {"patched": "true"}}})
        self.assertEqual((code, patched["metadata"]["annotations"]["patched"]), (200, "true"))
        patched["metadata"]["annotations"]["updated"] = "true"
        code, updated = self.call("PUT", f"{CRONS}/c0", patched)
        self.assertEqual((code, updated["metadata"]["annotations"]["updated"]), (200, "true"))
        self.assertEqual(self.call("PUT", f"{CRONS}/c0", patched)[0], 409, "of a version that is over")
        at = "2020-01-01T00:00:00Z"
        code, shown = self.call("PATCH", f"{CRONS}/c0/status", {"metadata": {"annotations": {"s": "1"}}, "status": {"lastScheduleTime": at}})
        self.assertEqual((code, shown["status"]["lastScheduleTime"]), (200, at))
        shown["status"]["lastScheduleTime"] = "2020-01-02T00:00:00Z"
        self.assertEqual(self.call("PUT", f"{CRONS}/c0/status", shown)[1]["status"]["lastScheduleTime"], "2020-01-02T00:00:00Z")
        self.assertEqual(self.call("GET", f"{CRONS}/c0/status")[1]["metadata"]["uid"], made[0]["metadata"]["uid"])
        self.assertEqual(self.call("DELETE", f"{CRONS}/c0")[0], 200)
        eventually(lambda: self.call("GET", f"{CRONS}/c0")[0] == 404, "it is gone")
        self.assertEqual(self.call("DELETE", f"{CRONS}?labelSelector=set%3Done")[0], 200)
        eventually(lambda: not self.call("GET", CRONS)[1]["items"], "the rest, too")
        seen = [(json.loads(line)["type"], json.loads(line)["object"]["metadata"]["name"])
                for line in self.call("GET", f"{CRONS}?watch=1&resourceVersion={began}&timeoutSeconds=1")[1].splitlines()]
        self.assertEqual(seen[-3:], [("DELETED", "c0"), ("DELETED", "c1"), ("DELETED", "c2")])
        self.assertEqual(set(seen[:-3]), {("MODIFIED", "c0")})

    def test_commands(self):
        run = self.run_muster
        made = run("create", "cronjob", "nightly", "--schedule", "30 2 * * *", "--time-zone", "Europe/Berlin", "--", "echo", "night")
        self.assertEqual(made, "cronjob.batch/nightly created\n")
        row = run("get", "cronjobs").splitlines()[1].split()
        self.assertEqual(row[:9], ["nightly", "30", "2", "*", "*", "*", "Europe/Berlin", "False", "0"])
        self.assertEqual(run("create", "job", "now", "--from", "cronjob/nightly"), "job.batch/now created\n")
        run("wait", "job/now", "--timeout", "60s")
        self.assertEqual(run("logs", "job/now", "--index", "0"), "night\n")
        job = json.loads(run("get", "job", "now", "-o", "json"))
        self.assertEqual(job["metadata"]["ownerReferences"][0]["name"], "nightly")
        self.assertEqual(job["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"], "manual")
        self.assertEqual(run("suspend", "cronjob/nightly"), "cronjob.batch/nightly suspended: it starts no jobs\n")
        self.assertTrue(self.cron("nightly")["spec"]["suspend"])
        self.assertEqual(run("resume", "cronjob/nightly"), "cronjob.batch/nightly resumed\n")
        manifest = run("submit", "-n", "3", "--dry-run", "-o", "yaml", "--", "true")
        file = self.it.dir / "job.yaml"
        file.write_text(manifest)
        run("create", "cronjob", "sweep", "--schedule", "@daily", "--concurrency", "Forbid", "-f", str(file))
        spec = self.cron("sweep")["spec"]
        self.assertEqual((spec["concurrencyPolicy"], spec["jobTemplate"]["spec"]["completions"]), ("Forbid", 3))
        self.assertIn("schedule <string>", run("explain", "cronjob.spec.schedule").replace("FIELD: ", ""))
        self.assertEqual(run("delete", "cronjob", "nightly", "sweep").count("deleted"), 2)

    def test_mistakes_say_what_would_be_right(self):
        def wrong(*args, code=2):
            return self.run_muster("create", *args, code=code)
        self.assertIn("when? --schedule", wrong("cronjob", "x", "--", "true"))
        self.assertIn("start what?", wrong("cronjob", "x", "--schedule", "@daily"))
        self.assertIn("must be cronjob or job", wrong("pod", "x"))
        self.assertIn("--from cronjob/NAME", wrong("job", "x"))
        self.assertIn("--schedule and --time-zone are of a cron job", wrong("--schedule", "@daily", "-f", "x"))
        self.assertIn("end of range (60) above maximum (59)", wrong("cronjob", "x", "--schedule", "60 * * * *", "--", "true", code=5))
        self.assertIn("not found", wrong("job", "x", "--from", "cronjob/none", code=3))


class OfKubectl(Kubectl):
    def test_kubectl_applies_shows_and_deletes(self):
        self.kubectl("apply", "-f", "-", stdin=json.dumps(cron_job("tick", "*/5 * * * *", suspend=True)))
        row = self.table("cronjobs")[0]
        self.assertEqual((row["NAME"], row["SCHEDULE"], row["SUSPEND"], row["ACTIVE"]), ("tick", "*/5 * * * *", "True", "0"))
        self.assertIn("unchanged", self.kubectl("apply", "-f", "-", stdin=json.dumps(cron_job("tick", "*/5 * * * *", suspend=True))))
        self.assertIn("TZ or CRON_TZ", self.refused("apply", "-f", "-", stdin=json.dumps(cron_job("x", "TZ=UTC @daily"))))
        self.kubectl("delete", "cronjob", "tick")
        self.assertIn("NotFound", self.refused("get", "cj", "tick"))

    @since(21, "a CronJob of batch/v1")
    def test_kubectl_creates_a_cron_job_and_a_job_from_it(self):
        self.kubectl("create", "cronjob", "tick", "--image=none", "--schedule=0 0 1 1 *", "--", "echo", "hi")
        self.kubectl("create", "job", "now", "--from=cronjob/tick")
        self.complete("now")
        self.assertIn("0 0 1 1 *", self.kubectl("describe", "cronjob", "tick"))


if __name__ == "__main__":
    main()
