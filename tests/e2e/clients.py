#!/usr/bin/python3
"""Programs that start jobs, as docs/clients.md shows: Snakemake, make, GNU parallel, joblib, Slurm and Jupyter.

    MUSTER=build/release/muster tests/e2e/clients.py [TEST…]
    MUSTER_DOCS_WRITE=1 tests/e2e/clients.py Pages     updates the output shown there

What is not installed is skipped.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import slurm  # noqa: E402
from transcripts import MUSTER, Followed  # noqa: E402
from world import ROOT, Cluster, World, eventually  # noqa: E402

QUICK = {"CI": "true"}  # Snakemake then looks for ends more often than every ten seconds


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


def needs_module(name):
    return unittest.skipUnless(importlib.util.find_spec(name), f"Python's {name} is not installed")


class Pages(Followed):
    @needs("snakemake")
    def test_snakemake_prints_what_is_shown(self):
        self.follow("clients", "Snakemake", MUSTER_API=self.served(), **QUICK)

    @needs("make")
    def test_make_prints_what_is_shown(self):
        self.follow("clients", "make", MUSTER_API=self.served())

    @needs("parallel")
    def test_parallel_prints_what_is_shown(self):
        self.follow("clients", "GNU parallel", MUSTER_API=self.served())

    @needs_module("joblib")
    def test_joblib_prints_what_is_shown(self):
        self.follow("clients", "joblib", MUSTER_API=self.served())

    @unittest.skipIf(slurm.unavailable(), slurm.unavailable())
    def test_slurm_prints_what_is_shown(self):
        folder = tempfile.mkdtemp(prefix="muster-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        one = slurm.Slurm(pathlib.Path(folder) / "slurm", cpus=4)
        self.addCleanup(one.close)
        cluster = Cluster(agents=0)
        self.addCleanup(cluster.close)
        self.follow("clients", "An allocation of Slurm", CLUSTER=cluster.api_addr, COORDINATOR=cluster.listen, TMPDIR=folder, **one.env)

    @needs_module("nbclient")
    @needs_module("ipykernel")
    def test_notebook_prints_what_is_shown(self):
        import nbclient
        import nbformat
        _, text, _ = self.part((ROOT / "docs/clients.md").read_text(), "Notebooks")
        cells = re.findall(r"^```ipython\n(.*?)^```", text, re.M | re.S)
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        environment = {**os.environ, "MUSTER_API": self.served(), "PATH": f"{pathlib.Path(MUSTER).parent}:{os.environ['PATH']}"}
        with tempfile.TemporaryDirectory(prefix="muster-docs-") as folder:
            nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": folder}}).execute(env={**environment, "HOME": folder})
        shown = re.search(r"^```output\n(.*?)^```", text, re.M | re.S)[1]
        self.assertEqual(notebook.cells[-1].outputs[0]["data"]["text/plain"] + "\n", shown)


@needs("snakemake")
class Snakemake(World):
    """What the profile in examples/ promises."""

    def setUp(self):
        self.it = self.cluster(agents=1, slots=4)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="muster-test-"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.env = {**os.environ, **QUICK, "HOME": str(self.work), "MUSTER_API": self.it.api_addr,
                    "PATH": f"{pathlib.Path(MUSTER).parent}:{os.environ['PATH']}"}

    def start(self, rules, *flags):
        (self.work / "Snakefile").write_text(rules)
        process = subprocess.Popen(["snakemake", "--profile", ROOT / "examples/snakemake", *flags], cwd=self.work, env=self.env, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # where tests run, it may be ignored
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def jobs(self):
        return self.it.api.call("GET", self.it.api.jobs())[1]["items"]

    def ends(self):
        """The condition with which each job has ended."""
        return [next(((c["type"], c["reason"]) for c in job["status"].get("conditions", []) if c["type"] in ("Complete", "Failed")), None)
                for job in self.jobs()]

    def test_a_killed_job_fails_its_rule_and_only_that_is_repeated(self):
        rules = """
rule all:
    input: expand("out/{n}", n=[1, 2, 3])
rule one_of:
    output: "out/{n}"
    resources: mem_mb=200, runtime=5
    shell: "[ {wildcards.n} != 2 ] || [ -e repaired ] || kill -9 $$; echo {wildcards.n} >{output}"
"""
        first = self.start(rules, "--keep-going", "--latency-wait", "3")
        output, _ = first.communicate(timeout=120)
        self.assertEqual(first.returncode, 1, output)
        self.assertEqual(sorted(os.listdir(self.work / "out")), ["1", "3"])
        self.assertRegex(output, r"external: job\.batch/snakejob-one-of-")
        template = self.jobs()[0]["spec"]["template"]["spec"]
        self.assertEqual(template["activeDeadlineSeconds"], 300)
        self.assertEqual(template["containers"][0]["resources"], {"limits": {"memory": "200M"}, "requests": {"cpu": "1", "memory": "200M"}})
        (self.work / "repaired").touch()
        second = self.start(rules)
        output, _ = second.communicate(timeout=120)
        self.assertEqual(second.returncode, 0, output)
        self.assertEqual(len(self.jobs()), 4)

    def test_ctrl_c_cancels_what_runs(self):
        process = self.start('rule all:\n    output: "never"\n    shell: "sleep 600; touch {output}"\n')
        eventually(lambda: any(job["status"].get("ready") for job in self.jobs()), "the job runs", 60)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0, output)
        eventually(lambda: self.ends() == [("Failed", "Cancelled")], "the job is cancelled")

    def test_status_tells_a_deleted_job_from_a_coordinator_that_is_away(self):
        def status(**env):
            done = subprocess.run([ROOT / "examples/snakemake/status", "job.batch/none"], text=True, capture_output=True,
                                  env={**self.env, **env}, timeout=60)
            return done.stdout.strip()
        self.assertEqual(status(), "failed")
        self.assertEqual(status(MUSTER_API="127.0.0.1:1"), "running")


if __name__ == "__main__":
    unittest.main(verbosity=2)
