#!/usr/bin/python3
"""Ten common tasks with muster, GNU parallel and Slurm: what one types, and how long it takes. docs/comparison.md shows the result.

    MUSTER=build/release/muster tests/e2e/comparison.py [TEST…]    runs each task with what is installed, and compares the document's commands
    MUSTER=build/release/muster tests/e2e/comparison.py table      measures, and writes the document's tables

Slurm takes part if lib/slurm.py finds its packages.
"""
import dataclasses
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import typing
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import slurm  # noqa: E402
from world import Cluster  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSTER = os.path.abspath(os.environ["MUSTER"])
DOCUMENT = ROOT / "docs/comparison.md"
BEGIN, END = "<!-- the comparison: written by tests/e2e/comparison.py table -->\n", "<!-- end of the comparison -->\n"
SYSTEMS = ("muster", "GNU parallel", "Slurm")
SLOTS = 2  # of muster's node and of Slurm's
ROUNDS = 3  # of which the table shows the median
LIMIT = 240  # seconds; a task that takes longer hangs

# Marks its input as done. `runs` has a line for each start and end.
STEP = '#!/bin/sh\necho "start $1" >>runs\nWORK\necho "end $1" >>runs\necho "$1" >"out/$1"\n'
BROKEN = "case $1 in 7 | 42 | 77) [ -e fixed ] || exit 1 ;; esac"
BURN = """#!/usr/bin/python3
import sys, time
held = bytearray(int(sys.argv[1]) * 50_000_000)
held[::4096] = b"x" * len(held[::4096])
while time.process_time() < 1.5:
    sum(range(10_000))
open(f"out/{sys.argv[1]}", "w").close()
"""


@dataclasses.dataclass
class Run:
    """What happened: the exit code, all output, and the directory in which it ran."""
    system: str
    code: int
    output: str
    folder: pathlib.Path
    seconds: float = 0  # until the commands have returned, and all is done
    worked: float = 0  # until a task has written the last file

    def made(self):
        return {int(path.name) for path in (self.folder / "out").iterdir()}

    def lines(self):
        path = self.folder / "runs"
        return [(what, int(number)) for what, number in map(str.split, path.read_text().splitlines())] if path.exists() else []

    def starts(self):
        return sorted(number for what, number in self.lines() if what == "start")


@dataclasses.dataclass
class Task:
    title: str
    text: str
    commands: dict  # by system: a line for each command, or "-" and the reason why there is none
    check: typing.Callable  # (test, run)
    done: typing.Callable = lambda run: True  # polled once the commands have returned
    files: dict = dataclasses.field(default_factory=dict)
    between: str = ""  # what happens after the first command
    after: str = ""  # what happens after the last one
    served: bool = False  # muster has a coordinator

    def typed(self, system):
        return self.commands[system].strip("\n")

    def why_not(self, system):
        return self.typed(system)[2:] if self.typed(system).startswith("- ") else None


def failed_tasks(run):
    """The numbers of the tasks that the system lists as failed."""
    pattern = {"muster": r"^ +(\d+) +0 +\S+ +exit 1$", "GNU parallel": r"\t\./step (\d+)$", "Slurm": r"^\d+_(\d+)\|1:0$"}[run.system]
    return sorted(map(int, re.findall(pattern, run.output, re.M)))


def check_failures(test, run):
    test.assertEqual(run.made(), set(range(1, 101)) - {7, 42, 77})
    test.assertEqual(failed_tasks(run), [7, 42, 77])


def check_files(test, run):
    test.assertEqual(sorted(path.name for path in (run.folder / "data").iterdir()), sorted(f"{name}.gz" for name in NAMES))


def check_grid(test, run):
    test.assertEqual(sorted((run.folder / "results").read_text().splitlines()), sorted(GRID[1:]))


def check_rerun(test, run):
    test.assertEqual(run.made(), set(range(1, 101)))
    test.assertEqual(run.starts(), sorted([*range(1, 101), 7, 42, 77]))


def check_throttle(test, run):
    """One at a time at first, two in the end."""
    running, most = 0, []
    for what, _ in run.lines():
        running += 1 if what == "start" else -1
        most.append(running)
    test.assertEqual(run.made(), set(range(1, 21)))
    test.assertEqual((max(most[:6]), max(most)), (1, 2), most)


def check_merge(test, run):
    test.assertEqual((run.folder / "merged").read_text(), "".join(f"{n}\n" for n in sorted(map(str, range(1, 11)))))


def check_cancel(test, run):
    test.assertEqual(run.made(), set(range(1, 21)) - set(range(11, 16)))
    test.assertEqual(run.starts(), sorted(run.made()))


def check_limit(test, run):
    test.assertEqual(run.made(), set(range(1, 11)) - {3})
    test.assertNotEqual(run.code, 0)


def check_order(test, run):
    test.assertEqual((run.folder / "all").read_text(), "".join(f"result {n}\n" for n in range(1, 101)))


def check_usage(test, run):
    """Task N holds N times 50 MB and computes for 1.5 s."""
    unit = {"K": 2 ** 10, "Ki": 2 ** 10, "Mi": 2 ** 20, "Gi": 2 ** 30}
    if run.system == "muster":  # … 3.032s   1.516s   104Mi …
        found = [(float(cpu), int(size) * unit[of]) for cpu, size, of in re.findall(r"s +(\d+\.\d+)s +(\d+)([KMG]i)\b", run.output)]
    elif run.system == "GNU parallel":
        found = [(float(user) + float(system), int(size) * 1024)
                 for user, system, size in re.findall(r"^\d (\d+\.\d+) (\d+\.\d+) (\d+)$", run.output, re.M)]
    else:
        found = [(float(cpu), int(size) * unit[of]) for cpu, size, of in re.findall(r"\.batch\|00:(\d\d\.\d+)\|(\d+)([KMG])\|?$", run.output, re.M)]
    test.assertEqual(len(found), 4, run.output)
    for number, (cpu, size) in enumerate(sorted(found, key=lambda each: each[1]), 1):
        test.assertTrue(1.4 < cpu < 3, run.output)
        test.assertTrue(number * 50e6 < size < number * 50e6 + 50e6, run.output)


NAMES = ["it's.txt", "$HOME.txt", *(f"run {n} of  18.txt" for n in range(1, 19))]
GRID = ["lr,seed", *(f"{lr},{seed}" for lr in ("0.1", "0.01", "0.001") for seed in range(1, 7))]

TASKS = [
    Task("100 tasks, of which 3 fail", "`./step N` fails for three numbers. Which ones?", {
        "muster": "muster run -a 1-100 -- ./step {}",
        "GNU parallel": "parallel --joblog log ./step ::: {1..100}\nawk '$7' log",
        "Slurm": "j=$(sbatch --parsable -W -a 1-100 --wrap './step $SLURM_ARRAY_TASK_ID')\nsacct -XPj $j -s F -o jobid,exitcode"},
         check_failures, files={"step": STEP.replace("WORK", BROKEN)}),
    Task("Files whose names have spaces", "Compress each of 20 files, whatever its name contains.", {
        "muster": "muster run gzip ::: data/*",
        "GNU parallel": "parallel gzip ::: data/*",
        "Slurm": "ls data/* >list\nsbatch -W -a 1-$(wc -l <list) --wrap 'gzip \"$(sed -n ${SLURM_ARRAY_TASK_ID}p list)\"'"},
         check_files, files={f"data/{name}": name for name in NAMES}),
    Task("A grid in a CSV file", "`grid.csv` has the columns `lr` and `seed`, and 18 rows: `./train LR SEED` for each of them.", {
        "muster": "muster run --each-csv grid.csv -- ./train {lr} {seed}",
        "GNU parallel": "parallel -C, --header : -a grid.csv ./train {lr} {seed}",
        "Slurm": "sbatch -W -a 2-$(wc -l <grid.csv) --wrap './train $(sed -n ${SLURM_ARRAY_TASK_ID}p grid.csv | tr , \" \")'"},
         check_grid, files={"grid.csv": "\n".join(GRID) + "\n", "train": '#!/bin/sh\necho "$1,$2" >>results\n'}),
    Task("Rerun what failed", "The first task again. Its cause is removed, and then only those that failed run once more.", {
        "muster": "muster run -J a -a 1-100 -- ./step {}\nmuster retry a",
        "GNU parallel": "parallel --joblog log ./step ::: {1..100}\nparallel --joblog log --retry-failed",
        "Slurm": "j=$(sbatch --parsable -W -a 1-100 --wrap './step $SLURM_ARRAY_TASK_ID')\n"
                 "sbatch -W -a $(sacct -nXPj $j -s F -o jobid | cut -d_ -f2 | paste -sd,) --wrap './step $SLURM_ARRAY_TASK_ID'"},
         check_rerun, done=lambda run: len(run.made()) == 100, files={"step": STEP.replace("WORK", BROKEN)}, between="touch fixed", served=True),
    Task("Throttle", "20 tasks of 0.2 s, one at a time; after the third, two at a time.", {
        "muster": "muster submit -J a -a 1-20%1 -- ./step {}\nmuster throttle a 2",
        "GNU parallel": "echo 1 >jobs; parallel -j jobs ./step ::: {1..20} &\necho 2 >jobs",
        "Slurm": "j=$(sbatch --parsable -a 1-20%1 --wrap './step $SLURM_ARRAY_TASK_ID')\nscontrol update job=$j arraytaskthrottle=2"},
         check_throttle, done=lambda run: len(run.made()) == 20, files={"step": STEP.replace("WORK", "sleep 0.2")},
         # GNU parallel reads `jobs` again only if its mtime, in whole seconds, is a later one.
         between="until touch now; [ $(ls out | wc -l) -ge 3 ] && [ $(stat -c %Y now) -gt $(stat -c %Y jobs 2>&- || echo 0) ]; do sleep 0.02; done",
         served=True),
    Task("An array, then a merge", "`./merge` runs once all ten tasks have succeeded.", {
        "muster": "muster run ./step ::: {1..10} && ./merge",
        "GNU parallel": "parallel ./step ::: {1..10} && ./merge",
        "Slurm": "j=$(sbatch --parsable -a 1-10 --wrap './step $SLURM_ARRAY_TASK_ID')\nsbatch -d afterok:$j --wrap ./merge"},
         check_merge, done=lambda run: (run.folder / "merged").exists(),
         files={"step": STEP.replace("WORK", "sleep 0.1"), "merge": "#!/bin/sh\ncat out/* | LC_ALL=C sort >part && mv part merged\n"}),
    Task("Cancel 5 of 20", "20 tasks of 0.2 s have been started; tasks 11 to 15 are not wanted after all.", {
        "muster": "muster submit -J a -a 1-20 -- ./step {}\nmuster cancel a --task 11-15",
        "GNU parallel": "- it cannot take a task out of its queue; signals end all of it, or what runs",
        "Slurm": "j=$(sbatch --parsable -a 1-20 --wrap './step $SLURM_ARRAY_TASK_ID')\nscancel ${j}_[11-15]"},
         check_cancel, done=lambda run: len(run.made()) == 15,
         files={"step": STEP.replace("WORK", "sleep 0.2; until [ -e cancelled ]; do sleep 0.01; done")}, after="touch cancelled", served=True),
    Task("A time limit", "One of ten tasks hangs. Each has two seconds.", {
        "muster": "muster run -t 2s -a 1-10 -- ./step {}",
        "GNU parallel": "parallel --timeout 2 ./step ::: {1..10}",
        "Slurm": "sbatch -W -a 1-10 --wrap 'timeout 2 ./step $SLURM_ARRAY_TASK_ID'"},
         check_limit, files={"step": STEP.replace("WORK", "[ $1 != 3 ] || sleep 600")}),
    Task("One file, in order", "What 100 tasks print, in one file and in their order, however long each takes.", {
        "muster": "muster run -k -o plain ./step ::: {1..100} >all",
        "GNU parallel": "parallel -k ./step ::: {1..100} >all",
        "Slurm": "sbatch -W -a 1-100 -o out/%a --wrap './step $SLURM_ARRAY_TASK_ID'\ncat out/{1..100} >all"},
         check_order, files={"step": '#!/bin/sh\nsleep 0.0$((($1 + 3) % 4))\necho "result $1"\n'}),
    Task("CPU and memory used", "Four tasks compute for 1.5 s, with 50, 100, 150 and 200 MB. What did each use?", {
        "muster": "muster run -J a -a 1-4 -- ./burn {}\nmuster get attempts a",
        "GNU parallel": "parallel /usr/bin/time -f \"'{} %U %S %M'\" ./burn {} ::: {1..4}",
        "Slurm": "j=$(sbatch --parsable -W -a 1-4 --wrap './burn $SLURM_ARRAY_TASK_ID')\nsacct -Pj $j -o jobid,totalcpu,maxrss"},
         check_usage, files={"burn": BURN}, served=True),
]


def missing(task, system):
    """Why this task cannot run with this system here, or None."""
    if why := task.why_not(system):
        return why
    if system == "Slurm":
        return slurm.unavailable()
    wanted = {"muster": [], "GNU parallel": ["parallel", *re.findall(r"/usr/bin/time", task.typed(system))]}[system]
    return ", ".join(f"{name} is not installed" for name in wanted if not shutil.which(name)) or None


class Field:
    """Where tasks run: a directory for each, and the Slurm that all share."""

    def __init__(self):
        self.tmp = tempfile.TemporaryDirectory(prefix="muster-test-", ignore_cleanup_errors=True)
        self.folder = pathlib.Path(self.tmp.name)
        self.slurm = None

    def close(self):
        if self.slurm:
            self.slurm.close()
        self.tmp.cleanup()

    def environment(self, folder, system):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "SLURM_", "SBATCH_"))}
        env |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "PATH": f"{pathlib.Path(MUSTER).parent}:{os.environ['PATH']}",
                "MUSTER_SYSTEM_CONFIG": "/dev/null", "LC_ALL": "C.UTF-8"}
        if system == "Slurm":
            self.slurm = self.slurm or slurm.Slurm(self.folder / "slurm", SLOTS)
            env |= self.slurm.env
        return env

    def run(self, task, system):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        work = folder / "work"
        (work / "out").mkdir(parents=True)
        (folder / "tmp").mkdir()
        (folder / "home/.parallel").mkdir(parents=True)
        (folder / "home/.parallel/will-cite").touch()
        for name, text in task.files.items():
            path = work / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            if text.startswith("#!"):
                path.chmod(0o755)
        env = self.environment(folder, system)
        cluster = None
        if system == "muster" and task.served:
            cluster = Cluster(agents=1, slots=SLOTS)
            cluster.wait_nodes()
            env["MUSTER_API"] = cluster.api_addr
        first, *more = task.typed(system).splitlines()
        script = "\n".join(filter(None, [first, task.between, *more, task.after]))
        try:
            begin, epoch = time.monotonic(), time.time()
            done = subprocess.run(["bash", "-c", script], cwd=work, env=env, text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT)
            run = Run(system, done.returncode, done.stdout, work)
            while not task.done(run):
                if time.monotonic() - begin > LIMIT:
                    raise AssertionError(f"{task.title}, {system}: not done in {LIMIT} s\n{run.output}\n{run.lines()}")
                time.sleep(0.01)
            run.seconds = time.monotonic() - begin
            # "all" is what a last command makes of the tasks' files.
            run.worked = max(path.stat().st_mtime for path in work.rglob("*") if path.is_file() and path.name != "all") - epoch
            return run
        finally:
            if cluster:
                cluster.close()


def sections(seconds):
    """The tables; `seconds` gives a text for a task's number and a system."""
    rows = []
    for number, task in enumerate(TASKS, 1):
        lengths = ["–" if task.why_not(system) else str(len(task.typed(system))) for system in SYSTEMS]
        rows.append(f"| [{number}. {task.title}](#{anchor(number, task)}) | " + " | ".join([*lengths, *(seconds(number, s) for s in SYSTEMS)]) + " |\n")
    text = ("| | characters: muster | parallel | Slurm | seconds: muster | parallel | Slurm |\n" + "| --- " * 7 + "|\n" + "".join(rows))
    for number, task in enumerate(TASKS, 1):
        text += f"\n## {number}. {task.title}\n\n{task.text}\n\n```bash\n"
        for system in SYSTEMS:
            text += f"# {system}" + (f": none; {why}\n" if (why := task.why_not(system)) else f"\n{task.typed(system)}\n")
        text += "```\n"
    return text


def anchor(number, task):
    """The anchor that GitHub gives to the heading."""
    return re.sub(r"[^\w -]", "", f"{number}. {task.title}".lower()).replace(" ", "-")


def measure():
    """Runs all tasks with all systems in turn, so that a slow minute of the machine hits each alike; writes the document."""
    field = Field()
    taken = {}
    try:
        for _ in range(ROUNDS):
            for number, task in enumerate(TASKS, 1):
                for system in SYSTEMS:
                    if why := missing(task, system):
                        if not task.why_not(system):
                            raise SystemExit(f"comparison.py: {task.title}, {system}: {why}")
                        continue
                    run = field.run(task, system)
                    task.check(unittest.TestCase(), run)
                    taken.setdefault((number, system), []).append(run)
                    print(f"{task.title}, {system}: {run.seconds:.2f} s", flush=True)
    finally:
        field.close()
    def seconds(number, system):
        if (number, system) not in taken:
            return "–"
        median = f"{statistics.median(run.seconds for run in taken[number, system]):.1f}"
        return median + (f" ({statistics.median(run.worked for run in taken[number, system]):.1f})" if system == "Slurm" else "")
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(before + BEGIN + sections(seconds) + END + after)


class Comparison(unittest.TestCase):
    """Each task's result is right, with each system that is installed."""

    @classmethod
    def setUpClass(cls):
        cls.field = Field()
        cls.addClassCleanup(cls.field.close)


def add_tests():
    for number, task in enumerate(TASKS, 1):
        for system in SYSTEMS:
            def test(self, task=task, system=system):
                if why := missing(task, system):
                    self.skipTest(why)
                run = self.field.run(task, system)
                try:
                    task.check(self, run)
                except AssertionError as failure:
                    raise AssertionError(f"{failure}\nexit code {run.code}; output:\n{run.output}") from None
            setattr(Comparison, f"test_{number:02}_{system.split()[-1].lower()}", test)


class Document(unittest.TestCase):
    def test_document_shows_the_commands_that_are_run(self):
        _, _, rest = DOCUMENT.read_text().partition(BEGIN)
        shown, end, _ = rest.partition(END)
        self.assertTrue(end, f"{DOCUMENT} lacks its markers")
        shown = re.sub(r"\b\d+\.\d( \(\d+\.\d\))?(?= \|)", "SECONDS", shown)
        self.assertEqual(shown, sections(lambda number, system: "–" if TASKS[number - 1].why_not(system) else "SECONDS"),
                         "write it with tests/e2e/comparison.py table")


if __name__ == "__main__":
    if sys.argv[1:] == ["table"]:
        measure()
    else:
        add_tests()
        unittest.main(verbosity=2)
