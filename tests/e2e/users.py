#!/usr/bin/python3
"""A coordinator with several real Unix users: two who run jobs, an operator, a metrics collector, and a stranger.

    MUSTER=build/release/muster tests/e2e/users.py [TEST…]

Needs root, to create and remove the users; without it, says so and succeeds.
"""
import contextlib
import http.client
import json
import os
import pathlib
import pwd
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import eventually, sh_job, start_daemon  # noqa: E402

PREFIX = f"mu{os.getpid() % 100000}"
GROUPS = {"hpc": f"{PREFIX}-hpc", "ops": f"{PREFIX}-ops", "prom": f"{PREFIX}-prom"}
USERS = {"daemon": [], "alice": ["hpc"], "bob": ["hpc"], "olga": ["hpc", "ops"], "prom": ["prom"], "dave": []}
JOBS = "/apis/batch/v1/namespaces/default/jobs"
SPACES = "/api/v1/namespaces"
# What acts on a terminal, as characters and as UTF-8 of C1, and what reorders or hides text.
UNSAFE = "\x1b[2J\x1b]0;owned\x07\x9b2J\u202e\u2066\u200b\ufeff\U000e0041"
MINE = "/apis/muster.dev/v1"


def jobs_in(space):
    return f"/apis/batch/v1/namespaces/{space}/jobs"


def maps_in(space):
    return f"{SPACES}/{space}/configmaps"


def possible():
    """Whether the users can be created."""
    return os.geteuid() == 0 and shutil.which("useradd") is not None


def for_class(cls):
    """For setUpClass: the users exist until its tests have ended."""
    if not possible():
        raise unittest.SkipTest("only root can make the users that it needs")
    cls.addClassCleanup(remove_users)
    make_users()


def name(user):
    return PREFIX + user


def change_accounts(*command):
    """Runs useradd or the like; another suite may be changing the files at the same time."""
    def done():
        ran = subprocess.run(command, capture_output=True, text=True)
        return None if "lock" in ran.stderr else ran
    return eventually(done, f"the lock for {command[0]}")


def setUpModule():
    unittest.addModuleCleanup(remove_users)
    make_users()


def make_users():
    for group in GROUPS.values():
        change_accounts("groupadd", group).check_returncode()
    for user, groups in USERS.items():
        change_accounts("useradd", "--no-create-home", "--home-dir", f"/home/{name(user)}", "--shell", "/bin/sh",
                        "--groups", ",".join(GROUPS[g] for g in groups), name(user)).check_returncode()


def remove_users():
    for user in USERS:
        change_accounts("userdel", name(user))
    for group in GROUPS.values():
        change_accounts("groupdel", group)


def has_capability(number):
    effective = re.search(r"CapEff:\t(\S+)", pathlib.Path("/proc/self/status").read_text())[1]
    return int(effective, 16) >> number & 1 == 1


def become(user):
    """Returns a preexec_fn that becomes this user."""
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


# Sends one request as another user. argv: the socket (or HOST:PORT), method, path, content type; the body is on standard input.
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


class Served(unittest.TestCase):
    """A coordinator with these users, and ways to act as each of them."""
    FLAGS = ()

    def setUp(self):
        # All users must be able to read the executables, which a checkout does not guarantee.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-users-"))
        if not os.environ.get('KEEP'):
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
        self.start_coordinator()

    def start_coordinator(self):
        (self.dir / "data/endpoints.json").unlink(missing_ok=True)
        self.coordinator = self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                                       "--api-socket", self.socket, "--users", GROUPS["hpc"], "--operators", GROUPS["ops"],
                                       "--metrics-readers", GROUPS["prom"], *self.FLAGS)
        self.ends = eventually(lambda: json.loads((self.dir / "data/endpoints.json").read_text()), "endpoints")
        eventually(lambda: self.ask("olga", "GET", "/readyz")[0] == 200, "ready")

    def daemon(self, *args, user="daemon"):
        self.daemons.append(start_daemon([self.muster, *args], self.dir, cwd="/", preexec_fn=become(user)))
        return self.daemons[-1]

    def stop(self):
        for process in self.daemons:
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

    def run_as(self, user, *args, command=(), **more):
        rest = ["--", *command] if command else []
        return subprocess.run([self.muster, *map(str, args), "--api", f"unix:{self.socket}", *rest], text=True, capture_output=True, timeout=60,
                              preexec_fn=become(user), cwd="/", env={"PATH": "/usr/bin:/bin"}, **more)

    def create(self, user, job):
        code, made = self.ask(user, "POST", JOBS, job)
        self.assertEqual(code, 201, made)
        return made

    def spaces(self, user):
        """The namespaces that a user meets in the lists that have some."""
        listed = {one["metadata"]["name"] for one in self.ask(user, "GET", SPACES)[1]["items"]}
        listed |= {one["metadata"]["namespace"] for one in self.ask(user, "GET", "/api/v1/configmaps")[1]["items"]}
        return listed | {one["metadata"]["namespace"] for one in self.ask(user, "GET", "/api/v1/serviceaccounts")[1]["items"]}

    def answers(self, user, space):
        """What a user is told about a namespace, without its name and times."""
        patch = ({"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")
        asked = [self.ask(user, "GET", f"{SPACES}/{space}"), self.ask(user, "PATCH", f"{SPACES}/{space}?dryRun=All", *patch),
                 self.ask(user, "DELETE", f"{SPACES}/{space}?dryRun=All"), self.ask(user, "GET", f"{maps_in(space)}/kube-root-ca.crt"),
                 self.ask(user, "GET", f"{SPACES}/{space}/serviceaccounts/default")]
        return [json.dumps(one).replace(space, "*") for one in asked] + [len(self.ask(user, "GET", maps_in(space))[1]["items"])]


class Users(Served):
    def test_socket_peer_identifies_the_user(self):
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

    def test_p10_watches_of_one_user_leave_room_for_others(self):
        script = ("import resource, select, socket, sys\nresource.setrlimit(resource.RLIMIT_NOFILE, (2048, 4096))\nheld, codes = [], {}\n"
                  "for _ in range(1200):\n    s = socket.socket(socket.AF_UNIX); s.settimeout(30); s.connect(sys.argv[1]); held.append(s)\n"
                  f"    s.sendall(b'GET {JOBS}?watch=1 HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
                  "for s in held:\n    code = s.recv(12)[9:].decode(); codes[code] = codes.get(code, 0) + 1\n"
                  "print(codes.get('200', 0), codes.get('429', 0), flush=True)\nsys.stdin.read()\n")
        held = subprocess.Popen(["/usr/bin/python3", "-c", script, self.socket], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                preexec_fn=become("alice"), cwd="/")
        self.addCleanup(held.communicate)
        self.assertEqual(held.stdout.readline().split(), ["1024", "176"])
        self.assertEqual(self.ask("bob", "GET", f"{JOBS}?watch=1&timeoutSeconds=1")[0], 200)
        self.create("bob", sh_job("j", "true", 1, suspend=True))

    def test_each_role_is_allowed_its_requests_only(self):
        self.create("alice", sh_job("j", "echo s3cr3t", 1, suspend=True))
        patch = "application/merge-patch+json"
        expected = {  # what each user may do with alice's job
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

    def test_a_course_is_for_its_users_and_operators_make_it(self):
        self.daemon("agent", "--hollow", "--name", "c1", "--slots", "4", "--coordinator", self.ends["listen"])
        eventually(lambda: self.ask("olga", "GET", "/api/v1/nodes/c1")[0] == 200, "the node")
        now = ("--nodes", "c1", "--from", "+0s", "--for", "1h")
        refused = self.run_as("alice", "reserve", "mine", *now)
        self.assertNotEqual(refused.returncode, 0)
        made = self.run_as("olga", "reserve", "course", *now, "--user", name("alice"), "--group", GROUPS["ops"])
        self.assertEqual(made.returncode, 0, made.stderr)
        listed = self.run_as("bob", "reserve").stdout
        for part in ("course", name("alice"), "@" + GROUPS["ops"], name("olga"), "c1"):
            self.assertIn(part, listed)
        for user in ("alice", "olga", "bob"):
            job = sh_job(user, "true", 1)
            job["spec"]["template"]["spec"]["tolerations"] = [{"key": "muster.dev/hollow", "operator": "Exists"}]
            self.create(user, job)
        for user in ("alice", "olga"):
            eventually(lambda user=user: self.ask(user, "GET", f"{JOBS}/{user}")[1]["status"].get("succeeded") == 1, f"{user} is in the course")
        eventually(lambda: "reserved until" in self.run_as("bob", "why", "job/bob").stdout, "why says so")
        self.assertEqual(self.run_as("olga", "reserve", "course", "--delete").returncode, 0)
        eventually(lambda: self.ask("bob", "GET", f"{JOBS}/bob")[1]["status"].get("succeeded") == 1, "the node is open")

    def test_command_line_and_ownership_survive_a_restart(self):
        manifest = json.dumps(sh_job("j", "true", 1, suspend=True))
        self.assertEqual(self.run_as("alice", "create", "-f", "-", input=manifest).returncode, 0)
        self.assertIn("<hidden>", self.run_as("bob", "get", "jobs", "-o", "wide").stdout)
        refused = self.run_as("bob", "delete", "job/j")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("it belongs to another user", refused.stderr)
        self.coordinator.kill()
        self.coordinator.wait()
        # The socket left behind is replaced, and alice still owns her job.
        self.daemons.clear()
        self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                    "--api-socket", self.socket, "--users", GROUPS["hpc"], "--private-jobs")
        eventually(lambda: self.ask("bob", "GET", "/readyz")[0] == 200, "ready again")
        self.assertEqual(self.ask("bob", "GET", f"{JOBS}/j")[0], 404)
        self.assertEqual(self.ask("alice", "DELETE", f"{JOBS}/j")[0], 200)

    def test_owner_cannot_release_what_an_operator_holds(self):
        self.daemon("agent", "--coordinator", self.ends["listen"], "--work-dir", self.dir / "work", "--name", "n1", "--slots", "1")
        self.create("daemon", sh_job("j", "while [ ! -e " + str(self.dir / "go") + " ]; do sleep 0.05; done", 3, parallelism=2))

        def status():
            return self.ask("olga", "GET", f"{JOBS}/j")[1]["status"]

        eventually(lambda: status().get("ready") == 1, "one of two pods runs")
        held = self.run_as("olga", "hold", "job/j", "--reason", "the license server is down")
        self.assertEqual(held.returncode, 0, held.stderr)
        (self.dir / "go").touch()
        eventually(lambda: status().get("succeeded") == 1 and status()["ready"] == 0, "what runs ends and counts")
        time.sleep(0.5)
        self.assertEqual(status()["succeeded"], 1, "nothing new starts")
        why = self.run_as("olga", "why", "job/j").stdout
        for part in (name("olga"), "the license server is down", "only operators can release it"):
            self.assertIn(part, why)
        self.assertIn(f"{name('olga')}, ", self.run_as("olga", "get", "jobs", "-o", "wide").stdout)
        self.assertIn("Held", self.run_as("olga", "get", "jobs").stdout)
        self.assertIn("Held by", self.run_as("olga", "describe", "job/j").stdout)
        # A restart keeps the hold.
        self.coordinator.kill()
        self.coordinator.wait()
        self.start_coordinator()
        self.assertEqual([c["reason"] for c in status()["conditions"] if c["type"] == "muster.dev/Held"], ["HeldByOperator"])
        self.assertEqual(self.run_as("olga", "release", "job/j").returncode, 0)

    def test_users_hold_only_their_own_jobs(self):
        self.create("alice", sh_job("j", "true", 2))
        self.assertEqual(self.run_as("alice", "hold", "job/j").returncode, 0)
        self.assertNotEqual(self.run_as("bob", "release", "job/j").returncode, 0)
        self.assertEqual(self.run_as("alice", "release", "job/j").returncode, 0)
        self.assertEqual(self.run_as("olga", "hold", "job/j", "--reason", "maintenance").returncode, 0)
        refused = self.run_as("alice", "release", "job/j")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"{name('olga')} holds the job: maintenance; only operators can release it", refused.stderr)
        code, job = self.ask("alice", "GET", f"{JOBS}/j")
        job["spec"]["parallelism"] = 1
        self.assertEqual(self.ask("alice", "PUT", f"{JOBS}/j", job)[0], 200)
        self.assertIn("Held", self.run_as("alice", "get", "jobs").stdout, "a PUT does not touch the hold")
        self.assertEqual(self.ask("alice", "DELETE", f"{JOBS}/j")[0], 200, "a job on hold can be deleted")

    def test_only_operators_change_the_priority_of_a_job(self):
        self.daemon("agent", "--coordinator", self.ends["listen"], "--work-dir", self.dir / "work", "--name", "n1", "--slots", "1")
        for job, script in (("first", "sleep 1000"), ("second", f"touch {self.dir}/work/second")):
            self.create("daemon", sh_job(job, script, 1))
        eventually(lambda: self.ask("olga", "GET", f"{JOBS}/first")[1]["status"].get("ready") == 1, "the first runs")
        self.create("alice", sh_job("hers", "true", 1, suspend=True))
        refused = self.run_as("alice", "set", "job/hers", "--priority", "9")
        self.assertIn("only operators may do that", refused.stderr)
        before = self.ask("olga", "GET", f"{JOBS}/second")[1]["spec"]
        done = self.run_as("olga", "set", "job/second", "--priority", "9")
        self.assertIn("has priority 9", done.stdout, done.stderr)
        eventually((self.dir / "work/second").exists, "it preempts the first")
        eventually(lambda: self.ask("olga", "GET", f"{JOBS}/second")[1]["status"].get("succeeded") == 1, "it succeeds")
        self.assertEqual(self.ask("olga", "GET", f"{JOBS}/second")[1]["spec"], before, "its object is as it was")

    def test_audit_log_names_user_verb_and_code(self):
        self.create("alice", sh_job("j", "echo s3cr3t", 1, suspend=True))
        self.ask("bob", "DELETE", f"{JOBS}/j")
        self.ask("alice", "GET", f"{JOBS}/j")
        log = self.dir / "data/audit.log"
        lines = eventually(lambda: len(all := log.read_text().splitlines()) >= 2 and all, "two lines")
        logged = [(one["user"], one["verb"], one["code"], one["source"]) for one in map(json.loads, lines)]
        self.assertEqual(logged, [(name("alice"), "create", 201, "unix"), (name("bob"), "delete", 403, "unix")])
        self.assertNotIn("s3cr3t", log.read_text())
        self.assertEqual(log.stat().st_mode & 0o777, 0o600)

    def test_audit_log_goes_to_the_systemd_journal(self):
        path = pathlib.Path("/run/systemd/journal/socket")
        if path.exists():
            self.skipTest("the journal of this machine is not ours to read")

        def start(when):
            self.coordinator.kill()
            self.coordinator.wait()
            (self.dir / "data/endpoints.json").unlink(missing_ok=True)
            self.coordinator = self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                                           "--api-socket", self.socket, "--users", GROUPS["hpc"], "--audit-journal", when)
        start("on")
        self.assertEqual(self.coordinator.wait(20), 4)
        self.assertIn("--audit-journal on: /run/systemd/journal/socket: No such file or directory",
                      (self.dir / "coordinator.log").read_text())
        made = not path.parent.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.addCleanup(lambda: made and path.parent.rmdir())
        self.addCleanup(path.unlink)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journal:
            journal.bind(str(path))
            path.chmod(0o666)
            journal.settimeout(20)
            start("auto")
            eventually(lambda: self.ask("alice", "GET", "/readyz")[0] == 200, "ready")
            self.create("alice", sh_job("j", "true", 1, suspend=True))
            self.ask("bob", "DELETE", f"{JOBS}/j")
            entries = [dict(line.split("=", 1) for line in journal.recv(65536).decode().splitlines()) for _ in range(2)]
        logged = [{key: one[key] for key in ("SYSLOG_IDENTIFIER", "PRIORITY", "MUSTER_USER", "MUSTER_VERB", "MUSTER_CODE")} for one in entries]
        self.assertEqual(logged, [
            {"SYSLOG_IDENTIFIER": "muster-audit", "PRIORITY": "6", "MUSTER_USER": name("alice"), "MUSTER_VERB": "create", "MUSTER_CODE": "201"},
            {"SYSLOG_IDENTIFIER": "muster-audit", "PRIORITY": "5", "MUSTER_USER": name("bob"), "MUSTER_VERB": "delete", "MUSTER_CODE": "403"}])
        log = self.dir / "data/audit.log"
        lines = eventually(lambda: len(all := log.read_text().splitlines()) >= 2 and all, "two lines")
        self.assertEqual([json.loads(one["MESSAGE"]) for one in entries], list(map(json.loads, lines)))

    def test_user_pods_max_limits_pods_of_a_user(self):
        self.coordinator.kill()
        self.coordinator.wait()
        (self.dir / "data/endpoints.json").unlink()
        self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                    "--api-socket", self.socket, "--users", GROUPS["hpc"], "--user-pods-max", "3")
        ends = eventually(lambda: json.loads((self.dir / "data/endpoints.json").read_text()), "endpoints")
        eventually(lambda: self.ask("bob", "GET", "/readyz")[0] == 200, "ready again")
        self.daemon("agent", "--coordinator", ends["listen"], "--name", "h", "--hollow", "--slots", "20", "--hollow-duration", "1h",
                    "--work-dir", self.dir / "work")
        tolerate = [{"key": "muster.dev/hollow", "operator": "Exists"}]
        for user, job in (("alice", "a"), ("alice", "b"), ("bob", "c")):
            made = sh_job(job, "true", 5, parallelism=5)
            made["spec"]["template"]["spec"]["tolerations"] = tolerate
            self.create(user, made)

        def running(job):
            return self.ask("daemon", "GET", f"{JOBS}/{job}")[1]["status"].get("ready", 0)
        eventually(lambda: running("a") + running("b") == 3 and running("c") == 3, "three of each user")
        waiting = "b" if running("b") == 0 else "a"
        if running(waiting) == 0:
            why = self.ask("alice", "GET", f"/apis/muster.dev/v1/namespaces/default/jobs/{waiting}/why")[1]
            self.assertIn("its owner has 3 pods on nodes, and --user-pods-max is 3", why["summary"])

    def test_agent_without_root_keeper_runs_no_pods_of_other_users(self):
        self.daemon("agent", "--coordinator", self.ends["listen"], "--work-dir", self.dir / "work", "--name", "n1", "--slots", "2")
        self.create("alice", sh_job("j", f"touch {self.dir}/work/ran", 1, backoffLimit=0))

        def failed():
            attempts = self.ask("alice", "GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/attempts")[1]["items"]
            return attempts and attempts[0]
        end = eventually(failed, "the pod's end")
        self.assertEqual(end["exitCode"], 126)
        self.assertIn("the job belongs to uid", end["message"])
        self.assertFalse((self.dir / "work/ran").exists())

    def test_p12_a_namespace_with_others_config_maps_looks_unused(self):
        self.assertEqual(self.ask("alice", "POST", maps_in("hers"), {"metadata": {"name": "m"}})[0], 201)
        self.assertEqual(self.ask("alice", "POST", jobs_in("seen"), sh_job("j", "true", 1, suspend=True))[0], 201)
        self.assertEqual(self.spaces("bob"), {"default", "seen"}, "jobs are shown to all by name and counts")
        self.assertEqual(self.answers("bob", "hers"), self.answers("bob", "none"))
        self.assertEqual(self.spaces("alice"), {"default", "seen", "hers"})
        self.assertEqual(self.spaces("olga"), {"default", "seen", "hers"})

    def test_p12_dependency_does_not_reveal_jobs_of_others(self):
        self.create("alice", sh_job("hers", "true", 1, suspend=True))

        def refused(user, after):
            job = sh_job("main", "true", 1)
            job["metadata"]["annotations"] = {"muster.dev/after": f"any:{after}"}
            code, text = self.ask(user, "POST", JOBS, job)
            return code, json.dumps(text).replace(after, "X") if code != 201 else ""
        self.assertEqual(refused("bob", "hers"), refused("bob", "none"))
        self.assertEqual(refused("bob", "hers")[0], 422)
        self.assertEqual(refused("alice", "hers")[0], 201)

    def test_p12_objects_of_others_do_not_hold_up_namespace_deletion(self):
        self.assertEqual(self.ask("bob", "POST", SPACES, {"metadata": {"name": "red"}})[0], 201)
        self.assertEqual(self.ask("alice", "POST", jobs_in("red"), sh_job("hers", "true", 1, suspend=True))[0], 201)
        self.assertEqual(self.ask("bob", "POST", jobs_in("red"), sh_job("his", "true", 1, suspend=True))[0], 201)
        code, red = self.ask("bob", "DELETE", f"{SPACES}/red")
        self.assertEqual(code, 200, red)
        eventually(lambda: self.ask("bob", "GET", f"{SPACES}/red")[1]["metadata"].get("uid") != red["metadata"]["uid"], "his namespace is gone")
        self.assertEqual(self.ask("bob", "GET", f"{jobs_in('red')}/his")[0], 404)
        self.assertEqual(self.ask("alice", "GET", f"{jobs_in('red')}/hers")[0], 200)
        # Where a user has nothing, there is nothing to delete; an operator deletes everything.
        self.assertEqual(self.ask("bob", "DELETE", f"{SPACES}/red")[0], 403)
        self.assertEqual(self.ask("olga", "DELETE", f"{SPACES}/red")[0], 200)
        eventually(lambda: self.ask("olga", "GET", f"{SPACES}/red")[0] == 404, "all of it is gone")

    def test_contradicting_options_are_refused(self):
        done = subprocess.run([self.muster, "coordinator", "--data-dir", self.dir / "other", "--users", "x", "--insecure"], text=True,
                              capture_output=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--insecure and --users are mutually exclusive", done.stderr)


class PrivateUsers(Served):
    FLAGS = ("--private-jobs",)

    def test_p12_others_namespaces_look_unused(self):
        self.assertEqual(self.ask("alice", "POST", maps_in("red"), {"metadata": {"name": "m"}})[0], 201)
        self.assertEqual(self.ask("alice", "POST", jobs_in("blue"), sh_job("j", "true", 1, suspend=True))[0], 201)
        self.assertEqual(self.ask("alice", "POST", SPACES, {"metadata": {"name": "green"}})[0], 201)
        self.assertEqual(self.spaces("bob"), {"default"})
        for space in "red", "blue", "green":
            self.assertEqual(self.answers("bob", space), self.answers("bob", "none"), space)
        self.assertEqual(self.spaces("alice"), {"default", "red", "blue", "green"})


class Remote(Served):
    """The same users over HTTPS, with tokens that they created on the socket, where the kernel identifies them."""
    FLAGS = ("--api-tls", "127.0.0.1:0")

    def token(self, user, whose=None):
        """The status code, and the token or the error message."""
        code, made = self.ask(user, "POST", f"{MINE}/users/{name(whose or user)}/token", {})
        return code, made["text"].splitlines()[0] if code == 201 else made["message"]

    def https(self, bearer, method, path, body=None):
        context = ssl.create_default_context(cafile=self.dir / "data/ca.pem")
        connection = http.client.HTTPSConnection(self.ends["apiTls"], context=context, timeout=20)
        connection.request(method, path, None if body is None else json.dumps(body),
                           {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def test_token_acts_only_as_its_user(self):
        alice, bob = self.token("alice")[1], self.token("bob")[1]
        self.assertEqual(self.https(alice, "POST", JOBS, sh_job("j", "echo secret-word", 1))[0], 201)
        self.assertEqual(self.https(alice, "GET", f"{JOBS}/j")[1]["metadata"]["annotations"]["muster.dev/owner"], name("alice"))
        code, seen = self.https(bob, "GET", f"{JOBS}/j")
        self.assertEqual(code, 200)
        self.assertNotIn("secret-word", json.dumps(seen))
        for method, path, body in (("DELETE", f"{JOBS}/j", None), ("PUT", f"{JOBS}/j", sh_job("j", "true", 1)),
                                   ("POST", f"{MINE}/nodes/c01/token", {}), ("POST", f"{MINE}/nodes/c01/revocation", {})):
            self.assertEqual(self.https(bob, method, path, body)[0], 403, path)
        self.assertEqual(self.https(alice, "DELETE", f"{JOBS}/j", {})[0], 200)

    def test_only_owner_and_admin_create_and_revoke_tokens(self):
        self.assertEqual(self.token("dave")[0], 403, "no role")
        for user in ("alice", "olga", "prom"):
            self.assertEqual(self.token(user, "bob")[0], 403, user)
            self.assertEqual(self.ask(user, "POST", f"{MINE}/nodes/c01/token", {})[0], 403, user)
        self.assertEqual(self.token("daemon", "alice")[0], 201, "an admin's, for another")
        code, said = self.token("daemon", "dave")
        self.assertEqual(code, 422)
        self.assertIn("has no role here", said)
        alice = self.token("alice")[1]
        code, said = self.https(alice, "POST", f"{MINE}/users/{name('alice')}/token", {})
        self.assertEqual((code, "a token cannot be used to create tokens" in said["message"]), (403, True))
        mine = self.ask("alice", "GET", f"{MINE}/tokens")[1]["items"]
        self.assertEqual({token["user"] for token in mine}, {name("alice")})
        self.assertEqual(self.ask("bob", "GET", f"{MINE}/tokens")[1]["items"], [])
        path = f"{MINE}/tokens/{alice.split('.')[0]}"
        for user in ("bob", "olga"):
            self.assertEqual(self.ask(user, "DELETE", path)[0], 403, user)
        self.assertEqual(self.ask("alice", "DELETE", path)[0], 200)
        self.assertEqual(self.https(alice, "GET", JOBS)[0], 401)

    def test_a_link_to_the_page_is_for_whose_token_asks(self):
        made = self.ask("alice", "POST", f"{MINE}/users/{name('alice')}/token", {})[1]["text"]
        folder = self.dir / "bobs"
        folder.mkdir(mode=0o700)
        (folder / "token").write_text(made)
        shutil.copy(self.dir / "data/ca.pem", folder)
        for path in (folder / "token", folder / "ca.pem", folder):
            path.chmod(0o700 if path == folder else 0o600)
            shutil.chown(path, name("bob"))
        shown = subprocess.run([self.muster, "web", "--api", f"https://{self.ends['apiTls']}"], text=True, capture_output=True, timeout=60,
                               preexec_fn=become("bob"), cwd="/",
                               env={"PATH": "/usr/bin:/bin", "MUSTER_TOKEN_FILE": str(folder / "token"), "MUSTER_CA_FILE": str(folder / "ca.pem")})
        self.assertEqual(shown.returncode, 0, shown.stderr)
        connection = http.client.HTTPSConnection(self.ends["apiTls"], timeout=20, context=ssl.create_default_context(cafile=self.dir / "data/ca.pem"))
        connection.request("POST", f"{MINE}/login", json.dumps({"code": shown.stdout.strip().split("=")[1]}), {"Content-Type": "application/json"})
        token = json.loads(connection.getresponse().read())
        self.assertEqual(token.get("user"), name("alice"), token)

    def test_kubectl_logs_in_as_its_user(self):
        if shutil.which("kubectl") is None:
            self.skipTest("kubectl is not installed")
        home = self.dir / "home"
        home.mkdir()
        shutil.chown(home, name("alice"))
        env = {"PATH": "/usr/bin:/bin", "HOME": str(home)}
        config = subprocess.run([self.muster, "kubeconfig", "--api", f"unix:{self.socket}"], text=True, capture_output=True, timeout=60,
                                preexec_fn=become("alice"), cwd="/", env=env)
        self.assertEqual(config.returncode, 0, config.stderr)
        (home / "config").write_text(config.stdout)
        for _ in range(2):
            who = subprocess.run(["kubectl", "--kubeconfig", home / "config", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"],
                                 text=True, capture_output=True, timeout=60, preexec_fn=become("alice"), cwd="/", env=env)
            self.assertEqual((who.returncode, who.stdout), (0, name("alice")), who.stderr)
        self.assertEqual(len(self.ask("alice", "GET", f"{MINE}/tokens")[1]["items"]), 1, "the second call used the token of the first")
        cached, = (home / ".cache/muster").iterdir()
        self.assertEqual(cached.stat().st_mode & 0o777, 0o600)

    def test_audit_log_names_the_source_of_remote_requests(self):
        alice = self.token("alice")[1]
        self.https(alice, "POST", JOBS, sh_job("j", "true", 1))
        self.https("nonsense", "POST", JOBS, sh_job("k", "true", 1))
        log = self.dir / "data/audit.log"  # written after the answers

        def made():
            return [line for line in map(json.loads, log.read_text().splitlines()) if line["code"] == 201 and line["resource"] == "jobs"]
        found = eventually(made, "a line of the job that was made")
        self.assertEqual([(line["user"], line["source"]) for line in found], [(name("alice"), "127.0.0.1")])
        lines = list(map(json.loads, log.read_text().splitlines()))
        self.assertEqual([line for line in lines if line["code"] == 401], [], "nobody fills it without a token")
        self.assertNotIn(alice.split(".")[1], (self.dir / "data/audit.log").read_text())


class RootKeeper(Served):
    """A node whose keeper runs as root and starts each pod as its owner; the agent runs as the daemons' user."""

    def setUp(self):
        super().setUp()
        key = eventually(lambda: (self.dir / "data/permit.pub").read_text().strip(), "the public key")
        self.root = self.keeper(key)
        self.start_agent()
        eventually(lambda: self.ask("alice", "GET", "/api/v1/nodes")[1]["items"], "the node")

    def keeper(self, key, node="n1", work="work", within=(), **env):
        """`within`: a command that runs it in surroundings of its own."""
        daemon = pwd.getpwnam(name("daemon"))
        log = open(self.dir / "keeper.log", "ab")
        process = subprocess.Popen([*within, pathlib.Path(self.muster).with_name("muster-keeper"), str(self.dir / work), ""],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   cwd="/", env={"PATH": "/usr/bin:/bin", "MUSTER_KEEPER_AGENT": str(daemon.pw_uid), "MUSTER_KEEPER_PERMIT_KEY": key,
                                                 "MUSTER_KEEPER_NODE": node, "MUSTER_KEEPER_UMASK": "022", **env})
        log.close()
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def restart_keeper(self, agent=True, **env):
        """Replaces the keeper by one with other settings."""
        self.root.kill()
        self.root.wait()
        if agent:
            self.stop_agent()
        (self.dir / "work/keeper/socket").unlink(missing_ok=True)
        self.root = self.keeper((self.dir / "data/permit.pub").read_text().strip(), **env)
        if agent:
            self.start_agent()
        return self.root

    def start_agent(self, *flags, node="n1", work="work"):
        """Waits for a keeper first: without one, the agent would start its own."""
        eventually(lambda: (self.dir / work / "keeper/socket").exists(), "the keeper")
        return self.daemon("agent", "--coordinator", self.ends["listen"], "--work-dir", self.dir / work, "--name", node, "--slots", "4",
                           *flags)

    def finish(self, user, job):
        self.create(user, job)
        return self.end(user, job["metadata"]["name"])

    def end(self, user, title):
        """The condition that the job ends in."""
        def over():
            conditions = self.ask(user, "GET", f"{JOBS}/{title}")[1].get("status", {}).get("conditions", [])
            return next((c["type"] for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True"), None)
        return eventually(over, f"the end of {title}", 90)

    def log(self, user, job, index=0, attempt=0):
        code, text = self.ask(user, "GET", f"/apis/muster.dev/v1/namespaces/default/jobs/{job}/log?index={index}&attempt={attempt}")
        if isinstance(text, dict):  # no log yet, or not for this user
            return code, ""
        return code, text if isinstance(text, str) else f"{text}\n"  # a number parses as JSON

    def attempts(self, user, job):
        return self.ask(user, "GET", f"/apis/muster.dev/v1/namespaces/default/jobs/{job}/attempts")[1]["items"]

    def stop_agent(self):
        agent = self.daemons.pop()
        agent.kill()
        agent.wait()


class TwoNodes(RootKeeper):
    """n2 sees its own, empty directory in the place of the homes."""

    def setUp(self):
        super().setUp()
        self.homes, empty = self.dir / "homes", self.dir / "empty"
        for folder in (self.homes, empty, self.dir / "work2"):
            folder.mkdir()
        for user in ("alice", "bob"):
            (self.homes / user).mkdir()
            shutil.chown(self.homes / user, name(user))
        shutil.chown(self.dir / "work2", name("daemon"))
        self.keeper((self.dir / "data/permit.pub").read_text().strip(), "n2", "work2",
                    ("unshare", "--mount", "sh", "-c", f'mount --bind {empty} {self.homes} && exec "$@"', "sh"))
        self.start_agent(node="n2", work="work2")
        eventually(lambda: all(self.condition(node, "Ready")["status"] == "True" for node in ("n1", "n2")), "both nodes")

    def condition(self, node, kind):
        found = self.ask("olga", "GET", f"/api/v1/nodes/{node}")[1].get("status", {}).get("conditions", [])
        return next((one for one in found if one["type"] == kind), {"status": "Unknown"})

    def test_a_node_that_lacks_the_homes_costs_nobody_anything(self):
        for user in ("alice", "bob"):
            job = sh_job(f"of-{user}", "sleep 0.1", 50, parallelism=50, backoffLimitPerIndex=0)
            job["spec"]["template"]["spec"]["containers"][0]["workingDir"] = str(self.homes / user)
            self.create(user, job)
        for user in ("alice", "bob"):
            self.assertEqual(self.end(user, f"of-{user}"), "Complete", (self.dir / "keeper.log").read_text())
            attempts = self.attempts(user, f"of-{user}")
            self.assertEqual(({one["node"] for one in attempts}, len(attempts)), ({"n1"}, 50), "what did not start there is no attempt")
        failing = eventually(lambda: (found := self.condition("n2", "StartsFailing"))["status"] == "True" and found, "n2 is closed")
        self.assertIn("pods of 2 users cannot start here: working directory: No such file or directory", failing["message"])
        self.assertNotIn(str(self.homes), json.dumps(self.ask("alice", "GET", "/api/v1/nodes/n2")[1]), "paths are the users' own")
        self.assertIn("StartsFailing", self.run_as("olga", "get", "nodes", "-o", "wide").stdout)
        self.assertEqual(self.run_as("olga", "uncordon", "n2").returncode, 0)
        eventually(lambda: self.condition("n2", "Ready")["status"] == "True", "an operator opens it")

    def test_a_users_work_survives_a_drain_and_a_preemption(self):
        """Neither is charged to a typed job, whatever other users' work causes it."""
        self.ask("olga", "POST", "/apis/muster.dev/v1/queues", {"apiVersion": "muster.dev/v1", "kind": "Queue", "metadata": {"name": "urgent"},
                                                                "spec": {"priority": {"default": 10, "max": 10}}})
        made = self.run_as("alice", "submit", "--name", "long", "-n", "8", "--chdir", "/", command=("sleep", "2"))
        self.assertEqual(made.returncode, 0, made.stderr)
        eventually(lambda: self.ask("alice", "GET", f"{JOBS}/long")[1]["status"].get("ready") == 8, "all of it runs")
        made = self.run_as("bob", "submit", "--name", "now", "-n", "2", "-p", "urgent", "--chdir", "/", command=("true",))
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.end("bob", "now"), "Complete")
        self.assertEqual(self.run_as("olga", "drain", "n2", "--now").returncode, 0)
        self.assertEqual(self.run_as("olga", "uncordon", "n2").returncode, 0)
        self.assertEqual(self.end("alice", "long"), "Complete")
        status = self.ask("alice", "GET", f"{JOBS}/long")[1]["status"]
        self.assertEqual((status["succeeded"], status.get("failed", 0)), (8, 0))
        reasons = {one.get("disruption") for one in self.attempts("alice", "long") if one["counted"] == "ignored"}
        self.assertIn("PreemptionByScheduler", reasons)


class Owners(RootKeeper):
    def test_a_node_whose_keeper_is_gone_says_so(self):
        """Its agent goes on to answer while it looks for another one, however long that takes."""
        def ready():
            node, = self.ask("olga", "GET", "/api/v1/nodes")[1]["items"]
            return next((c["status"], c["reason"]) for c in node["status"]["conditions"] if c["type"] == "Ready")

        eventually(lambda: ready()[0] == "True", "the node is ready")
        self.root.kill()
        self.root.wait()
        eventually(lambda: ready() == ("False", "KeeperNotRunning"), "the node says what is missing")
        (self.dir / "work/keeper/socket").unlink(missing_ok=True)
        self.root = self.keeper((self.dir / "data/permit.pub").read_text().strip())
        eventually(lambda: ready()[0] == "True", "the node is ready again")
        self.assertEqual(self.finish("alice", sh_job("again", "true", 1)), "Complete")

    def test_pods_run_as_who_submitted_them(self):
        script = ("id -u; id -g; id -G; pwd; echo $HOME $USER; grep -E 'NoNewPrivs|CapEff|CapPrm' /proc/self/status; "
                  "echo $JOB_COMPLETION_INDEX $MUSTER_NODE_NAME; cat %s/data/permit.pub 2>&- || echo closed; cat %s/work/identity 2>&- || echo closed"
                  % (self.dir, self.dir))
        for user in ("alice", "bob"):
            job = sh_job(f"of-{user}", script, 2)
            job["spec"]["template"]["spec"]["containers"][0]["workingDir"] = "/tmp"
            self.assertEqual(self.finish(user, job), "Complete", (self.dir / "keeper.log").read_text())
            who = pwd.getpwnam(name(user))
            lines = self.log(user, f"of-{user}", 1)[1].splitlines()
            self.assertEqual(lines[0:2], [str(who.pw_uid), str(who.pw_gid)])
            self.assertEqual(set(lines[2].split()), {str(g) for g in os.getgrouplist(who.pw_name, who.pw_gid)})
            self.assertEqual(lines[3:5], ["/tmp", f"{who.pw_dir} {who.pw_name}"])
            self.assertEqual([line.split()[1] for line in lines[5:8]], ["0000000000000000", "0000000000000000", "1"])
            self.assertEqual(lines[8], "1 n1")
            self.assertEqual(lines.count("closed"), 2)
        files = list((self.dir / "work/logs").glob("*/*.stdout"))
        self.assertEqual({f.stat().st_uid for f in files}, {pwd.getpwnam(name(u)).pw_uid for u in ("alice", "bob")})
        self.assertEqual(self.log("bob", "of-alice")[0], 403)

    def test_one_job_of_a_user_gets_as_much_as_many_of_another(self):
        """Whether pods are prefetched (their keeper takes turns) or not (the coordinator divides)."""
        for seconds in ("0.02", "0.6"):
            jobs = {f"a{i}-{seconds[-1]}": "alice" for i in range(12)} | {f"b-{seconds[-1]}": "bob"}
            for job, user in jobs.items():
                self.create(user, sh_job(job, f"sleep {seconds}", 4000))
                if job.startswith("a11"):
                    eventually(lambda: sum(self.succeeded(jobs).values()) >= 8, "first ends")
            eventually(lambda: self.succeeded(jobs)["bob"] > 0, "the other user's first")
            before = self.succeeded(jobs)
            after = eventually(lambda: (now := self.succeeded(jobs))["bob"] >= before["bob"] + 40 and now, "more of them", 90)
            had = {user: after[user] - before[user] for user in after}
            self.assertTrue(0.35 <= had["bob"] / sum(had.values()) <= 0.65, had)
            share = eventually(lambda: (rows := self.run_as("alice", "share").stdout.splitlines())[2:] and rows, "both users")
            self.assertEqual(share[0].split(), ["USER", "HELD", "RECENT", "WEIGHT", "WAITING"])
            self.assertEqual({line.split()[0] for line in share[1:]}, {name("alice"), name("bob")})
            eventually(lambda: re.search(r"(1 of 2 users is|no other user is) ahead: \S+ holds .*% of the cluster",
                                         self.run_as("bob", "why", f"job/b-{seconds[-1]}").stdout), "why")
            for job, user in jobs.items():
                self.ask(user, "DELETE", f"{JOBS}/{job}")
            eventually(lambda: not self.ask("olga", "GET", JOBS)[1]["items"], "the end of all", 60)

    def test_an_operator_moves_a_users_job_to_another_queue(self):
        for words in (("lab", "--limit", "pods=1", "--user-weight", f"{name('alice')}=3"), ("other", "--users", name("olga"))):
            self.assertEqual(self.run_as("olga", "queue", *words).returncode, 0)
        for user, count in (("bob", "1"), ("alice", "2")):
            made = self.run_as(user, "submit", "--name", f"of-{user}", "-n", count, "-p", "lab", "--chdir", "/", command=("sleep", "1000"))
            self.assertEqual(made.returncode, 0, made.stderr)
            eventually(lambda: self.ask("bob", "GET", f"{JOBS}/of-bob")[1]["status"].get("ready") == 1, "bob's pod runs")
        eventually(lambda: "the pods in queue lab have 1 of at most 1 pods" in self.run_as("alice", "why", "job/of-alice").stdout, "alice waits")
        rows = eventually(lambda: (rows := self.run_as("alice", "share").stdout.splitlines())[2:] and rows, "both users")
        self.assertEqual(rows[0].split(), ["USER", "QUEUE", "HELD", "RECENT", "WEIGHT", "WAITING"])
        self.assertEqual(rows[1].split()[:3] + rows[1].split()[4:], [name("alice"), "lab", "0.0%", "3.00", "2"])
        self.assertEqual(rows[2].split()[:3], [name("bob"), "lab", "25.0%"])
        for user, queue, says in (("alice", "default", "only operators may do that"), ("bob", "default", "only operators may do that"),
                                  ("olga", "nowhere", "nowhere")):
            refused = self.run_as(user, "set", "job/of-alice", "--queue", queue)
            self.assertIn(says, refused.stderr)
            self.assertNotEqual(refused.returncode, 0)
        for queue in ("other", "default"):  # also one that is not open to her
            moved = self.run_as("olga", "set", "job/of-alice", "--queue", queue)
            self.assertIn(f"has queue {queue}", moved.stdout, moved.stderr)
            eventually(lambda: self.ask("alice", "GET", f"{JOBS}/of-alice")[1]["status"].get("ready") == 2, "both pods run")
        job = self.ask("alice", "GET", f"{JOBS}/of-alice")[1]
        self.assertEqual(job["metadata"]["annotations"]["muster.dev/queue"], "lab", "her object is as it was")
        self.assertIn(f"set by {name('olga')}: queue default", self.run_as("alice", "why", "job/of-alice").stdout)

    def succeeded(self, jobs):
        """How many pods of these jobs have succeeded, by user."""
        listed = {one["metadata"]["name"]: one for one in self.ask("olga", "GET", JOBS)[1]["items"]}
        counts = {"alice": 0, "bob": 0}
        for job, user in jobs.items():
            counts[user] += listed.get(job, {}).get("status", {}).get("succeeded", 0)
        return counts

    def test_outputs_belong_to_their_owners(self):
        self.assertEqual(self.finish("alice", sh_job("j", "echo private; echo too >&2", 2)), "Complete", (self.dir / "keeper.log").read_text())
        files = sorted((self.dir / "work/logs").glob("*/*"))
        self.assertEqual(len(files), 4)
        alice, daemon = (pwd.getpwnam(name(user)).pw_uid for user in ("alice", "daemon"))
        self.assertEqual({(f.stat().st_mode & 0o7777, f.stat().st_uid) for f in files}, {(0o600, alice)})
        self.assertEqual({(f.stat().st_mode & 0o7777, f.stat().st_uid) for f in {f.parent for f in files}}, {(0o700, daemon)})
        for user in ("daemon", "bob"):
            done = subprocess.run(["cat", *files], capture_output=True, text=True, preexec_fn=become(user))
            self.assertEqual((done.stdout, done.stderr.count("Permission denied")), ("", 4), user)
        self.assertEqual(self.log("alice", "j", 1), (200, "private\ntoo\n"))
        self.assertEqual(self.log("bob", "j", 1)[0], 403)
        self.assertEqual(self.run_as("alice", "logs", "job/j", "--index", "0").stdout.split(), ["private", "too"])

    def test_logs_are_followed_and_read_again_later(self):
        gate = self.dir / "gate"
        self.create("alice", sh_job("j", f"echo one; while ! test -e {gate}; do sleep 0.05; done; echo two", 1))
        eventually(lambda: self.log("alice", "j")[1] == "one\n", "its first line")
        following = subprocess.Popen([self.muster, "logs", "-f", "job/j", "--api", f"unix:{self.socket}"], stdout=subprocess.PIPE, text=True,
                                     preexec_fn=become("alice"), cwd="/", env={"PATH": "/usr/bin:/bin"})
        self.addCleanup(following.wait)
        self.addCleanup(following.kill)
        self.assertEqual(following.stdout.readline(), "one\n")
        self.stop_agent()
        self.start_agent()
        gate.touch()
        eventually(lambda: self.ask("alice", "GET", f"{JOBS}/j")[1]["status"].get("succeeded") == 1, "its success", 30)
        eventually(lambda: self.log("alice", "j")[1] == "one\ntwo\n", "both lines")
        self.restart_keeper()
        eventually(lambda: self.log("alice", "j")[1] == "one\ntwo\n", "both lines, from another keeper")

    def test_hanging_keeper_delays_only_its_own_answers(self):
        self.assertEqual(self.finish("alice", sh_job("j", "echo text", 1)), "Complete")
        os.kill(self.root.pid, signal.SIGSTOP)
        try:
            code, _ = self.ask("alice", "GET", "/apis/muster.dev/v1/namespaces/default/jobs/j/log?index=0&attempt=0")
            self.assertEqual(code, 503)
            self.assertIsNone(self.daemons[-1].poll(), "the agent")
        finally:
            os.kill(self.root.pid, signal.SIGCONT)
        eventually(lambda: self.log("alice", "j") == (200, "text\n"), "its log")

    def test_agents_and_keepers_of_earlier_versions_share_outputs(self):
        self.stop_agent()
        keeper = self.dir / "work/keeper"
        (keeper / "output_socket").unlink()
        (keeper / "socket").rename(keeper / "real")
        with socket.socket(socket.AF_UNIX) as between:
            between.bind(str(keeper / "socket"))
            (keeper / "socket").chmod(0o666)
            between.listen()
            threading.Thread(target=speak_version_6, args=(between, str(keeper / "real")), daemon=True).start()
            self.start_agent()
            self.assertEqual(self.finish("alice", sh_job("j", "echo text", 1)), "Complete")
            output = next((self.dir / "work/logs").glob("*/*.stdout")).stat()
            daemon = pwd.getpwnam(name("daemon"))
            self.assertEqual((output.st_mode & 0o7777, output.st_uid, output.st_gid),
                             (0o640, pwd.getpwnam(name("alice")).pw_uid, daemon.pw_gid))
            self.assertEqual(self.log("alice", "j"), (200, "text\n"))
            between.shutdown(socket.SHUT_RDWR)

    def test_old_logs_are_removed(self):
        self.assertEqual(self.finish("alice", sh_job("j", "echo text", 3)), "Complete")
        logs = self.dir / "work/logs"
        self.assertEqual(len(list(logs.glob("*/*.stdout"))), 3)
        self.stop_agent()
        self.start_agent("--log-max", "12")
        eventually(lambda: len(list(logs.glob("*/*.stdout"))) == 2, "the oldest to go")
        self.stop_agent()
        self.start_agent("--log-keep", "0s")
        eventually(lambda: not list(logs.glob("*")), "all to go")

    def test_keeper_keeps_only_needed_capabilities(self):
        kept = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SYS_PTRACE": 19}
        mask = f"{sum(1 << bit for bit in kept.values()):016x}"
        for task in (pathlib.Path("/proc") / str(self.root.pid) / "task").iterdir():
            sets = dict(line.split(":\t") for line in (task / "status").read_text().splitlines() if line.startswith("Cap"))
            self.assertEqual({key: sets[key] for key in ("CapInh", "CapPrm", "CapEff", "CapBnd")},
                             {"CapInh": "0" * 16, "CapPrm": mask, "CapEff": mask, "CapBnd": mask})

    def test_keeper_sets_configured_rlimits(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        may_raise = has_capability(24)  # CAP_SYS_RESOURCE
        files = hard + 1000 if may_raise else hard - 1
        self.restart_keeper(MUSTER_KEEPER_LIMITS=f"core=0 nofile=512:{files} nproc=3000 fsize=1M:2M")
        self.assertEqual(self.finish("alice", sh_job("j", "cat /proc/self/limits", 1)), "Complete", (self.dir / "keeper.log").read_text())
        limits = dict(re.findall(r"Max (.*?) {2,}(\S+ +\S+)", self.log("alice", "j")[1]))
        self.assertEqual({name: limits[name].split() for name in ("core file size", "open files", "processes", "file size")},
                         {"core file size": ["0", "0"], "open files": ["512", str(files)], "processes": ["3000", "3000"],
                          "file size": ["1048576", "2097152"]})
        # They win over what a job asks for; what they leave open is the job's, up to the hard limit.
        job = sh_job("mine", "ulimit -Sn; ulimit -Ss; umask; nice", 1)
        job["metadata"]["annotations"] = {"muster.dev/ulimits": "nofile=100 stack=4M", "muster.dev/umask": "0137", "muster.dev/nice": "4"}
        self.assertEqual(self.finish("alice", job), "Complete")
        self.assertEqual(self.log("alice", "mine")[1].split(), ["512", "4096", "0137", str(min(19, os.nice(0) + 4))])
        # The keeper raises its own limit as far as it can, and refuses to start with limits that it cannot grant.
        most = str(max(hard, files))
        self.assertRegex(pathlib.Path(f"/proc/{self.root.pid}/limits").read_text(), f"Max open files +{most} +{most} ")
        for text, why in (("core", "not core=VALUE"), ("files=1", "unknown limit; must be one of as, core"),
                          ("nofile=5000:4000", "the soft limit is above the hard limit"),
                          ("nofile=2000000000", f"nofile=2000000000 is above the keeper's own hard limit, {hard}, and it cannot be raised")):
            self.assertEqual(self.restart_keeper(agent=False, MUSTER_KEEPER_LIMITS=text).wait(20), 5)
            self.assertIn(why, (self.dir / "keeper.log").read_text())

    def test_files_for_output_are_opened_as_the_owner(self):
        shared = self.dir / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        job = sh_job("j", "echo mine; echo too >&2", 1)
        job["metadata"]["annotations"] = {"muster.dev/stdout": f"{shared}/%j-%i", "muster.dev/umask": "0077"}
        self.assertEqual(self.finish("alice", job), "Complete")
        self.assertEqual((shared / "j-0").read_text(), "mine\ntoo\n")
        alice = pwd.getpwnam(name("alice")).pw_uid
        self.assertEqual(((shared / "j-0").stat().st_uid, (shared / "j-0").stat().st_mode & 0o777), (alice, 0o600))
        # Neither what others have put there nor what only root may write.
        (shared / "diary").write_text("precious\n")
        os.chown(shared / "diary", alice, -1)
        subprocess.run(["ln", "-s", "diary", str(shared / "trap-0")], check=True, preexec_fn=become("bob"))
        for title, path, why in (("trap", f"{shared}/%j-%i", "Too many levels of symbolic links"), ("root", "/etc/%j-%i", "Permission denied")):
            job = sh_job(title, "echo stolen", 1)
            job["metadata"]["annotations"] = {"muster.dev/stdout": path, "muster.dev/start-failure": "FailJob"}
            self.assertEqual(self.finish("alice", job), "Failed")
            self.assertIn(why, str(self.ask("alice", "GET", f"/apis/muster.dev/v1/namespaces/default/jobs/{title}/why?index=0")[1]))
        self.assertEqual((shared / "diary").read_text(), "precious\n")
        self.assertFalse(pathlib.Path("/etc/root-0").exists())
        # Of links on the way, alice's and root's are followed, and bob's is not.
        home = shared / "home"
        home.mkdir()
        os.chown(home, alice, -1)
        (shared / "roots").symlink_to("home")
        for who in ("alice", "bob"):
            subprocess.run(["ln", "-s", "home", str(shared / who)], check=True, preexec_fn=become(who))
        for way in ("roots", "alice"):
            job = sh_job(f"by-{way}", "echo mine", 1)
            job["metadata"]["annotations"] = {"muster.dev/stdout": f"{shared}/{way}/%j"}
            self.assertEqual(self.finish("alice", job), "Complete")
            self.assertEqual((home / f"by-{way}").read_text(), "mine\n")
        job = sh_job("by-bob", "echo stolen", 1)
        job["metadata"]["annotations"] = {"muster.dev/stdout": f"{shared}/bob/%j", "muster.dev/start-failure": "FailJob"}
        self.assertEqual(self.finish("alice", job), "Failed")
        self.assertIn(f"open {shared}/bob/by-bob: {shared}/bob is a symbolic link of uid {pwd.getpwnam(name('bob')).pw_uid}; output follows only those of "
                      "the pod's user and of root: name the directory that it points to (--output, --error)",
                      str(self.ask("alice", "GET", "/apis/muster.dev/v1/namespaces/default/jobs/by-bob/why?index=0")[1]))
        self.assertFalse((home / "by-bob").exists())

    def test_logs_of_files_show_only_the_owners_own(self):
        shared = self.dir / "shared"
        shared.mkdir()
        shared.chmod(0o755)
        os.chown(shared, pwd.getpwnam(name("alice")).pw_uid, -1)
        secret = self.dir / "secret"
        secret.write_text("precious\n")
        secret.chmod(0o600)
        os.chown(secret, pwd.getpwnam(name("olga")).pw_uid, -1)
        job = sh_job("j", "echo mine; echo why >&2; exit 3", 1, backoffLimitPerIndex=0)
        job["metadata"]["annotations"] = {"muster.dev/stdout": f"{shared}/%j", "muster.dev/umask": "0022"}
        self.assertEqual(self.finish("alice", job), "Failed")
        done = self.run_as("olga", "logs", "job/j")
        self.assertEqual((done.returncode, done.stdout), (0, "mine\nwhy\n"), done.stderr)
        # What alice may put in its place: a link to olga's file, a FIFO that olga would wait for, that file itself.
        for how, why in ((["ln", "-s", secret], "it is a symbolic link, which is not followed"), (["mkfifo"], "it is not a regular file"),
                         (["mv", secret], f"it belongs to {name('olga')} (uid {pwd.getpwnam(name('olga')).pw_uid}), but the pod's files to {name('alice')}")):
            (shared / "j").unlink()
            subprocess.run([*how, shared / "j"], check=True, preexec_fn=become("alice") if how[0] != "mv" else None)
            for what in ("job/j", self.ask("alice", "GET", "/api/v1/namespaces/default/pods")[1]["items"][0]["metadata"]["name"]):
                done = self.run_as("olga", "logs", what)
                self.assertEqual((done.returncode, done.stdout), (5, ""), done.stderr)
                self.assertIn(f"the output is in {shared}/j on its node, which cannot be read here: {why}", done.stderr)
            shown = self.run_as("olga", "describe", "job/j")
            self.assertNotIn("precious", shown.stdout + shown.stderr)

    def test_users_cannot_reach_each_others_processes(self):
        self.create("alice", sh_job("j", "echo $$$$; exec sleep 300", 1))
        pid = eventually(lambda: self.log("alice", "j")[1].strip(), "its pid")
        work = self.dir / "work"
        output = next((work / "logs").glob("*/*.stdout"))
        named = f"{output.parent.name} {output.name.removesuffix('.stdout').replace('.', ' ')}"
        for script, text in (("keeper.py", STOLEN), ("output.py", READER)):
            (self.dir / script).write_text(text)
        script = (f"cat /proc/{pid}/environ || echo 'no environment'; kill -STOP {pid} || echo 'no signal'; "
                  f"cat {work}/logs/*/* || echo 'no logs'; head -c1 /proc/{pid}/mem || echo 'no memory'; "
                  f"/usr/bin/python3 {self.dir}/keeper.py {work}/keeper/socket {self.dir}/made || echo 'no keeper'; "
                  f"/usr/bin/python3 {self.dir}/output.py {work}/keeper/output_socket {named} || echo 'no output'")
        for title, mode in (("spy", 0o700), ("closer", 0o711)):  # the work-dir keeps bob out; if it does not, the keeper does
            work.chmod(mode)
            self.assertEqual(self.finish("bob", sh_job(title, script, 1)), "Complete")
            self.assertEqual([line for line in self.log("bob", title)[1].splitlines() if line.startswith("no ")],
                             ["no environment", "no signal", "no logs", "no memory", "no keeper", "no output"], title)

    def test_retry_belongs_to_its_requester(self):
        self.assertEqual(self.finish("alice", sh_job("j", "id -u; exit 3", 1, backoffLimitPerIndex=0)), "Failed")
        refused = self.run_as("bob", "retry", "job/j")
        self.assertEqual((refused.returncode, refused.stdout), (5, ""))
        self.assertIn("it belongs to another user", refused.stderr)
        for user, title in (("alice", "j-r2"), ("olga", "j-r3")):  # an operator sees everything
            done = self.run_as(user, "retry", "job/j", "--wait")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(f"job.batch/{title} created", done.stdout)
            self.assertEqual(self.ask(user, "GET", f"{JOBS}/{title}")[1]["metadata"]["annotations"]["muster.dev/owner"], name(user))
            self.assertEqual(self.log(user, title)[1], f"{pwd.getpwnam(name(user)).pw_uid}\n")

    def test_a_command_in_a_pod_runs_as_its_owner_and_for_nobody_else(self):
        self.create("alice", sh_job("j", "echo on; exec sleep 300", 1))
        eventually(lambda: self.log("alice", "j")[1], "its pod")
        done = self.run_as("alice", "exec", "job/j", command=("sh", "-c", "id -u; exit 5"))
        self.assertEqual((done.returncode, done.stdout), (5, f"{pwd.getpwnam(name('alice')).pw_uid}\n"), done.stderr)
        pod = self.ask("alice", "GET", "/api/v1/namespaces/default/pods")[1]["items"][0]["metadata"]["name"]
        path = f"{MINE}/namespaces/default/pods/{pod}/exec"
        session = "0123456789abcdef" * 2
        self.assertEqual(self.ask("alice", "POST", path, {"session": session, "command": ["sleep", "300"]})[0], 201)
        for user in ("bob", "olga"):  # olga is an operator
            for method, body in (("POST", {"session": session, "resume": True}), ("GET", None), ("DELETE", None)):
                self.assertEqual(self.ask(user, method, path + ("" if body else f"?session={session}"), body)[0], 403, (user, method))
        self.create("bob", sh_job("k", "echo on; exec sleep 300", 1))
        eventually(lambda: self.log("bob", "k")[1], "bob's pod")
        other, = self.ask("bob", "GET", "/api/v1/namespaces/default/pods")[1]["items"]
        path_of_bob = f"{MINE}/namespaces/default/pods/{other['metadata']['name']}/exec"
        self.assertEqual(self.ask("bob", "GET", f"{path_of_bob}?session={session}")[0], 404)
        self.assertEqual(self.ask("bob", "POST", path_of_bob, {"session": session, "resume": True})[0], 404)
        self.assertEqual(self.ask("alice", "DELETE", f"{path}?session={session}")[0], 200)
        self.assertNotIn("sleep", (self.dir / "data/audit.log").read_text())

    def test_a_command_in_a_chosen_container_runs_as_its_owner(self):
        job = sh_job("j", "exec sleep 300", 1)
        spec = job["spec"]["template"]["spec"]
        waits = "until [ -e on ]; do sleep 0.05; done"
        spec["volumes"] = [{"name": "v", "emptyDir": {}}]
        spec["initContainers"] = [{"name": "prepare", "command": ["sh", "-c", waits], "workingDir": "/mnt",
                                   "volumeMounts": [{"name": "v", "mountPath": "/mnt"}]}]
        spec["containers"].append({"name": "side", "command": ["sleep", "300"], "env": [{"name": "WHO", "value": "side"}]})
        self.create("alice", job)
        uid = pwd.getpwnam(name("alice")).pw_uid

        def in_container(container, script):
            return self.run_as("alice", "exec", "job/j", "-c", container, command=("sh", "-c", script))
        eventually(lambda: in_container("prepare", "true").returncode == 0, "the init container")
        done = in_container("prepare", "id -u; pwd; touch on")
        self.assertEqual(done.stdout, f"{uid}\n/mnt\n", done.stderr)
        eventually(lambda: in_container("side", "true").returncode == 0, "the containers")
        self.assertEqual(in_container("side", "id -u; echo $WHO; test -e /mnt/on || echo no volume").stdout, f"{uid}\nside\nno volume\n")
        self.assertEqual(in_container("prepare", "true").returncode, 5)

    def test_a_command_gets_input_and_a_terminal_as_its_owner(self):
        self.create("alice", sh_job("j", "echo on; exec sleep 300", 1))
        eventually(lambda: self.log("alice", "j")[1], "its pod")
        uid = pwd.getpwnam(name("alice")).pw_uid
        words = [self.muster, "exec", "--api", f"unix:{self.socket}", "job/j"]
        data = os.urandom(3 << 20)
        piped = subprocess.run([*words, "-i", "--", "sh", "-c", "id -u; cat; exit 5"], input=data, capture_output=True, timeout=60,
                               preexec_fn=become("alice"), cwd="/")
        self.assertEqual((piped.returncode, piped.stdout == f"{uid}\n".encode() + data), (5, True), piped.stderr)

        master, slave = os.openpty()
        script = "id -u; stat -c %u $(tty); stty size; kill -STOP $$; exit 6"
        done = subprocess.run([*words, "-it", "--", "sh", "-c", script], stdin=slave, capture_output=True, timeout=60, preexec_fn=become("alice"), cwd="/")
        os.close(master)
        os.close(slave)
        self.assertEqual((done.returncode, done.stdout.decode()), (6, f"{uid}\r\n{uid}\r\n0 0\r\n"), done.stderr)

        session = "0123456789abcdef" * 2
        pod = self.ask("alice", "GET", "/api/v1/namespaces/default/pods")[1]["items"][0]["metadata"]["name"]
        path = f"{MINE}/namespaces/default/pods/{pod}/exec"
        self.assertEqual(self.ask("alice", "POST", path, {"session": session, "command": ["cat"], "stdin": True})[0], 201)
        for user in ("bob", "olga"):
            self.assertEqual(self.ask(user, "PUT", f"{path}?session={session}&offset=0&eof=1")[0], 403, user)
        self.assertEqual(self.ask("alice", "PUT", f"{path}?session={session}&offset=0&eof=1")[1]["closed"], True)
        log = self.dir / "data/audit.log"

        def audited():
            lines = [line for line in log.read_text().splitlines() if '"subresource":"exec"' in line and '"update"' in line]
            return len(lines) >= 2 and lines
        self.assertEqual(len(eventually(audited, "lines of those that were refused")), 2)

    def test_kill_reaches_processes_of_the_owner(self):
        self.create("alice", sh_job("j", "trap '' TERM; echo $$$$; sleep 300 & wait; sleep 300", 1))
        pid = int(eventually(lambda: self.log("alice", "j")[1].strip(), "its pid"))
        self.assertEqual(self.ask("alice", "DELETE", f"{JOBS}/j", {"propagationPolicy": "Background", "gracePeriodSeconds": 0})[0], 200)
        eventually(lambda: not pathlib.Path(f"/proc/{pid}").exists() or
                   "zombie" in pathlib.Path(f"/proc/{pid}/status").read_text(), "its end", 60)

    def test_secrets_are_read_as_their_owner_and_kept_nowhere(self):
        value = f"hunter{os.getpid()}"
        keep = {}
        for user in ("alice", "bob"):
            who = pwd.getpwnam(name(user))
            os.mkdir(who.pw_dir, 0o700)
            self.addCleanup(shutil.rmtree, who.pw_dir)
            os.chown(who.pw_dir, who.pw_uid, who.pw_gid)
            keep[user] = pathlib.Path(who.pw_dir) / ".config/muster/secrets/db"
            subprocess.run(["mkdir", "-p", keep[user]], check=True, preexec_fn=become(user))
        subprocess.run(["sh", "-c", f"umask 077; echo {value} > {keep['alice']}/password"], check=True, preexec_fn=become("alice"))

        def job(title, key="password", **options):
            made = sh_job(title, "echo ${#PASSWORD}; env | grep -c PASSWORD=", 1, backoffLimit=0)
            source = {"secretKeyRef": {"name": "db", "key": key, **options}}
            made["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "valueFrom": source}]
            return made

        self.assertEqual(self.finish("alice", job("reads")), "Complete")
        self.assertEqual(self.log("alice", "reads")[1].split(), [str(len(value)), "1"])
        self.finish("alice", job("optional", "none", optional=True))
        self.assertEqual(self.log("alice", "optional")[1].split(), ["0", "0"])

        # Another user's secret is out of reach, both under the same names and through a link.
        (keep["bob"] / "link").symlink_to(keep["alice"] / "password")
        for title, key, why in (("other", "password", "No such file or directory"), ("linked", "link", "Permission denied")):
            self.assertEqual(self.finish("bob", job(title, key)), "Failed")
            end = self.attempts("bob", title)[0]
            self.assertEqual((end["exitCode"], end["cause"]), (126, "start-failed"), end)
            self.assertEqual(end["message"], f"variable PASSWORD: secret {keep['bob']}/{key}: {why}")
        (keep["alice"] / "password").chmod(0o640)
        self.assertEqual(self.finish("alice", job("readable")), "Failed")
        self.assertIn("others can read or change it; chmod 600 it", self.attempts("alice", "readable")[0]["message"])

        self.assertIn("secretKeyRef", json.dumps(self.ask("alice", "GET", f"{JOBS}/reads")[1]))
        found = subprocess.run(["grep", "-rl", value, self.dir], capture_output=True, text=True)
        self.assertEqual(found.stdout, "")

    def test_inputs_are_passed_in_the_permit(self):
        def job(title, **notes):
            made = sh_job(title, 'echo "$0 $MUSTER_INPUT"', 2, backoffLimit=0)
            made["spec"]["template"]["spec"]["containers"][0]["args"] = ["$(MUSTER_INPUT/.)"]
            made["metadata"]["annotations"] = {f"muster.dev/{key.replace('_', '-')}": value for key, value in notes.items()}
            return made

        self.assertEqual(self.finish("alice", job("lines", inputs="d/a.x\n$(id) b.y\n")), "Complete")
        self.assertEqual([self.log("alice", "lines", i)[1] for i in (0, 1)], ["a d/a.x\n", "$(id) b $(id) b.y\n"])
        self.assertEqual(self.finish("alice", job("file", inputs_file="/etc/hostname")), "Failed")
        self.assertEqual(self.attempts("alice", "file")[0]["message"], 
                         "inputs /etc/hostname: this node runs pods as their owners and cannot read them; use muster.dev/inputs")

    def test_config_maps_are_read_as_the_owner(self):
        maps = "/api/v1/namespaces/default/configmaps"

        def job(title):
            made = sh_job(title, 'echo "$A $B"', 1)
            container = made["spec"]["template"]["spec"]["containers"][0]
            container["env"] = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "A"}}}]
            container["envFrom"] = [{"configMapRef": {"name": "site", "optional": True}}]
            return made

        def put(user, title, data, **annotations):
            return self.ask(user, "POST", maps, {"metadata": {"name": title, "annotations": annotations}, "data": data})[0]
        self.assertEqual(put("bob", "settings", {"A": "bobs"}), 201)
        self.assertEqual(put("alice", "settings", {"A": "hers"}), 409)
        self.assertEqual(self.ask("alice", "GET", f"{maps}/settings")[0], 403)
        self.assertEqual([one["metadata"]["name"] for one in self.ask("alice", "GET", maps)[1]["items"]], ["kube-root-ca.crt"])
        self.assertEqual(put("bob", "site", {"B": "x"}, **{"muster.dev/shared": "true"}), 422)
        self.assertEqual(put("olga", "site", {"B": "shared"}, **{"muster.dev/shared": "true"}), 201)
        self.finish("bob", job("his"))
        self.assertEqual(self.log("bob", "his")[1], "bobs shared\n")
        self.create("alice", job("hers"))  # she has none

        def waiting():
            pods = self.ask("alice", "GET", "/api/v1/namespaces/default/pods")[1]["items"]
            return [state["waiting"].get("message") for pod in pods for one in pod["status"].get("containerStatuses", [])
                    if "waiting" in (state := one["state"]) and "message" in state["waiting"]]
        self.assertEqual(eventually(waiting, "her pod waits"), ['configmap "settings" not found'])
        self.assertEqual(self.ask("bob", "DELETE", f"{maps}/settings")[0], 200)
        self.assertEqual(self.ask("bob", "DELETE", maps)[0], 200)
        self.assertEqual(self.ask("alice", "GET", f"{maps}/site")[0], 200, "what is shared is not deleted by others")
        self.assertEqual(put("alice", "settings", {"A": "hers"}), 201)
        eventually(lambda: "hers shared" in self.log("alice", "hers")[1], "her pod runs")

    def test_failed_start_has_its_reason(self):
        for title, words, cwd, code, why in (("nothing", ["/no/such/program"], "/", 127, "exec /no/such/program"),
                                             ("unnamed", ["no-such-program"], "/", 127, "exec no-such-program"),
                                             ("locked", ["true"], str(self.dir / "data"), 126, "cwd ")):
            job = sh_job(title, "true", 1, backoffLimit=0)
            container = job["spec"]["template"]["spec"]["containers"][0]
            container["command"], container["workingDir"] = words, cwd
            container.pop("args", None)
            self.assertEqual(self.finish("alice", job), "Failed")
            end = self.attempts("alice", title)[0]
            self.assertEqual(end["exitCode"], code, end)
            self.assertIn(why, end["message"])
            self.assertEqual(end["cause"], "start-failed")

    def test_jobs_of_the_coordinator_user_run_as_that_user(self):
        code, _ = self.ask("daemon", "POST", JOBS, sh_job("own", "id -u", 1, backoffLimit=0))
        self.assertEqual(code, 201)
        self.assertEqual(pwd.getpwnam(name("daemon")).pw_uid >= 1000, True)
        eventually(lambda: self.attempts("daemon", "own"), "its end")
        self.assertEqual(self.log("daemon", "own")[1].strip(), str(pwd.getpwnam(name("daemon")).pw_uid))

    def test_jobs_of_root_do_not_run(self):
        done = subprocess.run(["/usr/bin/python3", "-c", ASK, self.socket, "POST", JOBS, "application/json"], capture_output=True,
                              input=json.dumps(sh_job("root", "id", 1, backoffLimit=0)).encode(), timeout=60)
        self.assertEqual(done.stdout.decode().splitlines()[0], "201", done)
        end = eventually(lambda: self.attempts("olga", "root"), "its end")[0]
        self.assertEqual(end["exitCode"], 126)
        self.assertIn("nothing runs as uid 0", (self.dir / "keeper.log").read_text())

    def test_a_stolen_agent_cannot_choose_the_command_or_the_user(self):
        """Sends orders to the keeper as the agent's user, without a permit or with a forged one."""
        eventually(lambda: (self.dir / "work/keeper/socket").exists(), "the socket")
        self.assertEqual(self.finish("alice", sh_job("first", "true", 1)), "Complete")
        self.stop_agent()
        marker = self.dir / "work" / "stolen"
        done = subprocess.run(["/usr/bin/python3", "-c", STOLEN, str(self.dir / "work/keeper/socket"), str(marker)], capture_output=True,
                              preexec_fn=become("daemon"), timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertIn("this keeper starts nothing without a permit", done.stdout.decode())
        self.assertIn("this node has no permit to run it as its owner", done.stdout.decode())
        self.assertIn("not signed by this node's coordinator", (self.dir / "keeper.log").read_text())
        self.assertFalse(marker.exists())
        # No other user may send orders at all.
        other = subprocess.run(["/usr/bin/python3", "-c", STOLEN, str(self.dir / "work/keeper/socket"), str(marker)], capture_output=True,
                               preexec_fn=become("bob"), timeout=60)
        self.assertNotEqual(other.returncode, 0)

    def test_a_stolen_agent_reads_outputs_and_nothing_else(self):
        self.assertEqual(self.finish("alice", sh_job("j", "echo text", 1)), "Complete")
        self.stop_agent()
        output = next((self.dir / "work/logs").glob("*/*.stdout"))
        folder, (pod, container) = output.parent, output.name.removesuffix(".stdout").rsplit(".", 1)

        def read(uid=folder.name, pod=pod, user="daemon"):
            done = subprocess.run(["/usr/bin/python3", "-c", READER, str(self.dir / "work/keeper/output_socket"), uid, pod, container],
                                  capture_output=True, text=True, preexec_fn=become(user), timeout=60)
            return done.stdout or done.stderr.splitlines()[-1]
        self.assertEqual(read(), "text\n")
        self.assertIn("Permission denied", read(user="alice"))
        (self.dir / "work").chmod(0o711)  # even if the mode did not keep them out
        self.assertEqual([read(user=user) for user in ("alice", "bob", "daemon")], ["closed", "closed", "text\n"])
        (self.dir / "work").chmod(0o700)
        # What the agent could put there: links, and users' files that it is able to move.
        shared = self.dir / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        subprocess.run(["sh", "-c", f"umask 077; echo precious > {shared}/diary; echo precious > {shared}/letter"], check=True,
                       preexec_fn=become("alice"))
        subprocess.run(["mv", f"{shared}/letter", f"{folder}/moved.{container}.stdout"], check=True, preexec_fn=become("daemon"))
        subprocess.run(["ln", "-s", f"{shared}/diary", f"{folder}/linked.{container}.stdout"], check=True, preexec_fn=become("daemon"))
        subprocess.run(["ln", "-s", str(shared), f"{folder.parent}/other"], check=True, preexec_fn=become("daemon"))
        (shared / f"inside.{container}.stdout").write_text("precious\n")
        self.assertIn("it is not an output", read(pod="moved"))
        self.assertIn("Too many levels of symbolic links", read(pod="linked"))
        self.assertIn("Too many levels of symbolic links", read(uid="other", pod="inside"))
        for uid, path in (("..", pod), (folder.name, f"../{folder.name}/{pod}"), (f"{folder.name}/.", pod)):
            self.assertIn("not the name of an output", read(uid, path))
        self.assertEqual(read(), "text\n")

    def test_p12_orphans_of_another_user_delay_no_end(self):
        self.restart_keeper(MUSTER_KEEPER_CGROUP="off")  # where cgroups show what is left, there is no scan to disturb
        job = sh_job("orphans", "", 1)
        job["spec"]["template"]["spec"]["containers"][0]["command"] = ["/usr/bin/python3", "-c", ORPHANS.replace("$", "$$")]
        self.create("bob", job)
        eventually(lambda: subprocess.run(["pgrep", "-U", name("bob"), "-x", "sleep"], capture_output=True).stdout.count(b"\n") > 20, "orphans")
        self.create("alice", sh_job("quick", "true", 3))
        eventually(lambda: self.ask("alice", "GET", f"{JOBS}/quick")[1]["status"].get("succeeded") == 3, "its success", 15)

    def test_p12_child_stopped_by_its_user_does_not_delay_others(self):
        """Between its change of user and its exec a child belongs to its user, who may stop it."""
        self.create("alice", sh_job("many", "true", 5000, parallelism=4, suspend=True))
        stoppers = []

        def stop_all():
            stoppers.append(subprocess.Popen(["/usr/bin/python3", "-c", STOPPER], preexec_fn=become("alice")))
            self.addCleanup(stoppers[-1].wait)
            self.addCleanup(stoppers[-1].kill)

        def stopped():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError):
                    status = pathlib.Path("/proc", pid, "status").read_text()
                    if f"\nUid:\t{uid}\t" in status and "State:\tT" in status and os.readlink(f"/proc/{pid}/exe").endswith("/muster-keeper"):
                        return pid
            return None
        uid = pwd.getpwnam(name("alice")).pw_uid
        self.ask("olga", "PATCH", f"{JOBS}/many", {"spec": {"suspend": False}}, "application/merge-patch+json")
        stop_all()

        def caught():
            if stopped():
                stoppers[-1].kill()
                stoppers[-1].wait()
                pid = stopped()
                return pid if pid else stop_all()
            return None
        pid = eventually(caught, "a child that is stopped before its exec", 60)
        self.restart_keeper(agent=False)
        eventually(lambda: (self.dir / "work/keeper/socket").exists(), "the next keeper")
        eventually(lambda: not pathlib.Path("/proc", pid).exists(), "its end, with its keeper")
        self.ask("olga", "DELETE", f"{JOBS}/many?propagationPolicy=Background")
        self.assertEqual(self.finish("bob", sh_job("next", "true", 1)), "Complete")

    def test_p12_orphans_do_not_hold_a_namespace(self):
        """Pods that outlived their job would otherwise run on for as long as their user likes."""
        self.assertEqual(self.ask("alice", "POST", jobs_in("red"), sh_job("j", "exec sleep 86400", 1))[0], 201)
        eventually(lambda: self.ask("alice", "GET", f"{jobs_in('red')}/j")[1]["status"].get("ready") == 1, "its pod runs")
        self.assertEqual(self.ask("alice", "DELETE", f"{jobs_in('red')}/j?propagationPolicy=Orphan")[0], 200)
        self.assertIn(self.ask("olga", "DELETE", f"{SPACES}/red")[0], (200, 201))
        eventually(lambda: self.ask("olga", "GET", f"{SPACES}/red")[0] == 404, "the namespace is gone", 60)
        self.assertEqual(subprocess.run(["pgrep", "-U", name("alice")], stdout=subprocess.DEVNULL).returncode, 1)

    def test_p12_what_users_write_does_not_act_on_anybodys_terminal(self):
        job = sh_job("j", f"printf '%s' '{UNSAFE}' >&2; exit 1", 1, backoffLimit=0)
        pod = job["spec"]["template"]["spec"]
        for meta in job["metadata"], job["spec"]["template"].setdefault("metadata", {}):
            meta["annotations"] = {"note": UNSAFE}
        pod["containers"][0] |= {"env": [{"name": "E", "value": UNSAFE}]}
        pod["terminationGracePeriodSeconds"] = 1
        self.assertEqual(self.finish("alice", job), "Failed")
        held = json.loads(json.dumps(job))
        held["metadata"]["name"] = "held"
        held["spec"]["suspend"] = True
        held["spec"]["template"]["spec"]["containers"][0]["image"] = f"image{UNSAFE}"
        self.ask("alice", "POST", JOBS, held)
        unsafe = set(UNSAFE) - set("[]0;owned2J")
        shown = {}
        for words in (("get", "jobs", "-o", "wide"), ("get", "pods", "-o", "wide"), ("describe", "job/j"), ("describe", "job/held"),
                      ("describe", self.pods("j")[0]), ("get", "attempts", "job/j"), ("why", "job/j"), ("why", "job/held"), ("top", "jobs"),
                      ("get", "all"), ("get", "events"), ("get", "job/j", "-o", "yaml"), ("get", "job/j", "-o", "json"), ("get", "nodes", "-o", "wide")):
            done = self.run_as("olga", *words)
            shown[words] = done.stdout
            text = done.stdout + done.stderr
            self.assertEqual(unsafe & set(text), set(), words)
        self.assertIn("\\u001b[2J", shown["describe", "job/j"])
        self.assertEqual(json.loads(shown["get", "job/j", "-o", "json"])["metadata"]["annotations"]["note"], UNSAFE)
        lines = [line for line in shown["get", "job/j", "-o", "yaml"].replace("name: j\n", "name: k\n").splitlines() if "muster.dev/owner" not in line]
        again = self.run_as("olga", "create", "--dry-run", "-f", "-", "-o", "json", input="\n".join(lines) + "\n")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(json.loads(again.stdout)["metadata"]["annotations"]["note"], UNSAFE, again.stderr)
        self.assertIn(UNSAFE, self.run_as("olga", "logs", "job/j", "--index", "0").stdout, "a pod's own output stays as it is")

    def pods(self, job):
        items = self.ask("olga", "GET", f"/api/v1/namespaces/default/pods?labelSelector=batch.kubernetes.io/job-name%3D{job}")[1]["items"]
        return [f"pod/{one['metadata']['name']}" for one in items]

    def test_keeper_follows_no_symbolic_links_in_the_work_dir(self):
        """The agent owns the work-dir, so anything in it may be a trap for a keeper that runs as root."""
        victim = self.dir / "victim"
        victim.write_text("precious\n")
        self.assertEqual(self.finish("alice", sh_job("first", "true", 1)), "Complete")
        logs = self.dir / "work/logs"
        made = self.ask("alice", "POST", JOBS, sh_job("trap", "echo overwritten", 1, suspend=True, backoffLimit=0))[1]
        folder = logs / made["metadata"]["uid"]
        folder.symlink_to(self.dir)
        self.ask("alice", "PATCH", f"{JOBS}/trap", {"spec": {"suspend": False}}, "application/merge-patch+json")
        end = eventually(lambda: self.attempts("alice", "trap"), "its end")[0]
        self.assertEqual(end["exitCode"], 126, end)
        self.assertEqual(victim.read_text(), "precious\n")
        self.assertFalse(list(self.dir.glob("*.stdout")))

    def test_pods_outlive_the_agent(self):
        self.create("alice", sh_job("j", "echo $$$$; sleep 3; echo done", 1))
        pid = eventually(lambda: self.log("alice", "j")[1].strip(), "its pid")
        self.stop_agent()
        self.assertTrue(pathlib.Path(f"/proc/{pid}").exists())
        self.start_agent()
        eventually(lambda: self.ask("alice", "GET", f"{JOBS}/j")[1]["status"].get("succeeded") == 1, "its success", 30)
        self.assertEqual(self.log("alice", "j")[1].splitlines(), [pid, "done"])
        self.assertEqual(len(self.attempts("alice", "j")), 1)


# Called by PAM as root: logs the call, and waits while the file `hang` exists.
HOOK = """#!/bin/sh
echo "$PAM_TYPE $PAM_USER $PAM_SERVICE $(id -u)" >> %(dir)s/hook.log
while test -e %(dir)s/hang; do sleep 0.05; done
"""
SERVICE = """
auth     required  pam_permit.so
account  required  pam_unix.so
session  required  pam_exec.so %(dir)s/hook
session  required  pam_limits.so conf=%(dir)s/limits.conf
session  required  pam_env.so conffile=%(dir)s/env.conf readenv=0
"""


class PamNode(RootKeeper):
    """A root keeper that opens a real PAM session around each process."""
    SECONDS = 60

    def setUp(self):
        super().setUp()
        self.service = f"muster-{PREFIX}"
        service = pathlib.Path("/etc/pam.d") / self.service
        service.write_text(SERVICE % {"dir": self.dir})
        self.addCleanup(service.unlink)
        (self.dir / "hook").write_text(HOOK % {"dir": self.dir})
        (self.dir / "hook").chmod(0o755)
        (self.dir / "limits.conf").write_text("* hard nproc 2345\n* soft nofile 300\n* hard nofile 3000\n* - core 0\n")
        (self.dir / "env.conf").write_text("SITE DEFAULT=lab\nHOME DEFAULT=/nowhere\nMINE DEFAULT=pam\n")
        self.addCleanup(lambda: (self.dir / "hang").unlink(missing_ok=True))
        self.restart_keeper(MUSTER_KEEPER_PAM=self.service, MUSTER_KEEPER_PAM_SECONDS=str(self.SECONDS))

    def stop(self):
        super().stop()
        if hasattr(self, "service"):
            eventually(lambda: not self.helpers(), "the end of all sessions, which write to the directory")

    def hooks(self, user="alice"):
        log = self.dir / "hook.log"
        lines = log.read_text().splitlines() if log.exists() else []
        self.assertEqual({line.split(" ", 2)[2] for line in lines} - {f"{self.service} 0"}, set(), "root, in this service")
        return [line.split()[0] for line in lines if line.split()[1] == name(user)]

    def helpers(self):
        found = []
        for proc in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"--pam-session\0{self.service}\0" in (proc / "cmdline").read_text():
                    found.append(int(proc.name))
        return found

    def release(self, job):
        (self.dir / f"release-{job}").touch()

    def waiting(self, title):
        """Starts a pod that runs until released; returns its pid."""
        self.create("alice", sh_job(title, f"echo $$$$; while ! test -e {self.dir}/release-{title}; do sleep 0.05; done", 1, backoffLimit=0))
        return int(eventually(lambda: self.log("alice", title)[1].strip(), f"the pid of {title}"))


class Pam(PamNode):
    def test_a_session_is_open_while_the_process_runs(self):
        script = f"cat {self.dir}/hook.log; grep -c pam /proc/$$$$/maps; cat /proc/$$$$/task/$$$$/children; while ! test -e {self.dir}/release-j; do sleep 0.05; done"
        self.create("alice", sh_job("j", script, 1))
        lines = eventually(lambda: len(said := self.log("alice", "j")[1].splitlines()) > 2 and said, "its output")
        self.assertEqual(lines[0], f"open_session {name('alice')} {self.service} 0")
        self.assertEqual((lines[1], len(lines[2].split())), ("0", 1), "it has only the child that it made itself")
        self.assertEqual(len(self.helpers()), 1)
        self.assertEqual(self.hooks(), ["open_session"])
        self.assertNotRegex(pathlib.Path(f"/proc/{self.root.pid}/maps").read_text(), "/security/pam_")
        self.release("j")
        eventually(lambda: self.hooks() == ["open_session", "close_session"], "the end of the session")
        eventually(lambda: not self.helpers(), "the end of the helper")
        eventually(lambda: self.ask("alice", "GET", f"{JOBS}/j")[1]["status"].get("succeeded") == 1, "its success")
        eventually(lambda: not pathlib.Path(f"/proc/{self.root.pid}/task/{self.root.pid}/children").read_text(), "no zombie")

    def test_limits_and_variables_reach_the_process(self):
        self.restart_keeper(MUSTER_KEEPER_PAM=self.service, MUSTER_KEEPER_LIMITS="nproc=3456 fsize=1G")
        job = sh_job("j", "cat /proc/self/limits; echo site=$SITE home=$HOME mine=$MINE; env | grep -c ^MUSTER_PROCESS=", 1)
        job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "MINE", "value": "job"}]
        self.assertEqual(self.finish("alice", job), "Complete")
        text = self.log("alice", "j")[1]
        limits = {what: values.split() for what, values in re.findall(r"Max (.*?) {2,}(\S+ +\S+)", text)}
        self.assertEqual({what: limits[what] for what in ("processes", "open files", "core file size", "file size")},
                         {"processes": ["3456", "3456"], "open files": ["300", "3000"], "core file size": ["0", "0"],
                          "file size": [str(2**30), str(2**30)]})
        self.assertIn(f"site=lab home={pwd.getpwnam(name('alice')).pw_dir} mine=job\n1\n", text)

    def test_p26_what_does_not_get_to_its_program_has_not_started(self):
        """However long it takes, so that another node may try: the pod is no attempt yet."""
        (self.dir / "hang").touch()
        job = sh_job("j", "true", 1, backoffLimit=0)
        job["spec"]["template"]["spec"]["containers"][0].update(command=["/no/such/program"], args=[])
        self.create("alice", job)
        eventually(self.hooks, "it waits for its session")
        (self.dir / "hang").unlink()
        self.assertEqual(self.end("alice", "j"), "Failed")
        end = self.attempts("alice", "j")[0]
        self.assertEqual((end["exitCode"], end.get("started")), (127, None), end)

    def test_an_account_that_is_refused_runs_nothing(self):
        self.assertEqual(self.finish("alice", sh_job("before", "true", 1)), "Complete")
        subprocess.run(["usermod", "--expiredate", "1970-01-02", name("alice")], check=True)
        self.addCleanup(subprocess.run, ["usermod", "--expiredate", "", name("alice")], check=True)
        before = self.hooks()
        self.assertEqual(self.finish("alice", sh_job("j", "echo ran", 1, backoffLimit=0)), "Failed")
        end = self.attempts("alice", "j")[0]
        self.assertEqual((end["exitCode"], end["cause"]), (126, "start-failed"), end)
        self.assertIn(f"PAM service {self.service}, account of {name('alice')}: User account has expired: "
                      "Your account has expired; please contact your system administrator", end["message"])
        self.assertEqual(self.hooks(), before)
        self.assertEqual(self.finish("bob", sh_job("k", "true", 1)), "Complete", "nobody else is")

    def test_sessions_outlive_the_keeper_and_end_once(self):
        for title in ("one", "two"):
            pid = self.waiting(title)
        self.assertEqual(self.hooks(), ["open_session"] * 2)
        self.root.kill()
        self.root.wait()
        self.assertEqual(self.hooks(), ["open_session"] * 2)
        self.release("one")
        eventually(lambda: self.hooks().count("close_session") == 1, "the end of the first, without a keeper")
        self.assertTrue(pathlib.Path(f"/proc/{pid}").exists())
        # The next keeper closes the sessions that its predecessor left open.
        self.restart_keeper(MUSTER_KEEPER_PAM=self.service)
        eventually(lambda: self.hooks().count("close_session") == 2, "the end of the second")
        eventually(lambda: not self.helpers(), "no helper")
        self.assertEqual(self.hooks(), ["open_session"] * 2 + ["close_session"] * 2)

    def test_invalid_pam_settings_are_refused(self):
        for env, why in (({"MUSTER_KEEPER_PAM": "../x"}, "`../x` must be the name of a file in /etc/pam.d"),
                         ({"MUSTER_KEEPER_PAM": "no-such"}, "MUSTER_KEEPER_PAM: there is no /etc/pam.d/no-such"),
                         ({"MUSTER_KEEPER_PAM": self.service, "MUSTER_KEEPER_PAM_SECONDS": "0"}, "`0` must be a whole number, 1 to 3600"),
                         ({"MUSTER_KEEPER_PAM_SECONDS": "5"}, "MUSTER_KEEPER_PAM_SECONDS needs MUSTER_KEEPER_PAM")):
            self.assertEqual(self.restart_keeper(agent=False, **env).wait(20), 5)
            self.assertIn(why, (self.dir / "keeper.log").read_text())

    def test_pam_keeper_adds_only_session_capabilities(self):
        bits = {0, 1, 3, 5, 6, 7, 19} | ({23, 24, 29, 30} & {n for n in range(41) if has_capability(n)})
        self.assertEqual(self.finish("alice", sh_job("j", "grep Cap /proc/self/status; grep NoNew /proc/self/status", 1)), "Complete")
        status = pathlib.Path(f"/proc/{self.root.pid}/status").read_text()
        self.assertIn(f"CapEff:\t{sum(1 << bit for bit in bits):016x}\n", status)
        self.assertEqual({line.split()[1] for line in self.log("alice", "j")[1].splitlines() if "Bnd" not in line}, {"0" * 16, "1"})


class HangingPam(PamNode):
    """A PAM module that hangs."""
    SECONDS = 4

    def setUp(self):
        super().setUp()
        self.pid = self.waiting("before")
        (self.dir / "hang").touch()

    def test_hanging_pam_delays_no_other_pods(self):
        self.create("bob", sh_job("stuck", "true", 1, backoffLimit=0))
        eventually(lambda: "open_session" in self.hooks("bob"), "its hook")
        # The keeper still answers, kills, and notices ends.
        self.assertEqual(self.ask("alice", "DELETE", f"{JOBS}/before", {"propagationPolicy": "Background", "gracePeriodSeconds": 0})[0], 200)
        eventually(lambda: not pathlib.Path(f"/proc/{self.pid}").exists(), "the end of another's process")
        self.assertEqual(self.attempts("bob", "stuck"), [], "it still waits")
        end = eventually(lambda: self.attempts("bob", "stuck"), "its end")[0]
        self.assertEqual((end["exitCode"], end["cause"]), (126, "start-failed"), end)
        self.assertIn(f"PAM service {self.service} has not opened a session within {self.SECONDS} s", end["message"])
        # Hanging helpers are eventually killed: that of `stuck`, and the one closing the session of `before`.
        eventually(lambda: not self.helpers(), "no helper", 30)

    def test_a_keeper_that_dies_meanwhile_can_be_replaced(self):
        self.restart_keeper(MUSTER_KEEPER_PAM=self.service)  # with the usual deadline
        self.create("bob", sh_job("stuck", "true", 1, backoffLimit=0))
        eventually(lambda: "open_session" in self.hooks("bob"), "its hook")
        lock = self.dir / "work/keeper/lock"
        before = lock.read_text()
        started = time.monotonic()
        self.restart_keeper(MUSTER_KEEPER_PAM=self.service)
        eventually(lambda: lock.read_text() != before, "the lock")
        self.assertLess(time.monotonic() - started, 15)
        self.assertIsNone(self.root.poll())
        (self.dir / "hang").unlink()
        self.assertEqual(self.finish("alice", sh_job("after", "true", 1)), "Complete")

    def test_a_pod_that_waits_can_be_killed(self):
        self.restart_keeper(MUSTER_KEEPER_PAM=self.service)
        self.create("bob", sh_job("stuck", "true", 1, backoffLimit=0))
        eventually(lambda: "open_session" in self.hooks("bob"), "its hook")
        self.assertEqual(self.ask("bob", "DELETE", f"{JOBS}/stuck", {"propagationPolicy": "Foreground", "gracePeriodSeconds": 600})[0], 200)
        eventually(lambda: self.ask("bob", "GET", f"{JOBS}/stuck")[0] == 404, "its end")
        # A module that answers late opens a session that is no longer needed and is closed at once.
        (self.dir / "hang").unlink()
        eventually(lambda: self.hooks("bob") == ["open_session", "close_session"], "the end of its session")
        eventually(lambda: not self.helpers(), "no helper")


# Stops everything of its user, now and then, but not itself. What was stopped too late to matter goes on after a while, so
# that the next pods of the job can start.
STOPPER = """
import contextlib, os, signal, time
while True:
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGSTOP)
    time.sleep(0.3)
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGCONT)
"""

# Leaves a stream of orphans that hide their environment, until it is killed.
ORPHANS = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve("/bin/sleep", ["sleep", "0.2"], {})
        os._exit(0)
    time.sleep(0.002)
"""


# Speaks the keeper's protocol: an order without a permit, and one with an unsigned permit. argv: the socket and a file to create.
STOLEN = """
import socket, struct, sys
def text(t):
    return struct.pack('<I', len(t)) + t + b'\\0'
def frame(kind, payload):
    return struct.pack('<IB', len(payload) + 1, kind) + payload
def key(n):
    return struct.pack('<QIIHH', 99, n, 0, 0, 0)
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall(frame(1, struct.pack('<I', 5) + text(b'')))
command = [b'/bin/touch', sys.argv[2].encode()]
plain = key(1) + text(b'') + text(b'/') + text(b'/tmp/o') + text(b'/tmp/e') + struct.pack('<I', 2) + text(command[0]) + text(command[1])
plain += struct.pack('<I', 0) + struct.pack('<QQBq', 0, 0, 0, 0)
s.sendall(frame(2, plain))
s.sendall(frame(10, struct.pack('<Q', 1) + text(b'forged') + text(b'x' * 64)))
s.sendall(frame(11, key(2) + text(b'') + struct.pack('<QQQBqI', 1, 0, 0, 0, 0, 0)))
s.settimeout(10)
got = b''
while got.count(b'permit') < 2:
    part = s.recv(65536)
    if not part:
        sys.exit('closed')
    got += part
print(got)
"""

def speak_version_6(listener, keeper_path):
    """Relays agents to the keeper, and rejects later protocol versions as unknown."""
    def copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    with contextlib.suppress(OSError):
        while True:
            agent, _ = listener.accept()
            keeper = socket.socket(socket.AF_UNIX)
            keeper.connect(keeper_path)
            hello = agent.recv(65536)
            while struct.unpack_from("<I", hello, 5)[0] > 6:  # after the frame's length and type
                why = b"speak version 6"
                agent.sendall(struct.pack("<IBI", len(why) + 6, 65, len(why)) + why + b"\0")
                hello = agent.recv(65536)
            keeper.sendall(hello)
            for pair in ((agent, keeper), (keeper, agent)):
                threading.Thread(target=copy, args=pair, daemon=True).start()


# Asks the keeper to open an output, as the agent does. argv: the socket, job uid, pod and container.
READER = """
import socket, struct, sys
def text(t):
    return struct.pack('<I', len(t)) + t.encode() + b'\\0'
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.settimeout(10)
s.connect(sys.argv[1])
try:
    s.send(b''.join(map(text, sys.argv[2:5])) + b'\\0')
    answer, files, _, _ = socket.recv_fds(s, 4096, 1)
except ConnectionError:
    answer, files = b'', []
if not answer:
    sys.exit('closed')
if not files:
    sys.exit(answer[4:-1].decode() or 'none')
sys.stdout.write(open(files[0]).read())
"""


if __name__ == "__main__":
    if not possible():
        print("users.py: skipped: only root can make the users that it needs")
        sys.exit(0)
    unittest.main(verbosity=2, warnings="ignore")
