#!/usr/bin/env python3
"""Inputs of commands (`muster run --each`), `muster submit`, and resources as flags, on real daemons.

MUSTER names the executable. Waits poll with a deadline.
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from command import DEADLINE, MUSTER, CommandCase, free_port, poll  # noqa: E402

COUNT = "import sys; print(len(sys.argv) - 1, *sys.argv[1:], sep='|')"


class Case(CommandCase):
    def printed(self, r):
        """What the pods printed, without prefixes, ordered by index."""
        found = re.findall(r"^(\d+) \| (.*)$", r.stdout, re.M)
        return [text for _, text in sorted(found, key=lambda one: int(one[0]))]


class Each(Case):
    def test_a_line_is_one_argument_and_a_variable(self):
        words = ["plain", "two words", "$(id) `id` $HOME", "a'b\"c", "*", "-n", "$(MUSTER_NODE_NAME)", "d/e.tar.gz", "ü"]
        self.file("list", "\n".join(words) + "\n")
        script = COUNT + "; import os; print(os.environ['MUSTER_INPUT'])"
        r = self.muster("run", "--each", "list", "--", "python3", "-c", script, "{}", "x{/.}", "{#}")
        printed = self.printed(r)
        self.assertEqual(printed[1::2], words)
        self.assertEqual(printed[0::2], [f"3|{w}|x{re.sub(r'[.][^.]+$', '', w.split('/')[-1])}|{i + 1}" for i, w in enumerate(words)])
        self.assertIn(f"{len(words)}/{len(words)} succeeded", r.stderr)

    def test_each_reads_stdin_and_null_separated_input(self):
        r = self.muster("run", "-0", "--each", "-", "--", "python3", "-c", COUNT, "{}", stdin="a\tb\0c d\0")
        self.assertEqual(self.printed(r), ["1|a\tb", "1|c d"])
        r = self.muster("run", "--", "echo", "<{}>", stdin="a\nb\n")
        self.assertEqual(self.printed(r), ["<a>", "<b>"])

    def test_two_lists_give_all_combinations(self):
        self.file("a", "1\n2\n"), self.file("b", "x\ny\nz\n")
        r = self.muster("run", "--each", "a", "--each", "b", "--", "sh", "-c", 'echo "$MUSTER_INPUT_1-$MUSTER_INPUT_2 $1"', "sh", "{2}{1}")
        self.assertEqual(self.printed(r), ["1-x x1", "1-y y1", "1-z z1", "2-x x2", "2-y y2", "2-z z2"])

    def test_values_may_be_typed(self):
        r = self.muster("run", "python3", "-c", COUNT, ":::", "a b", "$HOME", "-n", "", "*")
        self.assertEqual(self.printed(r), ["1|a b", "1|$HOME", "1|-n", "1|", "1|*"])
        r = self.muster("run", "echo", "{2}{1}", ":::", "1", "2", ":::", "x", "y")
        self.assertEqual(self.printed(r), ["x1", "y1", "x2", "y2"])

    def test_csv_columns_are_placeholders(self):
        self.file("grid.csv", 'lr,note\r\n0.1,"a ""b"", c"\r\n0.2,\r\n')
        r = self.muster("run", "--each-csv", "grid.csv", "--", "python3", "-c", COUNT, "--lr={lr}", "{note}", "{2}")
        self.assertEqual(self.printed(r), ['3|--lr=0.1|a "b", c|a "b", c', "3|--lr=0.2||"])

    def test_failures_name_the_input(self):
        self.file("list", "good.csv\nbad.csv\n")
        r = self.muster("run", "--data-dir", "d", "--each", "list", "--", "sh", "-c", '[ "$1" != bad.csv ]', "sh", "{}", code=1)
        self.assertRegex(r.stderr, r"INDEX +INPUT +ATTEMPT")
        self.assertRegex(r.stderr, r"1 +bad.csv +0 ")

    def test_many_inputs_are_in_a_file_of_the_data_dir(self):
        lines = [f"data/sample-{i:06}.csv" for i in range(4000)]  # more than fit into a manifest
        self.file("list", "\n".join(lines))
        self.muster("run", "--data-dir", "d", "--slots", "4", "--output", "none", "--each", "list", "--", "sh", "-c",
                    'case $JOB_COMPLETION_INDEX in *999) echo "$1" >> out;; esac', "sh", "{}")
        self.assertEqual(sorted((self.dir / "out").read_text().split()), lines[999::1000])
        self.assertEqual(len(list((self.dir / "d").glob("inputs-*"))), 1)
        # A data-dir can be continued only with the same inputs.
        self.muster("run", "--data-dir", "d", "--slots", "4", "--output", "none", "--each", "list", "--", "sh", "-c",
                    'case $JOB_COMPLETION_INDEX in *999) echo "$1" >> out;; esac', "sh", "{}")
        self.file("list", "\n".join(lines[:-1] + ["other"]))
        r = self.muster("run", "--data-dir", "d", "--slots", "4", "--output", "none", "--each", "list", "--", "sh", "-c",
                        'case $JOB_COMPLETION_INDEX in *999) echo "$1" >> out;; esac', "sh", "{}", code=5)
        self.assertIn("this one differs (metadata.annotations.muster.dev/inputs-file)", r.stderr)

    def test_piped_input_is_used_or_refused(self):
        for words in (["-n", "2", "--", "cat"], ["--each", "list", "--", "echo", "{}"], ["job.yaml"]):
            self.file("list", "a\n")
            r = self.muster("run", *words, code=5, stdin="dropped\n")
            self.assertIn("the piped input would not be read", r.stderr)
        r = self.muster("run", "--", "cat", code=2, stdin="dropped\n")
        self.assertIn("a command needs -n or --each", r.stderr)
        self.muster("run", "-n", "2", "--", "true", stdin="")

    def test_the_script_of_a_shell_is_not_input(self):
        """A shell that reads its commands from stdin shares stdin with those commands."""
        script = f"{MUSTER} run -n 1 -- echo one {{}}\n{MUSTER} run -n 1 -- echo two\necho three\n"
        r = subprocess.run(["bash", "-s"], input=script, env=self.env, cwd=self.dir, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(r.stdout.splitlines(), ["one {}", "two", "three"], r.stderr)
        self.assertNotIn("piped", r.stderr)
        r = subprocess.run(["timeout", "60", MUSTER, "run", "--", "echo", "{}"], input="a\nb\n", env=self.env, cwd=self.dir, capture_output=True, text=True)
        self.assertIn("job/echo", r.stderr, "what another program passes on is")
        self.assertEqual({line[-1] for line in r.stdout.splitlines() if " | " in line}, {"a", "b"}, r.stderr)

    def test_late_piped_input_is_warned_of(self):
        p = subprocess.Popen([MUSTER, "run", "-n", "1", "--", "sh", "-c", "echo up; while [ ! -e go ]; do sleep 0.02; done"], env=self.env, cwd=self.dir,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.stdout.readline(), "up\n")
        p.stdin.write("late\n")
        p.stdin.flush()
        self.file("go", "")
        _, said = p.communicate(timeout=DEADLINE)
        self.assertEqual(p.returncode, 0, said)
        self.assertIn("warning: the piped input was not read", said)

    def test_a_dry_run_writes_no_inputs(self):
        self.file("list", "x" * 20 + "\n" + "\n".join(map(str, range(20000))))
        r = self.muster("run", "--dry-run", "--data-dir", "d", "--each", "list", "--", "echo", "{}")
        self.assertRegex(r.stdout, f"muster.dev/inputs-file: {self.dir}/d/inputs-")
        self.assertFalse((self.dir / "d").exists())

    def test_wrong_inputs_are_refused(self):
        self.file("list", "a\n"), self.file("none", "")
        for words, said in ((["--each", "none", "--", "x", "{}"], "none: is empty"),
                            (["--each", "missing", "--", "x", "{}"], "cannot read missing: No such file"),
                            (["--each", "list", "--", "x", "{2}"], "{2}: there is no such column"),
                            (["--each", "list", "--", "sh", "-c", "rm {}"], "{} in the script of sh would be read as code")):
            self.assertIn(said, self.muster("run", *words, code=5).stderr)


class Manifest(Case):
    JOB = """apiVersion: batch/v1
kind: Job
metadata:
  name: each
  annotations: {%s}
spec:
  completionMode: Indexed
  completions: 3
  parallelism: 3
  backoffLimitPerIndex: 0
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: main, command: [echo, '$(MUSTER_INPUT/.)', '$(MUSTER_INPUT_2)']}
"""

    def test_inputs_annotation_fills_placeholders(self):
        self.file("j.yaml", self.JOB % 'muster.dev/inputs: "d/a.x\\t1\\nb\\t2\\nc\\t"')
        # The extension of a/d.x<TAB>1 is everything after its last dot.
        self.assertEqual(self.printed(self.muster("run", "j.yaml")), ["a 1", "b\t2 2", "c\t "])

    def test_inputs_file_annotation_is_read_on_the_node(self):
        self.file("list", "d/a.x\t1\nb.y\t2\nc\t\n")
        self.file("j.yaml", self.JOB % f'muster.dev/inputs-file: "{self.dir}/list"')
        self.assertEqual(len(self.printed(self.muster("run", "j.yaml"))), 3)
        self.file("list", "a\nb\n")
        r = self.muster("run", "j.yaml", code=1)
        self.assertIn("no line for index 2; there are 2", r.stderr)

    def test_too_few_lines_are_refused(self):
        self.file("j.yaml", self.JOB % 'muster.dev/inputs: "a\\nb\\n"')
        self.assertIn("has 2 lines, fewer than spec.completions (3)", self.muster("run", "j.yaml", code=5).stderr)


class Submit(Case):
    def setUp(self):
        super().setUp()
        self.api, self.listen = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.env["MUSTER_API"] = self.api
        self.start("coordinator", "--data-dir", "c", "--api", self.api, "--listen", self.listen)
        self.start("agent", "--coordinator", self.listen, "--work-dir", "a", "--slots", "4", "--name", "n1", "--label", "disk=ssd",
                   "--resource", "nvidia.com/gpu=2")
        poll("the node is ready", lambda: "Ready" in subprocess.run(
            [MUSTER, "get", "nodes"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.env, cwd=self.dir).stdout)

    def test_array_runs_like_slurm(self):
        r = self.muster("submit", "--name", "steps", "--array", "3-9:2,20%2", "--wait", "--", "sh", "-c",
                        'echo "$1 $MUSTER_INPUT $SLURM_ARRAY_TASK_ID $JOB_COMPLETION_INDEX" >> out', "sh", "{}")
        self.assertTrue(r.stdout.startswith("job.batch/steps created\n"), r.stdout)
        self.assertEqual(sorted((self.dir / "out").read_text().splitlines()),
                         ["20 20 20 4", "3 3 3 0", "5 5 5 1", "7 7 7 2", "9 9 9 3"])
        job = json.loads(self.muster("get", "job", "steps", "-o", "json").stdout)
        self.assertEqual((job["spec"]["completions"], job["spec"]["parallelism"]), (5, 2))

    def test_inputs_are_shown_and_retried(self):
        self.file("list", "a\nbad\n")
        self.muster("submit", "--name", "two", "--each", "list", "--wait", "--", "sh", "-c", '[ "$1" = a ] || [ -e ok ]', "sh", "{}", code=1)
        self.assertRegex(self.muster("get", "attempts", "job/two", "--failed").stdout, r"INDEX +INPUT[^\n]*\n1 +bad ")
        self.assertEqual(json.loads(self.muster("get", "attempts", "job/two", "--index", "0", "-o", "json").stdout)["items"][0]["input"], "a")
        self.assertRegex(self.muster("describe", "job", "two").stdout, r"1 +bad +0 ")
        self.file("ok", "")
        self.muster("retry", "job/two", "--failed", "--wait")
        self.assertRegex(self.muster("get", "attempts", "job/two-r2").stdout, r"\n1 +bad .* success")

    def test_many_inputs_are_in_a_file_of_the_user(self):
        lines = [f"data/sample-{i:06}.csv" for i in range(4000)]
        self.file("list", "\n".join(lines))
        r = self.muster("submit", "--name", "many", "--each", "list", "--wait", "--", "sh", "-c",
                        'case $JOB_COMPLETION_INDEX in *999) echo "$1" >> out;; esac', "sh", "{}")
        self.assertIn(".local/state/muster/inputs/inputs-", r.stderr)
        self.assertEqual(sorted((self.dir / "out").read_text().split()), lines[999::1000])
        self.assertRegex(self.muster("get", "attempts", "job/many", "--index", "3999").stdout, r"3999 +data/sample-003999.csv ")

    def test_resource_flags_are_in_the_manifest(self):
        r = self.muster("submit", "-n", "1", "--cpus", "0.5", "--mem", "64Mi", "--gpus", "1", "--time", "1:00:00", "--priority", "7",
                        "--gang", "--node-selector", "disk=ssd", "--wait", "-o", "json", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES > out")
        job = json.loads(r.stdout[:r.stdout.rindex("}") + 1])
        pod = job["spec"]["template"]["spec"]
        self.assertEqual(pod["containers"][0]["resources"], {"requests": {"cpu": "500m", "memory": "64Mi", "nvidia.com/gpu": "1"},
                                                              "limits": {"memory": "64Mi", "nvidia.com/gpu": "1"}})
        self.assertEqual((pod["activeDeadlineSeconds"], pod["priority"], pod["nodeSelector"]), (3600, 7, {"disk": "ssd"}))
        self.assertEqual(job["metadata"]["annotations"]["muster.dev/gang"], "true")
        self.assertEqual((self.dir / "out").read_text(), "0\n")

    def test_a_task_sees_the_gpus_that_it_has_or_none(self):
        self.env.update(CUDA_VISIBLE_DEVICES="7", HIP_VISIBLE_DEVICES="7")
        show = ("sh", "-c", 'echo "$CUDA_VISIBLE_DEVICES,${NVIDIA_VISIBLE_DEVICES-},${HIP_VISIBLE_DEVICES-unset}" > out')
        for flags, seen in (((), "-1,void,unset"), (("--gpus", "1"), "0,0,unset"), (("--env", "CUDA_VISIBLE_DEVICES=5"), "5,void,unset"),
                            (("--export", "CUDA_VISIBLE_DEVICES,PATH"), "7,void,unset"), (("-a", "4"), "-1,void,unset")):
            with self.subTest(flags):
                self.muster("submit", "--wait", *(flags if "-a" in flags else ("-n", "1", *flags)), "--", *show)
                self.assertEqual((self.dir / "out").read_text(), f"{seen}\n")
        self.start("agent", "--coordinator", self.listen, "--work-dir", "b", "--slots", "1", "--name", "n2", "--label", "disk=none")
        self.muster("submit", "-n", "1", "--node-selector", "disk=none", "--wait", "--", "sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-unset} > out")
        self.assertEqual((self.dir / "out").read_text(), "unset\n", "the node declares none")
        del self.env["MUSTER_API"]
        self.assertEqual(self.muster("run", "-n", "1", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES").stdout, "7\n", "here, they are the same")

    def test_time_limit_ends_an_attempt(self):
        r = self.muster("run", "-n", "1", "--time", "1s", "--", "sleep", "60", code=143)
        self.assertIn("DeadlineExceeded", r.stderr)

    def test_dry_run_prints_what_would_be_sent(self):
        words = ["-n", "2", "-j", "1", "--name", "dry", "--export", "NONE", "--cpus", "1", "--", "echo", "{}", "$HOME"]
        for verb in ("submit", "run"):
            r = self.muster(verb, "--dry-run", "-o", "yaml", *words)
            self.file("j.yaml", r.stdout)
            self.assertIn("kind: Job", r.stdout)
            self.assertIn("$$HOME", r.stdout)
        self.muster("get", "job", "dry", code=3)
        self.muster("submit", "j.yaml", "--wait")
        self.assertEqual(self.muster("logs", "job/dry", "--index", "0").stdout, "{} $HOME\n")

    def test_it_needs_a_coordinator(self):
        self.env["MUSTER_API"] = f"127.0.0.1:{free_port()}"
        self.assertIn("cannot", self.muster("submit", "-n", "1", "--", "true", code=4).stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
