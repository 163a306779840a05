"""Several coordinators of one cluster, and the etcd that decides which of them leads, as real processes on loopback addresses."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

from world import Cluster, eventually, start_daemon

Api = Cluster.__init__.__globals__["Api"]
MUSTER = os.environ["MUSTER"]


def free_ports(count):
    """Ports that are free now; another process may still take one."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Etcd:
    """An etcd of one or more members."""

    def __init__(self, folder, members=1, host="127.0.0.1"):
        self.folder, self.host = folder, host
        ports = free_ports(2 * members)
        self.clients, peers = ports[:members], ports[members:]
        self.cluster = ",".join(f"m{i}=http://{host}:{port}" for i, port in enumerate(peers))
        self.peers = peers
        self.members = [None] * members
        for i in range(members):
            self.start(i)
        eventually(self.answers, "etcd answers")

    def start(self, i, state="new"):
        client, peer = (f"http://{self.host}:{port}" for port in (self.clients[i], self.peers[i]))
        with open(self.folder / "etcd.log", "ab") as log:
            self.members[i] = subprocess.Popen(
                ["etcd", "--name", f"m{i}", "--data-dir", self.folder / f"etcd{i}", "--listen-client-urls", client, "--advertise-client-urls",
                 client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", self.cluster,
                 "--initial-cluster-state", state, "--unsafe-no-fsync"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    @property
    def store(self):
        return "etcd:" + ",".join(f"http://{self.host}:{port}" for port in self.clients)

    def answers(self):
        return self.ctl("--command-timeout", "2s", "get", "none").returncode == 0

    def ctl(self, *words):
        ends = ",".join(f"{self.host}:{port}" for port in self.clients)
        return subprocess.run(["etcdctl", "--endpoints", ends, *words], env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, text=True,
                              timeout=20)

    def get(self, key):
        done = self.ctl("get", "--print-value-only", f"/muster/{key}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def stop(self, count=None):
        for member in self.members[:count]:
            member.send_signal(signal.SIGSTOP)

    def go_on(self):
        for member in self.members:
            member.send_signal(signal.SIGCONT)

    def kill(self):
        for member in self.members:
            member.kill()
            member.wait()

    def wipe(self):
        self.kill()
        for i in range(len(self.members)):
            shutil.rmtree(self.folder / f"etcd{i}")
            self.start(i)
        eventually(self.answers, "the new etcd answers")


class Coordinator:
    def __init__(self, site, name, host="127.0.0.1", prefix=()):
        self.site, self.name, self.host, self.prefix = site, name, host, prefix
        self.api_addr, self.listen, self.peers = (f"{host}:{port}" for port in free_ports(3))
        self.api = Api(self.api_addr)
        self.data = site.dir / name
        self.env = {}
        self.process = None

    def command(self, *more):
        return [*self.prefix, MUSTER, "coordinator", "--data-dir", self.data, "--api", self.api_addr, "--listen", self.listen, "--api-socket", "none",
                "--listen-socket", "none", "--store", self.site.store, "--peers", self.peers, *self.site.flags, *more]

    def start(self, *more):
        folder = self.site.dir / f"{self.name}.d"
        folder.mkdir(exist_ok=True)
        self.process = start_daemon(self.command(*more), folder, env={**os.environ, **self.env})
        return self

    def log(self):
        return (self.site.dir / f"{self.name}.d/coordinator.log").read_text(errors="replace")

    def says(self, text, timeout=20, of=None):
        start = 0 if of is None else of
        eventually(lambda: text in self.log()[start:], f"{self.name} says {text!r}", timeout)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)


class Seen:
    """What Memory expects of a cluster, at one coordinator."""

    def __init__(self, one):
        self.api = one.api


class Coordinators:
    """`count` coordinators, of which the first one leads."""
    HOST = "127.0.0.1"  # of etcd
    AGENT_FLAGS = ()

    def __init__(self, count=2, etcds=1, slots=4, flags=("--node-grace", "5s", "--pod-failure-backoff-base", "100ms")):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-standby-"))
        self.flags = list(flags)
        self.agents = {}
        self.all = []
        self.slots = slots
        self.etcd = Etcd(self.dir, etcds, self.HOST)
        self.store = self.etcd.store
        try:
            for i in range(count):
                self.add(f"c{i + 1}")
        except BaseException:  # nobody else has it yet
            self.close()
            raise

    def make(self, name):
        return Coordinator(self, name)

    def add(self, name):
        one = self.make(name)
        self.all.append(one)
        if len(self.all) == 1:
            one.start()
            self.wait_serving()
        else:
            one.start("--join-token", self.join_token(one))
            self.wait_in_sync(one)
        return one

    def join_token(self, one):
        path = self.dir / f"{one.name}.token"
        done = self.muster("token", "create", "--coordinator", one.name, "--out", path)
        assert done.returncode == 0, done.stderr
        return path

    def muster(self, *args, of=None, timeout=60):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.dir), "MUSTER_API": (of or self.all[0]).api_addr}
        return subprocess.run([MUSTER, *map(str, args)], text=True, capture_output=True, timeout=timeout, env=env)

    def wait_serving(self, of=None, timeout=20):
        for one in [of] if of else self.all:
            eventually(lambda one=one: one.api.call("GET", "/readyz", timeout=2)[0] == 200, f"{one.name} serves", timeout)

    def wait_in_sync(self, *ones, timeout=20):
        for one in ones or self.all:
            eventually(lambda one=one: one.peers in self.etcd.get("configuration")["inSync"], f"{one.name} is in sync", timeout)

    def wait_out_of_sync(self, one, timeout=20):
        eventually(lambda: one.peers not in self.etcd.get("configuration")["inSync"], f"{one.name} is not in sync", timeout)

    def leader(self):
        name = self.etcd.get("configuration")["leader"]
        return next(one for one in self.all if one.peers == name)

    def follower(self):
        return next(one for one in self.all if one is not self.leader())

    def start_agent(self, name, slots=None):
        folder = self.dir / f"{name}.d"
        folder.mkdir(exist_ok=True)
        self.agents[name] = start_daemon(
            [MUSTER, "agent", "--coordinator", ",".join(one.listen for one in self.all), "--work-dir", self.dir / name, "--name", name,
             "--slots", slots or self.slots, *self.AGENT_FLAGS], folder)
        eventually(lambda: name in self.muster("get", "nodes", "-o", "name").stdout, f"node {name}")

    # What the suites' Memory and World expect of a cluster.
    @property
    def api(self):
        return self.all[0].api

    def close(self):
        for one in self.all:
            if one.process is not None:
                with contextlib.suppress(OSError):
                    one.thaw()
                one.kill()
        for agent in self.agents.values():
            agent.kill()
            agent.wait()
        self.etcd.go_on()
        self.etcd.kill()
        subprocess.run(["pkill", "-KILL", "-f", f"muster-keeper {self.dir}"], check=False)
        if not os.environ.get("KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)
