#!/usr/bin/python3
"""A minimal controller in the style of Kueue: it is elected through a Lease, admits suspended jobs within a quota of pods, and reports
what it did in events. Two of them run against one coordinator, which is killed meanwhile.

    MUSTER=build/release/muster tests/e2e/suspend_controller.py [TEST…]
"""
import datetime
import json
import pathlib
import subprocess
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished, sh_job  # noqa: E402

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CORE_EVENTS = "/api/v1/namespaces/default/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
QUEUE = "quota.example.com/queue"
MERGE = "application/merge-patch+json"


def micro_time():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Controller(threading.Thread):
    """Admits jobs from its queue, oldest first, while it holds the lease."""
    LEASE_SECONDS = 2

    def __init__(self, api, name, quota):
        super().__init__(daemon=True)
        self.api, self.name, self.quota = api, name, quota
        self.stopping = threading.Event()
        self.admitted, self.wrong = [], []
        self.valid_until = 0.0
        self.series = None
        self.start()

    def run(self):
        while not self.stopping.wait(0.1):
            try:
                if self.lead():
                    self.admit()
            except OSError:
                continue  # the coordinator is down
            except Exception as failure:  # fails the test
                self.wrong.append(repr(failure))

    def lead(self):
        """Takes or renews the lease as client-go does, based on the lease's version and the client's own clock."""
        begin = time.monotonic()
        code, lease = self.api.call("GET", f"{LEASES}/quota")
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": self.LEASE_SECONDS, "acquireTime": micro_time(),
                "renewTime": micro_time(), "leaseTransitions": 0}
        if code == 404:
            code, lease = self.api.call("POST", LEASES, {"metadata": {"name": "quota"}, "spec": spec})
        elif code == 200:
            old = lease["spec"]
            mine = old["holderIdentity"] == self.name
            seen = (old["holderIdentity"], old["renewTime"])
            if not mine and seen != getattr(self, "seen", None):
                self.seen, self.seen_at = seen, begin
            if not mine and begin < self.seen_at + self.LEASE_SECONDS:
                return False
            spec["leaseTransitions"] = old["leaseTransitions"] + (0 if mine else 1)
            spec["acquireTime"] = old["acquireTime"] if mine else micro_time()
            lease["spec"] = spec
            code, lease = self.api.call("PUT", f"{LEASES}/quota", lease)
        if code in (200, 201):
            self.valid_until = begin + self.LEASE_SECONDS
        return code in (200, 201) and time.monotonic() < self.valid_until

    def admit(self):
        code, jobs = self.api.call("GET", f"{self.api.jobs()}?labelSelector={QUEUE}")
        if code != 200:
            return
        jobs = sorted(jobs["items"], key=lambda job: int(job["metadata"]["name"].rsplit("-", 1)[1]))
        open_jobs = [job for job in jobs if not finished(job)]
        used = sum(job["spec"]["parallelism"] for job in open_jobs if not job["spec"]["suspend"])
        for job in open_jobs:
            if not job["spec"]["suspend"]:
                continue
            if used + job["spec"]["parallelism"] > self.quota:
                return
            name = job["metadata"]["name"]
            patch = {"metadata": {"resourceVersion": job["metadata"]["resourceVersion"]}, "spec": {"suspend": False}}
            code, _ = self.api.call("PATCH", f"{self.api.jobs()}/{name}", patch, MERGE)
            if code != 200:
                return  # another client was faster; retry later
            used += job["spec"]["parallelism"]
            self.admitted.append(name)
            self.tell(job)

    def tell(self, job):
        """Writes an event for the first admission and then updates its series, as client-go's recorder does."""
        meta = job["metadata"]
        if self.series is None:
            event = {"metadata": {"generateName": "quota."}, "eventTime": micro_time(), "reportingController": "example.com/quota",
                     "reportingInstance": self.name, "action": "Admit", "reason": "Admitted", "type": "Normal", "note": "within the quota",
                     "regarding": {"kind": "Job", "apiVersion": "batch/v1", "namespace": "default", "name": meta["name"], "uid": meta["uid"]}}
            code, made = self.api.call("POST", EVENTS, event)
            if code != 201:
                return self.wrong.append(f"an event: {code} {made}")
            self.series = [made["metadata"]["name"], 1]
        self.series[1] += 1
        patch = {"series": {"count": self.series[1], "lastObservedTime": micro_time()}}
        code, answer = self.api.call("PATCH", f"{EVENTS}/{self.series[0]}", patch, MERGE)
        if code != 200:
            self.wrong.append(f"a series: {code} {answer}")

    def end(self):
        self.stopping.set()
        self.join(20)


class SuspendController(World):
    def test_p24_two_controllers_share_one_quota_across_coordinator_kills(self):
        cluster = self.cluster(agents=1, slots=16)
        api, quota, jobs = cluster.api, 4, 10
        for i in range(jobs):
            job = sh_job(f"rows-{i}", "sleep 0.3", 4, parallelism=2, suspend=True)
            job["metadata"]["labels"] = {QUEUE: "q"}
            self.submit(cluster, job)
        controllers = [Controller(api, name, quota) for name in ("one", "two")]
        self.addCleanup(lambda: [c.end() for c in controllers])
        leader = lambda: api.call("GET", f"{LEASES}/quota")[1]["spec"]["holderIdentity"]  # noqa: E731
        most = self.watch_quota(api, quota)
        eventually(lambda: sum(len(c.admitted) for c in controllers) >= 2, "jobs are admitted")
        first = eventually(leader, "somebody leads")
        cluster.kill_coordinator()
        cluster.start_coordinator()
        cluster.wait_nodes()
        eventually(lambda: sum(len(c.admitted) for c in controllers) >= 4, "and go on being so after a restart")
        self.assertEqual(leader(), first, "a restart of the coordinator changes no leader")
        next(c for c in controllers if c.name == first).end()
        eventually(lambda: leader() != first, "the other one takes over")
        for i in range(jobs):
            cluster.wait(f"rows-{i}", finished, 60)
        for controller in controllers:
            controller.end()
            self.assertEqual(controller.wrong, [])
        admitted = [name for controller in controllers for name in controller.admitted]
        self.assertEqual(sorted(set(admitted)), sorted(f"rows-{i}" for i in range(jobs)))
        self.assertEqual(most.end(), [], "more than the quota ran")
        code, lease = api.call("GET", f"{LEASES}/quota")
        self.assertGreaterEqual(lease["spec"]["leaseTransitions"], 1)
        admitted = [e for e in api.events("reason=Admitted") if "series" in e]
        self.assertEqual({e["reportingInstance"] for e in admitted}, {c.name for c in controllers if c.admitted})
        job = admitted[0]["involvedObject"]["name"]
        self.assertIn("within the quota", self.muster("describe", "job", job, cluster=cluster).stdout)

    @staticmethod
    def watch_quota(api, quota):
        """Polls the number of pods that the admitted jobs may have."""
        class Looker(threading.Thread):
            def __init__(self):
                super().__init__(daemon=True)
                self.stopping, self.wrong = threading.Event(), []
                self.start()

            def run(self):
                while not self.stopping.wait(0.05):
                    try:
                        code, jobs = api.call("GET", api.jobs())
                    except OSError:
                        continue
                    if code != 200:
                        continue
                    used = sum(job["spec"]["parallelism"] for job in jobs["items"] if not finished(job) and not job["spec"]["suspend"])
                    if used > quota:
                        self.wrong.append(used)

            def end(self):
                self.stopping.set()
                self.join(10)
                return self.wrong
        return Looker()

    def test_p24_stale_lease_update_conflicts_after_a_restart(self):
        cluster = self.cluster(agents=0)
        api = cluster.api
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 15}
        code, made = api.call("POST", LEASES, {"metadata": {"name": "lock", "labels": {"app": "x"}}, "spec": spec})
        self.assertEqual(code, 201, made)
        self.assertEqual(api.call("POST", LEASES, {"metadata": {"name": "lock"}, "spec": spec})[0], 409)
        code, renewed = api.call("PUT", f"{LEASES}/lock", {**made, "spec": {**spec, "holderIdentity": "b"}})
        self.assertEqual(code, 200, renewed)
        self.assertEqual(renewed["metadata"]["uid"], made["metadata"]["uid"])
        self.assertEqual(api.call("PUT", f"{LEASES}/lock", {**made, "spec": spec})[0], 409)
        cluster.kill_coordinator()
        cluster.start_coordinator()
        eventually(lambda: api.call("GET", "/readyz")[0] == 200, "it serves")
        self.assertEqual(api.call("GET", f"{LEASES}/lock")[1], renewed)
        self.assertEqual(api.call("PUT", f"{LEASES}/lock", {**made, "spec": spec})[0], 409, "an old version, after a restart")
        code, answer = api.call("PUT", f"{LEASES}/lock", {"metadata": {"name": "lock"}, "spec": spec})
        self.assertEqual((code, "must be specified for an update" in str(answer)), (422, True))
        stale = {"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}}
        self.assertEqual(api.call("DELETE", f"{LEASES}/lock", stale)[0], 409)
        code, patched = api.call("PATCH", f"{LEASES}/lock", {"spec": {"holderIdentity": None}}, MERGE)
        self.assertEqual((code, "holderIdentity" in patched["spec"]), (200, False))
        self.assertEqual(len(api.call("GET", f"{LEASES}?labelSelector=app%3Dx")[1]["items"]), 1)
        code, pretended = api.call("PUT", f"{LEASES}/lock?dryRun=All", {**patched, "spec": spec})
        self.assertEqual((code, pretended["spec"]["holderIdentity"]), (200, "a"))
        self.assertEqual(api.call("GET", f"{LEASES}/lock")[1], patched, "a dry run changes nothing")
        self.assertEqual(api.call("DELETE", f"{LEASES}/lock", {})[0], 200)
        self.assertEqual(api.call("GET", f"{LEASES}/lock")[0], 404)
        applied = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lock"}, "spec": {"holderIdentity": "x"}}
        for code in (201, 200):
            self.assertEqual(api.call("PATCH", f"{LEASES}/lock?fieldManager=x", applied, "application/apply-patch+yaml")[0], code)
        taken = {**applied, "spec": {"holderIdentity": "y"}}
        self.assertEqual(api.call("PATCH", f"{LEASES}/lock?fieldManager=y", taken, "application/apply-patch+yaml")[0], 409)

    def test_p24_events_are_served_in_both_groups(self):
        cluster = self.cluster(agents=1)
        api = cluster.api
        self.submit(cluster, sh_job("rows", "true", 1))
        cluster.wait("rows", finished, 20)
        body = {"metadata": {"name": "mine"}, "involvedObject": {"kind": "Job", "namespace": "default", "name": "rows"},
                "reason": "Seen", "message": "by a client", "type": "Normal", "count": 1}
        code, made = api.call("POST", CORE_EVENTS, body)
        self.assertEqual(code, 201, made)
        code, counted = api.call("PATCH", f"{CORE_EVENTS}/mine", {"count": 2}, "application/strategic-merge-patch+json")
        self.assertEqual((code, counted["count"]), (200, 2))
        code, other = api.call("GET", f"{EVENTS}/mine")
        self.assertEqual((other["note"], other["regarding"]["name"], other["deprecatedCount"]), ("by a client", "rows", 2))
        names, token = [], ""
        while True:
            code, page = api.call("GET", f"{EVENTS}?limit=1{token}")
            self.assertEqual(page["apiVersion"], "events.k8s.io/v1")
            names += [(item["metadata"]["name"], item["reason"]) for item in page["items"]]
            if "continue" not in page["metadata"]:
                break
            token = "&continue=" + page["metadata"]["continue"]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual({reason for _, reason in names}, {"SuccessfulCreate", "Completed", "Seen"})
        own = next(name for name, reason in names if reason == "Completed")
        code, answer = api.call("DELETE", f"{CORE_EVENTS}/{own}")
        self.assertEqual((code, "cannot be changed" in str(answer)), (400, True))
        self.assertEqual(api.call("PATCH", f"{CORE_EVENTS}/{own}", {"count": 7}, MERGE)[0], 400)
        self.assertEqual(api.call("DELETE", CORE_EVENTS, {})[0], 200)
        self.assertEqual({e["reason"] for e in api.events()}, {"SuccessfulCreate", "Completed"})

    def test_p24_kubectl_reads_and_writes_leases_and_events(self):
        if subprocess.run(["sh", "-c", "command -v kubectl"], stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no kubectl")
        cluster = self.cluster(agents=0)

        def kubectl(*words, stdin=None):
            done = subprocess.run(["kubectl", "--server", f"http://{cluster.api_addr}", "--cache-dir", str(cluster.dir / "cache"), *words],
                                  input=stdin, text=True, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lock"},
                 "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
        self.assertIn("created", kubectl("create", "-f", "-", stdin=json.dumps(lease)))
        lease["spec"]["holderIdentity"] = "you"
        kubectl("replace", "-f", "-", stdin=json.dumps({**lease, "metadata": json.loads(kubectl("get", "lease", "lock", "-o", "json"))["metadata"]}))
        self.assertRegex(kubectl("get", "leases"), r"lock +you")
        self.assertIn("holderIdentity", kubectl("explain", "lease.spec"))
        self.assertIn("deleted", kubectl("delete", "lease", "lock"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
