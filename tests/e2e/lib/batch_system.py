#!/usr/bin/python3
"""Stand-ins for the commands of Slurm, Flux and PBS that `muster allocate` uses: allocations are processes of this machine.

    bin = batch_system.install(FOLDER)    makes FOLDER/bin with all commands, which keep their state in FOLDER/batch

FOLDER/batch/capacity has the number of nodes, FOLDER/batch/refuse what a refusal says, if there is one. Whoever lists allocations is also the
scheduler: that starts what is queued, as far as there are nodes. Times are those of files; nobody waits.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

COMMANDS = ("sbatch", "squeue", "scancel", "flux", "qsub", "qselect", "qstat", "qsig", "qdel")


def install(folder, capacity=100):
    folder = pathlib.Path(folder)
    (folder / "bin").mkdir(parents=True)
    (folder / "batch").mkdir()
    (folder / "batch/capacity").write_text(str(capacity))
    for name in COMMANDS:
        path = folder / "bin" / name
        path.write_text(f'#!/bin/sh\nexec /usr/bin/python3 {os.path.abspath(__file__)} {name} "$@"\n')
        path.chmod(0o755)
    return folder / "bin"


class Batch:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def ids(self):
        return sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdigit())

    def read(self, number, name):
        path = self.folder / str(number) / name
        return path.read_text().strip() if path.exists() else ""

    def write(self, number, name, text):
        (self.folder / str(number) / name).write_text(str(text))

    def pid(self, number):
        return int(self.read(number, "pid") or 0)

    def state(self, number):
        """queued, running, completed, failed or cancelled."""
        if code := self.read(number, "code"):
            return "cancelled" if self.read(number, "cancelled") else "completed" if code == "0" else "failed"
        if self.pid(number):
            if os.path.exists(f"/proc/{self.pid(number)}"):
                return "running"
            return "cancelled" if self.read(number, "cancelled") else self.state(number) if self.read(number, "code") else "failed"
        return "cancelled" if self.read(number, "cancelled") else "queued"

    def running(self):
        return [number for number in self.ids() if self.state(number) == "running"]

    def submit(self, words, script):
        refuse = self.folder / "refuse"
        if refuse.exists():
            sys.exit(refuse.read_text())
        number = 1
        while True:
            try:
                (self.folder / str(number)).mkdir()
                break
            except FileExistsError:
                number += 1
        self.write(number, "words", json.dumps(words))
        self.write(number, "script", script)
        alive = [one for one in self.ids() if self.state(one) in ("queued", "running")]
        self.write(number, "beside", len(alive))
        self.schedule()
        return number

    def schedule(self):
        room = int((self.folder / "capacity").read_text()) - len(self.running())
        for number in [one for one in self.ids() if self.state(one) == "queued"][:max(0, room)]:
            self.start(number)

    def start(self, number):
        here = self.folder / str(number)
        environment = {k: v for k, v in os.environ.items() if k not in ("SLURM_JOB_END_TIME", "SLURM_TIME_FORMAT")}
        environment.update(SLURM_JOB_ID=str(number), SLURM_CPUS_ON_NODE="2", FLUX_JOB_ID=f"f{number}", PBS_JOBID=f"{number}.server", NCPUS="2")
        with open(here / "output", "ab") as log:
            one = subprocess.Popen(["/bin/sh", "-c", 'echo $$ >pid; /bin/sh script & c=$!; echo $c >leader; trap "kill -TERM $c" TERM\n'
                                    'while :; do wait $c; code=$?; kill -0 $c 2>/dev/null || break; done; echo $code >code.new; mv code.new code'],
                                   cwd=here, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment)
        self.write(number, "pid", one.pid)

    def terminate(self, number):
        if self.state(number) == "running":
            os.kill(self.pid(number), signal.SIGTERM)

    def cancel(self, number):
        """As scancel: SIGTERM to all processes, those of pods first, then SIGKILL to what is left."""
        self.write(number, "cancelled", "yes")
        if not self.pid(number):
            return
        processes = descendants(self.pid(number))
        for pid in reversed(processes):
            signal_all([pid], signal.SIGTERM)
            time.sleep(0.02)  # so that whoever looks after it hears of its end before the next signal
        end = time.monotonic() + 3
        while self.state(number) == "running" and time.monotonic() < end:
            time.sleep(0.05)
        signal_all(processes, signal.SIGKILL)


def signal_all(processes, number):
    for pid in processes:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def descendants(pid):
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents.setdefault(int(pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1]), []).append(int(entry))
        except (OSError, IndexError):
            continue
    found, next_ones = [], [pid]
    while next_ones:
        one = next_ones.pop()
        found.append(one)
        next_ones += parents.get(one, [])
    return found


def time_of(batch, number, name):
    path = batch.folder / str(number) / name
    return path.stat().st_mtime if path.exists() else 0


def slurm(batch, name, words):
    if name == "sbatch":
        print(batch.submit(words, sys.stdin.read()))
    elif name == "squeue":
        batch.schedule()
        words_of = {"queued": "PENDING", "running": "RUNNING", "completed": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELLED"}
        for number in batch.ids():
            times = [int(time_of(batch, number, one)) or "N/A" for one in ("pid", "code")]
            print(f"{number}|{words_of[batch.state(number)]}|{times[0]}|{times[1]}|None")
    elif words[:2] == ["--batch", "--signal=TERM"]:
        batch.terminate(words[2])
    else:
        batch.cancel(words[0])


def flux(batch, words):
    if words[0] == "submit":
        split = words.index("--")
        print(f"f{batch.submit(words[1:split], words[split + 3])}")
    elif words[:3] == ["job", "id", "--to=dec"]:
        print(words[3][1:])
    elif words[0] == "jobs":
        batch.schedule()
        words_of = {"queued": "SCHED|", "running": "RUN|", "completed": "INACTIVE|COMPLETED", "failed": "INACTIVE|FAILED",
                    "cancelled": "INACTIVE|CANCELED"}
        for number in batch.ids():
            print(f"{number}|{words_of[batch.state(number)]}|{time_of(batch, number, 'pid')}|{time_of(batch, number, 'code')}")
    elif words[:3] == ["job", "kill", "--signal=TERM"]:
        batch.terminate(words[3])
    elif words[0] == "cancel":
        batch.cancel(words[1])


def pbs(batch, name, words):
    number = words[-1].removesuffix(".server") if words else ""
    if name == "qsub":
        print(f"{batch.submit(words, sys.stdin.read())}.server")
    elif name == "qselect":
        batch.schedule()
        print("".join(f"{one}.server\n" for one in batch.ids()), end="")
    elif name == "qstat":
        words_of = {"queued": "Q", "running": "R"}
        print(json.dumps({"Jobs": {f"{one}.server": {"job_state": words_of.get(batch.state(one), "F"),
                                                     "Exit_status": int(batch.read(one, "code") or -1)} for one in batch.ids()}}))
    elif name == "qsig":
        batch.terminate(number)
    else:
        batch.cancel(number)


def main():
    name, words = sys.argv[1], sys.argv[2:]
    batch = Batch(os.environ["BATCH_SYSTEM"])
    if name == "flux":
        flux(batch, words)
    elif name.startswith("s"):
        slurm(batch, name, words)
    else:
        pbs(batch, name, words)


if __name__ == "__main__":
    main()
