"""Installs Debian's packages into a root file system of its own and uses them.

    unshare --mount --net --pid --fork packaged.py FOLDER DEBS

The root file system is this machine's with an overlay, and there is no systemd in it: Service does what systemd would do with a unit. Leaves
nothing behind: mounts and processes end with their namespaces.
"""
import os
import pathlib
import pwd
import queue
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from world import eventually  # noqa: E402

UNITS = pathlib.Path("/lib/systemd/system")
BACKUPS = pathlib.Path("/var/backups/muster")
WATCHDOG_US = 500_000  # the units' own is too long for a test
DEBS = []
# What docs/packages.md has people type on one machine.
DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs/packages.md"
DOCUMENTED = re.search(r"^## One machine\n\n```console\n(.*?)\n```$", DOCUMENT.read_text(), re.M | re.S)[1].split("\n")


def enter(folder, debs):
    """Makes FOLDER/root the root file system. Returns where the packages are there."""
    top = pathlib.Path(folder)
    run = subprocess.run
    run(["mount", "--make-rprivate", "/"], check=True)
    run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", top], check=True)
    for name in ("up", "work", "root"):
        (top / name).mkdir()
    root = top / "root"
    run(["mount", "-t", "overlay", "none", "-o", f"lowerdir=/,upperdir={top}/up,workdir={top}/work", root], check=True)
    run(["mount", "-t", "proc", "none", root / "proc"], check=True)
    run(["mount", "--rbind", "/dev", root / "dev"], check=True)
    run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", root / "tmp"], check=True)
    run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", root / "run"], check=True)
    run(["ip", "link", "set", "lo", "up"], check=True)
    for path in debs:
        shutil.copy(path, root / "run")
    os.chroot(root)
    os.chdir("/")
    for path in ("/var/lib/muster", "/var/lib/muster-agent", "/etc/muster", str(BACKUPS)):
        shutil.rmtree(path, ignore_errors=True)
    return [f"/run/{path.name}" for path in debs]


def said(*command, user=None, **more):
    """Runs a command, as this user, and returns its output."""
    if user is not None:
        command = ("setpriv", "--reuid", user, "--regid", user, "--init-groups", *command)
        more.setdefault("env", {"PATH": "/usr/bin:/bin", "HOME": pwd.getpwnam(user).pw_dir})
        more.setdefault("cwd", "/tmp")
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, **more)
    if ran.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: exit {ran.returncode}\n{ran.stdout}")
    return ran.stdout


class Service:
    """A unit as systemd would run it, without the restrictions: user, runtime directory, commands, environment and notifications."""

    def __init__(self, name):
        self.name, self.process = name, None
        self.settings = {}
        for line in (UNITS / f"{name}.service").read_text().splitlines():
            if match := re.match(r"(\w+)=(.*)", line):
                self.settings.setdefault(match[1], []).append(match[2])

    def one(self, key, otherwise=None):
        return self.settings.get(key, [otherwise])[-1]

    def start(self, **environment):
        user = self.one("User")
        who = pwd.getpwnam(user) if user else None
        if (name := self.one("RuntimeDirectory")):
            run = pathlib.Path("/run") / name
            run.mkdir(exist_ok=True)
            os.chown(run, who.pw_uid, who.pw_gid)
        for command in self.settings.get("ExecStartPre", []):
            assert command.startswith("+"), command  # with full privileges
            said(*shlex.split(command[1:]))
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **environment}
        for line in self.settings.get("Environment", []):
            env = {**dict(pair.split("=", 1) for pair in shlex.split(line)), **env}
        command = shlex.split(self.one("ExecStart"))
        if who:
            env |= {"HOME": who.pw_dir, "USER": user}
            command = ["setpriv", "--reuid", user, "--regid", user, "--init-groups", *command]
        if self.one("Type") == "oneshot":
            return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        path = f"/run/notify-{self.name}"
        pathlib.Path(path).unlink(missing_ok=True)
        ears, self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), queue.Queue()
        ears.bind(path)
        os.chmod(path, 0o666)
        threading.Thread(target=self.listen, args=(ears, self.heard), daemon=True).start()
        env["NOTIFY_SOCKET"] = path
        if self.one("WatchdogSec"):
            env["WATCHDOG_USEC"] = str(WATCHDOG_US)
        self.log = open(f"/tmp/{self.name}.log", "ab")
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.hears("READY=1")
        return self

    @staticmethod
    def listen(ears, heard):
        while True:  # as systemd does: a daemon never waits for it
            heard.put(ears.recv(4096).decode().strip())

    def hears(self, word, timeout=30):
        try:
            while self.heard.get(timeout=timeout) != word:
                pass
        except queue.Empty:
            raise AssertionError(f"{self.name} does not say {word}:\n" + pathlib.Path(f"/tmp/{self.name}.log").read_text()) from None

    def stop(self):
        self.process.send_signal(getattr(signal, self.one("KillSignal", "SIGTERM")))
        return self.process.wait(30)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        said("dpkg", "--install", *DEBS)
        for user in ("ada", "mallory"):
            said("useradd", "--create-home", user)
        cls.coordinator, cls.keeper, cls.agent = (Service(f"muster-{name}") for name in ("coordinator", "keeper", "agent"))
        cls.coordinator.start()
        assert any(pathlib.Path(line.removeprefix("PathExists=").strip()).exists()
                   for line in (UNITS / "muster-keeper.path").read_text().splitlines() if line.startswith("PathExists=")), "the path unit starts no keeper"
        # The agent may come first: it must wait for root's keeper, and start none.
        cls.keeper.start()
        cls.agent.start()

    def test_accounts_and_directories(self):
        for user in ("muster", "muster-agent"):
            account = pwd.getpwnam(user)
            self.assertLess(account.pw_uid, 1000)
            self.assertIn(account.pw_shell, ("/usr/sbin/nologin", "/sbin/nologin"))
        wanted = {"/var/lib/muster": "root 755", "/var/lib/muster/data": "muster 700", "/var/backups/muster": "muster 700",
                  "/var/lib/muster-agent": "root 755", "/var/lib/muster-agent/work": "muster-agent 700",
                  "/var/lib/muster-agent/work/keeper": "root 711"}
        self.assertEqual({path: said("stat", "-c", "%U %a", path).strip() for path in wanted}, wanted)

    def test_a_first_job_runs_as_documented(self):
        _, account, submit, created, logs = DOCUMENTED
        said("sh", "-c", account.removeprefix("# "))
        self.assertEqual(said("sh", "-c", submit.removeprefix("ada$ "), user="ada"), created + "\n")
        lines = said("sh", "-c", logs.removeprefix("ada$ "), user="ada").splitlines()
        self.assertEqual(sorted(line.rpartition(" | ")[2] for line in lines), [f"index {n} as ada" for n in range(3)])
        with self.assertRaisesRegex(AssertionError, "exit 5"):
            said("muster", "submit", "-n", "1", "--", "true", user="mallory")

    def test_pods_survive_an_upgrade(self):
        said("muster", "submit", "--name", "stays", "-n", "1", "--", "sh", "-c", "echo begun; while ! test -e /tmp/leave; do sleep 0.1; done; echo left", user="ada")
        def logs():
            return said("muster", "logs", "job/stays", user="ada")
        eventually(lambda: "begun" in logs(), "the pod's first line")
        said("dpkg", "--install", *DEBS)
        self.assertEqual((self.agent.stop(), self.coordinator.stop()), (0, 0))
        self.coordinator.hears("STOPPING=1")
        self.keeper.process.send_signal(signal.SIGTERM)  # systemctl reload: it stays, since it runs a pod
        self.coordinator.start()
        self.agent.start()
        eventually(lambda: "SIGTERM" in pathlib.Path("/tmp/muster-keeper.log").read_text(), "the keeper's reason to stay")
        pathlib.Path("/tmp/leave").touch()
        said("muster", "wait", "job/stays", "--timeout", "60s", user="ada")
        self.assertEqual([line.rpartition(" | ")[2] for line in logs().splitlines()], ["begun", "left"])

    def test_watchdog_hears_of_the_daemons(self):
        for service in (self.coordinator, self.agent):
            service.hears("WATCHDOG=1")
            service.hears("WATCHDOG=1")

    def test_another_group_has_a_role_after_a_reload(self):
        said("groupadd", "bio")
        said("usermod", "-aG", "bio", "mallory")
        configuration = pathlib.Path("/etc/muster/coordinator.yaml")
        text = configuration.read_text()
        configuration.write_text(text.replace("users: [users]", "users: [users, bio]"))
        said("muster", "config", "check")
        said("sh", "-c", self.coordinator.one("ExecReload").replace("$MAINPID", str(self.coordinator.process.pid)))
        eventually(lambda: "bio" in pathlib.Path("/tmp/muster-coordinator.log").read_text(), "the reload")
        said("muster", "submit", "-n", "1", "--", "true", user="mallory")
        configuration.write_text(text)
        said("sh", "-c", self.coordinator.one("ExecReload").replace("$MAINPID", str(self.coordinator.process.pid)))

        def refused():
            try:
                said("muster", "submit", "-n", "1", "--", "true", user="mallory")
            except AssertionError as error:
                return "exit 5" in str(error)
            return False
        eventually(refused, "the second reload")

    def test_backups_are_verified_and_rotated(self):
        backup = Service("muster-backup")
        old = [BACKUPS / f"muster-2020010{day}T000000Z" for day in range(1, 9)]
        for one in old:
            said("install", "-d", "-o", "muster", str(one))
        made = backup.start(MUSTER_BACKUP_KEEP="3")
        self.assertEqual(made.returncode, 0, made.stdout)
        left = sorted(BACKUPS.iterdir())
        self.assertEqual(left[:2], old[-2:])
        self.assertEqual(len(left), 3)
        self.assertEqual(said("stat", "-c", "%U %a", str(left[2])), "muster 700\n")
        said("muster", "verify", "--data-dir", str(left[2]), user="muster")

        refused = backup.start(MUSTER_BACKUP_KEEP="0")
        self.assertEqual((refused.returncode, refused.stdout), (2, "backup: MUSTER_BACKUP_KEEP=0: must be a number, at least 1\n"))
        # A copy that does not verify counts for nothing.
        pathlib.Path("/tmp/fake").mkdir(exist_ok=True)
        fake = pathlib.Path("/tmp/fake/muster")
        fake.write_text('#!/bin/sh\n[ "$1" != backup ] || exec mkdir "$2"\nexit 1\n')
        fake.chmod(0o755)
        shutil.rmtree(left[2])  # the names have the second in which they were made
        failed = backup.start(MUSTER_BACKUP_KEEP="1", PATH="/tmp/fake:/usr/bin:/bin")
        self.assertEqual(failed.returncode, 1, failed.stdout)
        self.assertRegex(failed.stdout, r"muster-.*Z\.damaged does not verify\n")
        self.assertEqual(sorted(BACKUPS.iterdir())[:2], old[-2:])

    def test_keeper_explains_itself(self):
        self.assertIn("usage", said("sh", "-c", "muster-keeper x || test $? = 2"))
        self.assertIn("Usage: muster-keeper WORK_DIR CLUSTER_ID", said("muster-keeper", "--help"))
        self.assertRegex(said("muster-keeper", "--version"), r"^muster-keeper \d+\.\d+\.\d+\nprotocols: keeper \d+, ")

    def test_keeper_without_a_key_says_where_it_belongs(self):
        pathlib.Path("/tmp/none").mkdir(exist_ok=True)
        said("mount", "--bind", "/tmp/none", "/var/lib/muster")
        try:
            with self.assertRaisesRegex(AssertionError, r"exit 1\nmuster-keeper: /etc/muster/permit.pub: no such file; copy "):
                said("/usr/libexec/muster/start-keeper")
        finally:
            said("umount", "/var/lib/muster")

    def test_units_are_valid(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("there is no systemd-analyze")
        names = sorted(str(path) for path in UNITS.glob("muster-*"))
        self.assertEqual(len(names), 6)
        found = said("systemd-analyze", "verify", "--man=no", *names)
        self.assertEqual([line for line in found.splitlines() if "muster" in line], [])

    def test_zz_removed_they_leave_configuration_and_state(self):
        self.agent.stop()
        self.keeper.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.keeper.process.wait(30), 0)
        self.coordinator.stop()
        packages = ["muster-agent", "muster-coordinator", "muster-doc", "muster"]
        said("dpkg", "--remove", *packages)
        self.assertEqual(list(UNITS.glob("muster-*")), [])
        self.assertIsNone(shutil.which("muster", path="/usr/bin"))
        self.assertEqual(sorted(os.listdir("/etc/muster")), ["agent.yaml", "coordinator.yaml", "keeper.env"])
        said("dpkg", "--purge", *packages)
        self.assertFalse(pathlib.Path("/etc/muster").exists())
        self.assertTrue(pathlib.Path("/var/lib/muster/data/CURRENT").exists() or any(pathlib.Path("/var/lib/muster/data").iterdir()))


if __name__ == "__main__":
    DEBS = enter(sys.argv[1], sorted(pathlib.Path(sys.argv[2]).glob("*.deb")))
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
