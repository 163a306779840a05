#!/usr/bin/python3
"""Links between machines: agents that join by token, clients that log in by token, and attempts without a token.

    MUSTER=build/release/muster tests/e2e/links.py [TEST…]

The machines are loopback addresses; TwoMachines, when run by root, has two network namespaces instead.
"""
import contextlib
import getpass
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import eventually, sh_job, start_daemon  # noqa: E402

MUSTER = os.environ["MUSTER"]
JOBS = "/apis/batch/v1/namespaces/default/jobs"
MINE = "/apis/muster.dev/v1"


class Site(unittest.TestCase):
    """A coordinator that serves other machines, and ways to act as one."""
    FLAGS = ()
    HOST = "127.0.0.1"
    PREFIX = ()  # of commands that run on the coordinator's machine

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-links-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.home = self.dir / "home"
        self.home.mkdir()
        self.daemons = []
        self.addCleanup(self.stop)
        self.start_coordinator()

    def start_coordinator(self, *flags):
        (self.dir / "data/endpoints.json").unlink(missing_ok=True)
        self.coordinator = self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                                       "--api-tls", f"{self.HOST}:0", "--listen-tls", f"{self.HOST}:0", *self.FLAGS, *flags,
                                       prefix=self.PREFIX)
        self.ends = eventually(lambda: json.loads((self.dir / "data/endpoints.json").read_text()), "endpoints")
        eventually(lambda: self.muster("get", "nodes").returncode == 0, "ready")

    def daemon(self, *args, prefix=()):
        self.daemons.append(start_daemon([*prefix, MUSTER, *args], self.dir))
        return self.daemons[-1]

    def stop(self):
        for process in self.daemons:
            process.kill()
            process.wait()
        subprocess.run(["pkill", "-KILL", "-f", f"muster-keeper {self.dir}"], check=False)

    def log(self, of):
        return (self.dir / f"{of}.log").read_text()

    def muster(self, *args, api=None, prefix=None):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.home)}
        return subprocess.run([*(self.PREFIX if prefix is None else prefix), MUSTER, *map(str, args), "--api", api or self.ends["api"]],
                              text=True, capture_output=True, timeout=60, env=env)

    def ok(self, *args, **more):
        done = self.muster(*args, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def token(self, *args):
        path = self.dir / f"token{len(list(self.dir.glob('token*')))}"
        self.ok("token", "create", *args, "--out", path)
        return path

    def agent(self, name, *flags, prefix=()):
        return self.daemon("agent", "--coordinator", self.ends["listenTls"], "--name", name, "--work-dir", self.dir / name, *flags,
                           prefix=prefix)

    def ready(self, name):
        return any(line.split()[:2] == [name, "Ready"] for line in self.ok("get", "nodes").splitlines())

    def joined(self, name, **more):
        process = self.agent(name, "--token-file", self.token("--node", name), **more)
        eventually(lambda: self.ready(name), f"{name} ready")
        return process

    def subject(self, name):
        shown = subprocess.run(["openssl", "x509", "-noout", "-subject", "-serial", "-in", self.dir / name / "credentials.pem"],
                               text=True, capture_output=True, check=True)
        return shown.stdout

    def https(self, method, path, bearer=None, body=None, context=None):
        if context is None:
            context = ssl.create_default_context(cafile=self.dir / "data/ca.pem")
        connection = http.client.HTTPSConnection(self.ends["apiTls"], context=context, timeout=20)
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read().decode()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text


class Nodes(Site):
    def test_an_agent_joins_with_a_token_and_comes_back_without(self):
        agent = self.joined("c01")
        self.ok("run", "-n", "3", "--", "sh", "-c", "echo $JOB_COMPLETION_INDEX")
        self.assertIn("CN = node:c01\n", self.subject("c01"))
        self.assertEqual((self.dir / "c01/credentials.pem").stat().st_mode & 0o777, 0o600)
        agent.kill()
        agent.wait()
        before = self.log("agent").count("registered with")
        self.agent("c01")
        eventually(lambda: self.log("agent").count("registered with") > before, "back")
        self.assertEqual(self.log("agent").count("got a certificate"), 1)

    def test_a_coordinator_that_was_killed_knows_its_nodes_and_tokens(self):
        self.joined("c01")
        token = self.token()
        self.coordinator.kill()
        self.coordinator.wait()
        listen = self.ends["listenTls"]
        (self.dir / "data/endpoints.json").unlink()
        self.coordinator = self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", self.ends["api"], "--listen", "127.0.0.1:0",
                                       "--api-tls", "127.0.0.1:0", "--listen-tls", listen)
        self.ends = eventually(lambda: json.loads((self.dir / "data/endpoints.json").read_text()), "endpoints")
        eventually(lambda: self.ready("c01"), "c01 is back")
        self.assertEqual(self.https("GET", JOBS, token.read_text().splitlines()[0])[0], 200)
        self.assertIn("node/c01", self.ok("token", "list"))

    def test_a_token_is_good_for_one_agent(self):
        token = self.token("--node", "c01")
        self.agent("c01", "--token-file", token)
        eventually(lambda: self.ready("c01"), "c01 ready")
        thief = self.daemon("agent", "--coordinator", self.ends["listenTls"], "--name", "c01", "--work-dir", self.dir / "thief",
                            "--token-file", token)
        self.assertEqual(thief.wait(20), 5)
        self.assertIn("its join token has been used", self.log("agent"))
        self.assertFalse((self.dir / "thief/credentials.pem").exists())
        self.assertTrue(self.ready("c01"))

    def test_a_token_is_of_one_node(self):
        other = self.agent("c02", "--token-file", self.token("--node", "c01"))
        self.assertEqual(other.wait(20), 5)
        self.assertIn("it is for node c01, but this is node c02", self.log("agent"))

    def test_nodes_of_a_pool_join_with_one_token(self):
        token = self.token("--pool", "hpc", "--uses", "2", "--label", "disk=*")

        def agent(rank, *flags, job=4711):
            return self.daemon("agent", "--coordinator", self.ends["listenTls"], "--work-dir", self.dir / f"w{rank}", "--token-file", token,
                               *flags, prefix=("env", f"SLURM_JOB_ID={job}", f"SLURM_PROCID={rank}"))
        first = agent(0, "--label", "disk=ssd")
        agent(1)
        eventually(lambda: self.ready("hpc-4711-0") and self.ready("hpc-4711-1"), "both ready")
        self.assertEqual(self.labels("hpc-4711-0"), {"disk": "ssd", "muster.dev/pool": "hpc"})
        self.assertIn("pool       hpc, with whose token it joined\n", self.ok("node", "claims", "hpc-4711-1"))
        self.assertRegex(self.ok("token", "list"), r"pool/hpc .* 2/2\n")
        self.assertEqual(agent(2).wait(20), 5)
        self.assertIn("its join token has already been used by 2 nodes, its limit", self.log("agent"))
        # A work-dir keeps its node, and its certificate, in the next job, too.
        first.kill()
        first.wait()
        before = self.log("agent").count("registered with")
        agent(0, job=4712)
        eventually(lambda: self.log("agent").count("registered with") > before, "back")
        self.assertTrue(self.ready("hpc-4711-0"))
        # Another name is not the pool's.
        self.assertEqual(self.agent("c01", "--token-file", token).wait(20), 5)
        self.assertIn("it is for nodes called hpc-..., but this is node c01", self.log("agent"))

    def test_revoked_join_token_is_refused(self):
        token = self.token("--node", "c01")
        self.ok("token", "revoke", self.ok("token", "list").splitlines()[1].split()[0])
        self.assertEqual(self.agent("c01", "--token-file", token).wait(20), 5)
        self.assertIn("its join token is unknown, or was revoked", self.log("agent"))

    def test_revoked_node_is_disconnected_and_returns_with_a_new_token(self):
        agent = self.joined("c01")
        self.assertEqual(self.ok("node", "revoke", "c01"), "node/c01 revoked\n")
        self.assertEqual(agent.wait(20), 5)
        self.assertIn("its certificate has been revoked", self.log("agent"))
        eventually(lambda: not self.ready("c01"), "c01 not ready")
        self.assertEqual(self.agent("c01").wait(20), 5, "the old certificate is of no use")
        self.joined("c01")
        self.assertRegex(self.subject("c01"), r"CN = node:c01:\d+\n")

    def labels(self, name):
        node = json.loads(self.ok("get", "node", name, "-o", "json"))
        return {key: value for key, value in node["metadata"]["labels"].items()
                if not key.startswith("kubernetes.io/") and key != "muster.dev/volumes"}

    def test_p06_a_node_has_the_labels_that_its_token_allows(self):
        agent = self.agent("c01", "--token-file", self.token("--node", "c01", "--label", "gpu=*", "--slots-max", "2"),
                           "--label", "gpu=a100", "--label", "site/secure=yes", "--slots", "5000")
        eventually(lambda: self.ready("c01"), "c01 ready")
        self.assertEqual(self.labels("c01"), {"gpu": "a100", "claimed.muster.dev/site.secure": "yes"})
        self.assertIn("node c01 claims 5000 slots, the label site/secure=yes, which it may not", self.log("coordinator"))
        self.assertIn("gpu=*", self.ok("node", "claims", "c01"))
        held = self.muster("submit", "--api", self.ends["api"], "-n", "1", "--node-selector", "site/secure=yes", "--name", "held", "--", "true")
        self.assertEqual(held.returncode, 0, held.stderr)
        self.assertEqual(self.muster("wait", "job/held", "--timeout", "1s").returncode, 124)
        # An operator decides: the running agent registers again, and the job that waits runs.
        self.assertIn("site/*", self.ok("node", "claims", "c01", "--label", "site/*", "--slots-max", "3"))
        self.ok("wait", "job/held", "--timeout", "30s")
        self.assertEqual(self.labels("c01"), {"claimed.muster.dev/gpu": "a100", "site/secure": "yes"})
        # Frozen, a node keeps what it has, whatever its agent says.
        frozen = self.ok("node", "claims", "c01", "--freeze")
        self.assertIn("site/secure=yes", frozen)
        self.assertIn("at most 3", frozen)
        agent.kill()
        agent.wait()
        self.agent("c01", "--label", "site/secure=no", "--label", "site/rack=r7")
        eventually(lambda: self.ready("c01") and "claimed.muster.dev/site.rack" in self.labels("c01"), "c01 is back")
        self.assertEqual(self.labels("c01"), {"claimed.muster.dev/site.rack": "r7", "claimed.muster.dev/site.secure": "no"})

    def test_p06_invalid_claims_are_refused(self):
        for args, wrong in ((("claims", "c01", "--label", "a b=x"), '--label: "a b=x" is not KEY=VALUE'),
                            (("claims", "c01", "--slots-max", "0"), "--slots-max: must be 1 to 1000000"),
                            (("claims", "c01", "--resource", "gpu"), "--resource: `gpu`: must be NAME=MAX"),
                            (("claims", "c01", "--freeze", "--label", "a=b"), "--freeze cannot be combined with"),
                            (("revoke", "c01", "--freeze"), "only for `muster node claims`")):
            done = self.muster("node", *args)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn(wrong, done.stderr)
        self.assertIn('nodes "c01" not found', self.muster("node", "claims", "c01").stderr)
        done = self.muster("token", "create", "--user", "root", "--label", "a=b")
        self.assertEqual(done.returncode, 2)
        self.assertIn("only for `--node NAME` and `--pool NAME`", done.stderr)

    def test_agent_without_a_token_is_rejected(self):
        agent = self.agent("c01")
        eventually(lambda: "rejected a connection to the agents' TLS port" in self.log("coordinator"), "rejected")
        self.assertIsNone(agent.poll())
        self.assertFalse(self.ready("c01"))

    def test_an_agent_that_has_a_certificate_never_speaks_without_tls(self):
        agent = self.joined("c01")
        agent.kill()
        agent.wait()
        eventually(lambda: not self.ready("c01"), "c01 not ready")
        # The port for agents on the coordinator's machine needs no certificate.
        self.daemon("agent", "--coordinator", self.ends["listen"], "--name", "c01", "--work-dir", self.dir / "c01")
        eventually(lambda: "no connection to " + self.ends["listen"] in self.log("agent"), "no downgrade")
        self.assertFalse(self.ready("c01"))

    def test_a_node_cannot_pose_as_the_coordinator(self):
        agent = self.joined("c01")
        agent.kill()
        agent.wait()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        stolen = self.dir / "c01/credentials.pem"
        fake = subprocess.Popen(["openssl", "s_server", "-accept", str(port), "-cert", stolen, "-key", stolen, "-quiet"],
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(fake.wait)
        self.addCleanup(fake.kill)
        self.daemon("agent", "--coordinator", f"127.0.0.1:{port}", "--name", "c02", "--work-dir", self.dir / "c02", "--token-file",
                    self.token("--node", "c02"))
        eventually(lambda: "its certificate is not the coordinator's" in self.log("agent"), "refused")
        self.assertNotIn("got a certificate for node c02", self.log("agent"))


class Liars(Site):
    """Nodes with valid certificates that claim to have seen a later state than the coordinator's."""

    def end(self, process):
        process.kill()
        process.wait()

    def again(self, *flags, wait=True):
        """Starts the coordinator again on the same ports."""
        ends = self.ends
        (self.dir / "data/endpoints.json").unlink(missing_ok=True)
        self.coordinator = self.daemon("coordinator", "--data-dir", self.dir / "data", "--api", ends["api"], "--listen", ends["listen"],
                                       "--api-tls", ends["apiTls"], "--listen-tls", ends["listenTls"], *flags)
        if wait:
            eventually(lambda: (self.dir / "data/endpoints.json").exists(), "endpoints")

    def identity(self, name):
        lines = (self.dir / name / "identity").read_text().splitlines()
        return dict(line.split(" ", 1) for line in lines)

    def forge(self, name, changes):
        (self.dir / name / "identity").write_text("".join(f"{key} {value}\n" for key, value in {**self.identity(name), **changes}.items()))

    def test_p02_unsealed_history_does_not_stop_the_coordinator(self):
        agent = self.joined("c01")
        eventually(lambda: "sealed" in self.identity("c01"), "what its coordinator told it is on disk")
        self.end(agent)
        honest = self.identity("c01")
        epoch, nonce, commit, seal = honest["sealed"].split()
        self.assertEqual((int(epoch), int(nonce)), (int(honest["epoch"]), int(honest["nonce"])))
        later = {"epoch": "99", "nonce": "7"}
        for changes in (later, {**later, "sealed": f"99 7 {commit} {seal}"}, {**later, "sealed": f"99 7 {commit} {'0' * 64}"},
                        {**later, "sealed": "99 7 1"}, {"nonce": "7", "sealed": f"{epoch} 7 {commit} {seal}"}):
            self.forge("c01", {**honest, **changes})
            (self.dir / "agent.log").unlink()
            self.assertEqual(self.agent("c01").wait(20), 5, changes)
            self.assertIn("has no seal of a coordinator of this cluster that proves it", self.log("agent"), changes)
            self.assertIsNone(self.coordinator.poll(), changes)
        self.forge("c01", honest)
        (self.dir / "c01/commit").write_text("99999999999999999999\n")
        self.assertEqual(self.agent("c01").wait(20), 5)
        self.assertIsNone(self.coordinator.poll())
        self.assertIn("rejecting it, because it cannot prove this by a coordinator's seal", self.log("coordinator"))
        # A restarting coordinator is not stopped either, and still accepts other nodes.
        self.end(self.coordinator)
        liar = self.daemon("agent", "--coordinator", self.ends["listenTls"], "--name", "c01", "--work-dir", self.dir / "c01")
        self.again()
        self.assertEqual(liar.wait(30), 5)
        self.joined("c02")
        self.assertIsNone(self.coordinator.poll())

    def test_p02_sealed_history_stops_an_older_copy(self):
        agent = self.joined("c01")
        self.end(self.coordinator)
        shutil.copytree(self.dir / "data", self.dir / "copy")
        before = self.log("agent").count("registered with")
        self.again()
        eventually(lambda: self.log("agent").count("registered with") > before, "c01 is back")
        self.end(agent)
        self.end(self.coordinator)
        shutil.rmtree(self.dir / "data")
        shutil.copytree(self.dir / "copy", self.dir / "data")
        self.agent("c01")
        self.again(wait=False)
        self.assertNotEqual(self.coordinator.wait(30), 0)
        self.assertIn("the data-dir is an older or diverged copy", self.log("coordinator"))


class ShortLives(Site):
    FLAGS = ("--certificate-life", "3s")

    def test_a_certificate_is_renewed_in_time(self):
        self.joined("c01")
        before = self.subject("c01")
        eventually(lambda: self.subject("c01") != before, "renewed")
        self.assertTrue(self.ready("c01"))

    def test_p24_a_renewal_costs_no_connection(self):
        self.joined("c01")
        eventually(lambda: self.log("coordinator").count("signed a certificate for node:c01") >= 5, "renewed again and again")
        self.assertEqual(self.log("agent").count("registered with"), 1)
        self.assertNotIn("has expired", self.log("coordinator"))
        self.assertTrue(self.ready("c01"))

    def test_expired_certificate_is_refused(self):
        agent = self.joined("c01")
        agent.kill()
        agent.wait()
        expired = ["openssl", "x509", "-noout", "-checkend", "0", "-in", self.dir / "c01/credentials.pem"]
        eventually(lambda: subprocess.run(expired, capture_output=True).returncode, "expired")
        registered = self.log("agent").count("registered with")
        late = self.agent("c01")
        eventually(lambda: "or has expired" in self.log("coordinator"), "refused")
        self.assertEqual(self.log("agent").count("registered with"), registered)
        late.kill()
        late.wait()
        self.joined("c01")


class Clients(Site):
    def test_user_token_authenticates(self):
        bearer = self.token().read_text().splitlines()[0]
        self.assertEqual(self.https("GET", JOBS, bearer)[0], 200)
        self.assertEqual(self.https("POST", JOBS, bearer, sh_job("one", "true", 1))[0], 201)
        for wrong in (None, "", "x", bearer[:-1] + ("0" if bearer[-1] != "0" else "1"), bearer + "0", "0" * 16 + "." + "0" * 64):
            code, status = self.https("GET", JOBS, wrong)
            self.assertEqual((code, status["reason"]), (401, "Unauthorized"), wrong)

    def test_only_health_is_served_without_a_token(self):
        self.assertEqual(self.https("GET", "/healthz"), (200, "ok"))
        code, page = self.https("GET", "/")
        self.assertEqual((code, "<title>" in page), (200, True), "the page is the same for everybody")
        for path in ("/version", "/metrics", "/openapi/v2", "/api", JOBS, f"{MINE}/links", f"{MINE}/tokens"):
            self.assertEqual(self.https("GET", path)[0], 401, path)
        for path in (JOBS, f"{MINE}/users/root/token", f"{MINE}/nodes/c01/token", f"{MINE}/nodes/c01/revocation"):
            self.assertEqual(self.https("POST", path, None, {})[0], 401, path)

    def test_a_link_logs_the_page_in_once(self):
        def link(*args, **more):
            shown = self.ok("web", *args, **more)
            self.assertTrue(shown.startswith(f"https://{self.ends['apiTls']}/#login="), shown)
            return shown.strip().split("=")[1]
        code = link()
        for wrong in ("", "0" * 64, code[:-1], code + "0"):
            self.assertIn(self.https("POST", f"{MINE}/login", None, {"code": wrong})[0], (400, 401), wrong)
        status, token = self.https("POST", f"{MINE}/login", None, {"code": code})
        self.assertEqual((status, token["madeBy"]), (201, "muster web"))
        bearer = token["text"].splitlines()[0]
        self.assertEqual(self.https("GET", JOBS, bearer)[0], 200)
        self.assertEqual(self.https("POST", f"{MINE}/login", None, {"code": code})[0], 401, "it works once")
        # What a token asks for lives no longer than the token, and is for its user.
        path = self.token("--ttl", "2m")
        mine = path.read_text().splitlines()[0]
        status, made = self.https("POST", f"{MINE}/users/{getpass.getuser()}/token", mine, {"login": True})
        self.assertEqual(status, 201, made)
        status, short = self.https("POST", f"{MINE}/login", None, {"code": made["code"]})
        self.assertEqual(status, 201, short)
        own = next(one for one in self.https("GET", f"{MINE}/tokens", mine)[1]["items"] if one["id"] == mine.split(".")[0])
        self.assertLessEqual(short["expirationTimestamp"], own["expirationTimestamp"])
        self.assertEqual(self.https("POST", f"{MINE}/users/nobody/token", mine, {"login": True})[0], 403)
        self.assertEqual(self.https("POST", f"{MINE}/users/{getpass.getuser()}/token", mine, {})[0], 403, "no token by a token")
        status, made = self.https("POST", f"{MINE}/users/{getpass.getuser()}/token", mine, {"login": True})
        self.ok("token", "revoke", mine.split(".")[0])
        page = short["text"].splitlines()[0]
        eventually(lambda: self.https("GET", JOBS, page)[0] == 401, "its pages are logged out with it")
        self.assertEqual(self.https("POST", f"{MINE}/login", None, {"code": made["code"]})[0], 401, "and its links are void")
        for _ in range(10):
            self.ok("web")
        self.assertEqual(self.muster("web").returncode, 5, "at most ten unused ones")

    def test_revoked_user_token_is_refused(self):
        bearer = self.token().read_text().splitlines()[0]
        self.assertEqual(self.ok("token", "revoke", bearer.split(".")[0]), f"token/{bearer.split('.')[0]} revoked\n")
        self.assertEqual(self.https("GET", JOBS, bearer)[0], 401)
        again = self.muster("token", "revoke", bearer.split(".")[0])
        self.assertEqual(again.returncode, 3, again.stderr)

    def watching(self, bearer):
        """An open watch of jobs that has been seen to work."""
        connection = http.client.HTTPSConnection(self.ends["apiTls"], context=ssl.create_default_context(cafile=self.dir / "data/ca.pem"),
                                                 timeout=120)
        self.addCleanup(connection.close)
        connection.request("GET", JOBS + "?watch=1&timeoutSeconds=600", None, {"Authorization": f"Bearer {bearer}"})
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        name = f"seen-{bearer[:8]}"
        self.assertEqual(self.https("POST", JOBS, bearer, sh_job(name, "true", 1))[0], 201)
        while name not in response.readline().decode():
            pass
        return response

    def ended(self, watch):
        with contextlib.suppress(http.client.IncompleteRead):
            watch.read()

    def test_a_watch_ends_with_its_token(self):
        tokens = [self.token("--ttl", "1m").read_text().splitlines()[0] for _ in range(2)]
        revoked, expiring = self.watching(tokens[0]), self.watching(tokens[1])
        self.ok("token", "revoke", tokens[0].split(".")[0])
        started = time.monotonic()
        self.ended(revoked)
        self.assertLess(time.monotonic() - started, 30, "it ends by its token, not with its time or the test's minute")
        self.assertEqual(self.https("GET", JOBS, tokens[0])[0], 401)
        self.assertEqual(self.https("GET", JOBS, tokens[1])[0], 200, "the other one is still valid")
        self.ended(expiring)
        self.assertEqual(self.https("GET", JOBS, tokens[1])[0], 401, "it ended when its token expired")

    def test_only_tls_13_is_spoken(self):
        for version, works in ((ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_3, True)):
            context = ssl.create_default_context(cafile=self.dir / "data/ca.pem")
            context.minimum_version = context.maximum_version = version
            if works:
                self.assertEqual(self.https("GET", "/healthz", context=context)[0], 200)
            else:
                with self.assertRaises(OSError):
                    self.https("GET", "/healthz", context=context)
        plain = http.client.HTTPConnection(self.ends["apiTls"], timeout=20)
        with self.assertRaises((OSError, http.client.HTTPException)):
            plain.request("GET", "/healthz")
            plain.getresponse()

    def test_silent_connections_do_not_delay_others(self):
        host, port = self.ends["apiTls"].rsplit(":", 1)
        silent = [socket.create_connection((host, int(port))) for _ in range(50)]
        self.assertEqual(self.https("GET", "/healthz")[0], 200)
        for one in silent:
            one.close()

    def test_the_command_line_by_https(self):
        self.joined("c01")
        url = f"https://{self.ends['apiTls']}"
        without = self.muster("get", "nodes", api=url)
        self.assertEqual(without.returncode, 5)
        self.assertIn("no token at", without.stderr)
        self.ok("token", "create", "--out", self.home / ".config/muster/token")
        self.assertIn("c01", self.ok("get", "nodes", api=url))
        self.assertEqual(self.ok("run", "-n", "2", "--", "echo", "hello", api=url).count("hello"), 2)
        (self.home / ".config/muster/token").chmod(0o644)
        opened = self.muster("get", "nodes", api=url)
        self.assertIn("can be read by other users: chmod 600", opened.stderr)

    def test_p21_waiting_command_rereads_its_token_file(self):
        self.joined("c01")
        old, new = self.token(), self.token()
        bearer = old.read_text().split(".")[0]
        script = f"while [ ! -e {self.dir}/go ]; do sleep 0.05; done"
        (self.dir / "slow.json").write_text(json.dumps(sh_job("slow", script, 1)))
        self.ok("create", "-f", self.dir / "slow.json")
        waiting = subprocess.Popen([MUSTER, "wait", "job/slow", "--timeout", "60s", "--token-file", old, "--api", f"https://{self.ends['apiTls']}"],
                                   env={"PATH": "/usr/bin:/bin", "HOME": str(self.home)}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        eventually(lambda: any(pathlib.Path(f"/proc/{waiting.pid}/fd/{fd}").is_socket() for fd in os.listdir(f"/proc/{waiting.pid}/fd")), "connected")
        old.write_text(new.read_text())
        self.ok("token", "revoke", bearer)
        (self.dir / "go").touch()
        _, said = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 0, said)

    def test_another_clusters_coordinator_is_not_trusted(self):
        self.ok("token", "create", "--out", self.home / ".config/muster/token")
        token = (self.home / ".config/muster/token").read_text()
        self.coordinator.kill()
        self.coordinator.wait()
        shutil.rmtree(self.dir / "data")
        self.start_coordinator()
        done = self.muster("get", "nodes", api=f"https://{self.ends['apiTls']}")
        self.assertEqual(done.returncode, 4)
        self.assertIn("its certificate was not issued by this cluster's authority", done.stderr)
        self.assertIn("BEGIN CERTIFICATE", token)

    def test_kubectl_authenticates_by_exec_plugin(self):
        if shutil.which("kubectl") is None:
            self.skipTest("kubectl is not installed")
        self.ok("token", "create", "--out", self.home / ".config/muster/token")
        config = self.dir / "kubeconfig"
        config.write_text(self.ok("kubeconfig", api=f"https://{self.ends['apiTls']}"))
        done = subprocess.run(["kubectl", "--kubeconfig", config, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"],
                              text=True, capture_output=True, timeout=60, env={"PATH": "/usr/bin:/bin", "HOME": str(self.home)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout)

    def test_invalid_arguments_are_refused(self):
        for args, words in ((("token", "create", "--ttl", "1s"), "--ttl: must be 1m to 30d"),
                            (("token", "create", "--ttl", "31d"), "--ttl: must be 1m to 30d"),
                            (("token", "create", "--node", "c01", "--ttl", "8d"), "--ttl: must be 1m to 7d"),
                            (("token", "create", "--node", "C_01"), "the name of a node"),
                            (("token", "create", "--user", "no-such-user"), "unknown user no-such-user"),
                            (("token", "create", "--node", "a", "--user", "b"), "--node, --user, --coordinator and --pool are mutually exclusive"),
                            (("token", "create", "--pool", "hpc"), "--pool needs --uses N: how many nodes may join, 1 to 1000"),
                            (("token", "create", "--pool", "hpc", "--uses", "1001"), "1 to 1000"),
                            (("token", "create", "--pool", "H_C", "--uses", "1"), "the name of a pool"),
                            (("token", "create", "--uses", "1"), "--uses is only for `--pool NAME`"),
                            (("token", "revoke"), "revoke which token?"),
                            (("token", "list", "--ttl", "1h"), "are only for `muster token create`"),
                            (("node", "revoke", "C_01"), "the name of a node")):
            done = self.muster(*args)
            self.assertNotEqual(done.returncode, 0, args)
            self.assertIn(words, done.stderr, args)


class Metrics(Site):
    FLAGS = ("--metrics-listen", "127.0.0.1:0")

    def test_the_metrics_port_has_metrics_and_nothing_else(self):
        def get(path, method="GET"):
            connection = http.client.HTTPConnection(self.ends["metrics"], timeout=20)
            connection.request(method, path, headers={"Host": "scraper.site"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        self.assertIn("muster_", get("/metrics")[1])
        self.assertEqual(get("/healthz"), (200, "ok"))
        for path in ("/", "/version", "/api", "/openapi/v2", JOBS, f"{MINE}/tokens", f"{MINE}/links", "/api/v1/nodes"):
            self.assertEqual(get(path)[0], 403, path)
        for path in (JOBS, f"{MINE}/users/root/token", f"{MINE}/nodes/c01/token"):
            self.assertEqual(get(path, "POST")[0], 403, path)


class OneMachine(unittest.TestCase):
    def test_tokens_need_tls_listeners(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-links-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        process = subprocess.Popen([MUSTER, "coordinator", "--data-dir", folder / "d", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        ends = eventually(lambda: json.loads((folder / "d/endpoints.json").read_text()), "endpoints")
        done = subprocess.run([MUSTER, "token", "create", "--api", ends["api"]], text=True, capture_output=True, timeout=60)
        self.assertIn("start it with --api-tls or --listen-tls", done.stderr)
        self.assertFalse((folder / "d/ca.pem").exists())

    def test_other_addresses_need_tls(self):
        for flags, words in ((("--api", "0.0.0.0:0"), "Use --api-tls"), (("--listen", "0.0.0.0:0"), "Use --listen-tls"),
                             (("--api-tls", "7443"), "must be ADDRESS:PORT"), (("--listen-tls", "unix:/tmp/x"), "must be ADDRESS:PORT"),
                             (("--ca-cert", "/etc/hostname"), "belong together"),
                             (("--ca-cert", "/etc/hostname", "--ca-key", "/etc/hostname", "--api-tls", "127.0.0.1:0"),
                              "--ca-cert, --ca-key: the certificate is not in PEM format"),
                             (("--certificate-life", "0s"), "must be 1s to 3650d")):
            with tempfile.TemporaryDirectory(prefix="muster-links-") as folder:
                done = subprocess.run([MUSTER, "coordinator", "--data-dir", f"{folder}/d", *flags], text=True, capture_output=True, timeout=60)
                self.assertNotEqual(done.returncode, 0, flags)
                self.assertIn(words, done.stderr, flags)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and ip(8), to make network namespaces")
class TwoMachines(Site):
    """The coordinator's machine and a node's: two network namespaces connected by a wire."""
    HOST = "10.77.0.1"
    HEAD = f"muhead{os.getpid() % 10000}"
    NODE = f"munode{os.getpid() % 10000}"
    PREFIX = ("ip", "netns", "exec", HEAD)

    def setUp(self):
        def ip(*words):
            return subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
        try:
            ip("netns", "add", self.HEAD)
        except subprocess.CalledProcessError as error:
            self.skipTest(f"network namespaces cannot be made here: {error.stderr.strip()}")
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.HEAD], check=False)
        ip("netns", "add", self.NODE)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", self.NODE], check=False)
        ip("-n", self.HEAD, "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", self.NODE)
        for space, address in ((self.HEAD, "10.77.0.1/24"), (self.NODE, "10.77.0.2/24")):
            ip("-n", space, "address", "add", address, "dev", "wire")
            ip("-n", space, "link", "set", "wire", "up")
            ip("-n", space, "link", "set", "lo", "up")
        super().setUp()

    def test_second_machine_joins_and_runs_a_job(self):
        node = ("ip", "netns", "exec", self.NODE)
        token = self.token("--node", "c01")
        self.agent("c01", "--token-file", token, prefix=node)
        eventually(lambda: self.ready("c01"), "c01 ready")
        (self.home / ".config/muster").mkdir(parents=True)
        self.ok("token", "create", "--out", self.home / ".config/muster/token")
        url = f"https://{self.ends['apiTls']}"
        out = self.ok("run", "-n", "2", "--", "echo", "hello", api=url, prefix=node)
        self.assertEqual(out.count("hello"), 2)
        self.assertEqual(self.muster("get", "nodes", api=self.ends["api"], prefix=node).returncode, 4, "loopback is the head's own")


if __name__ == "__main__":
    unittest.main(verbosity=2)
