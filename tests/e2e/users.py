#!/usr/bin/python3
"""A coordinator of several users, with real Unix users: two who run jobs, an operator, one who collects metrics, and a stranger.

    MUSTER=build/release/muster tests/e2e/users.py [TEST…]

Needs root, to make the users and remove them again; says so and succeeds without.
"""
import contextlib
import http.client
import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import eventually, sh_job  # noqa: E402

PREFIX = f"mu{os.getpid() % 100000}"
GROUPS = {"hpc": f"{PREFIX}-hpc", "ops": f"{PREFIX}-ops", "prom": f"{PREFIX}-prom"}
USERS = {"daemon": [], "alice": ["hpc"], "bob": ["hpc"], "olga": ["hpc", "ops"], "prom": ["prom"], "dave": []}
JOBS = "/apis/batch/v1/namespaces/default/jobs"


def name(user):
    return PREFIX + user


def setUpModule():
    unittest.addModuleCleanup(remove_users)
    for group in GROUPS.values():
        subprocess.run(["groupadd", group], check=True)
    for user, groups in USERS.items():
        subprocess.run(["useradd", "--no-create-home", "--home-dir", f"/home/{name(user)}", "--shell", "/bin/sh",
                        "--groups", ",".join(GROUPS[g] for g in groups), name(user)], check=True)


def remove_users():
    for user in USERS:
        subprocess.run(["userdel", name(user)], check=False)
    for group in GROUPS.values():
        subprocess.run(["groupdel", group], check=False)


def become(user):
    """For a child between fork and exec."""
    who = pwd.getpwnam(name(user))
    groups = os.getgrouplist(who.pw_name, who.pw_gid)

    def act():
        os.setgroups(groups)
        os.setgid(who.pw_gid)
        os.setuid(who.pw_uid)
    return act


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


# Sends one request as another user: argv is the socket (or HOST:PORT), method, path, content type; the body is on standard input.
ASK = """
import http.client, socket, sys
where, method, path, ctype = sys.argv[1:5]
c = http.client.HTTPConnection(where if ':' in where else 'localhost', timeout=20)
if ':' not in where:
    c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(where)
body = sys.stdin.buffer.read()
c.request(method, path, body or None, {'Content-Type': ctype} if body else {})
r = c.getresponse()
sys.stdout.write(str(r.status) + '\\n' + r.read().decode())
"""


class Users(unittest.TestCase):
    FLAGS = ()

    def setUp(self):
        # Executables must be readable by all users, which a checkout need not be.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-users-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.dir.chmod(0o755)
        built = pathlib.Path(os.environ["MUSTER"]).resolve().parent
        for tool in ("muster", "muster-keeper"):
            shutil.copy(built / tool, self.dir / tool)
        self.muster = str(self.dir / "muster")
        self.socket = str(self.dir / "run" / "api.sock")
        for folder in ("run", "data", "work"):
            (self.dir / folder).mkdir()
            shutil.chown(self.dir / folder, name("daemon"))
        self.daemons = []
        self.addCleanup(self.stop)
        self.coordinator = self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                                       "--api-socket", self.socket, "--users", GROUPS["hpc"], "--operators", GROUPS["ops"],
                                       "--metrics-readers", GROUPS["prom"], *self.FLAGS)
        self.ends = eventually(lambda: json.loads((self.dir / "data/endpoints.json").read_text()), "endpoints")
        eventually(lambda: self.ask("olga", "GET", "/readyz")[0] == 200, "ready")

    def daemon(self, *args, user="daemon"):
        log = open(self.dir / f"{args[0]}.log", "ab")
        process = subprocess.Popen([self.muster, *map(str, args)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                   preexec_fn=become(user))
        log.close()
        self.daemons.append(process)
        return process

    def stop(self):
        for process in reversed(self.daemons):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
        subprocess.run(["pkill", "-KILL", "-U", ",".join(name(u) for u in USERS)], check=False)

    def ask(self, user, method, path, body=None, ctype="application/json", where=None):
        done = subprocess.run(["/usr/bin/python3", "-c", ASK, where or self.socket, method, path, ctype], capture_output=True,
                              input=b"" if body is None else json.dumps(body).encode(), preexec_fn=become(user), cwd="/", timeout=60)
        if done.returncode:
            raise OSError(done.stderr.decode())
        code, _, text = done.stdout.decode().partition("\n")
        with contextlib.suppress(ValueError):
            return int(code), json.loads(text)
        return int(code), text

    def run_as(self, user, *args, **more):
        return subprocess.run([self.muster, *map(str, args), "--api", f"unix:{self.socket}"], text=True, capture_output=True, timeout=60,
                              preexec_fn=become(user), cwd="/", env={"PATH": "/usr/bin:/bin"}, **more)

    def create(self, user, job):
        code, made = self.ask(user, "POST", JOBS, job)
        self.assertEqual(code, 201, made)
        return made

    def test_the_kernel_says_who_is_calling(self):
        made = self.create("alice", sh_job("j", "true", 1, suspend=True))
        alice = pwd.getpwnam(name("alice"))
        notes = made["metadata"]["annotations"]
        self.assertEqual((notes["muster.dev/owner"], notes["muster.dev/owner-uid"], notes["muster.dev/owner-gid"]),
                         (alice.pw_name, str(alice.pw_uid), str(alice.pw_gid)))
        for where in (None, self.ends["api"]):  # the socket, and loopback TCP
            code, me = self.ask("bob", "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, where=where)
            self.assertEqual(code, 201)
            self.assertEqual(me["status"]["userInfo"]["username"], name("bob"))
            self.assertIn(GROUPS["hpc"], me["status"]["userInfo"]["groups"])

    def test_everyone_gets_what_the_role_allows(self):
        self.create("alice", sh_job("j", "echo s3cr3t", 1, suspend=True))
        patch = "application/merge-patch+json"
        expected = {  # what each may do with alice's job
            "alice": {"get": 200, "patch": 200, "nodes": 200, "metrics": 403, "backup": 403, "lease": 403},
            "bob": {"get": 200, "patch": 403, "nodes": 200, "metrics": 403, "backup": 403, "lease": 403},
            "olga": {"get": 200, "patch": 200, "nodes": 200, "metrics": 200, "backup": 400, "lease": 200},
            "prom": {"get": 403, "patch": 403, "nodes": 403, "metrics": 200, "backup": 403, "lease": 403},
            "dave": {"get": 403, "patch": 403, "nodes": 403, "metrics": 403, "backup": 403, "lease": 403},
        }
        for user, codes in expected.items():
            got = {"get": self.ask(user, "GET", f"{JOBS}/j")[0],
                   "patch": self.ask(user, "PATCH", f"{JOBS}/j", {"spec": {"suspend": True}}, patch)[0],
                   "nodes": self.ask(user, "GET", "/api/v1/nodes")[0],
                   "metrics": self.ask(user, "GET", "/metrics")[0],
                   "backup": self.ask(user, "POST", "/apis/muster.dev/v1/backups", {"dir": ""})[0],
                   "lease": self.ask(user, "GET", "/apis/coordination.k8s.io/v1/leases")[0]}
            self.assertEqual(got, codes, user)
        self.assertNotIn("s3cr3t", json.dumps(self.ask("bob", "GET", f"{JOBS}/j")[1]))
        self.assertIn("s3cr3t", json.dumps(self.ask("alice", "GET", f"{JOBS}/j")[1]))

    def test_the_command_line_and_a_restart(self):
        manifest = json.dumps(sh_job("j", "true", 1, suspend=True))
        self.assertEqual(self.run_as("alice", "create", "-f", "-", input=manifest).returncode, 0)
        self.assertIn("<hidden>", self.run_as("bob", "get", "jobs", "-o", "wide").stdout)
        refused = self.run_as("bob", "delete", "job/j")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("it belongs to another user", refused.stderr)
        self.coordinator.kill()
        self.coordinator.wait()
        # The socket that it left is replaced, and the owner is still the owner.
        self.daemons.clear()
        self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                    "--api-socket", self.socket, "--users", GROUPS["hpc"], "--private-jobs")
        eventually(lambda: self.ask("bob", "GET", "/readyz")[0] == 200, "ready again")
        self.assertEqual(self.ask("bob", "GET", f"{JOBS}/j")[0], 404)
        self.assertEqual(self.ask("alice", "DELETE", f"{JOBS}/j")[0], 200)

    def test_the_audit_log(self):
        self.create("alice", sh_job("j", "echo s3cr3t", 1, suspend=True))
        self.ask("bob", "DELETE", f"{JOBS}/j")
        self.ask("alice", "GET", f"{JOBS}/j")
        log = self.dir / "data/audit.log"
        lines = eventually(lambda: len(all := log.read_text().splitlines()) >= 2 and all, "two lines")
        told = [(one["user"], one["verb"], one["code"], one["source"]) for one in map(json.loads, lines)]
        self.assertEqual(told, [(name("alice"), "create", 201, "unix"), (name("bob"), "delete", 403, "unix")])
        self.assertNotIn("s3cr3t", log.read_text())
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)

    def test_no_pod_runs_as_anybody_else(self):
        self.daemon("agent", "--coordinator", self.ends["listen"], "--work-dir", self.dir / "work", "--name", "n1", "--slots", "2")
        self.create("alice", sh_job("j", f"touch {self.dir}/work/ran", 1, backoffLimit=0))

        def failed():
            attempts = self.ask("alice", "GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/attempts")[1]["items"]
            return attempts and attempts[0]
        end = eventually(failed, "the pod's end")
        self.assertEqual(end["exitCode"], 126)
        self.assertIn("the job belongs to uid", end["message"])
        self.assertFalse((self.dir / "work/ran").exists())

    def test_contradicting_options(self):
        done = subprocess.run([self.muster, "coordinator", "--data-dir", self.dir / "other", "--users", "x", "--insecure"], text=True,
                              capture_output=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--insecure and --users exclude each other", done.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("useradd"):
        print("users.py: skipped: only root can make the users that it needs")
        sys.exit(0)
    unittest.main(verbosity=2, warnings="ignore")
