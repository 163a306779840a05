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
import shutil
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from command import CommandCase, DEADLINE, MUSTER, free_port, poll  # noqa: E402


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


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("ip"), "needs root and ip(8), to make network namespaces")
class GoneMachine(CommandCase):
    """Two machines for the coordinator and one for its clients and an agent: network namespaces. A machine that is gone closes no connection."""

    def setUp(self):
        super().setUp()
        self.spaces = {name: f"mu{name}{os.getpid() % 100000}" for name in ("head", "next", "user")}
        self.addresses = {"head": "10.78.1.1", "next": "10.78.2.1"}
        self.env["MUSTER_API"] = ",".join(f"https://{address}:7443" for address in self.addresses.values())
        for space in self.spaces.values():
            made = subprocess.run(["ip", "netns", "add", space], capture_output=True, text=True, check=False)
            if made.returncode != 0:
                self.skipTest(f"network namespaces cannot be made here: {made.stderr.strip()}")
            self.addCleanup(subprocess.run, ["ip", "netns", "del", space], check=False)
            self.ip(space, "link", "set", "lo", "up")
        user = self.spaces["user"]
        for name, address in self.addresses.items():
            self.ip(user, "link", "add", name, "type", "veth", "peer", "name", "wire", "netns", self.spaces[name])
            for space, wire, own in ((user, name, address[:-1] + "2/24"), (self.spaces[name], "wire", address + "/24")):
                self.ip(space, "address", "add", own, "dev", wire)
                self.ip(space, "link", "set", wire, "up")

    def ip(self, space, *words):
        subprocess.run(["ip", "-n", space, *words], check=True, capture_output=True)

    def at(self, name, *words):
        """Starts a command on one of the machines; returns it and the file of its output."""
        path = self.dir / f"out{len(list(self.dir.glob('out*')))}"
        with open(path, "w", encoding="utf-8") as out:
            process = subprocess.Popen(["ip", "netns", "exec", self.spaces[name], MUSTER, *words], stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, env=self.env, cwd=self.dir)
        self.addCleanup(self.stop, process)
        return process, path

    def says(self, name, *words):
        process, path = self.at(name, *words)
        process.wait(2 * DEADLINE)
        return path.read_text()

    def serve(self, name):
        (self.dir / "data/endpoints.json").unlink(missing_ok=True)
        address = self.addresses[name]
        process, path = self.at(name, "coordinator", "--data-dir", "data", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--api-tls",
                                f"{address}:7443", "--listen-tls", f"{address}:7444", "--log-level", "warn")
        ends = self.dir / "data/endpoints.json"
        poll("endpoints", lambda: ends.exists() or process.poll() is not None)
        self.assertIsNone(process.poll(), path.read_text())
        return process, json.loads(ends.read_text())["api"]

    def test_what_waits_goes_on_when_the_machine_is_gone(self):
        coordinator, local = self.serve("head")
        for words, out in ((("--node", "n1"), "n1.token"), ((), ".config/muster/token")):
            said = self.says("head", "token", "create", *words, "--out", out, "--api", local)
            self.assertTrue((self.dir / out).exists(), said)
        agent = self.at("user", "agent", "--coordinator", ",".join(f"{address}:7444" for address in self.addresses.values()),
                        "--work-dir", "a", "--name", "n1", "--slots", "2", "--token-file", "n1.token")[1]
        poll("the agent registers", lambda: f"registered with {self.addresses['head']}:7444" in agent.read_text())
        run, told = self.at("user", "run", "--name", "j", "-n", "2", "--", "sh", "-c", "echo begin; until [ -e go ]; do sleep 0.05; done; echo end")
        poll("the pods run", lambda: told.read_text().count("begin") == 2)
        waiting, waited = self.at("user", "wait", "job/j", "--timeout", "120s")
        watched = self.at("user", "get", "jobs", "-w")[1]
        poll("the job is watched", lambda: "j " in watched.read_text())
        self.ip(self.spaces["head"], "link", "set", "wire", "down")
        coordinator.kill()
        coordinator.wait()
        self.serve("next")
        poll("the agent registers at the next", lambda: f"registered with {self.addresses['next']}:7444" in agent.read_text())
        (self.dir / "go").touch()
        self.assertEqual(waiting.wait(2 * DEADLINE), 0, waited.read_text())
        self.assertEqual(run.wait(2 * DEADLINE), 0, told.read_text())
        self.assertEqual(told.read_text().count("| end"), 2, told.read_text())
        poll("the watch goes on", lambda: "Complete" in watched.read_text())


if __name__ == "__main__":
    unittest.main()
