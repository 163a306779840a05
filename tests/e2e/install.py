#!/usr/bin/env python3
"""`cmake --install` into a separate folder: executables that work from there, manual pages, completion scripts.

MUSTER names the executable in the build folder that is installed.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import cli

BUILD = pathlib.Path(cli.MUSTER).parent


class Install(unittest.TestCase):
    def test_installed_prefix_runs_and_has_completions_and_manual(self):
        with tempfile.TemporaryDirectory(prefix="muster-install-") as folder:
            prefix = pathlib.Path(folder) / "usr"
            if shutil.which("scdoc"):
                subprocess.run(["cmake", "--build", str(BUILD), "--target", "man"], check=True, capture_output=True)
            subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(prefix)], check=True, capture_output=True)
            env = {**os.environ, "HOME": folder, "TMPDIR": folder, "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
            r = subprocess.run(["muster", "run", "-n", "2", "--", "true"], env=env, capture_output=True, text=True, timeout=60)
            self.assertEqual(r.returncode, 0, r.stderr)
            for file, words in (("share/bash-completion/completions/muster", "complete -o default -F _muster muster"),
                                ("share/zsh/site-functions/_muster", "#compdef muster"),
                                ("share/fish/vendor_completions.d/muster.fish", "complete -c muster")):
                self.assertIn(words, (prefix / file).read_text())
            if not shutil.which("scdoc"):
                self.skipTest("manual pages: there is no scdoc")
            pages = sorted(p.name for p in (prefix / "share/man").glob("man*/*"))
            self.assertEqual(pages, sorted(p.stem for p in (cli.ROOT / "docs/man").glob("*.scd")))
            self.assertIn(".TH \"muster\" \"1\"", (prefix / "share/man/man1/muster.1").read_text())


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
