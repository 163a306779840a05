#!/usr/bin/python3
"""Runs the shared conformance scenarios against a built muster and holds the result against the list of known exceptions.

Fails when a scenario that is not in conformance-exceptions.txt does not hold, and when one that is there does: the list only
gets shorter. A scenario that failed among the others is run once more alone before it is called failed.

    MUSTER=build/release/muster tests/conformance.py [--only 'T07,B*'] [-v]
MUSTER_SHARED names the folder that holds conformance/ (else ../shared beside the checkout).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCEPTIONS = ROOT / "tests" / "conformance-exceptions.txt"
PYTHON = "/usr/bin/python3"  # the one that sees Debian's python3-yaml


def shared():
    return pathlib.Path(os.environ.get("MUSTER_SHARED") or ROOT.parent / "shared") / "conformance"


def exceptions():
    lines = (line.split("#")[0].strip() for line in EXCEPTIONS.read_text().splitlines())
    found = [line for line in lines if line]
    if len(set(found)) != len(found):
        raise SystemExit(f"{EXCEPTIONS}: an id is given twice")
    return set(found)


def run(runner, only, extra):
    """The results by id, or None when the runner itself could not run."""
    with tempfile.TemporaryDirectory(prefix="muster-conformance-") as folder:
        out = pathlib.Path(folder) / "results.json"
        done = subprocess.run([PYTHON, str(runner), "--only", only, "--json", str(out), *extra], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not out.exists():
            print(done.stdout)
            return None
        return {r["id"]: r for r in json.loads(out.read_text())["results"]}


def all_ids(runner):
    listed = subprocess.run([PYTHON, str(runner), "--list"], text=True, stdout=subprocess.PIPE, check=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line.strip()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--only", default="*", metavar="IDS", help="ids or patterns, separated by commas")
    arguments.add_argument("-v", "--verbose", action="store_true", help="also say why the listed ones do not hold")
    options = arguments.parse_args()
    runner = shared() / "run.py"
    if not runner.exists():
        print(f"conformance: skipped: there is no {runner} (MUSTER_SHARED names the folder that holds conformance/)")
        return 0
    os.environ.setdefault("MUSTER", str(ROOT / "build" / "release" / "muster"))
    listed = exceptions()
    if unknown := sorted(listed - all_ids(runner)):
        print(f"conformance: {EXCEPTIONS.name} lists {', '.join(unknown)}: there is no such scenario")
        return 1

    results = run(runner, options.only, [])
    if results is None:
        return 1
    held = {i for i, r in results.items() if r["holds"]}
    for i in sorted(set(results) - held - listed):
        again = run(runner, i, ["--jobs", "1"])
        if again and again[i]["holds"]:
            print(f"conformance: {i} held only when it ran alone; among the others: {results[i]['differences'][0]}")
            held.add(i)
    failed = sorted(set(results) - held - listed)
    passed = sorted(held & listed)
    for i in sorted(set(results) - held) if options.verbose else failed:
        mark = "listed" if i in listed else "FAIL"
        print(f"{mark} {i} {results[i]['title']}")
        for difference in results[i]["differences"]:
            print("     " + " ".join(difference.split()))
    for i in passed:
        print(f"FAIL {i} {results[i]['title']}: holds, but is listed in {EXCEPTIONS.name}: take it off the list")
    print(f"conformance: {len(held)} of {len(results)} scenarios hold, {len(listed & set(results))} listed as not yet covered, "
          f"{len(failed)} failed, {len(passed)} listed wrongly")
    return 1 if failed or passed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
