#!/usr/bin/python3
"""Real MPI programs, as Debian packages them, over several nodes: each says itself whether its results are right, and where its ranks ran is checked.

    MUSTER=build/release/muster tests/e2e/codes.py [TEST…]      by default those with the smallest packages
    MUSTER=build/release/muster tests/e2e/codes.py all          `./dev codes` also installs what they need

Debian's mpi4py, HPCC and LAMMPS are built with Open MPI; NetPIPE and ScaLAPACK's tests also with MPICH. The nodes are those of mpi.py, with their
own addresses. Between namespaces of one kernel MPICH's UCX uses shared memory, so two ranks are told to use TCP; more are not, since over TCP
MPICH 4.0.2 may hang in MPI_Finalize with three or more, also without muster.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import eventually  # noqa: E402
from mpi import ENV, LAUNCHERS, Site, can_make_namespaces  # noqa: E402

SMALLEST = ("Mpi4py", "NetPipe")
SCALAPACK = pathlib.Path("/usr/lib/x86_64-linux-gnu/scalapack")
LIB = pathlib.Path(__file__).resolve().parent / "lib"
# Notes where a rank runs, and becomes it.
HERE = '#!/bin/sh\necho "${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $MUSTER_NODE_NAME $(hostname)" >>%s\nexec "$@"\n'


def settings(mpi, ranks):
    """Variables of the shell with which ranks use the network."""
    return {"UCX_TLS": "tcp,self"} if (mpi, ranks) == ("mpich", 2) else {}


class Codes(Site):
    """Runs programs, and checks that each rank ran on the node of its index."""
    NEEDS = {}  # files, by their packages

    @classmethod
    def setUpClass(cls):
        missing = [package for package, file in cls.NEEDS.items() if not os.path.exists(file)]
        assert not missing, f"not installed: {' '.join(missing)}; ./dev codes installs them"
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.folder = self.dir / self.id().rpartition(".")[2]
        self.folder.mkdir()
        self.addCleanup(shutil.rmtree, self.folder)
        self.places = self.folder / "places"
        self.here = self.folder / "here"
        self.here.write_text(HERE % self.places)
        self.here.chmod(0o755)

    def start(self, hosts, slots, *program, mpi="openmpi"):
        """The job's name and its client, which runs in a folder of the test."""
        self.places.unlink(missing_ok=True)
        return self.mpirun("-N", hosts, "--slots", slots, "--mpi", mpi, "-D", self.folder, "--", self.here, *program, **settings(mpi, hosts * slots))

    def finish(self, job, process, hosts, slots, timeout=120):
        """Waits for the client, checks the places of the ranks, and returns what the program printed."""
        out, err = process.communicate(timeout=timeout)
        self.assertEqual(process.returncode, 0, out + err)
        self.check_places(job, hosts, slots)
        return out

    def run_code(self, hosts, slots, *program, **more):
        return self.finish(*self.start(hosts, slots, *program, **more), hosts, slots)

    def check_places(self, job, hosts, slots, runs=1):
        nodes = {one["index"]: one["node"] for one in self.attempts(job)}
        self.assertEqual((len(nodes), len(set(nodes.values()))), (hosts, hosts), "the hosts are on different nodes")
        expected = [f"{rank} {nodes[rank // slots]} {nodes[rank // slots]}" for rank in range(hosts * slots)]
        self.assertEqual(sorted(self.places.read_text().splitlines()), sorted(expected * runs))

    def restart_coordinator(self, meanwhile):
        """Kills the coordinator, and starts one again after `meanwhile`."""
        self.kill("coordinator")
        try:
            meanwhile()
        finally:
            self.start_coordinator()


class Mpi4py(Codes):
    NODES = 3
    NEEDS = {"python3-mpi4py": "/usr/lib/python3/dist-packages/mpi4py"}

    def test_hello(self):
        out = self.run_code(3, 2, "/usr/bin/python3", "-m", "mpi4py.bench", "helloworld")
        said = re.findall(r"Hello, World! I am process +(\d) of 6 on (\w+)\.", out)
        self.assertEqual(len(said), 6, out)
        self.assertEqual({f"{rank} {host} {host}" for rank, host in said}, set(self.places.read_text().splitlines()))

    def test_a_pool_of_ranks(self):
        """mpi4py.futures: rank 0 hands out work, and the others do it."""
        program = self.folder / "pool.py"
        program.write_text("from mpi4py.futures import MPIPoolExecutor\n"
                           "if __name__ == '__main__':\n    with MPIPoolExecutor() as pool: print(sum(pool.map(pow, range(100), [2] * 100)))\n")
        self.assertEqual(self.run_code(3, 1, "/usr/bin/python3", "-m", "mpi4py.futures", program), "328350\n")

    def test_a_kill_of_the_coordinator_changes_nothing(self):
        """The ring goes round while there is none; the client follows the next one, and prints each line once."""
        stop = self.folder / "stop"
        job, process = self.start(3, 1, "/usr/bin/python3", LIB / "mpi4py_ring.py", stop)

        def goes_on():
            before = rounds()
            eventually(lambda: rounds() >= before + 5 or process.poll() is not None, "rounds", 60)

        def rounds():
            noted = stop.with_suffix(".rounds")
            return int(noted.read_text() or 0) if noted.exists() else 0
        goes_on()
        self.restart_coordinator(goes_on)
        goes_on()
        stop.touch()
        out = self.finish(job, process, 3, 1)
        said = [int(n) for n in re.findall(r"^round (\d+)$", out, re.M)]
        self.assertEqual(said, list(range(rounds() + 1)))
        self.assertEqual(sorted(re.findall(r"^rank (\d) of 3 on c\d$", out, re.M)), ["0", "1", "2"], out)
        self.assertEqual({(one["index"], one["attempt"]) for one in self.attempts(job)}, {(0, 0), (1, 0), (2, 0)})


class NetPipe(Codes):
    """Two ranks check what the other one sent, up to 100 kB at a time, and all of it has passed the wires of both nodes."""
    NODES = 2
    PROGRAMS = {"openmpi": "/usr/bin/NPopenmpi", "mpich": "/usr/bin/NPmpich2"}
    NEEDS = {"netpipe-openmpi": PROGRAMS["openmpi"], "netpipe-mpich2": PROGRAMS["mpich"]}

    def sent(self):
        return [int(subprocess.run([*node.prefix, "cat", "/sys/class/net/eth0/statistics/tx_bytes"], check=True, capture_output=True).stdout)
                for node in self.nodes]

    def test_messages_arrive_unchanged_over_the_network(self):
        for mpi, program in self.PROGRAMS.items():
            with self.subTest(mpi):
                before = self.sent()
                job, process = self.start(2, 1, program, "-i", "-n", 5, "-u", 100_000, mpi=mpi)
                self.finish(job, process, 2, 1)
                said = self.log(job, 0, stream="Stderr")
                rows = re.findall(r"^ *(\d+): +(\d+) bytes +(\d+) times --> +(.*)$", said, re.M)
                self.assertEqual({verdict.strip() for *_, verdict in rows}, {"Integrity check passed"}, said)
                self.assertGreater(int(rows[-1][1]), 90_000)
                crossed = sum(int(size) * int(times) for _, size, times, _ in rows)
                for was, now in zip(before, self.sent()):
                    self.assertGreater(now - was, crossed)


class Scalapack(Codes):
    """Its own tests of reductions and inversions, one after another in a batch job.

    Those of xdllt and xdlu are of no use: with Debian's ScaLAPACK, both fail or hang now and then, also under plain mpirun.
    """
    NODES = 4
    NEEDS = {"scalapack-mpi-test": SCALAPACK / "openmpi-tests"}
    # As Debian's, whose comments say what each line is, but with fewer sizes, and with process grids of all ranks.
    INPUTS = {"BRD.dat": "-/-/-/6/2/17 50/13 50/2/2 3/{grids}/{rows}/{columns}/10.0/",
              "INV.dat": "-/-/-/6/1/'GEN'/2/17 50/2/2 3/{grids}/{rows}/{columns}/1.0/"}
    VERDICTS = ("{passed} tests completed and passed residual checks.", "0 tests completed and failed residual checks.",
                "0 tests skipped because of illegal input values.", "END OF TESTS.")

    def test_results_pass_their_residual_checks(self):
        for mpi, hosts, slots, grids in (("openmpi", 4, 1, [(1, 4), (2, 2), (4, 1)]), ("openmpi", 2, 2, [(2, 2)]),
                                         ("mpich", 2, 1, [(1, 2), (2, 1)]), ("mpich", 4, 1, [(2, 2)])):
            name = f"scalapack-{mpi}-{hosts}"
            with self.subTest(name):
                for file, text in self.INPUTS.items():
                    rows, columns = (" ".join(map(str, side)) for side in zip(*grids))
                    (self.folder / file).write_text(text.replace("/", "\n").format(grids=len(grids), rows=rows, columns=columns))
                self.places.unlink(missing_ok=True)
                run = " && ".join(f"{LAUNCHERS[mpi]} {self.here} {SCALAPACK}/{mpi}-tests/{test}" for test in ("xdbrd", "xdinv"))
                made = self.muster("submit", "--mpi", mpi, "-N", hosts, "--slots", slots, "-J", name, "-D", self.folder, "--grace", "1s",
                                   "--", "sh", "-c", run, env={**os.environ, **ENV, **settings(mpi, hosts * slots)})
                self.assertEqual(made.returncode, 0, made.stderr)
                self.addCleanup(self.gone, name, self.job_of(name)["metadata"]["uid"])
                self.completed(name, 120)
                said = self.log(name, 0)
                for verdict in self.VERDICTS:
                    line = re.escape(verdict.format(passed=4 * len(grids)))
                    self.assertEqual(len(re.findall(rf"(?m)^ *{line}$", said)), 2, [line, said])
                self.check_places(name, hosts, slots, runs=2)


class Hpcc(Codes):
    NODES = 2
    NEEDS = {"hpcc": "/usr/bin/hpcc"}
    # As in Debian's example, whose comments say what each line is, with a matrix of 100 and blocks of 20 for HPL and PTRANS.
    INPUT = "-/-/HPL.out/8/1/100/1/20/0/1/2/2/16.0/1/2/1/4/1/2/1/1/1/1/1/0/2/64/0/0/1/8/-/0/1200/0/40/"

    def test_all_benchmarks_succeed(self):
        (self.folder / "hpccinf.txt").write_text(self.INPUT.replace("/", "\n"))
        self.run_code(2, 2, "/usr/bin/hpcc")
        said = (self.folder / "hpccoutf.txt").read_text()
        values = dict(re.findall(r"^(\w+)=(\S+)$", said, re.M))
        for name, value in {"Success": "1", "CommWorldProcs": "4", "HPL_N": "100", "MPIRandomAccess_Errors": "0",
                            "MPIRandomAccess_LCG_Errors": "0"}.items():
            self.assertEqual(values.get(name), value, said)
        self.assertRegex(said, r"(?m)^ +1 tests completed and passed residual checks,$")
        self.assertNotIn("FAILED", said)


class Lammps(Codes):
    """Debian's LAMMPS melts a Lennard-Jones crystal."""
    NODES = 3
    NEEDS = {"lammps": "/usr/bin/lmp"}
    INPUT = ("units lj\nlattice fcc 0.8442\nregion box block 0 8 0 8 0 8\ncreate_box 1 box\ncreate_atoms 1 box\nmass 1 1.0\n"
             "velocity all create 1.44 87287 loop geom\npair_style lj/cut 2.5\npair_coeff 1 1 1.0 1.0 2.5\nneighbor 0.3 bin\n"
             "neigh_modify delay 5 every 1\nfix 1 all nve\nthermo 10\nthermo_style custom step temp pe etotal press\nrun 50\n{gate}run 50\n")

    def thermo(self, said):
        """Step, temperature, energies and pressure, of both runs."""
        return [tuple(map(float, line.split())) for line in re.findall(r"^ +\d+(?: +-?[\d.]+){4} *$", said, re.M)]

    def command(self, gate=""):
        (self.folder / "in.melt").write_text(self.INPUT.format(gate=gate))
        return "/usr/bin/lmp", "-in", "in.melt", "-log", "none"

    def test_ranks_compute_what_one_computes_also_without_a_coordinator(self):
        """The coordinator is killed between two steps, at which rank 0 waits; the rest is computed before the next one starts."""
        alone = subprocess.run(self.command(), cwd=self.folder, text=True, capture_output=True, timeout=60, check=True, env={**os.environ, **ENV}).stdout
        expected = self.thermo(alone)
        self.assertEqual([int(row[0]) for row in expected], [*range(0, 51, 10), *range(50, 101, 10)])
        self.check(self.run_code(3, 1, *self.command()), 3, expected)
        reached, go, done = (self.folder / name for name in ("reached", "go", "done"))
        gate = f'shell "touch {reached}; while ! [ -e {go} ]; do sleep 0.05; done"\n'
        command = self.command(gate)
        with (self.folder / "in.melt").open("a") as file:
            file.write(f'shell "touch {done}"\n')
        job, process = self.start(2, 2, *command)
        eventually(reached.exists, "the first 50 steps", 60)

        def meanwhile():
            go.touch()
            eventually(done.exists, "the other 50 steps", 60)
        self.restart_coordinator(meanwhile)
        self.check(self.finish(job, process, 2, 2), 4, expected)

    def check(self, out, ranks, expected):
        self.assertRegex(out, rf"(?m)^Loop time of \S+ on {ranks} procs for 50 steps with 2048 atoms$")
        rows = self.thermo(out)
        self.assertEqual(len(rows), len(expected), out)
        for row, other in zip(rows, expected):
            for value, right in zip(row, other):
                self.assertAlmostEqual(value, right, delta=1e-5, msg=out)  # sums are rounded in another order


if __name__ == "__main__":
    if not can_make_namespaces():
        print("codes.py: skipped: only root can make the network namespaces that it needs")
        sys.exit()
    names = [one.__name__ for one in (Mpi4py, NetPipe, Scalapack, Hpcc, Lammps)]
    if sys.argv[1:] == ["all"]:
        sys.argv[1:] = names
    unittest.main(verbosity=2, defaultTest=SMALLEST)
