#!/usr/bin/env python3
"""Progress as users see it: one line redrawn on a terminal, plain lines elsewhere, and the message on Ctrl-C.

MUSTER names the executable. Waits poll with a deadline.
"""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import unittest

import cli

CLEAR = "\r\x1b[K"


class Terminal:
    """muster on a pseudo-terminal, and everything it has written to it."""

    def __init__(self, case, *words, **env):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 200, 0, 0))  # wide, so that nothing is cut
        self.process = subprocess.Popen([cli.MUSTER, *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=case.dir,
                                        env={**case.env, "TERM": "xterm", **env})
        os.close(theirs)
        self.text = ""
        self.reader = threading.Thread(target=self.read, args=(ours,), daemon=True)
        self.reader.start()
        case.addCleanup(self.stop)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def read(self, fd):
        try:
            while part := os.read(fd, 4096):
                self.text += part.decode(errors="replace")
        except OSError:  # all writers have closed the terminal
            pass
        os.close(fd)

    def end(self):
        code = self.process.wait(cli.DEADLINE)
        self.reader.join(cli.DEADLINE)
        return code


class OnATerminal(cli.Cluster):
    def setUp(self):
        super().setUp()
        script = '[ $JOB_COMPLETION_INDEX != 1 ] || exit 3; until [ -e go ]; do sleep 0.02; done'
        text = cli.manifest("seen", script, 4, 4).replace("- name: main", f"- name: main\n        workingDir: {self.dir}")
        self.file("j.yaml", text)

    def test_progress_line_is_rewritten_in_place(self):
        t = Terminal(self, "run", "j.yaml", NO_COLOR="1")
        cli.poll("the failed index is named", lambda: re.search(r"\[#{5}-{15}\] 0/4  running 3  failed pods 1  failed indexes 1 \(1\)", t.text))
        cli.poll("the failure is printed", lambda: "index 1 failed" in t.text)
        self.file("go", "")
        self.assertEqual(t.end(), 1)
        drawn = t.text.split(CLEAR)
        self.assertGreater(len(drawn), 2)
        failures = [line for line in drawn if line.startswith("muster: index 1 failed: exit 3 ")]
        self.assertEqual(len(failures), 1, "the failure is told above the line, once")
        drawn.remove(failures[0])
        self.assertTrue(all("\n" not in line for line in drawn[1:-1]), "a drawn line never scrolls")
        self.assertTrue(drawn[-1].startswith("job/seen Failed"), drawn[-1])
        self.assertNotIn("\x1b[3", t.text, "no colours with NO_COLOR")

    def test_failures_are_red(self):
        t = Terminal(self, "run", "j.yaml")
        cli.poll("the failed index is red", lambda: "\x1b[31mfailed indexes 1 (1)" in t.text)
        self.file("go", "")
        self.assertEqual(t.end(), 1)
        self.assertIn("job/seen \x1b[31mFailed\x1b[0m", t.text)

    def test_a_dumb_terminal_gets_plain_lines(self):
        t = Terminal(self, "run", "j.yaml", TERM="dumb")
        cli.poll("it runs", lambda: "running" in t.text)
        self.file("go", "")
        self.assertEqual(t.end(), 1)
        self.assertNotIn("\x1b", t.text)

    def test_who_reads_from_the_terminal_says_so(self):
        for words in (["--each", "-", "--", "echo", "got", "{}"], ["--commands", "-"]):
            ours, theirs = pty.openpty()
            p = subprocess.Popen([cli.MUSTER, "run", *words], env=self.env, cwd=self.dir, stdin=theirs, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            os.close(theirs)
            self.addCleanup(p.communicate)
            self.addCleanup(p.kill)
            self.assertIn("reading from the terminal; Ctrl-D", p.stderr.readline())
            os.write(ours, b"echo x\n\x04")
            self.assertIn("x", p.communicate(timeout=cli.DEADLINE)[0])
            os.close(ours)

    def test_output_without_terminal_has_a_line_per_change(self):
        p = subprocess.Popen([cli.MUSTER, "run", "j.yaml"], env=self.env, cwd=self.dir, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.wait)
        cli.poll("three run", lambda: self.muster("get", "jobs", "-o", "name").stdout and self.status("seen").get("failed") == 1)
        self.file("go", "")
        out, err = p.communicate(timeout=cli.DEADLINE)
        lines = [re.sub(r"  (eta )?[\d:]+$|  [\d.]+/s", "", x) for x in err.splitlines() if "  running " in x]
        self.assertTrue(lines)
        self.assertTrue(all(a != b for a, b in zip(lines, lines[1:])), lines)
        self.assertNotIn("\x1b", out + err)
        self.assertNotIn("\r", out + err)

    def test_interrupted_run_and_wait_say_how_to_come_back(self):
        t = Terminal(self, "run", "j.yaml", NO_COLOR="1")
        cli.poll("three run", lambda: "running 3" in t.text)
        t.process.send_signal(signal.SIGINT)
        self.assertEqual(t.end(), 130)
        self.assertIn("detached: job/seen keeps running on", t.text)
        for verb in ("wait", "logs -f", "cancel", "delete"):
            self.assertIn(f"muster {verb} job/seen", t.text)
        w = Terminal(self, "wait", "job/seen", NO_COLOR="1")
        cli.poll("the line is there", lambda: "running 3" in w.text)
        w.process.send_signal(signal.SIGINT)
        self.assertEqual(w.end(), 130)
        self.assertIn("the job was not stopped", w.text)
        again = Terminal(self, "wait", "job/seen", NO_COLOR="1")
        self.file("go", "")
        self.assertEqual(again.end(), 1)
        for part in ("Failed: FailedIndexes", "exit 3", "muster logs job/seen --index 1 --attempt 0"):
            self.assertIn(part, again.text)

    def test_drain_says_what_it_waits_for(self):
        self.muster("create", "-f", "j.yaml")
        cli.poll("three run", lambda: self.status("seen").get("ready") == 3)
        t = Terminal(self, "drain", "n1", NO_COLOR="1")
        cli.poll("it waits", lambda: re.search(r"\[-{20}\] waiting for 3 pods: seen-0-\w{5}, seen-2-\w{5}, seen-3-\w{5}", t.text))
        t.process.send_signal(signal.SIGINT)
        self.assertEqual(t.end(), 130)
        self.assertIn("muster uncordon n1", t.text)
        plain = self.start("drain", "n1")
        self.assertIn("cordoned", plain.stdout.readline())
        self.assertRegex(plain.stdout.readline(), r"^waiting for 3 pods: ")
        self.file("go", "")
        self.assertEqual(plain.wait(cli.DEADLINE), 0)
        self.assertIn("drained", plain.stdout.read())


class Several(cli.Cluster):
    def test_the_worst_of_several_jobs_is_the_exit_code(self):
        self.muster("create", "-f", "-", stdin=cli.manifest("good", "true", 1, 1) + "---\n" + cli.manifest("bad", "exit 9", 1, 1))
        r = self.muster("wait", "job/good", "job/bad", "--timeout", "30s", code=1)
        self.assertIn("job.batch/good Complete\n", r.stdout)
        self.assertIn("job.batch/bad Failed: FailedIndexes", r.stderr)
        self.assertIn("exit 9", r.stderr)
        r = self.muster("wait", "job/good", "job/nope", code=3)
        self.assertIn("job.batch/good Complete\n", r.stdout)


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
