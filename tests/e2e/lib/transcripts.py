"""Runs the commands that documents show, and compares what they print.

MUSTER names the executable. With MUSTER_DOCS_WRITE, the documents are updated.
"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from world import ROOT, Cluster

MUSTER = os.path.abspath(os.environ["MUSTER"])

# Text that differs between runs.
VARIES = [(r"[0-9a-f]{8}-[-0-9a-f]{27}", "UID"), (r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b", "-RANDOM"),  # before SPAN: -411d- may be part of a uid
          (r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"), (r"\b(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+\b", "SPAN"),
          (r"\(\d+%\)", "SHARE"), (r"\b\d+[KMG]i\b", "SIZE"), (r"\b\d\d:\d\d(?::\d\d)?\b", "CLOCK"), (r"\bnode (?:has \d+|[\w.-]+)|\b1 +0 +[\w.-]+ +exit", "NODE"), (r"127\.0\.0\.1:\d+", "ADDRESS"), (r"\b(pid )?\d{3,7}\b", "NUMBER"), (r"\b\d+(?:\.\d+)? (?:GiB|MiB|KiB)", "SIZE"),
          (r"\d+(?:\.\d+)?(?:/s| pods/s)", "PACE"), (r"[ \t]+", " ")]


class Followed(unittest.TestCase):
    """Each `console` block is run in order, in one shell per document, or per section."""

    def follow(self, name, section=None, **env):
        path = ROOT / "docs" / f"{name}.md"
        before, text, after = self.part(path.read_text(), section)
        blocks = list(re.finditer(r"^```console\n(.*?)^```", text, re.M | re.S))
        self.assertGreater(len(blocks), 0 if section else 5)
        steps = [self.steps(block.group(1)) for block in blocks]
        with tempfile.TemporaryDirectory(prefix="muster-docs-") as folder:
            home = pathlib.Path(folder)
            script = home / "script"
            script.write_text("exec 2>&1 </dev/null\n" + "".join(
                f"echo '@@ {i}'\n{command}\n" for i, (command, _) in enumerate(step for block in steps for step in block)))
            (home / "work").mkdir()
            (home / "work/examples").symlink_to(ROOT / "examples")
            given = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_") and k != "KUBECONFIG"}
            run = subprocess.run(["bash", str(script)], cwd=home / "work", text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=240,
                                 env={**given, "HOME": folder, "PATH": f"{pathlib.Path(MUSTER).parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", **env})
        out = re.sub(r"^\d+/\d+  running .*\n", "", run.stdout.replace(f"{home}/work", "/home/ada"), flags=re.M)  # without progress lines
        out = re.sub(r"^muster: warning: the memory limit is not enforced on .*\n", "", out, flags=re.M)  # as the machine has it
        printed = [part.partition("\n")[2] for part in re.split(r"^@@ ", out, flags=re.M)[1:]]
        self.assertEqual(len(printed), sum(map(len, steps)), run.stdout)
        if os.environ.get("MUSTER_DOCS_WRITE"):
            rest = iter(printed)
            bodies = iter(["".join(f"$ {command}\n{next(rest)}" for command, _ in block) for block in steps])
            path.write_text(before + re.sub(r"^```console\n.*?^```", lambda _: f"```console\n{next(bodies)}```", text, flags=re.M | re.S) + after)
            return
        for (command, expected), now in zip((step for block in steps for step in block), printed):
            with self.subTest(command):
                self.assertEqual(self.same(now), self.same(expected))

    @staticmethod
    def part(text, section):
        """What is before the section of that heading, the section, and what is after it."""
        if section is None:
            return "", text, ""
        before, heading, rest = text.partition(f"\n## {section}\n")
        end = rest.find("\n## ")
        return before, heading + rest[:end if end >= 0 else None], rest[end:] if end >= 0 else ""

    @staticmethod
    def steps(block):
        """The commands, which may have a here-document, and the output of each."""
        found = []
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, rest = part.partition("\n")
            if "<<'EOF'" in command:
                document, _, rest = rest.partition("\nEOF\n")
                command += "\n" + document + "\nEOF"
            found.append((command, rest))
        return found

    @staticmethod
    def same(text):
        for pattern, name in VARIES:
            text = re.sub(pattern, name, text)
        return sorted(line.rstrip() for line in text.splitlines())  # concurrent pods end in any order

    def served(self):
        cluster = Cluster(agents=1, slots=4)
        self.addCleanup(cluster.close)
        cluster.wait_nodes()
        return cluster.api_addr
