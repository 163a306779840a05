#!/usr/bin/env python3
"""Generates tables from api/openapi/*.yaml:

    make_tables.py OUT.cpp FILE.yaml...              the tables of api/kube/schema/api_types.hpp
    make_tables.py docs/job.md FILE.yaml...          the fields of a Job, between two comments in the document
    make_tables.py --check docs/job.md FILE.yaml...  fails unless the document is up to date

The top of batch.yaml describes the syntax. Problems are reported as FILE:LINE: TYPE.FIELD: PROBLEM, and nothing is written.
"""
import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    sys.exit("make_tables.py: python3 has no module yaml; install python3-yaml (./dev setup does)")

PLAIN = {"string", "bool", "int32", "int64", "time", "microtime", "quantity", "bytes", "localname", "strings", "fields", "any"}
PACKAGES = {"meta": "io.k8s.apimachinery.pkg.apis.meta.v1", "pod": "io.k8s.api.core.v1", "muster": "dev.muster.v1"}
# NAME[!] TYPE [NUMBER | none] [LIST] [plain] [default VALUE] [atomic] [unread] [kept | refused [even empty | unless VALUE | in part]]
LINE = re.compile(r"""(?P<name>\w+)(?P<required>!?)\ (?P<shape>\[\]|\{\}|)(?P<type>\w+)
    (\ (?P<number>[1-9]\d*|none))?
    (\ by\ (?P<keys>\w+(,\w+)*)(?P<replaced>\ replaced)?|\ (?P<merged>merged)|\ (?P<set>set))?
    (\ (?P<plain>plain))?(\ default\ (?P<default>\S+))?(\ (?P<atomic>atomic))?(\ (?P<unread>unread))?
    (\ (?P<use>kept|refused\ even\ empty|refused\ in\ part|refused\ unless\ (?P<value>\S+)|refused))?""", re.VERBOSE)

problems = []


class Field:
    def __init__(self, place, type_name, line, about):
        self.place, self.owner, self.about = place, type_name, about
        match = LINE.fullmatch(line)
        if not match:
            self.name = line
            self.wrong("cannot be parsed; see the head of batch.yaml")
            return
        part = match.groupdict()
        self.name, self.type, self.number = part["name"], part["type"], 0
        self.ours = part["number"] == "none"
        if not self.ours:
            self.number = int(part["number"] or 0)
        self.list, self.map, self.required = part["shape"] == "[]", part["shape"] == "{}", bool(part["required"])
        self.keys = part["keys"].split(",") if part["keys"] else []
        self.set = bool(part["set"] or part["merged"])
        self.merged = bool(part["merged"] or (self.keys and not part["replaced"]))
        self.atomic, self.unread = bool(part["atomic"]), bool(part["unread"])
        self.plain, self.default = bool(part["plain"]), part["default"] or ""
        if self.plain and (self.type not in ("bool", "int32", "int64") or self.list or self.map):
            self.wrong("only numbers and bools can be plain")
        self.does, self.value = part["use"] or "acts", part["value"] or ""
        self.use = "refused_unless" if self.value else self.does.replace(" ", "_")
        if (self.keys or self.set) and not self.list:
            self.wrong("only lists can be sets, have keys or be merged")
        if self.set and self.type not in PLAIN - {"any"} or self.keys and self.type in PLAIN - {"any"}:
            self.wrong("sets need plain values, keys need objects")
        if self.atomic and self.list:
            self.wrong("atomic is redundant: a list without keys is always changed as a whole")
        if self.use in ("refused", "refused_even_empty", "refused_unless") and not about.startswith("Refused"):
            self.wrong("the description of a refused field must start with \"Refused\"")
        if self.use == "acts" and about.startswith("Stored and ignored"):
            self.wrong("a field that is stored and ignored needs the mark kept")

    def hint(self):
        """What to use instead, in the form of an error message: lower case, no full stop."""
        if not self.use.startswith("refused"):
            return ""
        only = f"only {quoted(self.value) if self.type == 'string' else self.value} is" if self.value else ""
        rest = re.match(r"Refused\b.*?\.\s+(.*)\.$", self.about, re.DOTALL)
        text = rest.group(1) if rest else ""
        if re.match(r"[A-Z]([a-z]|\b)", text):  # but not SIGTERM
            text = text[0].lower() + text[1:]
        return "; ".join(filter(None, (only, text)))

    def wrong(self, text):
        problems.append(f"{self.place}: {self.owner}.{self.name}: {text}")


class Type:
    def __init__(self, file, name):
        self.name, self.kind, self.about, self.group_version, self.fields = name, name.split(".")[0], "", "", []
        self.schema = f"{PACKAGES.get(file, f'io.k8s.api.{file}.v1')}.{self.kind}"


def read(paths):
    types = {}
    for path in paths:
        for key, lines in yaml.compose(path.read_text(), Loader=yaml.BaseLoader).value:
            kind = Type(path.stem, key.value)
            place = f"api/openapi/{path.name}:{key.start_mark.line + 1}"
            if kind.name in types:
                problems.append(f"{place}: {kind.name}: defined twice")
            types[kind.name] = kind
            for line, text in lines.value:
                place = f"api/openapi/{path.name}:{line.start_mark.line + 1}"
                if line.value == "about":
                    kind.about = text.value
                elif line.value == "kind":
                    kind.group_version = text.value
                else:
                    kind.fields.append(Field(place, kind.name, line.value, text.value))
    return [types[name] for name in sorted(types)]


def check(types):
    """Checks the rules that span several lines. Returns the lists that patches merge, by name."""
    names = {t.name for t in types}
    lists = {}
    for kind in types:
        seen, numbers = set(), set()
        for field in kind.fields:
            if field.type not in names | PLAIN:
                field.wrong(f"unknown type {field.type}")
            if field.name in seen:
                field.wrong("defined twice")
            if field.number and field.number in numbers:
                field.wrong(f"another field has the number {field.number}")
            of_object = field.name in ("apiVersion", "kind") and any(f.name == "apiVersion" for f in kind.fields)
            if not field.number and not field.ours and not of_object and not field.use.startswith("refused"):
                field.wrong("has no number, so it is not in protobuf")
            seen.add(field.name)
            numbers.add(field.number)
            if field.list:
                how = (field.merged, field.keys[0] if field.merged and field.keys else "")
                if lists.setdefault(field.name, how) != how:
                    field.wrong("another list with this name is merged differently, but patches identify lists only by name")
    return {name: key for name, (merged, key) in sorted(lists.items()) if merged}


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def field_text(field, index):
    parts = [f".name = {quoted(field.name)}", f".type = {quoted(field.type)}"]
    if field.type in index:
        parts.append(f".of = &kTypes[{index[field.type]}]")
    parts += [f".{flag} = true" for flag in ("list", "map") if getattr(field, flag)]
    if field.number:
        parts.append(f".number = {field.number}")
    parts += [f".{flag} = true" for flag in ("required", "set", "merged", "atomic", "unread", "plain") if getattr(field, flag)]
    if field.keys:
        parts.append(f".keys = kKeys_{'_'.join(field.keys)}")
    if field.default:
        parts.append(f".preset = {quoted(field.default)}")
    if field.use != "acts":
        parts.append(f".use = ApiField::Use::{field.use}")
    if field.value:
        parts.append(f".refused_unless = {quoted(field.value)}")
    if field.hint():
        parts.append(f".hint = {quoted(field.hint())}")
    return f"    {{{', '.join(parts)},\n     .about = {quoted(field.about)}}},\n"


def source(types, merged):
    index = {kind.name: n for n, kind in enumerate(types)}
    out = ["// Generated from api/openapi/ by api/openapi/make_tables.py.\n#include \"api/kube/schema/api_types.hpp\"\n\n"
           "namespace muster::api {\nnamespace {\n\n"
           f"extern const ApiType kTypes[{len(types)}];\n\n"]
    for keys in sorted({tuple(field.keys) for kind in types for field in kind.fields if field.keys}):
        out.append(f"constexpr std::string_view kKeys_{'_'.join(keys)}[] = {{{', '.join(map(quoted, keys))}}};\n")
    for n, kind in enumerate(types):
        if not kind.fields:
            problems.append(f"{kind.name}: no fields")
        out += [f"\n// {kind.name}\nconstexpr ApiField kFields{n}[] = {{\n",
                *(field_text(field, index) for field in kind.fields), "};\n"]
    out.append(f"\nconstinit const ApiType kTypes[{len(types)}] = {{\n")
    for n, kind in enumerate(types):
        texts = ", ".join(quoted(t) for t in (kind.name, kind.kind, kind.schema, kind.group_version, kind.about))
        out.append(f"    {{{texts}, kFields{n}}},\n")
    out.append("};\n\nconstexpr MergedList kMerged[] = {\n")
    out += [f"    {{{quoted(name)}, {quoted(key)}}},\n" for name, key in merged.items()]
    out.append("};\n\n}  // namespace\n\n"
               "std::span<const ApiType> api_types() {\n  return kTypes;\n}\n\n"
               "std::span<const MergedList> merged_lists() {\n  return kMerged;\n}\n\n"
               "}  // namespace muster::api\n")
    return "".join(out)


BEGIN, END = "<!-- fields -->\n", "<!-- end of the fields -->\n"


def parts_of_a_job(types):
    """The types below Job and where each is used: {Type: ["spec.template"]}. Leaves out the status, which manifests do not set."""
    by_name = {kind.name: kind for kind in types}
    places = {}

    def walk(kind, path):
        places.setdefault(kind, []).append(path)
        for field in kind.fields:
            if field.type in by_name and field.type != "JobStatus":
                inner = f"{path}.{field.name}".lstrip(".") + ("[]" if field.list else "{}" if field.map else "")
                if kind.name != "Container" or "initContainers" not in path:
                    walk(by_name[field.type], inner)

    walk(by_name["Job"], "")
    return places


def document_text(types):
    def cell(text):
        return text.replace("|", "\\|").replace("<", "&lt;")

    places = parts_of_a_job(types)
    anchors = {kind.name: kind.name.lower() for kind in places}
    out = []
    for kind, paths in places.items():
        where = ", ".join(f"`{path}`" for path in paths if path)
        out.append(f"\n### {kind.name}\n\n" + (f"{where}: " if where else "") + kind.about +
                   "\n\n| field | type | use | meaning |\n| --- | --- | --- | --- |\n")
        for field in kind.fields:
            name = "string" if field.type == "localname" else field.type
            shape = "`" + ("[]" if field.list else "{}" if field.map else "") + name + "`"
            if field.type in anchors:
                shape = f"[{shape}](#{anchors[field.type]})"
            required = " (required)" if field.required else ""
            out.append(f"| `{field.name}`{required} | {shape} | {field.does} | {cell(field.about)} |\n")
    return "".join(out) + "\n"


def document(path, types):
    """The document with its tables replaced."""
    text = path.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        problems.append(f"{path}:1: the tables go between the lines {BEGIN.strip()} and {END.strip()}; each must appear exactly once")
        return text
    return text[:text.index(BEGIN) + len(BEGIN)] + document_text(types) + text[text.index(END):]


def main():
    words = sys.argv[1:]
    only_check = words[0] == "--check"
    out, *paths = map(pathlib.Path, words[only_check:])
    types = read(paths)
    merged = {} if problems else check(types)
    text = "" if problems else document(out, types) if out.suffix == ".md" else source(types, merged)
    if only_check and not problems and text != out.read_text():
        old, new = out.read_text().splitlines(), text.splitlines()
        line = next((n for n, pair in enumerate(zip(old, new), 1) if pair[0] != pair[1]), len(old))
        problems.append(f"{out}:{line}: the table is out of date with api/openapi; run `./dev golden`")
    if problems:
        sys.exit("\n".join(problems))
    if not only_check:
        out.write_text(text)


if __name__ == "__main__":
    main()
