#!/usr/bin/python3
"""Clients of the API that page, watch, apply, stop reading or send garbage: real sockets against a real coordinator.

    MUSTER=build/release/muster tests/e2e/api.py [TEST…]
"""
import contextlib
import http.client
import json
import pathlib
import resource
import select
import socket
import sys
import time
import unittest
import urllib.parse

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished, sh_job, untaint  # noqa: E402

MANY = 100_000  # pods, so that lists are too large to go unnoticed in memory
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


def rss_mb(pid):
    for line in pathlib.Path("/proc", str(pid), "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


def sockets(pid):
    found = 0
    for fd in pathlib.Path("/proc", str(pid), "fd").iterdir():
        with contextlib.suppress(OSError):
            found += "socket:" in str(fd.readlink())
    return found


class Raw:
    """A connection that can send arbitrary bytes."""

    def __init__(self, cluster, timeout=20):
        host, _, port = cluster.api_addr.rpartition(":")
        self.host = cluster.api_addr
        self.sock = socket.create_connection((host, int(port)), timeout=timeout)
        self.buffer = b""

    def say(self, text):
        self.sock.sendall(text if isinstance(text, bytes) else text.encode())
        return self

    def request(self, method, path, headers="", body=""):
        length = f"Content-Length: {len(body.encode())}\r\n" if body or method in ("POST", "PUT", "PATCH") else ""
        return self.say(f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n{headers}{length}\r\n{body}")

    def more(self):
        part = self.sock.recv(1 << 16)
        if not part:
            raise ConnectionError(f"the server has closed; before that: {self.buffer[:200]!r}")
        self.buffer += part

    def answer(self):
        """(status code, head, body) of the next answer, which has a Content-Length."""
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
        while len(self.buffer) < length:
            self.more()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return int(head.split()[1]), head.decode(), body

    def closed(self):
        """Waits until the server closes; returns what it sent before."""
        with contextlib.suppress(ConnectionError):
            while True:
                self.more()
        return self.buffer

    def close(self):
        self.sock.close()


class ApiWorld(World):
    def hollow(self, pods=0, name="many", duration="0", slots=1000):
        """A cluster that runs no processes, in which `pods` pods of one job have finished."""
        cluster = self.cluster(agents=1, slots=slots, agent_extra=["--hollow", "--hollow-duration", duration])
        untaint(cluster)
        if pods:
            self.submit(cluster, sh_job(name, "true", pods, parallelism=slots))
            cluster.wait(name, finished, 120)
        return cluster

    def call(self, cluster, method, path, body=None, ctype="application/json", accept="application/json", headers=()):
        connection = http.client.HTTPConnection(cluster.api_addr, timeout=60)
        with contextlib.closing(connection):
            data = None if body is None else body if isinstance(body, (bytes, str)) else json.dumps(body)
            connection.request(method, path, data, {"Accept": accept, **({"Content-Type": ctype} if data is not None else {}), **dict(headers)})
            answer = connection.getresponse()
            raw = answer.read()
            return answer.status, json.loads(raw) if raw[:1] in (b"{", b"[") else raw, answer.headers

    def pages(self, cluster, path, limit, accept="application/json"):
        """All pages of a list."""
        token, found = "", []
        while True:
            query = {"limit": limit, **({"continue": token} if token else {})}
            joined = path + ("&" if "?" in path else "?") + urllib.parse.urlencode(query)
            code, page, _ = self.call(cluster, "GET", joined, accept=accept)
            self.assertEqual(code, 200, page)
            found.append(page)
            token = page["metadata"].get("continue")
            if not token:
                return found


class Lists(ApiWorld):
    def test_list_pages_are_complete(self):
        cluster = self.hollow(1000)
        for name in ("b", "a"):
            self.submit(cluster, sh_job(name, "true", 30))
            cluster.wait(name)
        whole = self.call(cluster, "GET", PODS)[1]
        names = [pod["metadata"]["name"] for pod in whole["items"]]
        self.assertEqual(len(names), 1060)
        found = self.pages(cluster, PODS, 100)
        self.assertEqual([len(page["items"]) for page in found], [100] * 10 + [60])
        self.assertEqual([pod["metadata"]["name"] for page in found for pod in page["items"]], names)
        self.assertEqual([page["metadata"].get("remainingItemCount") for page in found], [*range(960, 0, -100), None])
        self.assertEqual(len({page["metadata"]["resourceVersion"] for page in found}), 1, "all pages are of the first one's version")
        tables = self.pages(cluster, PODS, 250, TABLE)
        self.assertEqual([row["object"]["metadata"]["name"] for page in tables for row in page["rows"]], names)
        selected = self.pages(cluster, PODS + "?labelSelector=" + urllib.parse.quote("job-name=many"), 999)
        self.assertEqual([len(page["items"]) for page in selected], [999, 1])
        self.assertNotIn("remainingItemCount", selected[0]["metadata"], "of a selection it is not known")
        exact = self.pages(cluster, PODS + "?labelSelector=" + urllib.parse.quote("job-name=many"), 1000)
        self.assertEqual(len(exact), 1)
        jobs = self.pages(cluster, JOBS, 1)
        self.assertEqual([page["items"][0]["metadata"]["name"] for page in jobs], ["a", "b", "many"])
        events = self.pages(cluster, "/api/v1/events", 7)
        uids = [event["metadata"]["uid"] for page in events for event in page["items"]]
        self.assertEqual(uids, [event["metadata"]["uid"] for event in self.call(cluster, "GET", "/api/v1/events")[1]["items"]])
        self.assertEqual(len(self.pages(cluster, "/api/v1/nodes", 1)), 1)

    def test_wrong_or_expired_continue_tokens_are_refused(self):
        cluster = self.hollow(20)
        first = self.call(cluster, "GET", PODS + "?limit=5")[1]
        token = urllib.parse.quote(first["metadata"]["continue"])
        for wrong in ("x", "e30", token[:-8], "%00", token + "AAAA"):
            code, answer, _ = self.call(cluster, "GET", f"{PODS}?limit=5&continue={wrong}")
            self.assertEqual((code, answer.get("reason")), (400, "BadRequest"), wrong)
        self.assertEqual(self.call(cluster, "GET", PODS + "?limit=-1")[0], 400)
        self.assertEqual(self.call(cluster, "GET", f"{PODS}?continue={token}&resourceVersion=5")[0], 400)
        # If a pod is deleted between two pages, no page is torn and no other pod is missing.
        rest = self.call(cluster, "GET", f"{PODS}?limit=5&continue={token}")[1]
        gone = rest["items"][0]["metadata"]["name"]
        self.call(cluster, "DELETE", f"{PODS}/{gone}")
        again = self.call(cluster, "GET", f"{PODS}?limit=5&continue={token}")[1]
        self.assertEqual([pod["metadata"]["name"] for pod in again["items"]][:4], [pod["metadata"]["name"] for pod in rest["items"]][1:])
        # After a restart, the changes since the first page are no longer known.
        cluster.api.create(sh_job("later", "true", 1))
        cluster.wait("later")
        cluster.restart_coordinator()
        eventually(lambda: self.call(cluster, "GET", "/readyz")[0] == 200, "it serves again")
        code, answer, _ = self.call(cluster, "GET", f"{PODS}?limit=5&continue={token}")
        self.assertEqual((code, answer["reason"]), (410, "Expired"))
        self.assertIn("inconsistent list", answer["message"])
        # Its rest can be had as of now, with the token in the answer.
        path = f"{PODS}?limit=100&continue={urllib.parse.quote(answer['metadata']['continue'])}"
        code, now, _ = self.call(cluster, "GET", path)
        self.assertEqual((code, len(now["items"])), (200, 14), "20 pods less the first page and the deleted one")
        self.assertGreater(int(now["metadata"]["resourceVersion"]), int(first["metadata"]["resourceVersion"]))

    def test_list_checks_resource_version(self):
        cluster = self.hollow(3)
        version = int(self.call(cluster, "GET", PODS)[1]["metadata"]["resourceVersion"])
        self.assertEqual(self.call(cluster, "GET", f"{PODS}?resourceVersion={version}&resourceVersionMatch=NotOlderThan")[0], 200)
        self.assertEqual(self.call(cluster, "GET", f"{PODS}?resourceVersion={version + 1000}")[0], 504)
        self.assertEqual(self.call(cluster, "GET", f"{PODS}?resourceVersion=1&resourceVersionMatch=Exact")[0], 410)
        self.assertEqual(self.call(cluster, "GET", f"{PODS}?resourceVersionMatch=Exact")[0], 422)
        self.assertEqual(self.call(cluster, "GET", f"{PODS}?resourceVersion=x")[0], 400)

    def test_a_long_list_is_never_in_memory(self):
        cluster = self.hollow(duration="1h", slots=MANY)
        self.submit(cluster, sh_job("many", "true", MANY))
        eventually(lambda: cluster.api.job("many")["status"].get("ready") == MANY, "all pods are there", 60)
        # Read it once, to fill the cache that all lists share.
        connection = http.client.HTTPConnection(cluster.api_addr, timeout=60)
        connection.request("GET", PODS)
        answer, size = connection.getresponse(), 0
        while part := answer.read(1 << 20):
            size += len(part)
        connection.close()
        self.assertGreater(size, 100 << 20, "a list of more than 100 MB")
        before = rss_mb(cluster.coord.pid)
        readers = [Raw(cluster) for _ in range(8)]
        for reader in readers:
            reader.request("GET", PODS)
        for reader in readers:
            reader.sock.recv(1 << 16)  # the answer has begun; from here on it is not read
        for _ in range(100):  # meanwhile one reader continues slowly
            readers[0].sock.recv(1 << 16)
            self.assertEqual(self.call(cluster, "GET", "/readyz")[0], 200)
        grown = rss_mb(cluster.coord.pid) - before
        self.assertLess(grown, 40, "eight lists of 10^5 pods")
        for reader in readers:
            reader.close()


class Watches(ApiWorld):
    def events(self, cluster, path, seconds):
        """All lines of a watch that ends at its timeout."""
        connection = http.client.HTTPConnection(cluster.api_addr, timeout=seconds + 20)
        with contextlib.closing(connection):
            connection.request("GET", f"{path}{'&' if '?' in path else '?'}watch=true&timeoutSeconds={seconds}", headers={"Accept": "application/json"})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            return [json.loads(line) for line in answer.read().splitlines()]

    def test_watch_ends_at_timeout_and_resumes_by_version(self):
        cluster = self.hollow(5)
        began = time.monotonic()
        first = self.events(cluster, PODS, 1)
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual([event["type"] for event in first], ["ADDED"] * 5)
        version = self.call(cluster, "GET", PODS)[1]["metadata"]["resourceVersion"]
        self.submit(cluster, sh_job("next", "true", 2))
        cluster.wait("next")
        after = self.events(cluster, f"{PODS}?resourceVersion={version}", 1)
        self.assertEqual({event["object"]["metadata"]["labels"]["job-name"] for event in after}, {"next"})
        self.assertEqual(after[0]["type"], "ADDED")
        initial = self.events(cluster, f"{JOBS}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", 1)
        self.assertEqual([event["type"] for event in initial][:3], ["ADDED", "ADDED", "BOOKMARK"])
        self.assertEqual(initial[2]["object"]["metadata"]["annotations"], {"k8s.io/initial-events-end": "true"})

    def test_watch_of_expired_version_is_refused(self):
        cluster = self.hollow(5)
        version = self.call(cluster, "GET", PODS)[1]["metadata"]["resourceVersion"]
        self.submit(cluster, sh_job("later", "true", 1))
        cluster.wait("later")
        cluster.restart_coordinator()  # earlier changes are no longer known
        eventually(lambda: self.call(cluster, "GET", "/readyz")[0] == 200, "it serves again")
        code, answer, _ = self.call(cluster, "GET", f"{PODS}?watch=true&resourceVersion={version}")
        self.assertEqual((code, answer["reason"]), (410, "Expired"))
        self.assertEqual(self.call(cluster, "GET", f"{PODS}?watch=true&resourceVersion={'9' * 18}&timeoutSeconds=1")[:2], (200, b""))  # it waits
        self.assertEqual(self.call(cluster, "GET", PODS + "?watch=true&resourceVersion=x")[0], 400)
        self.assertEqual(self.call(cluster, "GET", PODS + "?watch=true&timeoutSeconds=x")[0], 400)

    def follow(self, cluster, path, version):
        """The answer of a watch, whose lines are its events."""
        connection = http.client.HTTPConnection(cluster.api_addr, timeout=60)
        self.addCleanup(connection.close)
        joined = "&" if "?" in path else "?"
        connection.request("GET", f"{path}{joined}watch=true&resourceVersion={version}", headers={"Accept": "application/json"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        return answer

    def test_every_change_is_sent_in_order(self):
        cluster = self.hollow()
        self.submit(cluster, sh_job("history", "true", 1, suspend=True))
        self.assertEqual(self.call(cluster, "POST", CONFIG_MAPS, {"metadata": {"name": "history"}})[0], 201)
        cluster.wait("history", lambda job: job["status"].get("conditions"), 20)  # it is suspended: nothing else changes it
        for path in (JOBS, CONFIG_MAPS):
            version = self.call(cluster, "GET", path)[1]["metadata"]["resourceVersion"]
            live = [self.follow(cluster, path, version) for _ in range(2)]
            selected = self.follow(cluster, f"{path}?labelSelector=tier%3Da", version)
            changes = []
            for n in range(60):
                labels = {"n": str(n), "tier": "ab"[n % 2]}
                code, changed, _ = self.call(cluster, "PATCH", f"{path}/history", {"metadata": {"labels": labels}}, ctype="application/merge-patch+json")
                self.assertEqual(code, 200, changed)
                changes.append((changed["metadata"]["resourceVersion"], str(n)))
            for answer in [*live, self.follow(cluster, path, version)]:
                events = [json.loads(answer.readline()) for _ in changes]
                self.assertEqual([event["type"] for event in events], ["MODIFIED"] * len(changes))
                seen = [event["object"]["metadata"] for event in events]
                self.assertEqual([(meta["resourceVersion"], meta["labels"]["n"]) for meta in seen], changes)
            # DELETED has the object as it was before.
            events = [json.loads(selected.readline()) for _ in changes]
            self.assertEqual([event["type"] for event in events], ["ADDED", "DELETED"] * (len(changes) // 2))
            self.assertEqual([event["object"]["metadata"]["resourceVersion"] for event in events], [change[0] for change in changes])
            self.assertEqual({event["object"]["metadata"]["labels"]["tier"] for event in events}, {"a"})

    def test_watcher_that_falls_behind_is_cut(self):
        cluster = self.hollow()
        self.assertEqual(self.call(cluster, "POST", CONFIG_MAPS, {"metadata": {"name": "large"}})[0], 201)
        version = self.call(cluster, "GET", CONFIG_MAPS)[1]["metadata"]["resourceVersion"]
        slow = self.follow(cluster, CONFIG_MAPS, version)
        for n in range(80):
            change = {"data": {"n": str(n), "text": str(n % 10) * 900_000}}
            self.assertEqual(self.call(cluster, "PATCH", f"{CONFIG_MAPS}/large", change, ctype="application/merge-patch+json")[0], 200)
        events = [json.loads(line) for line in slow]  # until the server ends it
        self.assertEqual((events[-1]["type"], events[-1]["object"]["code"], events[-1]["object"]["reason"]), ("ERROR", 410, "Expired"))
        sent = [event["object"]["data"]["n"] for event in events[:-1]]
        self.assertEqual(sent, [str(n) for n in range(len(sent))], "until then it misses nothing")
        code, answer, _ = self.call(cluster, "GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={version}")
        self.assertEqual((code, answer["reason"]), (410, "Expired"))
        self.assertEqual(self.call(cluster, "GET", f"{JOBS}?watch=true&resourceVersion={version}&timeoutSeconds=1")[0], 200)

    def test_watchers_that_stop_reading_cost_no_memory(self):
        cluster = self.hollow(100)
        idle = [Raw(cluster) for _ in range(50)]
        for one in idle:
            one.request("GET", PODS + "?watch=true&resourceVersion=0")
            one.sock.recv(1000)
        before = rss_mb(cluster.coord.pid)
        self.submit(cluster, sh_job("load", "true", 30_000, parallelism=1000))
        job = cluster.wait("load", finished, 120)
        self.assertEqual(job["status"]["succeeded"], 30_000)
        # The job, its pods and the ring stay in memory. What 50 watchers have not read must not: it would be several GB.
        self.assertLess(rss_mb(cluster.coord.pid) - before, 400)
        self.assertEqual(self.call(cluster, "GET", "/readyz")[0], 200)
        for one in idle:
            one.close()

    def test_connections_of_vanished_watchers_are_closed(self):
        cluster = self.hollow(3)
        before = sockets(cluster.coord.pid)
        watchers = [Raw(cluster) for _ in range(100)]
        for one in watchers:
            one.request("GET", PODS + "?watch=true")
            one.sock.recv(1000)
        self.assertGreaterEqual(sockets(cluster.coord.pid), before + 100)
        for one in watchers:
            one.close()
        eventually(lambda: sockets(cluster.coord.pid) <= before + 2, "their connections are closed", 30)


class Apply(ApiWorld):
    def apply(self, cluster, name, manifest, manager="me", force=False):
        query = f"?fieldManager={manager}" + ("&force=true" if force else "")
        return self.call(cluster, "PATCH", f"{JOBS}/{name}{query}", manifest, "application/apply-patch+yaml")[:2]

    def test_managers_survive_a_restart(self):
        cluster = self.cluster(agents=1)
        manifest = sh_job("applied", "while :; do sleep 1; done", 2)
        code, job = self.apply(cluster, "applied", manifest)
        self.assertEqual(code, 201, job)
        code, answer = cluster.api.patch("applied", {"spec": {"parallelism": 1}})
        self.assertEqual(code, 200, answer)
        managed = answer["metadata"]["managedFields"]
        cluster.restart_coordinator()
        eventually(lambda: self.call(cluster, "GET", "/readyz")[0] == 200, "it serves again")
        self.assertEqual(cluster.api.job("applied")["metadata"]["managedFields"], managed)
        code, answer = self.apply(cluster, "applied", manifest)
        self.assertEqual((code, answer["reason"]), (409, "Conflict"), answer)
        self.assertEqual([cause["field"] for cause in answer["details"]["causes"]], [".spec.parallelism"])
        code, answer = self.apply(cluster, "applied", manifest, force=True)
        self.assertEqual((code, answer["spec"]["parallelism"]), (200, 2))
        # Only changes to the spec increase the generation.
        generation = answer["metadata"]["generation"]
        code, answer = self.apply(cluster, "applied", manifest, manager="another")
        self.assertEqual((code, answer["metadata"].get("generation")), (200, generation), answer)

    def test_server_side_apply_sets_and_removes_node_labels(self):
        cluster = self.cluster(agents=1)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0", "labels": {"disk": "ssd"}}}
        path = "/api/v1/nodes/node-0?fieldManager=me"
        code, answer, _ = self.call(cluster, "PATCH", path, node, "application/apply-patch+yaml")
        self.assertEqual((code, answer["metadata"]["labels"]["disk"]), (200, "ssd"), answer)
        cluster.restart_coordinator()
        cluster.wait_nodes()
        del node["metadata"]["labels"]
        code, answer, _ = self.call(cluster, "PATCH", path, node, "application/apply-patch+yaml")
        self.assertEqual((code, answer["metadata"]["labels"].get("disk")), (200, None), answer)


    def test_applied_labels_of_pods_survive_a_restart(self):
        cluster = self.cluster(agents=1)
        self.submit(cluster, sh_job("kept", "while :; do sleep 1; done", 1))
        eventually(lambda: self.call(cluster, "GET", PODS)[1]["items"], "it has a pod")
        name = self.call(cluster, "GET", PODS)[1]["items"][0]["metadata"]["name"]
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"queue": "fast"}}}
        path = f"{PODS}/{name}?fieldManager="
        code, answer, _ = self.call(cluster, "PATCH", path + "me", pod, "application/apply-patch+yaml")
        self.assertEqual((code, answer["metadata"]["labels"]["queue"]), (200, "fast"), answer)
        cluster.restart_coordinator()
        cluster.wait_nodes()
        self.assertEqual(self.call(cluster, "GET", f"{PODS}/{name}")[1]["metadata"]["managedFields"], answer["metadata"]["managedFields"])
        pod["metadata"]["labels"]["queue"] = "slow"
        self.assertEqual(self.call(cluster, "PATCH", path + "other", pod, "application/apply-patch+yaml")[0], 409)
        del pod["metadata"]["labels"]
        code, answer, _ = self.call(cluster, "PATCH", path + "me", pod, "application/apply-patch+yaml")
        self.assertEqual((code, answer["metadata"]["labels"].get("queue")), (200, None), answer)
        pod["spec"] = {"nodeName": "elsewhere"}
        code, answer, _ = self.call(cluster, "PATCH", path + "me&force=true", pod, "application/apply-patch+yaml")
        self.assertEqual((code, answer["details"]["causes"][0]["field"]), (422, "spec"), answer)


class Owners(ApiWorld):
    """What an object owns goes with it, whatever crashes."""

    MAPS = "/api/v1/namespaces/default/configmaps"

    def config_map(self, cluster, name, *owners):
        code, made, _ = self.call(cluster, "POST", self.MAPS, {"metadata": {"name": name, "ownerReferences": list(owners)}})
        self.assertEqual(code, 201, made)
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": made["metadata"]["uid"], "blockOwnerDeletion": True}

    def job(self, cluster, name, script, *owners):
        manifest = sh_job(name, script, 1)
        manifest["metadata"]["ownerReferences"] = list(owners)
        self.submit(cluster, manifest)
        return {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": cluster.api.job(name)["metadata"]["uid"],
                "blockOwnerDeletion": True}

    def gone(self, cluster, path):
        eventually(lambda: self.call(cluster, "GET", path)[0] == 404, f"{path} is gone", 30)

    def test_jobs_go_with_their_owners_across_a_restart(self):
        cluster = self.cluster(agents=1)
        owner = self.config_map(cluster, "owner")
        runs = self.job(cluster, "runs", "while :; do sleep 1; done", owner)
        self.job(cluster, "below", "true", runs)
        self.job(cluster, "done", "true", owner)
        self.job(cluster, "foreign", "true", {"apiVersion": "example.com/v1", "kind": "Foo", "name": "f", "uid": "u"})
        for name in ("below", "done", "foreign"):
            cluster.wait(name)
        self.job(cluster, "never", "true", {**owner, "uid": "another"})
        self.gone(cluster, f"{JOBS}/never")
        self.assertEqual(self.call(cluster, "DELETE", f"{self.MAPS}/owner")[0], 200)
        cluster.kill_coordinator()
        cluster.restart_coordinator()
        for name in ("runs", "below", "done"):
            self.gone(cluster, f"{JOBS}/{name}")
        self.assertEqual(self.call(cluster, "GET", f"{JOBS}/foreign")[0], 200)

    def test_foreground_deletion_waits_for_dependents_across_a_restart(self):
        cluster = self.cluster(agents=1)
        owner = self.config_map(cluster, "owner")
        slow = "trap '' TERM; while :; do sleep 0.1; done"
        manifest = sh_job("slow", slow, 1)
        manifest["metadata"]["ownerReferences"] = [owner]
        manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 600
        self.submit(cluster, manifest)
        eventually(lambda: cluster.api.job("slow")["status"].get("ready") == 1, "it runs")
        top = self.job(cluster, "top", "true")
        cluster.wait("top")
        self.config_map(cluster, "of-top", top)
        code, answer, _ = self.call(cluster, "DELETE", f"{self.MAPS}/owner?propagationPolicy=Foreground")
        self.assertEqual((code, answer["metadata"].get("finalizers")), (200, ["foregroundDeletion"]), answer)
        self.assertEqual(self.call(cluster, "DELETE", f"{JOBS}/top?propagationPolicy=Foreground")[0], 200)
        self.gone(cluster, f"{self.MAPS}/of-top")
        self.gone(cluster, f"{JOBS}/top")
        eventually(lambda: "deletionTimestamp" in cluster.api.job("slow")["metadata"], "the dependent is deleted, too")
        cluster.kill_coordinator()
        cluster.restart_coordinator()
        code, answer, _ = self.call(cluster, "GET", f"{self.MAPS}/owner")
        self.assertEqual((code, "deletionTimestamp" in answer["metadata"]), (200, True), answer)
        pod = self.call(cluster, "GET", PODS)[1]["items"][0]["metadata"]["name"]
        self.call(cluster, "DELETE", f"{PODS}/{pod}?gracePeriodSeconds=0")
        self.gone(cluster, f"{JOBS}/slow")
        self.gone(cluster, f"{self.MAPS}/owner")


class OthersWrite(ApiWorld):
    """Conditions and labels written by other clients are kept like muster's own."""

    def test_p21_p22_conditions_and_labels_survive_a_restart(self):
        cluster = self.cluster(agents=1)
        self.submit(cluster, sh_job("kept", "while :; do sleep 1; done", 2))
        strategic, merge = "application/strategic-merge-patch+json", "application/merge-patch+json"
        quota = {"status": {"conditions": [{"type": "Quota", "status": "True", "reason": "Reserved"}]}}
        code, answer, _ = self.call(cluster, "PATCH", f"{JOBS}/kept/status", quota, strategic)
        self.assertEqual(code, 200, answer)
        complete = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        code, answer, _ = self.call(cluster, "PATCH", f"{JOBS}/kept/status", complete, strategic)
        self.assertEqual((code, answer["details"]["causes"][0]["field"]), (422, "status.conditions[Complete]"))
        eventually(lambda: len(cluster.api.pods()) == 2, "both pods are there")
        first, second = sorted(p["metadata"]["name"] for p in cluster.api.pods())
        meta = {"metadata": {"labels": {"queue": "fast"}, "annotations": {"note": "n"}}}
        code, answer, _ = self.call(cluster, "PATCH", f"{PODS}/{first}", meta, merge)
        self.assertEqual(code, 200, answer)
        code, answer, _ = self.call(cluster, "PATCH", f"{PODS}/{second}/status", {"status": {"phase": "Failed"}}, merge)
        self.assertEqual((code, answer["details"]["causes"][0]["field"]), (422, "status.phase"))
        cluster.restart_coordinator()
        eventually(lambda: self.call(cluster, "GET", "/readyz")[0] == 200, "it serves again")
        self.assertIn("Quota", [c["type"] for c in cluster.api.job("kept")["status"]["conditions"]])
        found = self.call(cluster, "GET", f"{PODS}?labelSelector=queue%3Dfast")[1]["items"]
        self.assertEqual([(p["metadata"]["name"], p["metadata"]["annotations"]["note"]) for p in found], [(first, "n")])


class Attacks(ApiWorld):
    """Requests designed to hold up the API are answered, and so is the next request."""

    def test_p04_no_single_request_holds_up_the_api(self):
        cluster = self.cluster(agents=1)
        self.submit(cluster, sh_job("target", "while :; do sleep 1; done", 1))
        ops, strategic = "application/json-patch+json", "application/strategic-merge-patch+json"
        note = "/metadata/annotations/a"
        doubling = [{"op": "add", "path": "/metadata/annotations", "value": {"a": {"b": "0123456789"}}}]
        doubling += [{"op": "copy", "from": note, "path": f"{note}/{i}"} for i in range(60)]
        moves = [{"op": "add", "path": "/metadata/annotations", "value": {"a": list(range(50_000))}}]
        moves += [{"op": "move", "from": f"{note}/0", "path": f"{note}/49999"}] * 9_000
        finalizers = {"metadata": {"finalizers": [f"example.com/{i}" for i in range(120_000)]}}
        few = {"metadata": {"finalizers": [f"example.com/{i}" for i in range(300)]}}
        large = {"metadata": {"annotations": {f"k{i}": "x" * 100_000 for i in range(20)}}}
        for patch, ctype, wanted in [(doubling, ops, 422), (moves, ops, 422), (finalizers, strategic, 422), (few, strategic, 422),
                                     (large, strategic, 422)]:
            code, answer, _ = self.call(cluster, "PATCH", f"{JOBS}/target", patch, ctype)
            self.assertEqual(code, wanted, json.dumps(answer)[:300])
        yaml = "a: &a {" + "".join(f"k{i}: 1," for i in range(20_000)) + "}\nb: {<<: [" + "*a," * 20_000 + "]}\n"
        code, answer, _ = self.call(cluster, "POST", JOBS, yaml, "application/yaml")
        self.assertEqual(code, 400, answer)
        self.assertEqual(cluster.api.job("target")["metadata"]["name"], "target")

    def test_p10_pods_that_cannot_be_placed_are_not_created(self):
        cluster = self.hollow(duration="3600s", slots=50)
        job = sh_job("all", "true", 1)
        job["spec"] = {**job["spec"], "completionMode": "NonIndexed", "parallelism": 2_000_000_000}
        del job["spec"]["completions"]
        self.submit(cluster, job)
        active = []

        def settled():
            active.append(cluster.api.job("all")["status"].get("active", 0))
            self.assertLessEqual(active[-1], 11_000)
            return active[-1] >= 10_050 and active[-20:].count(active[-1]) == 20
        eventually(settled, "no more pods", 60)
        self.submit(cluster, sh_job("other", "true", 1, suspend=True))
        self.assertEqual(cluster.api.patch("all", {"spec": {"parallelism": 5}})[0], 200)
        eventually(lambda: cluster.api.job("all")["status"].get("active") == 5, "the surplus is gone", 60)
        job["metadata"] = {"name": "gang", "annotations": {"muster.dev/gang": "true"}}
        code, answer = cluster.api.create(job)[:2]
        self.assertEqual(code, 422, answer)
        self.assertIn("must be less than or equal to 10000", answer["message"])

    def test_p10_selectors_are_bounded(self):
        cluster = self.hollow(200)
        for query in ("labelSelector=" + ",".join(f"!k{i}" for i in range(9_000)), "fieldSelector=" + ",".join(["metadata.name!=a"] * 65),
                      "labelSelector=" + ",".join(f"!k{i}" for i in range(65))):
            for path in (PODS, JOBS, "/api/v1/namespaces", "/api/v1/nodes", f"{PODS}?watch=1"):
                code, answer, _ = self.call(cluster, "GET", path + ("&" if "?" in path else "?") + query.replace("!", "%21"))
                self.assertEqual((code, answer.get("reason")), (400, "BadRequest"), path)
                self.assertRegex(answer["message"], "at most 4096 are allowed|more than 64 requirements, the maximum")
        wide = "a in (" + ",".join(str(i) for i in range(900)) + ")"
        code, answer, _ = self.call(cluster, "GET", f"{PODS}?labelSelector={urllib.parse.quote(wide)}")
        self.assertEqual((code, answer["items"]), (200, []))

    def test_p10_unfinished_bodies_are_metered(self):
        cluster = self.cluster(agents=1)
        head = f"POST {JOBS} HTTP/1.1\r\nHost: {cluster.api_addr}\r\nContent-Type: application/json\r\nContent-Length: {3 << 20}\r\n\r\n"
        raws = []
        self.addCleanup(lambda: [raw.close() for raw in raws])
        before = rss_mb(cluster.coord.pid)
        for _ in range(40):  # 120 MiB, each a byte short of its end
            raws.append(Raw(cluster).say(head))
            with contextlib.suppress(OSError):  # the server may close before everything is sent
                raws[-1].say(b" " * ((3 << 20) - 1))
        refused = eventually(lambda: next((r for r in raws if select.select([r.sock], [], [], 0)[0]), None), "a refusal", 25)
        code, head, body = refused.answer()
        self.assertEqual((code, json.loads(body)["reason"]), (429, "TooManyRequests"))
        self.assertIn("retry-after: 1", head.lower())
        self.assertLess(rss_mb(cluster.coord.pid) - before, 110)
        self.assertEqual(self.call(cluster, "GET", JOBS)[0], 200, "others are served")
        for raw in raws:
            raw.close()
        large = sh_job("large", "true", 1)
        code, answer, _ = eventually(lambda: [a for a in [self.call(cluster, "POST", JOBS, json.dumps(large) + " " * (2 << 20))] if a[0] != 429],
                                     "room for a large manifest", 20)[0]
        self.assertEqual(code, 201, answer)


class BadInput(ApiWorld):
    def one(self, cluster, method, path, headers="", body=""):
        raw = Raw(cluster)
        try:
            code, head, text = raw.request(method, path, headers, body).answer()
        finally:
            raw.close()
        status = json.loads(text) if text[:1] == b"{" else None
        if code >= 400:
            self.assertEqual((status["kind"], status["status"], status["code"]), ("Status", "Failure", code), text)
        return code, head, status

    def test_invalid_requests_get_their_status(self):
        cluster = self.cluster(agents=1)
        js = "Content-Type: application/json\r\n"
        rows = [
            ("POST", JOBS, js, "{", 400), ("POST", JOBS, js, "[]", 400), ("POST", JOBS, js, "", 400), ("POST", JOBS, js, "7", 400),
            ("POST", JOBS, js, '{"kind":"Pod","apiVersion":"v1"}', 400), ("POST", JOBS, js, '{"metadata":7}', 400),
            ("POST", JOBS, js, '{"a":' * 5000 + "1" + "}" * 5000, 400), ("POST", JOBS, js, "[" * 100_000, 400),
            ("POST", JOBS, js, "\0\1\2", 400), ("POST", JOBS, js, '{"metadata":{"name":"\\ud800"}}', 400),
            ("POST", JOBS, "Content-Type: application/yaml\r\n", "a: [", 400), ("POST", JOBS, "Content-Type: application/yaml\r\n", "- " * 5000, 400),
            ("POST", JOBS, "Content-Type: text/plain\r\n", "{}", 415), ("POST", JOBS, "", "{}", 415),
            ("POST", JOBS, "Content-Type: application/vnd.kubernetes.protobuf\r\n", "k8s", 400),
            ("PATCH", JOBS + "/x", js, "{}", 415), ("POST", JOBS + "?dryRun=Some", js, "{}", 422), ("POST", JOBS + "?fieldValidation=Maybe", js, "{}", 422),
            ("GET", "/nowhere", "", "", 404), ("GET", JOBS + "/none", "", "", 404), ("GET", "/apis/batch/v2/jobs", "", "", 404),
            ("GET", JOBS + "/none/log", "", "", 404), ("GET", PODS + "/x/y/z", "", "", 404), ("GET", JOBS + "/%zz", "", "", 400),
            ("GET", PODS + "?labelSelector=%3D", "", "", 400), ("GET", PODS + "?fieldSelector=no.field%3D1", "", "", 400),
            ("DELETE", JOBS + "/none", js, "{}", 404), ("DELETE", JOBS + "/none?gracePeriodSeconds=x", "", "", 400),
        ]
        for method, path, headers, body, wanted in rows:
            code, _, status = self.one(cluster, method, path, headers, body)
            self.assertEqual(code, wanted, (method, path, body[:40], status))
        for method, path, allowed in [
                ("DELETE", "/api/v1/nodes", "GET"), ("POST", "/api/v1/nodes", "GET"), ("PUT", JOBS, "DELETE, GET, POST"), ("POST", PODS, "DELETE, GET"),
                ("POST", JOBS + "/x", "DELETE, GET, PATCH, PUT"), ("PUT", PODS + "/x/log", "GET"), ("GET", PODS + "/x/eviction", "POST"),
                ("DELETE", JOBS + "/x/scale", "GET, PATCH, PUT"), ("PUT", "/api/v1/namespaces/default/events", "DELETE, GET, POST"), ("POST", "/version", "GET, HEAD")]:
            code, head, _ = self.one(cluster, method, path, js, "{}" if method in ("POST", "PUT", "PATCH") else "")
            self.assertEqual(code, 405, (method, path))
            self.assertIn(f"allow: {allowed.lower()}\r\n", head.lower() + "\r\n", (method, path))

    def test_bytes_that_are_not_http_are_rejected(self):
        cluster = self.cluster(agents=1)
        for text in ("hello\r\n\r\n", "GET\r\n\r\n", "\0\0\0\0\r\n\r\n", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n",
                     "GET / HTTP/1.1\r\nbroken\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"):
            raw = Raw(cluster).say(text)
            answer = raw.closed()
            self.assertRegex(answer, rb"^HTTP/1.1 (400|501|505) ", text)
            raw.close()
        raw = Raw(cluster)
        with contextlib.suppress(OSError):  # the server may close before everything is sent
            raw.say(f"GET / HTTP/1.1\r\nHost: {raw.host}\r\n" + "".join(f"X-{i}: {'y' * 1000}\r\n" for i in range(1000)) + "\r\n")
        with contextlib.suppress(OSError):
            self.assertRegex(raw.closed(), rb"^(HTTP/1.1 (400|413|431) |$)")
        raw.close()
        self.assertEqual(self.call(cluster, "GET", "/healthz")[0], 200)

    def test_bodies_above_the_maximum_are_refused(self):
        cluster = self.cluster(agents=1)
        js = "Content-Type: application/json\r\n"
        code, _, status = self.one(cluster, "POST", JOBS, js, " " * (3 << 20) + "{}")
        self.assertEqual((code, status["reason"]), (413, "RequestEntityTooLarge"))
        raw = Raw(cluster).say(f"POST {JOBS} HTTP/1.1\r\nHost: {cluster.api_addr}\r\n{js}Content-Length: 99999999999\r\n\r\n")
        self.assertEqual(raw.answer()[0], 413, "by its length alone")
        raw.close()
        raw = Raw(cluster).say(f"POST {JOBS} HTTP/1.1\r\nHost: {cluster.api_addr}\r\n{js}Transfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(OSError):
            for _ in range(70):
                raw.say(b"10000\r\n" + b" " * 65536 + b"\r\n")
        self.assertEqual(raw.answer()[0], 413)
        raw.close()

    def test_writes_of_stale_versions_conflict(self):
        cluster = self.cluster(agents=1)
        old = self.submit(cluster, sh_job("stale", "while :; do sleep 1; done", 2))
        self.assertEqual(cluster.api.patch("stale", {"spec": {"parallelism": 1}})[0], 200)
        code, answer, _ = self.call(cluster, "PUT", f"{JOBS}/stale", old)
        self.assertEqual((code, answer["reason"]), (409, "Conflict"))
        self.assertIn("the object has been modified", answer["message"])
        version = old["metadata"]["resourceVersion"]
        for patch, ctype in [({"metadata": {"resourceVersion": version}, "spec": {"parallelism": 2}}, "application/merge-patch+json"),
                             ([{"op": "replace", "path": "/metadata/resourceVersion", "value": version}], "application/json-patch+json")]:
            self.assertEqual(self.call(cluster, "PATCH", f"{JOBS}/stale", patch, ctype)[0], 409)
        body = {"preconditions": {"resourceVersion": version}}
        self.assertEqual(self.call(cluster, "DELETE", f"{JOBS}/stale", body)[0], 409)
        self.assertEqual(self.call(cluster, "DELETE", f"{JOBS}/stale", {"preconditions": {"uid": "x"}})[0], 409)
        self.assertEqual(cluster.api.job("stale")["spec"]["parallelism"], 1)

    def test_invalid_patches_leave_the_job_unchanged(self):
        cluster = self.cluster(agents=1)
        self.submit(cluster, sh_job("kept", "while :; do sleep 1; done", 2))
        before = cluster.api.job("kept")
        merge, ops, strategic = (f"application/{kind}+json" for kind in ("merge-patch", "json-patch", "strategic-merge-patch"))
        deep = '{"a":' * 100_000 + "1" + "}" * 100_000
        for path, ctype, patch in [
                ("", merge, deep), ("", strategic, deep), ("/status", merge, deep), ("", ops, deep), ("?fieldManager=x", "application/apply-patch+yaml", deep),
                ("", ops, [{"op": "replace", "path": "", "value": 7}]), ("", ops, {"op": "x"}), ("", ops, [7]), ("", ops, [{"op": "add"}]),
                ("", ops, [{"op": "test", "path": "/spec/parallelism", "value": 9}]), ("", ops, [{"op": "remove", "path": "/nothing"}]),
                ("", merge, 7), ("", merge, {"metadata": []}), ("", merge, {"spec": 7}), ("", merge, {"metadata": {"resourceVersion": 7}}),
                ("", strategic, []), ("", strategic, {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}}),
                ("", strategic, {"spec": {"template": {"spec": {"containers": [7]}}}}), ("", strategic, {"spec": {"$patch": "twist"}}),
                ("/scale", merge, {"spec": {"replicas": "many"}}), ("/scale", merge, {"spec": []}), ("/scale", ops, [{"op": "replace", "path": "", "value": []}]),
                ("/status", merge, {"status": 7}), ("/status", ops, [{"op": "replace", "path": "", "value": "x"}])]:
            code, answer, _ = self.call(cluster, "PATCH", f"{JOBS}/kept{path}", patch, ctype)
            self.assertIn(code, (400, 409, 422), (path, ctype, patch, answer))
        pod = cluster.api.pods()[0]["metadata"]["name"]
        for path, ctype, patch in [("", ops, [{"op": "replace", "path": "", "value": 7}]), ("", merge, {"metadata": 7}), ("", merge, {"spec": []}),
                                   ("/status", merge, {"status": {"conditions": 7}}), ("/status", merge, {"status": {"conditions": [7]}})]:
            code, answer, _ = self.call(cluster, "PATCH", f"{PODS}/{pod}{path}", patch, ctype)
            self.assertIn(code, (400, 422), (path, ctype, patch, answer))
        for patch in ({"spec": 7}, {"metadata": []}, {"spec": {"taints": [7]}}, {"spec": {"unschedulable": "yes"}}, {"metadata": {"labels": {"a": 7}}}):
            code, answer, _ = self.call(cluster, "PATCH", "/api/v1/nodes/node-0", patch, merge)
            self.assertIn(code, (400, 422), (patch, answer))
        self.assertEqual(cluster.api.job("kept")["spec"], before["spec"])

    def test_slow_clients_time_out(self):
        cluster = self.cluster(agents=1)
        began = time.monotonic()
        silent = Raw(cluster, 60)
        half = Raw(cluster, 60).say("GET /healthz HT")
        body = Raw(cluster, 60).say(f"POST {JOBS} HTTP/1.1\r\nHost: {cluster.api_addr}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{")
        self.assertRegex(silent.closed(), rb"^$|^HTTP/1.1 408 ")
        self.assertRegex(half.closed(), rb"^$|^HTTP/1.1 408 ")
        self.assertEqual(body.answer()[0], 408)
        self.assertLess(time.monotonic() - began, 55)
        for raw in (silent, half, body):
            raw.close()
        self.assertEqual(self.call(cluster, "GET", "/healthz")[0], 200)

    def test_ten_thousand_pipelined_requests_are_answered(self):
        cluster = self.hollow(10)
        paths = ["/healthz", JOBS, JOBS + "/many", PODS + "?limit=1", JOBS + "/none", "/api/v1/nodes/node-0", "/version", PODS + "?labelSelector=%3D"]
        codes = [200, 200, 200, 200, 404, 200, 200, 400]

        def burst(each):
            lines = [Raw(cluster, 60) for _ in range(20)]
            for line in lines:  # all at once, without waiting for answers
                line.say("".join(f"GET {paths[i % 8]} HTTP/1.1\r\nHost: {line.host}\r\n\r\n" for i in range(each)))
            for line in lines:
                for i in range(each):
                    head = self.head(line)
                    self.assertEqual(int(head.split()[1]), codes[i % 8])
            for line in lines:
                line.close()

        burst(80)
        before = rss_mb(cluster.coord.pid)
        began = time.monotonic()
        burst(504)
        took = time.monotonic() - began
        print(f"10,080 requests in {took:.2f} s")
        burst(504)
        self.assertLess(rss_mb(cluster.coord.pid) - before, 30)

    @staticmethod
    def head(line):
        """The head of the next answer; skips its body, chunked or not."""
        while b"\r\n\r\n" not in line.buffer:
            line.more()
        head, line.buffer = line.buffer.split(b"\r\n\r\n", 1)
        if b"chunked" not in head:
            length = next(int(h.split(b":")[1]) for h in head.split(b"\r\n") if h.lower().startswith(b"content-length:"))
            while len(line.buffer) < length:
                line.more()
            line.buffer = line.buffer[length:]
            return head
        while True:
            while b"\r\n" not in line.buffer:
                line.more()
            size, rest = line.buffer.split(b"\r\n", 1)
            n = int(size, 16)
            while len(rest) < n + 2:
                line.more()
                rest = line.buffer.split(b"\r\n", 1)[1]
            line.buffer = rest[n + 2:]
            if n == 0:
                return head

    def test_idle_connection_gives_way_to_a_new_one_at_the_maximum(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 4096
        if hard != resource.RLIM_INFINITY and hard < wanted + 1024:
            self.skipTest(f"only {hard} open files are allowed here")
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted + 512), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        cluster = self.cluster(agents=1)
        lines = []
        self.addCleanup(lambda: [line.close() for line in lines])
        while len(lines) < wanted + 100:
            lines.append(Raw(cluster))
        served = lines[-1].request("GET", "/healthz").answer()
        self.assertEqual(served[0], 200, "it has the place of one that said nothing")
        self.assertEqual(lines[0].closed(), b"", "which was there first")
        for line in lines:
            line.close()
        eventually(lambda: self.call(cluster, "GET", "/healthz")[0] == 200, "others are served again", 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)
