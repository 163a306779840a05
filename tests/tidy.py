#!/usr/bin/env python3
"""tidy.py BUILD_DIR: runs clang-tidy, with the checks of .clang-tidy, over the batches that BUILD_DIR compiles, except tests.

Prints what it finds and exits with 1. A batch is checked again only if the checks, its command or a file that it includes have changed:
BUILD_DIR/tidy/ records which batches passed.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(*command, cwd):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def commands(build):
    """The compile command of each batch, by its object."""
    database = json.loads(run("ninja", "-t", "compdb", cwd=build).stdout)
    found = {}
    for entry in database:
        if "/batches/" in entry["file"] and " -c " in entry["command"] and "_test.dir/" not in entry["output"]:
            # Remove the compiler cache prefix and a flag that only GCC knows; KJ's macros are statement expressions.
            entry["command"] = entry["command"].split("ccache ")[-1].replace("-Wno-maybe-uninitialized", "-Wno-gnu-statement-expression")
            found[entry["output"]] = entry
    return found


def includes(build):
    """The files that each object depends on, according to ninja."""
    found, current = {}, None
    for line in run("ninja", "-t", "deps", cwd=build).stdout.splitlines():
        if line.startswith("    "):
            found[current].append(line.strip())
        elif ":" in line:
            current = line.split(":")[0]
            found[current] = []
    return found


def key(build, entry, files):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + entry["command"].encode())
    for name in sorted(files):
        path = (build / name).resolve()
        if ROOT in path.parents and path.exists():
            digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()


def check(database, entry):
    done = run("clang-tidy", "-p", database, "--quiet", entry["file"], cwd=ROOT)
    return done.returncode == 0, done.stdout


def main():
    build = (ROOT / sys.argv[1]).resolve()
    notes = build / "tidy"
    notes.mkdir(exist_ok=True)
    entries, files = commands(build), includes(build)
    (notes / "compile_commands.json").write_text(json.dumps(list(entries.values())))
    todo = {}
    for output, entry in entries.items():
        if output not in files:
            sys.exit(f"tidy: {output} is not built: build {sys.argv[1]} first")
        stamp = notes / (key(build, entry, files[output]) + ".ok")
        if not stamp.exists():
            todo[stamp] = entry
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for stamp, (well, text) in zip(todo, pool.map(lambda e: check(notes, e), todo.values())):
            if well:
                stamp.touch()
            else:
                failed = True
                print(text)
    return failed


if __name__ == "__main__":
    sys.exit(main())
