#!/usr/bin/env python3
"""What pods print (`muster run --output`, `muster logs -f`), continued runs (`--retry-failed`), and the joblog.

MUSTER names the executable. Waits poll with a deadline.
"""
import json
import os
import pathlib
import re
import signal
import sys
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from command import DEADLINE, CommandCase, poll  # noqa: E402


class Case(CommandCase):
    def manifest(self, name, n, script):
        """A job whose indexes have one retry, after a short backoff."""
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "annotations": {"muster.dev/backoff-base": "100ms"}},
               "spec": {"completionMode": "Indexed", "completions": n, "parallelism": n, "backoffLimitPerIndex": 1,
                        "template": {"spec": {"restartPolicy": "Never", "containers": [
                            {"name": "main", "command": ["sh", "-c", script], "workingDir": str(self.dir)}]}}}}
        (self.dir / f"{name}.json").write_text(json.dumps(job))
        return f"{name}.json"

    def text(self, name):
        return (self.dir / name).read_text()

    def names(self, folder):
        return sorted(p.name for p in (self.dir / folder).iterdir())


FAIL_ONCE = 'echo out $JOB_COMPLETION_INDEX; echo err >&2; [ -e ok.$JOB_COMPLETION_INDEX ] || { [ $((JOB_COMPLETION_INDEX % 3)) != 1 ]; }'


class Files:
    """--output FILE, locally (FilesHere) and against a coordinator (FilesThere)."""

    def test_each_index_has_a_file_with_both_streams(self):
        self.muster("run", "-n", "12", "-j", "4", "--name", "sweep", "--output", "logs/%j/%3i.out", "--", "sh", "-c",
                    "[ $JOB_COMPLETION_INDEX = 5 ] || { echo out $JOB_COMPLETION_INDEX; echo err >&2; printf tail; }")
        self.assertEqual(self.names("logs/sweep"), [f"{i:03}.out" for i in range(12)])
        self.assertEqual(self.text("logs/sweep/005.out"), "", "it printed nothing")
        lines = sorted(self.text("logs/sweep/011.out").splitlines())
        self.assertEqual(sorted("".join(lines)), sorted("out 11errtail"))

    def test_a_file_has_both_streams_in_the_order_of_writing(self):
        script = "for i in 1 2 3 4 5 6 7 8; do echo $i; echo $i >&2; done; exit $((JOB_COMPLETION_INDEX % 2))"
        r = self.muster("run", "-n", "4", "--output", "%i.out", "--", "sh", "-c", script, code=1)
        for index in range(4):
            self.assertEqual(self.text(f"{index}.out").split(), [str(i) for i in range(1, 9) for _ in range(2)])
        self.assertIn("8\n", r.stderr, "the failures' last lines")

    def test_stderr_may_have_files_of_its_own(self):
        script = "echo out $JOB_COMPLETION_INDEX; echo err >&2"
        self.muster("run", "-n", "3", "-o", "o/%i", "-e", "e/%i.err", "--", "sh", "-c", script)
        self.assertEqual([self.text(f"o/{i}") for i in range(3)], [f"out {i}\n" for i in range(3)])
        self.assertEqual([self.text(f"e/{i}.err") for i in range(3)], ["err\n"] * 3)
        self.muster("run", "-n", "1", "-o", "same", "--error", "same", "--", "sh", "-c", script, code=2)
        self.muster("run", "-n", "1", "-o", "./same", "--error", "./same", "--", "sh", "-c", script)
        self.assertEqual(self.text("same"), "out 0\nerr\n")
        # Without --output, stdout goes where it usually does.
        for how, shown in ((["--output", "plain"], "out 0\n"), ([], "out 0\n"), (["--output", "none"], ""), (["--output", "tag"], "0 | out 0\n"), (["-k"], "out 0\n")):
            r = self.muster("run", "-n", "1", *how, "-e", "e/only.%i", "--", "sh", "-c", script)
            self.assertEqual((r.stdout, self.text("e/only.0")), (shown, "err\n"), how)
            self.assertNotIn("err\n", r.stderr)
            (self.dir / "e/only.0").unlink()
        r = self.muster("run", "-n", "2", "-o", "o/%i", "-e", "both", "--", "true", code=5)
        self.assertIn("--error: both is the same file for all indexes", r.stderr)

    def test_the_newest_attempt_has_the_file_unless_each_has_its_own(self):
        script = 'echo attempt $MUSTER_ATTEMPT; [ $MUSTER_ATTEMPT = 1 ]'
        self.muster("run", self.manifest("one", 2, script), "--output", "%i.out")
        self.assertEqual(self.text("1.out"), "attempt 1\n")
        self.muster("run", self.manifest("two", 2, script), "--output", "%i.%r.%n")
        found = sorted(p.name for p in self.dir.glob("?.?.*"))
        self.assertEqual([name[:3] for name in found], ["0.0", "0.1", "1.0", "1.1"])
        self.assertEqual((self.dir / found[2]).read_text(), "attempt 0\n")

    def test_an_array_goes_by_its_tasks(self):
        r = self.muster("run", "--array", "101-102", "-k", "--", "echo", "{}")
        self.assertEqual(r.stdout, "101 | 101\n102 | 102\n")
        self.muster("run", "--name", "echo", "--array", "9-11:2", "--output", "o/%x-%3a.%i.%r", "--", "echo", "{}")
        self.assertEqual([(p.name, p.read_text()) for p in sorted((self.dir / "o").iterdir())],
                         [("echo-009.0.0", "9\n"), ("echo-011.1.0", "11\n")])
        self.muster("run", "-n", "2", "--output", "n/%a", "--", "sh", "-c", "echo $JOB_COMPLETION_INDEX")
        self.assertEqual([self.text(f"n/{i}") for i in range(2)], ["0\n", "1\n"])

    def test_files_have_owner_and_umask_of_the_caller(self):
        self.muster("run", "-n", "1", "--output", "d/out", "--", "sh", "-c", "echo x", umask=0o027)
        self.assertEqual(os.stat(self.dir / "d/out").st_mode & 0o777, 0o640)
        self.assertEqual(os.stat(self.dir / "d").st_mode & 0o777, 0o750)

    def test_what_cannot_be_written_is_refused_before_anything_runs(self):
        (self.dir / "file").write_text("")
        r = self.muster("run", "-n", "3", "--output", "file/%i", "--", "touch", "ran", code=5)
        self.assertIn("--output: cannot write to file: Not a directory", r.stderr)
        r = self.muster("run", "-n", "3", "--output", "all.out", "--", "touch", "ran", code=5)
        self.assertIn("all.out is the same file for all indexes; add %i", r.stderr)
        r = self.muster("run", "-n", "3", "--output", "%r.out", "--", "touch", "ran", code=5)
        self.assertIn("--output: %r.out is the same file for all indexes; add %i", r.stderr)
        r = self.muster("run", "-n", "3", "--output", "%y.out", "--", "touch", "ran", code=2)
        self.assertIn("`%y` in %y.out is unknown; there are %j job, %a task of the array or index", r.stderr)
        r = self.muster("run", "-n", "3", "--output", "plian", "--", "touch", "ran", code=2)
        self.assertIn("did you mean plain?", r.stderr)
        self.assertFalse((self.dir / "ran").exists())

    def test_a_file_that_fails_later_is_reported_and_fails_the_run(self):
        (self.dir / "out" / "1").mkdir(parents=True)
        r = self.muster("run", "-n", "3", "--output", "out/%i", "--", "sh", "-c", "echo x", code=1)
        self.assertIn("cannot write out/1: Is a directory", r.stderr)
        self.assertEqual(self.text("out/2"), "x\n")

    def test_keep_order_prints_in_index_order(self):
        script = "i=$JOB_COMPLETION_INDEX; echo a $i; [ $i -gt 3 ] || sleep 0.$((9 - 2 * i)); echo b $i"
        r = self.muster("run", "-n", "40", "-j", "8", "--keep-order", "--", "sh", "-c", script)
        lines = [line for line in r.stdout.splitlines() if " | " in line]
        self.assertEqual(lines, [f"{i} | {x} {i}" for i in range(40) for x in "ab"])
        job = self.manifest("retried", 9, "echo $JOB_COMPLETION_INDEX; [ $MUSTER_ATTEMPT = 1 ] || [ $JOB_COMPLETION_INDEX != 2 ]")
        r = self.muster("run", job, "-k", "--output", "plain")
        self.assertEqual(r.stdout.splitlines()[:10], ["0", "1", "2", "2", "3", "4", "5", "6", "7", "8"])
        self.muster("run", "-n", "3", "-k", "--output", "none", "--", "true", code=2)


class FilesHere(Files, Case):
    def test_a_continued_run_completes_its_files(self):
        run = ["run", "-n", "4", "-j", "4", "--data-dir", "d", "--name", "j", "--output", "out/%i", "--", "sh", "-c",
               "echo one; until [ -e go ]; do sleep 0.05; done; echo two"]
        p = self.start(*run)
        poll("all have printed", lambda: all((self.dir / f"out/{i}").exists() and self.text(f"out/{i}") for i in range(4)))
        p.kill()
        p.wait(DEADLINE)
        (self.dir / "out/3").write_text("something else\n")
        (self.dir / "go").write_text("")
        self.muster(*run)
        self.assertEqual([self.text(f"out/{i}") for i in range(4)], ["one\ntwo\n"] * 4)
        # Running it again after the end changes nothing.
        before = [os.stat(self.dir / f"out/{i}").st_mtime_ns for i in range(4)]
        self.muster(*run)
        self.assertEqual([os.stat(self.dir / f"out/{i}").st_mtime_ns for i in range(4)], before)

    def test_logs_of_a_finished_run_stay_in_its_directory(self):
        self.muster("run", "-n", "3", "--data-dir", "d", "--output", "none", "--", "sh", "-c", "echo kept $JOB_COMPLETION_INDEX")
        logs = sorted(p.read_text() for p in (self.dir / "d/agent/logs").glob("*/*.stdout"))
        self.assertEqual(logs, ["kept 0\n", "kept 1\n", "kept 2\n"])


class Retry(Case):
    def run_it(self, *more, code=0):
        return self.muster("run", "--data-dir", "d", *more, code=code)

    def test_retry_runs_only_failed_indexes(self):
        count = "echo $JOB_COMPLETION_INDEX >>ran; " + FAIL_ONCE
        command = ["-n", "9", "-j", "3", "--name", "sweep", "--", "sh", "-c", count]
        self.assertIn("failed indexes 1,4,7", self.run_it(*command, code=1).stderr)
        (self.dir / "ok.1").write_text("")
        (self.dir / "ok.7").write_text("")
        (self.dir / "ran").unlink()
        # With the command or without it.
        r = self.run_it("--retry-failed", "--output", "%i.out", code=1)
        self.assertIn("round 2 of job/sweep, indexes 1,4,7", r.stderr)
        self.assertEqual(sorted(self.text("ran").split()), ["1", "4", "7"])
        self.assertEqual(sorted(self.text("7.out").splitlines()), ["err", "out 7"])
        (self.dir / "ran").unlink()
        r = self.run_it("--retry-failed", *command, code=1)
        self.assertIn("round 3 of job/sweep, index 4", r.stderr)
        self.assertEqual(self.text("ran").split(), ["4"])
        (self.dir / "ok.4").write_text("")
        r = self.muster("retry", "--data-dir", "d", "--failed")
        self.assertIn("round 4 of job/sweep, index 4", r.stderr)
        self.assertIn("job/sweep-r4 Complete: 1/1 succeeded", r.stderr)
        r = self.run_it("--retry-failed")
        self.assertIn("nothing to retry: job/sweep: all of its indexes have succeeded", r.stderr)
        self.assertIn("all of its indexes have succeeded", self.muster("retry", "job/sweep", "--data-dir", "d", code=5).stderr)
        # An index chosen explicitly runs again nevertheless.
        self.assertIn("index 2", self.muster("retry", "--data-dir", "d", "--index", "2").stderr)
        self.assertIn("muster retry", self.muster("retry", code=2).stderr)

    def test_retry_refuses_wrong_directories_and_arguments(self):
        r = self.run_it("--retry-failed", code=3)
        self.assertIn("d is not the --data-dir of a muster run", r.stderr)
        self.assertFalse((self.dir / "d").exists(), "nothing is made")
        self.assertIn("--retry-failed needs --data-dir", self.muster("run", "--retry-failed", code=2).stderr)
        self.run_it("-n", "2", "--name", "j", "--", "true")
        self.assertIn("nothing to retry: job/j is Complete", self.run_it("--retry-failed").stderr)
        r = self.run_it("--retry-failed", "-n", "2", "--name", "j", "--", "false", code=5)
        self.assertIn("d holds job/j already and this one differs (spec.template", r.stderr)
        self.assertIn("d has no job/other; there is job/j", self.muster("retry", "job/other", "--data-dir", "d", code=3).stderr)
        p = self.start("run", "--data-dir", "e", "-n", "1", "--", "sleep", "1000")
        poll("it runs", lambda: (self.dir / "e/run.json").exists())
        r = self.muster("run", "--data-dir", "e", "--retry-failed", code=5)
        self.assertIn("is in use by another process", r.stderr)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(DEADLINE), 130)

    def test_an_interrupted_round_goes_on(self):
        script = "[ -e ok ] || exit 3; touch started; until [ -e go ]; do sleep 0.05; done"
        self.run_it("-n", "2", "-j", "2", "--name", "j", "--", "sh", "-c", script, code=1)
        (self.dir / "ok").write_text("")
        p = self.start("run", "--data-dir", "d", "--retry-failed")
        poll("the round runs", lambda: (self.dir / "started").exists())
        p.kill()
        p.wait(DEADLINE)
        (self.dir / "go").write_text("")
        r = self.run_it("--retry-failed")
        self.assertIn("job/j-r2 resumed", r.stderr)
        self.assertIn("job/j-r2 Complete: 2/2 succeeded", r.stderr)


class OldDirectories(Case):
    def test_dead_runs_of_ours_are_removed_after_a_day(self):
        tmp = self.dir / "tmp"
        old = time.time() - 3 * 24 * 3600
        for name, age in {"muster-run-aaaaaa": old, "muster-run-bbbbbb": None, "muster-run-cccccc": old, "muster-run-long-name": old}.items():
            (tmp / name).mkdir()
            (tmp / name / "lock").write_text("")
            if name.endswith("cccccc"):
                (tmp / name / "keep").write_text("")
            if age:
                for path in [*(tmp / name).iterdir(), tmp / name]:
                    os.utime(path, (age, age))
        outside = self.dir / "outside"
        outside.mkdir()
        (outside / "file").write_text("")
        os.utime(outside / "file", (old, old))
        os.utime(outside, (old, old))
        (tmp / "muster-run-dddddd").symlink_to(outside)
        # Other users' directories, and more of them than a sweep examines.
        for i in range(150 if os.geteuid() == 0 else 0):
            (tmp / f"muster-run-0{i:05}").mkdir()
            os.chown(tmp / f"muster-run-0{i:05}", 65534, 65534)
            os.utime(tmp / f"muster-run-0{i:05}", (old, old))
        self.muster("run", "-n", "1", "--", "true")
        poll("the old one is gone", lambda: not (tmp / "muster-run-aaaaaa").exists())
        for name in ("bbbbbb", "cccccc", "long-name", "dddddd"):
            self.assertTrue((tmp / f"muster-run-{name}").exists(), name)
        self.assertTrue((outside / "file").exists())
        if os.geteuid() == 0:
            self.assertTrue((tmp / "muster-run-000000").exists())


class Cluster(Case):
    """A coordinator and a node with 4 slots."""

    def setUp(self):
        super().setUp()
        self.coordinator = self.serve("127.0.0.1:0", "127.0.0.1:0")
        self.env["MUSTER_API"] = self.addresses["api"]
        self.agent = self.start("agent", "--coordinator", self.addresses["listen"], "--work-dir", "a", "--name", "n1", "--slots", "4",
                                "--log-level", "error")
        poll("the node is there", lambda: "n1" in self.muster("get", "nodes", "-o", "name").stdout)

    def serve(self, api, listen):
        endpoints = self.dir / "c" / "endpoints.json"
        endpoints.unlink(missing_ok=True)
        p = self.start("coordinator", "--data-dir", "c", "--api", api, "--listen", listen, "--log-level", "error")
        poll("the coordinator serves", endpoints.exists)
        self.addresses = json.loads(endpoints.read_text())
        return p

    def submit(self, name, n, script, *more):
        self.muster("submit", "--name", name, "-n", str(n), "-j", "4", *more, "--", "sh", "-c", script)


class FilesThere(Files, Cluster):
    def test_retry_by_data_dir_is_only_for_local_runs(self):
        self.assertIn("--data-dir", self.muster("run", "--data-dir", "d", "--retry-failed", code=2).stderr)
        self.assertIn("--data-dir", self.muster("retry", "--data-dir", "d", code=2).stderr)


class Logs(Cluster):
    def lines(self, p, count):
        found = []
        while len(found) < count:
            line = p.stdout.readline()
            self.assertNotEqual(line, "", found)
            found.append(line)
        return sorted(found)

    def test_follow_a_job_over_a_restart_of_the_coordinator(self):
        self.muster("create", "-f", self.manifest(
            "j", 3, "echo one; until [ -e go.$JOB_COMPLETION_INDEX ]; do sleep 0.05; done; echo two; [ $MUSTER_ATTEMPT = 1 ] || "
            "[ $JOB_COMPLETION_INDEX != 1 ]"))
        p = self.start("logs", "-f", "job/j")
        self.assertEqual(self.lines(p, 3), [f"{i}#0 | one\n" for i in range(3)])
        self.coordinator.kill()
        self.coordinator.wait(DEADLINE)
        (self.dir / "go.0").write_text("")
        self.coordinator = self.serve(self.addresses["api"], self.addresses["listen"])
        self.assertEqual(self.lines(p, 1), ["0#0 | two\n"])
        for i in (1, 2):
            (self.dir / f"go.{i}").write_text("")
        rest = sorted(p.stdout.read().splitlines())
        self.assertEqual(rest, ["1#0 | two", "1#1 | one", "1#1 | two", "2#0 | two"])
        self.assertEqual(p.wait(DEADLINE), 0)
        # After the end, it prints the newest attempts, as without -f.
        after = sorted(self.muster("logs", "-f", "job/j", "--tail", "1").stdout.splitlines())
        self.assertEqual(after, ["0#0 | two", "1#1 | two", "2#0 | two"])
        self.assertEqual(self.muster("logs", "-f", "job/j", "--index", "1").stdout, "one\ntwo\n")
        self.assertEqual(self.muster("logs", "job/j", "--index", "1", "--prefix").stdout, "1#1 | one\n1#1 | two\n")

    def test_streams_come_in_order_or_apart(self):
        script = "echo 1; sleep 0.4; echo 2 >&2; sleep 0.4; echo 3"
        self.muster("submit", "--name", "s", "-n", "1", "--wait", "--", "sh", "-c", script)
        label = "batch.kubernetes.io/job-name=s"
        pod = self.muster("get", "pods", "-l", label, "-o", "name").stdout.strip()
        for what in (["job/s"], ["-f", "job/s"], [pod], ["-f", pod], ["-l", label, "--prefix=false"]):
            self.assertEqual(self.muster("logs", *what).stdout, "1\n2\n3\n", what)
            self.assertEqual(self.muster("logs", *what, "--stdout").stdout, "1\n3\n", what)
            self.assertEqual(self.muster("logs", *what, "--stderr").stdout, "2\n", what)
            if what != ["-f", pod]:  # which the coordinator follows, counting the lines of each stream
                self.assertEqual(self.muster("logs", *what, "--tail", "2").stdout, "2\n3\n", what)
                self.assertEqual(self.muster("logs", *what, "--tail", "1", "--prefix").stdout.split(" | ")[-1], "3\n", what)
            self.assertEqual(self.muster("logs", *what, "--stdout", "--tail", "1").stdout, "3\n", what)
        self.muster("logs", "job/s", "--stdout", "--stderr", code=2)

    def test_logs_that_cannot_be_had_are_named_and_the_others_printed(self):
        away = self.start("agent", "--coordinator", self.addresses["listen"], "--work-dir", "b", "--name", "n2", "--slots", "4", "--log-level", "error")
        poll("both nodes are there", lambda: "n2" in self.muster("get", "nodes", "-o", "name").stdout)
        self.muster("submit", "--name", "j", "-n", "8", "--", "sh", "-c", "echo $JOB_COMPLETION_INDEX; until [ -e go ]; do sleep 0.05; done")
        poll("all run", lambda: self.muster("get", "pods", "--no-headers").stdout.count("Running") == 8)
        (self.dir / "go").write_text("")
        self.muster("wait", "job/j")
        pods = json.loads(self.muster("get", "pods", "-o", "json").stdout)["items"]
        index = {p["metadata"]["name"]: int(p["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]) for p in pods}
        gone = {p["metadata"]["name"] for p in pods if p["spec"]["nodeName"] == "n2"}
        self.assertEqual(len(gone), 4)
        there = sorted(index[p] for p in set(index) - gone)
        away.kill()
        away.wait(DEADLINE)
        poll("it is away", lambda: "not connected" in self.muster("logs", min(gone), code=4).stderr)
        for what in (["job/j"], ["-f", "job/j"]):
            done = self.muster("logs", *what, code=4)
            self.assertEqual(sorted(done.stdout.splitlines()), [f"{i}#0 | {i}" for i in there])
            self.assertEqual(done.stderr.count("the node of this pod is not connected"), 4, done.stderr)
            for pod in gone:
                self.assertIn(f"  {pod}: " if "-f" in what else f"  index {index[pod]}, attempt 0: ", done.stderr)
        done = self.muster("logs", "-l", "batch.kubernetes.io/job-name=j", code=4)
        self.assertEqual((done.stdout.count(" | "), done.stderr.count("  j-")), (4, 4), done.stderr)

    def test_logs_by_label_have_all_pods(self):
        label = "batch.kubernetes.io/job-name in (a, b)"
        for name in "ab":
            self.submit(name, 2, "for i in $(seq 12); do echo $i; done; until [ -e go ]; do sleep 0.05; done; echo end")
        poll("all run", lambda: self.muster("get", "pods", "--no-headers").stdout.count("Running") == 4)
        printed = self.muster("logs", "-l", label).stdout.splitlines()
        self.assertEqual(sorted({line.split(" | ")[0].rsplit("-", 1)[0] for line in printed}), ["a-0", "a-1", "b-0", "b-1"])
        self.assertEqual(len(printed), 40, "10 lines of each")
        p = self.start("logs", "-f", "-l", label, "--tail", "1", "--max-log-requests", "2")
        self.assertEqual({line.split(" | ")[1] for line in self.lines(p, 2)}, {"12\n"})
        (self.dir / "go").write_text("")
        rest = p.stdout.read()
        self.assertEqual(len(re.findall(r" \| end\n", rest)), 4, rest)
        self.assertEqual(p.wait(DEADLINE), 0)
        self.muster("logs", "-l", "app=none", code=3)
        self.muster("logs", "-l", "app=none", "job/a", code=2)
        self.muster("logs", code=2)

    def test_logs_leave_out_what_has_not_started(self):
        self.muster("submit", "--name", "w", "--array", "11-30", "-j", "20", "--", "sh", "-c", "echo here; until [ -e go ]; do sleep 0.05; done")
        self.addCleanup((self.dir / "go").write_text, "")
        rows = lambda state: [line for line in self.muster("get", "pods", "--no-headers").stdout.splitlines() if line.startswith("w-") and state in line]
        poll("all slots are taken", lambda: rows("Pending") and self.muster("logs", "job/w").stdout.count("here") == len(rows("Running")) > 1)
        r = self.muster("logs", "job/w")
        ran = sorted(int(line.split("#")[0]) for line in r.stdout.splitlines())
        self.assertEqual(ran, list(range(11, 11 + len(ran))))
        self.assertEqual(r.stderr, f"not started yet: tasks {11 + len(ran)}-30\n")
        for some in ("30", "29-30"):
            r = self.muster("logs", "job/w", "--task", some, code=5)
            self.assertIn("is waiting to start", r.stderr)

    def test_last_lines_are_of_both_outputs_also_of_a_pod_that_is_followed(self):
        self.submit("t", 1, "for i in 1 2 3; do echo out $i; echo err $i >&2; done")
        self.muster("wait", "job/t")
        pod = self.muster("get", "pods", "--no-headers").stdout.split()[0]
        for lines in (1, 2, 4):
            shown = self.muster("logs", pod, "--tail", str(lines)).stdout
            self.assertEqual(len(shown.splitlines()), lines)
            self.assertEqual(self.muster("logs", "-f", pod, "--tail", str(lines)).stdout, shown)

    def test_pods_write_files_in_place_of_logs(self):
        (self.dir / "logs").mkdir()
        script = "umask; echo out $1; echo err $1 >&2; echo more; exit 0"
        self.muster("submit", "--name", "a", "--array", "5-9:2", "--output", "logs/%x-%3a.out", "--wait", "--", "sh", "-c", script, "sh",
                    "{}", umask=0o027)
        files = sorted(p.name for p in (self.dir / "logs").iterdir())
        self.assertEqual(files, ["a-005.out", "a-007.out", "a-009.out"])
        self.assertEqual((self.dir / "logs/a-007.out").read_text(), "0027\nout 7\nerr 7\nmore\n", "both streams in order")
        self.assertEqual((self.dir / "logs/a-007.out").stat().st_mode & 0o777, 0o640)
        self.assertEqual(self.muster("logs", "job/a", "--task", "9", "--tail", "1").stdout, "more\n")
        self.assertEqual(self.muster("logs", "job/a", "--index", "0,1", "--tail", "1").stdout, "5#0 | more\n7#0 | more\n")
        self.assertIn("tail -f", self.muster("logs", "-f", "job/a", code=5).stderr)
        # A retry appends, unless it has a file of its own; the next job of that name begins anew.
        fails = "echo try $MUSTER_ATTEMPT; echo oops $MUSTER_ATTEMPT >&2; exit 3"
        for retries, out, err in (("1", "try 0\ntry 1\n", "oops 1\n"), ("0", "try 0\n", "oops 0\n")):
            self.muster("submit", "--name", "b", "-n", "1", "--retries", retries, "--output", "logs/%j", "--error", "logs/%j.%r", "--wait",
                        "--", "sh", "-c", fails, code=1)
            self.assertEqual((self.dir / "logs/b").read_text(), out)
            self.assertEqual((self.dir / f"logs/b.{retries}").read_text(), err)
            self.assertIn(err, self.muster("describe", "job", "b").stdout)
            self.muster("delete", "job/b")
        # What must not be written to, or cannot be.
        (self.dir / "mine").write_text("precious\n")
        (self.dir / "link").symlink_to("mine")
        for name, why in (("none/%a", "No such file or directory; create its directory on this node, or choose another file (--output, --error)"),
                          ("link", "Too many levels of symbolic links; it is a symbolic link, and output follows none: remove it, or name the file that it points to"),
                          ("logs", "Is a directory; name a file in it")):
            r = self.muster("submit", "--name", "c", "-n", "1", "--output", name, "--wait", "--timeout", "100s", "--", "true", code=1)
            self.assertIn(why, r.stderr)
            self.assertRegex(r.stderr, r"(?i)node ")
            self.assertIn(f"open {self.dir}/{name.replace('%a', '0')}: {why}", self.muster("why", "job/c/0").stdout)
            self.muster("delete", "job/c")
        self.assertEqual((self.dir / "mine").read_text(), "precious\n")
        for wrong, why in ((["-n", "2", "--output", "same"], "is the same file for all indexes"), (["-n", "1", "--output", "%y"], "`%y` in %y is unknown"),
                           (["-n", "1", "--error", "d/"], "names a directory")):
            self.assertIn(why, self.muster("submit", *wrong, "--", "true", code=5).stderr, wrong)
        for flag in ("--output", "-o", "--error"):
            r = self.muster("submit", "-n", "1", flag, "none", "--", "true", code=2)
            self.assertIn("`none`: must be a file: without one, output stays in the pods' logs; /dev/null drops it; a file of that name is ./none", r.stderr)
        self.assertIn("--output needs the name of a file", self.muster("submit", "-n", "1", "--output", "", "--", "true", code=2).stderr)
        # What cannot be read is reported, and the others are printed; what is not kept is not missed.
        (self.dir / "logs/a-005.out").unlink()
        left = self.muster("logs", "job/a", "--tail", "1", code=5)
        self.assertEqual(left.stdout, "7#0 | more\n9#0 | more\n")
        self.assertIn("a-005.out on its node, which cannot be read here: No such file", left.stderr)
        pod = next(line.split()[0] for line in self.muster("get", "pods", "--no-headers").stdout.splitlines() if line.startswith("a-2-"))
        self.assertEqual(self.muster("logs", pod, "--tail", "1").stdout, "more\n")
        self.muster("submit", "--name", "n", "-n", "2", "--output", "/dev/null", "--wait", "--", "echo", "x")
        self.assertEqual(self.muster("logs", "job/n").stdout, "")

    def test_signal_before_the_limit_lets_a_pod_save_its_work(self):
        script = "trap 'echo saved; exit 0' USR1; echo up; while :; do sleep 0.05; done"
        self.muster("submit", "--name", "s", "-n", "1", "--time", "3s", "--signal", "B:USR1@2s", "--wait", "--", "sh", "-c", script)
        self.assertEqual(self.muster("logs", "job/s", "--index", "0").stdout, "up\nsaved\n")
        # Without a handler, and with a grace.
        manifest = self.muster("submit", "-n", "1", "--time", "1h", "--signal", "TERM", "--grace", "2m", "--dry-run", "-o", "json", "--",
                               "true").stdout
        self.assertEqual(json.loads(manifest)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], 120)
        for wrong, why in ((["--signal", "USR1@60"], "--signal needs --time"), (["--time", "1m", "--signal", "USR1@60"], "later than the start"),
                           (["--time", "1h", "--signal", "KILL"], "must be SIGNAL@TIME"), (["--grace", "x"], "must be a duration")):
            self.assertIn(why, self.muster("submit", "-n", "1", *wrong, "--", "true", code=2).stderr)

    def test_job_ends_at_its_maximum_of_failures(self):
        ran = self.muster("run", "-n", "50", "-j", "1", "--max-fails", "1", "--output", "none", "--", "sh", "-c",
                          "echo >> ran; [ $JOB_COMPLETION_INDEX = 1 ]", code=1)
        self.assertIn("MaxFailedIndexesExceeded", ran.stderr)
        self.assertEqual((self.dir / "ran").read_text().count("\n"), 3, "0 and 2 failed")

    def test_attempts_show_what_they_used(self):
        self.muster("submit", "--name", "u", "-n", "1", "--cpus", "0.5", "--mem", "400Mi", "--wait", "--", "python3", "-c",
                    "x = bytearray(100 << 20); i = 0\nwhile i < 3_000_000: i += 1")
        one, = json.loads(self.muster("get", "attempts", "job/u", "-o", "json").stdout)["items"]
        self.assertGreater(one["usage"]["userSeconds"], 0.01)
        self.assertTrue(100 << 20 < one["usage"]["peakMemoryBytes"] < 400 << 20, one)
        table = self.muster("get", "attempts", "job/u").stdout
        self.assertRegex(table, r" \d\.\d{3}s \(\d+%\) +1\d\dMi \((2|3)\d%\) +success")
        wide = self.muster("get", "attempts", "job/u", "-o", "wide").stdout
        self.assertRegex(wide, rf" MEMORY +WAITED +ENDED +USER +SYSTEM +COUNTED AS.*\n0 .*\d% ?\) +\d+\.\d{{3}}s +{re.escape(one['ended'])} +"
                               rf"{one['usage']['userSeconds']:.3f}s +{one['usage']['systemSeconds']:.3f}s +success")
        described = self.muster("describe", "job", "u").stdout
        self.assertRegex(described, r"\nCPU time: +\d\.\d{3}s \(\d+%\), user \d\.\d{3}s, system \d\.\d{3}s\nPeak memory: +1\d\dMi \((2|3)\d%\)\n")
        pod, = json.loads(self.muster("get", "pods", "-o", "json").stdout)["items"]
        self.assertEqual(int(pod["metadata"]["annotations"]["muster.dev/peak-memory-bytes"]), one["usage"]["peakMemoryBytes"])
        described = self.muster("describe", "pod", pod["metadata"]["name"]).stdout
        self.assertRegex(described, r"\nCPU time: +\d\.\d{3}s, user \d\.\d{3}s, system \d\.\d{3}s\nPeak memory: .*\nWaited: +\d+\.\d{3}s\nStarted: .*\nEnded: ")

    def test_attempts_as_tsv_have_the_joblog_format(self):
        (self.dir / "list").write_text("a b\nc\n")
        self.muster("submit", "--name", "j", "--each", "list", "--wait", "--", "sh", "-c", 'echo "$1"; [ "$1" != c ]',
                    "sh", "{}", code=1)
        rows = [line.split("\t") for line in self.muster("get", "attempts", "job/j", "-o", "tsv").stdout.splitlines()]
        self.assertEqual(rows[0], "Seq Host Starttime JobRuntime Send Receive Exitval Signal Command Index Attempt Counted Pod Usertime Systemtime "
                                  "Peakmemory Waittime Endtime".split())
        self.assertEqual(sorted((r[0], r[6], r[7], r[9], r[10], r[11]) for r in rows[1:]),
                         [("1", "0", "0", "0", "0", "success"), ("2", "1", "0", "1", "0", "failure")])
        self.assertEqual({r[8] for r in rows[1:] if r[0] == "1"}, {"""sh -c 'echo "$1"; [ "$1" != c ]' sh 'a b'"""})
        for row in rows[1:]:
            self.assertEqual(row[1], "n1")
            self.assertLess(abs(float(row[2]) - time.time()), 3600)
            self.assertGreaterEqual(float(row[3]), 0)
        failed = self.muster("get", "attempts", "job/j", "--failed", "--no-headers", "-o", "tsv").stdout
        self.assertEqual(len(failed.splitlines()), 1)
        self.muster("get", "jobs", "-o", "tsv", code=2)


if __name__ == "__main__":
    unittest.main()
