#!/usr/bin/python3
"""The repository stands alone: every suite that `./dev test` runs can be loaded from a copy that has no neighbour.

MUSTER names the executable. The copy has the tracked files only.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSTER = os.environ.get("MUSTER") or str(ROOT / "build/release/muster")


class Alone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="muster-alone-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.copy = pathlib.Path(cls.folder.name) / "parent/muster"
        tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, text=True, capture_output=True, check=True)
        for file in filter(None, tracked.stdout.split("\0")):
            if (ROOT / file).is_file():
                (cls.copy / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / file, cls.copy / file)

    def run_here(self, *command, **more):
        env = {"PATH": os.environ["PATH"], "HOME": self.folder.name, "TMPDIR": self.folder.name, "MUSTER": MUSTER}
        return subprocess.run(command, cwd=self.copy, text=True, capture_output=True, timeout=120, env=env, **more)

    def test_each_suite_loads(self):
        suites = sorted(path.relative_to(self.copy) for path in (self.copy / "tests").glob("e2e/*.py"))
        self.assertGreater(len(suites), 30)
        for suite in suites:
            with self.subTest(str(suite)):
                load = f"import runpy, sys; sys.path.insert(0, {str(suite.parent)!r}); runpy.run_path({str(suite)!r}, run_name='suite')"
                done = self.run_here("/usr/bin/python3", "-c", load)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_conformance_check_runs_a_scenario_from_a_clean_copy(self):
        done = self.run_here("/usr/bin/python3", "tests/conformance/check.py", "--only", "V01")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("1 of 1 scenarios hold", done.stdout)

    def test_each_cited_section_of_job_semantics_exists(self):
        reference = (self.copy / "docs/reference/job-semantics.md").read_text()
        sections = set(re.findall(r"^#+ ([\d.]*\d)\b", reference, re.M))
        cited = {}
        for file in [*self.copy.glob("**/*.cpp"), *self.copy.glob("**/*.hpp")]:
            for number in re.findall(r"job-semantics (\d+(?:\.\d+)?)", file.read_text()):
                cited.setdefault(number, file.relative_to(self.copy))
        self.assertGreater(len(cited), 20)
        self.assertEqual({number: str(file) for number, file in cited.items() if number not in sections}, {})


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
