#!/usr/bin/env python3
"""The Jobs of Kubernetes' own documentation (tests/manifests): each runs to completion or is refused with a hint what to do instead, as docs/from-kubernetes.md says.

    MUSTER_DOCS_WRITE=1 tests/e2e/manifests.py     writes the table
"""
import os
import re
import shutil
import sys
import unittest

import cli

FOLDER = cli.ROOT / "tests/manifests"
PAGE = cli.ROOT / "docs/from-kubernetes.md"
BEGIN, END = "<!-- tests/e2e/manifests.py writes this table -->\n", "<!-- end of the table -->\n"
PROGRAMS = ("bash", "perl", "python3", "rev")


@unittest.skipUnless(all(map(shutil.which, PROGRAMS)), f"needs {', '.join(PROGRAMS)}")
class Manifests(cli.Cluster):
    maxDiff = None

    def outcome(self, path):
        """What happens to this manifest, in the words of the table."""
        made = cli.subprocess.run([cli.MUSTER, "create", "-f", str(path), "-o", "name"], capture_output=True, text=True, timeout=60, env=self.env, cwd=self.dir)
        if made.returncode:
            self.assertEqual((made.returncode, made.stdout), (5, ""), made.stderr)
            lines = [line.removeprefix(f"muster: {path}:").split(": ", 1)[1] for line in made.stderr.splitlines()]
            self.assertTrue(all(re.search(r"[;:] ", line) for line in lines), lines)  # each says what to do instead
            return "refused: " + "; ".join(f"`{line}`" for line in lines)
        ends = set()
        for name in made.stdout.split():
            if name.startswith("cronjob.batch/"):  # one of its jobs, now
                cron, name = name.removeprefix("cronjob.batch/"), "job.batch/from-" + name.removeprefix("cronjob.batch/")
                self.muster("create", "job", name.split("/")[1], "--from", f"cronjob/{cron}")
                self.muster("suspend", f"cronjob/{cron}")
            job = cli.json.loads(cli.poll(f"{name} is over", lambda: self.over(name.split("/")[1])))
            ends |= {"runs: " + c["type"] + ("" if c["reason"] == "CompletionsReached" else f" ({c['reason']})")
                     for c in job["status"]["conditions"] if c["type"] in ("Complete", "Failed")}
        self.assertEqual(len(ends), 1, ends)
        return ends.pop()

    def over(self, name):
        text = self.muster("get", "job", name, "-o", "json").stdout
        return text if re.search(r'"type": "(Complete|Failed)"', text) else None

    def test_table_of_kubernetes_manifests_is_up_to_date(self):
        rows = []
        for path in sorted(FOLDER.glob("*.yaml")):
            page, link = re.match(r"# (.*?): (https://\S+)\n", path.read_text()).groups()
            rows.append(f"| [{page}]({link}) | [{path.name}](../tests/manifests/{path.name}) | {self.outcome(path)} |\n")
        self.assertGreater(len(rows), 12)
        table = BEGIN + "\n| page | manifest | here |\n| --- | --- | --- |\n" + "".join(sorted(rows)) + "\n" + END
        text = PAGE.read_text()
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        if os.environ.get("MUSTER_DOCS_WRITE"):
            PAGE.write_text(before + table + after)
            return
        self.assertEqual(text, before + table + after, "MUSTER_DOCS_WRITE=1 tests/e2e/manifests.py writes it")


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
