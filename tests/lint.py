#!/usr/bin/env python3
"""Checks what a compiler does not: include directions, include cycles, opening comments, paths named in documents, the table of fields
in docs/job.md. Prints each violation as FILE:LINE and exits with 1.

The directions are those of CONTRIBUTING.md: a folder may include what its row names, and itself.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

BASE = {"base"}
ARROWS = {  # a folder, or a file that may include more than its folder
    "base": set(),
    "core": BASE,
    "text": BASE,
    "keeper": BASE | {"core/node", "core/pod_name.hpp", "core/ids.hpp", "permit"},
    "tls": BASE,
    "munge": BASE,
    "permit": BASE | {"core/node", "core/spec"},
    "schema": BASE | {"core"},
    "storage": BASE | {"core", "schema"},
    "actors": BASE | {"core", "storage"},
    "api": BASE | {"core", "text"},
    "agent": BASE | {"core/node", "core/spec/inputs.hpp", "core/spec/mpi.hpp", "core/ids.hpp", "core/pod_name.hpp", "schema", "tls", "keeper/protocol.hpp"},
    "coordinator": BASE | {"core", "permit", "tls", "munge", "storage", "actors", "api", "schema", "text/json.hpp"},
    # A client of the API, and the mains of the daemons.
    "cli": BASE | {"core/spec", "core/job/decide.hpp", "core/job/text.hpp", "core/ids.hpp", "core/index_set.hpp", "core/pod_name.hpp", "core/trust.hpp", "core/cluster/prefetch.hpp", "text",
                   "agent/agent.hpp", "agent/environment.hpp", "agent/rsh.hpp", "agent/pmi.hpp", "coordinator/coordinator.hpp", "coordinator/journal_lines.hpp", "coordinator/offline.hpp", "schema", "tls", "munge",
                   "keeper/protocol.hpp"},
}
# The rooms of a folder, bottom up: a room may include those before it. Files outside all rooms are above them all.
ROOMS = {"api": ["http", "access", "kube", "view", "request", "routes"], "cli": ["output", "settings", "client", "drill", "verbs", "line"]}
# Within core, these do not include each other...
CORE_APART = {"job", "cluster", "node"}
# ...except for a plain value carried by a batch of records.
CORE_VALUES = {"core/cluster/node_info.hpp"}
# What core may not include, and libraries that only some folders include.
THIRD_PARTY = re.compile(r"^(caf|capnp|kj|rocksdb|spdlog|fmt|nlohmann|yaml-cpp|CLI)/")
ONLY_IN = {"caf": {"actors", "coordinator"}, "rocksdb": {"storage"}, "CLI": {"cli"}, "yaml-cpp": {"text"},
           "spdlog": {"base"}, "kj": {"api", "agent", "coordinator", "cli", "storage", "tls"},
           "capnp": {"agent", "coordinator", "schema", "storage"}, "nlohmann": {"text", "api", "cli"}}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def allowed(folder, target):
    parts = target.split("/")
    return parts[0] == folder or any("/".join(parts[:n]) in ARROWS[folder] for n in range(1, len(parts) + 1))


def check_include(folder, sub, target, ours):
    if ours or target.startswith("schema/"):
        if "/" in target and not allowed(folder, target):
            return f"{folder} may not include {target}"
        other = target.split("/")[1] if target.startswith("core/") else None
        if folder == "core" and sub is None and target.count("/") > 1:
            return f"what is in core itself may not include {target}"
        if folder == "core" and sub in CORE_APART and other in CORE_APART - {sub} and target not in CORE_VALUES:
            return f"core/{sub} may not include core/{other}"
        rooms = ROOMS.get(folder, [])
        if target.startswith(folder + "/") and sub in rooms and target.split("/")[1] not in rooms[: rooms.index(sub) + 1]:
            return f"{folder}/{sub} may not include {target}"
        return None
    if match := THIRD_PARTY.match(target):
        library = match.group(1)
        if folder not in ONLY_IN.get(library, set(ARROWS)):
            return f"{folder} may not include {library}"
    return None


def check(path):
    relative = path.relative_to(ROOT)
    folder = relative.parts[0]
    sub = relative.parts[1] if len(relative.parts) > 2 else None
    lines = path.read_text(errors="replace").splitlines()
    if path.suffix == ".hpp" and not (lines and lines[0].startswith("//")):
        yield f"{relative}:1: a header opens with what it is"
    if path.suffix == ".hpp" and "#pragma once" not in lines:
        yield f"{relative}:1: no #pragma once"
    for number, line in enumerate(lines, 1):
        if match := INCLUDE.match(line):
            ours = match.group(1) is not None
            if wrong := check_include(folder, sub, match.group(1) or match.group(2), ours):
                yield f"{relative}:{number}: {wrong}"
        if "TODO(now)" in line:
            yield f"{relative}:{number}: TODO(now) does not land"


def check_circles():
    """A header and its source are one unit; no unit may include itself through others."""
    units = {}
    for folder in ARROWS:
        for path in (ROOT / folder).rglob("*.?pp"):
            unit = str(path.relative_to(ROOT).with_suffix(""))
            named = (INCLUDE.match(line) for line in path.read_text(errors="replace").splitlines())
            units.setdefault(unit, set()).update(m.group(1)[:-4] for m in named if m and m.group(1) and m.group(1) != unit + ".hpp")
    done = set()

    def walk(unit, way):
        if unit in way:
            yield f"{unit}.hpp:1: a circle of includes: {' -> '.join([*way[way.index(unit):], unit])}"
        elif unit not in done:
            for other in sorted(units.get(unit, ())):
                yield from walk(other, [*way, unit])
            done.add(unit)

    for unit in sorted(units):
        yield from walk(unit, [])


# Paths of the repository in documents: `core/job/decide.hpp`, `actors/gate`, `tests/e2e/*.py`, `storage/codec.{hpp,cpp}`.
FOLDERS = sorted(p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith(".") and p.name != "build")
PATH = re.compile(r"(?<![\w./-])((?:" + "|".join(FOLDERS) + r")/[\w./*{},-]*[\w*}])")


def check_document(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for code in re.findall(r"`([^`]+)`|\]\(([^)#]+)", line):
            for named in PATH.findall(code[0] or code[1]):
                glob = re.sub(r"\{[^}]*\}|[A-Z]{2,}", "*", named.rstrip("."))  # NAME is a wildcard
                if not any(ROOT.glob(glob)) and not any(ROOT.glob(glob + ".*")):
                    yield f"{path.relative_to(ROOT)}:{number}: there is no {named}"


def check_fields():
    """docs/job.md lists the fields of api/openapi."""
    tables = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "api/openapi").glob("*.yaml"))]
    done = subprocess.run([sys.executable, "api/openapi/make_tables.py", "--check", "docs/job.md", *tables], cwd=ROOT, text=True,
                          stderr=subprocess.PIPE)
    return done.stderr.splitlines() if done.returncode else []


def main():
    wrong = [w for folder in ARROWS for path in sorted((ROOT / folder).rglob("*.?pp")) for w in check(path)]
    wrong += check_circles()
    documents = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    wrong += [w for path in documents for w in check_document(path)]
    wrong += check_fields()
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
