#!/usr/bin/env python3
"""The client against servers that are not a coordinator: nothing they answer is believed, and nothing hangs.

MUSTER names the executable. Waits poll with a deadline.
"""
import concurrent.futures
import http.server
import json
import pathlib
import subprocess
import sys
import threading
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from command import DEADLINE, MUSTER, CommandCase  # noqa: E402

FOREIGN = "which is not what a muster coordinator sends"
JSON = "application/json"
ENDLESS = object()  # begins like an answer and never ends

OTHER_JOB = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "other", "namespace": "default", "uid": "u1"}, "spec": {}, "status": {}}
ANSWERS = {
    "empty": (JSON, ""),
    "html": ("text/html", "<html><body>\x1b[2JIt works!</body></html>"),
    "object": (JSON, "{}"),
    "array": (JSON, "[]"),
    "null": (JSON, "null"),
    "text": ("text/plain", "ok"),
    "success": (JSON, json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})),
    "other list": (JSON, json.dumps({"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": []})),
    "other name": (JSON, json.dumps(OTHER_JOB)),
    "half": (JSON, '{"kind":"Job","apiVersion":"batch/v1","metadata":{"na'),
    "endless": (JSON, ENDLESS),
}
VERBS = [words.split() for words in (
    "create -f j.yaml", "apply -f j.yaml", "run -n 1 --name j -- true", "run -f j.yaml", "submit -n 1 --name j -- true", "submit -n 1 --wait --name j -- true",
    "get jobs", "get job j", "get jobs -o json", "get job j -o yaml", "get pods -o name", "get nodes", "get events", "get jobs -w", "get all",
    "get attempts job/j", "describe job j", "describe pod p", "describe node n", "describe j", "logs p", "logs -f p", "logs job/j", "logs -f job/j",
    "logs -l a=b", "wait job/j", "wait job/j --for=delete", "delete job j", "delete job j --ignore-not-found", "delete jobs --all", "delete -f j.yaml",
    "scale job/j --parallelism 2", "suspend job/j", "resume job/j", "retry job/j --failed", "why job/j", "drain n", "drain n --now", "cordon n", "uncordon n",
    "node revoke n", "token create", "token list", "token revoke 0123", "token credential", "top nodes", "top jobs", "exec p -- true",
    "exec job/j -- true", "verify", "backup b", "explain job", "version",
)]
MANIFEST = """apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, command: ["true"]}]}}}
"""


class Server(http.server.ThreadingHTTPServer):
    """Answers with what `answer(method, path, body)` returns: a status, a content type and a body."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, answer, cluster=lambda path: ""):
        super().__init__(("127.0.0.1", 0), Handler)
        self.cluster = cluster
        self.answer, self.over = answer, threading.Event()

    def handle_error(self, request, client_address):
        """Clients leave as soon as they know enough."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, kind, body = self.server.answer(self.command, self.path, sent)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if cluster := self.server.cluster(self.path):
            self.send_header("Muster-Cluster", cluster)
        if body is ENDLESS:
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b'{"kind":"Job",')
            while not self.server.over.wait(0.05):
                self.wfile.write(b" ")
            return
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer


def stored(sent, uid, created):
    """The job of a manifest as a coordinator would return it."""
    job = json.loads(sent)
    job["metadata"].update(namespace="default", uid=uid, creationTimestamp=created)
    return json.dumps({**job, "status": {}})


class Strangers(CommandCase):
    def serve(self, answer, cluster=lambda path: ""):
        server = Server(answer, cluster)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.over.set)
        return f"127.0.0.1:{server.server_address[1]}"

    def ask(self, api, *words, limit="20s"):
        env = {**self.env, "MUSTER_API": api, "MUSTER_REQUEST_TIMEOUT": limit, "MUSTER_CONNECT_TIMEOUT": "0s"}
        try:
            return subprocess.run([MUSTER, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE, env=env, cwd=self.dir)
        except subprocess.TimeoutExpired as hung:
            return subprocess.CompletedProcess(hung.cmd, "hung", (hung.stdout or b"").decode(), "")

    def check_all(self, status, answers, verbs, wanted):
        """Runs all verbs against all answers; each must end with 4 and say why."""
        self.file("j.yaml", MANIFEST)
        wrong = []
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for name, (kind, body) in answers.items():
                api = self.serve(lambda *_, kind=kind, body=body: (status, kind, body))
                limit = "1s" if body is ENDLESS else "20s"
                for words, r in zip(verbs, pool.map(lambda words, api=api, limit=limit: self.ask(api, *words, limit=limit), verbs)):
                    lines = r.stderr.strip("\n").split("\n")
                    if (r.returncode, r.stdout) != (4, "") or sum(wanted(name) in line for line in lines) != 1 or "\x1b" in r.stderr:
                        wrong.append(f"{name}: {' '.join(words)}: {r.returncode} {r.stdout!r} {r.stderr!r}")
        self.assertFalse(wrong, f"{len(wrong)} of {len(answers) * len(verbs)}:\n" + "\n".join(wrong))

    def test_p26_no_answer_of_another_server_is_believed(self):
        verbs = [words for words in VERBS if words != ["version"]]  # which tells about itself whatever answers
        self.check_all(200, ANSWERS, verbs, lambda name: "within 1 s" if name == "endless" else FOREIGN)

    def test_p26_the_version_of_another_server_is_not_shown(self):
        for name, (kind, body) in ANSWERS.items():
            with self.subTest(name):
                limit = "1s" if body is ENDLESS else "20s"
                r = self.ask(self.serve(lambda *_, kind=kind, body=body: (200, kind, body)), "version", limit=limit)
                self.assertEqual(r.returncode, 4, r.stdout + r.stderr)
                self.assertIn("within 1 s" if name == "endless" else FOREIGN, r.stdout)

    def test_p26_foreign_not_found_is_not_a_missing_object(self):
        verbs = [words.split() for words in ("delete job j --ignore-not-found", "wait job/j --for=delete", "apply -f j.yaml", "get job j")]
        pages = {name: ANSWERS[name] for name in ("empty", "html", "object", "text")}
        for status in (302, 404, 409):
            self.check_all(status, pages, verbs, lambda _: FOREIGN)

    def test_p26_error_shows_the_foreign_answer(self):
        api = self.serve(lambda *_: (200, *ANSWERS["html"]))
        self.assertEqual(self.ask(api, "get", "jobs").stderr,
                         f"muster: {api} answered GET /apis/batch/v1/namespaces/default/jobs with text/html "
                         f'("<html><body>\\x1b[2JIt works!</body></html>"), {FOREIGN} (from MUSTER_API)\n')
        api = self.serve(lambda *_: (200, JSON, json.dumps(OTHER_JOB)))
        self.assertIn('with Job of batch/v1 with the name "other" instead of "j", ' + FOREIGN, self.ask(api, "wait", "job/j").stderr)

    def test_p26_follow_ends_if_the_job_has_another_uid(self):
        sent = []

        def answer(method, path, body, created):
            if method == "POST":
                sent.append(body)
                return 201, JSON, stored(body, "uid-a", "2026-01-01T00:00:00Z")
            if urllib.parse.urlsplit(path).path.endswith("/jobs/j"):
                return 200, JSON, stored(sent[-1], "uid-b", created)
            return 404, JSON, json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "not found", "reason": "NotFound", "code": 404})

        for words in ("run -n 1 --name j -- true", "submit -n 1 --wait --name j -- true"):
            api = self.serve(lambda *asked: answer(*asked, created="2026-01-01T00:00:00Z"))
            r = self.ask(api, *words.split())
            self.assertEqual(r.returncode, 4, r.stdout + r.stderr)
            self.assertIn('the uid "uid-b" instead of "uid-a"', r.stderr)
            # A later job of the same name: the one that was followed has been deleted.
            api = self.serve(lambda *asked: answer(*asked, created="2026-01-01T00:00:01Z"))
            r = self.ask(api, *words.split())
            self.assertEqual(r.returncode, 3, r.stdout + r.stderr)
            self.assertIn("was deleted", r.stderr)

    def test_p26_a_watch_ends_with_its_first_wrong_line(self):
        jobs = json.dumps({"kind": "JobList", "apiVersion": "batch/v1", "metadata": {"resourceVersion": "5"}, "items": []})
        other = json.dumps({"type": "ADDED", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}}})
        for line in ("ok\n", "<html>", "{}\n", "\n", other + "\n", other):
            with self.subTest(line):
                asked = []

                def answer(method, path, body, line=line, asked=asked):
                    asked.append(path)
                    return (200, JSON, line) if "watch=true" in path else (200, JSON, jobs)

                r = self.ask(self.serve(answer), "get", "jobs", "-w", "-o", "name")
                self.assertEqual((r.returncode, r.stdout), (4, ""), r.stderr)
                self.assertIn(FOREIGN, r.stderr)
                self.assertEqual(len(asked), 2)

    def test_p26_command_ends_if_the_cluster_changes(self):
        jobs = json.dumps({"kind": "JobList", "apiVersion": "batch/v1", "metadata": {"resourceVersion": "5"}, "items": []})
        for later, met in (("b", "the id of cluster b after answers of cluster a"), ("", "no cluster's id after answers of cluster a")):
            api = self.serve(lambda *_: (200, JSON, jobs), lambda path, later=later: later if "watch=true" in path else "a")
            r = self.ask(api, "get", "jobs", "-w", "-o", "name")
            self.assertEqual((r.returncode, r.stdout), (4, ""), r.stderr)
            self.assertIn(f"with {met}, {FOREIGN}", r.stderr)


if __name__ == "__main__":
    unittest.main()
