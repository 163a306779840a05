"""Separate hosts for agents: each has a network namespace and a wire to the coordinator's host that can be cut in either direction or
both, delayed and made lossy.

A wire is a pair of tun devices and a thread that carries packets between them, so it needs only /dev/net/tun from the kernel, no netem or
packet filter. The test's own process moves to a network namespace, which is the coordinator's host. Namespaces and devices live only as
long as their descriptors, so nothing is left behind, whatever happens to the test.
"""
import contextlib
import ctypes
import fcntl
import heapq
import itertools
import json
import os
import random
import select
import shutil
import struct
import subprocess
import threading
import time
import unittest

from world import Cluster

HEAD = "10.79.0.1"
UP, DOWN = "up", "down"  # from the node to the coordinator, and back
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
MTU = 1500


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, text=True)


def enter_new_network():
    """Moves the calling thread and everything it starts to a new network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    ip("link", "set", "lo", "up")


def become_head():
    """Makes this process the coordinator's host, or skips the module."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("needs root, to make network namespaces")
    missing = [tool for tool in ("ip", "nsenter") if not shutil.which(tool)]
    if missing:
        raise unittest.SkipTest(f"not installed: {', '.join(missing)}")
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
        enter_new_network()
    except (OSError, subprocess.CalledProcessError) as error:
        raise unittest.SkipTest(f"this machine allows no network namespaces or tun devices: {error}") from error
    ip("address", "add", f"{HEAD}/32", "dev", "lo")


def tun(name, address, peer):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    ip("address", "add", address, "peer", peer, "dev", name)
    ip("link", "set", name, "mtu", MTU, "up")
    return fd


class Wire(threading.Thread):
    """Carries packets between a node and the coordinator's host. Its faults may change at any time."""

    def __init__(self, head, node, seed=0):
        super().__init__(daemon=True)
        self.ends = {UP: (node, head), DOWN: (head, node)}  # for each direction: from, to
        self.cut = set()
        self.delay = self.jitter = self.loss = 0.0  # seconds, seconds, fraction of all packets
        self.carried, self.dropped = dict.fromkeys((UP, DOWN), 0), dict.fromkeys((UP, DOWN), 0)
        self.chance = random.Random(seed)
        self.stopping = threading.Event()
        self.start()

    def run(self):
        """Packets in flight arrive even if the wire is cut behind them; with jitter they overtake each other, as in a real network."""
        directions = {source: (way, target) for way, (source, target) in self.ends.items()}
        poll = select.poll()
        for source in directions:
            poll.register(source, select.POLLIN)
        under_way, order = [], itertools.count()
        while not self.stopping.is_set():
            wait = min(0.1, under_way[0][0] - time.monotonic()) if under_way else 0.1
            for source, _ in poll.poll(max(0, wait * 1000)):
                way, target = directions[source]
                with contextlib.suppress(OSError):
                    packet = os.read(source, MTU + 100)
                    if way in self.cut or self.chance.random() < self.loss:
                        self.dropped[way] += 1
                        continue
                    due = time.monotonic() + self.delay + self.jitter * self.chance.random()
                    heapq.heappush(under_way, (due, next(order), way, target, packet))
            while under_way and under_way[0][0] <= time.monotonic():
                _, _, way, target, packet = heapq.heappop(under_way)
                with contextlib.suppress(OSError):  # the device is down
                    os.write(target, packet)
                    self.carried[way] += 1

    def close(self):
        self.stopping.set()
        self.join()
        for fd in self.ends[UP]:
            os.close(fd)


class Host:
    """A node's machine: a network namespace at the other end of a wire."""
    numbers = itertools.count(1)

    def __init__(self):
        number = next(self.numbers)
        self.device, self.address = f"wire{number}", f"10.79.{number // 200 + 1}.{number % 200 + 10}"
        made = {}

        def elsewhere():
            enter_new_network()
            made["space"] = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            made["tun"] = tun("eth0", self.address, HEAD)
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        self.space = made["space"]
        self.wire = Wire(tun(self.device, HEAD, self.address), made["tun"], seed=number)

    def command(self):
        """The prefix of a command to be run on this host."""
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.space}"]

    def link(self, state):
        """Sets the coordinator's end "up" or "down". While it is down, sends fail at once, unlike after a cut."""
        ip("link", "set", self.device, state)

    def close(self):
        self.wire.close()
        os.close(self.space)


class Hosts(Cluster):
    """A cluster whose agents are on separate hosts, connected by mutual TLS."""

    def __init__(self, *args, **kwargs):
        self.hosts = {}
        self.tls = f"{HEAD}:0"
        super().__init__(*args, **kwargs)

    def start_coordinator(self):
        flags, self.extra = self.extra, [*self.extra, "--listen-tls", self.tls]
        try:
            super().start_coordinator()
        finally:
            self.extra = flags
        self.tls = json.loads((self.dir / "coordinator/endpoints.json").read_text())["listenTls"]

    def command(self, name):
        return self.hosts[name].command()

    def start_agent(self, name, slots=None, extra=()):
        flags = [*self.agent_extra, *extra]
        if name not in self.hosts:
            self.hosts[name] = Host()
            token = self.dir / f"{name}.token"
            subprocess.run([self.bin, "token", "create", "--node", name, "--slots-max", "10000", "--out", token, "--api",
                            self.api_addr], check=True, capture_output=True)
            flags += ["--token-file", token]
        with open(self.dir / f"{name}.log", "ab") as log:
            self.agents[name] = subprocess.Popen(
                [*self.command(name), self.bin, "agent", "--coordinator", self.tls, "--name", name, "--slots", str(slots or self.slots),
                 "--work-dir", self.dir / name, *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def wire(self, name):
        return self.hosts[name].wire

    def close(self):
        super().close()
        for host in self.hosts.values():
            host.close()
