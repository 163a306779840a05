#!/usr/bin/python3
"""Power cuts: virtual machines run muster under load, on disks that forget unflushed writes, and lose power many times in a row.

    power.py [--cuts N] [--replays FLUSHES] [--seed S]      default: 4 cuts, 5 flushes; with MUSTER_LONG=1: 100 and 100, which takes half an hour
                                                        (plus a third as many flushes of the node's disk)

`head` runs a coordinator and an agent, `node` runs an agent (power.sh). Each loses power at random times, under load or during a boot, alone or
with the other. The client (client.py) and the witness of the pods (witness.py) run on the host. After each boot, everything accepted, answered or
shown must still hold; at the end each attempt must count once, with its actual outcome. Then the head's disk is rebuilt and opened as of a sample of its
flushes, and both disks as of a sample of the node's (replay.py). A muster that does not sync (nosync.c) must fail the test.

Prints `ok NAME` or `FAIL NAME: WHY` for each check, like the scenarios of vm.py. The seed determines which machine loses power, when, and what the disk
forgets, but not what the guests have done by then.
"""
import argparse
import collections
import contextlib
import itertools
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent import futures

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import machine  # noqa: E402
import replay  # noqa: E402
import vm  # noqa: E402
from client import UNREACHABLE, Client  # noqa: E402
from machine import AGENTS, API, HOST, Machine  # noqa: E402
from memory import indexes  # noqa: E402
from witness import Witness  # noqa: E402

LONG = bool(os.environ.get("MUSTER_LONG"))
VICTIMS = (["head"], ["node"], ["head", "node"], ["node", "head"])
LIMIT = 2      # retries per index of the long job
PAUSE = 0.05   # seconds between polls
PATIENCE = 300  # seconds to wait for anything that must happen


def plan(name, index, attempt):
    """Returns how long a pod runs, in ms, and its exit code; some fail on purpose."""
    ms = 10 + (index * 37 + attempt * 11) % 7 * 60
    if name != "long":
        return ms, 3 if int(name.split("-")[1]) % 7 == 0 else 0
    failures = 99 if index % 50 == 49 else 2 if index % 7 == 0 else 1 if index % 3 == 0 else 0
    return (3000 if index % 8 == 5 else ms), 0 if attempt >= failures else 1 + index % 5


def ports(count):
    """Picks free ports below the kernel's ephemeral range, so that they are still free when a machine reboots."""
    found = []
    while len(found) < count:
        port = random.SystemRandom().randrange(20000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(port)
    return found


def eventually(look, what, timeout=PATIENCE):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with contextlib.suppress(*UNREACHABLE):
            answer = look()
            if answer:
                return answer
        time.sleep(PAUSE)
    raise AssertionError(f"{what}: not in {timeout} s")


class Machines:
    """Machines that lose power, the witness of their pods and the client of their cluster. Each machine is a node."""

    def __init__(self):
        self.machines, self.cuts = {}, collections.Counter()
        self.witness, self.client = Witness(plan), None

    def cut(self, name):
        self.machines[name].cut()
        self.cuts[name] += 1

    def close(self):
        if self.client is not None:
            self.client.stopping.set()
        for one in self.machines.values():
            one.close()

    def ready(self):
        """Whether the coordinator serves and all nodes are ready."""
        code, nodes = self.client.call("GET", "/api/v1/nodes")
        conditions = [{one["type"]: one["status"] for one in node["status"]["conditions"]} for node in nodes["items"]] if code == 200 else []
        return len(conditions) == len(self.machines) and all(one["Ready"] == "True" for one in conditions)

    def writes_lost(self):
        return sum(one.disk.lost for one in self.machines.values())

    def wrong(self):
        """Returns the problems that the client, the witness and the consoles have found so far, one per line."""
        return self.client.wrong + self.witness.wrong + [line for one in self.machines.values() for line in one.faults]

    def check(self):
        wrong = self.wrong() + [f"{one.name}: QEMU ended" for one in self.machines.values() if one.stopped()]
        if wrong:
            raise AssertionError("\n".join(wrong[:20]))
        return True

    def logs(self):
        for one in self.machines.values():
            say(f"---- {one.name}", one.log(), sep="\n")


class Cluster(Machines):
    """The two machines, the witness and the client."""

    def __init__(self, folder, guest, seed, names=("head", "node"), **settings):
        super().__init__()
        api, agents, *self.replay_ports = ports(4)
        for name in names:
            role = "head" if name == "head" else "node"
            coordinator = f"127.0.0.1:{AGENTS}" if role == "head" else f"{HOST}:{agents}"
            one = Machine(name, role, folder, guest, self.witness, seed, coordinator=coordinator, slots=4, **settings)
            one.settings["witness"] = one.listener.port
            self.machines[name] = one
        self.head = self.machines["head"]
        self.head.forwards = {API: api, AGENTS: agents}
        self.client = Client(api, self.head.disk, seed)
        self.rng, self.rng_of_pairs = (random.Random(f"{seed} {what}") for what in ("cluster", "pairs"))
        self.known = None
        self.pairs, self.most_pairs, self.folder = [], 0, folder
        if "node" in self.machines:
            self.machines["node"].disk.before_flush = self.perhaps_pair
        self.recordings = []  # of the head's disk, from power-on to a cut: what was known before, the disk then, the log

    def power_on(self, name):
        if name == "head" and (len(self.recordings) < 2 or self.rng.random() < 0.1):
            self.known = self.client.record()
        self.machines[name].power_on()

    def perhaps_pair(self):
        if len(self.pairs) < self.most_pairs and self.rng_of_pairs.random() < 0.1:
            self.pairs.append(replay.Pair(self.folder, len(self.pairs), self.machines, self.client))

    def cut(self, name):
        super().cut(name)
        if name == "head" and self.head.disk.recorded:
            self.recordings.append((self.known, *self.head.disk.recorded))


def cut_some(cluster, names, rng):
    """Cuts the power of these machines under load, and perhaps again while the first boots."""
    disk = cluster.machines[names[0]].disk
    if rng.random() < 0.5:
        time.sleep(rng.random() * 2)
    else:  # between two disk requests
        disk.cut_at = rng.randrange(100)
        disk.is_cut.wait(4)
    for name in names:
        cluster.cut(name)
        if len(names) > 1:
            time.sleep(rng.choice((0, 3)) * rng.random())  # meanwhile pods end unreported
    for name in names:
        cluster.power_on(name)
    while rng.random() < 0.5:  # again, during the boot
        disk.cut_at = rng.randrange(120)
        disk.is_cut.wait(15)
        cluster.cut(names[0])
        cluster.power_on(names[0])


def history(cluster, problems):
    """Compares the history of every job with the witness's records and the job's status. Returns the number of attempts compared."""
    client, ran = cluster.client, {}
    compared = 0
    for run in cluster.witness.runs:
        if run.pod in ran:
            problems.append(f"{run.pod} was started twice, on {ran[run.pod].machine} and {run.machine}")
        ran[run.pod] = run
    for item in eventually(client.read, "a list of jobs"):
        name, status = item["metadata"]["name"], item["status"]
        counted = collections.Counter()
        seen, won = set(), set()
        for one in eventually(lambda: client.attempts(name), "attempts"):  # noqa: B023
            pod = name, one["index"], one["attempt"]
            run = ran.pop(pod, None)
            counted[one["counted"]] += 1
            compared += 1
            if pod in seen:
                problems.append(f"{pod} counted twice")
            seen.add(pod)
            if one["counted"] == "succeeded":
                if one["index"] in won:
                    problems.append(f"{pod}: the index had already succeeded")
                won.add(one["index"])
            if one["cause"] == "exited" and (run is None or run.code != one["exitCode"]):
                problems.append(f"{pod} counts as exit {one['exitCode']}, the witness has {run}")
            if one["cause"] != "exited" and one["counted"] not in ("ignored", "released"):
                problems.append(f"{pod}: {one['cause']} counts as {one['counted']}")
            if one["cause"] != "exited" and run and run.boot == cluster.machines[run.machine].listener.boot:
                problems.append(f"{pod}: {one['cause']} on {run.machine}, which did not lose power since: {one}")
        if name in cluster.client.memory.perhaps_gone:
            continue
        if status.get("succeeded", 0) != counted["succeeded"] or indexes(status.get("completedIndexes")) != won or len(won) != status.get("succeeded", 0):
            problems.append(f"{name}: status has {status}, the history {counted}")
        if status.get("failed", 0) != counted["failed"]:
            problems.append(f"{name}: failed {status.get('failed', 0)}, the history has {counted}")
        unknown = [run for pod, run in ran.items() if pod[0] == name]
        if unknown:
            problems.append(f"{name}: the history lacks {unknown[:3]}")
    return compared


def expected(item):
    """Whether a job ended as planned."""
    name, status, total = item["metadata"]["name"], item["status"], item["spec"]["completions"]
    if name == "long":
        dead = {index for index in range(total) if plan(name, index, LIMIT)[1]}
        return indexes(status.get("failedIndexes")) == dead and indexes(status.get("completedIndexes")) == set(range(total)) - dead
    if plan(name, 0, 0)[1]:
        return any(one["type"] == "Failed" for one in status["conditions"])
    return status.get("succeeded") == total


def over(items):
    """Returns the jobs if all have finished."""
    return items and all({one["type"] for one in item["status"].get("conditions") or []} & {"Complete", "Failed"} for item in items) and items


def say(*words, **options):
    print(*words, **options, flush=True)


class Checks:
    def __init__(self):
        self.failed = 0

    def check(self, name, problems):
        if problems:
            self.failed += 1
            say(f"FAIL {name}: {problems[0]}", *problems[1:20], sep="\n    ")
        else:
            say(f"ok {name}")


def judge(cluster, items, checks, scenario):
    """Checks what is left once all these jobs are over. Returns the number of attempts compared."""
    problems = [f"{item['metadata']['name']}: {item['status']}" for item in items if not expected(item)]
    compared = history(cluster, problems)
    checks.check(f"{scenario}_every_end_counts_once", problems)
    recount = subprocess.run([vm.MUSTER, "verify", "--api", f"127.0.0.1:{cluster.client.port}", "--request-timeout", "120s"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
    checks.check(f"{scenario}_recount", [recount.stdout] if recount.returncode else [])
    checks.check(f"{scenario}_nothing_taken_back", cluster.wrong())
    return compared


def play(folder, guest, cuts, pairs, seed, checks):
    rng, victims = random.Random(seed), itertools.cycle(VICTIMS)
    cluster = Cluster(folder, guest, seed)
    cluster.most_pairs = pairs
    began = time.monotonic()
    try:
        for name in cluster.machines:
            cluster.power_on(name)
        client = cluster.client
        eventually(cluster.ready, "two nodes")
        client.create("long", max(40, cuts * 10), {"parallelism": 8, "backoffLimitPerIndex": LIMIT})
        client.start()
        while sum(cluster.cuts.values()) < cuts:
            before = cluster.witness.ends()
            eventually(lambda: cluster.check() and cluster.witness.ends() >= before + 3 and client.read(), "pods end")  # noqa: B023
            names = next(victims)
            cut_some(cluster, names, rng)
            say(f"{time.monotonic() - began:6.1f} s  {sum(cluster.cuts.values())} cuts, the last of {' and '.join(names)};"
                f" {cluster.witness.ends()} ends, {len(client.memory.jobs)} jobs, {client.reads} lists, {cluster.writes_lost()} writes lost or torn")
        client.stop_writing()
        eventually(cluster.ready, "two nodes")
        say(f"{time.monotonic() - began:6.1f} s  waiting for the end of all jobs")
        items = eventually(lambda: cluster.check() and over(client.read()), "all jobs end", PATIENCE + cuts * 20)
        cluster.check()
        compared = judge(cluster, items, checks, "power")
        say(f"{client.reads} lists compared, {cluster.writes_lost()} unflushed writes lost or torn")
        say(f"proof {sum(cluster.cuts.values())} power cuts of machines under load")
        say(f"proof {compared} ends of pods checked after power cuts")
        return cluster
    except Exception:
        cluster.logs()
        raise
    finally:
        cluster.close()


def replays(cluster, folder, number, seed, checks):
    """Opens the head's disk as of a sample of the flushes in each recording."""
    rng, opened, problems = random.Random(seed), 0, []
    for recording in cluster.recordings:
        flushes = range(recording[2].count(None))
        chosen = set(rng.sample(flushes, min(len(flushes), -(-number // len(cluster.recordings)))))
        for state, image, memory in replay.states(recording, chosen, seed, folder):
            problems += [f"{state}: {line}" for line in replay.wrong(vm.MUSTER, image, memory, folder, cluster.replay_ports)]
            opened += 1
    checks.check("power_as_of_each_flush", problems)
    say(f"proof {opened} disk images recovered as of a flush")


def replay_pairs(cluster, seed, checks):
    """Restarts both machines on their disks as of a sample of the node's flushes."""
    rng, opened, found, problems = random.Random(seed), 0, 0, []
    codes = {run.pod: run.code for run in cluster.witness.runs if run.code is not None}
    for pair in cluster.pairs:
        for state in pair.states(rng):
            lines, ends = pair.wrong(vm.MUSTER, cluster.replay_ports, codes)
            problems += [f"{state}: {line}" for line in lines]
            opened, found = opened + 1, found + ends
    checks.check("power_as_of_flushes_of_a_node", problems)
    say(f"{found} ends were only on the node's disk")
    say(f"proof {opened} disk images recovered as of a flush")


def planted(folder, guest, seed, checks):
    """Checks that a single cut exposes a muster that does not sync."""
    folder.mkdir()
    cluster = Cluster(folder, guest, seed, names=["head"], preload="/muster/nosync.so")
    try:
        cluster.power_on("head")
        client = cluster.client
        eventually(cluster.ready, "a node")
        while len(client.memory.jobs) < 5:
            client.create(*client.small())
        eventually(client.read, "a list of jobs")
        cluster.cut("head")
        image = folder / "state.img"
        image.write_bytes(cluster.head.disk.safe)
        problems = replay.wrong(vm.MUSTER, image, client.memory, folder, cluster.replay_ports)
    finally:
        cluster.close()
    checks.check("power_missing_syncs_are_noticed", [] if problems else ["missing syncs went undetected"])
    say(*problems[:1])
    say("proof 1 planted faults noticed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=100 if LONG else 4)
    parser.add_argument("--replays", type=int, default=100 if LONG else 5, metavar="FLUSHES")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 1_000_000))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no machine is left running
    say(f"power: --seed {options.seed} makes the same choices again")
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="muster-power-") as name:
        folder = pathlib.Path(name)
        guest = machine.stage(folder)
        with futures.ThreadPoolExecutor(1) as beside:
            cluster = play(folder, guest, options.cuts, -(-options.replays // 3), options.seed, checks)
            found = beside.submit(planted, folder / "planted", guest, options.seed, checks)
            replays(cluster, folder, options.replays, options.seed, checks)
            replay_pairs(cluster, options.seed, checks)
            found.result()
    say("done")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
