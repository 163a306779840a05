#!/usr/bin/python3
"""Debian's packages, from the executables that are built: what is in them, that lintian finds nothing, and that the first job runs once they
are installed, with the daemons as their units say.

    MUSTER=build/release/muster tests/e2e/packages.py [TEST…]

MUSTER names the executable in the build folder. Needs debhelper and lintian; installing needs root and overlayfs, for a root file system of
its own (lib/packaged.py).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/vm"))
import debian  # noqa: E402

BUILD = pathlib.Path(os.environ.get("MUSTER") or ROOT / "build/release/muster").resolve().parent
DEBS = ROOT / "build/deb"
INSIDE = ROOT / "tests/e2e/lib/packaged.py"
NEEDED = ["dpkg-buildpackage", "dh", "fakeroot", "lintian", "patchelf", "scdoc"]
CONFIGURATION = {"muster": [], "muster-coordinator": ["/etc/muster/coordinator.yaml"], "muster-agent": ["/etc/muster/agent.yaml", "/etc/muster/keeper.env"],
                 "muster-doc": []}
# Besides documentation, in /usr/share/doc.
FILES = {
    "muster": """usr/bin/muster usr/bin/muster-keeper usr/share/bash-completion/completions/muster usr/share/fish/vendor_completions.d/muster.fish
        usr/share/man/man1/muster.1.gz usr/share/man/man5/muster-config.5.gz usr/share/man/man5/muster-job.5.gz
        usr/share/man/man8/muster-keeper.8.gz usr/share/zsh/vendor-completions/_muster""",
    "muster-coordinator": """etc/muster/coordinator.yaml lib/systemd/system/muster-backup.service lib/systemd/system/muster-backup.timer
        lib/systemd/system/muster-coordinator.service usr/lib/sysusers.d/muster-coordinator.conf usr/lib/tmpfiles.d/muster-coordinator.conf
        usr/libexec/muster/backup usr/share/man/man8/muster-coordinator.8.gz usr/share/muster/monitoring/alerts.yml
        usr/share/muster/monitoring/dashboard.json""",
    "muster-agent": """etc/muster/agent.yaml etc/muster/keeper.env lib/systemd/system/muster-agent.service lib/systemd/system/muster-keeper.path
        lib/systemd/system/muster-keeper.service usr/lib/sysusers.d/muster-agent.conf usr/lib/tmpfiles.d/muster-agent.conf
        usr/libexec/muster/start-keeper usr/share/lintian/overrides/muster-agent usr/share/man/man8/muster-agent.8.gz""",
    "muster-doc": "",
}
# What a site sets differently from docs/users.md, which starts what is in /usr/local.
OWN = re.compile(r"(ExecStart|EnvironmentFile|ReadWritePaths|WantedBy)=")


def output(*command, **more):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def missing():
    return [tool for tool in NEEDED if shutil.which(tool) is None]


def deb(package):
    found, = DEBS.glob(f"{package}_*.deb")
    return found


def settings(unit):
    return {line for line in unit.splitlines() if "=" in line and not line.startswith("#") and not OWN.match(line)}


def why_no_root():
    """Why there can be no root file system to install in; empty: there can."""
    if os.geteuid() != 0:
        return "only root can install packages"
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-c", "mount -t tmpfs none $0 && mkdir $0/up $0/work $0/root && "
                                "mount -t overlay none -o lowerdir=/,upperdir=$0/up,workdir=$0/work $0/root", folder], capture_output=True, text=True)
    return "" if tried.returncode == 0 else "no overlayfs: " + tried.stderr.strip()


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        built = subprocess.run([ROOT / "dev", "package"], env={**os.environ, "MUSTER_BUILD_DIR": str(BUILD)}, capture_output=True, text=True)
        if built.returncode != 0:  # lintian's findings are among the reasons
            raise AssertionError(built.stdout + built.stderr)

    def test_version_is_that_of_the_program(self):
        version = re.search(r'kVersion\[\] = "(.*)"', (ROOT / "base/version.hpp").read_text())[1]
        for package in FILES:
            self.assertEqual(output("dpkg-deb", "--field", deb(package), "Version").strip(), version)

    def test_each_has_its_files_and_they_are_roots(self):
        for package, files in FILES.items():
            with self.subTest(package=package):
                found = []
                for line in output("dpkg-deb", "--contents", deb(package)).splitlines():
                    mode, owner, _, _, _, path = line.split(None, 5)
                    path = path.split(" -> ")[0].removeprefix("./")
                    self.assertEqual(owner, "root/root", path)
                    self.assertNotEqual(mode[8], "w", path)
                    if mode[0] != "d" and not path.startswith(("usr/share/doc/muster/", f"usr/share/doc/{package}/")):
                        found.append(path)
                self.assertEqual(sorted(found), sorted(files.split()))
                control = subprocess.run(["dpkg-deb", "--info", deb(package), "conffiles"], capture_output=True, text=True).stdout
                self.assertEqual(sorted(control.split()), CONFIGURATION[package])

    def test_documentation_is_complete(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg-deb", "-x", deb("muster-doc"), folder], check=True)
            doc = pathlib.Path(folder) / "usr/share/doc/muster"
            for page in sorted((ROOT / "docs").glob("*.md")):
                self.assertEqual((doc / "docs" / page.name).read_text(), page.read_text())
            self.assertTrue((doc / "examples/hello.yaml").exists())

    def test_units_are_as_hard_as_those_of_the_documentation(self):
        shown, _ = debian.instructions((ROOT / "docs/users.md").read_text())
        units = {path: text for path, text in shown.items() if path.endswith(".service")}
        self.assertEqual(len(units), 3)
        for path, text in units.items():
            name = path.rpartition("/")[2]
            source, = (ROOT / "debian").glob(f"*{name}")
            with self.subTest(unit=name):
                self.assertEqual(settings(text) - settings(source.read_text()), set())
        backup = settings((ROOT / "debian/muster-coordinator.muster-backup.service").read_text())
        self.assertIn("ProtectSystem=strict", backup)

    def test_installed_they_run_the_first_job(self):
        if why := why_no_root():
            self.skipTest(why)
        with tempfile.TemporaryDirectory(prefix="muster-root-") as folder:
            ran = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", sys.executable, INSIDE, folder, DEBS],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        print(ran.stdout)
        self.assertEqual(ran.returncode, 0)


class Tarball(unittest.TestCase):
    def test_needs_only_the_c_library_and_pam(self):
        if why := why_no_root():
            self.skipTest(why)
        subprocess.run([ROOT / "dev", "tarball"], env={**os.environ, "MUSTER_BUILD_DIR": str(BUILD)}, check=True, capture_output=True)
        archive, = (ROOT / "build/tarball").glob("muster-*.tar.gz")
        with tempfile.TemporaryDirectory(prefix="muster-bare-") as folder:
            # A root with a shell and what belongs to the machine.
            bare = pathlib.Path(folder)
            for name in ("bin", "proc", "dev", "tmp", "etc"):
                (bare / name).mkdir()
            (bare / "etc/passwd").write_text("root:x:0:0:root:/tmp:/bin/sh\n")
            shutil.copy("/bin/sh", bare / "bin")
            needed = set(re.findall(r"(/\S+) \(0x", output("ldd", "/bin/sh", BUILD / "muster-keeper", BUILD / "muster")))
            for path in needed:
                if re.search(r"/(ld-linux|lib(c|m|pthread|pam|audit|cap-ng)\.so)", path):
                    (bare / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, bare / path.lstrip("/"))
            subprocess.run(["tar", "-C", bare, "--strip-components=1", "-xzf", archive], check=True)
            script = ("mount -t proc none $0/proc && touch $0/dev/null && mount --bind /dev/null $0/dev/null && ip link set lo up && "
                      "exec chroot $0 /bin/muster run -n 2 -- /bin/sh -c 'echo index $JOB_COMPLETION_INDEX'")
            ran = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", script, folder], capture_output=True, text=True,
                                 timeout=60, env={"PATH": os.environ["PATH"], "HOME": "/tmp"})
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertEqual(sorted(ran.stdout.splitlines()), ["0 | index 0", "1 | index 1"])


if __name__ == "__main__":
    if lacking := missing():
        print(f"packages.py: skipped: not installed: {', '.join(lacking)}")
        sys.exit(0)
    unittest.main(verbosity=2, warnings="ignore")
