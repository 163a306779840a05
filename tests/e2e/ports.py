#!/usr/bin/python3
"""A coordinator's two ports against other users, web pages and a shortage of descriptors.

    MUSTER=build/release/muster tests/e2e/ports.py [TEST…]
"""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import Cluster, World, eventually, finished, sh_job  # noqa: E402

NOBODY = 65534
TRIES = 300
LOW = 160  # descriptors

# Creates jobs, each on a connection that is closed at once.
HIT_AND_RUN = """
import json, os, socket, sys
host, port, tries, uid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
if uid:
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
for i in range(tries):
    body = json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"taken-{i}"}, "spec": {"suspend": True,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none", "command": ["id"]}]}}}})
    with socket.create_connection((host, port)) as s:
        s.sendall((f"POST /apis/batch/v1/namespaces/default/jobs HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n"
                   f"Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}").encode())
"""


def split(address):
    host, _, port = address.rpartition(":")
    return host, int(port)


def ask(address, text, half_close=False, timeout=10):
    """Sends `text`; returns everything received until the peer closes or goes silent after a complete answer."""
    with socket.create_connection(split(address), timeout=timeout) as s:
        s.sendall(text.encode())
        if half_close:
            s.shutdown(socket.SHUT_WR)
        raw = b""
        with contextlib.suppress(ConnectionResetError):
            while part := s.recv(65536):
                raw += part
                head, whole, body = raw.partition(b"\r\n\r\n")
                length = re.search(rb"Content-Length: (\d+)", head)
                if whole and (len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n")):
                    break
        return raw.decode(errors="replace")


def code(answer):
    found = re.match(r"HTTP/1.1 (\d+) ", answer)
    return int(found[1]) if found else None


class Users(World):
    def test_p01_a_user_who_closes_at_once_is_not_root(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to be somebody else")
        cluster = self.cluster(agents=0)
        host, port = split(cluster.api_addr)
        # All connections have closed before the coordinator sees the first one.
        os.kill(cluster.coord.pid, signal.SIGSTOP)
        try:
            subprocess.run([sys.executable, "-c", HIT_AND_RUN, host, str(port), str(TRIES), str(NOBODY)], check=True, timeout=60)
        finally:
            os.kill(cluster.coord.pid, signal.SIGCONT)
        # Once a later request is answered, everything queued before it has been handled.
        self.assertEqual(cluster.api.call("GET", "/healthz")[0], 200)
        jobs = cluster.api.call("GET", cluster.api.jobs())[1]["items"]
        self.assertEqual(len(jobs), 0, f"of {TRIES} jobs of another user so many were accepted")
        log = cluster.log("coordinator")
        self.assertIn("refused a connection to the API", log)
        self.assertLess(log.count("refused a connection"), 10, "it is logged at a rate")

    def test_p01_another_user_cannot_register_an_agent(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to be somebody else")
        cluster = self.cluster(agents=0)
        host, port = split(cluster.listen)
        waits = ("import os, socket, sys\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
                 "s = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20)\n"
                 "sys.exit(0 if s.recv(1) == b'' else 1)")
        subprocess.run([sys.executable, "-c", waits, host, str(port)], check=True, timeout=60)
        self.assertIn("rejected a connection to the agents' port: it belongs to uid 65534", cluster.log("coordinator"))

    def test_p01_a_half_closed_client_is_served(self):
        cluster = self.cluster(agents=0)
        body = json.dumps(sh_job("half", "true", 1, suspend=True))
        answer = ask(cluster.api_addr, f"POST {cluster.api.jobs()} HTTP/1.1\r\nHost: {cluster.api_addr}\r\n"
                     f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}", half_close=True)
        self.assertEqual(code(answer), 201, answer)


# Holds ports as another user; prints what arrives on them, a line per connection, until it is killed.
SQUAT = """
import os, select, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
ports = []
for address in sys.argv[1:]:
    host, _, port = address.rpartition(":")
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((host, int(port))); s.listen(16)
    ports.append(s)
print("holds", flush=True)
while True:
    for s in select.select(ports, [], [])[0]:
        c, _ = s.accept()
        c.settimeout(5)
        try:
            print("got", c.recv(4096), flush=True)
        except OSError as e:
            print("got", e, flush=True)
        c.close()
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root to be somebody else")
class Squatters(World):
    """Another user holds the coordinator's ports while it is away."""

    def squat(self, *addresses):
        squatter = subprocess.Popen(["/usr/bin/python3", "-c", SQUAT, *addresses], stdout=subprocess.PIPE, text=True)
        self.addCleanup(squatter.stdout.close)
        self.addCleanup(squatter.wait)
        self.addCleanup(squatter.kill)
        self.assertEqual(squatter.stdout.readline(), "holds\n")
        return squatter

    def muster(self, *args, **more):
        return subprocess.run([os.environ["MUSTER"], *map(str, args)], capture_output=True, text=True, timeout=60, **more)

    def test_p01_agent_and_client_refuse_a_port_squatter(self):
        cluster = self.cluster(agents=1)
        self.assertEqual(cluster.api.create(sh_job("before", "true", 1))[0], 201)
        cluster.wait("before")
        cluster.kill_coordinator()
        squatter = self.squat(cluster.api_addr, cluster.listen)
        said = f"{cluster.listen} is served by nobody (uid 65534)"
        eventually(lambda: said in cluster.log("node-0"), "the agent says who holds the port")
        manifest = json.dumps(sh_job("secret", "true", 1))
        for verb, *rest in (["create", "-f", "-"], ["get", "jobs"], ["submit", "-n", "1", "--", "true"]):
            ran = self.muster(verb, "--api", cluster.api_addr, *rest, input=manifest if verb == "create" else "")
            self.assertEqual(ran.returncode, 4, ran)
            self.assertIn(f"{cluster.api_addr} is served by nobody (uid 65534)", ran.stderr)
            self.assertEqual(ran.stdout, "")
        squatter.kill()
        self.assertEqual({line for line in squatter.stdout.read().splitlines()}, {"got b''"}, "nothing was sent")
        cluster.start_coordinator()
        cluster.wait_nodes()
        self.assertEqual(cluster.api.create(sh_job("after", "true", 1))[0], 201)
        cluster.wait("after")

    def test_p01_a_coordinator_says_who_holds_its_port(self):
        cluster = self.cluster(agents=0)
        cluster.kill_coordinator()
        self.squat(cluster.api_addr)
        ran = self.muster("coordinator", "--data-dir", cluster.dir / "other", "--api", cluster.api_addr, "--listen", "127.0.0.1:0")
        self.assertEqual(ran.returncode, 4, ran)
        self.assertIn("stop the process of nobody (uid 65534) that listens there", ran.stderr)

    def test_p01_coordinator_user_flag_trusts_that_user(self):
        cluster = self.cluster(agents=0)
        cluster.kill_coordinator()
        self.squat(cluster.api_addr)
        ran = self.muster("get", "jobs", "--api", cluster.api_addr, "--coordinator-user", "nobody", "--request-timeout", "2s")
        self.assertNotIn("is served by", ran.stderr)

    def test_p01_an_agent_does_not_obey_another_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = self.muster("agent", "--coordinator", "203.0.113.1:7118", "--work-dir", f"{folder}/work")
        self.assertEqual(ran.returncode, 5, ran)
        self.assertIn("--coordinator 203.0.113.1:7118: it is on another machine, where only TLS proves who answers; use --token-file", ran.stderr)


class Descriptors(World):
    def hold(self, address, count):
        """Opens up to `count` silent connections."""
        held = []
        self.addCleanup(lambda: [s.close() for s in held])
        for _ in range(count):
            s = socket.socket()
            s.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                s.connect(split(address))
            held.append(s)
        return held

    def lives(self, cluster, what):
        self.assertIsNone(cluster.coord.poll(), f"{what}: the coordinator has ended: {cluster.log('coordinator')[-800:]}")

    def test_p06_coordinator_recovers_from_running_out_of_descriptors(self):
        # The limit falls below the number of open descriptors at run time, so no budget helps and accept() fails.
        cluster = self.cluster(agents=0)
        hard = resource.prlimit(cluster.coord.pid, resource.RLIMIT_NOFILE)[1]
        self.assertEqual(cluster.api.call("GET", "/healthz")[0], 200)
        in_use = 1 + max(int(fd) for fd in os.listdir(f"/proc/{cluster.coord.pid}/fd"))
        resource.prlimit(cluster.coord.pid, resource.RLIMIT_NOFILE, (in_use, hard))
        for address in (cluster.api_addr, cluster.listen):
            self.hold(address, 20)
        for port in ("the API", "the agents' port"):
            eventually(lambda port=port: f"{port}: cannot accept a connection" in cluster.log("coordinator"), f"{port} says so")
        self.lives(cluster, "without descriptors")
        resource.prlimit(cluster.coord.pid, resource.RLIMIT_NOFILE, (hard, hard))
        cluster.start_agent("node-0")
        cluster.wait_nodes()
        self.assertEqual(cluster.api.create(sh_job("after", "true", 2))[0], 201)
        cluster.wait("after", finished)
        self.assertNotRegex(cluster.log("coordinator"), "refused|rejected", "nobody was called a stranger")

    def test_p06_connections_are_bounded_and_the_idle_make_room(self):
        cluster = self.cluster(agents=0, kind=Low)
        # Fill both ports with silent connections.
        for address in (cluster.api_addr, cluster.listen):
            self.hold(address, 2 * LOW)
        cluster.start_agent("node-0")
        cluster.wait_nodes()
        self.assertEqual(cluster.api.create(sh_job("among", "true", 2))[0], 201)
        cluster.wait("among", finished)
        in_use = len(os.listdir(f"/proc/{cluster.coord.pid}/fd"))
        self.assertLess(in_use, LOW - 20, "a part is kept for the disk")
        self.lives(cluster, "with full ports")

    def test_p06_watches_exhaust_only_the_api_port(self):
        cluster = self.cluster(agents=1, kind=Low)
        watch = f"GET {cluster.api.jobs()}?watch=true HTTP/1.1\r\nHost: {cluster.api_addr}\r\n\r\n"
        held = self.hold(cluster.api_addr, LOW)
        standing = 0
        for s in held:
            s.settimeout(20)
            with contextlib.suppress(OSError):  # already closed, to make room
                s.sendall(watch.encode())
                standing += s.recv(4096).startswith(b"HTTP/1.1 200")
        self.assertGreater(standing, 10)
        answer = eventually(lambda: (a := ask(cluster.api_addr, f"GET /healthz HTTP/1.1\r\nHost: {cluster.api_addr}\r\n\r\n"))
                            and code(a) == 503 and a, "one more is turned away")
        self.assertIn("already, the maximum", answer)
        self.lives(cluster, "with watches only")
        for s in held:
            s.close()
        eventually(lambda: cluster.api.create(sh_job("after", "true", 2))[0] == 201, "it serves again")
        cluster.wait("after", finished)


class Low(Cluster):
    """A cluster whose coordinator may open only a few files."""

    def _spawn(self, name, args):
        if name != "coordinator":
            return super()._spawn(name, args)
        binary, self.bin = self.bin, "prlimit"  # prlimit executes the coordinator
        try:
            return super()._spawn(name, [f"--nofile={LOW}:{LOW}", binary, *args])
        finally:
            self.bin = binary


class WebPages(World):
    def get(self, cluster, path, host=None, **headers):
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        return ask(cluster.api_addr, f"GET {path} HTTP/1.1\r\nHost: {host or cluster.api_addr}\r\n{lines}\r\n")

    def test_p09_hosts_and_origins_are_checked_with_insecure(self):
        cluster = self.cluster(agents=0, extra=["--insecure", "--api-host", "Muster.example"])
        jobs, port = cluster.api.jobs(), split(cluster.api_addr)[1]
        for host in (cluster.api_addr, f"localhost:{port}", f"10.1.2.3:{port}", f"{socket.gethostname()}:{port}", "muster.example"):
            self.assertEqual(code(self.get(cluster, jobs, host)), 200, host)
        for host in (f"evil.example:{port}", f"{socket.gethostname()}.evil.example", "localhost:evil"):
            self.assertEqual(code(self.get(cluster, jobs, host)), 403, host)
        self.assertEqual(code(self.get(cluster, jobs, Origin="http://evil.example")), 403)
        self.assertEqual(code(self.get(cluster, jobs, Origin=f"http://{cluster.api_addr}")), 200)
        self.assertEqual(code(self.get(cluster, jobs, Sec_Fetch_Site="cross-site")), 403)

    def test_p09_a_malformed_chunk_is_a_bad_request(self):
        cluster = self.cluster(agents=0)
        head = (f"POST {cluster.api.jobs()} HTTP/1.1\r\nHost: {cluster.api_addr}\r\nContent-Type: application/json\r\n"
                "Transfer-Encoding: chunked\r\n\r\n")
        for body in ("-1\r\n{}\r\n0\r\n\r\n", "5;x=y\r\n{}\r\n0\r\n\r\n", "0x2\r\n{}\r\n0\r\n\r\n"):
            answer = ask(cluster.api_addr, head + body)
            self.assertEqual(code(answer), 400, answer)
            self.assertIn("X-Content-Type-Options: nosniff", answer)
        self.assertIsNone(cluster.coord.poll())

    def test_p09_the_pages_policy_names_its_script(self):
        cluster = self.cluster(agents=0)
        head, _, page = self.get(cluster, "/").partition("\r\n\r\n")
        script = page.split("<script>", 1)[1].split("</script>", 1)[0]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        self.assertIn(f"script-src 'sha256-{digest}';", head)


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
