#!/usr/bin/python3
"""What a replica costs: the same jobs on a cluster with one coordinator and on one with a second coordinator that follows.

    ./dev bench standby, or MUSTER=build/release/muster tests/bench/standby.py [--pods 6000] [--hollow 200000] [--runs 5] [--delay-us 200] [--jobs 0,7000] [--only demote]

Runs alternate, and the ratio of each pair is taken; shown are the medians. `run` is the whole command `muster run -n PODS -j 64`
against the coordinator, `hollow` the ends of simulated pods per second, `submit` the time from `muster create` to the first
process of a one-index job. `demote` hands the lead over with that many unfinished jobs: how long the command took, and the
longest that a request waited at the two addresses meanwhile. The coordinators, their disk and the pods share this machine, so each sync is made twice by one
disk. With --delay-us, which needs root, each packet between any two processes takes that long, in both kinds of cluster.
"""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e/lib"))
from coordinators import MUSTER, Coordinators  # noqa: E402
from world import eventually, sh_job, start_daemon  # noqa: E402


class Alone(Coordinators):
    """One coordinator, without a store."""

    def __init__(self):
        super().__init__(1)
        one = self.all[0]
        one.kill()
        shutil.rmtree(one.data)
        one.command = lambda *more: [MUSTER, "coordinator", "--data-dir", one.data, "--api", one.api_addr, "--listen", one.listen,
                                     "--api-socket", "none", "--listen-socket", "none", *more]
        one.start()
        self.wait_serving()


def muster(site, *words):
    done = site.muster(*words, timeout=600)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr}")
    return done.stdout


def run_seconds(site, pods):
    began = time.monotonic()
    muster(site, "run", "--quiet", "-n", pods, "-j", 64, "--", "/bin/true")
    return time.monotonic() - began


def hollow_ends(site, pods):
    name = f"hollow-{time.monotonic_ns()}"
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
           "spec": {"completions": pods, "parallelism": 2000, "completionMode": "Indexed", "template": {"spec": {
               "restartPolicy": "Never", "nodeSelector": {"muster.dev/hollow": "true"},
               "tolerations": [{"key": "muster.dev/hollow", "operator": "Exists"}],
               "containers": [{"name": "main", "command": ["true"]}]}}}}
    began = time.monotonic()
    code, answer = site.api.create(job)
    if code != 201:
        sys.exit(f"hollow: {code} {answer}")
    eventually(lambda: "completionTime" in site.api.job(name)["status"], "the hollow job ends", 300)
    return pods / (time.monotonic() - began)


def submit_ms(site, count=40):
    stamps = site.dir / "stamps"
    took = []
    for i in range(count):
        stamps.unlink(missing_ok=True)
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"one-{time.monotonic_ns()}"},
               "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
                   {"name": "main", "command": ["/usr/bin/touch", str(stamps)]}]}}}}
        began = time.time_ns()
        site.api.create(job)
        eventually(stamps.exists, "the pod runs")
        took.append((stamps.stat().st_mtime_ns - began) / 1e6)
    return took


class Waits:
    """Asks each coordinator all the time, and notes the longest wait for an answer."""

    def __init__(self, site):
        self.longest, self.stop = 0.0, threading.Event()
        self.threads = [threading.Thread(target=self.ask, args=(one,)) for one in site.all]
        for one in self.threads:
            one.start()

    def ask(self, one):
        while not self.stop.wait(0.01):
            began = time.monotonic()
            code, _ = one.api.call("GET", one.api.jobs() + "?limit=1", timeout=60)
            if code != 200:
                sys.exit(f"{one.name} answers {code}")
            self.longest = max(self.longest, time.monotonic() - began)

    def end(self):
        self.stop.set()
        for one in self.threads:
            one.join()
        return self.longest


def demotions(jobs, runs):
    """(seconds of `muster demote`, the longest wait of a request) of each."""
    with contextlib.closing(Coordinators(2)) as site:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for code, answer in pool.map(lambda i: site.api.create(sh_job(f"job-{i}", "true", 1, suspend=True)), range(jobs)):
                if code != 201:
                    sys.exit(f"demote: {code} {answer}")
        for _ in range(runs):
            site.wait_in_sync()
            waits = Waits(site)
            time.sleep(0.5)
            began = time.monotonic()
            done = site.muster("demote", of=site.leader())
            if done.returncode:
                sys.exit(f"demote: {done.stderr}")
            took = time.monotonic() - began
            site.wait_in_sync()
            yield took, waits.end()


def show_demotions(counts, runs):
    for jobs in counts:
        took, waited = zip(*demotions(jobs, runs))
        print(f"demote with {jobs} unfinished jobs: {statistics.median(took):.2f} s, at most {max(took):.2f} s; "
              f"a request waited {statistics.median(waited):.2f} s, at most {max(waited):.2f} s", flush=True)


def p99(values):
    return sorted(values)[int(len(values) * 0.99)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=6000)
    parser.add_argument("--hollow", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--delay-us", type=int, default=0)
    parser.add_argument("--jobs", default="0,7000")
    parser.add_argument("--only", choices=["demote"])
    options = parser.parse_args()
    if options.delay_us and not os.environ.get("MUSTER_BENCH_DELAYED"):
        setup = (f"ip link set lo up && {{ tc qdisc add dev lo root netem limit 100000 delay {options.delay_us / 2}us 2>/dev/null || "
                 "{ echo 'standby.py: --delay-us needs root, tc(8) and a kernel with sch_netem' >&2; exit 1; }; }")
        os.execvpe("unshare", ["unshare", "-n", "sh", "-c", f'{setup} && exec "$@"', "sh", sys.executable, *sys.argv],
                   {**os.environ, "MUSTER_BENCH_DELAYED": "1"})
    show_demotions([int(jobs) for jobs in options.jobs.split(",")], options.runs)
    if options.only:
        return
    with contextlib.ExitStack() as stack:
        sites = {"alone": Alone(), "replica": Coordinators(2)}
        for site in sites.values():
            stack.callback(site.close)
            site.start_agent("n1", slots=64)
            folder = site.dir / "hollow.d"
            folder.mkdir()
            site.agents["h1"] = start_daemon([MUSTER, "agent", "--hollow", "--coordinator", site.all[0].listen, "--name", "h1", "--slots", "2000"],
                                             folder)
            eventually(lambda site=site: "h1" in muster(site, "get", "nodes", "-o", "name"), "the hollow node")
        ratios, took = [], {"alone": [], "replica": []}
        for _ in range(options.runs):
            pair = {kind: run_seconds(site, options.pods) for kind, site in sites.items()}
            ratios.append(pair["alone"] / pair["replica"])
            print(f"run -n {options.pods} -j 64: alone {pair['alone']:.2f} s, with a replica {pair['replica']:.2f} s, ratio {ratios[-1]:.2f}",
                  flush=True)
        print(f"run: {statistics.median(ratios):.2f} of the speed without a replica")
        ends, parts = [], []
        for _ in range(options.runs):
            pair = {kind: hollow_ends(site, options.hollow) for kind, site in sites.items()}
            ends.append(pair["replica"])
            parts.append(pair["replica"] / pair["alone"])
        print(f"hollow: {statistics.median(ends):,.0f} ends/s with a replica, {statistics.median(parts):.2f} of without")
        for _ in range(options.runs):
            for kind, site in sites.items():
                took[kind] += submit_ms(site)
        print("submit to exec: " + "; ".join(f"{kind} median {statistics.median(v):.2f} ms, p99 {p99(v):.2f} ms" for kind, v in took.items()))
        follower = sites["replica"].all[1]
        memory = next(line for line in pathlib.Path(f"/proc/{follower.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
        disk = sum(file.stat().st_size for file in follower.data.rglob("*") if file.is_file())
        print(f"follower: {memory.split()[1]} kB of memory, {disk / 1e6:.1f} MB of disk, after {len(site.api.call('GET', site.api.jobs())[1]['items'])} jobs")


if __name__ == "__main__":
    main()
