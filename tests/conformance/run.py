#!/usr/bin/env python3
"""Runs the scenarios of a markdown file against a built muster and says which hold. The head of scenarios.md explains them.

Python 3.11 with the standard library and PyYAML (Debian: python3-yaml, for /usr/bin/python3).
"""
import argparse, concurrent.futures, contextlib, copy, fnmatch, json, os, pathlib, re, shlex, signal, sys, threading, time
import urllib.parse

try:
    import yaml
except ImportError:
    debian = "/usr/bin/python3"
    if os.access(debian, os.X_OK) and os.environ.get("CONFORMANCE_PYTHON") != debian:
        os.environ["CONFORMANCE_PYTHON"] = debian
        os.execv(debian, [debian, *sys.argv])
    raise SystemExit("run.py needs PyYAML: apt-get install python3-yaml, then run it with /usr/bin/python3")

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from harness import Cluster, finished, muster_bin  # noqa: E402

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"
JOB_NAME = "batch.kubernetes.io/job-name"
SLOTS = 48
SLACK = 0.25  # seconds: an end and a creation are seen from outside, through a watch
API_STEPS = ("submit", "patch", "delete-pod", "evict-pod", "remove-records", "delete-job")
GROUPS = "TGBFSEUDVAMXQK"


class Differs(Exception):
    """The scenario does not hold; the text says how."""


# ---------------------------------------------------------------- the file

def read_scenarios(path):
    """A list of items in file order: scenarios (kind 'run') and table rows (kind 'row')."""
    text = path.read_text()
    items, bases, title = [], {}, {}
    for head in re.finditer(r"^### (\w+) (.*)$", text, re.M):
        title[head[1]] = head[2]
    for block in re.finditer(r"^```yaml\n(.*?)^```", text, re.S | re.M):
        line = text.count("\n", 0, block.start()) + 1
        try:
            y = yaml.safe_load(block[1])
        except yaml.YAMLError as e:
            raise SystemExit(f"{path}:{line}: this block is no YAML: {str(e).splitlines()[0]}")
        if isinstance(y, dict) and "bases" in y:
            bases.update(y["bases"])
        elif isinstance(y, dict) and "steps" in y:
            items.append({"kind": "run", "id": y["id"], "title": title.get(y["id"], ""), **y})
        elif isinstance(y, list):
            for r in y:
                what = r.get("check") or json.dumps(r.get("update") or r.get("patch") or {}).replace('"', "")
                items.append({"kind": "row", "title": what if len(what) < 80 else what[:77] + "…", **r})
        else:
            raise SystemExit(f"{path}:{line}: neither a scenario nor a table")
    for i in items:
        i["bases"], i["file"], i["group"] = bases, path.name, i["id"][0]
    return items


def merge(a, b):
    """JSON merge patch."""
    if not isinstance(b, dict):
        return copy.deepcopy(b)
    a = dict(a) if isinstance(a, dict) else {}
    for k, v in b.items():
        if v is None:
            a.pop(k, None)
        else:
            a[k] = merge(a.get(k), v)
    return a


def expand(o):
    """$repeat, $range and $evens of the tables."""
    if isinstance(o, dict):
        if "$evens" in o:
            return ",".join(str(x) for x in range(0, o["$evens"] + 1, 2))
        return {k: expand(v) for k, v in o.items()}
    if isinstance(o, list):
        r = []
        for e in o:
            if isinstance(e, dict) and "$repeat" in e:
                r += [copy.deepcopy(expand(e["$repeat"][1])) for _ in range(e["$repeat"][0])]
            elif isinstance(e, dict) and "$range" in e:
                r += range(e["$range"][0], e["$range"][1] + 1)
            else:
                r.append(expand(e))
        return r
    return o


# ---------------------------------------------------------------- clusters

class Shared:
    """One cluster for many scenarios; started when first needed, mended when a scenario has brought it down."""

    def __init__(self):
        self.lock, self.cluster, self.room, self.lost = threading.Condition(), None, SLOTS - 4, None

    def get(self):
        with self.lock:
            if self.lost:
                raise AssertionError(self.lost)
            try:
                if self.cluster is None:
                    self.cluster = new_cluster()
                c = self.cluster
                if c.coord.poll() is not None:
                    c.start_coordinator()
                for name, p in list(c.agents.items()):
                    if p.poll() is not None:
                        c.start_agent(name)
                        c.wait_nodes()
                return c
            except AssertionError as e:
                self.lost = f"no cluster to run on: {e}"
                raise AssertionError(self.lost) from e

    @contextlib.contextmanager
    def space(self, pods):
        """Waits until that many slots are free of other scenarios."""
        pods = min(pods, SLOTS - 4)
        with self.lock:
            self.lock.wait_for(lambda: self.room >= pods)
            self.room -= pods
        try:
            yield
        finally:
            with self.lock:
                self.room += pods
                self.lock.notify_all()

    def close(self):
        with self.lock:
            if self.cluster is not None:
                self.cluster.close()
                self.cluster = None


def new_cluster():
    c = Cluster(agents=1, slots=SLOTS, base="1s", top="4s", grace="40s")
    try:
        c.wait_nodes()
    except BaseException:
        c.close()
        raise
    return c


def processes_of(folder):
    """Living processes that have this SCENARIO_DIR in their environment."""
    want, found = f"SCENARIO_DIR={folder}".encode(), []
    for p in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if want in p.read_bytes().split(b"\0"):
                found.append(int(p.parent.name))
    return found


# ---------------------------------------------------------------- watching

class Watcher:
    """Sees every pod and every status of one job name, by watch and by polling; pods are keyed by uid."""

    def __init__(self, api, name):
        self.api, self.name, self.stop = api, name, threading.Event()
        self.pods, self.lock = {}, threading.Lock()
        self.broken = None      # the first broken invariant of a status
        self.last = {}          # job uid -> last status seen
        self.scales = False
        sel = urllib.parse.quote(f"{JOB_NAME}={name}")
        jobs, pods = api.jobs(), api.pods_path()
        self.pods_list = f"{pods}?labelSelector={sel}"
        self.threads = [threading.Thread(target=f, args=a, daemon=True) for f, a in (
            (self.follow, (pods, f"labelSelector={sel}", self.pod)),
            (self.follow, (jobs, f"fieldSelector=metadata.name%3D{name}", self.job)),
            (self.poll, ()))]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *a):
        self.stop.set()
        for t in self.threads:
            t.join(2)

    def follow(self, path, query, seen):
        while not self.stop.is_set():
            try:
                code, lst = self.api.call("GET", f"{path}?{query}")
                if code != 200 or not isinstance(lst, dict):
                    raise ConnectionError(str(code))
                for o in lst.get("items") or []:
                    seen("LISTED", o)
                version = (lst.get("metadata") or {}).get("resourceVersion", "0")
                for kind, o in self.api.watch(path, f"{query}&resourceVersion={version}", self.stop):
                    if kind == "ERROR":
                        break
                    if kind in ("ADDED", "MODIFIED", "DELETED"):
                        seen(kind, o)
            except OSError:
                self.stop.wait(0.1)

    def poll(self):
        while not self.stop.wait(0.2):
            self.poll_once()

    def poll_once(self):
        with contextlib.suppress(OSError):
            code, lst = self.api.call("GET", self.pods_list)
            if code == 200 and isinstance(lst, dict):
                for o in lst.get("items") or []:
                    self.pod("LISTED", o)

    def pod(self, kind, o):
        now, m = time.monotonic(), o.get("metadata") or {}
        if (m.get("labels") or {}).get(JOB_NAME) != self.name or not m.get("uid"):
            return
        with self.lock:
            p = self.pods.setdefault(m["uid"], {"seen": now, "nr": len(self.pods), "ended": None})
            p["name"], p["at"] = m.get("name"), m.get("creationTimestamp") or ""
            p["annotations"] = {**p.get("annotations", {}), **(m.get("annotations") or {})}
            p["labels"], p["hostname"] = m.get("labels") or {}, (o.get("spec") or {}).get("hostname")
            if p["ended"] is None and (kind == "DELETED" or (o.get("status") or {}).get("phase") in ("Succeeded", "Failed")):
                p["ended"] = now

    def created(self, index=None):
        """Pods in order of creation."""
        with self.lock:
            ps = [p for p in self.pods.values() if index is None or p["annotations"].get(INDEX) == str(index)]
        return sorted(ps, key=lambda p: (p["at"], p["nr"]))

    def job(self, kind, o):
        st, uid = o.get("status") or {}, (o.get("metadata") or {}).get("uid")
        if kind == "DELETED" or uid is None:
            return
        with self.lock:
            old, self.last[uid] = self.last.get(uid, {}), st
            if self.broken is None:
                self.broken = broken_status(st, old, self.scales)


def broken_status(st, old, scales):
    """What no status may ever show (reference, 1.5), and what may not follow the one before; None when all is well."""
    true = [c.get("type") for c in st.get("conditions") or [] if c.get("status") == "True"]
    for a in ("Complete", "SuccessCriteriaMet"):
        for b in ("Failed", "FailureTarget"):
            if a in true and b in true:
                return f"a status had both {a} and {b} True"
    for a, b in (("Complete", "SuccessCriteriaMet"), ("Failed", "FailureTarget")):
        if a in true and b not in true:
            return f"a status had {a} without {b}"
    unc = st.get("uncountedTerminatedPods") or {}
    uids = (unc.get("succeeded") or []) + (unc.get("failed") or [])
    if len(set(uids)) != len(uids):
        return "a uid twice in uncountedTerminatedPods"
    if (st.get("ready") or 0) > (st.get("active") or 0):
        return f"a status had ready {st.get('ready')} > active {st.get('active') or 0}"
    if ("Complete" in true or "Failed" in true) and (st.get("active") or st.get("terminating") or uids):
        return "a finished status had active, terminating or uncounted pods"
    for k in ("failed",) if scales else ("failed", "succeeded"):
        if (st.get(k) or 0) < (old.get(k) or 0):
            return f"status.{k} went down from {old[k]} to {st.get(k) or 0}"
    for k in ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"):
        if k not in true and any(c.get("type") == k and c.get("status") == "True" for c in old.get("conditions") or []):
            return f"condition {k} went away"
    return None


# ---------------------------------------------------------------- one scenario

def view(job):
    """What await, hold and assert can name."""
    st = job.get("status") or {}
    v = {k: str(st.get(k) or 0) for k in ("active", "ready", "terminating", "succeeded", "failed")}
    v["completedIndexes"] = st.get("completedIndexes") or ""
    v["failedIndexes"] = st.get("failedIndexes")
    v["conditions"] = "[" + ",".join(f"{c.get('type')}={c.get('status')}/{c.get('reason')}" for c in st.get("conditions") or []) + "]"
    v["startTime"] = "present" if st.get("startTime") else "absent"
    v["status"] = "{}" if not st else "not {}"
    return v


def text(x):
    return "absent" if x is None else json.dumps(x, ensure_ascii=False) if not isinstance(x, str) or not x or " " in x else x


class Scenario:
    def __init__(self, item, cluster, wait, alone):
        self.item, self.cluster, self.wait, self.alone, self.api = item, cluster, wait, alone, cluster.api
        self.manifest = copy.deepcopy(item["job"])
        self.name = self.manifest["metadata"]["name"]
        self.folder = cluster.dir / "scenarios" / item["id"]
        knobs = item.get("knobs") or {}
        notes = self.manifest["metadata"].setdefault("annotations", {})
        notes["muster.dev/backoff-base"] = knobs.get("podFailureBackoff", "1s")
        notes["muster.dev/backoff-max"] = knobs.get("maxPodFailureBackoff", "4s")
        pod = self.manifest["spec"]["template"]["spec"]
        if pod.get("restartPolicy") == "OnFailure":
            notes["muster.dev/restart-delay"] = "500ms"
        for c in pod.get("containers", []) + pod.get("initContainers", []):
            c["env"] = [{"name": "SCENARIO_DIR", "value": str(self.folder)}, *(c.get("env") or [])]
        self.seen = None        # the watcher
        self.done_early = set()  # positions of steps done just before a kill
        self.uid = None

    # -- reading
    def get(self):
        code, o = self.api.call("GET", f"{self.api.jobs()}/{self.name}")
        if code == 404:
            return None
        if code != 200 or not isinstance(o, dict):
            raise Differs(f"GET job {self.name}: {code} {str(o)[:160]}")
        return o

    def pods(self):
        return self.api.pods(f"{JOB_NAME}={self.name}")

    def running(self):
        return [p for p in self.pods() if (p.get("status") or {}).get("phase") == "Running" and not p["metadata"].get("deletionTimestamp")]

    def some(self, which):
        end = time.monotonic() + 5  # the job's status may be a moment ahead of the pod's
        while not (ps := self.running()):
            if time.monotonic() > end:
                raise Differs("no pod of the job is Running")
            time.sleep(0.03)
        return ps if which == "all-active" else ps[:1]

    def ask(self, what, answer, ok=(200, 201, 202)):
        code, o = answer
        if code not in ok:
            raise Differs(f"{what}: {code} {o.get('message') if isinstance(o, dict) else str(o)[:160]}")
        return o

    # -- waiting
    def until(self, test, seconds):
        """test gives None when it is satisfied, else what is missing."""
        end, last = time.monotonic() + seconds, "nothing could be read"
        while True:
            try:
                last = test()
                if last is None:
                    return
            except OSError as e:
                last = f"the API does not answer ({e})"
                if self.cluster.coord.poll() is not None:
                    raise
            if time.monotonic() > end:
                raise Differs(f"not reached in {seconds:g} s: {last}")
            time.sleep(0.025)

    def lacks(self, tokens):
        def test():
            job = self.get()
            if job is None:
                return "the job does not exist"
            v = view(job)
            for t in tokens:
                k, want = t.split("=", 1)
                if v[k] != want:
                    return f"{k} is {text(v[k])}, expected {text(want)}"
            return None
        return test

    # -- steps
    def step(self, nr, s):
        word, _, rest = str(s).partition(" ")
        if word == "patch":
            self.ask(f"PATCH job {self.name}", self.api.patch(self.name, {"spec": yaml.safe_load(rest)}))
            return
        args = shlex.split(rest)
        if word == "submit":
            o = self.ask("create", self.api.create(self.manifest), (200, 201))
            self.uid = o.get("metadata", {}).get("uid")
        elif word == "await":
            limit = self.wait
            if "within" in args:
                limit = float(args[args.index("within") + 1])
                args = args[:args.index("within")]
            if args == ["finished"]:
                def test():
                    if (job := self.get()) is None:
                        return "the job does not exist"
                    return None if finished(job) else f"status {json.dumps(short(job.get('status')))}"
            elif args == ["gone"]:
                def test():
                    return None if self.get() is None else "the job still exists"
            elif args == ["no-pods"]:
                def test():
                    n = len(self.pods())
                    return f"{n} pods still exist" if n else None
            else:
                test = self.lacks(args)
            self.until(test, limit)
        elif word == "hold":
            end, test = time.monotonic() + float(args[0]), self.lacks(args[1:])
            self.until(test, 5)
            while time.monotonic() < end:
                if (bad := test()) is not None:
                    raise Differs(f"did not stay so: {bad}")
                time.sleep(0.025)
        elif word == "touch":
            (self.folder / args[0]).touch()
        elif word == "sleep":
            time.sleep(float(args[0]))
        elif word == "delete-pod":
            for p in self.some(args[0]):
                self.ask("DELETE pod", self.api.call("DELETE", f"{self.api.pods_path()}/{p['metadata']['name']}"))
        elif word == "evict-pod":
            for p in self.some(args[0]):
                n = p["metadata"]["name"]
                self.ask("POST eviction", self.api.call("POST", f"{self.api.pods_path()}/{n}/eviction", {
                    "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": n, "namespace": "default"}}))
        elif word == "kill-pod":
            for p in self.some(args[0]):
                pid = (p["metadata"].get("annotations") or {}).get("muster.dev/pid", "")
                if not pid.isdigit() or int(pid) < 2:
                    raise Differs(f"annotation muster.dev/pid of running pod {p['metadata']['name']} is {text(pid or None)}, expected a pid")
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(int(pid), signal.Signals[f"SIG{args[1]}"])
        elif word == "remove-records":
            for p in self.pods():
                if p.get("status", {}).get("phase") in ("Succeeded", "Failed"):
                    self.ask("DELETE pod", self.api.call("DELETE", f"{self.api.pods_path()}/{p['metadata']['name']}"), (200, 202, 404))
        elif word == "stop-controller":
            for later, t in enumerate(self.item["steps"][nr + 1:], nr + 1):  # API and controller are one process: do it before the kill
                if str(t) == "start-controller":
                    break
                if str(t).split()[0] in API_STEPS:
                    self.step(later, t)
                    self.done_early.add(later)
            self.cluster.kill_coordinator()
        elif word == "start-controller":
            self.cluster.start_coordinator()
            self.api = self.cluster.api
        elif word == "delete-job":
            self.ask("DELETE job", self.api.delete(self.name, args[0].capitalize()))
        elif word == "assert":
            what, want = args[0].split("=", 1)
            ps = self.running()
            if what == "active-indexes":
                got = ",".join(map(str, sorted(int((p["metadata"].get("annotations") or {}).get(INDEX, -1)) for p in ps)))
            elif what == "pods-running":
                got = str(len(ps))
            else:
                raise Differs(f"unknown assertion {what}")
            if got != want:
                raise Differs(f"{what} is {text(got)}, expected {want}")
        else:
            raise Differs(f"unknown step {word}")

    # -- expectations
    def check(self, before):
        ex, out = self.item["expect"], []
        job = self.get()
        if ex.get("job") == "gone":
            if job is not None:
                out.append("the job still exists, expected gone")
        elif job is None:
            return ["the job does not exist"]
        st = (job or {}).get("status") or {}
        if "status" in ex:
            out += diff_status(st, ex["status"], ex.get("messageRegex"))
        for k, want in (ex.get("times") or {}).items():
            got = "present" if st.get(k) else "absent"
            if got != want:
                out.append(f"status.{k} is {got}, expected {want}")
        if st.get("startTime") and st.get("completionTime") and st["completionTime"] < st["startTime"]:
            out.append(f"completionTime {st['completionTime']} lies before startTime {st['startTime']}")
        self.seen.poll_once()
        pods, events = self.seen.created(), []
        if "podsCreated" in ex or "events" in ex:
            events = [e for e in self.api.events(f"involvedObject.name={self.name},involvedObject.kind=Job")
                      if e.get("involvedObject", {}).get("name") == self.name and e.get("involvedObject", {}).get("kind") == "Job"]
        if "podsCreated" in ex:
            seen = {p["name"] for p in pods}
            told = [re.search(r"Created pod: (\S+)", e.get("message") or "") for e in events if e.get("reason") == "SuccessfulCreate"]
            names = seen | {m[1] for m in told if m}
            n = len(pods) + len(names - seen)
            if n != ex["podsCreated"]:
                out.append(f"podsCreated is {n}, expected {ex['podsCreated']} ({', '.join(sorted(names))})")
        if "log" in ex or "logSorted" in ex:
            f = self.folder / "log"
            got = f.read_text().split() if f.exists() else []
            want, got = (ex["log"], got) if "log" in ex else (ex["logSorted"], sorted(got))
            if got != want:
                out.append(f"log is {got}, expected {want}")
        for key, note in (("failureCounts", FAILURES), ("ignoredFailureCounts", IGNORED)):
            for i, want in (ex.get(key) or {}).items():
                got = [p["annotations"].get(note) for p in self.seen.created(i)]
                if got != want:
                    out.append(f"{key} of index {i} is {json.dumps(got)}, expected {json.dumps(want)}")
        if "gaps" in ex:
            out += diff_gaps("gaps", pods, ex["gaps"])
        for i, want in (ex.get("indexGaps") or {}).items():
            out += diff_gaps(f"indexGaps of index {i}", self.seen.created(i), want)
        if "podName" in ex:
            for p in pods:
                if not re.search(ex["podName"], p["name"] or ""):
                    out.append(f"pod name {p['name']} does not match {ex['podName']}")
        if "podHostname" in ex:
            for p in pods:
                want = ex["podHostname"].replace("INDEX", p["annotations"].get(INDEX, "?"))
                if p["hostname"] != want:
                    out.append(f"spec.hostname of pod {p['name']} is {text(p['hostname'])}, expected {want}")
        for k in ex.get("podLabelsAndAnnotations") or {}:
            for p in pods:
                i = (re.match(re.escape(self.name) + r"-(\d+)-", p["name"] or "") or [None, "?"])[1]
                for where in ("labels", "annotations"):
                    if p[where].get(k) != i:
                        out.append(f"{where}[{k}] of pod {p['name']} is {text(p[where].get(k))}, expected {i}")
        for reason in ex.get("events") or []:
            if not any(e.get("reason") == reason for e in events):
                there = sorted({e.get("reason", "?") for e in events})
                out.append(f"no event {reason} for the job (there are: {', '.join(there) or 'none'})")
        if "podsWithFinalizer" in ex:
            n = sum(FINALIZER in (p["metadata"].get("finalizers") or []) for p in self.pods())
            if n != ex["podsWithFinalizer"]:
                out.append(f"podsWithFinalizer is {n}, expected {ex['podsWithFinalizer']}")
        if "metrics" in ex:
            now = self.api.metrics()
            for k, want in ex["metrics"].items():
                got = series(now, k) - series(before, k)
                if got != want:
                    out.append(f"{k} rose by {got:g}, expected {want}")
        if job is not None and finished(job):
            out += self.after_finish(job)
        return [self.seen.broken, *out] if self.seen.broken else out

    def after_finish(self, job):
        out, cs = [], job["status"].get("conditions") or []
        for interim, terminal in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")):
            a, b = (next((c for c in cs if c.get("type") == t), None) for t in (interim, terminal))
            if b is not None:
                if a is None or cs.index(a) > cs.index(b):
                    out.append(f"condition {interim} does not come before {terminal}")
                elif (a.get("reason"), a.get("message")) != (b.get("reason"), b.get("message")):
                    out.append(f"conditions {interim} and {terminal} differ in reason or message")
        left = [p["metadata"]["name"] for p in self.pods() if FINALIZER in (p["metadata"].get("finalizers") or [])]
        if left:
            out.append(f"the job is finished, yet {left[0]} carries the finalizer")
        alive = processes_of(self.folder)
        if alive:
            time.sleep(0.3)  # a child of a killed shell may take a moment
            alive = processes_of(self.folder)
        if alive:
            out.append(f"the job is finished, yet processes of it are alive: {alive}")
        return out

    def run(self):
        """The differences, an empty list when the scenario holds."""
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o777)
        before = self.api.metrics() if "metrics" in self.item["expect"] else {}
        at = "before the first step"
        try:
            with Watcher(self.api, self.name) as self.seen:
                self.seen.scales = any("completions:" in str(s) for s in self.item["steps"])
                for nr, s in enumerate(self.item["steps"]):
                    at = f"step {nr + 1} '{s}'"
                    if nr not in self.done_early:
                        self.step(nr, s)
                at = "at the end"
                time.sleep(0.3)
                return self.check(before)
        except (Differs, AssertionError) as e:
            # what broke an invariant on the way often explains why a wait ran out
            return [f"{at}: {e}"] + ([self.seen.broken] if self.seen and self.seen.broken else [])
        except OSError as e:
            return [f"{at}: {no_answer(self.cluster, e)}"]
        finally:
            if not self.alone:
                self.clean()

    def clean(self):
        """Leaves the shared cluster as it was found."""
        with contextlib.suppress(OSError, AssertionError):
            self.api.delete(self.name)
            for p in self.pods():
                self.api.call("DELETE", f"{self.api.pods_path()}/{p['metadata']['name']}", {"gracePeriodSeconds": 0})
        for pid in processes_of(self.folder):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 5
        with contextlib.suppress(OSError, AssertionError):
            while time.monotonic() < end and self.pods():
                time.sleep(0.05)


def no_answer(cluster, e):
    code = cluster.coord.poll()
    end = "" if code is None else f"; the coordinator ended with {code}: {cluster.log('coordinator')[-200:].strip()}"
    return f"the API does not answer ({e}){end}"


def short(st):
    """A status in few words, for a message."""
    st = dict(st or {})
    if "conditions" in st:
        st["conditions"] = [f"{c.get('type')}={c.get('status')}/{c.get('reason')}" for c in st["conditions"] or []]
    return {k: v for k, v in st.items() if v not in (None, 0, "", [], {}) and not k.endswith("Time")}


def diff_status(got, want, regex):
    out = []
    got = {k: v for k, v in got.items() if k not in ("startTime", "completionTime")}
    unc = got.get("uncountedTerminatedPods")
    if isinstance(unc, dict):
        got["uncountedTerminatedPods"] = {k: v for k, v in unc.items() if v}
    for k in sorted({*got, *want} - {"conditions"}):
        if k in want:
            if got.get(k) != want[k]:
                out.append(f"status.{k} is {text(got.get(k))}, expected {text(want[k])}")
        elif got[k] not in (None, 0, "", [], {}) or (k == "failedIndexes" and got[k] is not None):
            out.append(f"status.{k} is {text(got[k])}, expected absent")
    cs, ws = got.get("conditions") or [], want.get("conditions") or []

    def names(l):
        return "[" + ",".join(f"{c.get('type')}={c.get('status')}/{c.get('reason')}" for c in l) + "]"

    if names(cs) != names(ws):
        out.append(f"status.conditions is {names(cs)}, expected {names(ws)}")
    else:
        for c, w in zip(cs, ws):
            m = c.get("message") or ""
            if "message" in w and m != w["message"]:
                out.append(f"the message of {c['type']} is {text(m)}, expected {text(w['message'])}")
            elif "message" not in w and regex and not re.search(regex, m):
                out.append(f"the message of {c['type']} is {text(m)}, expected a match of {regex}")
    return out


def diff_gaps(what, pods, want):
    got = [None if a["ended"] is None else round(b["seen"] - a["ended"], 2) for a, b in zip(pods, pods[1:])]
    if len(got) == len(want) and all(g is not None and lo - SLACK <= g < hi + SLACK for g, (lo, hi) in zip(got, want)):
        return []
    return [f"{what} (seconds from an end to the next creation) are {json.dumps(got)}, expected within {json.dumps(want)}"]


def labels_of(key):
    name, _, rest = key.partition("{")
    return name, set(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', rest))


def series(metrics, key):
    name, want = labels_of(key)
    return sum(v for k, v in metrics.items() for n, have in [labels_of(k)] if n == name and have >= want)


def slots_of(item):
    """How many pods of the scenario may run at once."""
    spec = item["job"]["spec"]
    n = [int(x) for s in item["steps"] for x in re.findall(r"parallelism: (\d+)", str(s))]
    return max([spec.get("parallelism", 1), *n]) + 1


# ---------------------------------------------------------------- one table row

class Row:
    def __init__(self, item, cluster, wait):
        self.item, self.cluster, self.api, self.wait = item, cluster, cluster.api, wait
        self.id = item["id"]

    def manifest(self, patch):
        job = expand(merge(self.item["bases"][self.item.get("base", "N")], patch or {}))
        if "name" not in (patch or {}).get("metadata", {}):
            job["metadata"]["name"] = f"v-{self.id.lower()}"
        return job

    def get(self, name):
        code, o = self.api.call("GET", f"{self.api.jobs()}/{urllib.parse.quote(name)}")
        return o if code == 200 else None

    def remove(self, name):
        with contextlib.suppress(OSError):
            self.api.delete(name)
            end = time.monotonic() + 5
            while time.monotonic() < end and self.get(name) is not None:
                time.sleep(0.02)

    def until(self, test, what):
        end = time.monotonic() + self.wait
        while not test():
            if time.monotonic() > end:
                raise Differs(f"{what}: not reached in {self.wait:g} s")
            time.sleep(0.02)

    def create(self, job):
        code, o = self.api.create(job)
        if code not in (200, 201):
            raise Differs(f"create was refused: {code} {refusal(o)}")
        return o

    def dry(self):
        """Whether ?dryRun=All stores nothing; asked once for each cluster."""
        c = self.cluster
        with DRY_LOCK:
            if not hasattr(c, "dry"):
                job = expand(merge(self.item["bases"]["N"], {"metadata": {"name": "dry-run-probe"}, "spec": {"suspend": True}}))
                code, _ = self.api.create(job, "?dryRun=All")
                c.dry = code in (200, 201) and self.get("dry-run-probe") is None
                if not c.dry:
                    self.remove("dry-run-probe")
                    print("note: ?dryRun=All is not served: manifests are created and deleted instead", file=sys.stderr)
            return c.dry

    def run(self):
        try:
            getattr(self, f"row_{self.item['group']}")()
            return []
        except (Differs, AssertionError) as e:
            return [str(e)]
        except OSError as e:
            return [no_answer(self.cluster, e)]

    def refused(self, answer, want, name, how):
        code, o = answer
        if code in (200, 201):
            raise Differs(f"{how}: accepted, expected to be refused with {', '.join(want)}")
        got = causes(code, o, how)
        if got != set(want):
            more, less = sorted(got - set(want)), sorted(set(want) - got)
            said = [f"{what}: {', '.join(l)}" for what, l in (("missing", less), ("unexpected", more)) if l]
            raise Differs(f"{how}: {'; '.join(said)}")

    def row_V(self):
        job, want = self.manifest(self.item["patch"]), self.item["expect"]
        name = job["metadata"].get("name")
        if self.dry():
            self.refused(self.api.create(job, "?dryRun=All"), want, name, "create with dryRun=All")
        try:
            self.refused(self.api.create(job), want, name, "create")
        except Differs:
            if name:
                self.remove(name)
            raise
        if name and self.get(name) is not None:
            self.remove(name)
            raise Differs("create was refused, yet the job is stored")

    def row_A(self):
        job = self.manifest(self.item["patch"])
        name = job["metadata"]["name"]
        if self.dry():
            code, o = self.api.create(job, "?dryRun=All")
            if code not in (200, 201):
                raise Differs(f"create with dryRun=All was refused: {code} {refusal(o)}")
            if self.get(name) is not None:
                self.remove(name)
                raise Differs("create with dryRun=All stored the job")
        job["spec"]["suspend"] = True
        try:
            self.create(job)
            if self.get(name) is None:
                raise Differs("created, but not there afterwards")
        finally:
            self.remove(name)

    def row_M(self):
        suspended = self.item.get("state") == "suspended"

        def busy(o):
            return o if suspended else json.loads(json.dumps(o).replace("exit 0", "exec sleep 60").replace("exit 1", "exec sleep 61"))

        job = busy(self.manifest(self.item.get("first")))
        name, want = job["metadata"]["name"], self.item["expect"]
        try:
            self.create(job)
            if suspended:
                self.until(lambda: "Suspended=True" in view(self.get(name) or {})["conditions"], "condition Suspended")
            elif job["spec"].get("managedBy", "kubernetes.io/job-controller") == "kubernetes.io/job-controller":
                self.until(lambda: view(self.get(name) or {})["ready"] != "0", "a ready pod")
            old = self.get(name)
            answer = self.api.patch(name, busy(expand(self.item["update"])))
            new = self.get(name)
            if want:
                self.refused(answer, want, name, "update")
                for k in ("spec", "metadata.generation", "metadata.labels"):
                    if at(new, k) != at(old, k):
                        raise Differs(f"the update was refused, yet {k} changed")
                return
            if answer[0] != 200:
                raise Differs(f"the update was refused: {answer[0]} {refusal(answer[1])}")
            rise, due = new["metadata"].get("generation", 0) - old["metadata"].get("generation", 0), int(new["spec"] != old["spec"])
            if bool(due) != ("spec" in self.item["update"]):
                raise Differs(f"the update was accepted, but the spec did {'' if due else 'not '}change")
            if rise != due:
                raise Differs(f"metadata.generation rose by {rise}, expected {due}")
        finally:
            self.remove(name)

    def row_X(self):
        job = self.manifest(self.item["patch"])
        name = job["metadata"]["name"]
        try:
            self.create(job)
            o = self.get(name)
            for path, want in self.item["expect"].items():
                if at(o, path) != want:
                    raise Differs(f"{path} is {text(at(o, path))}, expected {text(want)}")
        finally:
            self.remove(name)

    def row_Q(self):
        job = self.manifest(self.item["patch"])
        name, word = job["metadata"]["name"], self.item["names"]
        body = json.dumps(job)
        if self.item.get("twice"):
            body = body.replace(f'"{word}": ', f'"{word}": 3, "{word}": ', 1)
        try:
            code, o = self.api.call("POST", self.api.jobs() + self.item.get("query", ""), body.encode())
            if code != 400:
                raise Differs(f"create answered {code}, expected 400")
            if not isinstance(o, dict) or o.get("kind") != "Status" or word not in str(o.get("message")):
                raise Differs(f"the answer is no Status whose message names {word}: {str(o)[:160]}")
            if self.get(name) is not None:
                raise Differs("create was refused, yet the job is stored")
        finally:
            self.remove(name)

    def row_K(self):
        job = self.manifest({"spec": {"suspend": True}})
        name, path = job["metadata"]["name"], f"{self.api.jobs()}/v-{self.id.lower()}"
        check = self.item["check"]
        try:
            if check == "status-at-creation":
                job["status"] = {"succeeded": 7, "completedIndexes": "0-6"}
            o = self.create(job)
            if check == "stale-resource-version":
                self.api.patch(name, {"metadata": {"labels": {"x": "y"}}})
                o["spec"]["parallelism"] = 3
                code, a = self.api.call("PUT", path, o)
                if code != 409 or not isinstance(a, dict) or a.get("reason") != "Conflict":
                    raise Differs(f"PUT with a stale resourceVersion answered {code} {refusal(a)}, expected 409 Conflict")
                if self.get(name)["spec"]["parallelism"] == 3:
                    raise Differs("PUT with a stale resourceVersion was stored")
            elif check == "status-in-update":
                code, a = self.api.patch(name, {"status": {"succeeded": 7}})
                if code != 200:
                    raise Differs(f"PATCH answered {code} {refusal(a)}, expected 200")
                if self.get(name).get("status", {}).get("succeeded"):
                    raise Differs("a status in an update of the job was stored")
            elif check == "status-at-creation":
                st = self.get(name).get("status", {})
                if st.get("succeeded") or st.get("completedIndexes"):
                    raise Differs("a status given at creation was stored")
            elif check == "generated":
                o, uid = self.get(name), o["metadata"]["uid"]
                want = {"batch.kubernetes.io/controller-uid": uid, "controller-uid": uid, JOB_NAME: name, "job-name": name}
                if at(o, "spec.selector.matchLabels") != {"batch.kubernetes.io/controller-uid": uid}:
                    raise Differs(f"spec.selector.matchLabels is {at(o, 'spec.selector.matchLabels')}")
                if at(o, "spec.template.metadata.labels") != want:
                    raise Differs(f"spec.template.metadata.labels is {at(o, 'spec.template.metadata.labels')}")
            elif check == "dry-run":
                self.remove(name)
                code, a = self.api.create(job, "?dryRun=All")
                if code not in (200, 201) or not isinstance(a, dict) or at(a, "spec.backoffLimit") != 6:
                    raise Differs(f"create with dryRun=All answered {code}, without the defaulted object")
                if self.get(name) is not None:
                    raise Differs("create with dryRun=All stored the job")
            else:
                raise Differs(f"unknown check {check}")
        finally:
            self.remove(name)


DRY_LOCK = threading.Lock()


def at(o, path):
    for k in re.findall(r"[^.\[\]]+", path):
        if isinstance(o, list):
            o = o[int(k)] if int(k) < len(o) else None
        else:
            o = o.get(k) if isinstance(o, dict) else None
    return o


def causes(code, o, how):
    """{'FIELD KIND', …} of a refusal."""
    if code != 422 or not isinstance(o, dict) or o.get("kind") != "Status":
        raise Differs(f"{how}: answered {code} {refusal(o)}, expected 422 with a Status")
    cs = (o.get("details") or {}).get("causes") or []
    if o.get("reason") != "Invalid" or not cs:
        raise Differs(f"{how}: a Status with reason {o.get('reason')} and {len(cs)} details.causes, expected Invalid and a cause for each rule")
    return {f"{c.get('field')} {str(c.get('reason')).removeprefix('FieldValue')}" for c in cs}


def refusal(o):
    return str(o.get("message") or o)[:200] if isinstance(o, dict) else str(o)[:200]


# ---------------------------------------------------------------- all of them

def needs_own_cluster(item):
    return bool(item.get("knobs") or "metrics" in item["expect"] or any(str(s).endswith("-controller") for s in item["steps"]))


def run_item(item, shared, tables, wait):
    start = time.monotonic()
    if item["kind"] == "row":
        work = int((item.get("first") or item.get("patch") or {}).get("spec", {}).get("parallelism", 2)) if item["group"] in "MX" else 0
        with tables.space(min(work, 8)):
            diffs = Row(item, tables.get(), wait).run()
    elif needs_own_cluster(item):
        c = new_cluster()
        sc = Scenario(item, c, wait, True)
        try:
            diffs = sc.run()
        finally:
            c.close()
            for pid in processes_of(sc.folder):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
    else:
        with shared.space(slots_of(item)):
            diffs = Scenario(item, shared.get(), wait, False).run()
    return result(item, diffs, time.monotonic() - start)


def result(item, diffs, seconds):
    return {"id": item["id"], "group": item["group"], "title": item["title"], "file": item["file"],
            "holds": not diffs, "differences": diffs, "seconds": round(seconds, 2)}


def main():
    a = argparse.ArgumentParser(description="Runs the scenarios of a file against a built muster.")
    a.add_argument("--file", action="append", type=pathlib.Path, metavar="F",
                   help="scenario file, may be given again (default: scenarios.md beside this script)")
    a.add_argument("--only", default="*", metavar="IDS", help="ids or patterns, separated by commas: T07,B*")
    a.add_argument("--list", action="store_true", help="list the selected scenarios and stop")
    a.add_argument("--muster", metavar="PATH", help="the executable (default: $MUSTER, else build/release/muster)")
    a.add_argument("--jobs", type=int, default=8, metavar="N", help="scenarios at a time (default 8)")
    a.add_argument("--timeout", type=float, default=20, metavar="S",
                   help="seconds a wait may last unless the step says so itself (default 20)")
    a.add_argument("--json", type=pathlib.Path, metavar="OUT", help="write all results there")
    a.add_argument("-v", "--verbose", action="store_true",
                   help="a line for those that hold, too, and every difference of those that do not")
    o = a.parse_args()
    items = [i for f in o.file or [HERE / "scenarios.md"] for i in read_scenarios(f)]
    twice = sorted({i["id"] for i in items if sum(j["id"] == i["id"] for j in items) > 1})
    if twice:
        a.error(f"given more than once: {', '.join(twice)}")
    wanted = [p.strip() for p in o.only.split(",") if p.strip()]
    for p in wanted:
        if not any(fnmatch.fnmatchcase(i["id"], p) for i in items):
            a.error(f"--only {p}: there is no such scenario")
    items = [i for i in items if any(fnmatch.fnmatchcase(i["id"], p) for p in wanted)]
    if o.list:
        for i in items:
            print(f"{i['id']:5} {i['title']}")
        return 0
    if o.muster:
        os.environ["MUSTER"] = o.muster
    try:
        muster_bin()
    except SystemExit as e:
        a.error(str(e))
    shared, tables, results = Shared(), Shared(), []
    try:  # one line, and not one for each scenario, when nothing can run at all
        shared.get()
    except AssertionError as e:
        shared.close()
        print(f"{e}\n0 of {len(items)} scenarios hold")
        return 1
    # the long ones first: own clusters, then by number of waits
    items.sort(key=lambda i: (i["kind"] == "row", not (i["kind"] == "run" and needs_own_cluster(i)), -len(i.get("steps", []))))
    pool = concurrent.futures.ThreadPoolExecutor(max(1, o.jobs))
    try:
        futures = {pool.submit(run_item, i, shared, tables, o.timeout): i for i in items}
        for f in concurrent.futures.as_completed(futures):
            i = futures[f]
            try:
                r = f.result()
            except Exception as e:  # a cluster that cannot be started, or an answer of an unexpected form
                r = result(i, [str(e) if isinstance(e, AssertionError) else f"{type(e).__name__}: {e}"], 0)
            results.append(r)
            if not r["holds"]:
                more = len(r["differences"]) - 1
                line = " ".join(r["differences"][0].split())
                print(f"FAIL {r['id']} {r['title']}: {line}" + (f" (and {more} more)" if more and not o.verbose else ""), flush=True)
                if o.verbose:
                    for d in r["differences"][1:]:
                        print("     " + " ".join(d.split()))
            elif o.verbose:
                print(f"ok   {r['id']} {r['title']} ({r['seconds']:.1f} s)", flush=True)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one interruption is enough: nothing may be left running
        pool.shutdown(wait=False, cancel_futures=True)
        shared.close()
        tables.close()
        pool.shutdown(wait=True)
    results.sort(key=lambda r: ([i["id"] for i in items].index(r["id"])))
    held = sum(r["holds"] for r in results)
    groups = {}
    for r in results:
        g = groups.setdefault(r["group"], [0, 0])
        g[0] += r["holds"]
        g[1] += 1
    if o.json:
        each = {g: {"held": h, "of": n} for g, (h, n) in groups.items()}
        o.json.write_text(json.dumps({"held": held, "of": len(results), "groups": each, "results": results}, indent=1) + "\n")
    counts = " ".join(f"{g} {groups[g][0]}/{groups[g][1]}" for g in sorted(groups, key=GROUPS.find))
    print(f"{held} of {len(results)} scenarios hold ({counts})")
    return 0 if held == len(results) and results else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
