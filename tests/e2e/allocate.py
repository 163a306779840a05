#!/usr/bin/python3
"""muster allocate: pods that wait become batch jobs that run agents.

    MUSTER=build/release/muster tests/e2e/allocate.py [TEST…]

With stand-ins for the commands of Slurm, Flux and PBS (lib/batch_system.py), and with Slurm itself if lib/slurm.py finds its packages.
"""
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import batch_system  # noqa: E402
import slurm  # noqa: E402
from command import free_port  # noqa: E402
from world import World, eventually, finished, indexes  # noqa: E402

FAST = ("--every", "200ms", "--idle", "2s", "--time", "10m")


class Allocating(World):
    """A cluster without agents, and a batch system."""
    ENGINE = "slurm"

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-allocate-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", str(self.folder)], check=False)
        (self.folder / "work").mkdir()
        self.log = self.folder / "allocate.log"
        self.env = {**os.environ, "HOME": str(self.folder)}

    def stand_in(self, capacity=100):
        commands = batch_system.install(self.folder, capacity)
        self.batch = batch_system.Batch(self.folder / "batch")
        self.env.update(PATH=f"{commands}:{os.environ['PATH']}", BATCH_SYSTEM=str(self.folder / "batch"))
        self.addCleanup(self.end_batch)

    def end_batch(self):
        for number in self.batch.ids():
            if self.batch.state(number) in ("queued", "running"):
                self.batch.cancel(number)

    def words(self, cluster, *flags, options=()):
        return [os.environ["MUSTER"], "allocate", self.ENGINE, "--api", cluster.api_addr, "--coordinator", cluster.listen, "--dir",
                str(self.folder / "dir"), "--work-base", str(self.folder / "work"), "--pool", "p", *FAST, *flags, "--", *options]

    def allocate(self, cluster, *flags, options=()):
        with open(self.log, "ab") as log:
            process = subprocess.Popen(self.words(cluster, *flags, options=options), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env=self.env)
        self.addCleanup(self.stop, process)
        return process

    @staticmethod
    def stop(process):
        if process.poll() is None:
            process.terminate()
            process.wait(20)

    def said(self):
        return self.log.read_text(errors="replace")

    def says(self, pattern, timeout=30):
        return eventually(lambda: re.search(pattern, self.said()), f"allocate says {pattern!r}; it said\n{self.said()[-2000:]}", timeout)

    def submit_pods(self, cluster, name, count, *command, flags=()):
        done = self.muster("submit", "--name", name, "-n", str(count), *flags, "--api", cluster.api_addr, "--", *command)
        self.assertEqual(done.returncode, 0, done.stderr)

    def succeeded(self, cluster, name, count, timeout=90):
        status = cluster.wait(name, finished, timeout)["status"]
        self.assertEqual((status.get("succeeded"), status.get("failed", 0)), (count, 0), status)
        self.assertEqual(indexes(status.get("completedIndexes")), set(range(count)))

    def nodes(self, cluster):
        return sorted(node["metadata"]["name"] for node in cluster.api.call("GET", "/api/v1/nodes")[1]["items"])

    def all_over(self):
        return all(self.batch.state(number) in ("completed", "cancelled") for number in self.batch.ids())


class StandIn(Allocating):
    def test_pods_that_wait_become_nodes_that_go_back(self):
        self.stand_in()
        cluster = self.cluster(agents=0)
        self.allocate(cluster, "--max-nodes", "3", options=["--partition=short", "; touch injected"])
        self.says("no pods wait for nodes")
        none = eventually(lambda: (r := self.muster("get", "allocations", cluster=cluster)).stderr.startswith("muster: pool p ") and r, "the pool is shown")
        self.assertEqual((none.returncode, none.stdout), (0, ""))
        self.assertRegex(none.stderr, r"^muster: pool p \(slurm\): no allocations; no pods wait for nodes\n$")
        self.submit_pods(cluster, "sweep", 200, "sh", "-c", "sleep 0.1")

        def shown():
            return self.muster("get", "allocations", "p", cluster=cluster).stdout
        eventually(lambda: re.search(r"^POOL +ENGINE +ID +STATE +NODE +SINCE\np +slurm +1 +Running +p-1 ", shown()), "allocations are shown")
        listed = json.loads(self.muster("get", "allocations", "-o", "json", cluster=cluster).stdout)["items"]
        self.assertEqual((listed[0]["kind"], listed[0]["status"]["pool"], listed[0]["status"]["node"]), ("Allocation", "p", "p-1"))
        self.assertEqual(self.muster("get", "allocations", "q", cluster=cluster).returncode, 3)
        self.succeeded(cluster, "sweep", 200)
        eventually(self.all_over, "the nodes went back", 60)
        eventually(lambda: not self.nodes(cluster), "they are forgotten")
        numbers = self.batch.ids()
        self.assertGreater(len(numbers), 1)
        self.assertLessEqual(max(int(self.batch.read(number, "beside")) for number in numbers), 3)
        words = json.loads(self.batch.read(1, "words"))
        self.assertEqual(words[-2:], ["--partition=short", "; touch injected"])
        self.assertEqual(list((self.folder / "work").iterdir()), [], "work-dirs are removed")
        self.says("node p-1 is there, with 2 slots")
        self.says("allocation 1 is over: it was given back")

    def test_refusals_are_shown_and_waited_out(self):
        self.stand_in()
        cluster = self.cluster(agents=0)
        refuse = self.folder / "batch/refuse"
        refuse.write_text("sbatch: error: Batch job submission failed: Invalid partition name specified")
        self.submit_pods(cluster, "waits", 2, "true")
        self.allocate(cluster, "--max-nodes", "3")
        self.says(r"the batch system accepts no allocation: sbatch: .*Invalid partition.*1 failure in a row; the next request is in 10s")
        eventually(lambda: re.search(r"\n  pool p \(slurm\): no allocations; 2 pods wait; the next request is in \d+s, after 1 failure\n",
                                     self.muster("why", "job/waits", cluster=cluster).stdout), "why names the pool")
        self.says(r"2 pods wait; the next request is in \d+s, after 1 failure")
        refuse.unlink()
        self.succeeded(cluster, "waits", 2)
        self.assertEqual(self.said().count("accepts no allocation"), 1)

    def test_an_allocation_without_a_node_is_a_failure(self):
        self.stand_in()
        cluster = self.cluster(agents=0)
        self.submit_pods(cluster, "waits", 1, "true")
        self.allocate(cluster, "--max-nodes", "3", "--executable", "/nonexistent/muster")
        self.says(r"allocation 1 was over before it had a node: FAILED \(1 failure in a row")
        self.assertIn("nonexistent", self.batch.read(1, "output"))

    def test_allocations_are_found_again(self):
        self.stand_in(capacity=1)
        cluster = self.cluster(agents=0)
        first = self.allocate(cluster, "--max-nodes", "2", "--slots", "1")
        self.submit_pods(cluster, "long", 3, "sh", "-c", "until [ -e %s ]; do sleep 0.1; done" % (self.folder / "go"))
        self.says("node p-1 is there, with 1 slot")
        eventually(lambda: self.batch.ids() == [1, 2], "a second one is asked for")
        first.kill()
        first.wait()
        before = self.said()
        second = self.allocate(cluster, "--max-nodes", "2", "--slots", "1")
        self.says(r"found allocation 1 \(running\)")
        self.says(r"found allocation 2 \(queued\)")
        self.says(r"2 of at most 2 allocations are there|1 node for them is there or on the way")
        second.send_signal(signal.SIGTERM)
        self.assertEqual(second.wait(20), 0)
        self.says("1 queued and 1 running allocations stay")
        (self.folder / "go").touch()
        self.allocate(cluster, "--max-nodes", "2", "--slots", "1", "--cancel-on-exit")
        self.succeeded(cluster, "long", 3)
        self.assertNotIn("submitted", self.said()[len(before):])
        eventually(self.all_over, "they went back", 60)

    def test_the_budget_holds(self):
        self.stand_in()
        cluster = self.cluster(agents=0)
        self.submit_pods(cluster, "many", 50, "sleep", "300")
        process = self.allocate(cluster, "--max-nodes", "9", "--budget", "10m", "--cancel-on-exit")
        self.says(r"pods wait; of 0\.2 node hours, 0\.0 are spent and 0\.2 promised to allocations \(--budget\)")
        self.assertEqual(self.batch.ids(), [1])
        path = "/api/v1/namespaces/default/configmaps/muster-allocate-p"
        eventually(lambda: list(json.loads(cluster.api.call("GET", path)[1]["data"]["open"])) == ["1"], "the books are kept")
        eventually(lambda: time.time() - batch_system.time_of(self.batch, 1, "pid") > 2.5, "it takes some time")
        process.terminate()
        self.assertEqual(process.wait(20), 0)
        self.says("0 queued and 1 running allocations cancelled")
        eventually(self.all_over, "it leaves")
        self.allocate(cluster, "--max-nodes", "9", "--budget", "10m")
        eventually(lambda: int(cluster.api.call("GET", path)[1]["data"]["spent-seconds"]) > 0, "what it took is spent")
        self.says(r"(?s)cancelled.*pods wait; of 0\.2 node hours")
        self.assertEqual(self.batch.ids(), [1])

    def test_what_others_cancel_costs_no_attempt(self):
        self.stand_in()
        cluster = self.cluster(agents=0)
        self.submit_pods(cluster, "sweep", 24, "sleep", "0.5")
        self.allocate(cluster, "--max-nodes", "2")
        self.says("node p-2 is there")
        eventually(lambda: any(pod["spec"].get("nodeName") == "p-2" and pod["status"]["phase"] == "Running"
                               for pod in self.pods_of(cluster, "sweep")), "pods run there")
        subprocess.run([self.folder / "bin/scancel", "2"], env=self.env, check=True, timeout=30)
        self.succeeded(cluster, "sweep", 24)
        self.says("allocation 2 is over: CANCELLED")

    def test_tokens_for_agents_over_tls(self):
        self.stand_in()
        port = free_port()
        cluster = self.cluster(agents=0, extra=("--listen-tls", f"127.0.0.1:{port}"))
        cluster.listen = f"127.0.0.1:{port}"
        self.submit_pods(cluster, "here", 1, "sh", "-c", "until [ -e %s ]; do sleep 0.1; done" % (self.folder / "go"),
                         flags=("--node-selector", "disk=ssd"))
        self.allocate(cluster, "--max-nodes", "1", "--label", "disk=ssd")
        token = self.folder / "dir/p-1.token"
        eventually(token.exists, "a token")
        self.assertEqual(stat.S_IMODE(token.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(token.parent.stat().st_mode), 0o700)
        secret = next(line for line in token.read_text().splitlines() if line and not line.startswith("#"))
        self.assertGreater(len(secret), 20)
        self.assertNotIn(secret, self.batch.read(1, "script") + self.batch.read(1, "words"))
        self.says("node p-1 is there")
        eventually(lambda: any(pod["status"]["phase"] == "Running" for pod in self.pods_of(cluster, "here")), "its label is allowed")
        (self.folder / "go").touch()
        self.succeeded(cluster, "here", 1)
        eventually(lambda: not token.exists(), "the token is removed")

    def test_a_dry_run_prints_what_would_be_submitted(self):
        self.stand_in()
        cluster = self.cluster(agents=0)
        done = subprocess.run(self.words(cluster, "--max-nodes", "1", "--dry-run", options=["-c", "4"]), text=True, capture_output=True, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, _, script = done.stdout.partition("\n")
        self.assertEqual(first, f"sbatch --parsable --job-name=muster-p --nodes=1 --time=10 --no-requeue --output={self.folder}/dir/%j.log -c 4")
        self.assertEqual(subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode, 0)
        self.assertEqual(self.batch.ids(), [])
        for flags, options, error in ((("--max-nodes", "1"), ["--time=5"], "`--time` after --: muster allocate sets it itself"),
                                      (("--max-nodes", "1", "--min", "2"), [], "--min: must be at most --max-nodes, 1"),
                                      (("--max-nodes", "0"), [], "--max-nodes"),
                                      (("--max-nodes", "1", "--budget", "1m"), [], "--budget: must be at least --time"),
                                      (("--max-nodes", "1", "--slots", "x"), [], "--slots: must be a whole number above 0"),
                                      (("--max-nodes", "1", "--resource", "gpu"), [], "--resource: `gpu`: must be NAME=COUNT")):
            done = subprocess.run(self.words(cluster, *flags, options=options), text=True, capture_output=True, env=self.env)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(error, done.stderr)


class Others(Allocating):
    """Flux and PBS, by stand-ins for their commands."""

    def run_sweep(self, engine):
        self.ENGINE = engine
        self.stand_in()
        cluster = self.cluster(agents=0)
        self.submit_pods(cluster, "sweep", 40, "true")
        self.allocate(cluster, "--max-nodes", "2")
        self.succeeded(cluster, "sweep", 40)
        eventually(self.all_over, "the nodes went back", 60)
        self.says("allocation 1(.server)? is over: it was given back")

    def test_flux(self):
        self.run_sweep("flux")

    def test_pbs(self):
        self.run_sweep("pbs")


@unittest.skipIf(slurm.unavailable(), slurm.unavailable())
class RealSlurm(Allocating):
    def test_a_sweep_on_nodes_of_slurm(self):
        system = slurm.Slurm(self.folder / "slurm", 2)
        self.addCleanup(system.close)
        self.env |= system.env
        cluster = self.cluster(agents=0)
        self.submit_pods(cluster, "sweep", 200, "sh", "-c", "sleep 0.05")
        # Two of one CPU each fit; a third waits in the queue.
        self.allocate(cluster, "--max-nodes", "3", "--backlog", "1", "--slots", "1", options=["--cpus-per-task=1"])
        self.says("node p-1 is there, with 1 slot", 60)
        self.says("node p-2 is there", 60)
        eventually(lambda: any(pod["spec"].get("nodeName") == "p-2" and pod["status"]["phase"] == "Running"
                               for pod in self.pods_of(cluster, "sweep")), "pods run there")
        subprocess.run(["scancel", "2"], env=self.env, check=True, timeout=30)
        self.succeeded(cluster, "sweep", 200, 180)
        eventually(lambda: not system.run("squeue", "--noheader").strip(), "all allocations are over", 90)
        self.says("allocation 1 is over: it was given back")
        eventually(lambda: not self.nodes(cluster), f"nodes are forgotten; muster allocate said\n{self.said()[-3000:]}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
