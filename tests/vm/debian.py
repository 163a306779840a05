"""A Debian guest with systemd as PID 1, and muster's units as shown in docs/users.md, or the Debian packages of muster.

The root is built from the packages below, unpacked but not configured. The files and commands that the document gives an administrator
are taken from its code blocks, so the two cannot drift apart. Unit and PAM files go to /etc; commands and drop-ins go to /muster/doc.
"""
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
DOCUMENT = HERE.parents[1] / "docs/users.md"

PACKAGES = """
base-files base-passwd bash coreutils findutils grep hostname login mawk mount passwd procps sed util-linux
dbus dbus-bin dbus-daemon dbus-system-bus-common libpam-modules libpam-modules-bin libpam-systemd systemd systemd-sysv
libacl1 libapparmor1 libargon2-1 libattr1 libaudit1 libblkid1 libbz2-1.0 libc6 libcap-ng0 libcap2 libcrypt1 libcryptsetup12 libdb5.3 libdbus-1-3
libdevmapper1.02.1 libexpat1 libfdisk1 libffi8 libgcc-s1 libgcrypt20 libgmp10 libgpg-error0 libip4tc2 libjson-c5 libkmod2 liblz4-1 liblzma5 libmount1
libncursesw6 libp11-kit0 libpam0g libpcre2-8-0 libproc2-0 libreadline8 libseccomp2 libselinux1 libsemanage2 libsepol2 libsmartcols1 libssl3 libsystemd-shared
libsystemd0 libtinfo6 libudev1 libuuid1 libzstd1 zlib1g
""".split()
UNUSED = ["usr/share/bash-completion", "usr/share/bug", "usr/share/common-licenses", "usr/share/doc", "usr/share/info", "usr/share/lintian",
          "usr/share/locale", "usr/share/man", "usr/share/zsh", "usr/lib/udev/hwdb.d", "usr/lib/x86_64-linux-gnu/gconv", "boot"]

INIT = """#!/muster/bin/sh
# Moves from the initramfs, which nobody can pivot away from, to a file system that systemd can make namespaces of.
export PATH=/muster/bin
mkdir /new
mount -t tmpfs -o mode=0755 root /new
for name in /*; do
  case $name in /new|/init) ;; *) cp -a $name /new/;; esac
done
for module in inet_diag tcp_diag; do insmod /muster/modules/$module.ko; done
exec switch_root /new /lib/systemd/systemd
"""
UNIT = """[Unit]
Description=The scenario
[Service]
Type=exec
Environment=PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root
ExecStart=/bin/bash -c '(. /muster/lib.sh; . /muster/scenario.sh; echo done) 2>&1 </dev/null | cat >/dev/console'
"""


def archives(folder):
    """Returns the packages' archives, downloading them only once."""
    wanted = " ".join(PACKAGES)
    stamp = folder / "packages"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run(["apt-get", "download", *PACKAGES], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stamp.write_text(wanted)
    return sorted(folder.glob("*.deb"))


def unpack(archive, root):
    stream = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-p", "-C", str(root)], check=True, stdin=stream.stdout)
    stream.stdout.close()
    if stream.wait() != 0:
        raise RuntimeError(f"cannot unpack {archive}")


def code_blocks(text):
    """Returns the language and text of each code block, by heading."""
    blocks = {}
    for section in re.split(r"^## ", text, flags=re.M):
        heading = section.splitlines()[0]
        blocks[heading] = re.findall(r"^```(\w*)\n(.*?)^```$", section, flags=re.M | re.S)
    return blocks


def typed(block):
    """Returns the commands in a console block."""
    return "".join(line.removeprefix("# ") + "\n" for line in block.splitlines())


def instructions(text):
    """Extracts from the document the files, by path, and the scripts, by name."""
    blocks = code_blocks(text)
    units = [block for language, block in blocks["As systemd units"] if language == "ini"]
    both, own, keeper = units
    assert both.startswith("# /etc/systemd/system/muster-coordinator.service and muster-agent.service\n"), both
    files = {"/etc/systemd/system/muster-keeper.service": keeper}
    for part in own.split("\n\n"):
        name = re.match(r"# (muster-\w+\.service)", part).group(1)
        files[f"/etc/systemd/system/{name}"] = both.replace("[Install]", part + "\n\n[Install]")
    pam, settings = (block for _, block in blocks["PAM sessions"][:2])
    files["/etc/pam.d/muster"] = pam
    limits = next(block for language, block in blocks["Resource limits"] if language == "ini")
    consoles = [block for language, block in blocks["As systemd units"] if language == "console"]
    once = next(block for language, block in next(iter(blocks.values())) if language == "console")
    scripts = {"once.sh": typed(once), "start.sh": typed(consoles[0]), "keeper.sh": typed(consoles[1]), "again.sh": typed(consoles[2]),
               "pam.conf": "[Service]\n" + settings, "limits.conf": "[Service]\n" + limits}
    return files, scripts


def lay_out(root, build, muster, libraries, modules, packages=()):
    """`packages`: those of muster, which are unpacked; if there are none, the units are those of the document."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for archive in archives(build / "debian"):
        unpack(archive, root)
    for path in UNUSED:
        shutil.rmtree(root / path, ignore_errors=True)
    (root / "usr/bin/sh").symlink_to("bash")
    for name in ("passwd", "group"):
        shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / f"etc/{name}")
    (root / "etc/hostname").write_text("n1\n")
    (root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")  # else systemd asks how to set the system up
    (root / "etc/hosts").write_text("127.0.0.1 localhost n1\n")
    (root / "muster/doc").mkdir(parents=True)
    (root / "muster/modules").mkdir()
    (root / "muster/bin").mkdir()
    shutil.copy("/bin/busybox", root / "muster/bin")
    for applet in ("sh", "mkdir", "mount", "cp", "insmod", "switch_root"):
        (root / "muster/bin" / applet).symlink_to("busybox")
    for archive in packages:
        unpack(archive, root)
    for name in () if packages else ("muster", "muster-keeper"):
        (root / "usr/local/bin").mkdir(parents=True, exist_ok=True)
        subprocess.run(["strip", "-o", str(root / "usr/local/bin" / name), str(muster.parent / name)], check=True)
    for path in libraries:
        target = root / path.lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    for module in modules:
        shutil.copy(module, root / "muster/modules")
    files, scripts = ({}, {}) if packages else instructions(DOCUMENT.read_text())
    for path, text in files.items():
        (root / path.lstrip("/")).write_text(text)
    for name, text in scripts.items():
        (root / "muster/doc" / name).write_text(text)
    (root / "etc/systemd/system/scenario.service").write_text(UNIT)
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "scenario.service").symlink_to("../scenario.service")
    (root / "etc/systemd/system/default.target").symlink_to("/lib/systemd/system/multi-user.target")
    (root / "init").write_text(INIT)
    os.chmod(root / "init", 0o755)
