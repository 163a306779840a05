#!/usr/bin/python3
"""Runs what users of Jobs reported about Kubernetes (reports/cases.py) against a built muster; all must pass.

A case that fails among the others is rerun once by itself before it counts as failed.

    MUSTER=build/release/muster tests/conformance/reports.py [NUMBER|NAME]...
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(names):
    """What the cases printed, and the numbers of those that failed; None if the runner itself did."""
    with tempfile.TemporaryDirectory(prefix="muster-reports-") as folder:
        done = subprocess.run(["/usr/bin/python3", str(HERE / "reports" / "cases.py"), *names], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=dict(os.environ, BASE=folder))
    last = re.search(r"^\d+ cases, \d+ not passed: *(.*)$", done.stdout, re.M)
    return done.stdout, last and last.group(1).split()


def main():
    os.environ.setdefault("MUSTER", str(ROOT / "build" / "release" / "muster"))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    text, failed = run(sys.argv[1:])
    print(text)
    if failed is None:
        return 1
    for number in failed:
        again, still = run([number])
        print(again)
        if still != []:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
