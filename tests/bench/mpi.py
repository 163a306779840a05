#!/usr/bin/python3
"""Launch time of an MPI program that does nothing, on one machine: with mpirun alone, and with mpirun in index 0 of a muster job.

    ./dev bench mpi, or MUSTER=build/release/muster tests/bench/mpi.py [--ranks 64] [--pods 4,16] [--runs 5] [--mpi openmpi,mpich]

Runs alternate, and the medians are compared. There are three kinds of launch: `alone`, mpirun with all ranks on this host; `daemons`,
mpirun with as many hosts as there are pods, all on this machine, reached by a script that calls sh in a new session, as sshd does;
`muster`, the same mpirun in a job, by its own clock. `daemons` over `alone` is what several hosts cost, `muster` over `daemons` what
muster adds.

Ranks poll while they wait. With many more ranks than cores, the figures show how the kernel shares the cores among the hosts' sessions
(kernel.sched_autogroup_enabled): a rank that yields does so to its own session only.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = "#include <mpi.h>\nint main(int argc, char** argv) { MPI_Init(&argc, &argv); MPI_Finalize(); return 0; }\n"
LAUNCHER = {"openmpi": "mpirun.openmpi", "mpich": "mpiexec.hydra"}
# Root may run mpirun, waiting ranks yield, and no rank is bound to a core: there are more ranks than cores.
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_MCA_hwloc_base_binding_policy": "none"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--pods", default="4,16", help="numbers of pods that share the ranks")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--mpi", default="openmpi,mpich")
    return parser.parse_args()


def eventually(look, what, timeout=60):
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError, KeyError):
            if answer := look():
                return answer
        time.sleep(0.01)
    raise SystemExit(f"{what}: not in {timeout} s")


class Bench:
    def __init__(self, folder):
        self.dir = folder
        self.muster_path = os.path.abspath(os.environ["MUSTER"])
        self.number = 0
        self.daemons = []

    def start(self, slots):
        def daemon(*words):
            with open(self.dir / "log", "ab") as log:
                self.daemons.append(subprocess.Popen([self.muster_path, *map(str, words)], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        daemon("coordinator", "--data-dir", self.dir / "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0")
        ends = eventually(lambda: json.loads((self.dir / "data/endpoints.json").read_text()), "the coordinator")
        self.api = ends["api"]
        daemon("agent", "--coordinator", ends["listen"], "--work-dir", self.dir / "work", "--slots", slots)
        eventually(lambda: " Ready " in self.muster("get", "nodes"), "the agent")

    def stop(self):
        for process in reversed(self.daemons):
            process.terminate()
            process.wait()

    def muster(self, *words, text=None):
        return subprocess.run([self.muster_path, *words, "--api", self.api], input=text, text=True, capture_output=True, timeout=120).stdout

    def program(self, mpi):
        (self.dir / "nothing.c").write_text(PROGRAM)
        path = self.dir / f"nothing.{mpi}"
        subprocess.run([f"mpicc.{mpi}", "-o", path, self.dir / "nothing.c"], check=True)
        return path

    def timed(self, command, env):
        begin = time.monotonic()
        subprocess.run(list(map(str, command)), check=True, env={**os.environ, **ENV, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return time.monotonic() - begin

    def alone(self, mpi, program, ranks):
        extra = ["--host", f"localhost:{ranks}"] if mpi == "openmpi" else []
        return self.timed([LAUNCHER[mpi], *extra, "-n", ranks, program], {})

    def by_daemons(self, mpi, program, ranks, pods):
        rsh = self.dir / "rsh"
        # As muster-rsh does: otherwise Open MPI's daemons on one machine would share memory and a session directory.
        rsh.write_text('#!/bin/sh\n[ "$1" != -x ] || shift\nshift\nd=$(mktemp -d -p /dev/shm)\n'
                       'OMPI_MCA_btl_vader_backing_directory=$d OMPI_MCA_orte_tmpdir_base=$d setsid -w sh -c "$*"\nr=$?; rm -r $d; exit $r\n')
        rsh.chmod(0o755)
        slots = ranks // pods
        names = [socket.gethostname(), *(f"alias-{i}" for i in range(1, pods))]
        hosts = self.dir / "hosts"
        hosts.write_text("".join(f"{name} slots={slots}\n" if mpi == "openmpi" else f"{name}:{slots}\n" for name in names))
        return self.timed([LAUNCHER[mpi], program], {
            "OMPI_MCA_plm_rsh_agent": str(rsh), "OMPI_MCA_orte_default_hostfile": str(hosts), "HYDRA_LAUNCHER": "ssh",
            "HYDRA_LAUNCHER_EXEC": str(rsh), "HYDRA_HOST_FILE": str(hosts), "HYDRA_IFACE": "lo"})

    def by_muster(self, mpi, program, ranks, pods):
        """The launcher's time in index 0, and the job's, from its creation to its completion."""
        self.number += 1
        name = f"launch-{self.number}"
        # The clock starts when all pods run, since the other launches find their hosts ready.
        script = (f"[ $JOB_COMPLETION_INDEX = 0 ] || exec sleep 600; until [ $(wc -l <$MUSTER_RUN_DIR/hosts.running) = {pods} ]; do sleep 0.02; done; "
                  f"a=$(date +%s%N); {LAUNCHER[mpi]} {program} || exit; b=$(date +%s%N); echo $((b - a))")
        job = {"apiVersion": "batch/v1", "kind": "Job",
               "metadata": {"name": name, "annotations": {"muster.dev/mpi": f"{mpi},slots={ranks // pods}"}},
               "spec": {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "backoffLimit": 0,
                        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
                        "template": {"spec": {"restartPolicy": "Never", "containers": [
                            {"name": "main", "command": ["sh", "-c", script.replace("$", "$$")],
                             "env": [{"name": k, "value": v} for k, v in ENV.items()]}]}}}}
        begin = time.monotonic()
        self.muster("create", "-f", "-", text=json.dumps(job))
        self.muster("wait", f"job/{name}", "--for=condition=Complete", "--timeout", "60s")
        whole = time.monotonic() - begin
        log = self.muster("logs", f"job/{name}", "--index", "0")
        said = re.search(r"^\d+$", log, re.M)
        if not said:
            raise SystemExit(f"{name} did not succeed:\n{log}{self.muster('describe', 'job', name)}")
        return int(said[0]) / 1e9, whole


def main():
    options = arguments()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-bench-mpi-"))
    bench = Bench(folder)
    try:
        bench.start(options.ranks)
        cores = len(os.sched_getaffinity(0))
        print(f"launch of {options.ranks} ranks that do nothing, {cores} cores, medians of {options.runs} alternating runs, seconds")
        print(f"{'':10}{'pods':>5}{'alone':>9}{'daemons':>9}{'muster':>9}{'muster/alone':>14}{'muster/daemons':>16}{'whole job':>11}")
        for mpi in options.mpi.split(","):
            program = bench.program(mpi)
            for pods in map(int, options.pods.split(",")):
                rows = []
                for _ in range(options.runs + 1):  # the first warms up
                    alone = bench.alone(mpi, program, options.ranks)
                    daemons = bench.by_daemons(mpi, program, options.ranks, pods)
                    rows.append((alone, daemons, *bench.by_muster(mpi, program, options.ranks, pods)))
                alone, daemons, launch, whole = (statistics.median(column) for column in zip(*rows[1:]))
                print(f"{mpi:10}{pods:5}{alone:9.2f}{daemons:9.2f}{launch:9.2f}{launch / alone:14.2f}{launch / daemons:16.2f}{whole:11.2f}", flush=True)
    finally:
        bench.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    missing = [tool for tool in (*LAUNCHER.values(), "mpicc.openmpi", "mpicc.mpich") if not shutil.which(tool)]
    if missing:
        sys.exit(f"tests/bench/mpi.py: not installed: {', '.join(missing)}")
    main()
