#!/usr/bin/env python3
"""Checks what a compiler does not: include directions, include cycles, names that would collide in a batch, crowded folders, opening comments,
paths named in documents, and the table of fields in docs/job.md; and the subjects of new commits. Prints each violation as FILE:LINE and
exits with 1.

The directions are LAYERS and ROOMS below. With --write, writes the table of layers into CONTRIBUTING.md.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What the files of a folder may include besides each other, and the libraries that they use. The longest name that fits a file applies, and
# a name stands for what no longer one takes out of it: `base` is not `base/text`.
CORE_VALUES_OF_PODS = ("core/ids.hpp", "core/pod_name.hpp", "core/spec/fields/process_settings.hpp",
                       "core/spec/values/rlimits.hpp", "core/usage.hpp")
LAYERS = {
    "base": ((), "spdlog"),
    "base/text": (("base",), "nlohmann-json, yaml-cpp"),
    "core": (("base",), ""),
    "schema": (("core",), "Cap'n Proto"),
    "trust/tls": (("base",), "KJ, OpenSSL"),
    "trust/munge": (("base",), "libmunge, loaded when it is used"),
    "trust/permit": (("base", "core/node", "core/spec"), "OpenSSL"),
    "storage": (("base", "core", "schema"), "RocksDB, Cap'n Proto, KJ"),
    "trust/store": (("base", "core", "storage", "trust/tls", "trust/munge"), "OpenSSL"),
    "actors": (("base", "core", "storage"), "CAF"),
    "api": (("base", "base/text", "core"), "KJ, nlohmann-json, prometheus-cpp, cctz"),
    "coordinator": (("base", "base/text/json.hpp", "core", "schema", "storage", "actors", "api", "trust"), "CAF, KJ, Cap'n Proto"),
    "standby": (("base", "base/text", "core", "schema", "storage", "trust", "api/http", "api/kube/objects/status_object.hpp",
                 "coordinator"), "KJ, Cap'n Proto, nlohmann-json"),
    "keeper": (("base", "core/node", *CORE_VALUES_OF_PODS, "trust/permit"), "libpam, and OpenSSL through permits; nothing else"),
    "agent": (("base", "core/node", *CORE_VALUES_OF_PODS, "core/spec/values/inputs.hpp", "core/spec/fields/mpi.hpp", "schema", "trust/tls",
               "keeper/protocol.hpp"), "KJ, Cap'n Proto, OpenSSL"),
    "client": (("base", "base/text", "core/spec", "core/pod_name.hpp", "core/index_set.hpp", "core/trust.hpp", "trust/tls", "trust/munge"),
               "KJ"),
    "drill": (("base", "base/text", "client", "core/spec", "core/ids.hpp", "core/index_set.hpp", "core/job/fold/text.hpp",
               "core/job/rules/decide.hpp", "trust/tls"), ""),
    # The verbs, and the daemons' main functions.
    "cli": (("base", "base/text", "client", "drill", "standby", "core/spec", "core/index_set.hpp", "core/trust.hpp", "core/node/cpus.hpp",
             "core/cluster/slots/prefetch.hpp", "core/cluster/nodes/claims.hpp", "schema", "trust/tls", "trust/munge", "agent/agent.hpp", "agent/disk.hpp",
             "agent/run/environment.hpp", "agent/pod_programs/rsh.hpp", "agent/pod_programs/pmi.hpp", "coordinator/coordinator.hpp",
             "coordinator/journal_lines.hpp", "coordinator/offline.hpp", "keeper/kernel/cgroup_home.hpp", "keeper/protocol.hpp", "cli/grammar/app.hpp"), ""),
    "cli/grammar": (("base/text", "client", "cli"), "CLI11"),
}
TOPS = sorted({name.split("/")[0] for name in LAYERS})
# The rooms of a folder, bottom up: a room (or a file) may include itself and those before it. Files in none of them are above all rooms.
ROOMS = {
    "core/cluster": ["nodes", "slots", "fold", "rules"],
    "core/job": ["facts", "fold", "rules", "shown"],
    "core/spec": ["values", "fields", "rules"],
    "storage": ["codec", "journal", "rows"],
    "trust": ["tls", "munge", "permit", "store"],
    "coordinator": ["threads", "links", "desks", "rpc"],
    "standby": ["store"],
    "agent": ["files", "link", "pod_programs", "run"],
    "keeper": ["protocol.hpp", "kernel", "files", "users", "start", "loop"],
    "api": ["http", "access", "kube", "view", "request", "routes"],
    "api/kube": ["schema", "patch", "objects"],
    "api/view": ["model", "query", "render"],
    "api/routes": ["kept", "jobs", "pods", "access"],
    "client": ["terminal", "settings", "connect", "documents", "inputs", "news", "follow"],
    "drill": ["drill_options.hpp", "process", "proof"],
    "cli": ["doctor", "verbs", "grammar"],
    "cli/verbs": ["verb.hpp", "words.hpp", "when.hpp", "near_miss.hpp", "reservations.hpp", "jobs", "run", "show", "state", "daemons", "setup", "allocate"],
}
CROWD = 15  # concepts on one level of a folder, at most: a header and its source are one
# Within core, what each of these may include of the others...
CORE_APART = {"job": (), "queue": (), "cluster": ("queue",), "cron": (), "node": (), "registry": ("job",),
              "history": ("job", "cluster", "queue")}
# ...besides a plain value carried by a batch of records.
CORE_VALUES = {"core/cluster/nodes/node_info.hpp"}
# Libraries, by the first folder of their headers: only those whose row names them may include them.
LIBRARIES = {"caf": "CAF", "capnp": "Cap'n Proto", "kj": "KJ", "rocksdb": "RocksDB", "spdlog": "spdlog", "fmt": "spdlog",
             "nlohmann": "nlohmann-json", "yaml-cpp": "yaml-cpp", "CLI": "CLI11", "openssl": "OpenSSL", "cctz": "cctz"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def layer_of(path):
    """The name in LAYERS for a file or folder; empty: none."""
    parts = path.split("/")
    return next((name for n in range(len(parts), 0, -1) if (name := "/".join(parts[:n])) in LAYERS), "")


def covers(named, target):
    return (target + "/").startswith(named + "/") and layer_of(named) in ("", layer_of(target))


def allowed(layer, target):
    return layer_of(target) == layer or any(covers(named, target) for named in LAYERS[layer][0])


def room_below(file, target):
    """An error if a file includes one in a higher room of its folder."""
    for folder, rooms in ROOMS.items():
        if file.startswith(folder + "/") and target.startswith(folder + "/"):
            mine, other = file[len(folder) + 1:].split("/")[0], target[len(folder) + 1:].split("/")[0]
            if mine in rooms and other not in rooms[: rooms.index(mine) + 1]:
                return f"{folder}/{mine} may not include {target}"
    return None


def check_include(file, target, ours):
    layer = layer_of(file)
    folder, *rest = file.split("/")
    sub = rest[0] if len(rest) > 1 else None
    if ours or target.startswith("schema/"):
        if "/" in target and not allowed(layer, target):
            return f"{layer} may not include {target}"
        other = target.split("/")[1] if target.startswith("core/") else None
        if folder == "core" and sub is None and target.count("/") > 1:
            return f"what is in core itself may not include {target}"
        if folder == "core" and sub in CORE_APART and other in CORE_APART and other not in (sub, *CORE_APART[sub]) and target not in CORE_VALUES:
            return f"core/{sub} may not include core/{other}"
        return room_below(file, target)
    if (library := LIBRARIES.get(target.split("/")[0])) and "/" in target and library not in LAYERS[layer][1]:
        return f"{layer} may not include {library}"
    return None


def check(path):
    relative = path.relative_to(ROOT)
    lines = path.read_text(errors="replace").splitlines()
    if path.suffix == ".hpp" and not (lines and lines[0].startswith("//")):
        yield f"{relative}:1: a header opens with what it is"
    if path.suffix == ".hpp" and "#pragma once" not in lines:
        yield f"{relative}:1: no #pragma once"
    for number, line in enumerate(lines, 1):
        if match := INCLUDE.match(line):
            ours = match.group(1) is not None
            if wrong := check_include(str(relative), match.group(1) or match.group(2), ours):
                yield f"{relative}:{number}: {wrong}"
        if "TODO(now)" in line:
            yield f"{relative}:{number}: TODO(now) does not land"


def check_crowds():
    for folder in sorted({path.parent for top in TOPS for path in (ROOT / top).rglob("*.?pp")}):
        if len(concepts := {path.stem for path in folder.glob("*.?pp")}) > CROWD:
            yield f"{folder.relative_to(ROOT)}: {len(concepts)} concepts on one level: give some of them a room"


def check_circles():
    """A header and its source are one unit; no unit may include itself through others."""
    units = {}
    for folder in TOPS:
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


# Repository paths in documents: `core/job/rules/decide.hpp`, `actors/gate`, `tests/e2e/*.py`, `storage/codec/codec.{hpp,cpp}`.
FOLDERS = sorted(p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith(".") and p.name != "build")
PATH = re.compile(r"(?<![\w./-])((?:" + "|".join(FOLDERS) + r")/[\w./*{},-]*[\w*}])")


PROSE_WIDTH = 120
NOT_PROSE = re.compile(r"\s*(\||!\[|    |<)|\s*`[^`]*`$")  # tables, pictures, code, HTML


def check_document(path):
    code = made = False  # within a block of code; within a table that make_tables.py or --write writes
    for number, line in enumerate(path.read_text().splitlines(), 1):
        made = (made or line in ("<!-- fields -->", "<!-- layers -->")) and not line.startswith("<!-- end of the ")
        code ^= line.lstrip().startswith("```")
        if len(line) > PROSE_WIDTH and not (code or made or NOT_PROSE.match(line)):
            yield f"{path.relative_to(ROOT)}:{number}: prose wraps at {PROSE_WIDTH} columns, and this line has {len(line)}"
        for span in re.findall(r"`([^`]+)`|\]\(([^)#]+)", line):
            for named in PATH.findall(span[0] or span[1]):
                glob = re.sub(r"\{[^}]*\}|[A-Z]{2,}", "*", named.rstrip("."))  # NAME is a wildcard
                if not any(ROOT.glob(glob)) and not any(ROOT.glob(glob + ".*")):
                    yield f"{path.relative_to(ROOT)}:{number}: there is no {named}"


def check_fields():
    """Checks that docs/job.md lists the fields in api/openapi."""
    tables = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "api/openapi").glob("*.yaml"))]
    done = subprocess.run([sys.executable, "api/openapi/make_tables.py", "--check", "docs/job.md", *tables], cwd=ROOT, text=True,
                          stderr=subprocess.PIPE)
    return done.stderr.splitlines() if done.returncode else []


FUNCTION_LINES = 80  # of a function, at most
NO_FUNCTION = re.compile(r"\s*(namespace|struct|class|enum|union|if|for|while|switch|else|do)\b")
LABEL = re.compile(r"\s*(public|private|protected|default|case .*):")


def check_lengths(path):
    """Functions of more than FUNCTION_LINES lines. Relies on clang-format: one ends at the indentation at which it begins."""
    lines = path.read_text(errors="replace").splitlines()
    for end, line in enumerate(lines):
        if not (closing := re.fullmatch(r"( {0,4})\}", line)):
            continue
        indent = closing[1]
        begin = next((n for n in range(end - 1, -1, -1) if lines[n].startswith(indent) and lines[n][len(indent):len(indent) + 1] not in
                      ("", " ", "}", "/", "#") and not LABEL.match(lines[n])), end)
        if end - begin + 1 > FUNCTION_LINES and "(" in "".join(lines[begin:begin + 6]) and not NO_FUNCTION.match(lines[begin]):
            yield f"{path.relative_to(ROOT)}:{begin + 1}: a function of {end - begin + 1} lines; at most {FUNCTION_LINES}"


# Folders whose sources are one library or test each, which the build compiles in batches of several files.
BATCHED = sorted({f"trust/{room}" for room in ROOMS["trust"]} | (set(TOPS) - {"trust"}))
PRIVATE = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.S | re.M)
DEFINED = [re.compile(r"(?:struct|class|enum class) (\w+)"), re.compile(r"using (\w+) ="), re.compile(r"(?!TEST)[\w:<>,*&\s]+?\b(\w+)\(([^()]*)\)"),
           re.compile(r"(?:constexpr|const|static)[\w:<>,*&\s]*?\b(\w+)(?:\[\])? ?[={]")]


def check_batches():
    """Names that the anonymous namespaces of two sources of a library define: they would collide in a batch. Functions may be overloaded."""
    for folder in [*BATCHED, *(f"tests/unit/{one}" for one in BATCHED if one != "core")]:
        first = {}
        for path in sorted((ROOT / folder).rglob("*.cpp")):
            text = path.read_text()
            space = (re.findall(r"^namespace ([\w:]+) \{", text, re.M) or [""])[0]
            for line in {line for part in PRIVATE.findall(text) for line in part.splitlines() if line[:1] not in ("", " ", "/", "}", "#")}:
                if matched := next(filter(None, (one.match(line) for one in DEFINED)), None):
                    types = re.sub(r"\s*\b\w+\s*(?=,|$)", "", matched[2]) if matched.re.groups > 1 else None
                    other = first.setdefault((space, matched[1], types), path)
                    if other != path:
                        yield f"{path.relative_to(ROOT)}: {matched[1]} is also in {other.relative_to(ROOT)}, which may be compiled with it"


FUNCTION = re.compile(r"^(?!.*\b(?:override|virtual|using|return)\b)[\w:<>,&*\s.\[\]]*?[\s&*>]([a-z_]\w*)\(", re.M)


def check_unreferenced():
    """Functions that a header declares and nobody calls. Names are compared, so one that is used anywhere hides another of the same name."""
    text, count = {}, {}
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.cpp", "*.hpp"], cwd=ROOT, text=True, capture_output=True)
    for file in filter(lambda name: (ROOT / name).is_file(), tracked.stdout.split()):
        text[file] = re.sub(r'//.*|"(?:\\.|[^"\\\n])*"', "", (ROOT / file).read_text())
        for word in re.findall(r"\w+", text[file]):
            count[word] = count.get(word, 0) + 1
    for file in sorted(name for name in text if name.endswith(".hpp") and name.split("/")[0] in TOPS):
        for match in FUNCTION.finditer(text[file]):
            defined = re.search(rf"\b{match[1]}\(", text.get(file[:-4] + ".cpp", ""))
            if count[match[1]] == (2 if defined else 1):
                yield f"{file}:{text[file][:match.start(1)].count(chr(10)) + 1}: nothing calls {match[1]}"


# The last commit whose message was not checked.
MESSAGES_SINCE = "5a99452527e8eb5b4f31b9b885748205c7a41f55"
SUBJECT = re.compile(r"[a-z][\w/., -]*: (?P<verb>[a-z]+)(\b.*[^.])?")
# Words that look like a past tense, a gerund or a third person, and are none.
VERBS = {"bring", "cling", "embed", "feed", "need", "speed", "shed", "string", "swing", "wing", "miss", "pass", "press", "process", "address",
         "access", "discuss", "focus", "cross", "express", "guess", "compress", "suppress", "assess", "bless", "dress", "toss", "bypass"}


def message_error(message, files):
    """What is wrong with a commit's message that changes so many files; empty: nothing."""
    subject, _, body = message.strip().partition("\n")
    if len(subject) > 72:
        return f"the subject has {len(subject)} columns; at most 72"
    matched = SUBJECT.fullmatch(subject)
    if not matched:
        return "the subject must be `area: imperative summary`, without a period"
    if re.search(r"(ed|ing|s)$", matched["verb"]) and matched["verb"] not in VERBS:
        return f"the subject must be imperative, not \"{matched['verb']}\""
    if files > 1 and not body.strip():
        return "more than one file changes, so the body must give the reason"
    return ""


def check_messages():
    log = subprocess.run(["git", "log", "--no-merges", "--format=%x00%h%x01%B%x01", "--name-only", f"{MESSAGES_SINCE}..HEAD"], cwd=ROOT,
                         text=True, capture_output=True)  # fails where there is no history: a tarball, a shallow clone
    for commit in log.stdout.split("\0")[1:] if log.returncode == 0 else []:
        number, message, names = commit.split("\1")
        if wrong := message_error(message, len(names.split())):
            yield f"commit {number}: {wrong}"


LAYERS_BEGIN, LAYERS_END = "<!-- layers -->\n", "<!-- end of the layers -->"


def layers_table():
    rows = ["| folder | may include | libraries |", "| --- | --- | --- |"]
    for name, (includes, libraries) in LAYERS.items():
        rows.append(f"| `{name}/` | {', '.join(f'`{one}`' for one in includes) or '–'} | {libraries or 'none'} |")
    return "\n".join(rows) + "\n"


def check_layers(write):
    """Checks that CONTRIBUTING.md has the table of layers, or writes it there."""
    document = ROOT / "CONTRIBUTING.md"
    before, rest = document.read_text().split(LAYERS_BEGIN)
    table, after = rest.split(LAYERS_END)
    if table == layers_table():
        return []
    if not write:
        return ["CONTRIBUTING.md: the table of layers is not that of tests/lint.py: `tests/lint.py --write` writes it"]
    document.write_text(before + LAYERS_BEGIN + layers_table() + LAYERS_END + after)
    return []


def main():
    wrong = [w for folder in TOPS for path in sorted((ROOT / folder).rglob("*.?pp")) for w in check(path)]
    wrong += check_layers("--write" in sys.argv[1:])
    wrong += check_crowds()
    wrong += check_circles()
    wrong += [w for top in TOPS for path in sorted((ROOT / top).rglob("*.?pp")) for w in check_lengths(path)]
    documents = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
    wrong += [w for path in documents for w in check_document(path)]
    wrong += check_fields()
    wrong += check_unreferenced()
    wrong += check_batches()
    wrong += check_messages()
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
