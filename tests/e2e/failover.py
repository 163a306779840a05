#!/usr/bin/python3
"""Lists of addresses: agents and clients that find their coordinator at another of its addresses.

    MUSTER=build/release/muster tests/e2e/failover.py [TEST…]

One coordinator moves to and fro between two addresses with its data-dir, which to agents and clients is what a standby that takes over does.
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from command import CommandCase, free_port, poll  # noqa: E402


def yaml_value(text, key):
    return re.search(rf"^\s*{key}: (.+)$", text, re.MULTILINE)[1]


class Moving(CommandCase):
    """A coordinator with two addresses for clients and agents, at one of which it serves; `go` is a file that pods wait for."""
    TLS = False

    def setUp(self):
        super().setUp()
        self.api = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        self.listen = [f"127.0.0.1:{free_port()}" for _ in range(2)]
        self.env["MUSTER_API"] = ",".join(("https://" if self.TLS else "") + address for address in self.api)
        self.go = self.dir / "go"
        self.coordinator = None
        self.move(0)

    def move(self, to):
        """The coordinator dies, and serves at its other address."""
        if self.coordinator:
            self.coordinator.kill()
            self.coordinator.wait()
            self.coordinator.stdout.close()
        tls = ("--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--api-tls", self.api[to], "--listen-tls", self.listen[to]) if self.TLS else \
              ("--api", self.api[to], "--listen", self.listen[to])
        self.coordinator = self.start("coordinator", "--data-dir", "data", *tls, "--log-level", "warn")
        self.local = poll("endpoints", lambda: self.endpoints(self.coordinator.pid))["api"]

    def endpoints(self, pid):
        with contextlib.suppress(FileNotFoundError, ValueError):
            ends = json.loads((self.dir / "data/endpoints.json").read_text())
            return ends if ends["pid"] == pid else None

    def node(self, *flags):
        with open(self.dir / "agent.log", "w", encoding="utf-8") as log:
            agent = self.start("agent", "--coordinator", ",".join(self.listen), "--work-dir", "a", "--name", "n1", "--slots", "4", *flags, stdout=log)
        self.ready()
        return agent

    def ready(self):
        poll("the node is ready", lambda: "Ready" in self.muster("get", "nodes").stdout)

    def log(self):
        return (self.dir / "agent.log").read_text()

    def waits(self, n=2):
        """Arguments for pods that end once `go` exists."""
        return ("-n", str(n), "--", "sh", "-c", f"echo begin; until [ -e {shlex.quote(str(self.go))} ]; do sleep 0.05; done; echo end")

    def running(self, name, n):
        poll(f"{n} pods run", lambda: self.muster("get", "pods", "-l", f"job-name={name}").stdout.count("Running") == n)

    def lines(self, *words):
        """Starts a verb whose output goes to a file; returns both."""
        path = self.dir / f"out{len(list(self.dir.glob('out*')))}"
        with open(path, "w", encoding="utf-8") as out:
            return self.start(*words, stdout=out), path

    def ends_well(self, process, path):
        self.assertEqual(process.wait(60), 0, path.read_text())
        return path.read_text()


class Failover(Moving):
    def test_what_waits_goes_on_at_the_other_address(self):
        self.node()
        self.muster("submit", "--name", "j", *self.waits())
        self.running("j", 2)
        waiting = self.lines("wait", "job/j", "--timeout", "60s")
        following = self.lines("logs", "-f", "job/j", "--index", "0")
        watching = self.lines("get", "jobs", "-w")
        poll("the log is followed", lambda: "begin" in following[1].read_text())
        poll("the job is watched", lambda: "j" in watching[1].read_text())
        self.move(1)
        self.ready()
        self.running("j", 2)
        self.go.touch()
        self.ends_well(*waiting)
        self.assertEqual(re.findall("begin|end", self.ends_well(*following)), ["begin", "end"], "each line once")
        poll("the watch goes on", lambda: "Complete" in watching[1].read_text())
        self.assertEqual(self.log().count(f"registered with {self.listen[1]} as node n1"), 1, self.log())

    def test_run_goes_on_at_the_other_address_and_back(self):
        self.node()
        run = self.lines("run", "--name", "j", *self.waits())
        self.running("j", 2)
        self.assertIn(f"job/j created on {self.api[0]}\n", run[1].read_text())
        for place in (1, 0):
            self.move(place)
            self.running("j", 2)
        self.go.touch()
        said = self.ends_well(*run)
        self.assertEqual(said.count("| begin"), 2, said)
        self.assertEqual(said.count("| end"), 2, said)
        self.assertIn("2/2 succeeded", said)

    def test_a_job_goes_to_the_address_that_answers(self):
        self.move(1)
        self.node()
        run = self.muster("run", "--name", "j", "-n", "1", "--", "true")
        self.assertIn(f"job/j created on {self.api[1]}\n", run.stderr)
        self.assertIn(f"server: http://{self.api[1]}\n", self.muster("kubeconfig").stdout)
        self.assertEqual(self.muster("web").stdout, f"http://{self.api[1]}/\n")
        self.assertEqual(json.loads(self.muster("version", "-o", "json").stdout)["coordinator"]["address"], self.api[1])
        jobs = self.muster("get", "jobs", "-o", "name", "--request-timeout", "1s").stdout  # as completion asks
        self.assertEqual(jobs, "job.batch/j\n")

    def test_a_job_of_a_pod_has_the_list(self):
        self.node()
        shown = self.muster("run", "-n", "1", "--export", "ALL", "--", "sh", "-c", "echo $MUSTER_API")
        self.assertIn(self.env["MUSTER_API"], shown.stdout)

    def test_the_error_names_all_addresses(self):
        self.coordinator.kill()
        self.coordinator.wait()
        refused = self.muster("get", "jobs", "--connect-timeout", "0s", code=4)
        self.assertTrue(refused.stderr.startswith(
            f"muster: cannot reach a coordinator: {self.api[0]}: connection refused; {self.api[1]}: connection refused (from MUSTER_API)\n"),
            refused.stderr)

    def test_an_address_that_is_not_one_is_named(self):
        self.assertIn("MUSTER_API: `head` is not an address", self.muster("get", "jobs", code=2, MUSTER_API="a:1,head").stderr)
        self.assertIn("--coordinator: `head` is not an address",
                      self.muster("agent", "--coordinator", "a:1,head", "--work-dir", "w", code=2).stderr)

    def test_the_agent_says_a_state_once(self):
        agent = self.node()
        self.coordinator.kill()
        self.coordinator.wait()
        both = f"no connection to {self.listen[0]}: "
        poll("it says that no address serves", lambda: f"; {self.listen[1]}: " in self.log())
        self.move(0)
        poll("it is back", lambda: self.log().count("registered with") == 2)
        lines = [line for line in self.log().splitlines() if "no connection to" in line]
        self.assertEqual(len(lines), 2, "the loss, and that no address serves")
        self.assertTrue(all(both in line for line in lines), lines)
        self.assertIsNone(agent.poll())

    def test_a_machine_that_is_gone_costs_two_seconds(self):
        """A queue that is full answers no connection, as a machine that is gone."""
        self.node()
        with socket.socket() as gone, socket.socket() as fills:
            gone.bind(("127.0.0.1", 0))
            gone.listen(0)
            fills.connect(gone.getsockname())
            address = "127.0.0.1:%d" % gone.getsockname()[1]
            self.assertIn("n1", self.muster("get", "nodes", "--api", f"{address},{self.api[0]}").stdout)
            refused = self.muster("get", "nodes", "--api", f"{address},{self.api[1]}", "--connect-timeout", "0s", code=4)
            self.assertIn(f"{address}: no connection within 2 s; {self.api[1]}: connection refused (from --api)", refused.stderr)
            self.start("agent", "--coordinator", f"{address},{self.listen[0]}", "--hollow", "--name", "h1")
            poll("the agent passes it over", lambda: "h1" in self.muster("get", "nodes").stdout)


class FailoverOverTls(Moving):
    TLS = True

    def setUp(self):
        super().setUp()
        for out in (".config/muster/token", "n1.token"):
            words = ("--node", "n1") if out.startswith("n1") else ()
            self.muster("token", "create", *words, "--out", out, "--api", self.local)

    def test_one_authority_at_both_addresses(self):
        self.node("--token-file", "n1.token")
        run = self.lines("run", "--name", "j", *self.waits())
        self.running("j", 2)
        self.move(1)
        self.running("j", 2)
        self.go.touch()
        self.assertIn("2/2 succeeded", self.ends_well(*run))
        self.assertIn(f"registered with {self.listen[1]} as node n1", self.log())
        config = self.muster("kubeconfig").stdout
        self.assertEqual(yaml_value(config, "server"), f"https://{self.api[1]}")
        self.assertIn(f"- https://{self.api[1]}\n", config)
        self.assertTrue(self.muster("web").stdout.startswith(f"https://{self.api[1]}/#login="))
        token = json.loads(self.muster("token", "credential").stdout)["status"]["token"]
        self.assertTrue((self.dir / ".config/muster/token").read_text().startswith(token))


if __name__ == "__main__":
    unittest.main()
