#!/usr/bin/env python3
"""`muster doctor` on a client, a node and a head, against real daemons.

MUSTER names the executable. Waits poll with a deadline.
"""
import json
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from command import MUSTER, CommandCase, free_port, poll  # noqa: E402


class Doctor(CommandCase):
    def setUp(self):
        super().setUp()
        # Not those in /etc/muster.
        self.file("coordinator.yaml", "log-level: warn\n")
        self.file("agent.yaml", "log-level: warn\n")

    def doctor(self, *words, code=0, files=("--coordinator-config", "coordinator.yaml", "--agent-config", "agent.yaml")):
        """The findings, by role and check: a list of levels; and all of them."""
        r = self.muster("doctor", *words, *files, "-o", "json", code=code)
        report = json.loads(r.stdout)
        self.assertEqual(report["checks"], len(report["findings"]))
        self.assertEqual(bool(report["problems"]), code == 1)
        levels = {}
        for one in report["findings"]:
            self.assertEqual(one["level"] == "ok", one["advice"] == "", one)
            levels.setdefault((one["role"], one["check"]), []).append(one["level"])
        return levels, report

    def coordinator(self, *words):
        """Starts one and returns its endpoints."""
        self.start("coordinator", "--data-dir", "d", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--log-level", "warn", *words)
        endpoints = self.dir / "d/endpoints.json"
        poll("it serves", endpoints.exists)
        return json.loads(endpoints.read_text())

    def agent(self, address, **popen):
        self.file("started.yaml", f"coordinator: {address}\nname: n1\n")
        self.start("agent", "--config", "started.yaml", "--work-dir=w", "--slots", "2", "--log-level", "warn", **popen)

    def test_a_machine_in_order(self):
        ends = self.coordinator()
        self.agent(ends["listen"])
        self.env["MUSTER_API"] = ends["api"]
        poll("the node is ready", lambda: " Ready " in self.muster("get", "nodes").stdout)
        levels, report = self.doctor("--data-dir", "d", "--work-dir", "w", files=())  # those of the daemons that run
        self.assertEqual(report["roles"], ["head", "node", "client"])
        for role, check in (("head", "coordinator"), ("head", "port --api"), ("node", "agent"), ("node", "keeper"), ("node", "coordinator"),
                            ("client", "coordinator"), ("client", "version"), ("client", "clock")):
            self.assertEqual(levels[role, check], ["ok"], (role, check, report))
        for role, check in (("head", "data-dir space"), ("node", "work-dir space")):  # the machine's disk may be almost full
            self.assertIn(levels[role, check], (["ok"], ["warning"]), (role, check, report))
        self.assertEqual(levels["head", "backup"], ["warning"], "there was none")
        self.assertIn(f"pid {ends['pid']}", json.dumps(report), "whose limits are looked at")
        self.assertNotIn("a program started from here", json.dumps([f for f in report["findings"] if f["check"] != "cgroup"]))
        self.muster("backup", str(self.dir / "b"))
        self.assertEqual(self.doctor("head", "--data-dir", "d")[0]["head", "backup"], ["ok"])

        text = self.muster("doctor", "client").stdout
        self.assertRegex(text, r"^nothing wrong in \d checks of client\n$")
        self.assertIn("ok       client: coordinator: ", self.muster("doctor", "client", "--all").stdout)
        self.assertEqual(json.loads(self.muster("doctor", "client", "--json").stdout)["roles"], ["client"])
        self.assertFalse(list(self.dir.glob("[dw]/.muster-doctor*")), "it leaves nothing behind")

    def test_a_coordinator_that_does_not_answer(self):
        port = free_port()
        text = self.muster("doctor", "client", "--api", f"127.0.0.1:{port}", code=1).stdout
        self.assertRegex(text, rf"problem  client: coordinator: 127\.0\.0\.1:{port}: .*refused.*\n +-> start the coordinator")
        levels, report = self.doctor("client", "--api", "no-such-host.invalid:7117", code=1)
        self.assertEqual(levels["client", "name no-such-host.invalid"], ["problem"], report)
        ends = self.coordinator()
        levels, report = self.doctor("client", "--api", f"127.0.0.1:{port},{ends['api']}")
        self.assertEqual(sorted(levels["client", "coordinator"]), ["ok", "warning"], report)
        (self.dir / "w").mkdir(mode=0o700)
        self.file("agent.yaml", f"coordinator: 127.0.0.1:{port}\n")
        levels, report = self.doctor("node", "--work-dir", "w", code=1)
        self.assertEqual((levels["node", "coordinator"], levels["node", "agent"]), (["problem"], ["warning"]), report)

    def test_tokens(self):
        ends = self.coordinator("--api-tls", "127.0.0.1:0")
        api = f"https://{ends['apiTls']}"
        levels, report = self.doctor("client", "--api", api, code=1)
        self.assertEqual((levels["client", "token"], levels["client", "coordinator"]), (["problem"], ["unknown"]), report)
        made = self.muster("token", "create", "--ttl", "10m", "--out", "token", "--api", ends["api"]).stdout
        flags = ("client", "--api", api, "--token-file", "token")
        levels, report = self.doctor(*flags)
        self.assertEqual((levels["client", "token"], levels["client", "coordinator"]), (["warning"], ["ok"]), report)
        self.assertIn("token expires in ", json.dumps(report))
        (self.dir / "token").chmod(0o644)
        levels, report = self.doctor(*flags, code=1)
        self.assertEqual(levels["client", "token"], ["problem"], report)
        self.assertIn("chmod 600", json.dumps(report))
        # Where none is needed, others still could use it.
        levels, report = self.doctor("client", "--api", ends["api"], "--token-file", "token")
        self.assertEqual(levels["client", "token"], ["warning"], report)
        (self.dir / "token").chmod(0o600)
        self.muster("token", "revoke", made.split("token ")[1].split()[0], "--api", ends["api"])
        levels, report = self.doctor(*flags, code=1)
        self.assertEqual(levels["client", "coordinator"], ["problem"], report)
        self.assertIn("refuses us", json.dumps(report))

    def test_a_head_that_could_not_start(self):
        levels, report = self.doctor("head", "--data-dir", "d", code=1)
        self.assertEqual(levels["head", "data-dir"], ["problem"], report)
        self.assertIn("d does not exist", json.dumps(report))
        (self.dir / "d").mkdir(mode=0o700)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            self.file("coordinator.yaml", f"api: 127.0.0.1:{taken.getsockname()[1]}\nlisten: 192.0.2.1:7118\ninsecure: true\n")
            levels, report = self.doctor("head", "--data-dir", "d", code=1)
        self.assertEqual((levels["head", "port --api"], levels["head", "port --listen"]), (["problem"], ["problem"]), report)
        for part in ("a program listens there", "not an address of this machine"):
            self.assertIn(part, json.dumps(report))
        self.file("coordinator.yaml", "nod-grace: 1m\n")
        levels, report = self.doctor("head", "--data-dir", "d", code=1)
        self.assertEqual(levels["head", "configuration"], ["problem"], report)
        self.assertFalse(list((self.dir / "d").iterdir()), "it changes nothing")

    def test_an_agent_warns_of_what_breaks_pods(self):
        ends = self.coordinator()
        log = self.dir / "agent.log"
        with open(log, "wb") as out:
            self.agent(ends["listen"], stderr=out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (86_400, 86_400)))
        warned = "limits: the agent is limited in its CPU time (RLIMIT_CPU) to 86400 s, and every pod inherits that; set LimitCPU=infinity"
        poll("it warns", lambda: warned in log.read_text())
        poll("the keeper runs", (self.dir / "w/keeper/socket").exists)
        levels, report = self.doctor("node", "--work-dir", "w", code=1)  # no coordinator at the default address
        self.assertEqual(levels["node", "limits"], ["warning"], report)
        self.assertIn("the keeper (pid ", json.dumps(report))

    def test_daemons_whose_executable_was_replaced(self):
        shutil.copy(MUSTER, self.dir / "muster")
        words = ("head", "--data-dir", "d")
        p = subprocess.Popen([self.dir / "muster", "coordinator", "--data-dir", "d", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0"],
                             cwd=self.dir, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop, p)
        poll("it serves", (self.dir / "d/endpoints.json").exists)
        self.assertNotIn(("head", "version"), self.doctor(*words)[0])
        (self.dir / "muster").unlink()
        self.assertEqual(self.doctor(*words)[0]["head", "version"], ["warning"])

    def test_usage(self):
        self.muster("doctor", "nurse", code=2)
        self.muster("doctor", "client", "--json", "-o", "yaml", code=2)
        files = ("--coordinator-config", "coordinator.yaml", "--agent-config", "agent.yaml")
        self.assertIn("--data-dir D", self.muster("doctor", "head", *files, code=2).stderr)
        self.assertIn("--work-dir D", self.muster("doctor", "node", *files, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
