#!/usr/bin/python3
"""Pods that have CPUs for themselves (muster agent --cpu-binding cores), with real processes.

    MUSTER=build/release/muster tests/e2e/cpus.py [TEST…]

The agent may run on two CPUs of this machine.
"""
import os
import pathlib
import pwd
import re
import signal
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished, sh_job  # noqa: E402
import users  # noqa: E402

# Writes what it may run on and lasts until the file `go` exists.
SHOWS = ('echo "$JOB_COMPLETION_INDEX $MUSTER_ATTEMPT $(grep Cpus_allowed_list /proc/self/status | cut -f2) ${MUSTER_CPUS-none}" >>$WITNESS/cpus; '
         'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0')


def text(cpus):
    """As the kernel writes a list of at most two."""
    cpus = sorted(cpus)
    return f"{cpus[0]}-{cpus[1]}" if len(cpus) == 2 and cpus[1] == cpus[0] + 1 else ",".join(map(str, cpus))


class Cpus(World):
    def setUp(self):
        mine = sorted(os.sched_getaffinity(0))
        if len(mine) < 2:
            self.skipTest("this machine has one CPU")
        self.both = mine[:2]
        os.sched_setaffinity(0, self.both)  # of the daemons, too
        self.addCleanup(os.sched_setaffinity, 0, mine)

    def start(self, *flags, slots=4):
        self.flags = ("--cpu-binding", "cores", *flags)
        self.it = self.cluster(agents=0, grace="30s")
        self.seeing = self.witness(self.it)
        self.start_agent(slots)
        self.it.wait_nodes()

    def start_agent(self, slots=4):
        self.it.start_agent("n1", slots=slots, extra=self.flags)

    def job(self, name, cpus, completions=1, limit=None, **spec):
        """`cpus`: what each pod requests."""
        job = self.seeing.job(name, SHOWS.replace("$WITNESS/cpus", f"$WITNESS/{name}"), completions, **spec)
        main = job["spec"]["template"]["spec"]["containers"][0]
        main["resources"] = {"requests": {"cpu": cpus} if cpus else {}, "limits": {"cpu": limit} if limit else {}}
        self.submit(self.it, job)

    def shown(self, name, count=1, attempt=0):
        """Of each index: what it may run on, and the variable."""
        def look():
            path = self.seeing.folder / name
            lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
            found = {int(index): (cpus, variable) for index, tried, cpus, variable in lines if int(tried) == attempt}
            return len(found) == count and found
        return eventually(look, f"the pods of {name}, attempt {attempt}")

    def bound(self, name, count=1, attempt=0):
        """The CPUs of each index, which are its own."""
        shown = self.shown(name, count, attempt)
        for cpus, variable in shown.values():
            self.assertEqual(cpus, variable)
        return {index: cpus for index, (cpus, _) in shown.items()}

    def let_go(self):
        (self.seeing.folder / "go").touch()

    def said(self, *args):
        ran = self.muster(*args, env={**os.environ, "MUSTER_API": self.it.api_addr})
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def pod(self, name, index=0):
        return next(p["metadata"]["name"] for p in self.pods_of(self.it, name)
                    if p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == str(index)
                    and p["status"]["phase"] in ("Pending", "Running"))

    def test_pods_have_cpus_of_their_own(self):
        self.start()
        self.job("own", "1", 2)
        own = self.bound("own", 2)
        self.assertEqual(sorted(own.values()), [str(cpu) for cpu in self.both])
        # Whoever requests none, or not whole ones, or may use more, runs anywhere.
        self.job("free", None)
        self.assertEqual(self.shown("free"), {0: (text(self.both), "none")})
        for index, cpus in own.items():
            pod = self.pod("own", index)
            eventually(lambda: re.search(rf"^CPUs of its own: +{cpus}$", self.said("describe", "pod", pod), re.M), f"describe shows {cpus}")
            session = self.said("exec", pod, "--", "sh", "-c", "grep Cpus_allowed_list /proc/self/status | cut -f2; echo $MUSTER_CPUS")
            self.assertEqual(session, f"{cpus}\n{cpus}\n")
        node = self.said("describe", "node", "n1")
        self.assertIn(f"Running pods: 3; CPUs of their own: 2 ({text(self.both)})\n", node)
        self.assertRegex(node, rf"{self.pod('own', 1)} +\S+ ago +{own[1]}\n")
        self.assertRegex(node, rf"{self.pod('free')} +\S+ ago +<none>\n")
        self.let_go()
        for name in ("own", "free"):
            self.it.wait(name, finished)
        (self.seeing.folder / "go").unlink()
        self.job("half", "500m")
        self.job("more", "1", limit="2")
        for name in ("half", "more"):
            self.assertEqual(self.shown(name), {0: (text(self.both), "none")}, name)
        self.let_go()

    def test_both_go_to_one_pod_and_on_to_the_next(self):
        self.start(slots=1)
        self.let_go()
        self.job("whole", "2", 20, parallelism=4, limit="2")
        self.it.wait("whole", finished)
        self.assertEqual(self.bound("whole", 20), dict.fromkeys(range(20), text(self.both)))

    def test_no_cpu_is_given_twice_whatever_dies(self):
        self.start("--cpu", "4")
        self.job("first", "1", backoffLimit=5)
        first = self.bound("first")[0]
        self.it.kill_agent("n1")
        self.start_agent()
        self.job("second", "1", backoffLimit=5)
        second = self.bound("second")[0]
        self.assertEqual({first, second}, {str(cpu) for cpu in self.both})
        # The node claims to have more than it may use: the pod runs, on any.
        self.job("third", "2", backoffLimit=5)
        self.assertEqual(self.shown("third"), {0: (text(self.both), "none")})
        log = self.it.dir / "n1/keeper/keeper.log"
        eventually(lambda: "not bound, 2 CPUs of its own are not free" in log.read_text(), "the log says so")
        pod = self.pod("first")
        eventually(lambda: re.search(rf"^CPUs of its own: +{first}$", self.said("describe", "pod", pod), re.M), "it has it still")
        # What the keeper's processes had is free once they are gone.
        os.kill(self.keeper_of(self.it, "n1"), signal.SIGKILL)
        again = {name: self.shown(name, attempt=1)[0] for name in ("first", "second", "third")}
        given = [cpu for cpus, variable in again.values() if variable != "none" for cpu in ([*map(str, self.both)] if "-" in cpus else cpus.split(","))]
        self.assertEqual(sorted(given), [str(cpu) for cpu in self.both], again)
        self.let_go()
        for name in ("first", "second", "third"):
            self.it.wait(name, finished)

    def test_without_the_setting_nothing_is_bound(self):
        self.start()
        self.it.agents["n1"].terminate()
        self.it.agents["n1"].wait(20)
        self.flags = ()
        self.start_agent()
        self.job("plain", "1")
        self.assertEqual(self.shown("plain"), {0: (text(self.both), "none")})
        self.assertNotIn("CPUs of its own", self.said("describe", "pod", self.pod("plain")))
        self.let_go()


class Owners(users.RootKeeper):
    """Where a keeper that runs as root starts pods as their owners."""

    @classmethod
    def setUpClass(cls):
        users.for_class(cls)

    def start_agent(self, *flags):
        return super().start_agent("--cpu-binding", "cores", *flags)

    def test_pods_of_owners_have_cpus_of_their_own(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("this machine has one CPU")
        both = self.dir / "both"
        both.mkdir()
        both.chmod(0o777)
        # They wait for each other, so both run at once.
        script = f"touch {both}/$$(id -u); until [ $$(ls {both} | wc -l) = 2 ]; do sleep 0.02; done; " \
                 "id -u; grep Cpus_allowed_list /proc/self/status | cut -f2; echo $$MUSTER_CPUS"
        for user in ("alice", "bob"):
            job = sh_job(f"of-{user}", script, 1)
            job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
            self.create(user, job)
        seen = set()
        for user in ("alice", "bob"):
            self.assertEqual(self.end(user, f"of-{user}"), "Complete", (self.dir / "keeper.log").read_text())
            uid, allowed, variable = self.log(user, f"of-{user}")[1].split()
            self.assertEqual(int(uid), pwd.getpwnam(users.name(user)).pw_uid)
            self.assertEqual(allowed, variable)
            self.assertTrue(allowed.isdigit(), allowed)
            seen.add(allowed)
        self.assertEqual(len(seen), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
