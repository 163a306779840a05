#!/usr/bin/python3
"""Each route of the API, requested by every kind of caller: an object's owner, another user, an operator, an admin, a metrics collector, a user
without a role, and a caller on another machine without a token.

    MUSTER=build/release/muster tests/e2e/routes.py [TEST…]

The table in tests/unit/api/access/rules_test.cpp lists the routes and who may use them; it must list everything that the server serves.
Needs root, like users.py.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from users import JOBS, MINE, RootKeeper, Served, become, name, setUpModule  # noqa: E402,F401
from world import eventually, sh_job  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests/unit/api/access/rules_test.cpp"
WORD = "s3cr3t"  # appears in alice's job: in arguments, names and values of variables, labels, annotations, and the output
SESSION = "0123456789abcdef" * 2
# Which column of the table applies to each user here, the owner last; admins may do everything.
COLUMNS = {"bob": 1, "prom": 4, "dave": 5, "olga": 3, "alice": 0}
KUBE, DEFAULT = "/api/v1/namespaces/default", "/apis/muster.dev/v1/namespaces/default"
EVENTS, LEASES = "/apis/events.k8s.io/v1/namespaces/default/events", "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CRONS = "/apis/batch/v1/namespaces/default/cronjobs"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
HEALTH = ("/healthz", "/livez", "/readyz")
# The codes for allowed callers, where they are not 201 for POST and 200 for everything else.
CODES = {
    ("POST", f"{KUBE}/pods"): 405,  # not served; the answer says why
    **{(method, f"{KUBE}/pods/p/{what}"): 405 for method in ("GET", "POST", "PUT", "PATCH")
       for what in ("attach", "portforward", "ephemeralcontainers")},
    **{(method, f"{KUBE}/pods/p/exec"): 400 for method in ("GET", "POST")},  # no command
    ("POST", "/api/v1/nodes"): 405,
    ("PATCH", f"{DEFAULT}/pods/p/exec"): 405,
    ("TRACE", f"{JOBS}/j"): 405,
    ("POST", f"{KUBE}/events"): 422,  # the body is empty
    # The body is a Job, so that nothing changes.
    ("PUT", f"{DEFAULT}/jobs/j/hold"): 400,
    ("PUT", f"{DEFAULT}/jobs/j/cancel"): 400,
    ("PATCH", f"{DEFAULT}/jobs/j/overrides"): 400,
    ("POST", "/apis/muster.dev/v1/queues"): 422,
    ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses"): 422,
    ("POST", EVENTS): 422,
    ("POST", LEASES): 422,
    ("POST", f"{MINE}/backups"): 400,
    ("POST", REVIEWS): 400,
    ("GET", f"{DEFAULT}/jobs/j/log"): 400,  # no index given
    ("PUT", f"{KUBE}/events/e"): 400,
    ("PUT", f"{EVENTS}/e"): 400,  # clients cannot write a job's events
    ("PATCH", f"{KUBE}/events/e"): 400,
    ("PATCH", f"{EVENTS}/e"): 400,
    ("DELETE", f"{KUBE}/events/e"): 400,
    ("DELETE", f"{EVENTS}/e"): 400,
    ("POST", "/api/v1/namespaces"): 422,
    ("POST", f"{KUBE}/configmaps"): 422,
    ("POST", CRONS): 422,
    ("POST", f"{MINE}/nodes/n/token"): 400,  # there is no --listen-tls
    ("POST", f"{MINE}/pools/p/token"): 400,  # it does not say how many uses
    ("DELETE", f"{MINE}/nodes/n/unknownpods"): 404,
    ("POST", f"{MINE}/nodes/n/revocation"): 200,
    ("POST", f"{MINE}/coordinators/head2:7119/token"): 400,  # there is no --store
    **{("POST", f"{MINE}/coordinators/head2:7119/{what}"): 409 for what in ("promotion", "demotion")},
    ("DELETE", f"{MINE}/coordinators/head2:7119"): 409,
    **{(method, f"{MINE}/nodes/n/claims"): 404 for method in ("GET", "POST")},  # of a node that never registered
    ("GET", "/api/v1/services?watch=1"): 405,
    ("GET", "/apis/policy/v1/poddisruptionbudgets?watch=1"): 405,
    ("GET", "/api/v1/secrets"): 404,
    ("GET", f"{KUBE}/services/s"): 404,
    ("GET", "/apis/policy/v1/namespaces/default/poddisruptionbudgets/b"): 404,
    ("POST", "/apis/apps/v1/namespaces/default/deployments"): 404,
    ("GET", f"{DEFAULT}/jobs/j/secrets"): 404,
    ("GET", f"{DEFAULT}/history/0/attempts"): 404,  # no job has this id
}
# A command that alice has started: she joins it, reads it and ends it, after which it is gone, even for admins.
EXEC = {"alice": {"POST": 201, "GET": 200, "DELETE": 200, "PUT": 404}, "daemon": {"POST": 409, "GET": 404, "DELETE": 404, "PUT": 404}}

# Sends requests as another user. argv: the socket. Reads a list of [method, path, content type, body] from standard input and writes a list
# of [code, body] to standard output. Sends them one at a time, except for watches, which take a second each and run concurrently.
ASK_ALL = """
import concurrent.futures, http.client, json, socket, sys
def ask(method, path, ctype, body):
    c = http.client.HTTPConnection('localhost', timeout=20)
    c.sock = socket.socket(socket.AF_UNIX); c.sock.settimeout(20); c.sock.connect(sys.argv[1])
    c.request(method, path, body, {'Content-Type': ctype} if body is not None else {})
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    return [r.status, text]
rows = json.load(sys.stdin)
with concurrent.futures.ThreadPoolExecutor(20) as pool:
    watches = {at: pool.submit(ask, *row) for at, row in enumerate(rows) if 'watch=1' in row[1]}
    answers = [None if at in watches else ask(*row) for at, row in enumerate(rows)]
json.dump([watches[at].result() if at in watches else one for at, one in enumerate(answers)], sys.stdout)
"""


def table():
    """(method, path, one letter for each column)."""
    return re.findall(r'^    \{"(\w+)", "([^"]+)", "(\w{6})"\},', TABLE.read_text(), re.M)


def attributes(method, path):
    """The attributes of a request in a SelfSubjectAccessReview, as api/access/attributes.cpp derives them."""
    bare, _, query = path.partition("?")
    if not re.match("/api/v1/|/apis/[^/]+/v1/", bare):
        return {"nonResourceAttributes": {"path": bare, "verb": method.lower()}}
    group, *rest = bare[len("/api/v1"):].split("/") if bare.startswith("/api/") else [bare.split("/")[2], *bare.split("/")[4:]]
    space = rest[1] if rest[0] == "namespaces" and len(rest) > 1 else ""
    if space and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    resource, one, *sub = [*rest, ""] if len(rest) == 1 else rest
    verb = {"GET": "get" if one else "watch" if "watch=1" in query else "list", "POST": "create", "PUT": "update", "PATCH": "patch",
            "DELETE": "delete" if one else "deletecollection"}.get(method, method.lower())
    return {"resourceAttributes": {"namespace": space, "verb": verb, "group": group, "resource": resource, "subresource": "/".join(sub),
                                   "name": one}}


class Table(Served):
    def test_table_of_routes_covers_the_server(self):
        wanted = [attributes(method, path).get("resourceAttributes") for method, path, _ in table()]
        listed = {(one["group"], "/".join(filter(None, (one["resource"], one["subresource"]))), one["verb"]) for one in wanted if one}
        groups = [group["name"] for group in self.ask("daemon", "GET", "/apis")[1]["groups"]]
        self.assertIn("batch", groups)
        served = set()
        for root in ("/api/v1", *(f"/apis/{group}/v1" for group in groups)):
            group = "" if root == "/api/v1" else root.split("/")[2]
            for resource in self.ask("daemon", "GET", root)[1]["resources"]:
                served.update((group, resource["name"], verb) for verb in resource["verbs"])
        self.assertGreater(len(served), 50)
        self.assertEqual(served - listed, set(), f"no row in {TABLE.name}")


class EachRoute(RootKeeper):
    FLAGS = ("--api-tls", "127.0.0.1:0")
    OF_OTHERS = COLUMNS["bob"]
    CALLERS = (*COLUMNS, "daemon")

    def setUp(self):
        super().setUp()
        job = sh_job("j", f"echo {WORD}; exec sleep 300", 1)
        job["metadata"].update(labels={WORD: WORD}, annotations={WORD: WORD})
        job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": WORD, "value": WORD}]
        self.create("alice", job)
        eventually(lambda: WORD in self.log("alice", "j")[1], "its pod")
        self.pod = self.ask("alice", "GET", f"{KUBE}/pods")[1]["items"][0]["metadata"]["name"]
        event = eventually(lambda: self.ask("alice", "GET", f"{KUBE}/events")[1]["items"], "an event")
        self.names = {"jobs": "j", "pods": self.pod, "events": event[0]["metadata"]["name"], "nodes": "n1", "leases": "l", "configmaps": "c", "cronjobs": "c",
                      "namespaces": "x", "queues": "x", "priorityclasses": "x"}
        lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": WORD}}
        self.assertEqual(self.ask("olga", "POST", LEASES, lease)[0], 201)
        self.assertEqual(self.ask("alice", "POST", f"{KUBE}/configmaps", {"metadata": {"name": "c"}, "data": {"k": WORD}})[0], 201)
        cron = {"metadata": {"name": "c"}, "spec": {"schedule": "@yearly", "suspend": True, "jobTemplate": {"spec": job["spec"]}}}
        self.assertEqual(self.ask("alice", "POST", CRONS, cron)[0], 201)
        self.assertEqual(self.ask("alice", "POST", "/api/v1/namespaces", {"metadata": {"name": "x"}})[0], 201)
        self.assertEqual(self.ask("olga", "POST", "/apis/muster.dev/v1/queues", {"metadata": {"name": "x"}})[0], 201)
        self.assertEqual(self.ask("olga", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "x"}, "value": 1})[0], 201)
        self.assertEqual(self.ask("alice", "POST", f"{DEFAULT}/pods/{self.pod}/exec", {"session": SESSION, "command": ["sleep", "300"]})[0], 201)
        self.found = {}

    def ask_all(self, user, requests):
        done = subprocess.run(["/usr/bin/python3", "-c", ASK_ALL, self.socket], text=True, capture_output=True, input=json.dumps(requests),
                              preexec_fn=become(user), cwd="/", timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def current(self, path):
        """The object to be replaced, for users who may replace it."""
        if path not in self.found:
            self.found[path] = self.ask("daemon", "GET", path)[1]
        return self.found[path]

    def request(self, method, path, token):
        """The request for a row: for alice's objects, and as a dry run where it might be allowed."""
        bare, _, query = path.partition("?")
        parts = bare.split("/")
        own = "muster.dev" in parts and "queues" not in parts
        for at, part in enumerate(parts[1:], 1):
            if part in ("j", "p", "e", "n", "l", "c", "x") and parts[at - 1] in self.names:
                # Join tokens and revocations are for another node, which does not exist.
                parts[at] = "c01" if own and part == "n" else self.names[parts[at - 1]]
        target = "/".join(token if part == "t" else name("alice") if part == "u" else part for part in parts)
        query = query.replace("session=s", f"session={SESSION}").replace("watch=1", "watch=1&timeoutSeconds=1")
        if method in ("GET", "TRACE"):
            return [method, target + (f"?{query}" if query else ""), None, None]
        kind, body = "application/json", {}
        if method == "PATCH":
            kind = "application/merge-patch+json"
        elif target.endswith("/exec") and own:
            kind, body = ("application/octet-stream", "x") if method == "PUT" else (kind, {"session": SESSION, "resume": True})
        elif target.endswith("/backups"):
            body = {"dir": ""}
        elif (method, target) == ("POST", JOBS):
            body = sh_job("new", "true", 1)
        elif method == "PUT":
            body = self.current(target.removesuffix("/finalize"))
        if not own:
            query = "dryRun=All"
        return [method, target + (f"?{query}" if query else ""), kind, body if isinstance(body, str) else json.dumps(body)]

    def code(self, user, letter, method, path):
        """The expected code for a user whose column has this letter."""
        if letter == "h":
            return 404
        if letter == "d":
            return 403
        if path.startswith(f"{DEFAULT}/pods/p/exec") and method in EXEC[user]:
            return EXEC[user][method]
        return CODES.get((method, path), 201 if method == "POST" else 200)

    def tokens(self, count):
        path = f"{MINE}/users/{name('alice')}/token"
        made = self.ask_all("alice", [["POST", path, "application/json", "{}"]] * count)
        return [json.loads(text)["text"].split(".")[0] for _, text in made]

    def test_each_route_answers_each_user_by_role(self):
        rows = table()
        self.assertGreater(len(rows), 90)
        for user, token in zip(self.CALLERS, self.tokens(len(self.CALLERS))):
            column = self.OF_OTHERS if user == "bob" else COLUMNS.get(user)
            requests = [self.request(method, path, token) for method, path, _ in rows]
            for (method, path, letters), (code, text) in zip(rows, self.ask_all(user, requests)):
                with self.subTest(f"{user}: {method} {path}"):
                    letter = "a" if column is None else letters[column]
                    self.assertEqual(code, self.code(user, letter, method, path), text[:500])
                    if letter in "dhs" or user == "bob":
                        self.assertNotIn(WORD, text)
        shown = self.ask("alice", "GET", f"{JOBS}/j")[1]
        self.assertEqual((shown["status"]["active"], self.ask("bob", "GET", f"{JOBS}/new")[0]), (1, 404), "nothing has changed")

    def test_access_reviews_agree_with_requests(self):
        rows = table()
        token, = self.tokens(1)
        for user in self.CALLERS[:-1]:
            column = self.OF_OTHERS if user == "bob" else COLUMNS[user]
            wanted = [attributes(method, self.request(method, path, token)[1].split("?")[0] + ("?watch=1" if "watch=1" in path else ""))
                      for method, path, _ in rows]
            answers = self.ask_all(user, [["POST", REVIEWS, "application/json", json.dumps({"spec": one})] for one in wanted])
            for (method, path, letters), (code, text) in zip(rows, answers):
                with self.subTest(f"{user}: {method} {path}"):
                    if user == "dave":
                        self.assertEqual(code, 403)
                    else:
                        self.assertEqual((code, json.loads(text)["status"]["allowed"]), (201, letters[column] in "as"), text)

    def test_each_route_but_health_needs_a_valid_token(self):
        context = ssl.create_default_context(cafile=self.dir / "data/ca.pem")
        connection = http.client.HTTPSConnection(self.ends["apiTls"], context=context, timeout=20)
        for bearer in (None, f"{'0' * 16}.{'0' * 64}"):
            for method, path, _ in table():
                with self.subTest(f"{method} {path}"):
                    method, target, kind, body = self.request(method, path, "0" * 16)
                    headers = {"Content-Type": kind} if kind else {}
                    if bearer:
                        headers["Authorization"] = f"Bearer {bearer}"
                    connection.request(method, target, body, headers)
                    response = connection.getresponse()
                    text = response.read().decode()
                    # The page is the same for everybody; it logs in itself.
                    self.assertEqual(response.status, 200 if path in (*HEALTH, "/") and not bearer else 401, text[:500])
                    self.assertNotIn(WORD, text)


class EachPrivateRoute(EachRoute):
    FLAGS = (*EachRoute.FLAGS, "--private-jobs")
    OF_OTHERS = 2
    CALLERS = ("bob",)  # results differ only for other users


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("useradd"):
        print("routes.py: skipped: only root can make the users that it needs")
        sys.exit(0)
    unittest.main(verbosity=2, warnings="ignore")
