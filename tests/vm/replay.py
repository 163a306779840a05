"""A coordinator's disk as a power cut right before any flush leaves it, opened by muster itself and compared with what the client knew then.

Of the writes since the flush before, all may be there, or none, or each may be kept, lost or torn. What the client knew when the flush came must be
there in any case: nothing that rests on that flush had been answered. No mount is needed: e2fsck replays the file system's journal, debugfs copies the
files. So this runs on the host, without root.
"""
import contextlib
import http.client
import json
import os
import pathlib
import random
import shutil
import subprocess
import time

from disk import kept_of

HOLE = bytes(1 << 16)
LOSSES = ("none kept", "all kept", "torn")


def states(recording, chosen, seed, folder):
    """Of a recording, yields (name, image, memory) for the flushes with the chosen numbers. The image is overwritten each time."""
    memory, base, log = recording
    safe, image = folder / "safe.img", folder / "state.img"
    with open(safe, "wb") as file:
        file.truncate(len(base))
        for at in range(0, len(base), len(HOLE)):
            block = base[at:at + len(HOLE)]
            if block != HOLE:
                file.seek(at)
                file.write(block)
    rng, memory, pending, number = random.Random(seed), memory.copy(), [], 0
    with open(safe, "r+b", buffering=0) as file:
        for entry in log:
            if entry is None:
                if number in chosen:
                    for loss in LOSSES if pending else LOSSES[:1]:
                        subprocess.run(["cp", "--sparse=always", safe, image], check=True)
                        kept = {"none kept": [], "all kept": pending}.get(loss)
                        put(image, [part for write in pending for part in kept_of(write, rng)] if kept is None else kept)
                        yield f"flush {number}, {len(pending)} writes unflushed, {loss}", image, memory
                number += 1
                for offset, data in pending:
                    os.pwrite(file.fileno(), data, offset)
                pending = []
            elif isinstance(entry[0], int):
                pending.append(entry)
            else:
                memory.learn(entry)


def put(image, writes):
    with open(image, "r+b", buffering=0) as file:
        for offset, data in writes:
            os.pwrite(file.fileno(), data, offset)


def extract(image, folder):
    """Copies the files of an image, after replaying its file system's journal."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    subprocess.run(["e2fsck", "-y", "-E", "journal_only", image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run(["debugfs", "-R", f"rdump / {folder}", image], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def served(muster, data_dir, api, agents):
    """What a coordinator on this directory serves: (its jobs, None) or (None, why not)."""
    command = [muster, "coordinator", "--data-dir", data_dir, "--api", f"127.0.0.1:{api}", "--listen", f"127.0.0.1:{agents}", "--node-grace", "1s",
               "--log-level", "warn"]
    log = pathlib.Path(data_dir).with_suffix(".log")
    with open(log, "wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                link = http.client.HTTPConnection("127.0.0.1", api, timeout=10)
                with contextlib.closing(link):
                    link.request("GET", "/apis/batch/v1/namespaces/default/jobs")
                    answer = link.getresponse()
                    jobs = json.loads(answer.read())
                    if answer.status == 200:
                        return jobs["items"], None
            time.sleep(0.02)
        return None, log.read_text(errors="replace")[-1000:]
    finally:
        process.kill()
        process.wait()


def wrong(muster, image, memory, folder, ports):
    """What this disk should have and has not: a line each."""
    files = folder / "files"
    extract(image, files)
    data = files / "coordinator"
    if not (data / "cluster-id").exists():
        return [] if not memory.jobs else ["no data-dir, though jobs were accepted"]
    recount = subprocess.run([muster, "verify", "--data-dir", data], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if recount.returncode:
        return [f"verify: {recount.stdout.strip()}"]
    jobs, why = served(muster, data, *ports)
    return memory.wrong(jobs) if jobs is not None else [f"a coordinator does not serve it: {why}"]
