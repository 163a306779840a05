#!/usr/bin/python3
"""MPI jobs: real Open MPI and MPICH programs across several agents, and what happens when parts of them die.

    MUSTER=build/release/muster tests/e2e/mpi.py [TEST…]

When run by root, each agent is a separate machine with its own network namespace, address and host name. Otherwise all agents share
loopback and this machine's name, and the suite says so.
"""
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import eventually, start_daemon  # noqa: E402
import users  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSTER = os.path.abspath(os.environ["MUSTER"])
JOBS = "/apis/batch/v1/namespaces/default/jobs"
MINE = "/apis/muster.dev/v1/namespaces/default/jobs"
LAUNCHERS = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.hydra"}
# The first two let root run mpirun; the last one helps on a machine with few cores.
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
RING = {}  # the program for each MPI
ENDS = {}  # likewise


def setUpModule():
    missing = [tool for tool in (*LAUNCHERS.values(), "mpicc.openmpi", "mpicc.mpich") if not shutil.which(tool)]
    if missing:
        raise unittest.SkipTest(f"not installed: {', '.join(missing)}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-mpi-"))
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    for mpi in LAUNCHERS:
        for programs, name in ((RING, "ring"), (ENDS, "ends")):
            programs[mpi] = str(folder / f"{name}.{mpi}")
            subprocess.run([f"mpicc.{mpi}", "-O1", "-o", programs[mpi], ROOT / f"tests/e2e/lib/{name}.c"], check=True)


def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def can_make_namespaces():
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        return False
    trial = f"mutry{os.getpid()}"
    try:
        ip("netns", "add", trial)
    except subprocess.CalledProcessError:
        return False
    subprocess.run(["ip", "netns", "del", trial], check=False)
    return True


class Machine:
    """A place for daemons: a network namespace with a host name, or this machine."""

    def __init__(self, name, address, space=None):
        self.name, self.address = name, address
        self.prefix = [] if space is None else ["ip", "netns", "exec", space, "unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', "sh"]


class Site(unittest.TestCase):
    """A coordinator and four agents on separate machines, shared by all tests of a class."""
    NODES = 4
    SLOTS = 40
    FLAGS = ()  # for the coordinator
    AGENT_FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-mpi-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.apart = can_make_namespaces()
        if cls.apart:
            cls.lay_wires()
        else:
            print("mpi: no network namespaces here: all agents share loopback and this machine's host name", flush=True)
            cls.head = Machine("head", "127.0.0.1")
            cls.nodes = [Machine(f"c{i}", "127.0.0.1") for i in range(cls.NODES)]
        cls.daemons = {}
        cls.addClassCleanup(cls.stop)
        cls.ends = None
        cls.start_coordinator()
        for node in cls.nodes:
            cls.start_agent(node.name, "--token-file", cls.token(node.name))
        eventually(lambda: len(cls.ready()) == cls.NODES, "the nodes")

    @classmethod
    def lay_wires(cls):
        """Creates a bridge on the coordinator's machine, and a wire from it to each node."""
        tag = f"mu{os.getpid() % 10000}"
        spaces = [f"{tag}h", *(f"{tag}c{i}" for i in range(cls.NODES))]
        for space in spaces:
            ip("netns", "add", space)
            cls.addClassCleanup(subprocess.run, ["ip", "netns", "del", space], check=False)
            ip("-n", space, "link", "set", "lo", "up")
        head = spaces[0]
        ip("-n", head, "link", "add", "bridge", "type", "bridge")
        ip("-n", head, "address", "add", "10.78.0.1/24", "dev", "bridge")
        ip("-n", head, "link", "set", "bridge", "up")
        cls.head = Machine("head", "10.78.0.1", head)
        cls.nodes = []
        for i, space in enumerate(spaces[1:]):
            node = Machine(f"c{i}", f"10.78.0.{i + 11}", space)
            ip("-n", head, "link", "add", f"to-{node.name}", "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("-n", head, "link", "set", f"to-{node.name}", "master", "bridge", "up")
            ip("-n", space, "address", "add", f"{node.address}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            # As Docker makes it: the same address on every node.
            ip("-n", space, "link", "add", "docker0", "type", "bridge")
            ip("-n", space, "address", "add", "172.17.0.1/16", "dev", "docker0")
            ip("-n", space, "link", "add", "container0", "type", "veth", "peer", "name", "inside0")
            ip("-n", space, "link", "set", "container0", "master", "docker0", "up")
            for device in ("inside0", "docker0"):
                ip("-n", space, "link", "set", device, "up")
            cls.nodes.append(node)

    @classmethod
    def start_coordinator(cls):
        (cls.dir / "data/endpoints.json").unlink(missing_ok=True)
        ends = cls.ends or {"api": "127.0.0.1:0", "listen": "127.0.0.1:0", "listenTls": f"{cls.head.address}:0"}
        cls.daemons["coordinator"] = start_daemon(
            [*cls.head.prefix, MUSTER, "coordinator", "--data-dir", cls.dir / "data", "--api", ends["api"], "--listen", ends["listen"],
             "--listen-tls", ends["listenTls"], "--api-socket", cls.dir / "api.sock", "--pod-failure-backoff-base", "100ms", *cls.FLAGS], cls.dir)
        cls.ends = eventually(lambda: json.loads((cls.dir / "data/endpoints.json").read_text()), "endpoints")
        eventually(lambda: cls.ask("GET", "/readyz")[0] == 200, "ready", 30)

    @classmethod
    def start_agent(cls, name, *flags):
        node = next(one for one in cls.nodes if one.name == name)
        cls.daemons[name] = start_daemon(
            [*node.prefix, MUSTER, "agent", "--coordinator", cls.ends["listenTls"], "--name", name, "--slots", cls.SLOTS, "--work-dir",
             cls.dir / name, "--evict-memory", "0", *(f"--resource=example.com/{seat}=1" for seat in LAUNCHERS), *cls.AGENT_FLAGS, *flags], cls.dir)

    @classmethod
    def kill(cls, name):
        process = cls.daemons.pop(name)
        process.kill()
        process.wait()

    @classmethod
    def stop(cls):
        for name in list(cls.daemons):
            cls.kill(name)
        for pid in living(lambda pid: f"muster-keeper\0{cls.dir}" in read(pid, "cmdline")):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @classmethod
    def send(cls, method, path, body=None, ctype="application/json"):
        connection = users.UnixConnection(str(cls.dir / "api.sock"))
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": ctype})
            response = connection.getresponse()
            return response.status, response.read().decode()

    @classmethod
    def ask(cls, *args):
        code, text = cls.send(*args)
        with contextlib.suppress(ValueError):
            return code, json.loads(text)
        return code, text

    @classmethod
    def muster(cls, *args, **more):
        return subprocess.run([MUSTER, args[0], "--api", f"unix:{cls.dir}/api.sock", *map(str, args[1:])], text=True, capture_output=True, timeout=60, **more)

    @classmethod
    def token(cls, name):
        seats = [word for seat in LAUNCHERS for word in ("--resource", f"example.com/{seat}=1")]
        made = cls.muster("token", "create", "--node", name, *seats, "--out", cls.dir / f"token.{name}")
        assert made.returncode == 0, made.stderr
        return cls.dir / f"token.{name}"

    @classmethod
    def ready(cls):
        items = cls.ask("GET", "/api/v1/nodes")[1].get("items", [])
        return [one["metadata"]["name"] for one in items
                if any(c["type"] == "Ready" and c["status"] == "True" for c in one["status"]["conditions"])]

    # ---- jobs

    def job(self, name, script, pods, mpi="auto", seat=None, spec=(), annotations=(), **pod):
        """An Indexed job; `script` is for sh, or a list of words. `seat`: a resource of which each node has one, so each pod runs on a separate node."""
        command = ["sh", "-c", script.replace("$", "$$")] if isinstance(script, str) else list(script)
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": {"muster.dev/mpi": mpi, **dict(annotations)}},
                "spec": {"completionMode": "Indexed", "completions": pods, "parallelism": pods, "backoffLimitPerIndex": 0,
                         "successPolicy": {"rules": [{"succeededIndexes": "0"}]}, **dict(spec),
                         "template": {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **pod, "containers": [
                             {"name": "main", "command": command, "env": [{"name": k, "value": v} for k, v in ENV.items()],
                              "resources": {"limits": {f"example.com/{seat}": "1"} if seat else {}}}]}}}}

    def create(self, *args, **more):
        job = self.job(*args, **more)
        code, made = self.ask("POST", JOBS, job)
        self.assertEqual(code, 201, made)
        name, uid = made["metadata"]["name"], made["metadata"]["uid"]
        self.addCleanup(self.gone, name, uid)
        return uid

    def gone(self, name, uid):
        """Deletes the job, and waits until no process of it is left on any machine."""
        self.note_run_dirs()
        self.ask("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
        eventually(lambda: not living(lambda pid: variable(pid, "MUSTER_JOB_UID") == uid), f"the end of all processes of {name}", 30)

    def setUp(self):
        self.run_dirs = set()
        self.printers = {}
        self.lines = []
        self.addCleanup(lambda: eventually(lambda: not self.note_run_dirs() and not self.shared(), "no run directories"))

    def note_run_dirs(self):
        now = [path for node in self.nodes for path in (self.dir / node.name / "run").glob("?" * 32)]
        self.run_dirs |= {path.name for path in now}
        return now

    def shared(self):
        return [name for name in self.run_dirs if pathlib.Path("/dev/shm", f"muster-{name}").exists()]

    def job_of(self, name):
        return self.ask("GET", f"{JOBS}/{name}")[1]

    def over(self, name):
        conditions = self.job_of(name).get("status", {}).get("conditions", [])
        return next((c["type"] for c in conditions if c["type"] in ("Complete", "Failed") and c["status"] == "True"), None)

    def completed(self, name, timeout=60):
        self.assertEqual(eventually(lambda: self.over(name), f"the end of {name}", timeout), "Complete",
                         [self.log(name, 0), self.attempts(name)])

    def attempts(self, name):
        return self.ask("GET", f"{MINE}/{name}/attempts")[1].get("items", [])

    def reach_events(self, name):
        items = self.ask("GET", "/api/v1/namespaces/default/events")[1]["items"]
        return [(one["type"], one["reason"], one["message"]) for one in items
                if one["involvedObject"]["name"] == name and one["reason"] in ("NodesUnreachable", "NodesReachable")]

    def log(self, name, index, attempt=0, stream="Stdout"):
        code, text = self.send("GET", f"{MINE}/{name}/log?index={index}&attempt={attempt}&stream={stream}")
        return text if code == 200 else ""

    def rounds(self, name, attempt=0):
        """The rounds that the last rank printed, through its launcher in index 0 or directly."""
        return [int(n) for n in re.findall(r"^round (\d+)$", self.log(name, self.printers.get(name, 0), attempt), re.M)]

    def pods(self, name):
        """Node, pid and name of each running pod, by index."""
        items = self.ask("GET", f"/api/v1/namespaces/default/pods?labelSelector=batch.kubernetes.io/job-name={name}")[1]["items"]
        return {int(p["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]):
                (p["spec"]["nodeName"], int(p["metadata"]["annotations"].get("muster.dev/pid", 0)), p["metadata"]["name"])
                for p in items if p["status"]["phase"] == "Running"}

    def ranks(self, name, attempt=0):
        """What each rank printed: (rank, number of ranks, sum, host, pod, pid)."""
        said = re.findall(r"^rank (\d+) of (\d+) sum (\d+) host (\S+) pod (\S+) pid (\d+)$", self.log(name, 0, attempt), re.M)
        return sorted((int(r), int(n), int(s), host, pod, int(pid)) for r, n, s, host, pod, pid in said)

    def stop_file(self, name):
        path = self.dir / f"stop.{name}"
        self.addCleanup(path.unlink, missing_ok=True)
        return path

    def mpirun(self, *args, **env):
        """A client that runs a program, with these variables in its shell; returns the name of its job, and its process."""
        job = f"line-{len(self.lines)}"
        self.addCleanup(lambda: self.gone(job, self.job_of(job).get("metadata", {}).get("uid", "-")))
        command = [MUSTER, "mpirun", "--api", f"unix:{self.dir}/api.sock", "-J", job, *map(str, args)]
        process = subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL if "stdin" not in env else env.pop("stdin"), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env={**os.environ, **ENV, "HOME": str(self.dir), **env})
        self.lines.append(process)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return job, process

    def start_ring(self, mpi, pods=3, name=None, slots=1, **more):
        name = name or f"ring-{mpi}"
        stop = self.stop_file(name)
        self.create(name, ["muster-mpi-entry", "--", LAUNCHERS[mpi], RING[mpi], str(stop)], pods, f"auto,slots={slots}", **more)
        return name, stop

    def check_ring(self, name, stop, attempt=0):
        """Checks that the ring continues, ends, and printed everything exactly once."""
        self.note_run_dirs()
        self.goes_on(name, attempt)
        stop.touch()
        self.completed(name)
        rounds = self.rounds(name, attempt)
        self.assertEqual(rounds, list(range(len(rounds))))

    def goes_on(self, name, attempt=0):
        before = len(self.rounds(name, attempt))
        eventually(lambda: len(self.rounds(name, attempt)) >= before + 3, f"rounds of {name}", 60)


def read(pid, file):
    with contextlib.suppress(OSError):
        return pathlib.Path("/proc", str(pid), file).read_bytes().decode(errors="replace")
    return ""


def variable(pid, name):
    return next((one.partition("=")[2] for one in read(pid, "environ").split("\0") if one.startswith(f"{name}=")), None)


def parent(pid):
    fields = read(pid, "stat").rpartition(")")[2].split()
    return int(fields[1]) if fields else 0


def living(test):
    """Processes for which test(pid) is true, except zombies."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if test(pid) and read(pid, "stat").rpartition(")")[2].split()[:1] not in ([], ["Z"])]


def child_of_keeper(pid):
    """The process's ancestor that a keeper started, and that keeper."""
    while pid > 1:
        above = parent(pid)
        if read(above, "comm").strip() == "muster-keeper":
            return pid, above
        pid = above
    return None, None


class Ranks(Site):
    """Where ranks run and what their pods get."""

    def check_ranks(self, name, pods, slots, nodes):
        """Checks that each rank is in its own pod: by process tree, host name, network and environment."""
        ranks = eventually(lambda: len(all := self.ranks(name)) == pods * slots and all, f"ranks of {name}", 60)
        self.assertEqual([one[:3] for one in ranks], [(r, pods * slots, sum(range(pods * slots))) for r in range(pods * slots)])
        pods_now = self.pods(name)
        running = {pod: (index, node) for index, (node, _, pod) in pods_now.items()}
        leader = pods_now[0][1:]
        by_pod = {}
        for rank, _, _, host, said, pid in ranks:
            top, keeper = child_of_keeper(pid)
            pod = leader[1] if top == leader[0] else variable(top, "MUSTER_POD_NAME")
            _, node = running[pod]
            self.assertIn(str(self.dir / node), read(keeper, "cmdline"), f"rank {rank} is below another node's keeper")
            if self.apart:
                self.assertEqual(host, node)
                self.assertEqual(os.readlink(f"/proc/{pid}/ns/net"), os.readlink(f"/proc/{keeper}/ns/net"))
            self.assertEqual(said, pod, f"rank {rank}")
            by_pod.setdefault(pod, []).append(rank)
        self.assertEqual({pod: len(of) for pod, of in by_pod.items()}, {pod: slots for pod in running})
        self.assertEqual(len({node for _, node in running.values()}), nodes)

    def test_ranks_land_in_their_pods(self):
        """Both launchers, started by muster-mpi-entry and by a script: one rank per slot, and nothing is left over."""
        for mpi, launcher in LAUNCHERS.items():
            for form in ("entry", "script"):
                name = f"{mpi}-{form}"
                with self.subTest(name):
                    stop = self.stop_file(name)
                    words = ["muster-mpi-entry", "--", launcher, RING[mpi], str(stop)]
                    script = f"if [ $JOB_COMPLETION_INDEX = 0 ]; then {launcher} {RING[mpi]} {stop}; else exec sleep 600; fi"
                    uid = self.create(name, words if form == "entry" else script, 3, "auto,slots=2", seat=mpi)
                    self.check_ranks(name, 3, 2, 3)
                    self.check_ring(name, stop)
                    self.assertEqual([(a["index"], a["exitCode"]) for a in self.attempts(name) if a["index"] == 0], [(0, 0)])
                    self.gone(name, uid)

    def test_ranks_run_with_two_indexes_on_one_node(self):
        for mpi in LAUNCHERS:
            with self.subTest(mpi):
                name, stop = self.start_ring(mpi, name=f"same-{mpi}", slots=2)
                self.check_ranks(name, 3, 2, 1)
                self.check_ring(name, stop)

    def test_each_rank_has_the_variables_of_its_pod(self):
        """Those that muster sets, devices, and those of the container that are expanded; also what the leader's script has set, but only that."""
        show = 'echo "saw $JOB_COMPLETION_INDEX $NODE_RANK $MUSTER_ATTEMPT $OUT $MUSTER_NODE_NAME $MUSTER_RUN_DIR $MUSTER_RESOURCE_example_com_%s $ADDED"'
        for mpi, launcher in LAUNCHERS.items():
            for form in ("entry", "script"):
                name = f"own-{mpi}-{form}"
                with self.subTest(name):
                    export = "export ADDED=\"it's 1\" CUDA_VISIBLE_DEVICES=7; " + launcher + (" -x ADDED" if mpi == "openmpi" else "")
                    run = f"{export} sh -c '{show % mpi}; sleep 0.2'"
                    script = run if form == "entry" else f"if [ $JOB_COMPLETION_INDEX = 0 ]; then {run}; else exec sleep 600; fi"
                    words = ["muster-mpi-entry", "--", "sh", "-c", script.replace("$", "$$")] if form == "entry" else script
                    job = self.job(name, words, 3, "auto,slots=2", seat=mpi)
                    job["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "OUT", "value": "/out/$(NODE_RANK)"})
                    code, made = self.ask("POST", JOBS, job)
                    self.assertEqual(code, 201, made)
                    self.addCleanup(self.gone, name, made["metadata"]["uid"])
                    self.completed(name)
                    saw = sorted(re.findall(r"^saw (\d) (\d) (\d) (\S+) (\S+) (\S+) (\d) (.*)$", self.log(name, 0), re.M))
                    nodes = {a["index"]: a["node"] for a in self.attempts(name)}
                    self.assertEqual([one[:5] + one[6:] for one in saw],
                                     [(str(i), str(i), "0", f"/out/{i}", nodes[i], "0", "it's 1") for i in range(3) for _ in range(2)])
                    self.assertEqual(len({one[5] for one in saw}), 3)

    def test_ranks_of_pods_on_one_node_do_not_share_a_core(self):
        """Each may run on all cores, unless the launcher is told to bind them."""
        all_cores = re.search(r"^Cpus_allowed_list:\s*(.*)$", read(os.getpid(), "status"), re.M)[1]
        for mpi, launcher in LAUNCHERS.items():
            for bound in (False, True):
                name = f"cores-{mpi}-{bound}".lower()
                with self.subTest(name):
                    flags = ["--bind-to" if mpi == "openmpi" else "-bind-to", "core"] if bound else []
                    self.create(name, ["muster-mpi-entry", "--", launcher, *flags, "grep", "Cpus_allowed_list", "/proc/self/status"], 2, mpi,
                                nodeSelector={"kubernetes.io/hostname": "c1"})
                    self.completed(name)
                    cores = re.findall(r"^Cpus_allowed_list:\s*(.*)$", self.log(name, 0), re.M)
                    self.assertEqual(cores, [cores[0] if bound else all_cores] * 2)
                    self.assertEqual(cores[0] == all_cores, not bound)

    def test_ranks_use_the_network_of_the_agents(self):
        """Every node has a bridge with the same address. Between namespaces, UCX would use shared memory, so MPICH must be told to use TCP."""
        if not self.apart:
            self.skipTest("the agents share a network")
        for mpi, launcher in LAUNCHERS.items():
            for form in ("", ",iface=eth0") + (("direct",) if mpi == "mpich" else ()):
                name = f"wire-{mpi}{form}".replace(",iface=", "-")
                with self.subTest(name):
                    direct = form == "direct"
                    program = [RING[mpi]] if direct else ["muster-mpi-entry", "--", launcher, RING[mpi]]
                    job = self.job(name, program, 2, "mpich,direct" if direct else f"{mpi}{form}", seat=mpi, spec={"successPolicy": None} if direct else ())
                    job["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "UCX_TLS", "value": "tcp,self"})
                    code, made = self.ask("POST", JOBS, job)
                    self.assertEqual(code, 201, made)
                    self.addCleanup(self.gone, name, made["metadata"]["uid"])
                    self.completed(name)
                    said = "".join(self.log(name, index) for index in range(2))
                    self.assertEqual(sorted(re.findall(r"^rank (\d) of 2 sum 1 ", said, re.M)), ["0", "1"])

    def test_launchers_reach_more_than_64_hosts(self):
        """Open MPI starts at most 64 hosts directly, unless configured otherwise."""
        for mpi, pods in (("openmpi", 73), ("mpich", 24)):
            with self.subTest(mpi):
                self.create(f"many-{mpi}", ["muster-mpi-entry", "--", LAUNCHERS[mpi], "sh", "-c", "echo from $$MUSTER_POD_NAME."], pods)
                self.completed(f"many-{mpi}", 90)
                said = re.findall(r"^from (\S*)\.$", self.log(f"many-{mpi}", 0), re.M)
                self.assertEqual(sorted(int((re.search(r"-(\d+)-\w+$", pod) or "00")[1]) for pod in said), list(range(pods)))

    def test_run_dir_has_hostfiles_and_peers(self):
        script = "cd $MUSTER_RUN_DIR; tail -n +1 hostfile.* hosts.running peers.json; ./discover_hosts.sh; ls bin; stat -c '%a %n' token .; env"
        self.create("get", f"if [ $JOB_COMPLETION_INDEX = 0 ]; then until [ $(wc -l <$MUSTER_RUN_DIR/hosts.running) = 2 ]; do sleep 0.1; done; {script}; "
                    "else exec sleep 600; fi", 2, "openmpi,slots=3,iface=eth0", seat="mpich")
        self.completed("get")
        said = self.log("get", 0)
        leader, worker = (next(a for a in self.attempts("get") if a["index"] == i) for i in (0, 1))
        own = leader["node"] if self.apart else socket.gethostname()
        for line in (f"{own} slots=3", "get-1 slots=3", f"{own}:3", "get-1:3", "600 token", "700 .", "NNODES=2", "NODE_RANK=0",
                     f"MASTER_ADDR={self.address(leader['node'])}", "OMPI_MCA_btl_tcp_if_include=eth0", "muster-mpi-entry", "muster-rsh"):
            self.assertIn(line, said.splitlines())
        self.assertRegex(said, r'{"index": 1, "attempt": 0, "host": "get-1", "node": "%s", "address": "%s", "state": "Running"}\]' % (
            worker["node"], self.address(worker["node"])))
        self.assertNotIn("HYDRA_", said)
        self.assertNotIn("\nssh", said)

    def address(self, node):
        return next(one.address for one in self.nodes if one.name == node)

    def test_scripts_reach_workers_by_ssh_and_rsh(self):
        script = ("if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; "
                  "ssh -q -o StrictHostKeyChecking=no me@shim-1 'echo \"$JOB_COMPLETION_INDEX; $0\"'; cd /; rsh -n shim-1.example.com 'test -d / && echo there'; "
                  "ssh 1 'echo to stderr >&2; kill -9 $$'; echo $?; for i in 1 2; do ssh 1 'ls -d $OMPI_MCA_orte_tmpdir_base; exit 3'; echo $?; done")
        self.create("shim", script, 2, "auto,ssh-shim")
        self.completed("shim")
        said = self.log("shim", 0).splitlines()
        self.assertEqual(said[:3], ["1; /bin/sh", "there", "137"])
        # Each has its own directory for what Open MPI's daemons would share on one machine, and removes it.
        self.assertEqual((said[4], said[6]), ("3", "3"))
        self.assertRegex(said[3], r"^/dev/shm/muster-\w{32}/\d+$")
        self.assertNotEqual(said[3], said[5])
        self.assertFalse(any(pathlib.Path(said[i]).exists() for i in (3, 5)))
        self.assertEqual(self.log("shim", 0, stream="Stderr"), "to stderr\n")

    def test_ranks_meet_at_master_addr(self):
        """As torchrun does, with MASTER_ADDR, MASTER_PORT, NODE_RANK and NNODES."""
        manifest = (ROOT / "examples/mpi-rendezvous.yaml").read_text()
        made = self.muster("create", "-f", "-", input=manifest)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.addCleanup(self.gone, "mpi-rendezvous", self.job_of("mpi-rendezvous")["metadata"]["uid"])
        self.completed("mpi-rendezvous")
        self.assertRegex(self.log("mpi-rendezvous", 0), r"(?m)^2 nodes met at [0-9.]+:2\d{4}: 0, 1$")

    def test_hostfiles_follow_scaling(self):
        """An elastic job: not a gang, and the leader keeps running while the job grows and shrinks."""
        stop = self.stop_file("elastic")
        script = (f"if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; cd $MUSTER_RUN_DIR; "
                  f"until [ -e {stop} ]; do echo $(./discover_hosts.sh) / $(wc -l <hostfile.openmpi) $(grep -o Running peers.json | wc -l); sleep 0.1; done")
        self.create("elastic", script, 2, "auto,slots=2", annotations={"muster.dev/gang": "false"})
        own = eventually(lambda: self.pods("elastic").get(0), "the leader")[0] if self.apart else socket.gethostname()

        def shows(line):
            eventually(lambda: self.log("elastic", 0).splitlines()[-1:] == [line], line)
        shows(f"{own}:2 elastic-1:2 / 2 2")
        for pods, line in ((3, f"{own}:2 elastic-1:2 elastic-2:2 / 3 3"), (1, f"{own}:2 / 1 1")):
            scaled = self.muster("scale", "job/elastic", "--completions", pods)
            self.assertEqual(scaled.returncode, 0, scaled.stderr)
            shows(line)
        stop.touch()
        self.completed("elastic")


class Shells(Site):
    """muster-rsh by itself: which pods it reaches, and its error messages."""
    NODES = 2

    def rsh(self, name, script, pods=2, mpi="auto", **more):
        """What index 0 printed, while the workers sleep."""
        self.create(name, f"if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; {script}", pods, mpi, **more)
        self.completed(name)
        return (self.log(name, 0, stream="Stdout") + self.log(name, 0, stream="Stderr")).splitlines()

    def test_rsh_refuses_unknown_hosts(self):
        self.assertEqual(self.rsh("names", "for h in other-1 names-7 7 c9; do muster-rsh $h true; echo $?; done; muster-rsh -z names-1 true; echo $?"),
                         ["255"] * 5 + [f"muster-rsh: no pod of this job is called {h}; they are called names-0, names-1"
                                        for h in ("other-1", "names-7", "7", "c9")] +
                         ["muster-rsh: usage: muster-rsh [ssh options] HOST [COMMAND...]",
                          "Runs the command with `sh -c` in the pod of the same MPI job that HOST names."])

    def test_rsh_carries_input(self):
        """As ssh does: from files and pipes, any bytes, to the end; not with -n. Options may follow the host, and without a command, a shell reads."""
        data = self.dir / "bytes"
        data.write_bytes(os.urandom(3_000_000))
        digest = subprocess.run(["sha256sum"], input=data.read_bytes(), capture_output=True, check=True).stdout.decode()
        said = self.rsh("reads", f"muster-rsh reads-1 sha256sum <{data}; cat {data} | muster-rsh reads-1 -q -- sha256sum; "
                        f"muster-rsh -n reads-1 wc -c <{data}; muster-rsh reads-1 wc -c; "
                        "echo 'echo at $JOB_COMPLETION_INDEX' | muster-rsh reads-1; "
                        "for i in 1 2 3; do echo $i; done | while read i; do muster-rsh -n reads-1 echo loop $i; done; "
                        "(echo one; while [ ! -e $MUSTER_RUN_DIR/on ]; do sleep 0.05; done; echo two) | muster-rsh reads-1 cat | "
                        "while read line; do echo $line; touch $MUSTER_RUN_DIR/on; done; muster-rsh reads-1 head -c 1 <" + f"{data} | wc -c; echo end")
        self.assertEqual(said, [digest.strip()] * 2 + ["0", "0", "at 1", "loop 1", "loop 2", "loop 3", "one", "two", "1", "end"])

    def test_scp_says_what_to_do(self):
        said = self.rsh("copy", "scp a copy-1:b; echo $?", mpi="auto,ssh-shim")
        self.assertEqual(said[0], "255")
        self.assertTrue(said[1].startswith("muster-rsh: scp is not available; to copy a file, use ssh HOST 'cat >FILE' <FILE"), said)

    def test_a_worker_that_does_not_start(self):
        """The leader's node has no seat left for the worker."""
        said = self.rsh("late", "MUSTER_RSH_TIMEOUT=1 muster-rsh late-1 true; echo $?", seat="mpich",
                        spec={"parallelism": 2}, annotations={"muster.dev/gang": "false"}, nodeSelector={"kubernetes.io/hostname": "c1"})
        self.assertEqual(said, ["255", "muster-rsh: late-1 could not be reached within 1 s: its pod does not run"])

    def test_rsh_tokens_reach_only_their_job(self):
        """A job reaches only its own pods, even among jobs of one user and with copied tokens."""
        stop = self.stop_file("first")
        self.create("first", f"cp $MUSTER_RSH_TOKEN_FILE {self.dir}/token-of-$JOB_COMPLETION_INDEX; echo ready; "
                    f"until [ -e {stop} ]; do sleep 0.1; done", 2, seat="openmpi")
        eventually(lambda: all("ready" in self.log("first", i) for i in (0, 1)), "the first job")
        pods = eventually(lambda: len(all := self.pods("first")) == 2 and all, "both pods")
        here = {index: node for index, (node, _, _) in pods.items()}
        # In another job on the other node, with a copy of the first job's token beside its own.
        script = ("cp $TOKEN $MUSTER_RUN_DIR/other; printf 1-0-0-0-%064d 0 >$MUSTER_RUN_DIR/wrong; "
                  "muster-rsh first-1 true; MUSTER_RSH_TOKEN_FILE=$MUSTER_RUN_DIR/other muster-rsh first-1 true; "
                  "MUSTER_RSH_TOKEN_FILE=$MUSTER_RUN_DIR/wrong muster-rsh second-1 true; MUSTER_RSH_TOKEN_FILE=$MUSTER_RUN_DIR/none muster-rsh second-1 true; "
                  "MUSTER_RSH_TOKEN_FILE= muster-rsh second-1 true; true")
        said = self.rsh("second", f"export TOKEN={self.dir}/token-of-0; {script}", nodeSelector={"kubernetes.io/hostname": here[1]})
        refused = "muster-rsh: the token does not belong to a running pod of this user on this node"
        self.assertEqual([re.sub(r"in /.*/none", "in NONE", line) for line in said],
                         ["muster-rsh: no pod of this job is called first-1; they are called second-0, second-1", refused, refused,
                          "muster-rsh: there is no token in NONE",
                                "muster-rsh: MUSTER_RSH_TOKEN_FILE is not set: this runs only in pods of a job with the annotation muster.dev/mpi"])
        # On the token's own node, once its pod has ended.
        stop.touch()
        self.completed("first")
        said = self.rsh("third", f"cp {self.dir}/token-of-0 $MUSTER_RUN_DIR/other; MUSTER_RSH_TOKEN_FILE=$MUSTER_RUN_DIR/other muster-rsh third-1 true; true",
                        nodeSelector={"kubernetes.io/hostname": here[0]})
        self.assertEqual(said, [refused])


class Failures(Site):
    """What happens when parts of a job die."""

    def start_both(self, pods=3):
        """A running ring of each MPI, with each pod on a separate node."""
        jobs = [self.start_ring(mpi, pods, seat=mpi) for mpi in LAUNCHERS]
        for name, _ in jobs:
            self.goes_on(name)
        return jobs

    def test_ranks_survive_kills_of_coordinator_and_agents(self):
        """The coordinator, a worker's agent and the leader's agent are killed and restarted, and an agent is frozen. No program notices."""
        jobs = self.start_both()
        stop = self.stop_file("lines")
        line = f"i=0; until [ -e {stop} ]; do i=$((i+1)); echo line $i; sleep 0.05; done; exit 7"
        self.create("lines", f"if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; muster-rsh lines-1 '{line}'; echo code $?", 2,
                    nodeSelector={"kubernetes.io/hostname": "c3"})

        def lines():
            return [int(n) for n in re.findall(r"^line (\d+)$", self.log("lines", 0), re.M)]

        def all_go_on():
            before = len(lines())
            for name, _ in jobs:
                self.goes_on(name)
            eventually(lambda: len(lines()) > before + 3, "lines", 30)
        all_go_on()
        places = {name: {index: node for index, (node, _, _) in self.pods(name).items()} for name, _ in jobs}
        pids = {name: {rank[5] for rank in self.ranks(name)} for name, _ in jobs}
        self.kill("coordinator")
        self.start_coordinator()
        all_go_on()
        agents = ["c3", *{places[name][index] for name, _ in jobs for index in (0, 2)} - {"c3"}]
        for node in agents:
            self.kill(node)
            self.start_agent(node)
            all_go_on()
        frozen = self.daemons[places[jobs[0][0]][1]]
        frozen.send_signal(signal.SIGSTOP)
        try:
            self.goes_on(jobs[0][0])
        finally:
            frozen.send_signal(signal.SIGCONT)
        all_go_on()
        stop.touch()
        self.completed("lines")
        said = lines()
        self.assertEqual(said, list(range(1, len(said) + 1)))
        self.assertTrue(self.log("lines", 0).endswith("\ncode 7\n"))
        for name, stop in jobs:
            self.assertEqual({rank[5] for rank in self.ranks(name)}, pids[name])
            self.check_ring(name, stop)
            self.assertEqual({a["attempt"] for a in self.attempts(name)}, {0})
            self.assertEqual(self.reach_events(name), [], "an agent that restarts is no trouble of the network")

    def test_killed_leader_restarts_all_ranks(self):
        """Its ranks disappear everywhere, and the next attempt has new ones."""
        jobs = [self.start_ring(mpi, seat=mpi, spec={"backoffLimitPerIndex": 1}) for mpi in LAUNCHERS]
        for name, stop in jobs:
            with self.subTest(name):
                self.goes_on(name)
                ranks = {rank[5] for rank in self.ranks(name)}
                os.kill(self.pods(name)[0][1], signal.SIGKILL)
                eventually(lambda: not ranks & set(living(lambda pid: pid in ranks)), "the end of its ranks", 10)
                self.check_ring(name, stop, attempt=1)
                self.assertEqual([a["exitCode"] for a in self.attempts(name) if a["index"] == 0], [137, 0])

    def test_job_attempt_has_exit_code_of_the_leader(self):
        for mpi, launcher in LAUNCHERS.items():
            with self.subTest(mpi):
                self.create(f"code-{mpi}", ["muster-mpi-entry", "--", "sh", "-c", f"{launcher} {RING[mpi]}; exit 9"], 2,
                            spec={"backoffLimit": 0, "backoffLimitPerIndex": None})
                self.assertEqual(eventually(lambda: self.over(f"code-{mpi}"), "its end", 60), "Failed")
                self.assertEqual([a["exitCode"] for a in self.attempts(f"code-{mpi}") if a["index"] == 0], [9])
                self.assertEqual(len(self.ranks(f"code-{mpi}")), 2)

    def test_killed_worker_fails_the_openmpi_leader(self):
        """Its pod, or only the launcher's daemon in it: Open MPI notices both, and its leader fails."""
        for what in ("pod", "daemon"):
            with self.subTest(what):
                name, _ = self.start_ring("openmpi", name=f"kill-{what}", seat="openmpi")
                self.goes_on(name)
                rank = next(rank for rank in self.ranks(name) if rank[0] == 1)
                daemon = parent(rank[5])
                self.assertEqual(read(daemon, "comm").strip(), "orted")
                os.kill(self.pods(name)[1][1] if what == "pod" else daemon, signal.SIGKILL)
                code = eventually(lambda: [a["exitCode"] for a in self.attempts(name) if a["index"] == 0 and a.get("exitCode")], "the leader's end", 30)
                self.assertNotEqual(code, [0])
                pids = {one[5] for one in self.ranks(name)}
                eventually(lambda: not living(lambda pid: pid in pids), "the end of all ranks", 10)
                self.ask("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Background"})

    def test_killed_worker_without_retries_is_named_as_cause(self):
        """Whether the leader or the worker is reported first, the failure is charged to the worker, and every message names it."""
        limits = {"index": {"maxFailedIndexes": 0}, "alone": {}, "job": {"backoffLimit": 0, "backoffLimitPerIndex": None}}
        why = "index 1 (attempt 0) failed with exit code 137"
        for mpi in LAUNCHERS:
            for limit, spec in limits.items():
                with self.subTest(mpi=mpi, limit=limit):
                    name, _ = self.start_ring(mpi, name=f"last-{mpi}-{limit}", seat=mpi, spec=spec)
                    self.goes_on(name)
                    os.kill(self.pods(name)[1][1], signal.SIGKILL)
                    self.assertEqual(eventually(lambda: self.over(name), "its end", 60), "Failed")
                    status = self.job_of(name)["status"]
                    said = next(c["message"] for c in status["conditions"] if c["type"] == "Failed")
                    self.assertTrue(said.endswith(f": {why}"), [said, self.attempts(name)])
                    self.assertEqual((status["failed"], status.get("failedIndexes", "")), (1, "" if limit == "job" else "1"))
                    leader, worker = (next(a for a in self.attempts(name) if a["index"] == index) for index in (0, 1))
                    self.assertEqual((leader.get("disruption"), leader["counted"]), ("WorkerFailed", "released"), leader)
                    self.assertIn(why, leader.get("message", why))
                    self.assertEqual((worker.get("disruption"), worker["counted"]), (None, "failed"), worker)
                    self.assertIn(why, self.muster("why", f"job/{name}").stdout)
                    self.assertIn(why, self.muster("describe", "job", name).stdout)

    def test_killed_worker_restarts_hydra_ranks_once(self):
        """When a worker or Hydra's proxy in it dies, the leader ends, one failure is charged whichever side notices first, and all ranks restart."""
        for what in ("pod", "daemon"):
            with self.subTest(what):
                name, stop = self.start_ring("mpich", name=f"hydra-{what}", seat="mpich", spec={"backoffLimitPerIndex": 1})
                self.goes_on(name)
                ranks = self.ranks(name)
                rank = next(rank for rank in ranks if rank[0] == 1)
                pod = self.pods(name)[1][1] if what == "pod" else parent(rank[5])
                os.kill(pod, signal.SIGKILL)
                eventually(lambda: [a for a in self.attempts(name) if a["index"] == 0 and a.get("ended")], "the leader's end", 15)
                eventually(lambda: not living(lambda pid: pid in {one[5] for one in ranks}), "the end of its ranks", 10)
                self.check_ring(name, stop, attempt=1)
                self.assertEqual(self.job_of(name)["status"]["failed"], 1)

    def test_a_gang_restarts_whole(self):
        """With muster.dev/restart: gang, the death of one worker restarts leader and workers together and is charged once, to index 0."""
        for mpi in LAUNCHERS:
            with self.subTest(mpi):
                name, stop = self.start_ring(mpi, name=f"whole-{mpi}", seat=mpi, annotations={"muster.dev/restart": "gang"}, spec={"backoffLimitPerIndex": 1})
                self.goes_on(name)
                old = {rank[5] for rank in self.ranks(name)}
                os.kill(self.pods(name)[2][1], signal.SIGKILL)
                eventually(lambda: self.rounds(name, 1), "the next round of ranks", 60)
                self.assertFalse(living(lambda pid: pid in old))
                self.check_ring(name, stop, attempt=1)
                self.assertEqual({(a["index"], a["attempt"]) for a in self.attempts(name)}, {(i, k) for i in range(3) for k in range(2)})
                self.assertEqual(self.job_of(name)["status"]["failed"], 1)
                # The failure is charged to index 0, which has no retries here, so one death is too many.
                name, _ = self.start_ring(mpi, name=f"spent-{mpi}", seat=mpi, annotations={"muster.dev/restart": "gang"})
                self.goes_on(name)
                os.kill(self.pods(name)[1][1], signal.SIGKILL)
                self.assertEqual(eventually(lambda: self.over(name), "its end", 60), "Failed")
                self.assertEqual(self.job_of(name)["status"].get("failedIndexes"), "0")

    def test_a_launcher_that_hangs_is_ended(self):
        """Hydra does not notice that muster-rsh has failed."""
        self.create("hangs", f"if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; exec mpiexec.hydra -hosts hangs-1,nowhere {RING['mpich']}", 2)
        self.assertEqual(eventually(lambda: self.over("hangs"), "its end", 90), "Failed")
        said = next(a for a in self.attempts("hangs") if a["index"] == 0)
        self.assertIn("no pod of this job is called nowhere", said.get("message", ""), said)

    def test_a_leader_that_fails_for_good_ends_the_job(self):
        self.create("gone", "if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; exit 3", 3)
        self.assertEqual(eventually(lambda: self.over("gone"), "its end", 90), "Failed")

    def test_ranks_without_launcher_survive_kills_and_restart_together(self):
        """Each index is a rank. The coordinator and an agent are killed while the ranks run; the failure of one rank restarts all of them."""
        name, stop = "ranks", self.stop_file("ranks")
        self.printers = {"ranks": 2, "one": 1}
        self.create(name, [RING["mpich"], str(stop)], 3, "mpich,direct", seat="mpich", spec={"backoffLimitPerIndex": 1, "successPolicy": None})
        self.goes_on(name)
        places = {index: node for index, (node, _, _) in self.pods(name).items()}
        self.kill("coordinator")
        self.start_coordinator()
        self.goes_on(name)
        self.kill(places[1])
        self.start_agent(places[1])
        self.goes_on(name)
        os.kill(self.pods(name)[2][1], signal.SIGKILL)
        eventually(lambda: self.rounds(name, 1), "the next round of ranks", 60)
        self.check_ring(name, stop, attempt=1)
        self.assertEqual(self.job_of(name)["status"]["completedIndexes"], "0-2")
        self.assertEqual({(a["index"], a["attempt"]) for a in self.attempts(name)}, {(i, k) for i in range(3) for k in range(2)})
        stop = self.stop_file("one")
        self.create("one", [RING["mpich"], str(stop)], 2, "mpich,direct", spec={"successPolicy": None})
        self.goes_on("one")
        os.kill(self.pods("one")[1][1], signal.SIGKILL)
        self.assertEqual(eventually(lambda: self.over("one"), "its end", 90), "Failed")


    def test_ranks_save_their_work_when_they_are_ended(self):
        """Whatever ends the job, the leader's launcher gets SIGTERM first, and all its grace. Open MPI's kills ranks a second after SIGTERM."""
        if not self.apart:
            self.skipTest("the pods' nodes must differ")

        def evict(name, index):  # as drain does
            pod = self.pods(name)[index][2]
            self.ask("POST", f"/api/v1/namespaces/default/pods/{pod}/eviction",
                     {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": "default"}})
        ways = {"suspend": lambda name: self.muster("suspend", f"job/{name}"), "cancel": lambda name: self.muster("cancel", f"job/{name}"),
                "delete": lambda name: self.ask("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Background"}),
                "evict-leader": lambda name: evict(name, 0), "evict-worker": lambda name: evict(name, 1),
                "deadline": lambda name: self.send("PATCH", f"{JOBS}/{name}", {"spec": {"activeDeadlineSeconds": 1}}, "application/merge-patch+json")}
        for mpi, seconds in (("openmpi", "0.3"), ("mpich", "2")):
            for way, end in ways.items():
                name = f"saves-{mpi}-{way}"
                with self.subTest(name):
                    folder = self.dir / name
                    folder.mkdir()
                    self.create(name, ["muster-mpi-entry", "--", LAUNCHERS[mpi], ENDS[mpi], "save", str(folder), seconds], 3, mpi, seat=mpi,
                                terminationGracePeriodSeconds=20)
                    eventually(lambda: self.log(name, 0).count("started") == 3, "the ranks", 30)
                    leader = self.pods(name)[0][1]
                    self.note_run_dirs()
                    end(name)
                    eventually(lambda: not living(lambda pid: pid == leader), "the end of the leader", 30)
                    self.assertEqual(sorted(path.name for path in folder.iterdir()), ["0", "1", "2"])
                    self.ask("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Background"})

    def test_ranks_are_warned_of_the_time_limit(self):
        """muster.dev/signal reaches the ranks of all pods, through the launcher; the pods of the workers ignore it."""
        for mpi in LAUNCHERS:
            with self.subTest(mpi):
                folder = self.dir / f"warned-{mpi}"
                folder.mkdir()
                self.create(f"warned-{mpi}", ["muster-mpi-entry", "--", LAUNCHERS[mpi], ENDS[mpi], "save", str(folder), "0.5"], 3, mpi, seat=mpi,
                            annotations={"muster.dev/signal": "USR1@20"}, activeDeadlineSeconds=25)
                self.completed(f"warned-{mpi}")
                self.assertEqual(sorted(path.name for path in folder.iterdir()), ["0", "1", "2"])

    def test_a_rank_without_launcher_that_leaves_ends_all(self):
        """One that aborts, and one that exits without MPI_Finalize, for which the others would wait: each with its code, or 1 if that is 0."""
        for how, given, code in (("abort", 7, 7), ("exit", 5, 5), ("exit", 0, 1)):
            for rank in (0, 2):
                name = f"leaves-{how}-{given}-{rank}"
                with self.subTest(name):
                    uid = self.create(name, [ENDS["mpich"], how, str(rank), str(given)], 3, "mpich,direct", seat="mpich", spec={"successPolicy": None})
                    self.assertEqual(eventually(lambda: self.over(name), "its end", 30), "Failed")
                    said = next(c["message"] for c in self.job_of(name)["status"]["conditions"] if c["type"] == "Failed")
                    self.assertEqual(said, f"A rank has failed: index {rank} (attempt 0) failed with exit code {code}")
                    left = f"muster-pmi: rank {rank} exited with 0 without MPI_Finalize\n"
                    self.assertEqual(left in self.log(name, rank, stream="Stderr"), given == 0)
                    self.gone(name, uid)

    def test_ranks_without_launcher_save_and_finalize_when_ended(self):
        """MPI_Finalize has a barrier, at which ranks that are being ended must not wait for each other until they are killed."""
        folder = self.dir / "saved"
        folder.mkdir()
        self.create("saves", [ENDS["mpich"], "save", str(folder), "0.3"], 3, "mpich,direct", seat="mpich", spec={"successPolicy": None},
                    terminationGracePeriodSeconds=60)
        eventually(lambda: all("started" in self.log("saves", i) for i in range(3)), "the ranks")
        self.assertEqual(self.muster("suspend", "job/saves").returncode, 0)
        eventually(lambda: not self.pods("saves") and all("finalized" in self.log("saves", i) for i in range(3)), "the end of all ranks", 30)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), ["0", "1", "2"])
        self.assertEqual({a["exitCode"] for a in self.attempts("saves")}, {0})


class OneLine(Site):
    """muster mpirun and submit --mpi on a coordinator."""
    NODES = 2

    def test_stdin_goes_to_rank_0(self):
        """From a pipe and from a file, of which nothing is lost."""
        file = self.dir / "input"
        count = 'rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; n=-; if [ $rank = 0 ]; then n=$(wc -c); fi; echo rank $rank read $n'
        for mpi, lines in (("openmpi", 60_000), ("mpich", 1_000)):  # Hydra by itself fails with much more
            text = "".join(f"line {i}\n" for i in range(lines))
            file.write_text(text)
            for source in ("pipe", "file", "none"):
                with self.subTest(mpi=mpi, source=source), file.open() as opened:
                    stdin = {"pipe": subprocess.PIPE, "file": opened, "none": subprocess.DEVNULL}[source]
                    _, process = self.mpirun("-N", 2, "--mpi", mpi, "--", "sh", "-c", count, stdin=stdin)
                    out, err = process.communicate(text if source == "pipe" else None, timeout=60)
                    self.assertEqual(process.returncode, 0, err)
                    self.assertEqual(sorted(out.splitlines()), [f"rank 0 read {0 if source == 'none' else len(text)}", "rank 1 read -"], err)

    def test_ctrl_c_and_timeout_end_the_ranks(self):
        """And leave them with --detach."""
        ways = {"INT": (signal.SIGINT, 130), "TERM": (signal.SIGTERM, 130), "timeout": (None, 124), "detach": (signal.SIGINT, 130)}
        for mpi in LAUNCHERS:
            for way, (number, code) in ways.items():
                with self.subTest(mpi=mpi, way=way):
                    flags = {"timeout": ("--timeout", "4s"), "detach": ("--detach",)}.get(way, ())
                    job, process = self.mpirun("-N", 2, "--mpi", mpi, *flags, "--grace", "5s", "--", RING[mpi], self.dir / "never")
                    ranks = eventually(lambda: len(all := self.ranks(job)) == 2 and {one[5] for one in all}, "the ranks", 30)
                    if number is not None:
                        process.send_signal(number)
                    out, err = process.communicate(timeout=30)
                    self.assertEqual(process.returncode, code, err)
                    left = living(lambda pid: pid in ranks)
                    self.assertEqual(len(left), 2 if way == "detach" else 0, err)
                    conditions = {c["type"]: c["reason"] for c in self.job_of(job)["status"].get("conditions", []) if c["status"] == "True"}
                    self.assertEqual(conditions.get("Failed"), None if way == "detach" else "Cancelled")

    def test_settings_of_mpi_reach_ranks_and_launchers(self):
        """Those of the shell, unless they say how ranks start, and those of flags."""
        show = "echo $OMPI_MCA_btl $UCX_TLS $OMPI_MCA_mpi_show_handle_leaks"
        _, process = self.mpirun("-N", 2, "--mpi", "openmpi", "--mca", "mpi_show_handle_leaks", 1, "--", "sh", "-c", show,
                                 OMPI_MCA_btl="tcp,self", UCX_TLS="tcp", OMPI_MCA_plm_rsh_agent="/bin/false")
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (0, "tcp,self tcp 1\n" * 2), err)
        for mpi in LAUNCHERS:
            with self.subTest(mpi):
                _, process = self.mpirun("-N", 2, "-ppn", 2, "-np", 6, "--mpi", mpi, "--bind-to", "none", "--oversubscribe", "--", RING[mpi])
                out, err = process.communicate(timeout=60)
                self.assertEqual((process.returncode, sorted(re.findall(r"^rank (\d+) of 6", out, re.M))), (0, list("012345")), err)

    def test_a_host_waits_for_the_cpus_of_its_slots(self):
        cpus = len(os.sched_getaffinity(0))
        job, process = self.mpirun("-N", 2, "--slots", cpus, "--cpus-per-rank", 2, "--mpi", "openmpi", "--", RING["openmpi"])
        eventually(lambda: f"the pod requests {2 * cpus} cpu" in self.muster("why", f"job/{job}").stdout, "why says what it lacks")
        line = process.stderr.readline()
        while "waiting" not in line or line.startswith("0/2"):
            line = process.stderr.readline()
            self.assertTrue(line, "the client says what it waits for")
        self.assertIn(f"the pod requests {2 * cpus} cpu", process.stderr.readline())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        container = self.job_of(job)["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(container["resources"]["requests"], {"cpu": str(2 * cpus)})
        for flags, threads in (((), ""), (("--oversubscribe",), ""), (("--cpus", 1), "1"), (("--cpus-per-rank", 2), "2")):
            with self.subTest(flags):
                job, process = self.mpirun("-N", 1, *flags, "--mpi", "openmpi", "--", "sh", "-c", "echo threads $OMP_NUM_THREADS")
                out, err = process.communicate(timeout=60)
                self.assertEqual((process.returncode, out.strip()), (0, f"threads {threads}".strip()), err)
                container = self.job_of(job)["spec"]["template"]["spec"]["containers"][0]
                self.assertEqual("requests" in container.get("resources", {}), flags != ("--oversubscribe",))

    def test_hosts_are_on_different_nodes(self):
        """As many as there are, where sites pack their jobs on few; with --placement pack they are on one."""
        if not self.apart:
            self.skipTest("the agents share a host name")
        for flags, nodes in (((), 2), (("--placement", "pack"), 1)):
            _, process = self.mpirun("-N", 2, "--mpi", "openmpi", *flags, "--", RING["openmpi"])
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
            self.assertEqual(len(set(re.findall(r" host (\S+) ", out))), nodes, out)

    def test_programs_run_one_after_another_in_an_allocation(self):
        for mpi, launcher in LAUNCHERS.items():
            with self.subTest(mpi):
                made = self.muster("submit", "--mpi", mpi, "-N", 2, "--slots", 2, "-J", f"alloc-{mpi}", "--grace", "1s", "--", "sleep", "infinity",
                                   env={**os.environ, **ENV})
                self.assertEqual(made.returncode, 0, made.stderr)
                self.addCleanup(self.gone, f"alloc-{mpi}", self.job_of(f"alloc-{mpi}")["metadata"]["uid"])
                eventually(lambda: len(self.pods(f"alloc-{mpi}")) == 2, "its pods")
                for _ in range(2):
                    done = self.muster("exec", f"job/alloc-{mpi}", "--index", 0, "--", launcher, RING[mpi])
                    self.assertEqual((done.returncode, sorted(re.findall(r"^rank (\d+) of 4 sum 6 ", done.stdout, re.M))), (0, list("0123")), done.stderr)
                self.assertEqual(self.muster("cancel", f"job/alloc-{mpi}").returncode, 0)  # the next one needs its CPUs

    def test_submit_runs_a_command_that_calls_the_launcher(self):
        for mpi, launcher in LAUNCHERS.items():
            with self.subTest(mpi):
                made = self.muster("submit", "--mpi", mpi, "-N", 2, "--slots", 2, "-J", f"batch-{mpi}", "--grace", "1s", "--", "sh", "-c",
                                   f"echo before; {launcher} {RING[mpi]}", env={**os.environ, **ENV})
                self.assertEqual(made.returncode, 0, made.stderr)
                self.addCleanup(self.gone, f"batch-{mpi}", self.job_of(f"batch-{mpi}")["metadata"]["uid"])
                self.completed(f"batch-{mpi}")
                self.assertEqual([rank[:2] for rank in self.ranks(f"batch-{mpi}")], [(i, 4) for i in range(4)])
                self.assertEqual(self.log(f"batch-{mpi}", 0).count("before"), 1)


class Bound(Site):
    """Ranks of pods that have CPUs for themselves."""
    NODES = 1
    AGENT_FLAGS = ("--cpu-binding", "cores")

    def test_ranks_run_on_the_cpus_of_their_pods(self):
        mine = sorted(os.sched_getaffinity(0))
        if len(mine) < 2:
            self.skipTest("this machine has one CPU")
        show = 'echo "cpus $MUSTER_POD_NAME $(grep Cpus_allowed_list /proc/self/status | cut -f2) $MUSTER_CPUS"'
        for mpi, launcher in LAUNCHERS.items():
            name = f"bound-{mpi}"
            with self.subTest(name):
                job = self.job(name, ["muster-mpi-entry", "--", launcher, "sh", "-c", show.replace("$", "$$")], 2, f"{mpi},slots=2")
                job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
                code, made = self.ask("POST", JOBS, job)
                self.assertEqual(code, 201, made)
                self.addCleanup(self.gone, name, made["metadata"]["uid"])
                self.completed(name)
                said = re.findall(r"^cpus (\S+) (\S+) (\S+)$", self.log(name, 0), re.M)
                self.assertEqual(len(said), 4, self.log(name, 0))
                by_pod = {pod: cpus for pod, cpus, _ in said}
                self.assertEqual(set(said), {(pod, cpus, cpus) for pod, cpus in by_pod.items()}, "both ranks of a pod, and as the variable says")
                self.assertEqual(len(set(by_pod.values())), 2, by_pod)
                self.assertTrue(all(cpus.isdigit() for cpus in by_pod.values()), by_pod)


class Apart(Site):
    """Two nodes that do not reach each other, although the coordinator reaches both."""

    def cut(self, one, other):
        """Packets from one node to the other, and so answers to the other one's, are refused."""
        space = one.prefix[3]
        ip("-n", space, "route", "add", "unreachable", f"{other.address}/32")
        self.addCleanup(subprocess.run, ["ip", "-n", space, "route", "del", "unreachable", f"{other.address}/32"], check=False, capture_output=True)

    def mend(self, one, other):
        ip("-n", one.prefix[3], "route", "del", "unreachable", f"{other.address}/32")

    def why(self, name):
        return self.muster("why", f"job/{name}").stdout

    def test_nodes_that_do_not_reach_each_other_are_named(self):
        """At the start and in mid-run. Nothing is ended for it, and other jobs are not told."""
        if not self.apart:
            self.skipTest("the agents share a network")
        c0, c1, c2, c3 = self.nodes
        ends = [f"{node.name} ({node.address})" for node in (c0, c2)]
        says = f"nodes (?:{re.escape(' and '.join(ends))}|{re.escape(' and '.join(ends[::-1]))}) do not reach each other: (?:no route to host|no answer within)"
        self.cut(c0, c2)
        self.create("torn", "exec sleep 600", 4, seat="openmpi")
        self.create("whole", "exec sleep 600", 2, seat="mpich", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [c1.name, c3.name]}]}]}}})
        eventually(lambda: re.search(says, self.why("torn")), "what is wrong at the start", 30)
        self.assertEqual(len(re.findall("do not reach|does not reach", self.why("torn"))), 1, self.why("torn"))
        self.assertIn("iface=NAME in muster.dev/mpi", self.why("torn"))
        eventually(lambda: any(one[:2] == ("Warning", "NodesUnreachable") and re.search(says, one[2]) for one in self.reach_events("torn")), "its event")
        _, line = self.mpirun("-N", "4", "--", "sleep", "600")  # its daemon on c2 does not reach the leader
        os.set_blocking(line.stderr.fileno(), False)
        said = []

        def told():
            with contextlib.suppress(BlockingIOError):
                said.append(os.read(line.stderr.fileno(), 4096).decode())
            return re.search(f"muster: {says}", "".join(said))
        eventually(told, "what is wrong, in the terminal", 30)
        line.kill()
        self.mend(c0, c2)
        eventually(lambda: ("Normal", "NodesReachable", "the nodes of the job reach each other again") in self.reach_events("torn"), "the end of it", 60)
        self.assertNotIn("reach each other", self.why("torn"))
        self.cut(c2, c0)
        eventually(lambda: re.search(says, self.why("torn")), "what is wrong in mid-run", 60)
        self.kill("coordinator")
        self.start_coordinator()
        eventually(lambda: re.search(says, self.why("torn")), "that a restarted coordinator finds it, too", 60)
        eventually(lambda: len(self.pods("torn")) == 4, "that all pods still run")
        self.assertEqual(self.attempts("torn"), [])
        self.assertEqual(self.reach_events("whole"), [])
        self.assertNotIn("reach each other", self.why("whole"))


class LostNodes(Site):
    """A node is cut off while its ranks keep running."""
    FLAGS = ("--node-grace", "4s")

    def test_worker_on_a_lost_node_is_replaced(self):
        for mpi in LAUNCHERS:
            with self.subTest(mpi):
                name, stop = self.start_ring(mpi, seat=mpi, spec={"backoffLimitPerIndex": 1})
                self.goes_on(name)
                lost, old = self.pods(name)[1][0], {rank[5] for rank in self.ranks(name)}
                self.kill(lost)
                leader = eventually(lambda: next((a for a in self.attempts(name) if a["index"] == 0 and a.get("ended")), None), "the leader's end", 30)
                self.assertIn("index 1 (attempt 0) failed with exit code 137: its node was lost", json.dumps(leader))
                self.start_agent(lost)
                self.check_ring(name, stop, attempt=1)
                eventually(lambda: not living(lambda pid: pid in old), "the end of the old ranks", 20)


class Examples(unittest.TestCase):
    def test_mpi_examples_run_unchanged(self):
        for path in sorted((ROOT / "examples").glob("mpi-*.yaml")):
            with self.subTest(path.name):
                done = subprocess.run([MUSTER, "run", "--timeout", "60s", path], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=90)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"hello from rank 3 of 4|hello from rank 1 of 2|2 nodes met")


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("useradd"), "needs root, to make users")
class Owners(users.RootKeeper):
    """A node whose keeper runs as root: each user's ranks run as that user and cannot reach the other's."""

    @classmethod
    def setUpClass(cls):
        users.for_class(cls)

    def job(self, name, script, pods=2):
        return Site.job(self, name, script, pods, "auto,slots=2")

    def test_rings_of_two_users_run_side_by_side(self):
        """Both rings run at once, each as its user; neither job's leader reaches a pod of the other."""
        for mpi, launcher in LAUNCHERS.items():
            stop = self.dir / f"stop.{mpi}"
            for user, other in (("alice", "bob"), ("bob", "alice")):
                self.create(user, self.job(f"{mpi}-of-{user}", "if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; "
                                           f"{launcher} sh -c 'id -u; exec {RING[mpi]} {stop}'; code=$?; muster-rsh {mpi}-of-{other}-1 id; echo code $?; exit $code"))

            def said(user):
                return self.log(user, f"{mpi}-of-{user}")[1].splitlines()

            def rounds(user):
                return len([line for line in said(user) if line.startswith("round ")])
            for _ in range(2):
                before = {user: rounds(user) for user in ("alice", "bob")}
                for user, count in before.items():
                    eventually(lambda: rounds(user) > count + 2, f"rounds of {user}", 90)
            stop.touch()
            for user, other in (("alice", "bob"), ("bob", "alice")):
                # A leader that still runs 3 s after muster-rsh has failed is ended, so it tries the other's pod last.
                self.assertEqual(self.end(user, f"{mpi}-of-{user}"), "Complete")
                lines = said(user)
                self.assertEqual(lines.count(str(pwd.getpwnam(users.name(user)).pw_uid)), 4, lines)
                self.assertEqual(len([line for line in lines if line.startswith("rank ") and " of 4 sum 6 " in line]), 4, lines)
                self.assertIn("code 255", lines)
                self.assertEqual([line for line in lines if "uid=" in line], [])
                self.assertTrue([line for line in lines if line.startswith(f"muster-rsh: no pod of this job is called {mpi}-of-{other}-1")], lines)

    def test_rsh_token_of_another_user_is_refused(self):
        stop = self.dir / "stop"
        self.create("alice", self.job("a", f"cat $MUSTER_RSH_TOKEN_FILE; echo; until [ -e {stop} ]; do sleep 0.1; done"))
        token = eventually(lambda: self.log("alice", "a")[1].strip(), "her token")
        bob = self.job("b", "if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; mkdir /tmp/$MUSTER_POD_NAME; cd /tmp/$MUSTER_POD_NAME; "
                       f"ln -s $(dirname $MUSTER_RUN_DIR)/agent.sock ..; printf %s {token} >$(pwd)/token; ls $(dirname $MUSTER_RUN_DIR); "
                       "muster-rsh a-1 id; echo $?; MUSTER_RSH_TOKEN_FILE=$(pwd)/token muster-rsh a-1 id; echo $?; rm -r $(pwd) ../agent.sock")
        self.assertEqual(self.finish("bob", bob), "Complete")
        said = self.log("bob", "b")[1].splitlines()
        self.assertEqual([line for line in said if "uid=" in line], [])
        self.assertEqual(said.count("255"), 2)
        self.assertIn("muster-rsh: no pod of this job is called a-1; they are called b-0, b-1", said)
        self.assertIn("muster-rsh: the token does not belong to a running pod of this user on this node", said)
        stop.touch()

    def test_p10_the_agents_socket_is_for_users_with_a_pod_here(self):
        stop = self.dir / "stop"
        self.create("alice", self.job("a", f"if [ $JOB_COMPLETION_INDEX != 0 ]; then exec sleep 600; fi; dirname $MUSTER_RUN_DIR; "
                                      f"until [ -e {stop} ]; do sleep 0.1; done; muster-rsh a-1 echo reached"))
        where = eventually(lambda: self.log("alice", "a")[1].strip(), "the directory of the socket") + "/agent.sock"

        def talk(user, count, words, size):
            """Begins messages of so many words on so many connections; returns how many of them the agent closes."""
            script = ("import socket, struct, sys\nheld, closed = [], 0\n"
                      "for _ in range(int(sys.argv[2])):\n    s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1]); held.append(s)\n"
                      "    try: s.sendall(struct.pack('<II', 0, int(sys.argv[4])) + bytes(int(sys.argv[3])))\n    except OSError: pass\n"
                      "for s in held:\n    try:\n        while s.recv(4096): pass\n        closed += 1\n"
                      "    except ConnectionError: closed += 1\n    except TimeoutError: break\n"
                      "print(closed)\n")
            done = subprocess.run(["/usr/bin/python3", "-c", script, where, str(count), str(size), str(words)], text=True, capture_output=True, timeout=60,
                                  preexec_fn=users.become(user), cwd="/")
            self.assertEqual(done.returncode, 0, done.stderr)
            return int(done.stdout)
        self.assertEqual(talk("bob", 1, 8, 0), 1, "he has no pod on this node")
        self.assertEqual(talk("alice", 25, 60 << 17, 60 << 20), 25, "no message is that long")
        stop.touch()
        self.assertEqual(self.end("alice", "a"), "Complete")
        self.assertIn("reached", self.log("alice", "a")[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
