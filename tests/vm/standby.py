#!/usr/bin/python3
"""Power cuts of coordinators: two virtual machines run a coordinator and an agent each, on disks that forget unflushed writes, and lose power under load.

    standby.py [--cuts N] [--seed S]      default: 3 rounds of cuts, a minute and a half; with MUSTER_LONG=1: 40, about a quarter of an hour

The coordinators are of one cluster (docs/standby.md); the etcd that decides which of them leads runs on the host and keeps power, as do the client
(client.py) and the witness of the pods (witness.py). In each round the machine that leads loses power, or both do at once, or the one that follows, or
the one that has just taken the lead. Each disk that may lead afterwards is opened on the host, alone: what was acknowledged must be on all of them, not
just on the one that takes the lead. After each boot, everything accepted, answered or shown must still hold; at the end each attempt must count once,
with its actual outcome. A muster that does not sync (nosync.c) must fail the test.

Prints `ok NAME` or `FAIL NAME: WHY` for each check, like the scenarios of vm.py.
"""
import argparse
import itertools
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e" / "lib")]
import machine  # noqa: E402
import replay  # noqa: E402
import vm  # noqa: E402

os.environ.setdefault("MUSTER", str(vm.MUSTER))
from client import UNREACHABLE, Client  # noqa: E402
from coordinators import Etcd  # noqa: E402
from machine import AGENTS, API, HOST, Machine  # noqa: E402
from power import LIMIT, LONG, Checks, Machines, eventually, judge, over, ports, say  # noqa: E402

NAMES = ("one", "two")
PEERS = 7119  # the port for the other coordinator in a guest
# Who loses power, one after the other: the machine that leads, the one that follows, or the one that has just taken the lead.
ROUNDS = (["leader"], ["leader", "follower"], ["follower"], ["leader", "heir"])


def address(name, port):
    """Where the other machine reaches this one."""
    return f"10.77.0.{1 + NAMES.index(name)}:{port}"


class Roaming(Client):
    """A client with a list of coordinators, of which it asks the next one when one does not answer."""

    def __init__(self, all_ports, disk, seed):
        super().__init__(all_ports[0], disk, seed)
        self.ports = itertools.cycle(all_ports[1:] + all_ports[:1])

    def call(self, *words, **options):
        try:
            return super().call(*words, **{"timeout": 5, **options})
        except UNREACHABLE:
            self.port = next(self.ports)
            raise


class Cluster(Machines):
    """The two machines, their etcd, the witness and the client."""

    def __init__(self, folder, guest, seed, **settings):
        super().__init__()
        self.folder, self.guest, self.seed, self.settings = folder, guest, seed, settings
        (folder / "etcd").mkdir(parents=True)
        self.etcd = Etcd(folder / "etcd")
        self.apis, self.wires, self.replay_ports = ports(2), ports(2), ports(2)

    def add(self, name, files=None):
        """Makes a machine whose disk has these files, and powers it on."""
        number = NAMES.index(name)
        one = Machine(name, "head", self.folder, self.guest, self.witness, self.seed, files=files, slots=4, preload=self.settings.get("preload", ""),
                      coordinator=",".join(address(other, AGENTS) for other in NAMES), peers=address(name, PEERS),
                      store=f"etcd:http://{HOST}:{self.etcd.clients[0]}")
        one.settings["witness"] = one.listener.port
        one.forwards = {API: self.apis[number]}
        # A network of the two alone, as datagrams between their emulators: whether the other one has power makes no difference to either.
        one.devices = ["-netdev", f"socket,id=peers,udp=127.0.0.1:{self.wires[1 - number]},localaddr=127.0.0.1:{self.wires[number]}", "-device",
                       f"virtio-net-pci,netdev=peers,mac=52:54:00:77:00:0{1 + number},romfile="]
        self.machines[name] = one
        if self.client is None:
            self.client = Roaming(self.apis, one.disk, self.seed)
        one.power_on()
        return one

    def start(self):
        """Powers on the first machine, and the other with a token to follow it, and waits until it does."""
        self.add(NAMES[0])
        eventually(lambda: self.client.read() is not None, "the first coordinator serves")
        files = self.folder / "files-of-two"
        files.mkdir()
        subprocess.run([vm.MUSTER, "token", "create", "--coordinator", address(NAMES[1], PEERS), "--api", f"127.0.0.1:{self.apis[0]}",
                        "--out", files / "token", "--request-timeout", "60s"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.add(NAMES[1], files)
        eventually(self.in_sync, "the second coordinator is in sync")

    def configuration(self):
        return self.etcd.get("configuration")

    def may_lead(self):
        """The machines that may lead, as etcd says."""
        return {name for name in NAMES if address(name, PEERS) in self.configuration()["inSync"]}

    def in_sync(self):
        """Whether each may lead, and the one that leads has the other."""
        self.check()
        code, found = self.client.call("GET", "/apis/muster.dev/v1/coordinators")
        return code == 200 and self.may_lead() == set(NAMES) and [one["status"]["connected"] for one in found["items"]] == [True] * len(NAMES)

    def leader(self):
        return next(name for name in NAMES if address(name, PEERS) == self.configuration()["leader"])

    def lacking(self):
        """Opens each disk that may lead, as it is now. Returns what is missing there, one per line. No machine may have power."""
        with self.client.lock:
            memory = self.client.memory.copy()
        problems = {}
        for name in sorted(self.may_lead()):
            image = self.folder / "state.img"
            replay.write(image, self.machines[name].disk.safe)
            problems[name] = [f"disk of {name}: {line}" for line in replay.wrong(vm.MUSTER, image, memory, self.folder, self.replay_ports)]
        return problems

    def close(self):
        super().close()
        self.etcd.kill()


def cut_some(cluster, victims, rng, problems):
    """Cuts the power of these, under load, and powers them on again. Returns how many disks were opened meanwhile."""
    leader = cluster.leader()
    other = next(name for name in NAMES if name != leader)
    names = [{"leader": leader, "follower": other, "heir": other}[victim] for victim in victims]
    disk = cluster.machines[names[0]].disk
    if rng.random() < 0.5:
        time.sleep(rng.random())
    else:  # between two disk requests
        disk.cut_at = rng.randrange(100)
        disk.is_cut.wait(4)
    opened = 0
    for name, victim in zip(names, victims):
        if victim == "heir":  # which leads alone when it loses power
            eventually(lambda: cluster.check() and cluster.leader() == other and cluster.client.read(), "the other one serves")
        cluster.cut(name)
    if all(one.guest is None for one in cluster.machines.values()):
        found = cluster.lacking()
        opened = len(found)
        problems += [line for lines in found.values() for line in lines]
    else:  # the other one goes on without it
        eventually(lambda: cluster.check() and names[0] not in cluster.may_lead() and cluster.client.read(), "the other one serves alone")
    rng.shuffle(names)
    for name in names:
        cluster.machines[name].power_on()
    eventually(lambda: cluster.check() and cluster.client.read(), "a coordinator serves")
    eventually(cluster.in_sync, "both are in sync")
    return opened


def play(folder, guest, rounds, seed, checks):
    rng, opened, problems = random.Random(seed), 0, []
    cluster = Cluster(folder, guest, seed)
    began = time.monotonic()
    try:
        cluster.start()
        client = cluster.client
        eventually(cluster.ready, "two nodes")
        say(f"{time.monotonic() - began:6.1f} s  both coordinators are in sync")
        client.create("long", max(40, rounds * 15), {"parallelism": 8, "backoffLimitPerIndex": LIMIT})
        client.start()
        for victims in itertools.islice(itertools.cycle(ROUNDS), rounds):
            before = cluster.witness.ends()
            eventually(lambda: cluster.check() and cluster.witness.ends() >= before + 3 and client.read(), "pods end")  # noqa: B023
            opened += cut_some(cluster, victims, rng, problems)
            say(f"{time.monotonic() - began:6.1f} s  cut: {', then '.join(victims)}; {cluster.witness.ends()} ends, {len(client.memory.jobs)} jobs,"
                f" {client.reads} lists, {cluster.writes_lost()} writes lost or torn")
        client.stop_writing()
        eventually(cluster.ready, "two nodes")
        items = eventually(lambda: cluster.check() and over(client.read()), "all jobs end")
        cluster.check()
        checks.check("standby_acknowledged_is_on_each_disk_that_may_lead", problems)
        compared = judge(cluster, items, checks, "standby")
        say(f"{time.monotonic() - began:6.1f} s  {client.reads} lists compared, {cluster.writes_lost()} unflushed writes lost or torn")
        say(f"proof {sum(cluster.cuts.values())} power cuts of machines under load")
        say(f"proof {compared} ends of pods checked after power cuts")
        say(f"proof {opened} disks of coordinators opened after power cuts")
    except Exception:
        cluster.logs()
        raise
    finally:
        cluster.close()


def planted(folder, guest, seed, checks):
    """Checks that a muster that does not sync is exposed by each disk."""
    cluster = Cluster(folder, guest, seed, preload="/muster/nosync.so")
    try:
        cluster.start()
        while len(cluster.client.memory.jobs) < 5:
            cluster.client.create(*cluster.client.small())
        for name in NAMES:
            cluster.cut(name)
        found = cluster.lacking()
    finally:
        cluster.close()
    checks.check("standby_missing_syncs_are_noticed", [f"{name}: missing syncs went undetected" for name in NAMES if not found.get(name)])
    say("proof 1 planted faults noticed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=40 if LONG else 3, help="rounds of cuts")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1_000_000))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no machine is left running
    say(f"standby: --seed {options.seed} makes the same choices again")
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="muster-standby-") as name:
        folder = pathlib.Path(name)
        guest = machine.stage(folder)
        play(folder / "cuts", guest, options.cuts, options.seed, checks)
        planted(folder / "planted", guest, options.seed, checks)
    say("done")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
