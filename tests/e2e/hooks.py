#!/usr/bin/python3
"""Programs that run before and after each pod (muster agent --prolog, --epilog), with real processes.

    MUSTER=build/release/muster tests/e2e/hooks.py [TEST…]
"""
import os
import pathlib
import pwd
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, finished, sh_job  # noqa: E402
import users  # noqa: E402

# One line for each process of a pod, in order.
NOTE = 'echo "$(basename $0) $MUSTER_JOB_NAME $JOB_COMPLETION_INDEX $MUSTER_ATTEMPT $MUSTER_NODE_NAME" >>{}/order'


class Hooks(World):
    def start(self, agents=0):
        self.it = self.cluster(agents=agents, grace="30s")
        self.seeing = self.witness(self.it)
        return self.seeing.folder

    def program(self, name, text):
        path = self.it.dir / name
        path.write_text(f"#!/bin/sh\n{NOTE.format(self.seeing.folder)}\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def agent(self, name, prolog=None, epilog=None, slots=2, more=()):
        flags = [*more]
        for hook, text in (("prolog", prolog), ("epilog", epilog)):
            if text is not None:
                flags += [f"--{hook}", self.program(f"{hook}-{name}" if hook == "prolog" else hook, text)]
        self.flags = flags
        self.it.start_agent(name, slots=slots, extra=flags)
        self.it.wait_nodes()

    def order(self):
        path = self.seeing.folder / "order"
        return path.read_text().splitlines() if path.exists() else []

    def typed(self, name, count, *command, more=()):
        self.said("submit", "--name", name, "-n", str(count), *more, "--", *command)

    def said(self, *args, code=0):
        ran = self.muster(*args, cluster=None, env={**os.environ, "MUSTER_API": self.it.api_addr})
        self.assertEqual(ran.returncode, code, ran.stderr)
        return ran.stdout

    def status(self, name):
        status = self.it.wait(name, finished, 40)["status"]
        return status.get("succeeded", 0), status.get("failed", 0), status.get("failedIndexes") or ""

    def node(self, name="n1"):
        node = self.it.api.call("GET", f"/api/v1/nodes/{name}")[1]
        return {c["type"]: c for c in node["status"]["conditions"]}

    def test_they_run_around_each_pod(self):
        self.start()
        self.agent("n1", prolog="", epilog="", slots=1)
        script = f'echo "pod $$MUSTER_JOB_NAME $$JOB_COMPLETION_INDEX $$MUSTER_ATTEMPT $$MUSTER_NODE_NAME" >>{self.seeing.folder}/order; exit $$((JOB_COMPLETION_INDEX == 1))'
        self.submit(self.it, sh_job("both", script, 3, parallelism=3, backoffLimitPerIndex=0))
        self.assertEqual(self.status("both"), (2, 1, "1"))
        order = self.order()
        self.assertEqual(len(order), 9, order)
        for at in range(0, 9, 3):
            what = [line.split(" ", 1) for line in order[at:at + 3]]
            self.assertEqual([w[0] for w in what], ["prolog-n1", "pod", "epilog"], order)
            self.assertEqual(len({w[1] for w in what}), 1, order)

    def test_a_node_whose_prolog_fails_is_avoided_at_no_cost(self):
        self.start()
        self.agent("n1", prolog="echo mounting /scratch; echo no /scratch here >&2; exit 1", epilog="")
        self.agent("n2", prolog="")
        self.typed("free", 6, "sh", "-c", "sleep 0.1")
        self.assertEqual(self.status("free"), (6, 0, ""))
        attempts = self.said("get", "attempts", "job/free", "-o", "json")
        self.assertNotIn('"n1"', attempts)
        ran = [line for line in self.order() if line.endswith(" n1")]
        self.assertTrue(any(line.startswith("prolog-n1") for line in ran), self.order())
        eventually(lambda: sum(line.startswith("epilog") for line in self.order()) == sum(line.startswith("prolog-n1") for line in self.order()),
                   "what the prologs began was cleaned up")
        self.assertIn("prolog of j1/", (log := self.it.log("n1")))
        self.assertIn("failed: no /scratch here", log)
        # Jobs of others see the same, and the node is closed.
        for more in range(10):
            self.typed(f"more-{more}", 2, "sh", "-c", "sleep 0.1")
            self.assertEqual(self.status(f"more-{more}"), (2, 0, ""))
            if self.node().get("StartsFailing", {}).get("status") == "True":
                break
        eventually(lambda: self.node().get("StartsFailing", {}).get("status") == "True", "the node is closed", 30)

    def test_why_names_what_a_prolog_said(self):
        self.start()
        self.agent("n1", prolog="echo no /scratch here; exit 3")
        self.typed("waits", 1, "true")
        eventually(lambda: "prolog: no /scratch here" in self.muster("why", "job/waits", cluster=self.it).stdout, "why says so")

    def test_a_prolog_that_hangs_has_failed(self):
        self.start()
        self.agent("n1", prolog="echo waiting for the server; sleep 1000", more=("--prolog-timeout", "1s"))
        self.agent("n2")
        self.typed("late", 4, "sh", "-c", "sleep 0.1")
        self.assertEqual(self.status("late"), (4, 0, ""))
        self.assertIn("failed: it took longer than 1 s: waiting for the server", self.it.log("n1"))

    def test_a_deleted_pods_prolog_ends(self):
        self.start()
        self.agent("n1", prolog=f"touch {self.seeing.folder}/began; exec sleep 1000", epilog="")
        self.typed("gone", 1, "true")
        eventually((self.seeing.folder / "began").exists, "the prolog runs")
        self.said("delete", "job", "gone")
        eventually(lambda: [line.split()[0] for line in self.order()] == ["prolog-n1", "epilog"], "the epilog ran")
        self.typed("next", 1, "true")

    def test_an_epilog_that_fails_changes_no_end_and_closes_the_node(self):
        self.start()
        self.agent("n1", epilog="echo a process is left; exit 1")
        self.typed("done", 1, "true")
        self.assertEqual(self.status("done"), (1, 0, ""))
        eventually(lambda: "a process is left" in self.node().get("Healthy", {}).get("message", ""), "the node says so")
        self.typed("waits", 1, "true")
        eventually(lambda: "a process is left" in self.muster("why", "job/waits", cluster=self.it).stdout, "why says so")
        self.program("epilog", "")
        self.it.kill_agent("n1")
        self.it.start_agent("n1", slots=2, extra=self.flags)
        self.assertEqual(self.status("waits"), (1, 0, ""))

    def test_an_epilog_follows_a_pod_that_is_deleted(self):
        self.start()
        self.agent("n1", epilog="")
        self.typed("long", 1, "sleep", "1000")
        eventually(lambda: [p for p in self.pods_of(self.it, "long") if p["status"]["phase"] == "Running"], "it runs")
        self.said("delete", "job", "long")
        eventually(lambda: self.order() == ["epilog long 0 0 n1"], "its epilog")

    def test_each_runs_once_whatever_dies(self):
        folder = self.start()
        wait = "until [ -e {}/{} ]; do sleep 0.02; done"
        self.agent("n1", prolog=wait.format(folder, "prolog"), epilog=wait.format(folder, "epilog"))
        job = self.seeing.job("once", "until [ -e $WITNESS/pod ]; do sleep 0.02; done; code=3", 1, backoffLimit=0)
        self.submit(self.it, job)

        def again(what):
            """Replaces the agent while the program runs, and then lets it end."""
            eventually(lambda: self.order()[-1:] and self.order()[-1].startswith(what) or what == "pod" and self.seeing.starts(), f"{what} runs")
            self.it.kill_agent("n1")
            (folder / what.removesuffix("-n1")).touch()
            self.it.start_agent("n1", slots=2, extra=self.flags)
        again("prolog-n1")
        again("pod")
        again("epilog")
        self.assertEqual(self.status("once"), (0, 1, ""))
        self.assertEqual([line.split()[0] for line in self.order()], ["prolog-n1", "epilog"])
        self.seeing.check(self)
        self.assertEqual(self.seeing.ends(), [(0, 0, "end", 3)])


class Owners(users.RootKeeper):
    """Where a keeper that runs as root starts pods as their owners, it names the programs."""

    @classmethod
    def setUpClass(cls):
        users.for_class(cls)

    def program(self, name, text):
        path = self.programs / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return str(path)

    def setUp(self):
        self.programs = pathlib.Path(tempfile.mkdtemp(dir="/opt"))  # which only root can write to
        self.programs.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.programs)
        super().setUp()

    def start_agent(self, *flags):
        return super().start_agent("--prolog", "/its/keeper/names/it", "--epilog", "/its/keeper/names/it", *flags)

    def restart(self, **env):
        seen = self.dir / "seen"
        self.hooks = {f"MUSTER_KEEPER_{hook.upper()}": self.program(hook, f'echo "{hook} $(id -u) $MUSTER_OWNER $MUSTER_JOB_NAME $LD_PRELOAD" >>{seen}')
                      for hook in ("prolog", "epilog")}
        seen.touch()
        seen.chmod(0o666)
        self.restart_keeper(**self.hooks, **env)
        return seen

    def run_one(self, name):
        job = sh_job(name, "true", 1)
        job["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "LD_PRELOAD", "value": "evil"}]
        self.create("alice", job)
        self.assertEqual(self.end("alice", name), "Complete", (self.dir / "keeper.log").read_text())

    def test_they_run_as_root_with_nothing_of_the_job(self):
        seen = self.restart()
        self.run_one("plain")
        alice = users.name("alice")
        self.assertEqual(seen.read_text().splitlines(), [f"prolog 0 {alice} plain ", f"epilog 0 {alice} plain "])

    def test_or_as_the_owner(self):
        seen = self.restart(MUSTER_KEEPER_HOOKS_AS="owner")
        self.run_one("plain")
        alice = pwd.getpwnam(users.name("alice"))
        self.assertEqual(seen.read_text().splitlines(), [f"{hook} {alice.pw_uid} {alice.pw_name} plain " for hook in ("prolog", "epilog")])

    def test_a_failure_names_its_last_line(self):
        self.restart_keeper(MUSTER_KEEPER_PROLOG=self.program("prolog", "echo no /scratch; exit 1"))
        self.create("alice", sh_job("waits", "true", 1))
        eventually(lambda: "failed: no /scratch" in (self.dir / "agent.log").read_text(), "the agent's log says so")

    def test_a_program_that_others_could_replace_is_refused(self):
        loose = self.program("prolog", "true")
        self.programs.chmod(0o777)
        for env, why in (({"MUSTER_KEEPER_PROLOG": loose}, "others than root could replace it"),
                         ({"MUSTER_KEEPER_EPILOG": "bin/true"}, "MUSTER_KEEPER_EPILOG must be an absolute path"),
                         ({"MUSTER_KEEPER_HOOKS_AS": "me"}, "MUSTER_KEEPER_HOOKS_AS must be root or owner")):
            self.assertEqual(self.restart_keeper(agent=False, **env).wait(20), 5)
            self.assertIn(why, (self.dir / "keeper.log").read_text())

    def test_a_program_that_the_keeper_does_not_name_is_no_success(self):
        self.restart_keeper()
        self.create("alice", sh_job("waits", "true", 1))
        eventually(lambda: "root's keeper has no prolog: set MUSTER_KEEPER_PROLOG" in (self.dir / "agent.log").read_text(), "the agent's log says so")


if __name__ == "__main__":
    unittest.main(verbosity=2)
