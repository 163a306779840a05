"""Prometheus and promtool: those on the PATH, or those of Debian's package, which is unpacked under build/ and not installed, since it would
start a server.
"""
import pathlib
import re
import shutil
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "build/prometheus"
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def program(name):
    """The path of prometheus or promtool; None if there is none and none can be had."""
    if found := shutil.which(name):
        return found
    unpacked = FOLDER / "usr/bin" / name
    if not unpacked.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        if subprocess.run(["apt-get", "download", "prometheus"], cwd=FOLDER, capture_output=True).returncode != 0:
            return None
        for archive in FOLDER.glob("prometheus_*.deb"):
            subprocess.run(["dpkg-deb", "-x", archive, FOLDER], check=True)
            archive.unlink()
    return str(unpacked)


def samples(text):
    """The samples of an exposition: {name: [(labels, value), …]}."""
    found = {}
    for line in text.splitlines():
        if match := SAMPLE.match(line):
            found.setdefault(match[1], []).append((dict(re.findall(r'(\w+)="([^"]*)"', match[2] or "")), float(match[3])))
    return found


def types(text):
    """The types of an exposition's metrics, by name."""
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M))
