#!/usr/bin/python3
"""Volumes, private /tmp and scratch directories, on real daemons: as a plain user, and with a root keeper and real users.

    MUSTER=build/release/muster tests/e2e/volumes.py [TEST…]

The suite with real users needs root; without it, only the others run.
"""
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import users  # noqa: E402
from world import World, condition, eventually, finished, sh_job  # noqa: E402

MEMORY = {"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}


def with_volumes(job, volumes=(), mounts=(), **annotations):
    pod = job["spec"]["template"]["spec"]
    pod["volumes"] = list(volumes)
    pod["containers"][0]["volumeMounts"] = [{"name": name, "mountPath": path, **more} for name, path, more in mounts]
    job["metadata"].setdefault("annotations", {}).update({f"muster.dev/{key}".replace("_", "-"): value for key, value in annotations.items()})
    return job


def mounted(text):
    """The mount namespaces of all processes that have such a mount."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if text in pathlib.Path("/proc", pid, "mountinfo").read_text():
                found.add(os.readlink(f"/proc/{pid}/ns/mnt"))
        except OSError:
            pass
    return found


def nothing_in_memory(before):
    """Whether all that is new in /dev/shm are empty directories of keepers."""
    return all(path.is_dir() and not any(path.iterdir()) for path in set(pathlib.Path("/dev/shm").iterdir()) - before)


def setUpModule():
    if os.geteuid() == 0:
        users.setUpModule()


class Plain(World):
    """One user's node: mounts are made in a user namespace."""

    def setUp(self):
        self.c = self.cluster(agents=1, slots=4)
        self.work = self.c.dir / "node-0"
        self.scratch = self.work / "scratch"

    def run_job(self, job, want="Complete"):
        self.submit(self.c, job)
        name = job["metadata"]["name"]
        eventually(lambda: finished(self.c.api.job(name)), f"the end of {name}", 40)
        attempts = self.c.api.call("GET", f"/apis/muster.dev/v1/namespaces/default/jobs/{name}/attempts")[1]["items"]
        self.assertTrue(condition(self.c.api.job(name), want), attempts)
        return attempts

    def log(self, name):
        return self.muster("logs", f"job/{name}", cluster=self.c).stdout

    def nothing_left_in_scratch(self):
        eventually(lambda: not list(self.scratch.iterdir()), "an empty scratch directory")

    def test_scratch_is_shared_by_the_containers_and_goes_with_the_pod(self):
        job = with_volumes(sh_job("s", "cat $MUSTER_SCRATCH/a; echo $MUSTER_SCRATCH; stat -c %a $MUSTER_SCRATCH", 1), [{"name": "w", "emptyDir": {}}])
        job["spec"]["template"]["spec"]["initContainers"] = [
            {"name": "first", "command": ["sh", "-c", "mkdir -p $MUSTER_SCRATCH/d/e; chmod 0 $MUSTER_SCRATCH/d; echo from init > $MUSTER_SCRATCH/a"]}]
        self.run_job(job)
        text = self.log("s")
        self.assertIn("from init\n", text)
        self.assertIn(f"{self.scratch}/", text)
        self.assertIn("\n700", text)
        self.nothing_left_in_scratch()

    def test_mounts_are_private_to_the_pod(self):
        job = with_volumes(sh_job("m", """
            set -e
            echo x > /data/sub/file; cat /mnt/hello; stat -f -c %T /mem; df -k --output=size /mem | tail -1
            ! head -c 2000000 /dev/zero > /mem/big 2>/dev/null
            ! touch /mnt/no 2>/dev/null
            cd /etc/muster-here && pwd
            echo $MUSTER_SCRATCH
            grep -c nosuid,nodev /proc/self/mountinfo
            """, 1), [{"name": "d", "emptyDir": {}}, MEMORY, {"name": "h", "hostPath": {"path": str(self.c.dir / "host"), "type": "Directory"}}],
            [("d", "/data/sub", {}), ("d", "/etc/muster-here", {"subPath": "a/b"}), ("mem", "/mem", {}), ("h", "/mnt", {"readOnly": True})])
        (self.c.dir / "host").mkdir()
        (self.c.dir / "host/hello").write_text("hello\n")
        self.run_job(job)
        lines = self.log("m")
        for text in ("hello", "tmpfs", "1024", "/etc/muster-here", "/data/sub"):
            self.assertIn(text, lines)
        self.nothing_left_in_scratch()
        for made in ("/data/sub", "/etc/muster-here"):
            self.assertFalse(os.path.exists(made))
        self.assertFalse(mounted(str(self.scratch)))

    def test_containers_share_a_volume_in_memory(self):
        job = with_volumes(sh_job("shared", "cat /mem/of-init; stat -f -c %T /mem; until test -e /mem/of-side; do sleep 0.02; done; cat /mem/of-side", 1),
                           [MEMORY], [("mem", "/mem", {})])
        pod = job["spec"]["template"]["spec"]
        mount = [{"name": "mem", "mountPath": "/other"}]
        pod["initContainers"] = [{"name": "first", "command": ["sh", "-c", "echo init > /other/of-init"], "volumeMounts": mount}]
        pod["containers"].append({"name": "side", "command": ["sh", "-c", "echo side > /other/new; mv /other/new /other/of-side"], "volumeMounts": mount})
        before = set(pathlib.Path("/dev/shm").iterdir())
        self.run_job(job)
        self.assertEqual(self.log("shared"), "init\ntmpfs\nside\n")
        eventually(lambda: nothing_in_memory(before), "nothing is left in memory")

    def test_failed_volume_names_its_reason(self):
        for name, source, why in (("none", {"hostPath": {"path": "/no/such", "type": "Directory"}}, "hostPath /no/such: No such file or directory"),
                                  ("file", {"hostPath": {"path": "/etc/passwd", "type": "Directory"}}, "hostPath /etc/passwd: it is not a directory"),
                                  ("key", {"secret": {"secretName": "nobodys"}}, "secret nobodys: ")):
            ends = self.run_job(with_volumes(sh_job(name, "echo ran", 1, backoffLimit=0), [{"name": "v", **source}], [("v", "/mnt", {})]), "Failed")
            self.assertEqual((ends[0]["exitCode"], ends[0]["cause"]), (126, "start-failed"), ends)
            self.assertIn(why, ends[0]["message"])
        self.assertNotIn("ran", self.log("key"))

    def test_private_tmp_is_empty_and_removed(self):
        mark = pathlib.Path(f"/tmp/muster-volumes-{os.getpid()}")
        self.addCleanup(lambda: mark.unlink(missing_ok=True))
        mark.write_text("")
        job = with_volumes(sh_job("t", f"test ! -e {mark}; echo $?; touch {mark}-2; ls /tmp | wc -l; stat -c %a /var/tmp; touch $MUSTER_SCRATCH/x", 1),
                           [{"name": "w", "emptyDir": {}}], private_tmp="true")
        self.run_job(job)
        self.assertEqual(self.log("t").split()[0], "0")
        self.assertFalse(os.path.exists(f"{mark}-2"))
        self.nothing_left_in_scratch()

    def test_a_command_joins_the_containers_mounts(self):
        job = with_volumes(sh_job("e", "echo in memory > /mnt/a; touch $MUSTER_SCRATCH/ready; sleep 60", 1), [MEMORY, {"name": "w", "emptyDir": {}}],
                           [("mem", "/mnt", {})])
        self.submit(self.c, job)
        eventually(lambda: list(self.scratch.glob("*/w/ready")), "the pod")
        eventually(lambda: self.pods_of(self.c, "e")[0]["status"]["phase"] == "Running", "the report that it runs")
        ran = self.muster("exec", "--api", self.c.api_addr, "job/e", "--", "cat", "/mnt/a")
        self.assertEqual((ran.returncode, ran.stdout), (0, "in memory\n"), ran.stderr)
        self.muster("delete", "job/e", cluster=self.c)
        self.nothing_left_in_scratch()

    def test_kills_of_daemons_leave_no_volumes(self):
        job = with_volumes(sh_job("c", "touch $MUSTER_SCRATCH/ready /mnt/$MUSTER_ATTEMPT; sleep 60", 1, backoffLimit=6),
                           [MEMORY, {"name": "w", "emptyDir": {}}], [("mem", "/mnt", {})])
        self.submit(self.c, job)
        ready = eventually(lambda: list(self.scratch.glob("*/w/ready")), "the pod")
        self.assertTrue(mounted(" /mnt "))
        keeper = self.keeper_of(self.c, "node-0")
        self.c.kill_agent("node-0")
        os.kill(keeper, signal.SIGKILL)
        self.c.start_agent("node-0")
        eventually(lambda: (now := list(self.scratch.glob("*/w/ready"))) and now != ready, "the next attempt, and nothing of the first", 40)
        self.muster("delete", "job/c", cluster=self.c)
        self.nothing_left_in_scratch()
        eventually(lambda: not mounted(" /mnt "), "no mount")

    def test_pod_above_its_volume_limit_is_evicted(self):
        job = with_volumes(sh_job("g", "head -c 3000000 /dev/zero > $MUSTER_SCRATCH/big; sleep 60", 1, backoffLimit=0),
                           [{"name": "w", "emptyDir": {"sizeLimit": "1M"}}])
        ends = self.run_job(job, "Failed")
        self.assertIn('Usage of EmptyDir volume "w" exceeds the limit', ends[0]["message"])
        self.nothing_left_in_scratch()


class Settings(World):
    """Flags of the command line, the agent and the coordinator."""

    def test_run_takes_scratch_and_private_tmp(self):
        ran = self.muster("run", "-n", "2", "--scratch=1Gi", "--private-tmp", "--", "sh", "-c",
                          "test -d $MUSTER_SCRATCH -a $(ls /tmp | wc -l) -lt 3 && echo fine")
        self.assertEqual((ran.returncode, ran.stdout.count("fine")), (0, 2), ran)
        wrong = self.muster("run", "--scratch=5", "-n", "1", "--", "true")
        self.assertEqual(wrong.returncode, 2, wrong)
        self.assertIn("--scratch: `5`: needs a unit, such as --scratch=5Gi", wrong.stderr)

    def test_images_run_by_the_sites_command(self):
        c = self.cluster(extra=["--image-runtime", "/usr/bin/env IMAGE={image} sh -c"])
        job = sh_job("i", "", 1)
        job["spec"]["template"]["spec"]["containers"][0].update(image="lab/tool:3", command=["echo $IMAGE"])
        self.submit(c, job)
        c.wait("i")
        self.assertEqual(self.muster("logs", "job/i", cluster=c).stdout.split()[-1], "lab/tool:3")
        # Without --image-runtime, a container with only an image could never start.
        plain = self.cluster()
        del job["spec"]["template"]["spec"]["containers"][0]["command"]
        code, answer = plain.api.create(job)
        self.assertEqual(code, 422, answer)
        self.assertIn("containers[0].command: Required value: this cluster does not run images", answer["message"])

    def test_pods_that_mount_wait_for_a_node_that_can(self):
        os.environ["MUSTER_KEEPER_NO_MOUNTS"] = "on"
        self.addCleanup(os.environ.pop, "MUSTER_KEEPER_NO_MOUNTS")
        c = self.cluster()
        self.submit(c, with_volumes(sh_job("w", "true", 1), [{"name": "v", "emptyDir": {}}], [("v", "/mnt", {})]))
        why = eventually(lambda: "muster.dev/volumes" in (said := self.muster("why", "job/w", cluster=c).stdout) and said, "why it waits")
        self.assertIn("0 of 1 node", why)
        self.submit(c, with_volumes(sh_job("s", "test -d $MUSTER_SCRATCH", 1), [{"name": "v", "emptyDir": {}}]))
        self.assertTrue(condition(c.wait("s"), "Complete"))


class Owners(users.RootKeeper):
    """Pods of several users, started by a root keeper."""

    def setUp(self):
        super().setUp()
        self.scratch = self.dir / "work.scratch"
        for user in ("alice", "bob"):
            home = pathlib.Path(pwd.getpwnam(users.name(user)).pw_dir)
            home.mkdir(mode=0o700)
            self.addCleanup(shutil.rmtree, home)
            shutil.chown(home, users.name(user), users.name(user))

    def test_users_reach_their_own_volumes_and_nothing_more(self):
        job = with_volumes(sh_job("mine", "echo hers > /mnt/a; id -un; stat -c '%U %a' /mnt; touch $MUSTER_SCRATCH/ready; sleep 60", 1),
                           [{"name": "w", "emptyDir": {}}, {"name": "o", "emptyDir": {}}], [("o", "/mnt", {})])
        self.create("alice", job)
        eventually(lambda: list(self.scratch.glob("*/w/ready")), "the pod")
        self.assertEqual(self.log("alice", "mine")[1].split(), [users.name("alice"), users.name("alice"), "700"])
        pod_dir = next(self.scratch.glob("*/w")).parent
        self.assertEqual((pod_dir.stat().st_uid, oct(pod_dir.stat().st_mode & 0o777)), (0, "0o711"))
        secret = pathlib.Path(pwd.getpwnam(users.name("alice")).pw_dir) / "private"
        secret.write_text("hers\n")
        shutil.chown(secret, users.name("alice"))
        secret.chmod(0o600)
        for title, path in (("dir", f"{pod_dir}/o"), ("file", str(secret)), ("root", "/root"), ("link", f"/home/{users.name('bob')}/link")):
            if title == "link":
                os.symlink(secret, path)
            theirs = with_volumes(sh_job(title, "ls -l /mnt; cat /mnt", 1, backoffLimit=0), [{"name": "h", "hostPath": {"path": path}}], [("h", "/mnt/x", {})])
            self.assertEqual(self.finish("bob", theirs), "Failed", title)
            self.assertNotIn("hers", self.log("bob", title)[1])
            if title in ("file", "link"):  # a directory is mounted, and remains as inaccessible as before
                self.assertIn("Permission denied", self.attempts("bob", title)[0]["message"], title)
        done, text = self.ask("alice", "DELETE", f"{users.JOBS}/mine?propagationPolicy=Background")
        self.assertEqual(done, 200, text)
        eventually(lambda: not list(self.scratch.iterdir()), "an empty scratch directory")

    def test_shared_memory_volume_is_unreachable_for_others(self):
        job = with_volumes(sh_job("shared", "cat /mem/a; stat -c '%U %a' /mem", 1), [MEMORY], [("mem", "/mem", {})])
        pod = job["spec"]["template"]["spec"]
        pod["initContainers"] = [{"name": "first", "command": ["sh", "-c", "echo hers > /other/a"], "volumeMounts": [{"name": "mem", "mountPath": "/other"}]}]
        before = set(pathlib.Path("/dev/shm").iterdir())
        self.assertEqual(self.finish("alice", job), "Complete")
        self.assertEqual(self.log("alice", "shared")[1].split(), ["hers", users.name("alice"), "700"])
        eventually(lambda: nothing_in_memory(before), "nothing is left in memory")

    def test_mounts_over_system_files_gain_no_privileges(self):
        # A root-owned setuid program in a namespace with the user's own /etc: neither the bit nor the file has any effect.
        job = with_volumes(sh_job("etc", """
            mkdir -p $MUSTER_SCRATCH/etc; echo "$(id -un) ALL=(ALL) NOPASSWD: ALL" > $MUSTER_SCRATCH/etc/sudoers
            grep -E '^(NoNewPrivs|CapEff):' /proc/self/status; timeout 5 su -c id root 2>&1 </dev/null; touch /etc/hostname 2>&1; id -u
            """, 1, backoffLimit=0), [{"name": "w", "emptyDir": {}}, {"name": "o", "emptyDir": {}}], [("o", "/etc/ssl", {})])
        self.assertEqual(self.finish("alice", job), "Complete")
        text = self.log("alice", "etc")[1]
        self.assertRegex(text, r"NoNewPrivs:\t1")
        self.assertRegex(text, r"CapEff:\t0{16}")
        self.assertNotIn("uid=0", text)
        self.assertEqual(text.split()[-1], str(pwd.getpwnam(users.name("alice")).pw_uid))

    def test_secrets_are_files_of_their_owner(self):
        who = pwd.getpwnam(users.name("alice"))
        keep = pathlib.Path(who.pw_dir) / ".config/muster/secrets/db"
        subprocess.run(["sh", "-c", f"umask 077; mkdir -p {keep}; echo one > {keep}/user; echo two > {keep}/password"], check=True,
                       preexec_fn=users.become("alice"))
        volume = {"name": "k", "secret": {"secretName": "db", "defaultMode": 0o440, "items": [{"key": "password", "path": "x/pw"}]}}
        job = with_volumes(sh_job("key", "cat /keys/x/pw && stat -c %a /keys/x/pw && ls /keys && touch /keys/no || echo read-only; cd /keys && echo in", 1, backoffLimit=0),
                           [volume], [("k", "/keys", {})])
        self.assertEqual(self.finish("alice", job), "Complete")
        self.assertEqual([w for w in self.log("alice", "key")[1].split("\n") if "touch" not in w], ["two", "440", "x", "read-only", "in", ""])
        self.assertEqual(self.finish("bob", {**job, "metadata": {"name": "bobs"}}), "Failed")

    def test_exec_joins_mounts_and_keeper_kill_leaves_none(self):
        job = with_volumes(sh_job("e", "echo hers > /mnt/a; touch $MUSTER_SCRATCH/ready; sleep 60", 1, backoffLimit=6), [MEMORY, {"name": "w", "emptyDir": {}}],
                           [("mem", "/mnt", {})], private_tmp="true")
        self.create("alice", job)
        ready = eventually(lambda: list(self.scratch.glob("*/w/ready")), "the pod")
        ran = self.run_as("alice", "exec", "job/e", command=["cat", "/mnt/a"])
        self.assertEqual((ran.returncode, ran.stdout), (0, "hers\n"), ran.stderr)
        self.restart_keeper()
        eventually(lambda: (now := list(self.scratch.glob("*/w/ready"))) and now != ready, "the next attempt, and nothing of the first", 40)
        self.ask("alice", "DELETE", f"{users.JOBS}/e?propagationPolicy=Background")
        eventually(lambda: not list(self.scratch.iterdir()), "an empty scratch directory")
        eventually(lambda: not mounted(f"{self.scratch}"), "no mount")


def as_plain_user(suites):
    """Runs the single-user suites as a user other than root, since root could create any directory."""
    with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
        os.chmod(folder, 0o755)
        built = pathlib.Path(os.environ["MUSTER"]).resolve().parent
        for tool in ("muster", "muster-keeper"):
            shutil.copy(built / tool, folder)
        home = pathlib.Path(folder, "home")
        home.mkdir()
        os.chown(home, 54321, 54321)
        env = {**os.environ, "MUSTER": f"{folder}/muster", "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}

        def become():
            os.setgroups([])
            os.setgid(54321)
            os.setuid(54321)
        return subprocess.run([sys.executable, __file__, *suites], env=env, cwd="/", preexec_fn=become, check=False).returncode


def main():
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    if os.geteuid() != 0:
        unittest.main(argv=[sys.argv[0], *(names or ["Plain", "Settings"])], verbosity=2, warnings="ignore")
    own = [one for one in names or ["Plain", "Settings"] if not one.startswith("Owners")]
    code = as_plain_user(own) if own else 0
    if code == 0 and shutil.which("useradd") and (not names or any(one.startswith("Owners") for one in names)):
        unittest.main(argv=[sys.argv[0], *([one for one in names if one.startswith("Owners")] or ["Owners"])], verbosity=2, warnings="ignore")
    sys.exit(code)


if __name__ == "__main__":
    main()
