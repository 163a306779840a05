#!/usr/bin/env python3
"""The command line against real daemons: exit codes, messages, both forms of `muster run`.

MUSTER names the executable. Waits poll with a deadline.
"""
import fcntl
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from command import DEADLINE, MUSTER, CommandCase, poll  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: %(name)s}
spec:
  completionMode: Indexed
  completions: %(completions)d
  parallelism: %(parallelism)d
  backoffLimitPerIndex: 0
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 5
      containers:
      - name: main
        command: [sh, -c, %(script)s]
"""


def manifest(name, script, completions=3, parallelism=3):
    return JOB % {"name": name, "script": json.dumps(script), "completions": completions, "parallelism": parallelism}


def alive(marker):
    """Processes with this marker in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(marker.encode() in w for w in words) and b"muster" not in os.path.basename(words[0]):
                found.append(int(entry.name))
    return found


class Case(CommandCase):
    def left_in_tmp(self):
        return sorted(p.name for p in (self.dir / "tmp").iterdir())


class Run(Case):
    def test_complete_run_leaves_no_files(self):
        r = self.muster("run", "--slots", "4", "-n", "5", "--name", "hi", "--", "sh", "-c", "echo $JOB_COMPLETION_INDEX")
        self.assertIn("job/hi Complete: 5/5 succeeded", r.stderr)
        poll("the temporary directory is gone", lambda: not self.left_in_tmp())

    def test_failed_run_prints_cause_and_keeps_its_state(self):
        job = self.file("j.yaml", manifest("bad", '[ "$JOB_COMPLETION_INDEX" != 1 ] || { echo row 1 is bad >&2; exit 42; }'))
        r = self.muster("run", "--slots", "2", job, code=1)
        for part in ("job/bad Failed: FailedIndexes", "failed indexes 1", "exit 42", "| row 1 is bad", "kept in"):
            self.assertIn(part, r.stderr)
        self.assertEqual(len(self.left_in_tmp()), 1)

    def test_killed_run_resumes_from_its_data_dir(self):
        witness = self.dir / "witness"
        job = self.file("j.yaml", manifest("long", f"echo $JOB_COMPLETION_INDEX >> {witness}; sleep 0.2", completions=8, parallelism=2))
        p = self.start("run", "--data-dir", "d", "--slots", "2", job)
        poll("two pods ran", lambda: witness.exists() and len(witness.read_text().split()) >= 2)
        second = self.muster("run", "--data-dir", "d", job, code=5)
        self.assertIn("d", second.stderr)
        p.kill()
        p.wait()
        other = self.file("o.yaml", manifest("long", "true", completions=9))
        self.assertIn("holds job/long already", self.muster("run", "--data-dir", "d", other, code=5).stderr)
        self.assertIn("8/8 succeeded", self.muster("run", "--data-dir", "d", "--slots", "2", job).stderr)
        self.assertEqual(sorted(map(int, witness.read_text().split())), list(range(8)))
        self.assertIn("8/8 succeeded", self.muster("run", "--data-dir", "d", "--slots", "2", job).stderr)

    def test_killed_run_without_data_dir_ends_its_pods(self):
        marker = f"muster-cli-{os.getpid()}-killed"
        job = self.file("j.yaml", manifest("x", f": {marker}; while :; do sleep 1; done"))
        p = self.start("run", "--slots", "3", job)
        poll("three pods run", lambda: len(alive(marker)) == 3)
        p.kill()
        p.wait()
        poll("all are gone", lambda: not alive(marker))
        poll("the temporary directory is gone", lambda: not self.left_in_tmp())

    def test_interrupt_ends_the_pods(self):
        marker = f"muster-cli-{os.getpid()}-interrupted"
        job = self.file("j.yaml", manifest("x", f": {marker}; while :; do sleep 1; done"))
        p = self.start("run", "--slots", "3", job)
        poll("three pods run", lambda: len(alive(marker)) == 3)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(DEADLINE), 130)
        self.assertEqual(alive(marker), [])

    def test_interrupt_is_uncounted_and_the_next_run_resumes(self):
        marker = f"muster-cli-{os.getpid()}-goes-on"
        script = f": {marker}; [ -e go ] || while :; do sleep 0.1; done"
        job = self.file("j.yaml", manifest("x", script).replace("spec:", "spec:\n  backoffLimit: 0", 1))
        p = self.start("run", "--slots", "3", "--data-dir", "d", job)
        poll("three pods run", lambda: len(alive(marker)) == 3)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(DEADLINE), 130)
        self.assertEqual(alive(marker), [])
        self.file("go", "")
        r = self.muster("run", "--slots", "3", "--data-dir", "d", job)
        self.assertIn("job/x resumed", r.stderr)
        self.assertIn("job/x Complete", r.stderr)
        self.assertNotIn("failed", r.stderr.split("job/x Complete")[1].split("\n")[0].replace("0 failed", ""))

    def test_second_interrupt_kills(self):
        marker = f"muster-cli-{os.getpid()}-stubborn"
        script = f": {marker}; trap : TERM; touch ready-$JOB_COMPLETION_INDEX; while :; do sleep 0.1; done"
        text = manifest("x", script).replace("Seconds: 5", "Seconds: 3600")
        p = self.start("run", "--slots", "3", self.file("j.yaml", text))
        poll("three pods run", lambda: len(list(self.dir.glob("ready-*"))) == 3)
        p.send_signal(signal.SIGINT)
        lines = []
        while "stopping" not in "".join(lines):
            lines.append(p.stdout.readline())
            self.assertTrue(lines[-1], lines)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(DEADLINE), 130)
        poll("all are gone", lambda: not alive(marker))

    def test_timeout_ends_the_run(self):
        r = self.muster("run", "--timeout", "1s", "-n", "1", "--", "sleep", "1000", code=124)
        self.assertIn("--timeout expired", r.stderr)

    def test_example_manifests_run(self):
        self.muster("run", str(ROOT / "examples/hello.yaml"))
        self.muster("run", str(ROOT / "examples/nonindexed.yaml"))
        r = self.muster("run", str(ROOT / "examples/backoff-per-index.yaml"), code=1)
        self.assertIn("failed indexes 7", r.stderr)

    def test_invalid_manifest_is_rejected(self):
        bad = self.file("bad.yaml", manifest("x", "true").replace("parallelism: 3", "parallelism: -1"))
        self.assertIn("spec.parallelism: ", self.muster("run", bad, code=5).stderr)
        self.assertEqual(self.left_in_tmp(), [])
        self.muster("run", "none.yaml", code=5)
        self.muster("run", code=2)


class Starved(Case):
    """`muster run` with too little of something: one line says what, and what to raise."""

    def starved(self, shell, wanted):
        """Runs a job below this limit. True: it failed with one line that says `wanted`; False: it sufficed."""
        r = subprocess.run(["bash", "-c", f'{shell} && exec "$@"', "bash", MUSTER, "run", "--slots", "1", "-n", "1", "--", "true"],
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE, env=self.env, cwd=self.dir)
        if r.returncode == 0:
            return False
        self.assertEqual(r.returncode, 4, f"{shell}: {r.stderr}")
        said = [line for line in r.stderr.splitlines() if line.startswith("muster: ")]
        self.assertEqual(len(said), 1, f"{shell}: {r.stderr}")
        self.assertRegex(said[0], wanted)
        for word in ("check failed", "terminate called", "exception"):
            self.assertNotIn(word, r.stderr)
        return True

    def test_p31_too_few_descriptors(self):
        # Below 8, the shell itself and the dynamic linker may fail first.
        for limit in (8, 14, 16, 20, 28, 30, 34, 42, 60):
            with self.subTest(limit):
                self.assertTrue(self.starved(f"ulimit -n {limit}", fr"Too many open files: .*ulimit -n is {limit}\)"))
        self.assertFalse(self.starved("ulimit -n 256", ""))

    def test_p31_too_little_memory(self):
        outcomes = set()
        for limit in (60, 100, 200, 300, 400, 800, 16000):  # MiB
            with self.subTest(limit):
                outcomes.add(self.starved(f"ulimit -v {limit * 1024}", fr"raise the limits? on .*ulimit -v is {limit * 1024}\)|database is not responding"))
        self.assertEqual(outcomes, {True, False})

    @unittest.skipIf(os.geteuid(), "needs root: the limit is another user's")
    def test_p31_too_few_threads(self):
        uid = 42_317  # has no other processes
        os.chmod(self.dir, 0o755)
        os.chmod(self.dir / "tmp", 0o777)
        outcomes = set()
        for limit in (*range(1, 24), 400):
            with self.subTest(limit):
                # bash's ulimit is inherited by whom it becomes.
                r = f"ulimit -u {limit} && set -- setpriv --reuid {uid} --regid {uid} --clear-groups \"$@\""
                outcomes.add(self.starved(r, fr"cannot start a thread or process: .*ulimit -u is {limit}\)|no keeper: "))
        self.assertEqual(outcomes, {True, False})


class FirstMinutes:
    """The first commands a user types, run locally (Here) and against a coordinator (There)."""

    def test_p25_command_runs_exactly_as_typed(self):
        r = self.muster("run", "-n", "2", "--name", "typed", "--", "sh", "-c", 'echo "/tmp/work.$$" "$(MUSTER_JOB_NAME)" $((1+1))',
                        "sh")
        lines = [line for line in r.stdout.splitlines() if " | " in line]
        self.assertEqual(sorted(line.split(" | ")[0] for line in lines), ["0", "1"], r.stdout)
        files = {line.split()[2] for line in lines}
        self.assertEqual(len(files), 2, "each shell has a number of its own")
        for line in lines:
            self.assertRegex(line, r"^\d \| /tmp/work\.\d+  2$")

    def test_p26_a_command_that_cannot_be_started_ends_the_run(self):
        begin = time.monotonic()
        r = self.muster("run", "-n", "3", "-j", "1", "--retries", "5", "--", "/no/such/program", code=1)
        self.assertLess(time.monotonic() - begin, 8, "before the first retry")
        self.assertRegex(r.stderr, r"(?m)^muster: job/\S+ Failed: the command cannot be started: .*/no/such/program: No such file")
        self.muster("run", "-n", "1", "--", "/no/such/program", code=127)
        self.muster("run", "-n", "1", "--", "/etc/passwd", code=126)
        self.muster("run", "-n", "2", "--", "sh", "-c", "exit 127", code=1)

    def test_p26_the_first_failure_of_a_kind_is_printed_at_once(self):
        p = self.start("run", "-n", "3", "-j", "3", "--timeout", f"{DEADLINE:g}s", "--retries", "3", "--output", "none", "--", "sh", "-c",
                       "[ $JOB_COMPLETION_INDEX != 1 ] || { echo row 1 is bad >&2; exit 42; }; sleep 1000")
        seen = []
        while "| row 1 is bad" not in "".join(seen):
            seen.append(p.stdout.readline())
            self.assertNotEqual(seen[-1], "", seen)
        self.assertRegex("".join(seen), r"muster: index 1 failed: exit 42 \(attempt 0, node \S+\); attempt 1 may start in \d+s\n")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(DEADLINE), 130)

    def test_p27_failed_index_does_not_stop_others(self):
        r = self.muster("run", "-n", "30", "-j", "4", "--", "sh", "-c", "[ $JOB_COMPLETION_INDEX != 3 ]", code=1)
        self.assertIn("29/30 succeeded, 1 failed pod, failed indexes 3", r.stderr)

    def test_no_more_than_j_run_at_a_time(self):
        """Each pod counts the pods running at that moment; the count never exceeds the limit."""
        script = ("touch run.$JOB_COMPLETION_INDEX; ls run.* | wc -l >>seen; echo $MUSTER_PARALLELISM >>parallelism; rm run.$JOB_COMPLETION_INDEX")
        with tempfile.TemporaryDirectory() as here:
            self.muster("run", "-n", "200", "-j", "3", "--chdir", here, "--", "sh", "-c", script)
            seen = pathlib.Path(here, "seen").read_text().split()
            self.assertEqual(len(seen), 200)
            self.assertLessEqual(max(map(int, seen)), 3)
            self.assertEqual(set(pathlib.Path(here, "parallelism").read_text().split()), {"3"})

    def test_p27_one_command_exits_with_its_own_code(self):
        self.muster("run", "-n", "1", "--", "sh", "-c", "exit 42", code=42)
        self.muster("run", "-n", "1", "--", "sh", "-c", "kill -9 $$", code=137)

    def test_p28_pods_get_environment_and_directory_of_the_shell(self):
        (self.dir / "there").mkdir()
        show = ["--", "sh", "-c", "printf '%s,%s,%s,%s\n' \"$PWD\" \"$TYPED\" \"$MUSTER_PLANT\" \"$JOB_COMPLETION_INDEX\""]
        env = {"TYPED": "a $(HOME) $$ 'b", "MUSTER_PLANT": "x", "JOB_COMPLETION_INDEX": "77"}
        here = str(self.dir.resolve())
        self.assertIn(here + ",a $(HOME) $$ 'b,,0\n", self.muster("run", "-n", "1", *show, **env).stdout)
        self.assertIn(here + ",,,0\n", self.muster("run", "-n", "1", "--export", "NONE", *show, **env).stdout)
        self.assertIn(here + ",a $(HOME) $$ 'b,,0\n", self.muster("run", "-n", "1", "--export", "TYPED,HOME", *show, **env).stdout)
        self.assertIn(here + "/there,other,,0\n",
                      self.muster("run", "-n", "1", "--chdir", "there", "--env", "TYPED=other", *show, **env).stdout)
        self.muster("run", "-n", "1", "--export", "NOT_SET", *show, code=5)
        self.muster("run", "-n", "1", "--env", "novalue", *show, code=2)

    def test_pods_get_umask_and_soft_limits_of_the_shell(self):
        show = ["--", "sh", "-c", "umask; ulimit -Sn; ulimit -Ss; nice"]
        node = self.muster("run", "-n", "1", "--no-limits", *show, umask=0o022).stdout.split()
        self.assertEqual(node[-1], str(os.nice(0)))

        def limited(*flags):
            run = shlex.join([MUSTER, "run", "-n", "1", *flags, *show])
            return subprocess.run(["bash", "-c", f"umask 027; ulimit -Sn 333; ulimit -Ss 4096; {run}"], env=self.env, cwd=self.dir,
                                  stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, timeout=3 * DEADLINE, check=True).stdout.split()

        self.assertEqual(limited("--nice", "3"), ["0027", "333", "4096", str(min(19, os.nice(0) + 3))])
        if isinstance(self, Cluster):
            self.assertEqual(limited("--no-limits"), node, "those of the node")
        self.assertIn("--nice: `20`: must be a whole number, 0 to 19", self.muster("run", "-n", "1", "--nice", "20", *show, code=2).stderr)
        self.assertIn("--no-limits is for a command", self.muster("run", "--no-limits", self.file("j.yaml", manifest("j", "true")), code=2).stderr)

    def test_p29_what_pods_print_is_shown(self):
        script = "echo out; echo more; echo err >&2; printf 'no line break'"
        r = self.muster("run", "-n", "2", "--", "sh", "-c", script)
        for index in "01":
            mine = [line for line in r.stdout.splitlines() if line.startswith(index + " | ")]
            self.assertEqual(mine, [f"{index} | {text}" for text in ("out", "more", "no line break")])
            self.assertIn(f"{index} | err\n", r.stderr)
            self.assertNotIn(f"{index} | out", r.stderr)
        r = self.muster("run", "-n", "1", "--", "sh", "-c", script)
        self.assertTrue(r.stdout.startswith("out\nmore\nno line break"), r.stdout)
        self.assertIn("err\n", r.stderr)
        self.assertNotIn("out", self.muster("run", "-n", "2", "--output", "none", "--", "sh", "-c", script).stdout)
        self.assertIn("0 | out", self.muster("run", "-n", "1", "--output", "prefix", "--", "sh", "-c", script).stdout)
        job = self.file("j.yaml", manifest("printer", "echo index $JOB_COMPLETION_INDEX"))
        self.assertIn("2 | index 2\n", self.muster("run", job).stdout)

    def test_p29_pod_output_is_shown_while_it_runs(self):
        p = self.start("run", "-n", "1", "--timeout", f"{DEADLINE:g}s", "--", "sh", "-c", "echo first; sleep 1000")
        while (line := p.stdout.readline()) != "first\n":
            self.assertNotEqual(line, "")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(DEADLINE), 130)

    def test_p29_output_of_many_pods_is_complete(self):
        r = self.muster("run", "-n", "300", "-j", "8", "--", "sh", "-c", "echo a $JOB_COMPLETION_INDEX; echo b $JOB_COMPLETION_INDEX")
        shown = [line for line in r.stdout.splitlines() if " | " in line]
        self.assertEqual(sorted(shown), sorted(f"{i} | {x} {i}" for i in range(300) for x in "ab"))


class FirstMinutesHere(FirstMinutes, Case):
    def test_p28_another_shell_goes_on_with_the_run(self):
        run = ["run", "-n", "2", "--data-dir", "d", "--", "sh", "-c", "echo $WHO"]
        self.assertIn("0 | first\n", self.muster(*run, WHO="first").stdout)
        self.assertIn("resumed", self.muster(*run, WHO="second").stderr)
        self.muster("run", "-n", "2", "--data-dir", "d", "--env", "A=1", "--", "sh", "-c", "echo $WHO", code=5)


class Cluster(Case):
    """A coordinator and a node with 4 slots."""

    def setUp(self):
        super().setUp()
        self.coordinator = self.start("coordinator", "--data-dir", "c", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0",
                                      "--log-level", "warn")
        endpoints = self.dir / "c" / "endpoints.json"
        poll("the coordinator serves", endpoints.exists)
        addresses = json.loads(endpoints.read_text())
        self.env["MUSTER_API"] = self.api = addresses["api"]
        self.listen = addresses["listen"]
        self.agent = self.start("agent", "--coordinator", addresses["listen"], "--work-dir", "a", "--name", "n1", "--slots", "4",
                                "--cpu", "4", "--memory", "8Gi", "--log-level", "warn")
        poll("the node is there", lambda: "n1" in self.muster("get", "nodes", "-o", "name").stdout)

    def status(self, job):
        return json.loads(self.muster("get", "job", job, "-o", "json").stdout)["status"]


class FirstMinutesThere(FirstMinutes, Cluster):
    pass


class Daemons(Cluster):
    def test_life_of_a_job(self):
        text = manifest("j1", 'echo out $JOB_COMPLETION_INDEX; echo err >&2; [ $JOB_COMPLETION_INDEX != 2 ]')
        self.assertEqual(self.muster("create", "-f", "-", stdin=text + "---\n" + manifest("j2", "true")).stdout,
                         "job.batch/j1 created\njob.batch/j2 created\n")
        self.assertIn("already exists", self.muster("create", "-f", "-", stdin=text, code=5).stderr)
        self.muster("wait", "job/j2", "--for=condition=Complete", "--timeout", "30s")
        self.assertIn("FailedIndexes", self.muster("wait", "job/j1", "--timeout", "30s", code=1).stderr)
        table = self.muster("get", "jobs").stdout.splitlines()
        self.assertEqual(table[0].split()[0], "NAME")
        self.assertEqual(len(table), 3)
        self.assertEqual(json.loads(self.muster("get", "job", "j1", "-o", "json").stdout)["status"]["failedIndexes"], "2")
        self.assertIn("failedIndexes: \"2\"", self.muster("get", "job/j1", "-o", "yaml").stdout)
        pods = self.muster("get", "pods", "-l", "batch.kubernetes.io/job-name=j1", "-o", "name").stdout.split()
        self.assertEqual(len(pods), 3)
        self.assertEqual(self.muster("logs", "job/j1", "--index", "1").stdout, "out 1\nerr\n")
        self.assertEqual(self.muster("logs", "job/j1", "--index", "1", "--attempt", "0", "--tail", "1").stdout, "err\n")
        self.muster("logs", "job/j1", "--index", "1", "--attempt", "5", code=3)
        self.assertIn("1#0 | out 1\n1#0 | err\n", self.muster("logs", "job/j1").stdout)
        described = self.muster("describe", "job", "j1").stdout
        for part in ("FailedIndexes", "exit 1", "| err", "n1", "SuccessfulCreate"):
            self.assertIn(part, described)
        self.assertIn("Index:", self.muster("describe", pods[0]).stdout)
        self.assertIn("Ready", self.muster("describe", "node", "n1").stdout)
        self.assertIn("SuccessfulCreate", self.muster("get", "events").stdout)
        self.assertIn("deleted", self.muster("delete", "job", "j1", "j2").stdout)
        self.muster("wait", "job/j1", "--for=delete", "--timeout", "30s")
        self.muster("get", "job", "j1", code=3)

    def test_watch_survives_a_coordinator_restart(self):
        self.muster("create", "-f", "-", stdin=manifest("first", "true"))
        watch = self.start("get", "jobs", "-w", "-o", "name")
        self.assertEqual(watch.stdout.readline(), "job.batch/first\n")
        self.coordinator.kill()
        self.coordinator.wait()
        self.coordinator = self.start("coordinator", "--data-dir", "c", "--api", self.api, "--listen", "127.0.0.1:0", "--log-level", "warn")
        poll("it serves again", lambda: subprocess.run([MUSTER, "get", "jobs"], env=self.env, capture_output=True).returncode == 0)
        self.muster("create", "-f", "-", stdin=manifest("later", "true"))
        seen = ""
        while seen != "job.batch/later\n":  # the first job may be printed again
            seen = watch.stdout.readline()
            self.assertIn(seen, ("job.batch/first\n", "job.batch/later\n"))

    def test_run_on_a_coordinator_detaches_on_interrupt(self):
        job = self.file("j.yaml", manifest("there", "true"))
        self.assertIn("job/there Complete", self.muster("run", job).stderr)
        p = self.start("run", self.file("k.yaml", manifest("slow", "sleep 1000")))
        poll("it was created", lambda: "slow" in self.muster("get", "jobs", "-o", "name").stdout)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(DEADLINE), 130)
        self.assertIn("keeps running on", p.stdout.read())
        self.muster("get", "job", "slow")
        self.muster("wait", "job/slow", "--timeout", "200ms", code=124)
        self.muster("delete", "job/slow")

    def test_suspend_resume_and_scale(self):
        self.muster("create", "-f", "-", stdin=manifest("wide", "sleep 1000"))
        poll("three run", lambda: self.status("wide").get("ready") == 3)
        self.assertIn("suspended", self.muster("suspend", "job/wide").stdout)
        poll("none runs", lambda: not self.status("wide").get("active") and not self.status("wide")["terminating"])
        self.assertNotIn("failed", self.status("wide"))
        self.muster("resume", "job/wide")
        poll("three run again", lambda: self.status("wide").get("ready") == 3)
        self.muster("scale", "job/wide", "--completions", "1")
        poll("one is left", lambda: self.status("wide").get("active") == 1)
        self.muster("scale", "job/wide", code=2)
        self.muster("scale", "job/nope", "--parallelism", "1", code=3)
        self.muster("delete", "job/wide")

    def test_throttle_lets_running_pods_finish(self):
        self.muster("submit", "--name", "t", "-n", "12", "-j", "4", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
        poll("four run", lambda: self.status("t").get("ready") == 4)
        self.assertIn("job.batch/t throttled: running pods continue", self.muster("throttle", "job/t", "1").stdout)
        self.assertEqual(self.status("t")["active"], 4)
        (self.dir / "go").touch()
        self.muster("wait", "job/t", "--timeout", f"{DEADLINE:g}s")
        self.assertEqual([self.status("t").get(key, 0) for key in ("succeeded", "failed")], [12, 0])
        attempts = json.loads(self.muster("get", "attempts", "job/t", "-o", "json").stdout)["items"]
        self.assertEqual(len(attempts), 12, "none was ended")
        # At most one ran at once after the first four: each starts after the end of the one before.
        later = sorted(attempts, key=lambda a: a["index"])[4:]
        for one, next_one in zip(later, later[1:]):
            self.assertLessEqual(one["ended"], next_one["started"])
        for words, why in ((["job/t"], "must be a number"), (["2"], "throttle what?"), (["job/t", "0"], "1 or more"), (["job/t", "x"], "`x`")):
            self.assertIn(why, self.muster("throttle", *words, code=2).stderr)

    def test_apply_creates_changes_and_refuses(self):
        text = manifest("applied", "sleep 1000")
        self.assertIn("created", self.muster("apply", "-f", "-", stdin=text).stdout)
        self.assertIn("unchanged", self.muster("apply", "-f", "-", stdin=text).stdout)
        self.assertIn("configured", self.muster("apply", "-f", "-", stdin=text.replace("parallelism: 3", "parallelism: 2")).stdout)
        poll("two run", lambda: self.status("applied").get("active") == 2)
        self.muster("apply", "-f", "-", stdin=text.replace("Indexed", "NonIndexed"), code=5)
        self.muster("delete", "job/applied")

    def test_cordon_and_drain(self):
        node = self.muster("get", "nodes", "-o", "name").stdout.strip().split("/")[1]
        self.muster("create", "-f", "-", stdin=manifest("stays", "sleep 1000", 1, 1))
        poll("it runs", lambda: self.status("stays").get("ready") == 1)
        self.muster("cordon", node)
        self.assertIn("SchedulingDisabled", self.muster("get", "nodes").stdout)
        r = self.muster("drain", node, "--now")
        self.assertIn("drained", r.stdout)
        self.muster("uncordon", node)
        self.assertNotIn("SchedulingDisabled", self.muster("get", "nodes").stdout)
        self.muster("cordon", "nope", code=3)
        self.muster("delete", "job/stays")

    def test_node_shows_who_cordoned_and_tainted_it_and_why(self):
        self.muster("cordon", "n1", "--reason", "replace DIMM")
        self.muster("create", "-f", "-", stdin=manifest("waits", "true", 1, 1))
        poll("why names the reason", lambda: "replace DIMM" in self.muster("why", "job/waits").stdout)
        self.muster("uncordon", "n1")
        self.muster("wait", "job/waits", "--timeout", f"{DEADLINE:g}s")
        self.assertEqual(self.muster("taint", "n1", "course=hpc1:NoSchedule", "--reason", "the HPC course").stdout, "node/n1 tainted\n")
        wide, described = self.muster("get", "nodes", "-o", "wide").stdout, self.muster("describe", "node/n1").stdout
        version = json.loads(self.muster("version", "--client", "-o", "json").stdout)["client"]["version"]
        for part in ("course=hpc1:NoSchedule", "the HPC course"):
            self.assertIn(part, wide)
            self.assertIn(part, described)
        self.assertIn(f"agent {version}, keeper {version}", described)
        self.assertIn(version, wide)
        poll("events say what was done", lambda: all(
            text in self.muster("describe", "node/n1").stdout for text in
            ("cordoned the node: replace DIMM", "uncordoned the node", "added the taint course=hpc1:NoSchedule: the HPC course")))
        self.assertEqual(self.muster("taint", "n1", "course-").stdout, "node/n1 untainted\n")
        self.assertIn("node/n1 has no taint course:NoExecute", self.muster("taint", "n1", "course:NoExecute-", code=3).stderr)
        self.assertIn("--now and --deadline are mutually exclusive", self.muster("drain", "n1", "--now", "--deadline", "1m", code=2).stderr)
        self.assertNotIn("hpc1", self.muster("get", "nodes", "-o", "wide").stdout)
        for words, why in ((["n1"], "taint how?"), (["a:NoSchedule"], "taint what?"), (["n1", "a:"], "must be KEY")):
            self.assertIn(why, self.muster("taint", *words, code=2).stderr)

    def refused(self, *words, stdin=None):
        """Runs a command that must be refused; returns the lines of its error output."""
        r = self.muster(*words, stdin=stdin, code=5)
        self.assertEqual(r.stdout, "")
        return r.stderr.splitlines()

    def test_refusals_name_file_line_and_column(self):
        text = manifest("x", "true")
        wrong = text.replace("completions: 3", "completions: -3").replace("restartPolicy: Never", "restartPolicy: never")
        wrong += "        readinessProbe: {exec: {command: [x]}}\n  bogus: 1\n  paralelism: 1\n"
        expected = ["x.yaml:6:3: spec.completions: Invalid value: -3: must be greater than or equal to 0",
                    'x.yaml:11:7: spec.template.spec.restartPolicy: Unsupported value: "never": supported values: "OnFailure", "Never"; did you mean Never?',
                    "x.yaml:16:9: spec.template.spec.containers[0].readinessProbe: Forbidden: not supported by this version of muster; "
                    "omit it; a pod is ready while all its processes run",
                    "x.yaml:17:3: spec.bogus: unknown field", "x.yaml:18:3: spec.paralelism: unknown field; did you mean parallelism?"]
        self.file("x.yaml", wrong)
        for verb in ("create -f", "create --dry-run -f", "apply -f", "apply --dry-run -f", "submit", "run", f"run --api {self.api}"):
            with self.subTest(verb):
                self.assertEqual(self.refused(*verb.split(), "x.yaml"), [f"muster: {line}" for line in expected])
        self.assertEqual(self.refused("create", "-f", "-", stdin=text.replace("completions: 3", "completions: three").replace("Never", "5")),
                         ['muster: stdin:6:3: spec.completions: found the string "three", expected an integer (int32)',
                          "muster: stdin:11:7: spec.template.spec.restartPolicy: found the number 5, expected a string: put it in quotes"])
        for verb in ("create", "apply"):
            self.assertEqual(self.refused(verb, "-f", "-", stdin=text.replace("  parallelism: 3", "  completions: 4")),
                             ["muster: stdin:7:3: spec.completions: is set twice"])
        self.assertEqual(self.refused("create", "-f", self.file("y.yaml", "a: b\n  c: [\n")), ["muster: y.yaml:2:4: illegal map value"])
        self.assertEqual(self.refused("run", self.file("t.yaml", text.replace("  completions", "\tcompletions"))),
                         ["muster: t.yaml:6:1: this line is indented with a tab; YAML allows only spaces"])
        self.assertIn("helm template CHART", self.refused("apply", "-f", "-", stdin=text.replace("name: x", "name: {{ .Values.name }}"))[0])
        self.assertIn("helm template CHART", self.refused("apply", "-f", "-", stdin=text.replace("name: x", "name: '{{ .Values.name }}'"))[0])
        self.muster("apply", "-f", "-", stdin=text)
        lines = self.refused("apply", "-f", "-", stdin="\n\n" + text.replace("Indexed", "NonIndexed"))
        self.assertTrue(lines[0].startswith('muster: stdin:7:3: spec.completionMode: Invalid value: "NonIndexed"'), lines)
        self.assertEqual(self.refused("create", "-f", "-", stdin=text), ['muster: stdin:3:12: jobs.batch "x" already exists'])
        self.muster("delete", "job/x")

    def test_an_unknown_annotation_is_a_warning(self):
        text = manifest("x", "true").replace("metadata: {", "metadata: {annotations: {muster.dev/backof-base: 1s}, ", 1)
        r = self.muster("create", "--dry-run", "-f", "-", stdin=text)
        self.assertEqual(r.stderr, "muster: warning: stdin:3:26: metadata.annotations[muster.dev/backof-base]: unknown annotation; "
                                   "did you mean muster.dev/backoff-base?\n")

    def test_invalid_documents_do_not_hide_valid_ones(self):
        one, two, three = (manifest(name, "true", 1, 1) for name in ("one", "two", "three"))
        self.file("all.yaml", "---\n".join((one, "a: b: c\n", two.replace("Never", "never"), "kind: Pod\napiVersion: v1\n", three)))
        self.file("d/1.yaml", one)
        self.file("d/2.json", "{")
        self.file("d/3.yml", three)
        for verb in ("create", "apply"):
            r = self.muster(verb, "-f", "missing.yaml", "-f", "all.yaml", code=5)
            self.assertEqual(r.stdout, "job.batch/one created\njob.batch/three created\n")
            self.assertEqual([" ".join(line.split()[1:3]) for line in r.stderr.splitlines()],
                             ["cannot read", "all.yaml:17:5: illegal", "all.yaml:35:1: kind:", "all.yaml:29:7: spec.template.spec.restartPolicy:"])
            r = self.muster("delete", "-f", "all.yaml", code=5)
            self.assertEqual(r.stdout, "job.batch/one deleted\njob.batch/three deleted\n")
            self.assertIn('jobs.batch "two" not found', r.stderr)
            self.muster("wait", "job/one", "job/three", "--for=delete")
            r = self.muster(verb, "-f", "d", code=5)
            self.assertEqual(r.stdout, "job.batch/one created\njob.batch/three created\n")
            self.assertIn("muster: d/2.json:1:2: not a JSON document: ", r.stderr)
            self.muster("delete", "-f", "d", code=5)
            self.muster("wait", "job/one", "job/three", "--for=delete")

    def test_missing_files_and_objects_set_the_exit_code(self):
        self.muster("create", "-f", "missing.yaml", code=5)
        self.muster("delete", "job", "nope", code=3)
        self.muster("describe", "pod", "nope", code=3)
        self.muster("get", "jobz", code=2)

    def test_p30_a_second_retry_takes_the_next_name(self):
        self.muster("create", "-f", "-", stdin=manifest("again", "exit 1"))
        self.muster("wait", "job/again", code=1)
        for n in (2, 3):
            r = self.muster("retry", "job/again", "--failed")
            self.assertIn(f"job.batch/again-r{n} created: round {n} of job/again", r.stdout)
            self.muster("wait", f"job/again-r{n}", code=1)  # what it still runs would be left out
        self.muster("retry", "job/again", "--failed", "--name", "again-r2", code=5)

    def test_p30_a_job_that_fits_nowhere_is_pending(self):
        text = manifest("huge", "true").replace("- name: main\n", "- name: main\n        resources: {requests: {cpu: 1000}}\n")
        self.muster("create", "-f", "-", stdin=text)
        poll("it is Pending", lambda: self.muster("get", "job", "huge", "--no-headers").stdout.split()[1:2] == ["Pending"])
        self.muster("delete", "job/huge")

    def test_p30_what_get_prints_feeds_apply_and_create(self):
        self.muster("create", "-f", "-", stdin=manifest("one", "true") + "---\n" + manifest("two", "exit 0; : $$ 'x'"))
        self.muster("wait", "job/one", "job/two")
        for form in ("yaml", "json"):
            for _ in range(3):
                both = self.muster("get", "jobs", "-o", form).stdout
                self.assertEqual(self.muster("apply", "-f", "-", stdin=both).stdout.count(" "), 2)
            self.assertEqual(self.muster("apply", "-f", "-", stdin=both).stdout.count("unchanged"), 2)
            self.assertEqual(len(self.muster("get", "jobs", "-o", form).stdout), len(both), "what was applied is not in what is applied")
        listed = json.loads(both)
        self.assertEqual((listed["kind"], listed["apiVersion"], [item["kind"] for item in listed["items"]]), ("List", "v1", ["Job", "Job"]))
        self.muster("delete", "job", "one", "two")
        self.muster("wait", "job/one", "job/two", "--for=delete")
        self.assertEqual(self.muster("create", "-f", "-", stdin=both).stdout, "job.batch/one created\njob.batch/two created\n")
        self.muster("wait", "job/one", "job/two")
        one = self.muster("get", "job", "one", "-o", "yaml").stdout
        self.assertIn("already exists", self.muster("create", "-f", "-", stdin=one, code=5).stderr)

    def test_what_get_prints_of_other_objects_feeds_apply(self):
        self.muster("apply", "-f", "-", stdin="kind: Namespace\napiVersion: v1\nmetadata: {name: lab}\n---\n"
                    "kind: ConfigMap\napiVersion: v1\nmetadata: {name: c}\ndata: {a: b}\n---\n" + manifest("runs", "sleep 1000", 2, 2))
        poll("it runs", lambda: self.status("runs").get("ready") == 2)
        for words in (["jobs"], ["configmap", "c"], ["namespaces"], ["jobs,namespaces"]):
            printed = self.muster("get", *words, "-o", "yaml").stdout
            r = self.muster("apply", "-f", "-", stdin=printed)
            self.assertEqual(r.stderr, "")
            self.assertEqual(self.muster("apply", "-f", "-", stdin=printed).stdout.count("unchanged"), r.stdout.count("\n"), words)
        self.muster("delete", "job/runs")

    def test_p30_drain_survives_a_restart_of_the_coordinator(self):
        go = self.dir / "go"
        self.muster("create", "-f", "-", stdin=manifest("held", f"until [ -e {go} ]; do sleep 0.05; done", 1, 1))
        poll("it runs", lambda: self.status("held").get("ready") == 1)
        drain = self.start("drain", "n1")
        self.assertIn("cordoned", drain.stdout.readline())
        self.assertIn("waiting for 1 pod", drain.stdout.readline())
        self.coordinator.kill()
        self.coordinator.wait()
        host, port = self.api.split(":")
        with socket.create_server((host, int(port))) as nobody:  # accepts the connection but does not answer
            nobody.settimeout(DEADLINE)
            nobody.accept()[0].close()
        self.coordinator = self.start("coordinator", "--data-dir", "c", "--api", self.api, "--listen", self.listen, "--log-level", "warn")
        go.touch()
        self.assertEqual(drain.wait(DEADLINE), 0, "drained over a restart")
        self.assertIn("drained: no pods left", drain.stdout.read())

    def test_p30_hollow_node_takes_only_tolerant_pods(self):
        self.start("agent", "--coordinator", self.listen, "--hollow", "--name", "h1", "--slots", "100", "--log-level", "warn")
        poll("the node is there", lambda: "h1" in self.muster("get", "nodes", "-o", "name").stdout)
        text = manifest("picky", "exit 3", 8, 8)
        self.muster("create", "-f", "-", stdin=text)
        self.muster("wait", "job/picky", code=1)
        self.assertNotIn("h1", self.muster("get", "attempts", "job/picky").stdout)
        tolerant = text.replace("name: picky", "name: tolerant").replace(
            "      containers:", "      nodeSelector: {muster.dev/hollow: 'true'}\n      tolerations: [{key: muster.dev/hollow, operator: Exists}]\n      containers:")
        self.muster("create", "-f", "-", stdin=tolerant)
        self.muster("wait", "job/tolerant")

    def test_p30_a_port_in_use_is_named(self):
        for flag, address in (("--api", self.api), ("--listen", self.listen)):
            free = {"--api": "127.0.0.1:0", "--listen": "127.0.0.1:0", flag: address}
            r = self.muster("coordinator", "--data-dir", "other", *(word for pair in free.items() for word in pair), code=4)
            self.assertIn(f"{flag} {address}: address already in use; choose another port", r.stderr)

    def test_second_coordinator_is_refused(self):
        r = self.muster("coordinator", "--data-dir", "c", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", code=5)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        r = self.muster("coordinator", "--data-dir", "c2", "--api", "0.0.0.0:0", code=5)
        self.assertIn("--insecure", r.stderr)

    def test_sigterm_ends_the_coordinator_well(self):
        self.coordinator.terminate()
        self.assertEqual(self.coordinator.wait(DEADLINE), 0)


class Alone(Case):
    def test_p30_a_client_waits_for_a_coordinator_that_starts(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % s.getsockname()[1]
        client = self.start("create", "-f", self.file("j.yaml", manifest("early", "true")), "--api", address)
        self.start("coordinator", "--data-dir", "c", "--api", address, "--listen", "127.0.0.1:0", "--log-level", "warn")
        self.assertEqual(client.wait(DEADLINE), 0)
        self.assertEqual(client.stdout.read(), "job.batch/early created\n")

    def test_p30_dead_runs_are_removed_after_a_day(self):
        tmp, outside = self.dir / "tmp", self.dir / "outside"
        outside.mkdir()
        (outside / "file").touch()
        old = time.time() - 90_000
        for name in ("dead00", "young0", "wanted", "living"):
            run = tmp / f"muster-run-{name}"
            (run / "db").mkdir(parents=True)
            for path in (run / "lock", run / "db/CURRENT", *([run / "keep"] if name == "wanted" else [])):
                path.touch()
            for path in (run / "db/CURRENT", run / "lock", run / "keep", run / "db", run):
                if path.exists() and name != "young0":
                    os.utime(path, (old, old))
        # Opening this lock blocks forever: a run that is starting may not hold its lock yet, so a sweep must leave it alone.
        (tmp / "muster-run-young0/lock").unlink()
        os.mkfifo(tmp / "muster-run-young0/lock")
        (tmp / "muster-run-linked").symlink_to(outside)
        os.utime(tmp / "muster-run-linked", (old, old), follow_symlinks=False)
        os.utime(outside, (old, old))
        with open(tmp / "muster-run-living/lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.muster("run", "-n", "1", "--", "true")
            poll("the dead one is gone", lambda: "muster-run-dead00" not in self.left_in_tmp())
            self.assertEqual(self.left_in_tmp(), [f"muster-run-{name}" for name in ("linked", "living", "wanted", "young0")])
            self.assertTrue((outside / "file").exists())

    def test_unreachable_coordinator_is_reported(self):
        r = self.muster("get", "jobs", "--api", "127.0.0.1:9", code=4)
        self.assertTrue(r.stderr.startswith(
            "muster: waiting up to 5s for the coordinator at 127.0.0.1:9\n"
            "muster: cannot reach the coordinator at 127.0.0.1:9: connection refused (from --api)\n"
            "  running jobs are not affected"), r.stderr)

    def test_version_prints_the_client_version(self):
        self.assertRegex(self.muster("version", "--client").stdout, r"^muster \d")


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
