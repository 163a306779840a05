"""Drives a built muster from outside, through its public contract only. Standard library only.

MUSTER names the executable (default build/release/muster in the current folder). KEEP=1 leaves the temporary folders.
"""
import contextlib, http.client, json, os, pathlib, shutil, socket, subprocess, tempfile, threading, time
import urllib.parse


def muster_bin():
    for c in (os.environ.get("MUSTER"), "build/release/muster", "build/muster", "build/release/bin/muster"):
        if c and os.path.isfile(c) and os.access(c, os.X_OK):
            return os.path.abspath(c)
    raise SystemExit("no muster executable: set MUSTER or build first")


class Api:
    """Plain HTTP and JSON. GETs of one thread share a connection; everything else gets a fresh one, so nothing is ever sent twice."""

    def __init__(self, address):
        self.address = address
        self.base = f"http://{address}"
        self._kept = threading.local()

    def _once(self, conn, method, path, data, headers):
        conn.request(method, path, data, headers)
        r = conn.getresponse()
        return r.status, r.read()

    def call(self, method, path, body=None, ctype="application/json", timeout=10):
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        headers = {"Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = ctype
        try:
            kept = getattr(self._kept, "conn", None) if method == "GET" else None
            if kept is not None:
                try:
                    status, raw = self._once(kept, method, path, data, headers)
                except (OSError, http.client.HTTPException):  # the server closed an idle connection, or is gone
                    kept.close()
                    kept = self._kept.conn = None
            if kept is None:
                conn = http.client.HTTPConnection(self.address, timeout=timeout)
                try:
                    status, raw = self._once(conn, method, path, data, headers)
                except BaseException:
                    conn.close()
                    raise
                if method == "GET":
                    self._kept.conn = conn
                else:
                    conn.close()
        except http.client.HTTPException as e:
            raise ConnectionError(f"{method} {path}: {type(e).__name__} {e}") from e
        if raw[:1] in (b"{", b"["):
            with contextlib.suppress(ValueError):
                return status, json.loads(raw)
        return status, raw.decode(errors="replace")

    def jobs(self, ns="default"):
        return f"/apis/batch/v1/namespaces/{ns}/jobs"

    def pods_path(self, ns="default"):
        return f"/api/v1/namespaces/{ns}/pods"

    def create(self, job, query=""):
        return self.call("POST", self.jobs() + query, job)

    def job(self, name):
        code, obj = self.call("GET", f"{self.jobs()}/{name}")
        if code != 200:
            raise AssertionError(f"GET job {name}: {code} {obj}")
        return obj

    def patch(self, name, patch, sub=""):
        return self.call("PATCH", f"{self.jobs()}/{name}{sub}", patch, "application/merge-patch+json")

    def delete(self, name, propagation="Background"):
        return self.call("DELETE", f"{self.jobs()}/{name}", {"propagationPolicy": propagation})

    def pods(self, selector=None):
        q = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        code, obj = self.call("GET", self.pods_path() + q)
        if code != 200 or not isinstance(obj, dict):
            raise AssertionError(f"GET pods: {code} {str(obj)[:200]}")
        return obj.get("items") or []

    def events(self, field_selector=None):
        q = f"?fieldSelector={urllib.parse.quote(field_selector)}" if field_selector else ""
        code, obj = self.call("GET", f"/api/v1/namespaces/default/events{q}")
        if code != 200 or not isinstance(obj, dict):
            raise AssertionError(f"GET events: {code} {str(obj)[:200]}")
        return obj.get("items") or []

    def metrics(self):
        out = {}
        code, text = self.call("GET", "/metrics")
        if code != 200:
            raise AssertionError(f"GET /metrics: {code}")
        for line in str(text).splitlines():
            if line and not line.startswith("#"):
                k, _, v = line.rpartition(" ")
                with contextlib.suppress(ValueError):
                    out[k] = float(v)
        return out

    def watch(self, path, query, stop, seconds=600):
        """Yields (type, object) until the server ends the watch or stop.is_set(). Raises OSError when the connection breaks."""
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as sock:
            sock.sendall(f"GET {path}?watch=true&timeoutSeconds={seconds}&{query} HTTP/1.1\r\nHost: {self.address}\r\n"
                         "Accept: application/json\r\nConnection: close\r\n\r\n".encode())
            sock.settimeout(0.5)
            raw, body, chunked, ended = b"", b"", None, False
            while not ended and not stop.is_set():
                try:
                    part = sock.recv(65536)
                except TimeoutError:
                    continue
                ended = not part
                raw += part
                if chunked is None:
                    head, sep, rest = raw.partition(b"\r\n\r\n")
                    if not sep:
                        continue
                    if head.split(None, 2)[1:2] != [b"200"]:
                        raise ConnectionError(f"watch {path}: {head.splitlines()[0].decode(errors='replace')}")
                    chunked, raw = b"transfer-encoding: chunked" in head.lower(), rest
                if chunked:  # SIZE[;ext] CRLF data CRLF
                    while (eol := raw.find(b"\r\n")) >= 0:
                        n = int(raw[:eol].split(b";")[0], 16)
                        if len(raw) < eol + n + 4:
                            break
                        body += raw[eol + 2:eol + 2 + n]
                        raw = raw[eol + n + 4:]
                        ended = ended or n == 0
                else:
                    body, raw = body + raw, b""
                while b"\n" in body:
                    line, body = body.split(b"\n", 1)
                    if line.strip():
                        try:
                            e = json.loads(line)
                        except ValueError as x:
                            raise ConnectionError(f"watch {path}: a line that is no JSON: {line[:80]!r}") from x
                        yield e.get("type"), e.get("object") or {}


def condition(job, kind):
    for c in job.get("status", {}).get("conditions") or []:
        if c["type"] == kind and c["status"] == "True":
            return c
    return None


def finished(job):
    return condition(job, "Complete") or condition(job, "Failed")


class Cluster:
    """A coordinator and its agents in a temporary folder; kill and start any of them at will."""

    def __init__(self, agents=1, slots=4, base="100ms", top="1s", grace="3s", extra=(), agent_extra=()):
        self.bin = muster_bin()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-"))
        self.base, self.top, self.grace, self.extra, self.agent_extra = base, top, grace, list(extra), list(agent_extra)
        self.slots = slots
        self.agents = {}
        self.coord = None
        self.listen = "127.0.0.1:0"
        self.api_addr = "127.0.0.1:0"
        try:
            self.start_coordinator()
            for i in range(agents):
                self.start_agent(f"node-{i}")
        except BaseException:
            self.close()
            raise

    def _spawn(self, name, args):
        with open(self.dir / f"{name}.log", "ab") as log:
            return subprocess.Popen([self.bin, *args], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def start_coordinator(self):
        data = self.dir / "coordinator"
        ep = data / "endpoints.json"
        with contextlib.suppress(FileNotFoundError):
            ep.unlink()
        self.coord = self._spawn("coordinator", ["coordinator", "--data-dir", str(data), "--api", self.api_addr, "--listen", self.listen,
                                                  "--pod-failure-backoff-base", self.base, "--pod-failure-backoff-max", self.top,
                                                  "--node-grace", self.grace, *self.extra])
        deadline = time.time() + 20
        while time.time() < deadline:
            if self.coord.poll() is not None:
                raise AssertionError("the coordinator ended: " + self.log("coordinator")[-600:])
            with contextlib.suppress(FileNotFoundError, ValueError, KeyError):
                e = json.loads(ep.read_text())
                if e.get("pid") == self.coord.pid:
                    if e["api"] != self.api_addr:
                        self.api = Api(e["api"])
                    self.listen, self.api_addr = e["listen"], e["api"]
                    return
            time.sleep(0.01)
        raise AssertionError("no endpoints.json in 20 s: " + self.log("coordinator")[-600:])

    def kill_coordinator(self):
        self.coord.kill()
        self.coord.wait()

    def restart_coordinator(self):
        self.kill_coordinator()
        self.start_coordinator()

    def start_agent(self, name, slots=None, extra=()):
        self.agents[name] = self._spawn(name, ["agent", "--coordinator", self.listen, "--name", name, "--slots", str(slots or self.slots),
                                               "--work-dir", str(self.dir / name), *self.agent_extra, *extra])

    def kill_agent(self, name):
        self.agents[name].kill()
        self.agents[name].wait()

    def log(self, name):
        p = self.dir / f"{name}.log"
        return p.read_text(errors="replace") if p.exists() else ""

    def wait(self, name, until=finished, timeout=30):
        deadline = time.time() + timeout
        job = None
        while time.time() < deadline:
            with contextlib.suppress(OSError):
                job = self.api.job(name)
                if until(job):
                    return job
            time.sleep(0.03)
        raise AssertionError(f"{name} not there in {timeout} s: {json.dumps((job or {}).get('status'))}")

    def wait_nodes(self, timeout=15):
        """Until every agent's node is Ready."""
        deadline = time.time() + timeout
        ready, answer = set(), None
        while time.time() < deadline:
            with contextlib.suppress(OSError):
                answer = self.api.call("GET", "/api/v1/nodes")
                if answer[0] == 200 and isinstance(answer[1], dict):
                    ready = {n["metadata"]["name"] for n in answer[1].get("items") or []
                             if any(c.get("type") == "Ready" and c.get("status") == "True" for c in n.get("status", {}).get("conditions") or [])}
                    if ready >= set(self.agents):
                        return
            time.sleep(0.03)
        raise AssertionError(f"of the nodes {sorted(self.agents)} only {sorted(ready)} Ready in {timeout} s; GET /api/v1/nodes: {str(answer)[:200]}")

    def close(self):
        procs = [p for p in [*self.agents.values(), self.coord] if p is not None]
        for p in procs:
            if p.poll() is None:
                p.terminate()
        for p in procs:
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        if not os.environ.get("KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *a):
        self.close()


def sh_job(name, script, completions=4, parallelism=None, annotations=None, **spec):
    """An Indexed job whose container runs `sh -c script`."""
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": annotations or {}},
            "spec": {"completionMode": "Indexed", "completions": completions, "parallelism": parallelism or completions, **spec,
                     "template": {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                                           "containers": [{"name": "main", "image": "none", "command": ["sh", "-c", script]}]}}}}
