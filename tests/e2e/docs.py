#!/usr/bin/python3
"""Every manifest in docs/job.md ends as its first line says.

    MUSTER=build/release/muster tests/e2e/docs.py
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSTER = os.path.abspath(os.environ.get("MUSTER", ROOT / "build/release/muster"))


class Docs(unittest.TestCase):
    def test_each_example_of_a_job(self):
        examples = re.findall(r"^```yaml\n# (\w+)(?:: (\w+))?\n(.*?)^```", (ROOT / "docs/job.md").read_text(), re.M | re.S)
        self.assertGreater(len(examples), 7)
        for end, reason, text in examples:
            name = re.search(r"name: ([\w-]+)", text).group(1)
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                manifest = pathlib.Path(folder) / "job.yaml"
                manifest.write_text("apiVersion: batch/v1\nkind: Job\n" + text)
                done = subprocess.run([MUSTER, "run", "--timeout", "60s", "--data-dir", folder + "/data", str(manifest)],
                                      text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=90)
                self.assertEqual(done.returncode, 0 if end == "Complete" else 1, done.stdout + done.stderr)
                self.assertIn(f"job/{name} {end}", done.stdout)
                if end == "Failed":
                    self.assertIn(reason, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
