"""A small virtual machine for tests that a container cannot run: cgroup v2 with all controllers, and a kernel without tcp_diag.

    vm.py SCENARIO      run tests/vm/SCENARIO.sh in the guest; exit with 0 if all its checks pass
    vm.py power [...]   test power cuts, in a separate program: power.py
    vm.py standby [...] likewise of two coordinators: standby.py

The guest is Debian's cloud kernel with an initramfs of busybox or a small Debian, muster's release build, the libraries it links, and the scenario.
QEMU emulates the processor (KVM may be absent, or hang when nested), so the guest runs 10 to 20 times slower than the host.
Deadlines are therefore generous, and no check measures time. The scenario prints `ok NAME` or `FAIL NAME: WHY` for each check and `done`
at the end; a guest that never prints `done` has failed. An emulator that freezes is started once more; a guest that lives has no second try.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import debian  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "vm"
MUSTER = pathlib.Path(os.environ.get("MUSTER") or ROOT / "build" / "release" / "muster")
TIMEOUT = float(os.environ.get("VM_TIMEOUT", "300"))
STALLED = 60  # seconds without a sign of life (tests/vm/init) after which the emulator, not the scenario, hangs
OF_KERNEL = re.compile(rb"\[ *[0-9]+\.[0-9]+\] ")  # no sign of life: the kernel of a guest whose emulator hangs still complains of that
WITH_SYSTEMD = {"units", "packages"}  # scenarios that run as a systemd unit in Debian (debian.py); in the others, busybox is PID 1
MODULES = ["net/ipv4/inet_diag.ko", "net/ipv4/tcp_diag.ko"]  # in load order


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def kernel():
    """Returns the kernel of Debian's cloud package, which is only unpacked, since installing it would change the host's /boot."""
    found = sorted((BUILD / "kernel").glob("boot/vmlinuz-*"))
    if not found:
        depends = output("apt-cache", "depends", "linux-image-cloud-amd64")
        package = re.search(r"Depends: (\S+)", depends).group(1)
        BUILD.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], check=True, cwd=BUILD, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        archive = next(BUILD.glob(package + "_*.deb"))
        subprocess.run(["dpkg-deb", "-x", str(archive), str(BUILD / "kernel")], check=True)
        archive.unlink()
        found = sorted((BUILD / "kernel").glob("boot/vmlinuz-*"))
    return found[-1]


def libraries(executable):
    """Returns the paths of an executable's shared libraries and its loader."""
    return re.findall(r"(/\S+) \(0x", output("ldd", str(executable)))


def stage_busybox(root):
    """Lays out a root with busybox, muster and the libraries it links."""
    for folder in ("bin", "dev", "proc", "sys", "tmp", "etc", "lib/modules", "muster"):
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin")
    for applet in output("/bin/busybox", "--list").split():
        link = root / "bin" / applet
        if not link.exists():
            link.symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\nalice:x:1000:1000::/tmp:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nalice:x:1000:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    for name in ("muster", "muster-keeper"):
        subprocess.run(["strip", "-o", str(root / "bin" / name), str(MUSTER.parent / name)], check=True)
    for path in libraries(MUSTER) + libraries(MUSTER.parent / "muster-keeper"):
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    modules = next((BUILD / "kernel/lib/modules").iterdir()) / "kernel"
    for module in MODULES:
        shutil.copy(modules / module, root / "lib/modules")
    shutil.copy(HERE / "init", root)
    os.chmod(root / "init", 0o755)


def built_packages():
    """Builds muster's Debian packages from the executables, and returns those of the head and of nodes."""
    subprocess.run([ROOT / "dev", "package"], env={**os.environ, "MUSTER_BUILD_DIR": str(MUSTER.parent)}, check=True, stdout=subprocess.DEVNULL)
    return [path for path in sorted((ROOT / "build/deb").glob("*.deb")) if not path.name.startswith("muster-doc")]


def stage(image, scenario, root, more=()):
    """Lays out the guest's root directory and packs it; `more` files go next to the scenario."""
    shutil.rmtree(root, ignore_errors=True)
    if scenario in WITH_SYSTEMD:
        modules = next((BUILD / "kernel/lib/modules").iterdir()) / "kernel"
        debian.lay_out(root, BUILD, MUSTER, libraries(MUSTER) + libraries(MUSTER.parent / "muster-keeper"),
                       [modules / module for module in MODULES], built_packages() if scenario == "packages" else ())
    else:
        stage_busybox(root)
    shutil.copy(HERE / "lib.sh", root / "muster")
    shutil.copy(HERE / f"{scenario}.sh", root / "muster" / "scenario.sh")
    for path in more:
        shutil.copy(path, root / "muster")
    names = output("find", ".", cwd=root)
    with open(image, "wb") as archive:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0"], check=True, cwd=root, input=names.encode(), stdout=archive)


def attempt(command, signs_of_life):
    """Boots the guest and prints what it prints. Returns whether the emulator stalled, and the numbers of checks that held and failed,
    the latter with one for a guest that was not done in time."""
    now = time.monotonic()
    deadline, last_sign = now + TIMEOUT, now
    held, failed, done = 0, 0, False
    guest = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        os.set_blocking(guest.stdout.fileno(), False)
        rest = b""
        while not done and (now := time.monotonic()) < deadline:
            if signs_of_life and now - last_sign > STALLED:
                return True, held, failed
            chunk = guest.stdout.read()
            if chunk is None:
                if guest.poll() is not None:
                    break
                time.sleep(0.05)
                continue
            if not chunk:
                break
            *lines, rest = (rest + chunk).split(b"\n")
            for raw in lines:
                if not OF_KERNEL.match(raw):
                    last_sign = now
                line = raw.decode(errors="replace").rstrip("\r")
                if line == "alive":
                    continue
                print(line, flush=True)
                held += line.startswith("ok ")
                failed += line.startswith("FAIL ")
                done = done or line == "done"
    finally:
        guest.kill()
        guest.wait()
    if not done:
        print(f"vm: the guest was not done within {TIMEOUT:.0f} s")
    return False, held, failed + (not done)


def run(scenario):
    vmlinuz = kernel()
    image = BUILD / f"{scenario}.cpio"
    stage(image, scenario, BUILD / "root")
    with_systemd = scenario in WITH_SYSTEMD
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048" if with_systemd else "1024", "-nographic", "-no-reboot",
               "-nic", "none", "-kernel", str(vmlinuz), "-initrd", str(image),
               "-append", f"console=ttyS0 quiet panic=-1 systemd.show_status=0 report_after={TIMEOUT - 40:.0f}"]
    for _ in range(2):
        stalled, held, failed = attempt(command, signs_of_life=not with_systemd)
        if not stalled:
            return 0 if held and not failed else 1
        print(f"vm: the emulator gave no sign of life for {STALLED} s")
    return 1


if __name__ == "__main__":
    if sys.argv[1:2] in (["power"], ["standby"]):
        os.execv(sys.executable, [sys.executable, str(HERE / f"{sys.argv[1]}.py"), *sys.argv[2:]])
    if len(sys.argv) != 2 or not (HERE / f"{sys.argv[1]}.sh").exists():
        names = ", ".join(sorted(path.stem for path in HERE.glob("*.sh") if path.stem != "lib"))
        sys.exit(f"usage: vm.py SCENARIO; scenarios: {names}")
    sys.exit(run(sys.argv[1]))
