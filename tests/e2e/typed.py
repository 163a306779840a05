#!/usr/bin/env python3
"""What a typed command promises: its own words on stdout, its directory, its array, its terminal's hang-up.

MUSTER names the executable. Waits poll with a deadline.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import cli
from cli import MUSTER, poll


def until_the_reader_leaves(case, *words, lines=2):
    """What a verb does when its output is read for this many lines only: its exit code and stderr."""
    p = subprocess.Popen([MUSTER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=case.env, cwd=case.dir, stdin=subprocess.DEVNULL)
    case.addCleanup(p.wait)
    case.addCleanup(p.kill)
    for _ in range(lines):
        case.assertTrue(p.stdout.readline())
    p.stdout.close()
    timer = threading.Timer(cli.DEADLINE, p.kill)
    timer.start()
    err = p.stderr.read()
    p.stderr.close()
    timer.cancel()
    return p.wait(cli.DEADLINE), err


class Typed(cli.Case):
    def test_p14_stdout_has_the_output_of_the_pods_only(self):
        self.assertEqual(self.muster("run", "-n", "1", "--", "echo", "42").stdout, "42\n")
        r = self.muster("run", "-n", "1", "--", "false", code=1)
        self.assertEqual(r.stdout, "")
        self.assertIn("Failed", r.stderr)
        r = self.muster("run", "-k", "-n", "2", "--data-dir", "d", "--", "sh", "-c", "echo $JOB_COMPLETION_INDEX")
        self.assertEqual([line.split()[-1] for line in r.stdout.splitlines()], ["0", "1"])

    def test_p14_output_that_cannot_be_written_is_an_error(self):
        for words in (["run", "-n", "1", "--", "echo", "x"], ["run", "-n", "2", "-k", "--", "echo", "x"], ["version"]):
            with open("/dev/full", "w") as full:
                r = subprocess.run([MUSTER, *words], stdout=full, stderr=subprocess.PIPE, text=True, env=self.env, cwd=self.dir,
                                   stdin=subprocess.DEVNULL, timeout=cli.DEADLINE)
            self.assertEqual(r.returncode, 1, r.stderr)
            self.assertIn("muster: cannot write to standard output", r.stderr)

    def test_p14_a_reader_that_leaves_stops_the_job_as_ctrl_c_does(self):
        marker = f"muster-typed-{os.getpid()}-unread"
        code, err = until_the_reader_leaves(self, "run", "--data-dir", "d", "-n", "1000", "-j", "2", "--", "sh", "-c",
                                            f": {marker}; [ -e go ] || while echo x; do sleep 0.1; done")
        self.assertEqual(code, -signal.SIGPIPE, err)
        self.assertIn("nobody reads the output: stopping job/", err)
        self.assertNotIn("Broken pipe", err)
        self.assertNotIn("cannot write", err)
        self.assertEqual(cli.alive(marker), [])
        (self.dir / "go").touch()
        self.assertIn("Complete", self.muster("run", "--data-dir", "d", "-n", "1000", "-j", "2", "--", "sh", "-c",
                                              f": {marker}; [ -e go ] || while echo x; do sleep 0.1; done").stderr)

    def test_p14_quiet_says_nothing_of_a_job_that_succeeds(self):
        r = self.muster("run", "-q", "-n", "2", "--", "echo", "x")
        self.assertEqual((r.stdout, r.stderr), ("0 | x\n1 | x\n" if r.stdout[0] == "0" else "1 | x\n0 | x\n", ""))
        self.assertIn("Failed", self.muster("run", "--quiet", "-n", "1", "--", "false", code=1).stderr)

    def test_p14_long_lines_arrive_whole(self):
        for flags in ([], ["-k"]):
            r = self.muster("run", "-n", "2", *flags, "--", "sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' a; echo")
            self.assertEqual(sorted(r.stdout.splitlines()), [f"{i} | " + "a" * 3_000_000 for i in range(2)])

    def test_p17_the_returns_of_a_list_are_dropped(self):
        (self.dir / "list").write_text("a\r\nb\r\n")
        r = self.muster("run", "-k", "--each", "list", "--", "echo", "[{}]")
        self.assertEqual(r.stdout, "0 | [a]\n1 | [b]\n")
        self.assertIn("end in CR LF", r.stderr)

    def test_p17_an_input_that_is_too_long_is_refused_before_anything_runs(self):
        (self.dir / "list").write_text("one\n" + "y" * 200_000 + "\ntwo\n")
        (self.dir / "grid.csv").write_text("lr,seed,lr\n1,2,3\n")
        for flags, wrong in ((["--each", "list"], "list: line 2 has 200000 bytes, and an input at most 131058"),
                             (["--commands", "list"], "list: line 2 has 200000 bytes"),
                             (["--each-csv", "grid.csv"], "grid.csv: line 1: columns 1 and 3 are both called lr")):
            r = self.muster("run", *flags, *([] if "--commands" in flags else ["--", "touch", "ran-{#}"]), code=5)
            self.assertIn(wrong, r.stderr)
        self.assertEqual(list(self.dir.glob("ran-*")), [])

    def test_p17_an_input_of_a_manifest_that_is_too_long_fails_only_its_index(self):
        (self.dir / "list").write_text("one\n" + "y" * 200_000 + "\ntwo\n")
        for words in (["sh", "-c", "echo got $1", "sh", "$(MUSTER_INPUT)"], ["sh", "-c", "echo got $(printf %.3s $MUSTER_INPUT)"]):
            job = {"apiVersion": "batch/v1", "kind": "Job",
                   "metadata": {"name": "long", "annotations": {"muster.dev/inputs-file": str(self.dir / "list")}},
                   "spec": {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimitPerIndex": 0,
                            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "command": words}]}}}}
            (self.dir / "j.json").write_text(json.dumps(job))
            r = self.muster("run", "--slots", "1", "--output", "plain", "j.json", code=1)
            self.assertEqual(r.stdout, "got one\ngot two\n")
            self.assertIn("the input of this index: longer than 128 KiB", r.stderr)

    def test_p17_a_program_that_an_input_names_fails_only_its_index(self):
        (self.dir / "list").write_text("echo\nno-such-program\nprintf\n")
        r = self.muster("run", "-j", "1", "--each", "list", "--output", "plain", "--", "{}", "x", code=1)
        self.assertEqual(r.stdout.split(), ["x", "x"])
        self.assertIn("no-such-program", r.stderr)

    def test_p17_a_removed_directory_is_refused(self):
        gone = self.dir / "gone"
        gone.mkdir()
        script = f"cd {gone} && rmdir {gone} && exec {MUSTER} run -n 1 -- pwd"
        r = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env=self.env, stdin=subprocess.DEVNULL, timeout=cli.DEADLINE)
        self.assertEqual((r.returncode, r.stdout), (5, ""), r.stderr)
        self.assertIn("choose one with --chdir DIR", r.stderr)

    def test_p17_closed_descriptors_are_not_reused(self):
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            script = f"exec {MUSTER} run -n 1 -- sh -c 'echo ok >>ran' {closed}"
            subprocess.run(["sh", "-c", script], check=True, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=cli.DEADLINE)
        self.assertEqual((self.dir / "ran").read_text(), "ok\n" * 4)
        script = f"exec {MUSTER} coordinator --data-dir c --api 127.0.0.1:0 --listen 127.0.0.1:0 <&- >&- 2>&-"
        daemon = subprocess.Popen(["sh", "-c", script], env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        poll("it serves", lambda: (self.dir / "c/endpoints.json").exists())
        files = {os.readlink(f"/proc/{daemon.pid}/fd/{fd}") for fd in range(3)}
        self.assertEqual(files, {"/dev/null"})

    def test_p18_nohup_protects(self):
        script = "touch started; while [ ! -e go ]; do sleep 0.02; done; echo ok"
        with tempfile.TemporaryFile("w+") as output:
            run = subprocess.Popen([MUSTER, "run", "-n", "1", "--", "sh", "-c", script], env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
            self.addCleanup(run.wait)
            self.addCleanup(run.kill)
            poll("it runs", (self.dir / "started").exists)
            run.send_signal(signal.SIGHUP)
            (self.dir / "go").touch()
            self.assertEqual(run.wait(cli.DEADLINE), 0)
            output.seek(0)
            self.assertEqual(output.read(), "ok\n")


# A rank as MPI_Abort leaves it: it has told its parent, and waits to be ended.
ABORTS = """
import os, time
if os.environ["PMI_RANK"] == "1":
    os.write(int(os.environ["PMI_FD"]), b"cmd=abort exitcode=7\\n")
time.sleep(1000)
"""


class Mpi(cli.Case):
    def test_p34_a_rank_that_aborts_ends_the_job(self):
        text = cli.manifest("aborts", "", 2, 2).replace("metadata: {", "metadata: {annotations: {muster.dev/mpi: 'mpich,direct'}, ")
        text = text.replace('[sh, -c, ""]', json.dumps(["python3", "-c", ABORTS]))
        r = self.muster("run", self.file("j.yaml", text), code=1)
        self.assertIn("exit 7", r.stderr)
        self.assertIn("job/aborts Failed", r.stderr)


class Unread(cli.Cluster):
    def test_p14_a_reader_that_leaves_ends_other_verbs_silently(self):
        self.muster("submit", "--name", "a", "-n", "1", "--wait", "--", "seq", "1000000")
        for words in (["logs", "job/a"], ["logs", "-f", "job/a"], ["logs", "job/a", "--prefix"]):
            self.assertEqual(until_the_reader_leaves(self, *words), (-signal.SIGPIPE, ""), words)

    def test_p14_a_reader_that_leaves_detaches_from_a_coordinator(self):
        code, err = until_the_reader_leaves(self, "run", "--name", "a", "-n", "2", "--", "sh", "-c", "while echo x; do sleep 0.1; done")
        self.assertEqual(code, -signal.SIGPIPE, err)
        self.assertIn("nobody reads the output, so detached: job/a keeps running on", err)
        self.assertNotIn("cannot write", err)
        self.muster("wait", "job/a", "--timeout", "200ms", code=124)
        self.muster("cancel", "job/a")


class Repairs(cli.Cluster):
    def test_p21_an_attempt_shows_before_its_next_one_exists(self):
        self.muster("submit", "--name", "r", "--retries", "1", "-n", "1", "--", "false")
        shown = poll("the attempt", lambda: self.muster("get", "attempts", "job/r").stdout)
        self.assertRegex(shown, r"\n0 +0 .* not counted yet +exit 1\n")

    def test_p21_dependents_of_a_retried_job_run(self):
        self.muster("submit", "--name", "a", "--array", "1-3", "--", "sh", "-c", "[ $SLURM_ARRAY_TASK_ID != 2 ] || [ -e fixed ]")
        self.muster("submit", "--name", "b", "--after", "ok:a", "-n", "1", "--", "true")
        self.muster("wait", "job/b", code=1)
        self.file("fixed", "")
        # Before anything is repaired, nothing counts as repaired.
        self.muster("submit", "--name", "early", "--after", "ok:a", "-n", "1", "--", "true")
        self.muster("wait", "job/early", code=1)
        self.muster("retry", "job/a", "--failed", "--wait")
        self.muster("retry", "job/b", "--wait")
        self.muster("submit", "--name", "late", "--after", "ok:a,any:b", "-n", "1", "--", "true")
        self.muster("wait", "job/late")
        after = json.loads(self.muster("get", "job", "late", "-o", "json").stdout)["metadata"]["annotations"]["muster.dev/after"]
        self.assertEqual(after, "ok:a-r2,any:b")

    def test_what_a_later_round_has_done_is_not_retried_again(self):
        self.muster("submit", "--name", "a", "--array", "1-3", "--", "sh", "-c", "echo $SLURM_ARRAY_TASK_ID >>ran; [ -e fixed-$SLURM_ARRAY_TASK_ID ]")
        self.muster("wait", "job/a", code=1)
        (self.dir / "ran").unlink()
        self.file("fixed-1", "")
        self.muster("retry", "job/a", "--index", "0-1", "--wait", code=1)
        self.file("fixed-2", "")
        self.file("fixed-3", "")
        self.assertIn(": round 3 of job/a, indexes 1,2 (tasks 2,3 of its array)", self.muster("retry", "job/a", "--failed", "--wait").stdout)
        r = self.muster("retry", "job/a", "--failed", code=5)
        self.assertIn("job/a cannot be retried: what it has left is done, or runs, in job/a-r2, job/a-r3; to run indexes again, choose them with --index",
                      r.stderr)
        self.assertEqual(sorted((self.dir / "ran").read_text().split()), ["1", "2", "2", "3"])
        self.muster("retry", "job/a", "--task", "1", "--wait")

    def test_dependents_of_a_retried_job_go_on(self):
        fails = ["--", "sh", "-c", "[ $SLURM_ARRAY_TASK_ID != 2 ] || [ -e fixed ]"]
        self.muster("submit", "--name", "a", "--array", "1-3", *fails)
        self.muster("submit", "--name", "other", "-n", "1", "--", "sh", "-c", "[ -e fixed ]")
        self.muster("submit", "--name", "b", "--after", "ok:a", "-n", "1", "--", "true")
        self.muster("submit", "--name", "c", "--after", "ok:b", "-n", "1", "--", "true")
        # Task 3 fails by itself, task 2 because that of `a` did.
        self.muster("submit", "--name", "each", "--array", "1-3", "--after", "each:a", "--", "sh", "-c", "[ $SLURM_ARRAY_TASK_ID != 3 ]")
        self.muster("submit", "--name", "both", "--after", "ok:a,ok:other", "-n", "1", "--", "true")
        self.muster("submit", "--name", "not", "--after", "notok:a", "-n", "1", "--", "true")
        for name in ("c", "each", "both"):
            self.muster("wait", f"job/{name}", code=1)
        self.file("fixed", "")
        r = self.muster("retry", "job/a", "--failed", "--dependents", "--wait")
        made = [line.split()[0] for line in r.stdout.splitlines() if " created: round 2" in line]
        self.assertEqual((made[0], sorted(made)), ("job.batch/a-r2", ["job.batch/a-r2", "job.batch/b-r2", "job.batch/c-r2", "job.batch/each-r2"]))
        self.assertIn("not retried: job/both: job/other has not succeeded\n", r.stderr)
        notes = json.loads(self.muster("get", "job", "each-r2", "-o", "json").stdout)["metadata"]["annotations"]
        self.assertEqual((notes["muster.dev/indexes"], notes["muster.dev/after"]), ("1", "each:a-r2"))
        # Those that have gone on are not retried again; the others are named.
        r = self.muster("retry", "job/other")
        self.assertIn("job/both failed because of job/other and can go on now: muster retry job/NAME, or all at once with --dependents\n", r.stderr)
        self.muster("retry", "job/both", "--wait")

    def test_p21_why_shows_bound_pods_as_not_started(self):
        self.agent.send_signal(signal.SIGSTOP)
        self.addCleanup(self.agent.send_signal, signal.SIGCONT)
        self.muster("submit", "--name", "parked", "-n", "2", "--", "true")
        poll("they are bound", lambda: "bound to a node, but not started yet" in self.muster("why", "job/parked").stdout)
        self.assertNotIn("running", self.muster("why", "job/parked").stdout)

    def test_p21_logs_of_a_removed_pod_are_shown(self):
        text = cli.manifest("gone", "echo words; exit 3", 1, 1).replace("Never", "OnFailure").replace("completionMode: Indexed", "backoffLimit: 0")
        self.muster("create", "-f", self.file("j.yaml", text.replace("  backoffLimitPerIndex: 0\n", "")))
        self.muster("wait", "job/gone", code=1)
        self.assertEqual(set(self.muster("logs", "job/gone").stdout.splitlines()), {"words"})


class Cancel(cli.Cluster):
    """muster cancel, and what is said of jobs that do not get on."""

    def restart_coordinator(self):
        self.coordinator.kill()
        self.coordinator.wait()
        self.coordinator = self.start("coordinator", "--data-dir", "c", "--api", self.api, "--listen", self.listen, "--log-level", "warn")
        poll("it serves again", lambda: subprocess.run([MUSTER, "get", "jobs"], env=self.env, capture_output=True).returncode == 0)

    def wait_running(self, job, count):
        poll(f"{count} pods of {job} run", lambda: self.status(job).get("ready") == count)

    def test_p21_a_cancelled_job_stays_and_says_who(self):
        self.muster("submit", "--name", "a", "-n", "3", "--retries", "5", "--", "sh", "-c", "echo words; sleep 1000")
        self.wait_running("a", 3)
        self.assertEqual(self.muster("cancel", "job/a").stdout, "job.batch/a cancelled\n")
        r = self.muster("wait", "job/a", code=1)
        self.assertIn("Failed: Cancelled: Cancelled by ", r.stderr)
        self.assertIn("Cancelled by ", self.muster("why", "job/a").stdout)
        self.assertIn("Cancelled", self.muster("describe", "job", "a").stdout)
        self.assertIn("words", self.muster("logs", "job/a", "--index", "0").stdout)
        attempts = self.muster("get", "attempts", "job/a").stdout.splitlines()[1:]
        self.assertEqual(len(attempts), 3, attempts)
        for line in attempts:
            self.assertIn("cancelled", line)
        self.assertEqual(self.status("a").get("failed", 0), 0)
        self.muster("cancel", "job/a")  # repeating it is not an error
        self.muster("submit", "--name", "done", "-n", "1", "--", "true")
        self.muster("wait", "job/done")
        self.assertIn("has finished", self.muster("cancel", "job/done", code=5).stderr)
        self.muster("cancel", "job/none", code=3)

    def test_p21_cancelled_tasks_do_not_come_back(self):
        script = "[ $SLURM_ARRAY_TASK_ID != 1 ] || sleep 1000; while [ ! -e go ]; do sleep 0.02; done"
        self.muster("submit", "--name", "a", "--array", "1-4", "-j", "2", "--retries", "3", "--max-fails", "0", "--", "sh", "-c", script)
        self.wait_running("a", 2)
        r = self.muster("cancel", "job/a", "--task", "1,4")
        self.assertEqual(r.stdout, "job.batch/a tasks 1,4 cancelled\n")
        poll("both have failed", lambda: self.status("a").get("failedIndexes") == "0,3")
        self.restart_coordinator()
        self.file("go", "")
        r = self.muster("wait", "job/a", code=1)
        self.assertIn("FailedIndexes: Job has cancelled indexes\n  2/4 succeeded, cancelled tasks 1,4, took ", r.stderr)
        self.assertNotIn("TASK", r.stderr, "nothing has failed")
        self.assertEqual((self.status("a")["completedIndexes"], self.status("a")["cancelledIndexes"]), ("1,2", "0,3"))
        described = self.muster("describe", "job", "a").stdout
        self.assertRegex(described, r"\nFailed tasks: +<none>\nCancelled tasks: +1,4\n")
        self.assertNotIn("Failures:", described)
        self.assertIn("none of its indexes has failed; run those that were cancelled with --task 1,4", self.muster("retry", "job/a", "--failed", code=5).stderr)
        self.assertIn("cancelled the index", self.muster("why", "job/a", "--task", "4").stdout)
        attempts = self.muster("get", "attempts", "job/a").stdout.splitlines()[1:]
        self.assertEqual(sorted((line.split()[0], "cancelled" in line) for line in attempts), [("0", True), ("1", False), ("2", False)])

    def test_a_set_of_indexes_is_taken_in_any_order(self):
        self.muster("submit", "--name", "a", "-n", "8", "--", "sh", "-c", "[ $JOB_COMPLETION_INDEX -gt 3 ] || exit 3; exec sleep 1000")
        poll("four have failed", lambda: self.status("a").get("failedIndexes") == "0-3")
        attempts = json.loads(self.muster("get", "attempts", "job/a", "--index", "3,1,1-2", "-o", "json").stdout)["items"]
        self.assertEqual(sorted(a["index"] for a in attempts), [1, 2, 3])
        self.assertEqual(self.muster("cancel", "job/a", "--index", "7,5-6,6").stdout, "job.batch/a indexes 5-7 cancelled\n")
        self.assertEqual(self.muster("logs", "job/a", "--index", "2,0-1").stdout, "")
        for verb in (["cancel", "job/a"], ["logs", "job/a"], ["get", "attempts", "job/a"], ["retry", "job/a"]):
            self.assertIn("--index", self.muster(*verb, "--index", ",", code=2).stderr)
            self.assertIn("is not a set of numbers such as 3,7-9", self.muster(*verb, "--index", "3-1", code=2).stderr)
        self.muster("cancel", "job/a")
        poll("it has failed", lambda: any(c["type"] == "Failed" for c in self.status("a").get("conditions", [])))
        self.assertIn("indexes 0-2", self.muster("retry", "job/a", "--index", "2,0-1").stdout)

    def test_p21_what_cannot_be_cancelled_is_refused(self):
        self.muster("submit", "--name", "g", "-n", "2", "--gang", "--", "sleep", "1000")
        self.assertIn("is a gang", self.muster("cancel", "job/g", "--index", "0", code=5).stderr)
        self.assertIn("--index", self.muster("cancel", "job/g", "--index", "x", code=2).stderr)
        self.muster("cancel", "job/g", "--index", "0", "--task", "1", code=2)
        self.muster("cancel", "job/g")
        self.muster("wait", "job/g", code=1)

    def test_p21_wait_says_what_a_job_waits_for(self):
        self.muster("submit", "--name", "big", "-n", "1", "--cpus", "4096", "--", "true")
        r = self.muster("wait", "job/big", "--timeout", "100ms", code=124)
        self.assertIn("job/big Pending: 1 pod is waiting for a slot", r.stderr)

    def test_p21_run_and_submit_send_the_same_parallelism(self):
        for flags in (["-n", "300"], ["-n", "300", "-j", "7"]):
            both = [json.loads(self.muster(verb, *flags, "--name", "x", "--dry-run", "-o", "json", "--", "true").stdout) for verb in ("run", "submit")]
            self.assertEqual(both[0], both[1])
            self.assertEqual(both[0]["spec"]["parallelism"], 7 if "-j" in flags else 300)
            self.assertEqual(both[0]["metadata"]["annotations"]["muster.dev/scale-down"], "finish")


class Shell(cli.Cluster):
    """Interactive jobs."""

    def on_terminal(self, *args):
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        shell = subprocess.Popen([MUSTER, *args], env=self.env, cwd=self.dir, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.addCleanup(shell.wait)
        self.addCleanup(shell.kill)
        return shell, master

    def test_p21_a_shell_is_a_job_that_ends_with_it(self):
        for args in (["shell", "--name", "s", "--cpus", "1", "--", "sh"], ["run", "--pty", "--name", "s", "--replace", "-n", "1", "--", "sh"]):
            shell, terminal = self.on_terminal(*args)
            os.write(terminal, b"echo $MUSTER_JOB_NAME >>there; exit 7\n")
            self.assertEqual(shell.wait(cli.DEADLINE), 7)
            self.assertEqual((self.dir / "there").read_text(), "s\n")
            (self.dir / "there").unlink()
            self.muster("wait", "job/s")

    def test_p21_an_interrupted_wait_cancels_the_job(self):
        shell, terminal = self.on_terminal("shell", "--name", "s", "--cpus", "4096")
        poll("it waits", lambda: "s" in self.muster("get", "jobs", "-o", "name").stdout)
        shell.send_signal(signal.SIGINT)
        self.assertEqual(shell.wait(cli.DEADLINE), 130)
        self.assertIn("Cancelled", self.muster("wait", "job/s", code=1).stderr)

    def test_p21_shells_need_a_terminal_and_a_coordinator(self):
        self.assertIn("not a terminal", self.muster("shell", code=2).stderr)
        self.assertIn("one interactive command", self.muster("run", "--pty", "-n", "2", "--", "sh", code=2).stderr)
        del self.env["MUSTER_API"]
        self.assertIn("needs a coordinator", self.muster("run", "--pty", "-n", "1", "--", "sh", code=2).stderr)


class Notices(cli.Cluster):
    """Who is told when a job has finished."""

    # Keeps each message in a file of its own; while `down` exists, it fails as a full queue does.
    SENDMAIL = """#!/bin/sh
cd %s
if [ -e down ]; then echo 'mail queue is full' >&2; exit 75; fi
{ echo "$@"; cat; } >mail.tmp.$$ && mv mail.tmp.$$ mail.$$
"""

    def setUp(self):
        super().setUp()
        self.file("sendmail", self.SENDMAIL % self.dir)
        (self.dir / "sendmail").chmod(0o755)
        self.restart_coordinator()

    def restart_coordinator(self):
        self.coordinator.kill()
        self.coordinator.wait()
        self.coordinator = self.start("coordinator", "--data-dir", "c", "--api", self.api, "--listen", self.listen, "--log-level", "warn",
                                      "--mail-program", str(self.dir / "sendmail"))
        poll("it serves again", lambda: subprocess.run([MUSTER, "get", "jobs"], env=self.env, capture_output=True).returncode == 0)

    def mails(self):
        return [path.read_text() for path in sorted(self.dir.glob("mail.[0-9]*"))]

    def annotations(self, job):
        return json.loads(self.muster("get", "job", job, "-o", "json").stdout)["metadata"].get("annotations", {})

    def test_mail_says_how_a_job_ended(self):
        self.muster("submit", "--name", "fit", "--array", "1-3", "--mail", "ada@example.org,bob", "--", "sh", "-c", "[ $SLURM_ARRAY_TASK_ID != 2 ]")
        self.muster("submit", "--name", "fine", "-n", "1", "--mail", "ada", "--notify-on", "fail", "--", "true")
        self.muster("wait", "job/fit", code=1)
        self.muster("wait", "job/fine")
        poll("the mail is sent", lambda: "muster.dev/notified" in self.annotations("fit"))
        self.assertRegex(self.muster("describe", "job", "fit").stdout, r"(?m)^Mail: +ada@example.org,bob, at its end: done \d{4}-")
        self.assertRegex(self.muster("describe", "job", "fine").stdout, r"(?m)^Mail: +ada, if it fails: not needed, as it has not failed$")
        [mail] = self.mails()
        self.assertTrue(mail.startswith("-i -- ada@example.org bob\nTo: ada@example.org, bob\nSubject: muster: job fit failed\n"), mail)
        self.assertIn("Succeeded:  2 of 3\nFailed:     1\n            tasks 2\n", mail)
        self.assertNotIn("muster.dev/notified", self.annotations("fine"))

    def test_a_crash_loses_no_mail(self):
        self.file("down", "")
        self.muster("submit", "--name", "fit", "-n", "1", "--mail", "ada", "--", "true")
        self.muster("wait", "job/fit")
        poll("the failure is shown", lambda: "mail queue is full" in self.muster("get", "events").stdout)
        self.restart_coordinator()
        (self.dir / "down").unlink()
        self.restart_coordinator()
        poll("the mail is sent", lambda: "muster.dev/notified" in self.annotations("fit"))
        self.assertEqual(len(self.mails()), 1)
        self.restart_coordinator()
        self.muster("submit", "--name", "next", "-n", "1", "--mail", "ada", "--", "true")
        poll("the next mail is sent", lambda: "muster.dev/notified" in self.annotations("next"))
        self.assertEqual(len(self.mails()), 2, "the first is not sent again")

    def test_a_command_is_a_job_with_the_same_surroundings(self):
        command = 'echo "$MUSTER_ENDED_JOB $MUSTER_ENDED_STATE $MUSTER_ENDED_FAILED $X" >>told'
        self.muster("submit", "--name", "fit", "-n", "2", "--env", "X=y", "--notify", command, "--", "sh", "-c", "[ $JOB_COMPLETION_INDEX = 0 ]")
        self.muster("wait", "job/fit", code=1)
        poll("the command has run", (self.dir / "told").exists)
        poll("it has written", lambda: (self.dir / "told").read_text() == "fit Failed 1 y\n")
        uid = json.loads(self.muster("get", "job", "fit", "-o", "json").stdout)["metadata"]["uid"]
        self.muster("wait", f"job/fit-end-{uid[:8]}")

    def test_who_is_told_can_be_set_while_the_job_runs(self):
        self.muster("submit", "--name", "late", "-n", "1", "--mail", "ada", "--", "sh", "-c", "until [ -e go ]; do sleep 0.1; done")
        for wrong, flags in (("one of --mail, --notify and --notify-on is required", []), ("`a b` is not a mail address", ["--mail", "a b"]),
                             ("--mail: the value is empty", ["--mail", ""]), ("`never`", ["--notify-on", "never"])):
            self.assertIn(wrong, self.muster("notify", "job/late", *flags, code=2).stderr)
        said = self.muster("notify", "job/late", "--mail", "none", "--notify", 'echo "$MUSTER_ENDED_STATE" >told').stdout
        self.assertEqual(said, "job.batch/late annotated: who is told of its end\n")
        (self.dir / "go").touch()
        self.muster("wait", "job/late")
        poll("the command has written", lambda: (self.dir / "told").exists() and (self.dir / "told").read_text() == "Complete\n")
        self.assertRegex(self.muster("describe", "job", "late").stdout, r"(?m)^Notify: +echo .* >told, at its end: done \d{4}-")
        self.assertIn("job/late has finished, so nobody will be told of its end", self.muster("notify", "job/late", "--mail", "bob", code=5).stderr)
        self.assertIn("not found", self.muster("notify", "job/none", "--mail", "bob", code=3).stderr)
        self.assertEqual(self.mails(), [])

    def test_a_script_of_slurm_asks_for_mail(self):
        script = self.file("job.sh", "#!/bin/sh\n#SBATCH --mail-type=END --mail-user=ada\ntrue\n")
        self.assertEqual(self.muster("submit", script).stderr, "")
        poll("the mail is sent", lambda: len(self.mails()) == 1)

    def test_wrong_addresses_are_refused(self):
        r = self.muster("submit", "-n", "1", "--mail", "a b", "--", "true", code=2)
        self.assertIn("`a b` is not a mail address", r.stderr)
        self.assertIn("needs --mail or --notify", self.muster("submit", "-n", "1", "--notify-on", "fail", "--", "true", code=2).stderr)


class Nested(cli.Cluster):
    def test_p20_jobs_submit_jobs(self):
        inner = f"{MUSTER} submit --name inner -n 1 -- true"
        self.muster("submit", "--name", "outer", "-n", "1", "--wait", "--", "sh", "-c", f"cd /; {inner}")
        self.muster("wait", "job/inner")
        r = self.muster("submit", "--dry-run", "-n", "1", "--env", "MUSTER_API=other:1", "--", "true")
        self.assertIn("other:1", r.stdout)
        r = self.muster("submit", "--dry-run", "-n", "1", "--export", "NONE", "--", "true")
        self.assertNotIn("MUSTER_API", r.stdout)


class Copies(cli.Cluster):
    """muster cp, to and from a pod whose directory is `there`."""

    def setUp(self):
        super().setUp()
        (self.dir / "there").mkdir()
        self.muster("submit", "--name", "a", "--array", "5-6", "--chdir", str(self.dir / "there"), "--", "sleep", "1000")
        poll("both run", lambda: self.status("a").get("ready") == 2)

    def test_a_file_goes_there_and_back_unchanged(self):
        sent = self.dir / "some file"
        sent.write_bytes(os.urandom(300_000))
        self.muster("cp", str(sent), "job/a:got", "--task", "5")
        self.assertEqual((self.dir / "there/got").read_bytes(), sent.read_bytes())
        (self.dir / "back").mkdir()
        self.muster("cp", "job/a:got", str(self.dir / "back"), "--index", "1")
        self.assertEqual((self.dir / "back/got").read_bytes(), sent.read_bytes())
        pod = self.muster("get", "pods", "-o", "name").stdout.split()[0].split("/")[1]
        self.muster("cp", f"{pod}:{self.dir}/there/got", str(self.dir / "other"))
        self.assertEqual((self.dir / "other").read_bytes(), sent.read_bytes())

    def test_what_cannot_be_copied_leaves_nothing(self):
        (self.dir / "back").mkdir()
        (self.dir / "back/none").write_text("before")
        r = self.muster("cp", "job/a:none", str(self.dir / "back"), "--index", "0", code=1)
        self.assertIn("none", r.stderr)
        self.assertEqual([(p.name, p.read_text()) for p in (self.dir / "back").iterdir()], [("none", "before")])
        self.assertIn("add -r", self.muster("cp", str(self.dir / "back"), "job/a:x", "--index", "0", code=2).stderr)
        self.assertIn("is in a pod", self.muster("cp", "x", "./a:b", code=2).stderr)
        self.assertIn("2 running pods", self.muster("cp", "job/a:x", "y", code=5).stderr)
        self.assertIn("cannot create", self.muster("cp", self.file("x", "x"), "job/a:no/such/dir", "--index", "0", code=2).stderr)

    def test_directories_go_with_their_files(self):
        (self.dir / "d/sub").mkdir(parents=True)
        (self.dir / "d/sub/f").write_text("words\n")
        (self.dir / "d/link").symlink_to("sub/f")
        self.muster("cp", "-r", str(self.dir / "d"), "job/a:new", "--index", "0")
        self.assertEqual((self.dir / "there/new/link").read_text(), "words\n")
        self.muster("cp", "-r", str(self.dir / "d"), "job/a:.", "--index", "0")
        self.assertEqual((self.dir / "there/d/sub/f").read_text(), "words\n")
        self.muster("cp", "-r", "job/a:new", str(self.dir / "back"), "--index", "0")
        self.assertEqual((self.dir / "back/sub/f").read_text(), "words\n")
        self.muster("cp", "-r", "job/a:none", str(self.dir / "back2"), "--index", "0", code=2)



ECHO = """
import os, socket, threading
def serve(client):
    while data := client.recv(65536):
        client.sendall(data)
    client.sendall(b"end")
    client.close()
s = socket.create_server(("127.0.0.1", 0))
open("port.new", "w").write(str(s.getsockname()[1]))
os.rename("port.new", "port")
while True:
    threading.Thread(target=serve, args=[s.accept()[0]]).start()
"""


class Forwards(cli.Cluster):
    """muster port-forward, to a pod that sends back what it gets, and `end` at the end."""

    PATH = os.environ["PATH"]

    def setUp(self):
        super().setUp()
        self.muster("submit", "--name", "echo", "-n", "1", "--env", f"PATH={self.PATH}", "--", sys.executable, "-c", ECHO)
        poll("it listens", (self.dir / "port").exists)
        self.there = (self.dir / "port").read_text()

    def forward(self, *ports):
        """The ports here, and the process."""
        process = subprocess.Popen([MUSTER, "port-forward", "job/echo", *ports], env=self.env, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        here = [re.match(r"Forwarding from 127.0.0.1:(\d+) -> (\d+)$", process.stdout.readline()) for _ in ports]
        self.assertEqual([m[2] for m in here], [port.split(":")[-1] for port in ports])
        return [int(m[1]) for m in here], process

    def test_connections_carry_bytes_and_ends_both_ways(self):
        (here, closed), process = self.forward(f":{self.there}", ":1")
        data = os.urandom(1_000_000)
        clients = [socket.create_connection(("127.0.0.1", here), cli.DEADLINE) for _ in range(3)]
        for client in clients:
            def send(client=client):
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            threading.Thread(target=send).start()
        for client in clients:
            with client, client.makefile("rb") as file:
                self.assertEqual(file.read(), data + b"end")
        with socket.create_connection(("127.0.0.1", closed), cli.DEADLINE) as client:
            self.assertEqual(client.recv(1), b"")
        process.send_signal(signal.SIGINT)
        self.assertIn("port 1 of the pod: ", process.communicate(timeout=cli.DEADLINE)[1])
        self.assertEqual(process.returncode, 0)

    def test_it_ends_with_the_pod(self):
        _, process = self.forward(f":{self.there}")
        self.muster("delete", "job/echo")
        self.assertIn("the pod has ended", process.communicate(timeout=cli.DEADLINE)[1])
        self.assertEqual(process.returncode, 1)

    def test_a_wrong_pod_or_port_is_refused(self):
        self.assertIn("not found", self.muster("port-forward", "job/none", "80", code=3).stderr)
        for ports in ([], ["0"], ["65536"], ["80:"], ["x:80"], ["80:80:80"]):
            self.muster("port-forward", "job/echo", *ports, code=2)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            r = self.muster("port-forward", "job/echo", f"{taken.getsockname()[1]}:80", code=1)
        self.assertIn("Address already in use; choose another port", r.stderr)


class ForwardsWithoutPerl(Forwards):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        programs = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, programs)
        for name, program in (("sh", shutil.which("sh")), ("sleep", shutil.which("sleep")), ("python3", sys.executable)):
            (programs / name).symlink_to(program)
        cls.PATH = str(programs)


class Lists(cli.Cluster):
    """Lists of jobs, and what is deleted of them."""

    def names(self, *flags):
        return [line.split()[0] for line in self.muster("get", "jobs", "--no-headers", *flags).stdout.splitlines()]

    def test_jobs_are_filtered_and_the_unfinished_come_first(self):
        self.muster("submit", "--name", "good", "-n", "1", "--label", "project=x", "--", "true")
        self.muster("wait", "job/good")
        self.muster("submit", "--name", "bad", "-n", "1", "--", "false")
        self.muster("wait", "job/bad", code=1)
        self.muster("submit", "--name", "long", "-n", "1", "--chdir", str(self.dir), "--", "sleep", "1000")
        self.assertEqual(self.names("--failed"), ["bad"])
        self.assertEqual(self.names("--running"), ["long"])
        self.assertEqual(sorted(self.names("--done")), ["bad", "good"])
        self.assertEqual(sorted(self.names("--failed", "--running")), ["bad", "long"])
        self.assertEqual(self.names()[0], "long")
        self.assertEqual(self.names("--sort", "name"), ["bad", "good", "long"])
        self.assertEqual(len(self.names("--since", "1h")), 3)
        self.assertEqual(self.names("--since", "0s"), [])
        self.assertEqual(self.names("-l", "project=x"), ["good"])
        self.assertEqual(self.muster("get", "jobs", "--failed", "-o", "name").stdout, "job.batch/bad\n")
        wide = [line for line in self.muster("get", "jobs", "-o", "wide", "--running").stdout.splitlines()]
        self.assertTrue(wide[0].endswith("DIRECTORY"), wide)
        self.assertIn("sleep 1000", wide[1])
        self.assertTrue(wide[1].endswith(str(self.dir)), wide)
        self.assertIn("future", self.muster("get", "jobs", "--since", "2999-01-01T00:00", code=2).stderr)
        self.assertIn("select jobs", self.muster("get", "pods", "--failed", code=2).stderr)

    def test_old_jobs_are_deleted(self):
        self.muster("submit", "--name", "good", "-n", "1", "--", "true")
        self.muster("submit", "--name", "bad", "-n", "1", "--", "false")
        self.muster("submit", "--name", "long", "-n", "1", "--", "sleep", "1000")
        self.muster("wait", "job/good")
        self.muster("wait", "job/bad", code=1)
        self.assertIn("No jobs found", self.muster("delete", "jobs", "--done", "--older-than", "1h").stderr)
        self.assertIn("add --done", self.muster("delete", "jobs", "--older-than", "1h", code=2).stderr)
        self.assertEqual(self.muster("delete", "jobs", "--failed").stdout, "job.batch/bad deleted\n")
        self.assertEqual(self.muster("delete", "jobs", "--done").stdout, "job.batch/good deleted\n")
        self.assertEqual(self.names(), ["long"])
        for words in (["why", "job/good"], ["logs", "job/good"], ["describe", "job", "good"], ["wait", "job/good"]):
            self.assertIn("it was deleted; what is kept of it: muster history job/good", self.muster(*words, code=3).stderr)
        self.assertNotIn("history", self.muster("why", "job/never", code=3).stderr)

    def test_indexes_are_cancelled_not_deleted(self):
        self.assertIn("muster cancel job/NAME --index", self.muster("delete", "job/x", "--index", "3", code=2).stderr)

    def test_a_ttl_deletes_the_finished_job(self):
        self.muster("submit", "--name", "brief", "-n", "1", "--ttl", "0s", "--", "true")
        poll("it is gone", lambda: self.names() == [])
        self.assertIn("it was removed after its TTL; what is kept of it: muster history job/brief", self.muster("why", "brief", code=3).stderr)

    def test_commands_of_others_are_answered(self):
        for theirs, ours in (("sbatch", "muster submit"), ("squeue", "muster get jobs"), ("scancel", "muster cancel")):
            self.assertIn(f"here, that is {ours}", self.muster(theirs, "x", code=2).stderr)


class Followers(cli.Cluster):
    """Arrays that follow others task by task (each:JOB)."""

    # Each task of `a` waits for its file; task 2 fails unless `fixed` is there.
    FIRST = ("while [ ! -e go$SLURM_ARRAY_TASK_ID ]; do sleep 0.02; done; "
             "[ $SLURM_ARRAY_TASK_ID != 2 ] || [ -e fixed ] || exit 3; echo a$SLURM_ARRAY_TASK_ID >>ran")
    SECOND = "grep -qx a$SLURM_ARRAY_TASK_ID ran && echo b$SLURM_ARRAY_TASK_ID >>ran"

    def ran(self):
        path = self.dir / "ran"
        return path.read_text().split() if path.exists() else []

    def submit(self):
        self.muster("submit", "--name", "a", "--array", "1-4", "--", "sh", "-c", self.FIRST)
        self.muster("submit", "--name", "b", "--array", "1-4", "--after", "corr:a", "--", "sh", "-c", self.SECOND)

    def test_the_way_on_begins_at_the_cause(self):
        """However long the chain is; and what was cancelled is not retried as a failure."""
        for name, after, what in (("k1", (), "[ -e fixed ]"), ("k2", ("--after", "ok:k1"), "true"), ("k3", ("--after", "ok:k2"), "true")):
            self.muster("submit", "--name", name, "-n", "1", *after, "--", "sh", "-c", what)
        self.muster("wait", "job/k3", code=1)
        self.assertIn("the way on is: muster retry job/k1 --failed --dependents\n", self.muster("why", "job/k3").stdout)
        self.file("fixed", "")
        self.muster("retry", "job/k1", "--failed", "--dependents")
        self.muster("wait", "job/k3-r2")
        self.muster("submit", "--name", "w1", "--array", "5-6", "--", "sh", "-c", "[ $SLURM_ARRAY_TASK_ID = 5 ] || [ -e go6 ] || exec sleep 300")
        self.muster("submit", "--name", "w2", "--array", "5-6", "--after", "each:w1", "--", "true")
        self.muster("cancel", "job/w1", "--task", "6")
        self.muster("wait", "job/w2", code=1)
        way = "muster retry job/w1 --dependents"
        self.assertIn(f"  task 6 never ran, because it did not succeed in job w1; the way on is: {way}\n", self.muster("why", "job/w2").stdout)
        self.file("go6", "")
        self.muster(*way.split()[1:])
        self.muster("wait", "job/w2-r2")

    def test_each_task_waits_for_its_own(self):
        self.submit()
        self.assertIn("b Held: the job is waiting for job a to succeed index by index", self.muster("why", "job/b").stdout)
        self.assertIn("Held", self.muster("get", "jobs").stdout)
        self.file("go3", "")
        poll("task 3 of both has run", lambda: self.ran() == ["a3", "b3"])
        poll("the others wait", lambda: "3 indexes are waiting for job a to succeed index by index (muster.dev/after): 0,1,3"
             in self.muster("why", "job/b").stdout)
        self.assertIn("the index is waiting for index 0 of job a to succeed", self.muster("why", "job/b", "--task", "1").stdout)
        self.file("go2", "")
        poll("task 2 of b has failed", lambda: self.status("b").get("failedIndexes") == "1")
        self.assertIn("never ran, because index 1 of job a failed or was cancelled", self.muster("why", "job/b", "--task", "2").stdout)
        self.file("go1", "")
        self.file("go4", "")
        self.muster("wait", "job/b", code=1)
        self.assertEqual(sorted(self.ran()), ["a1", "a3", "a4", "b1", "b3", "b4"])
        first = "the way on is: muster retry job/a --failed --dependents\n"
        self.assertIn("  task 2 never ran, because it did not succeed in job a; " + first, self.muster("why", "job/b").stdout)
        self.assertIn("  " + first, self.muster("why", "job/b", "--task", "2").stdout)
        self.file("fixed", "")
        # The repair of `a` still runs when the dependents name it.
        (self.dir / "go2").unlink()
        self.muster("retry", "job/a", "--failed")
        self.assertIn("  job a-r2 runs it again, so the way on is: muster retry job/b --failed\n", self.muster("why", "job/b/1").stdout)
        self.muster("retry", "job/b", "--failed")
        self.assertNotIn("the way on", self.muster("why", "job/b").stdout)
        self.muster("submit", "--name", "c", "--array", "1-4", "--after", "each:a", "--", "sh", "-c", self.SECOND.replace("echo b", "echo c"))
        poll("the tasks that were not repaired run", lambda: {"c1", "c3", "c4"} <= set(self.ran()))
        self.assertNotIn("b2", self.ran())
        self.file("go2", "")
        self.muster("wait", "job/b-r2")
        self.muster("wait", "job/c")
        self.assertEqual(sorted(self.ran()), ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4", "c1", "c2", "c3", "c4"])
        self.assertLess(self.ran().index("a2"), self.ran().index("c2"))

    def test_crashes_of_the_coordinator_change_nothing(self):
        self.submit()
        for task in ("1", "3", "4"):
            self.coordinator.kill()
            self.coordinator.wait()
            self.file("go" + task, "")
            self.coordinator = self.start("coordinator", "--data-dir", "c", "--api", self.api, "--listen", self.listen, "--log-level", "warn")
            poll("both have run", lambda: "b" + task in self.ran())
        self.muster("delete", "job/a")
        poll("it fails", lambda: any(c["type"] == "Failed" for c in self.status("b").get("conditions", [])))
        self.assertEqual(self.status("b")["failedIndexes"], "1")
        self.assertEqual(self.ran(), ["a1", "b1", "a3", "b3", "a4", "b4"])

    def test_what_cannot_be_followed_is_refused(self):
        self.muster("submit", "--name", "a", "--array", "1-3", "--", "true")
        self.muster("create", "-f", "-", stdin=cli.manifest("queue", "true", 2, 2).replace("completionMode: Indexed", "completionMode: NonIndexed")
                    .replace("  backoffLimitPerIndex: 0\n", ""))
        for args, why in ((["--array", "1-4", "--after", "each:a"], "pairs tasks by their position, and here these are 1-4, there 1-3"),
                          (["--array", "0-2", "--after", "each:a"], "pairs tasks by their position, and here these are 0-2, there 1-3"),
                          (["-n", "4", "--after", "each:a"], "job `a` has no index 3: its spec.completions is 3"),
                          (["-n", "2", "--after", "each:queue"], "job `queue` has no indexes"),
                          (["-n", "2", "--gang", "--after", "each:a"], "the pods of this job start together")):
            r = self.muster("submit", "--name", "b", *args, "--", "true", code=5)
            self.assertIn(why, r.stderr)
        self.muster("wait", "job/a")
        self.muster("submit", "--name", "late", "-n", "2", "--after", "each:a", "--", "true")
        self.muster("wait", "job/late")


class Arrays(cli.Cluster):
    def test_p16_overlapping_array_ranges_run_each_task_once(self):
        self.muster("submit", "--name", "set", "--array", "1-3,2-4", "--", "sh", "-c", "echo $SLURM_ARRAY_TASK_ID >>ran")
        self.muster("wait", "job/set")
        self.assertEqual(sorted((self.dir / "ran").read_text().split()), ["1", "2", "3", "4"])

    def test_tasks_have_the_variables_of_slurm(self):
        show = ["--", "sh", "-c", "env | grep ^SLURM_ | sort"]
        self.muster("submit", "--name", "v", "--array", "3-9:3%2", "--cpus", "1.5", *show, SLURM_JOB_ID="outer", SLURM_NTASKS="7")
        self.muster("wait", "job/v")
        pod = [p for p in self.muster("get", "pods", "-o", "name").stdout.split() if p.startswith("pod/v-1-")]
        self.assertEqual(self.muster("logs", "job/v", "--index", "1").stdout.split(),
                         ["SLURM_ARRAY_JOB_ID=v", "SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_ID=6", "SLURM_ARRAY_TASK_MAX=9",
                          "SLURM_ARRAY_TASK_MIN=3", "SLURM_ARRAY_TASK_STEP=3", "SLURM_CPUS_PER_TASK=2", f"SLURM_JOB_ID={pod[0][4:]}",
                          "SLURM_JOB_NAME=v", "SLURM_NTASKS=7"])
        out = self.muster("run", "--array", "4,8%1", "--keep-order", "--", "sh", "-c", "echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT $1", "sh", "{}").stdout
        self.assertEqual(out, "4 | 4 of 2 4\n8 | 8 of 2 8\n")
        self.assertIn("4-1 runs backwards", self.muster("run", "--array", "4-1", *show, code=5).stderr)

    def test_tasks_are_named_by_their_numbers(self):
        self.muster("submit", "--name", "a", "--array", "10-40:10", "--", "sh", "-c",
                    'echo "task $1"; [ $1 != 30 ] || exit 3; [ $1 != 40 ] || sleep 1000', "sh", "{}")
        poll("the last one runs", lambda: self.status("a").get("ready") == 1)
        poll("three have ended", lambda: len(json.loads(self.muster("get", "attempts", "job/a", "-o", "json").stdout)["items"]) == 3)
        self.assertEqual(self.muster("logs", "job/a", "--task", "20").stdout, "task 20\n")
        self.assertEqual(self.muster("logs", "job/a", "--task", "10,30").stdout.splitlines(), ["10#0 | task 10", "30#0 | task 30"])
        self.assertEqual(self.muster("logs", "job/a", "--task", "30", "--attempt", "0").stdout, "task 30\n")
        attempts = json.loads(self.muster("get", "attempts", "job/a", "--task", "20-30", "-o", "json", code=5).stdout or "{}")
        self.assertEqual(attempts, {}, "there is no task 21")
        attempts = json.loads(self.muster("get", "attempts", "job/a", "--task", "20,30", "-o", "json").stdout)["items"]
        self.assertEqual(sorted((a["index"], a["exitCode"]) for a in attempts), [(1, 0), (2, 3)])
        self.assertTrue(self.muster("why", "job/a", "--task", "30").stdout.startswith("job/a task 30 "))
        self.assertEqual(self.muster("exec", "job/a", "--task", "40", "--", "sh", "-c", "echo $SLURM_ARRAY_TASK_ID").stdout, "40\n")
        for words in (["logs", "job/a"], ["get", "attempts", "job/a"], ["why", "job/a"]):
            self.assertIn("there is no task 11", self.muster(*words, "--task", "11", code=5).stderr)
        self.assertIn("there is no task 11", self.muster("exec", "job/a", "--task", "11", "--", "true", code=5).stderr)
        self.assertIn("job/a task 20 has no running pod", self.muster("exec", "job/a", "--task", "20", "--", "true", code=5).stderr)
        self.muster("submit", "--name", "b", "-n", "1", "--", "true")
        self.assertIn("was not submitted with --array", self.muster("logs", "job/b", "--task", "0", code=5).stderr)
        for words, why in ((["logs", "job/a", "--task", "10", "--index", "1"], "--index"), (["logs", "a-1", "--task", "10"], "apply to jobs only"),
                           (["logs", "job/a", "--attempt", "0"], "--attempt requires --index or --task"),
                           (["get", "jobs", "--task", "1"], "apply to attempts only"), (["why", "job/a/1", "--task", "1"], "names an index already"),
                           (["logs", "job/a", "--task", "x"], "is not a set of numbers such as 3,7-9")):
            self.assertIn(why, self.muster(*words, code=2).stderr)

    def test_failures_are_told_of_tasks(self):
        self.muster("submit", "--name", "a", "--array", "10-12", "--", "sh", "-c", '[ $1 != 11 ]', "sh", "{}")
        waited = self.muster("wait", "job/a", code=1).stderr
        why = self.muster("why", "job/a").stdout
        for part in ("task 11 failed 1 time", "failed tasks 11", "more: muster logs job/a --task 11 --attempt 0"):
            self.assertIn(part, waited)
            self.assertIn(part, why)
        self.assertRegex(why, r"TASK +ATTEMPT[^\n]*\n +11 +0 ")
        self.assertNotIn("index 1", waited + why)
        self.assertRegex(self.muster("get", "attempts", "job/a", "--failed").stdout, r"INDEX +TASK[^\n]*\n1 +11 ")
        shown = self.muster("describe", "job/a").stdout
        self.assertIn("failed tasks: 11\n", shown)
        self.assertRegex(shown, r"(?m)^Completed tasks: +10,12\nFailed tasks: +11$")
        pods = json.loads(self.muster("get", "pods", "-o", "json").stdout)["items"]
        pod = next(p["metadata"]["name"] for p in pods if p["metadata"]["name"].startswith("a-1-"))
        self.assertRegex(self.muster("describe", "pod", pod).stdout, r"(?m)^Task: +11 \(index 1\), attempt 0$")
        for words in (["job/a", "--index", "1"], ["job/a/1"]):
            self.assertTrue(self.muster("why", *words).stdout.startswith("job/a/1 (task 11) Failed"))
        self.assertRegex(self.muster("history", "job/a", "--attempts").stdout, r"(?s)NAME +INDEX +TASK +ATTEMPT.*\na +1 +11 +0 ")
        rows = [line.split("\t") for line in self.muster("history", "job/a", "--attempts", "-o", "tsv").stdout.splitlines()]
        self.assertEqual({(row[3], row[-1]) for row in rows}, {("Index", "Task"), ("0", "10"), ("1", "11"), ("2", "12")})
        items = json.loads(self.muster("history", "job/a", "--attempts", "-o", "json").stdout)["items"]
        self.assertEqual(sorted((one["index"], one["task"]) for one in items), [(0, 10), (1, 11), (2, 12)])
        self.assertIn("has no index 11: it has 3, from 0; tasks are chosen with --task 11",
                      self.muster("logs", "job/a", "--index", "11", code=3).stderr)
        for words in (["logs", "a_11"], ["logs", "a11"], ["exec", "a-11", "--", "true"], ["cancel", "a_11"], ["retry", "a_11"], ["why", "a_11"]):
            self.assertIn("did you mean job/a --task 11?", self.muster(*words, code=3).stderr)
        for words in (["logs", "a"], ["exec", "a", "--", "true"], ["cp", "a:x", "y"], ["describe", "a_11"], ["delete", "job/a_11"], ["wait", "a_11"]):
            self.assertIn("did you mean job/a?", self.muster(*words, code=3).stderr)
        self.muster("delete", "job/a")
        self.muster("wait", "job/a", "--for=delete")
        self.assertRegex(self.muster("history", "job/a", "--attempts").stdout, r"(?s)NAME +INDEX +TASK +ATTEMPT.*\na +1 +11 +0 ")

    def test_cpus_are_the_threads_of_the_command(self):
        show = ["--", "sh", "-c", "echo $OMP_NUM_THREADS $SLURM_CPUS_PER_TASK"]
        run = ["run", "-n", "1", "--cpus", "2"]
        self.assertEqual(self.muster(*run, *show).stdout, "2 2\n")
        self.assertEqual(self.muster(*run, *show, OMP_NUM_THREADS="1").stdout, "1 2\n", "the user's own")
        self.assertEqual(self.muster(*run, "--export", "NONE", "--env", "OMP_NUM_THREADS=3", *show, OMP_NUM_THREADS="1").stdout, "3 2\n")
        self.assertEqual(self.muster("run", "-n", "1", *show).stdout, "\n")
        show[-1] = "echo $MKL_NUM_THREADS $NUMEXPR_NUM_THREADS $OPENBLAS_NUM_THREADS"
        self.assertEqual(self.muster(*run, *show).stdout, "2 2 2\n")
        self.assertEqual(self.muster(*run, *show, MKL_NUM_THREADS="1").stdout, "1 2 2\n")
        self.assertEqual(self.muster(*run, *show, OMP_NUM_THREADS="1").stdout, "\n", "libraries follow the user's own")
        self.assertEqual(self.muster(*run, "--env", "OMP_NUM_THREADS=1", *show).stdout, "\n")

    def test_p16_retry_takes_tasks(self):
        self.muster("submit", "--name", "sweep", "--array", "1-10", "--", "sh", "-c", "echo $SLURM_ARRAY_TASK_ID >>ran; [ $SLURM_ARRAY_TASK_ID != 7 ]")
        self.muster("wait", "job/sweep", code=1)
        (self.dir / "ran").unlink()
        self.assertIn("index 6 (task 7 of its array)", self.muster("retry", "job/sweep", "--task", "7").stdout)
        self.muster("wait", "job/sweep-r2", code=1)
        self.assertEqual((self.dir / "ran").read_text(), "7\n")
        self.assertIn("there is no task 11", self.muster("retry", "job/sweep", "--task", "11", code=5).stderr)
        self.assertIn("`x` is not a set of numbers", self.muster("retry", "job/sweep", "--task", "x", code=5).stderr)
        # What an index is of an array, the report says.
        self.assertIn("index 7 (task 8 of its array)", self.muster("retry", "job/sweep", "--index", "7").stdout)
        self.muster("submit", "--name", "plain", "-n", "2", "--", "true")
        self.assertIn("was not submitted with --array", self.muster("retry", "job/plain", "--task", "1", code=5).stderr)

    def test_p20_large_array_range_needs_no_inputs_file(self):
        r = self.muster("submit", "--dry-run", "--array", "1-20000", "--", "true")
        self.assertIn("0 1-20000", r.stdout)
        self.muster("submit", "--name", "big", "--array", "1-20000", "-j", "1", "--", "sh", "-c", "echo $SLURM_ARRAY_TASK_ID; exit 1")
        poll("a task's output", lambda: self.muster("logs", "job/big", "--index", "0").stdout == "1\n")
        self.muster("delete", "job/big")
        self.assertFalse(list(self.dir.glob("**/inputs-*")))


class Names(cli.Cluster):
    def test_invalid_names_get_one_sentence(self):
        r = self.muster("submit", "--name", "My Job", "-n", "1", "--", "true", code=5)
        self.assertEqual(r.stderr.count("\n"), 1, r.stderr)
        self.assertIn("use my-job", r.stderr)
        self.muster("submit", "--wait", "--name", "x" * 61, "-n", "1", "--", "false", code=1)
        made = self.muster("submit", "--unique", "--name", "x" * 61, "-n", "1", "--", "true").stdout
        self.assertEqual(made, f"job.batch/{'x' * 50}-2 created\n")
        self.assertIn("use a-b", self.muster("retry", "x" * 61, "--name", "a.b", code=5).stderr)

    def test_unique_names_get_numbers(self):
        run = ["submit", "-o", "name", "--name", "again", "-n", "1"]
        names = [self.muster(*run, "--unique", "--", "true").stdout for _ in range(4)]
        self.assertEqual(names, [f"job.batch/again{n}\n" for n in ("", "-2", "-3", "-4")])
        refused = self.muster(*run, "--", "true", code=5).stderr
        self.assertIn("--unique", refused)
        self.assertIn("--replace", refused)
        text = cli.manifest("again", "true", 1, 1)
        self.assertEqual(self.muster("submit", "-o", "name", "--unique", self.file("j.yaml", text)).stdout, "job.batch/again-5\n")

    def test_replace_replaces_finished_jobs_only(self):
        run = ["submit", "--replace", "--name", "r", "-n", "1", "--", "sh", "-c"]
        self.muster(*run, "echo first; while [ ! -e go ]; do sleep 0.02; done")
        self.assertIn("job/r has not finished", self.muster(*run, "true", code=5).stderr)
        self.file("go", "")
        self.muster("wait", "job/r")
        self.muster(*run, "echo second")
        self.muster("wait", "job/r")
        self.assertEqual(self.muster("logs", "job/r").stdout, "second\n")
        # What replaces it must be possible.
        self.assertIn('"none" not found', self.muster("submit", "--replace", "--name", "r", "--after", "ok:none", "-n", "1", "--", "true",
                                                      code=3).stderr)
        self.assertEqual(self.muster("logs", "job/r").stdout, "second\n")


SBATCH = """#!/bin/bash
#SBATCH -p serial
#SBATCH -J array_test
#SBATCH -a 4-10:2
#SBATCH --output=out_array_%A_%a.out
#MUSTER --retries 0
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_JOB_ID: $(cat <input.$SLURM_ARRAY_TASK_ID.dat) $*"
"""


class Scripts(cli.Case):
    def test_a_script_runs_as_it_is(self):
        self.file("job.sh", "#!/bin/bash -e\n#SBATCH --cpus-per-task=1\ncd $SLURM_SUBMIT_DIR\n"
                            "echo \"$0 $# $2 $SLURM_NTASKS $SLURM_JOB_NAME\" {} '$(HOME) $$' \"$(wc -c)\"; false; echo on\n")
        r = self.muster("run", "job.sh", "--name", "a b", code=1)
        self.assertRegex(r.stdout, r"^job\.sh 2 a b 1 job-sh-\w{5} \{\} \$\(HOME\) \$\$ 0\n$")
        self.file("job.sh", "#!/bin/sh\nexit $1\n")
        self.muster("run", "job.sh", "7", code=7)

    def test_p20_other_interpreters_leave_no_file(self):
        self.file("job.py", "#!/usr/bin/env python3\nimport sys, os\n# " + "x" * 9000 + "\nprint(sys.argv[1:], len(sys.stdin.read()))\nsys.exit(3)\n")
        self.assertEqual(self.muster("run", "job.py", "a b", code=3).stdout, "['a b'] 0\n")
        self.assertEqual([path.name for path in (self.dir / "tmp").iterdir() if not path.name.startswith("muster")], [])

    def test_missing_interpreter_is_named(self):
        self.file("job.sh", "#!/no/such/shell\necho\n")
        self.assertIn("/no/such/shell", self.muster("run", "job.sh", code=127).stderr)

    def test_programs_that_cannot_start_are_explained(self):
        for text, why in (("#!/bin/sh\r\n", "ends with a carriage return"), ("#!/no/such/shell\n", "/no/such/shell, which does not exist here"),
                          ("echo\n", "has no first line such as #!/bin/sh")):
            self.file("job.sh", text)
            (self.dir / "job.sh").chmod(0o755)
            r = self.muster("run", "-n", "1", "--", "./job.sh", code=126)
            self.assertIn("warning: ./job.sh cannot be started: it", r.stderr)
            self.assertIn(why, r.stderr)
        for text, why in (("echo\n", "has no first line"), ("\ufeff#!/bin/sh\necho\n", "a byte order mark"), ("", "is empty")):
            self.file("job.sh", text)
            r = self.muster("run", "job.sh", code=5)
            self.assertIn("job.sh: is neither a manifest nor a script: ", r.stderr)
            self.assertIn(why, r.stderr)

    def test_wrong_scripts_are_refused_before_anything_runs(self):
        for text, why in (("#!/bin/bash\r\ntouch ran\r\n", "job.sh:1: ends with CR LF"), ("#SBATCH -n 1\ntouch ran\n", "job.sh:1: a script starts with #!"),
                          ("#!\ntouch ran\n", "must be followed by an interpreter"), ("#!/bin/sh\n#SBATCH --nodes=4\ntouch ran\n", "muster mpirun"),
                          ("#!/bin/sh\n#MUSTER --retrys 1\ntouch ran\n", "job.sh:2: `--retrys`: unknown flag; did you mean --retries?")):
            self.file("job.sh", text)
            self.assertIn(why, self.muster("run", "job.sh", code=2).stderr)
        self.assertFalse((self.dir / "ran").exists())

    def test_scripts_and_manifests_come_from_stdin_too(self):
        self.assertEqual(self.muster("run", "-", "x", stdin="#!/bin/sh\necho $1 $(wc -c)\n").stdout, "x 0\n")
        self.assertEqual(self.muster("run", "-", stdin=cli.manifest("m", "echo manifest", 1, 1)).stdout, "manifest\n")

    def test_lines_of_a_file_are_commands(self):
        self.file("jobs.txt", "echo one >o1 && echo first\n# no\n\nX=5; echo \"x is $X, it's {} $(HOME)\" | tr a-z A-Z\r\nfalse || exit 3\n")
        r = self.muster("run", "-k", "--commands", "jobs.txt", code=1)
        self.assertEqual(r.stdout, f"0 | first\n1 | X IS 5, IT'S {{}} \n")
        self.assertRegex(r.stderr, r"2 +false \|\| exit 3 +0 +\S+ +exit 3")
        self.assertTrue((self.dir / "o1").exists())
        self.assertEqual(self.muster("run", "--commands", "-", stdin="exit 4", code=4).stdout, "")
        self.assertIn("use --commands FILE", self.muster("run", "--each", "jobs.txt", "--", "sh", "-c", "{}", code=5).stderr)


class ScriptsThere(cli.Cluster):
    def test_an_array_script_is_carried_with_its_job(self):
        for i in (4, 6, 8, 10):
            self.file(f"input.{i}.dat", f"data {i}\n")
        self.file("sub/job.sh", SBATCH)
        blocker = self.muster("submit", "-o", "name", "-n", "1", "--cpus", "4", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.02; done").stdout.strip()
        poll("it runs", lambda: self.status(blocker.split("/")[1]).get("ready") == 1)
        r = self.muster("submit", "-c", "1", "sub/job.sh", "an argument")
        self.assertEqual(r.stdout, "job.batch/array-test created\n")
        self.assertEqual(r.stderr, "muster: warning: --partition=serial is ignored: there is no queue of that name\n")
        (self.dir / "sub/job.sh").write_text("#!/bin/sh\necho edited\n")  # before any task has started
        self.file("go", "")
        self.muster("wait", "job/array-test")
        said = "task 8 of array-test: data 8 an argument\n"
        self.assertEqual((self.dir / "out_array_array-test_8.out").read_text(), said)
        self.assertEqual(self.muster("logs", "job/array-test", "--task", "8").stdout, said)
        self.assertEqual(self.status("array-test")["succeeded"], 4)

    def test_an_empty_value_takes_no_other_word(self):
        script = self.file("job.sh", "#!/bin/sh\necho\n")
        for words in (["--output=", "--dry-run", "-n", "1", "--", "true"], ["--output=", "job.sh"]):
            self.assertIn("`--output=` needs a value", self.muster("submit", *words, code=2).stderr)
        self.file("job.sh", "#!/bin/sh\n#SBATCH --output=\necho\n")
        self.assertIn("job.sh:2: --output", self.muster("submit", "--dry-run", "job.sh", code=2).stderr)
        self.assertIn("echo", (self.dir / script).read_text())

    def test_typed_flags_and_lines_win_over_sbatch(self):
        self.file("job.sh", "#!/bin/sh\n#SBATCH -a 1-4%3 --mem-per-cpu=1G\n#MUSTER --cpus 4\necho\n")
        spec = json.loads(self.muster("submit", "--dry-run", "-o", "json", "-j", "1", "job.sh").stdout)["spec"]
        self.assertEqual(spec["parallelism"], 1)
        self.assertEqual(spec["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"], "4Gi")

    def test_names_of_scripts_get_numbers(self):
        self.file("job.sh", "#!/bin/sh\n#SBATCH -J Again\n")
        names = [self.muster("submit", "-o", "name", "job.sh").stdout for _ in range(2)]
        self.assertEqual(names, ["job.batch/again\n", "job.batch/again-2\n"])
        self.assertIn("already exists", self.muster("submit", "-J", "again", "job.sh", code=5).stderr, "a typed name is kept")

    def test_the_file_for_output_of_the_command_line_wins_over_the_scripts(self):
        for line in ("#SBATCH -o of-script", "#SBATCH --output=of-script", "#MUSTER -o of-script", "#MUSTER --output of-script"):
            self.file("job.sh", f"#!/bin/sh\n{line}\necho hi\n")
            for typed in (["-o", "typed"], ["--output", "typed"]):
                with self.subTest(line=line, typed=typed):
                    self.muster("submit", "--wait", *typed, "job.sh")
                    self.assertEqual((self.dir / "typed").read_text(), "hi\n")
                    (self.dir / "typed").unlink()
                    self.assertFalse((self.dir / "of-script").exists())
            shown = self.muster("submit", "--dry-run", "-o", "json", "job.sh").stdout
            if "#SBATCH" in line:
                self.assertIn("of-script", shown, "-o json says how the manifest is printed")


class Later(cli.Cluster):
    def test_a_held_job_starts_when_its_owner_releases_it(self):
        self.muster("submit", "--name", "a", "-n", "1", "--hold", "--", "true")
        self.assertIn("holds the job", self.muster("why", "job/a").stdout)
        self.assertIn("Held", self.muster("get", "job", "a").stdout)
        Cancel.restart_coordinator(self)
        self.assertNotIn("startTime", self.status("a"), "a hold survives the coordinator, and nothing has started")
        self.muster("release", "job/a")
        self.muster("wait", "job/a")

    def test_a_job_begins_at_its_time_though_the_coordinator_dies(self):
        at = int(time.time()) + 3
        self.muster("submit", "--name", "a", "-n", "1", "--begin", time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(at)), "--",
                    "sh", "-c", "date +%s >began")
        Cancel.restart_coordinator(self)
        self.muster("wait", "job/a")
        self.assertGreaterEqual(int((self.dir / "began").read_text()), at)

    def test_later_is_said_and_changes_act_at_once(self):
        self.muster("submit", "--name", "a", "-n", "1", "--begin", "now+1hour", "--", "true")
        self.env["TZ"] = "ABC-9"  # of who asks, not of the coordinator
        for words in (["why", "job/a"], ["describe", "job", "a"], ["get", "jobs", "-o", "wide"]):
            self.assertRegex(self.muster(*words).stdout, r"begins at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d ABC\b")
        self.assertRegex(json.loads(self.muster("why", "job/a", "-o", "json").stdout)["summary"], r"begins at [-0-9T:]+Z, in ")
        for begin, past in (("2020-01-01", 1), ("4pm", 0), ("4:30 pm", 0)):
            r = self.muster("submit", "-n", "1", "--begin", begin, "--dry-run", "--", "true")
            self.assertEqual(r.stderr, f"muster: warning: --begin: {begin} is in the past, so the job starts at once\n" * past)
        patch = urllib.request.Request(f"http://{self.api}/apis/batch/v1/namespaces/default/jobs/a", method="PATCH",
                                       data=b'{"metadata":{"annotations":{"muster.dev/begin":null}}}',
                                       headers={"Content-Type": "application/merge-patch+json"})
        urllib.request.urlopen(patch, timeout=cli.DEADLINE).close()
        self.muster("wait", "job/a")

    def test_sbatch_lines(self):
        self.file("job.sh", "#!/bin/sh\n#SBATCH -H -b 2027-01-31T08:00\necho\n")
        notes = json.loads(self.muster("submit", "--dry-run", "-o", "json", "job.sh").stdout)["metadata"]["annotations"]
        self.assertEqual(notes["muster.dev/hold"], "true")
        self.assertRegex(notes["muster.dev/begin"], "^2027-01-3[01]T[0-9:]{8}Z$")
        r = self.muster("run", "job.sh")
        self.assertIn("ignored: --begin, --hold", r.stderr)
        self.assertIn("--begin: `soon`: must be a time such as 22:00",
                      self.muster("submit", "-n", "1", "--begin", "soon", "--", "true", code=2).stderr)


class Steps(cli.Cluster):
    """--retry-time; its other half, --retry-mem, needs cgroups: tests/vm/limits.sh."""

    def test_an_attempt_that_reached_its_time_limit_is_followed_by_a_longer_one(self):
        script = "[ -e two ] && exit 0; if [ -e one ]; then touch two; else touch one; fi; sleep 1000"
        self.muster("submit", "--name", "a", "-n", "1", "--time", "1s", "--retry-time", "2s,1h", "--grace", "0s", "--", "sh", "-c", script)
        self.muster("wait", "job/a")
        attempts = json.loads(self.muster("get", "attempts", "job/a", "-o", "json").stdout)["items"]
        self.assertEqual([(one["timeLimitSeconds"], one["cause"], one["counted"]) for one in attempts],
                         [(1, "deadline", "ignored"), (2, "deadline", "ignored"), (3600, "exited", "succeeded")])
        self.assertEqual(self.status("a").get("failed", 0), 0)
        table = self.muster("get", "attempts", "job/a").stdout.splitlines()
        self.assertIn("LIMITS", table[0])
        self.assertIn(" 1h ", table[3])
        self.assertIn("2s,1h", self.muster("describe", "job", "a").stdout)

    def test_a_step_survives_the_coordinator(self):
        script = "[ -e one ] || { touch one; sleep 1000; }; touch two; while [ ! -e go ]; do sleep 0.02; done"
        self.muster("submit", "--name", "a", "-n", "1", "--time", "1s", "--retry-time", "1h", "--grace", "0s", "--", "sh", "-c", script)
        poll("the second attempt runs", (self.dir / "two").exists)
        Cancel.restart_coordinator(self)
        pods = json.loads(self.muster("get", "pods", "-l", "job-name=a", "-o", "json").stdout)["items"]
        running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
        self.assertEqual([pod["spec"]["activeDeadlineSeconds"] for pod in running], [3600])
        self.assertIn("Limits:", self.muster("describe", "pod", running[0]["metadata"]["name"]).stdout)
        self.assertIn("with a time limit of 1h", self.muster("why", "job/a/0").stdout)
        self.file("go", "")
        self.muster("wait", "job/a")

    def test_used_up_steps_count_and_a_round_begins_with_the_last(self):
        self.muster("submit", "--name", "a", "-n", "1", "--time", "1s", "--retry-time", "2s", "--grace", "0s", "--",
                    "sh", "-c", "[ -e fixed ] || sleep 1000")
        self.muster("wait", "job/a", code=1)
        self.assertEqual(self.status("a")["failed"], 1)
        self.file("fixed", "")
        self.muster("retry", "job/a", "--wait")
        attempts = json.loads(self.muster("get", "attempts", "job/a-r2", "-o", "json").stdout)["items"]
        self.assertEqual([one["timeLimitSeconds"] for one in attempts], [2])

    def test_wrong_steps_are_refused_with_what_would_be_right(self):
        def refused(*flags):
            return self.muster("submit", "-n", "1", *flags, "--", "true", code=2).stderr
        self.assertIn("--retry-mem needs --mem", refused("--retry-mem", "8Gi"))
        self.assertIn("--retry-time needs --time", refused("--retry-time", "2h"))
        self.assertIn("`3Gi`: must be more than --mem, 4Gi", refused("--mem", "4Gi", "--retry-mem", "3Gi"))
        self.assertIn("`1h30m`: must be more than 2h, which comes before it", refused("--time", "1h", "--retry-time", "2h,90m"))
        self.assertIn("must be amounts with a unit", refused("--mem", "4Gi", "--retry-mem", "8"))
        self.muster("queue", "short", "--max-time", "2h")
        r = self.muster("submit", "-p", "short", "-n", "1", "--time", "1h", "--retry-time", "3h", "--", "true", code=5)
        self.assertIn("`3h`: must not be above the time limit of queue short, 2h", r.stderr)


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
