#!/usr/bin/python3
"""Runs the conformance scenarios against a built muster; all must hold.

A scenario that fails among the others is rerun once by itself before it counts as failed.

    MUSTER=build/release/muster tests/conformance/check.py [--only 'T07,B*']
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = "/usr/bin/python3"  # has Debian's python3-yaml


def run(only, extra):
    """The results by id, or None if the runner itself failed."""
    with tempfile.TemporaryDirectory(prefix="muster-conformance-") as folder:
        out = pathlib.Path(folder) / "results.json"
        done = subprocess.run([PYTHON, str(HERE / "run.py"), "--only", only, "--json", str(out), *extra], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not out.exists():
            print(done.stdout)
            return None
        return {r["id"]: r for r in json.loads(out.read_text())["results"]}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", default="*", metavar="IDS", help="ids or patterns, separated by commas")
    options = arguments.parse_args()
    os.environ.setdefault("MUSTER", str(ROOT / "build" / "release" / "muster"))
    results = run(options.only, [])
    if results is None:
        return 1
    held = {i for i, r in results.items() if r["holds"]}
    for i in sorted(set(results) - held):
        again = run(i, ["--jobs", "1"])
        if again and again[i]["holds"]:
            print(f"conformance: {i} held only when it ran alone; among the others: {results[i]['differences'][0]}")
            held.add(i)
    failed = sorted(set(results) - held)
    for i in failed:
        print(f"FAIL {i} {results[i]['title']}")
        for difference in results[i]["differences"]:
            print("     " + " ".join(difference.split()))
    print(f"conformance: {len(held)} of {len(results)} scenarios hold, {len(failed)} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
