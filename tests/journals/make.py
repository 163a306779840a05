#!/usr/bin/python3
"""Saves the state that an executable leaves when everything is killed, for tests/e2e/upgrade.py to open with later ones.

    MUSTER=path/to/muster tests/journals/make.py      makes tests/journals/VERSION-REVISION.tar.xz and .json

The archive has the data-dir of a coordinator and the work-dirs of two agents. The spool of node-0 has ends that no coordinator has seen,
and starts without an end. The .json is what the coordinator served just before: the spec and status of each job and the exit codes of its pods.
Its secrets belong to clusters that no longer exist.
"""
import io
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import tarfile
import time
import zlib

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e" / "lib"))
from world import Cluster, eventually, exit_code, finished, sh_job  # noqa: E402
from work_dirs import keepers  # noqa: E402

BOOT = "00000000-0000-4000-8000-000000000000"  # in the spool: no real machine has it, so the processes belong to an earlier boot everywhere
LEFT_OUT = re.compile(r"(^|/)(LOG(\.old.*)?|LOCK|lock|endpoints\.json|.*socket|sock)$")
HANGS = '[ "$MUSTER_ATTEMPT" != 0 ] || exec sleep 1000; exit 0'  # its replacement succeeds
LIMITS = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
          {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]


def nonindexed(name, script, completions):
    job = sh_job(name, script, completions)
    job["spec"]["completionMode"] = "NonIndexed"
    return job


def in_place(name, work):
    job = sh_job(name, f'mkdir "{work}/once" 2>/dev/null && exit 1; exit 0', 1, annotations={"muster.dev/restart-delay": "10ms"})
    job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    return job


def jobs(work):
    """Returns the jobs that finish, those that never start (suspended or without a slot) and those cut off while running or with an unreported end."""
    per_index = '[ "$JOB_COMPLETION_INDEX" != 1 ] || exit 7; [ "$JOB_COMPLETION_INDEX" != 2 ] || [ "$MUSTER_ATTEMPT" != 0 ]'
    finish = [
        sh_job("complete", "true", 4), nonindexed("work-queue", "true", 3), in_place("in-place", work),
        sh_job("backoff-limit", "exit 3", 1, backoffLimit=1),
        sh_job("failure-policy", '[ "$JOB_COMPLETION_INDEX" != 1 ] || exit 42', 3, podFailurePolicy={"rules": LIMITS}),
        sh_job("per-index", per_index, 4, backoffLimitPerIndex=1),
        sh_job("success-policy", '[ "$JOB_COMPLETION_INDEX" = 0 ] || exec sleep 1000', 2,
               successPolicy={"rules": [{"succeededIndexes": "0"}]}),
        sh_job("gang", "true", 2, annotations={"muster.dev/gang": "true", "muster.dev/restart": "gang"}),
        sh_job("no-such-command", "true", 1, backoffLimit=0),
    ]
    finish[-1]["spec"]["template"]["spec"]["containers"][0]["command"] = ["/no/such/command"]
    stay = [sh_job("suspended", "true", 2, suspend=True), sh_job("no-slot", "true", 1)]
    stay[-1]["spec"]["template"]["spec"]["nodeSelector"] = {"no": "such-node"}
    open_ones = [
        sh_job("running", HANGS, 3),
        sh_job("gang-running", HANGS, 2, annotations={"muster.dev/gang": "true"}),
        sh_job("half-done", f'[ "$JOB_COMPLETION_INDEX" = 0 ] || {{ {HANGS}; }}', 2, podFailurePolicy={"rules": LIMITS}),
        # Only the spool records its final failure; if the pod is taken for lost, its replacement succeeds.
        sh_job("ended-unseen", f'[ "$MUSTER_ATTEMPT" = 0 ] || exit 0; while [ ! -e "{work}/go" ]; do sleep 0.02; done; exit 42', 1,
               podFailurePolicy={"rules": LIMITS}),
    ]
    return finish, stay, open_ones


def served(cluster):
    """Returns what upgrade.py compares."""
    found = {}
    for job in cluster.api.call("GET", cluster.api.jobs())[1]["items"]:
        name = job["metadata"]["name"]
        pods = cluster.api.pods(f"batch.kubernetes.io/job-name={name}")
        found[name] = {"spec": job["spec"], "status": job.get("status", {}),
                       "exits": sorted([pod["metadata"]["name"], exit_code(pod)] for pod in pods)}
    return found


def of_an_earlier_boot(segment):
    """Returns the segment with another boot in its header (docs/formats-keeper.md)."""
    mark, length, _ = struct.unpack_from("=III", segment)
    size, = struct.unpack_from("=I", segment, 17)
    if size != len(BOOT):
        raise SystemExit(f"the boot in the header of a segment has {size} characters")
    segment = segment[:21] + BOOT.encode() + segment[21 + size:]
    return struct.pack("=III", mark, length, zlib.crc32(segment[12:12 + length])) + segment[12:]


def pack(folder, path):
    """Packs regular files only; upgrade.py updates the inode of a work-dir when it unpacks the archive."""
    with tarfile.open(path, "w:xz", preset=9) as archive:
        for top in ("coordinator", "node-0", "node-1"):
            for file in sorted((folder / top).rglob("*")):
                name = str(file.relative_to(folder))
                if not file.is_file() or LEFT_OUT.search(name) or "/logs/" in name or "/outputs/" in name:
                    continue
                data = file.read_bytes()
                if file.suffix == ".seg" and any(data):  # all zeros: a spare segment
                    data = of_an_earlier_boot(data)
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = len(data), 0o600
                archive.addfile(entry, io.BytesIO(data))


def make():
    cluster = Cluster(agents=2, slots=16, grace="30s", extra=["--listen-tls", "127.0.0.1:0"])
    work = cluster.dir / "work"
    work.mkdir()
    mine = []
    try:
        cluster.wait_nodes()
        api = cluster.api
        for method, path, body in (
                ("PATCH", "/api/v1/nodes/node-1", {"spec": {"unschedulable": True}}),
                ("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
                 {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "kept"}, "spec": {"holderIdentity": "me"}})):
            code, answer = api.call(method, path, body, "application/merge-patch+json" if method == "PATCH" else "application/json")
            assert code in (200, 201), answer
        subprocess.run([cluster.bin, "token", "create", "--node", "c01", "--ttl", "7d", "--out", str(work / "token"),
                        "--api", cluster.api_addr], check=True, capture_output=True)
        finish, stay, open_ones = jobs(work)
        for job in [*finish, *stay]:
            code, answer = api.create(job)
            assert code == 201, answer
        for job in finish:
            cluster.wait(job["metadata"]["name"], finished)
        cluster.restart_coordinator()  # moves the rows into tables
        cluster.wait_nodes()
        for job in open_ones:
            code, answer = api.create(job)
            assert code == 201, answer
        for job in open_ones:
            done = 1 if job["metadata"]["name"] == "half-done" else 0
            cluster.wait(job["metadata"]["name"], lambda j, d=done, n=job["spec"]["completions"]:
                         (j["status"].get("ready"), j["status"].get("succeeded", 0)) == (n - d, d))
        jobs_served = served(cluster)
        mine = keepers(cluster.dir)
        cluster.kill_coordinator()
        cluster.kill_agent("node-0")
        cluster.kill_agent("node-1")
        (work / "go").touch()
        spool = cluster.dir / "node-0" / "keeper" / "spool"
        was = b"".join(path.read_bytes() for path in sorted(spool.glob("*.seg"))).rstrip(b"\0")
        eventually(lambda: b"".join(path.read_bytes() for path in sorted(spool.glob("*.seg"))).rstrip(b"\0") != was, "the end is in the spool")
        time.sleep(0.2)  # the keeper writes once per turn of its loop
    finally:
        for pid in mine or keepers(cluster.dir):
            os.kill(pid, signal.SIGKILL)
        for pid in filter(str.isdigit, os.listdir("/proc")):  # processes that the keepers left behind
            try:
                environment = pathlib.Path("/proc", pid, "environ").read_bytes()
                if b"MUSTER_PROCESS=" in environment and str(cluster.dir).encode() in environment:
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue
    printed = json.loads(subprocess.run([cluster.bin, "version", "--client", "-o", "json"], text=True, capture_output=True, check=True).stdout)
    written = {key: printed["client"][key] for key in ("version", "revision", "formats", "protocols")}
    path = HERE / f"{written['version']}-{written['revision'][:8]}.tar.xz"
    pack(cluster.dir, path)
    golden = {"writtenBy": written, "jobs": jobs_served}
    path.with_name(path.name.replace(".tar.xz", ".json")).write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n")
    cluster.close()
    print(f"{path.name}: {path.stat().st_size} bytes, {len(jobs_served)} jobs")


if __name__ == "__main__":
    make()
