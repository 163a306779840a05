#!/usr/bin/env python3
"""coverage.py SUMMARY.json: prints the share of lines that ran in each folder, from gcovr's summary."""
import collections
import json
import sys


def main():
    lines = collections.defaultdict(lambda: [0, 0])
    for file in json.load(open(sys.argv[1], encoding="utf-8"))["files"]:
        parts = file["filename"].split("/")
        for folder in ("total", "/".join(parts[:-1])):
            lines[folder][0] += file["line_covered"]
            lines[folder][1] += file["line_total"]
    total = lines.pop("total", [0, 0])
    for folder, (ran, all_lines) in sorted(lines.items()) + [("total", total)]:
        print(f"{folder:<24} {ran:>6} of {all_lines:>6} lines  {100 * ran / max(all_lines, 1):5.1f} %")


if __name__ == "__main__":
    main()
