#!/usr/bin/python3
"""Users of other machines who log in by munge, and impostors, with real Unix users and a munged that has its own key.

    MUSTER=build/release/muster tests/e2e/munge.py [TEST…]

Needs root and munged; without them, says so and succeeds.
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from users import JOBS, MINE, Served, become, name, setUpModule  # noqa: E402, F401
from world import eventually, sh_job  # noqa: E402

MUNGE = f"{MINE}/munge"
MUNGED = shutil.which("munged") or "/usr/sbin/munged"
UNIFORM = "the munge credential is not accepted"


class Munged:
    """A munged with its own key and folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        (folder / "key").write_bytes(os.urandom(64))
        (folder / "key").chmod(0o600)
        self.socket = folder / "socket"
        self.start()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [MUNGED, "--foreground", "--force", "--socket", self.socket, "--key-file", self.folder / "key", "--pid-file",
                 self.folder / "pid", "--log-file", self.folder / "logfile", "--seed-file", self.folder / "seed"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(lambda: self.encode("").startswith("MUNGE:"), "munged")

    def stop(self):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait()

    def encode(self, payload, user=None, *flags):
        done = subprocess.run(["munge", "-S", self.socket, "-s", payload, *map(str, flags)], text=True, capture_output=True, timeout=60,
                              preexec_fn=become(user) if user else None, cwd="/")
        return done.stdout.strip()


class Site(Served):
    """A coordinator that logs users in by munge. Its clients have no tokens, only the authority's certificate."""
    MORE = ()

    def start_coordinator(self):
        if not hasattr(self, "munged"):
            self.munged = self.new_munged("munge")
        self.FLAGS = ("--api-tls", "127.0.0.1:0", "--munge", "--munge-socket", self.munged.socket, *self.MORE)
        super().start_coordinator()
        self.url = f"https://{self.ends['apiTls']}"
        self.ca = self.dir / "ca.pem"  # clients cannot read the daemon's data-dir
        shutil.copy(self.dir / "data/ca.pem", self.ca)
        self.ca.chmod(0o644)

    def new_munged(self, folder):
        munged = Munged(self.dir / folder)
        self.addCleanup(munged.stop)
        return munged

    def home(self, user):
        home = self.dir / f"home-{user}"
        if not home.exists():
            home.mkdir(mode=0o700)
            if user != "root":
                shutil.chown(home, name(user))
        return home

    def remote(self, user, *args, api=None, command=None, **more):
        """Runs a command as this user on a machine where the kernel cannot identify the user to the coordinator."""
        env = {"PATH": f"{self.dir}:/usr/bin:/bin", "HOME": str(self.home(user)), "MUSTER_MUNGE_SOCKET": str(self.munged.socket),
               "MUSTER_CA_FILE": str(self.ca), "MUSTER_API": api or self.url}
        return subprocess.run([*(command or [self.muster]), *map(str, args)], text=True, capture_output=True, timeout=60,
                              preexec_fn=None if user == "root" else become(user), cwd="/", env=env, **more)

    def ok(self, user, *args, **more):
        done = self.remote(user, *args, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def https(self, method, path, bearer=None, body=None):
        context = ssl.create_default_context(cafile=self.ca)
        connection = http.client.HTTPSConnection(self.ends["apiTls"], context=context, timeout=30)
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        connection.request(method, path, text, {**({"Authorization": f"Bearer {bearer}"} if bearer else {}),
                                                **({"Content-Type": "application/json"} if body is not None else {})})
        response = connection.getresponse()
        return response.status, json.loads(response.read())

    def claim(self, **other):
        code, audience = self.https("GET", MUNGE)
        self.assertEqual(code, 200, audience)
        audience.update(other)
        return f"muster {audience['cluster']} {audience['start']} {os.urandom(16).hex()}"

    def exchange(self, credential):
        return self.https("POST", MUNGE, None, {"credential": credential})

    def refused(self, credential, why):
        """The credential is refused, without telling the caller why."""
        code, status = self.exchange(credential)
        self.assertEqual((code, status["message"]), (401, UNIFORM))
        eventually(lambda: why in self.log(), f"the log's line: {why}")  # written after the answer

    def log(self):
        return (self.dir / "coordinator.log").read_text()

    def tokens(self, user="alice"):
        return self.ask(user, "GET", f"{MINE}/tokens")[1]["items"]

    def cache(self, user="alice"):
        found, = (self.home(user) / ".cache/muster").glob("munge-*.json")
        return found

    def audited(self, count):
        """Users and codes of the audited log-ins, once there are `count` of them; the lines are written after the answers."""
        def lines():
            return [line for line in map(json.loads, (self.dir / "data/audit.log").read_text().splitlines()) if line.get("resource") == "munge"]
        eventually(lambda: len(lines()) >= count, f"{count} lines of the audit log")
        return [(line["user"], line["code"]) for line in lines()]


class LogIns(Site):
    def test_commands_log_in_by_themselves(self):
        manifest = self.dir / "job.json"
        manifest.write_text(json.dumps(sh_job("j", "true", 1, suspend=True)))
        self.assertIn("j", self.ok("alice", "create", "-f", manifest))
        self.assertEqual(self.ask("alice", "GET", f"{JOBS}/j")[1]["metadata"]["annotations"]["muster.dev/owner"], name("alice"))
        self.ok("alice", "get", "jobs")
        token, = self.tokens()
        self.assertEqual((token["user"], token["madeBy"]), (name("alice"), "munge"))
        span = [time.mktime(time.strptime(token[key], "%Y-%m-%dT%H:%M:%SZ")) for key in ("creationTimestamp", "expirationTimestamp")]
        self.assertEqual(span[1] - span[0], 3600)
        self.assertEqual(self.cache().stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.audited(1), [(name("alice"), 201)])

    def test_many_commands_at_once_log_in_once(self):
        self.home("alice")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda _: self.remote("alice", "get", "jobs"), range(16)))
        self.assertEqual({(one.returncode, one.stderr) for one in done}, {(0, "No jobs found in namespace default.\n")})
        self.assertEqual(len(self.tokens()), 1)

    def test_a_token_is_replaced_in_time_and_kept_if_it_cannot_be(self):
        self.ok("alice", "get", "jobs")
        cached = json.loads(self.cache().read_text())

        def aged(share):
            self.cache().write_text(json.dumps({**cached, "sinceMs": int(time.time() * 1000 - share * cached["lifeMs"])}))
        aged(0.6)
        self.ok("alice", "get", "jobs")
        self.assertEqual(len(self.tokens()), 1)
        aged(0.7)
        self.munged.process.terminate()
        self.munged.process.wait()
        self.ok("alice", "get", "jobs")
        self.munged.start()
        self.ok("alice", "get", "jobs")
        self.assertEqual(len(self.tokens()), 2)
        self.assertNotEqual(json.loads(self.cache().read_text())["bearer"], cached["bearer"])

    def test_a_token_that_was_revoked_is_replaced(self):
        self.ok("alice", "get", "jobs")
        self.assertEqual(self.ask("alice", "DELETE", f"{MINE}/tokens/{self.tokens()[0]['id']}")[0], 200)
        self.ok("alice", "get", "jobs")
        self.ask("alice", "DELETE", f"{MINE}/tokens/{self.tokens()[0]['id']}")
        credential = json.loads(self.ok("alice", "token", "credential"))["status"]
        self.assertEqual(self.https("GET", JOBS, credential["token"])[0], 200)
        self.assertEqual(credential["expirationTimestamp"], self.tokens()[0]["expirationTimestamp"])

    def test_a_cache_that_others_could_have_written_or_read_is_not_used(self):
        self.ok("alice", "get", "jobs")
        self.cache().chmod(0o644)
        self.ok("alice", "get", "jobs")
        self.assertEqual(len(self.tokens()), 2)
        self.assertEqual(self.cache().stat().st_mode & 0o777, 0o600)
        cache = self.cache()
        other = self.dir / "other.json"
        cache.rename(other)
        cache.symlink_to(other)
        self.ok("alice", "get", "jobs")
        self.assertEqual(len(self.tokens()), 3)
        self.assertFalse(cache.is_symlink())

    def test_kubectl_logs_in_by_itself(self):
        if shutil.which("kubectl") is None:
            self.skipTest("kubectl is not installed")
        config = self.home("alice") / "config"
        config.write_text(self.ok("alice", "kubeconfig"))
        self.assertEqual(self.tokens(), [], "written without a log-in")
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home("alice"))}
        for _ in range(3):
            who = subprocess.run(["kubectl", "--kubeconfig", config, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"],
                                 text=True, capture_output=True, timeout=60, preexec_fn=become("alice"), cwd="/", env=env)
            self.assertEqual((who.returncode, who.stdout), (0, name("alice")), who.stderr)
        self.assertEqual(len(self.tokens()), 1)

    def test_the_python_client_logs_in_by_itself(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import kubernetes"], capture_output=True).returncode:
            self.skipTest("python3-kubernetes is not installed")
        config = self.home("alice") / "config"
        config.write_text(self.ok("alice", "kubeconfig"))
        self.create("alice", sh_job("j", "true", 1, suspend=True))
        done = self.remote("alice", config, command=["/usr/bin/python3", "-c", LIST])
        self.assertEqual((done.returncode, done.stdout), (0, "j\n"), done.stderr)

    def test_token_file_precedes_munge(self):
        code, made = self.ask("bob", "POST", f"{MINE}/users/{name('bob')}/token", {})
        self.assertEqual(code, 201)
        folder = self.home("bob") / ".config/muster"
        folder.mkdir(parents=True)
        (folder / "token").write_text(made["text"])
        (folder / "token").chmod(0o600)
        for path in (folder.parent, folder, folder / "token"):
            shutil.chown(path, name("bob"))
        self.ok("bob", "get", "jobs")
        self.assertEqual([token["madeBy"] for token in self.tokens("bob")], [name("bob")])
        named = self.remote("alice", "get", "jobs", "--token-file", "/no/such/file")
        self.assertIn("no token at /no/such/file; create one on the coordinator's machine", named.stderr)

    def test_a_restarted_coordinator_takes_new_credentials(self):
        before = self.munged.encode(self.claim(), "alice")
        self.coordinator.kill()
        self.coordinator.wait()
        self.start_coordinator()
        self.refused(before, "it was made for another run of this coordinator")
        self.ok("alice", "get", "jobs")


class Attacks(Site):
    def test_no_credential_is_used_twice(self):
        credential = self.munged.encode(self.claim(), "alice")
        code, token = self.exchange(credential)
        self.assertEqual((code, token["user"]), (201, name("alice")))
        self.refused(credential, "Replayed credential")

    def test_replayed_credential_is_refused_after_munged_restart(self):
        credential = self.munged.encode(self.claim(), "alice")
        self.assertEqual(self.exchange(credential)[0], 201)
        self.munged.stop()
        self.munged.start()
        self.refused(credential, "it was used before")

    def test_credential_for_another_cluster_is_refused(self):
        self.refused(self.munged.encode(self.claim(cluster="0123456789abcdef"), "alice"), "it was made for cluster 0123456789abcdef")

    def test_credential_for_another_service_is_refused(self):
        self.refused(self.munged.encode("", "alice"), "its payload is not a muster claim")
        for payload in ("slurm", "muster", self.claim() + "0", self.claim() + " x", "\n" + self.claim()):
            code, status = self.exchange(self.munged.encode(payload, "alice"))
            self.assertEqual((code, status["message"]), (401, UNIFORM), payload)

    def test_credential_of_another_key_is_refused(self):
        self.refused(self.new_munged("munge2").encode(self.claim()), "Invalid credential")

    def test_expired_credential_is_refused(self):
        credential = self.munged.encode(self.claim(), "alice", "--ttl", 1)
        expired = ["unmunge", "-S", self.munged.socket]
        # Decoding the credential itself would use it up.
        probe = self.munged.encode("probe", "alice", "--ttl", 1)
        eventually(lambda: "Expired" in subprocess.run(expired, input=probe, text=True, capture_output=True).stdout, "expired")
        self.refused(credential, "Expired credential")

    def test_credential_for_another_reader_is_refused(self):
        self.refused(self.munged.encode(self.claim(), "alice", "--restrict-uid", name("bob")), "Unauthorized credential")

    def test_malformed_credentials_and_bodies_are_refused(self):
        for text in ("", "MUNGE:", "MUNGE::", "MUNGE:AwQDAAA=:", "x" * 4000, "\0", "MUNGE:" + "A" * 4000 + ":"):
            code, status = self.exchange(text)
            self.assertEqual((code, status["message"]), (401, UNIFORM), text)
        for body in ("", "{", "[]", '"MUNGE:"', "{}", '{"credential": 1}', '{"credential": "x", "uid": 0}'):
            self.assertEqual(self.https("POST", MUNGE, None, body)[0], 400, body)
        for size in (9_000, 5_000_000):
            self.assertEqual(self.exchange("x" * size)[0], 413)
        for method in ("PUT", "DELETE", "PATCH"):
            self.assertEqual(self.https(method, MUNGE, None, {})[0], 405)
        self.assertEqual(self.audited(0), [], "nobody is known, so nothing is audited")

    def test_users_without_role_are_refused(self):
        for user in (None, "daemon", "dave"):  # root, the coordinator's own user, and a user without a role
            code, status = self.exchange(self.munged.encode(self.claim(), user))
            self.assertEqual((code, status["reason"]), (403, "Forbidden"), user)
        unknown = subprocess.run(["setpriv", "--reuid", "54321", "--clear-groups", "--regid", "54321", "munge", "-S", self.munged.socket,
                                  "-s", self.claim()], text=True, capture_output=True, check=True).stdout.strip()
        self.assertEqual(self.exchange(unknown)[0], 403)
        self.assertEqual(self.audited(4), [("root", 403), (name("daemon"), 403), (name("dave"), 403), ("54321", 403)])
        done = self.remote("dave", "get", "jobs")
        self.assertIn(f"user {name('dave')} has no role here", done.stderr)

    def test_munge_token_cannot_create_tokens(self):
        for user in ("alice", "olga"):
            bearer = json.loads(self.ok(user, "token", "credential"))["status"]["token"]
            for path in (f"users/{name(user)}/token", f"users/{name('bob')}/token", "nodes/c01/token"):
                self.assertEqual(self.https("POST", f"{MINE}/{path}", bearer, {})[0], 403, path)
            self.assertEqual(self.https("GET", MUNGE, bearer)[0], 403)

    def test_a_wrong_authority_gets_no_credential(self):
        other = self.dir / "other"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "/dev/null", "-out", other, "-subj", "/CN=x"],
                       check=True, capture_output=True)
        other.chmod(0o644)
        done = self.remote("alice", "get", "jobs", "--ca-file", other)
        self.assertEqual(done.returncode, 4)
        self.assertIn("its certificate was not issued by this cluster's authority", done.stderr)
        self.assertEqual(self.tokens(), [])


class Trouble(Site):
    def test_hanging_munged_delays_no_other_requests(self):
        bearer = json.loads(self.ok("alice", "token", "credential"))["status"]["token"]
        credentials = [self.munged.encode(self.claim(), "bob") for _ in range(8)]
        self.munged.process.send_signal(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(self.exchange, credential) for credential in credentials]
            slowest = 0
            while not all(one.done() for one in waiting):
                begin = time.monotonic()
                self.assertEqual(self.https("GET", JOBS, bearer)[0], 200)
                slowest = max(slowest, time.monotonic() - begin)
        self.assertLess(slowest, 4, "less than it takes to give up on munge")
        self.assertEqual({one.result()[0] for one in waiting}, {503})
        self.assertIn("munge logins fail: munged is not responding", self.log())
        self.munged.process.send_signal(signal.SIGCONT)
        eventually(lambda: self.exchange(self.munged.encode(self.claim(), "bob"))[0] == 201, "munge is back", 30)

    def test_hanging_munged_does_not_delay_shutdown(self):
        credential = self.munged.encode(self.claim(), "bob")
        self.munged.process.send_signal(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.exchange, credential)
            # Besides the listening socket, there is one for the coordinator's connection.
            eventually(lambda: pathlib.Path("/proc/net/unix").read_text().count(str(self.munged.socket)) > 1, "it waits for munged")
            self.coordinator.terminate()
            self.assertEqual(self.coordinator.wait(5), 0)
            with contextlib.suppress(OSError, http.client.HTTPException):
                waiting.result()

    def test_missing_munged_is_reported(self):
        self.ok("alice", "get", "jobs")
        credential = self.munged.encode(self.claim(), "bob")
        self.munged.stop()
        code, status = self.exchange(credential)
        self.assertEqual((code, status["message"]), (503, "munged on the coordinator's machine is not responding"))
        self.ok("alice", "get", "jobs")  # with the token that she already has
        done = self.remote("bob", "get", "jobs")
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, "cannot log in with munge: .*munge/socket.*")
        self.munged.start()
        self.ok("bob", "get", "jobs")


class Off(Site):
    def start_coordinator(self):
        super().start_coordinator()
        self.coordinator.kill()
        self.coordinator.wait()
        self.FLAGS = ("--api-tls", "127.0.0.1:0")
        Served.start_coordinator(self)
        self.url = f"https://{self.ends['apiTls']}"

    def test_munge_login_is_off_by_default(self):
        credential = self.munged.encode("muster 0 0 " + "0" * 32, "alice")
        for method, body in (("GET", None), ("POST", {"credential": credential})):
            self.assertEqual(self.https(method, MUNGE, None, body)[0], 401)
        done = self.remote("alice", "get", "jobs")
        self.assertEqual(done.returncode, 5)
        self.assertIn("does not accept munge logins", done.stderr)

    def test_invalid_munge_settings_are_refused(self):
        for flags, words in ((("--munge", "--users", "x"), "it needs --api-tls and"), (("--munge", "--api-tls", "127.0.0.1:0"), "and --users"),
                             (("--munge-token-life", "59s"), "--munge-token-life: must be 1m to 12h"),
                             (("--munge-token-life", "13h"), "--munge-token-life: must be 1m to 12h")):
            done = subprocess.run([self.muster, "coordinator", "--data-dir", self.dir / "d", *flags], text=True, capture_output=True, timeout=60)
            self.assertNotEqual(done.returncode, 0, flags)
            self.assertIn(words, done.stderr, flags)
        done = self.remote("alice", "get", "jobs", "--ca-file", "/etc/hostname")
        self.assertIn("/etc/hostname: it is not a certificate in PEM", done.stderr)
        done = self.remote("alice", "get", "jobs", "--ca-file", "/no/such/file")
        self.assertIn("To log in by munge, put the certificate of the cluster's authority at /no/such/file or use --ca-file", done.stderr)


# Lists jobs with an unmodified client; argv: a kubeconfig.
LIST = """
import sys
import kubernetes
kubernetes.config.load_kube_config(sys.argv[1])
print(*(job.metadata.name for job in kubernetes.client.BatchV1Api().list_namespaced_job("default").items))
"""


if __name__ == "__main__":
    if os.geteuid() != 0 or not shutil.which("useradd") or not os.path.exists(MUNGED):
        print("munge.py: skipped: only root can make the users that it needs, and it needs munged")
        sys.exit(0)
    unittest.main(verbosity=2, warnings="ignore")
