"""A Slurm of one node, with accounting, in a folder of its own: munged, mariadbd, slurmdbd, slurmctld and slurmd.

Debian: apt-get install slurmctld slurmd slurm-client slurmdbd munge mariadb-server. It needs root, as slurmd does.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

from command import free_port

PROGRAMS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr", "slurmctld", "slurmd", "sbatch", "sacct")


def program(name):
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


def unavailable():
    """Why there can be no Slurm here, or None."""
    if missing := [name for name in PROGRAMS if not program(name)]:
        return f"not installed: {', '.join(missing)}"
    return None if os.geteuid() == 0 else "slurmd needs root"


class Slurm:
    """`env` leads its clients to it."""

    def __init__(self, folder, cpus):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.folder.chmod(0o755)
        self.processes = []
        self.env = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        try:
            self.start(cpus)
        except BaseException:
            self.close()
            raise

    def start(self, cpus):
        node = os.uname().nodename.partition(".")[0]
        ctld, d, dbd, sql = (free_port() for _ in range(4))
        socket = self.folder / "munge"
        (self.folder / "key").write_bytes(os.urandom(64))
        (self.folder / "key").chmod(0o600)
        self.file("slurm.conf", f"""
            ClusterName=comparison
            SlurmctldHost={node}(127.0.0.1)
            SlurmUser=root
            AuthType=auth/munge
            AuthInfo=socket={socket}
            CredType=cred/munge
            SlurmctldPort={ctld}
            SlurmdPort={d}
            StateSaveLocation={self.folder}/state
            SlurmdSpoolDir={self.folder}/spool
            SlurmctldPidFile={self.folder}/slurmctld.pid
            SlurmdPidFile={self.folder}/slurmd.pid
            ProctrackType=proctrack/linuxproc
            TaskPlugin=task/none
            MpiDefault=none
            ReturnToService=2
            SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1,default_queue_depth=1000
            SelectType=select/cons_tres
            SelectTypeParameters=CR_CPU
            SlurmdParameters=config_overrides
            JobAcctGatherType=jobacct_gather/linux
            JobAcctGatherFrequency=1
            AccountingStorageType=accounting_storage/slurmdbd
            AccountingStorageHost=127.0.0.1
            AccountingStoragePort={dbd}
            AccountingStoragePass={socket}
            NodeName={node} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000
            PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
            """)
        self.file("slurmdbd.conf", f"""
            AuthType=auth/munge
            AuthInfo=socket={socket}
            DbdHost={node}
            DbdAddr=127.0.0.1
            DbdPort={dbd}
            SlurmUser=root
            StorageType=accounting_storage/mysql
            StorageHost=127.0.0.1
            StoragePort={sql}
            StorageUser=slurm
            PidFile={self.folder}/slurmdbd.pid
            """)
        (self.folder / "slurmdbd.conf").chmod(0o600)
        self.file("cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        for name in ("state", "spool", "sql"):
            (self.folder / name).mkdir()
        self.daemon("munged", "--foreground", "--force", "--socket", socket, "--key-file", self.folder / "key", "--pid-file",
                    self.folder / "munged.pid", "--log-file", self.folder / "munged.log", "--seed-file", self.folder / "seed")
        subprocess.run([program("mariadb-install-db"), "--no-defaults", "--user=root", "--skip-test-db", f"--datadir={self.folder}/sql"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        self.daemon("mariadbd", "--no-defaults", "--user=root", "--skip-grant-tables", "--bind-address=127.0.0.1", f"--port={sql}",
                    f"--datadir={self.folder}/sql", f"--socket={self.folder}/sql.sock", f"--pid-file={self.folder}/sql.pid")
        self.until(lambda: (self.folder / "sql.sock").exists(), "mariadbd")
        self.daemon("slurmdbd", "-D")
        self.until(lambda: self.run("sacctmgr", "-i", "add", "cluster", "comparison"), "slurmdbd")
        self.daemon("slurmctld", "-D", "-c")
        self.daemon("slurmd", "-D")
        self.until(lambda: "idle" in self.run("sinfo", "-h", "-o", "%T"), "slurmd")

    def file(self, name, text):
        (self.folder / name).write_text("\n".join(line.strip() for line in text.strip().splitlines()) + "\n")

    def daemon(self, name, *words):
        with open(self.folder / f"{name}.out", "ab") as log:
            self.processes.append(subprocess.Popen([program(name), *map(str, words)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env={**os.environ, **self.env}, cwd=self.folder))

    def run(self, *words):
        """The output of a client, empty if it fails."""
        done = subprocess.run(words, text=True, capture_output=True, stdin=subprocess.DEVNULL, env={**os.environ, **self.env}, timeout=60)
        return done.stdout + " " if done.returncode == 0 else ""

    def until(self, reached, what, timeout=60):
        end = time.monotonic() + timeout
        while not reached():
            for process in self.processes:
                if process.poll() is not None:
                    raise AssertionError(f"{process.args[0]} has ended; its output is in {self.folder}")
            if time.monotonic() > end:
                raise AssertionError(f"{what} does not serve within {timeout} s; the output is in {self.folder}")
            time.sleep(0.05)

    def close(self):
        """Ends all jobs, too."""
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("scancel", "--user", "root")
            self.until(lambda: self.run("squeue", "--noheader") == " ", "an empty queue", 40)
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
