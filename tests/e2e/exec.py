#!/usr/bin/python3
"""Commands in running pods (`muster exec`), whatever is killed meanwhile; and MPI programs in one line (`muster mpirun`).

    MUSTER=build/release/muster tests/e2e/exec.py [TEST…]

MPI: a test is skipped where its MPI is not installed.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import Cluster, World, condition, eventually, finished, processes_of  # noqa: E402

MUSTER = os.path.abspath(os.environ["MUSTER"])
# Its pods run until they are told to go on.
WAITS = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'
# Prints a line and counts to 40, in 4 s.
COUNTS = "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); sleep 0.1; done; exit 9"
COUNTED = "".join(f"{i}\n" for i in range(40))


class Case(World):
    def start(self, completions=1, **cluster):
        """A cluster whose job `j` runs, and its pods' names by index."""
        self.it = self.cluster(agents=1, slots=4, grace="30s", **cluster)
        self.seeing = self.witness(self.it)
        self.submit(self.it, self.seeing.job("j", WAITS, completions))
        eventually(lambda: self.it.api.job("j")["status"].get("ready") == completions, "the pods run")
        pods = self.pods_of(self.it, "j")
        self.pod = {int(p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]): p["metadata"]["name"] for p in pods}

    def words(self, *args):
        return [MUSTER, "exec", "--api", self.it.api_addr, *args]

    def run_in(self, pod, *command, code=0, timeout=60):
        done = subprocess.run(self.words(pod, "--", *command), capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout)
        self.assertEqual(done.returncode, code, done.stderr.decode())
        return done

    def shell(self, script, index=0, **how):
        return self.run_in(self.pod[index], "sh", "-c", script, **how)

    def begin(self, script, index=0):
        process = subprocess.Popen(self.words(self.pod[index], "--", "sh", "-c", script), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL)
        self.addCleanup(self.drop, process)
        return process

    @staticmethod
    def drop(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            pipe.close()

    def sessions(self):
        """Processes of commands, without those of the pods themselves."""
        return [pid for pid in processes_of(self.seeing.folder) if b"marker-of-a-session" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]

    def none_left(self, timeout=15):
        def gone():
            try:
                return not self.sessions()
            except OSError:
                return False
        eventually(gone, "no process of a session is left", timeout)


class Exec(Case):
    def test_both_streams_and_the_pods_context(self):
        self.start(completions=2)
        done = self.shell('echo $JOB_COMPLETION_INDEX $MUSTER_POD_NAME; pwd; echo to stderr >&2; cat', index=1)
        where = os.readlink(f"/proc/{self.seeing.starts()[0][3]}/cwd")
        self.assertEqual(done.stdout.decode(), f"1 {self.pod[1]}\n{where}\n")
        self.assertEqual(done.stderr.decode(), "to stderr\n")
        by_index = subprocess.run(self.words("job/j", "--index", "0", "--", "printenv", "MUSTER_POD_NAME"), capture_output=True, timeout=30)
        self.assertEqual(by_index.stdout.decode().strip(), self.pod[0])
        self.none_left()

    def test_output_comes_as_it_is_written(self):
        self.start()
        process = self.begin("echo first; sleep 300 # marker-of-a-session")
        began = time.monotonic()
        self.assertEqual(process.stdout.readline(), b"first\n")
        self.assertLess(time.monotonic() - began, 5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 130)
        self.none_left()

    def test_exit_codes(self):
        self.start()
        self.shell("exit 0")
        self.shell("exit 7", code=7)
        self.shell("exit 255", code=255)
        self.shell("kill -TERM $$", code=143)
        self.shell("kill -KILL $$", code=137)
        self.assertIn(b"/no/such/program", self.run_in(self.pod[0], "/no/such/program", code=127).stderr)
        self.assertIn(b"/etc/passwd", self.run_in(self.pod[0], "/etc/passwd", code=126).stderr)

    def test_errors(self):
        self.start()
        self.assertIn(b"not found", self.run_in("nobody-0-abcde", "true", code=3).stderr)
        self.assertIn(b"not found", self.run_in("job/nothing", "true", code=3).stderr)
        refused = subprocess.run(self.words("-it", self.pod[0], "--", "sh"), capture_output=True, timeout=30)
        self.assertEqual(refused.returncode, 2)
        self.assertIn(b"not supported", refused.stderr)
        absent = subprocess.run([MUSTER, "exec", "--api", "127.0.0.1:1", self.pod[0], "--", "true"], capture_output=True, timeout=30)
        self.assertEqual(absent.returncode, 4)
        (self.seeing.folder / "go").touch()
        self.it.wait("j", finished)
        late = self.run_in(self.pod[0], "true", code=5).stderr
        self.assertIn(b"has ended", late)
        self.assertIn(b"no running pod", self.run_in("job/j", "true", code=5).stderr)

    def test_100_megabytes(self):
        """Through a reader that pauses; two streams at once."""
        self.start()
        size = 100 << 20
        script = f"head -c {size} /dev/zero | tr '\\0' 'x' & head -c {size // 10} /dev/zero >&2; wait"
        digest, read, paused = hashlib.sha256(), 0, False
        with tempfile.TemporaryFile() as err:
            process = subprocess.Popen(self.words(self.pod[0], "--", "sh", "-c", script), stdout=subprocess.PIPE, stderr=err,
                                       stdin=subprocess.DEVNULL)
            self.addCleanup(process.stdout.close)
            while part := process.stdout.read(1 << 16):
                digest.update(part)
                read += len(part)
                if read > 20 << 20 and not paused:
                    time.sleep(2)
                    paused = True
            self.assertEqual(process.wait(60), 0)
            self.assertEqual(err.seek(0, 2), size // 10)
        self.assertEqual(read, size)
        self.assertEqual(digest.hexdigest(), hashlib.sha256(b"x" * size).hexdigest())

    def test_a_reader_that_leaves_ends_the_command(self):
        self.start()
        line = " ".join(f"'{word}'" for word in self.words(self.pod[0], "--", "sh", "-c", "while :; do echo y; sleep 0.01; done # marker-of-a-session"))
        done = subprocess.run(["bash", "-c", f"{line} | head -1; exit ${{PIPESTATUS[0]}}"], capture_output=True, timeout=30)
        self.assertEqual((done.stdout, done.returncode), (b"y\n", 141), done.stderr)
        self.none_left()

    def test_an_interrupt_kills_what_ignores_sigterm(self):
        self.start()
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin("trap '' TERM; echo on; while :; do sleep 1; done # marker-of-a-session")
            self.assertEqual(process.stdout.readline(), b"on\n")
            self.assertEqual(len(self.sessions()), 1)
            process.send_signal(number)
            self.assertEqual(process.wait(10), 130)
            self.none_left()
        self.assertIn(self.seeing.starts()[0][3], processes_of(self.seeing.folder), "the pod itself runs on")

    def test_the_pod_ends_meanwhile(self):
        self.start()
        process = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        (self.seeing.folder / "go").touch()
        self.assertEqual(process.wait(20), 137)
        self.it.wait("j", finished)
        self.assertIsNotNone(condition(self.it.api.job("j"), "Complete"))
        self.none_left()

    def test_the_coordinator_is_killed_meanwhile(self):
        self.start()
        process = self.begin(COUNTS)
        self.assertEqual(process.stdout.readline(), b"0\n")
        self.it.kill_coordinator()
        time.sleep(0.5)  # the command goes on
        self.it.start_coordinator()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out.decode()), (9, COUNTED[2:]), err)

    def test_an_interrupt_while_the_coordinator_is_away(self):
        self.start()
        process = self.begin("echo on; sleep 300 # marker-of-a-session")
        self.assertEqual(process.stdout.readline(), b"on\n")
        self.it.kill_coordinator()
        process.send_signal(signal.SIGINT)
        self.it.start_coordinator()
        self.assertEqual(process.wait(20), 130)
        self.none_left()

    def test_the_agent_is_killed_meanwhile(self):
        self.start()
        process = self.begin(COUNTS)
        self.assertEqual(process.stdout.readline(), b"0\n")
        self.it.kill_agent("node-0")
        time.sleep(0.5)
        self.it.start_agent("node-0")
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out.decode()), (9, COUNTED[2:]), err)

    def test_the_command_ends_while_nobody_reads(self):
        """And its pod, too: the output and the exit code are still there for the client that comes back."""
        self.start()
        process = self.begin('echo first; until [ -e "$WITNESS/on" ]; do sleep 0.05; done; echo last; exit 5')
        self.assertEqual(process.stdout.readline(), b"first\n")
        self.it.kill_coordinator()
        (self.seeing.folder / "on").touch()
        time.sleep(1)
        (self.seeing.folder / "go").touch()
        eventually(lambda: not processes_of(self.seeing.folder), "the pod ends")
        self.it.start_coordinator()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (5, b"last\n"), err)

    def test_a_client_that_dies_leaves_nothing_and_a_slow_reader_loses_nothing(self):
        self.start()
        gone = self.begin("echo on; sleep 300 # marker-of-a-session")
        slow = self.begin(f"head -c {4 << 20} /dev/zero; sleep 75; echo last; exit 6")
        self.assertEqual(gone.stdout.readline(), b"on\n")
        gone.kill()
        gone.wait()
        self.none_left(90)  # a minute after it was last read
        time.sleep(10)
        out, err = slow.communicate(timeout=60)
        self.assertEqual((len(out), out[-5:], slow.returncode), ((4 << 20) + 5, b"last\n", 6), err)

    def test_a_client_that_was_stopped_for_long_starts_nothing_again(self):
        self.start()
        process = self.begin('echo on >> "$WITNESS/runs"; echo on; sleep 300 # marker-of-a-session')
        self.assertEqual(process.stdout.readline(), b"on\n")
        process.send_signal(signal.SIGSTOP)
        self.none_left(90)  # nobody has read it for a minute
        process.send_signal(signal.SIGCONT)
        err = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, 5, err)
        self.assertIn(b"the exit code of the command is not known: the session is over", err)
        self.assertEqual((self.seeing.folder / "runs").read_text(), "on\n")

    def test_a_session_is_that_of_its_pod(self):
        self.start(completions=2)
        path = {i: f"/apis/muster.dev/v1/namespaces/default/pods/{pod}/exec" for i, pod in self.pod.items()}
        session = "0123456789abcdef" * 2
        again = {"session": session, "resume": True}

        def post(index, body):
            def served():
                code, answer = self.it.api.call("POST", path[index], body)
                return code != 503 and (code, answer.get("message"))
            return eventually(served, "an answer")
        over = (409, "the session is over")
        self.assertEqual(post(0, again), over)
        self.assertEqual(post(0, {"session": session, "command": ["sleep", "300"]})[0], 201)
        self.assertEqual(post(1, again), (404, "there is no such session"))
        self.it.restart_coordinator()
        self.assertEqual(self.it.api.call("GET", f"{path[0]}?session={session}")[0], 404)
        self.assertEqual(post(1, again), (409, "the session is that of another pod"))
        self.assertEqual(post(0, again)[0], 201)
        self.assertEqual(self.it.api.call("DELETE", f"{path[0]}?session={session}")[0], 200)
        eventually(lambda: post(0, again) == over, "its end")

    def test_several_containers(self):
        self.it = self.cluster(agents=1, slots=4)
        self.seeing = self.witness(self.it)
        job = self.seeing.job("two", WAITS, 1)
        containers = job["spec"]["template"]["spec"]["containers"]
        containers.append({**containers[0], "name": "side"})
        self.submit(self.it, job)
        eventually(lambda: self.it.api.job("two")["status"].get("ready") == 1, "the pod runs")
        done = subprocess.run(self.words("job/two", "--", "echo", "hi"), capture_output=True, timeout=30)
        self.assertEqual((done.returncode, done.stdout), (0, b"hi\n"), done.stderr)
        self.assertIn(b"container main, the first of main, side", done.stderr)


RING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  int rank, size, sum = 0, code = argc > 1 ? atoi(argv[1]) : 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const char *pod = getenv("MUSTER_POD_NAME"), *a = getenv("PASSED_A"), *b = getenv("PASSED_B");
  printf("rank %d of %d sum %d pod %s a %s b %s\n", rank, size, sum, pod ? pod : "-", a ? a : "-", b ? b : "-");
  fflush(stdout);
  MPI_Finalize();
  return rank == 0 ? code : 0;
}
"""


class Mpirun(unittest.TestCase):
    """With each MPI, on this machine, without a coordinator."""
    KINDS = {"openmpi": ("mpicc.openmpi", "mpirun.openmpi"), "mpich": ("mpicc.mpich", "mpiexec.hydra")}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="muster-mpirun-")
        cls.dir = pathlib.Path(cls.folder.name)
        (cls.dir / "ring.c").write_text(RING)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def program(self, kind):
        compiler, launcher = self.KINDS[kind]
        for tool in (compiler, launcher):
            if shutil.which(tool) is None:
                self.skipTest(f"{tool} is not installed")
        program = self.dir / f"ring.{kind}"
        if not program.exists():
            subprocess.run([compiler, self.dir / "ring.c", "-o", program], check=True, timeout=120)
        return str(program)

    def mpirun(self, *args, code=0, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("MUSTER_", "OMPI_"))}
        if os.geteuid() == 0:
            clean.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        done = subprocess.run([MUSTER, "mpirun", "--timeout", "60s", *map(str, args)], text=True, capture_output=True, timeout=120,
                              cwd=self.dir, stdin=subprocess.DEVNULL, env={**clean, **env})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def ranks(self, done):
        """What each rank printed, in their order, as words."""
        return sorted((line.split() for line in re.findall(r"rank \d+ of \d+ sum .*", done.stdout)), key=lambda words: int(words[1]))

    def check(self, kind):
        program = self.program(kind)
        done = self.mpirun("-N", 3, "--mpi", kind, "--name", "ring", "-x", "PASSED_A", "-x", "PASSED_B=two words", "--", program,
                           PASSED_A="1", SLURM_JOB_ID="7", SLURM_NODELIST="nowhere", PMI_RANK="5", OMPI_MCA_btl="none")
        ranks = self.ranks(done)
        self.assertEqual([" ".join(words[:6]) for words in ranks], [f"rank {i} of 3 sum 3" for i in range(3)], done.stdout)
        self.assertEqual(len({words[7] for words in ranks}), 3, "each rank in its own pod: " + done.stdout)
        for words in ranks:
            self.assertEqual(" ".join(words[8:]), "a 1 b two words")
        self.assertIn("job/ring Complete: the leader (index 0) succeeded, took", done.stdout)

        done = self.mpirun("-N", 2, "--slots", 2, "-np", 3, "--tag-output", "--mpi", kind, "--", program)
        self.assertEqual(len(self.ranks(done)), 3, done.stdout)
        self.assertRegex(done.stdout, r"(?m)^\[[^\]]*1\]" if kind == "mpich" else r"(?m)^\[1,1\]<stdout>:")

        failed = self.mpirun("-N", 2, "--mpi", kind, "--name", "bad", "--", program, 7, code=7)
        self.assertIn("job/bad Failed: the leader (index 0) failed", failed.stdout)

    def test_openmpi(self):
        self.check("openmpi")

    def test_mpich(self):
        self.check("mpich")

    def test_whichever_mpirun_is(self):
        version = subprocess.run(["mpirun", "--version"], text=True, capture_output=True).stdout if shutil.which("mpirun") else ""
        kind = "openmpi" if "Open MPI" in version else "mpich" if "HYDRA" in version else None
        if kind is None:
            self.skipTest("mpirun is not installed")
        done = self.mpirun("-N", 2, "--", self.program(kind))
        self.assertEqual(len(self.ranks(done)), 2, done.stdout)

    def test_on_a_coordinator(self):
        program = self.program("openmpi")
        with Cluster(agents=2, slots=2) as cluster:
            cluster.wait_nodes()
            done = self.mpirun("--api", cluster.api_addr, "-N", 3, "--mpi", "openmpi", "--", program)
            self.assertEqual(len(self.ranks(done)), 3, done.stdout)
            job, = cluster.api.call("GET", cluster.api.jobs())[1]["items"]
            self.assertEqual(job["metadata"]["annotations"]["muster.dev/mpi"], "openmpi,slots=1")
            self.assertEqual(json.dumps(job["spec"]["successPolicy"]["rules"][0]["succeededIndexes"]), '"0"')

    def test_a_launcher_that_is_not_there(self):
        done = self.mpirun("-N", 2, "--name", "none", "--", "/no/such/program", code=127, PATH=str(self.dir))
        self.assertIn("mpirun", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
