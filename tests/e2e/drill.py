#!/usr/bin/python3
"""muster drill: each scenario on a scratch and on a running cluster, verdicts that must be BROKEN, interruptions, bad input.

    MUSTER=build/release/muster tests/e2e/drill.py [TEST…]      DRILL_TIMES makes the scenarios longer (1)

Without TEST, the tests run in parallel, each in its own process; they mostly sleep.

Verdicts that must be BROKEN come from muster-planted, which has one fault for each promise (tests/planted), from killed pods and extra
copies of pods, and from an API that lies (Liar).
"""
import concurrent.futures
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from world import World, eventually, sh_job  # noqa: E402

MUSTER = os.path.abspath(os.environ["MUSTER"])
TIMES = os.environ.get("DRILL_TIMES") or "1"
AT_ONCE = 4  # drills in parallel; they mostly sleep


class Folder(unittest.TestCase):
    """A test with a folder that serves as TMPDIR and holds the reports."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="muster-drilltest-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def start(self, *words, program=MUSTER, **env):
        return subprocess.Popen([program, "drill", *map(str, words)], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=self.dir, env={**os.environ, "TMPDIR": str(self.dir), **env})

    def drill(self, *words, timeout=240, **env):
        process = self.start(*words, **env)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.fail(f"drill {words} did not end in {timeout} s\n{out}\n{err}")
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def nothing_left(self):
        """Checks that no process and no scratch cluster is left."""
        eventually(lambda: not self.processes(), f"no process below {self.dir}", 20)
        eventually(lambda: not list(self.dir.glob("muster-drill-*/")), "no scratch cluster is left", 20)

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                words = pathlib.Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace")
                state = pathlib.Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0]
                if f"{self.dir}/muster-drill-" in words and state != "Z":
                    found.append((int(pid), words.replace("\0", " ")))
        return found


class Local(Folder):
    """On scratch clusters."""
    CANARY = 30

    def interrupted(self, scenario):
        """Interrupts the scenario while its fault is being injected: nothing is left; returns what it said."""
        process = self.start("run", scenario, "--local", "--seed", "3", "--no-baseline")
        self.addCleanup(lambda p=process: p.poll() is None and p.kill())
        seen = ""
        while f"  {scenario}  " not in seen:
            line = process.stderr.readline()
            self.assertTrue(line, seen)
            seen += line
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.nothing_left()
        return err

    def held(self, scenario, *words, **env):
        """Runs the scenario, which must be HELD; returns the report."""
        reports = self.dir / f"reports-{scenario}"
        done = self.drill("run", scenario, "--local", "--seed", 3, "--canary", self.CANARY, "--report", reports, *words, **env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("VERDICT   HELD", done.stdout)
        report = json.loads(next(reports.glob("*.json")).read_text())
        self.assertEqual(report["verdict"], "HELD")
        for round_ in report["rounds"]:
            for fault in round_["faults"]:
                self.assertTrue(fault["confirmed"], fault)
            self.assertGreater(round_["statusReads"], 0)
            self.assertGreater(round_["accepted"], 0)
            self.assertEqual(round_["forgotten"], 0)
            self.assertGreater(round_["logs"], 0)
        return report


class Scenarios(Local):
    """Each scenario but those of several coordinators, which tests/e2e/standby_drill.py runs."""

    def test_each_scenario_holds(self):
        other = self.dir / "other"
        other.mkdir()
        for name in ("muster", "muster-keeper"):
            shutil.copy(pathlib.Path(MUSTER).parent / name, other / name)
        extra = {"coordinator-kill": ["--times", 3], "upgrade": ["--binary", other / "muster"], "storm": ["--times", 3]}
        listed = self.drill("list").stdout.splitlines()[1:]
        names = [line.split()[0] for line in listed if "libfaketime" not in line and "etcd" not in line]
        self.assertEqual(len(names), len(listed) - 5)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            running = {name: pool.submit(self.held, name, "--no-baseline", *(extra.get(name) or
                                         ([] if name == "restore" else ["--times", TIMES]))) for name in names}
            reports = {name: done.result() for name, done in running.items()}
        for name in ("keeper-kill", "node-loss", "partition", "agent-freeze"):
            self.assertEqual(reports[name]["plan"]["scenario"], name)
            self.assertRegex(reports[name]["rounds"][0]["faults"][0]["node"], r"drill-\d")
        self.assertGreater(reports["coordinator-freeze"]["down"]["worstMs"], 3000, "it was frozen for longer")
        self.nothing_left()

    def test_reports_history_and_replay(self):
        first = self.held("coordinator-kill")
        reports = self.dir / "reports-coordinator-kill"
        self.assertIn("withoutFaultsMs", first)
        path, = reports.glob("*.json")
        text = path.with_suffix(".md").read_text()
        self.assertIn("# Drill", text)
        self.assertIn("HELD", text)
        suite = xml.etree.ElementTree.parse(path.with_suffix(".xml")).getroot()
        self.assertEqual((suite.get("failures"), suite.get("skipped")), ("0", "0"))
        self.assertEqual(len(suite.findall("testcase")), int(suite.get("tests")))
        again = self.drill("run", "coordinator-kill", "--local", "--replay", path, "--no-baseline", "--report", reports, "-o", "json")
        self.assertEqual(again.returncode, 0, again.stderr)
        second = json.loads(again.stdout[again.stdout.index("\n{"):])
        self.assertEqual(second["plan"], first["plan"])
        self.assertNotEqual(second["drill"], first["drill"])
        listed = self.drill("history", "--report", reports).stdout
        self.assertEqual(sum("coordinator-kill" in line for line in listed.splitlines()), 2, listed)

    def test_several_one_after_the_other(self):
        """Also without `run`. A scenario that cannot run stops the sequence."""
        reports = self.dir / "reports"
        words = ("--local", "--seed", 3, "--canary", 8, "--no-baseline", "--report", reports)
        done = self.drill(*words, "coordinator-kill", "agent-kill")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.count("VERDICT   HELD"), 2)
        drilled = [json.loads(path.read_text())["plan"]["scenario"] for path in sorted(reports.glob("*.json"), key=os.path.getmtime)]
        self.assertEqual(drilled, ["coordinator-kill", "agent-kill"])
        done = self.drill(*words, "clock-jump", "agent-kill", MUSTER_FAKETIME="")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertNotIn("VERDICT", done.stdout)

    def test_clock_jump_needs_libfaketime(self):
        refused = self.drill("run", "clock-jump", "--local", MUSTER_FAKETIME="")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("not possible on this machine", refused.stderr)
        found = list(pathlib.Path("/usr/lib").glob("**/libfaketimeMT.so.1"))
        if found:
            self.held("clock-jump", "--no-baseline", MUSTER_FAKETIME=str(found[0]))

    def test_an_interruption_leaves_nothing(self):
        for scenario in ("coordinator-freeze", "node-loss"):
            self.assertIn("interrupted", self.interrupted(scenario))

    def test_a_killed_drill_leaves_nothing(self):
        process = self.start("run", "coordinator-kill", "--local", "--no-baseline", "--times", "50")
        process.stderr.readline()
        eventually(lambda: any("drill\0witness" in w.replace(" ", "\0") for _, w in self.processes()), "pods run")
        process.kill()
        process.communicate()
        self.nothing_left()


class Planted(Folder):
    """For each promise, the drill finds the fault in a muster that breaks it."""
    FAULTS = {  # fault: scenario, what the drill must find
        "forgets": ("coordinator-kill", {"forgotten"}),
        "miscounts": ("agent-kill", {"lost"}),
        "regresses": ("coordinator-kill", {"went back", "twice"}),
        "duplicates": ("coordinator-kill", {"two live"}),
        "drops": ("agent-kill", {"outlived"}),
    }
    PROGRAM = pathlib.Path(MUSTER).parent / "muster-planted"

    def found(self, fault):
        """What a drill finds in a cluster with this fault; empty: the verdict was HELD."""
        scenario, _ = self.FAULTS.get(fault) or ("agent-kill", None)
        reports = self.dir / f"reports-{fault}"
        done = self.drill("run", scenario, "--local", "--seed", 3, "--canary", 24, "--no-baseline", "--times", 3, "--nodes", 1,
                          "--report", reports, program=self.PROGRAM, PLANTED_FAULT=fault)
        self.assertIn(done.returncode, (0, 1), f"{fault}\n{done.stdout}{done.stderr}")
        report = json.loads(next(reports.glob("*.json")).read_text())
        self.assertEqual(done.returncode == 1, report["verdict"] == "BROKEN")
        return {finding["promise"] for round_ in report["rounds"] for finding in round_["findings"]}

    def test_planted_fault_breaks_its_promise(self):
        if not self.PROGRAM.exists():
            self.skipTest(f"there is no {self.PROGRAM}")
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            running = {fault: pool.submit(self.found, fault) for fault in ["nothing", *self.FAULTS]}
            for fault, found in running.items():
                with self.subTest(fault):
                    expected = self.FAULTS[fault][1] if fault in self.FAULTS else set()
                    self.assertLessEqual(expected, found.result())
                    self.assertEqual(bool(expected), bool(found.result()))


class Liar(http.server.ThreadingHTTPServer):
    """An API proxy that passes everything on, except that `lie` may change the answer to a GET."""
    daemon_threads = True

    def __init__(self, target, lie):
        self.target, self.lie = target, lie
        super().__init__(("127.0.0.1", 0), self.Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def serve(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {k: v for k, v in self.headers.items() if k.lower() in ("accept", "content-type")}
            try:
                link = http.client.HTTPConnection(self.server.target, timeout=30)
                link.request(self.command, self.path, body or None, headers)
                answer = link.getresponse()
                code, kind, text = answer.status, answer.headers.get("Content-Type", ""), answer.read()
                link.close()
            except (OSError, http.client.HTTPException):
                self.close_connection = True
                return
            if self.command == "GET" and code == 200 and kind.startswith("application/json"):
                text = json.dumps(self.server.lie(self.path, json.loads(text))).encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = do_PATCH = serve


class Site:
    """A running cluster with a supervisor like systemd. Daemons are started from `program`, which --switch changes; those in `idle` are
    not restarted."""

    def __init__(self, test, agents=2, grace="3s"):
        self.test, self.dir = test, pathlib.Path(tempfile.mkdtemp(prefix="site-", dir=test.dir))
        self.witnesses = self.dir / "witnesses"
        self.witnesses.mkdir()
        self.it = test.cluster(agents=agents, slots=4, grace=grace)
        self.program, self.stopped = self.dir / "program", self.dir / "stopped"  # while this file exists, no coordinator is started
        self.program.symlink_to(self.it.bin)
        self.grace, self.stopping, self.idle = grace, threading.Event(), set()
        self.lock = threading.Lock()
        for node in self.it.agents:
            self.label(node, "true")
        supervisor = threading.Thread(target=self.supervise)
        supervisor.start()

        def stop():
            self.stopping.set()
            supervisor.join()
        test.addCleanup(stop)

    def label(self, node, value):
        code, answer = self.it.api.call("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {"muster.dev/drill": value}}},
                                        "application/merge-patch+json")
        self.test.assertEqual(code, 200, answer)

    def supervise(self):
        while not self.stopping.wait(0.05):
            self.it.bin = str(self.program.resolve())
            if self.it.coord.poll() is not None and "coordinator" not in self.idle and not self.stopped.exists():
                with contextlib.suppress(AssertionError):
                    self.it.start_coordinator()
            for node, agent in list(self.it.agents.items()):
                if agent.poll() is not None and node not in self.idle:
                    self.it.start_agent(node)

    def words(self, scenario, *more, api=None, yes=True):
        return ["run", scenario, "--api", api or self.it.api_addr, "--witness-dir", self.witnesses,
                *(() if "--pid-file" in more else ("--pid-file", self.it.dir / "coordinator/endpoints.json")), "--node-grace", self.grace, "--seed", 3, "--canary", 16, "--no-baseline", "--report", self.dir / "reports",
                *(["--yes"] if yes else []), *more]

    def report(self):
        return json.loads(max((self.dir / "reports").glob("*.json"), key=lambda p: p.stat().st_mtime).read_text())

    def jobs(self):
        return self.it.api.call("GET", "/apis/batch/v1/namespaces/muster-drill/jobs")[1]["items"]

    def held(self, scenario, *more):
        """Runs the scenario, which must be HELD and leave nothing behind; returns the report and the output."""
        done = self.test.drill(*self.words(scenario, *more))
        self.test.assertEqual(done.returncode, 0, f"{scenario}\n{done.stdout}{done.stderr}")
        self.test.assertIn("VERDICT   HELD", done.stdout)
        report = self.report()
        for fault in report["rounds"][0]["faults"]:
            self.test.assertTrue(fault["confirmed"], fault)
            if fault["fault"] in ("agent-freeze", "node-loss", "partition"):
                self.test.assertGreater(fault["untilMs"] - fault["atMs"], int(self.grace.rstrip("s")) * 1000, "until the node was lost")
        self.clean()
        return report, done.stdout

    def clean(self):
        """Checks that the namespace and the witnesses are empty, nothing is stopped or cut off, and no note is left."""
        self.test.assertEqual(self.jobs(), [])
        self.test.assertEqual(list(self.witnesses.iterdir()), [])
        self.it.wait_nodes()
        for process in [self.it.coord, *self.it.agents.values()]:
            stat = pathlib.Path("/proc", str(process.pid), "stat").read_text()
            self.test.assertNotIn(stat.rsplit(")", 1)[1].split()[0], "Tt", "a stopped process")
        for node in self.it.api.call("GET", "/api/v1/nodes")[1]["items"]:
            uid = node["metadata"]["uid"]
            self.test.assertFalse(pathlib.Path("/run/muster-drill", uid).exists())
            self.test.assertNotIn(f"muster_drill_{uid[:16]}", rules())


def rules():
    """The tables of nftables; empty: none, or nft is not installed."""
    nft = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin")
    return subprocess.run([nft, "list", "tables"], capture_output=True, text=True).stdout if nft else ""


class Shell:
    """A stand-in for sshd: runs a command elsewhere with the client's input and output, after a greeting such as login shells print."""

    def __init__(self, path):
        self.commands, self.socket = [], socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen(64)
        self.client = pathlib.Path(f"{path}.py")
        self.client.write_text(f"""import os, socket, sys, threading
link = socket.socket(socket.AF_UNIX)
link.connect({str(path)!r})
link.sendall((" ".join(sys.argv[1:]) + "\\n").encode())
def send():
    while data := os.read(0, 4096):
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)
threading.Thread(target=send, daemon=True).start()
while data := link.recv(4096):
    os.write(1, data)
os._exit(0)
""")
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                link, _ = self.socket.accept()
                command = b""
                while not command.endswith(b"\n"):
                    command += link.recv(1)
                self.commands.append(command.decode().strip())
                link.sendall(b"Welcome!\n")
                subprocess.Popen(self.commands[-1].split()[1:], stdin=link.fileno(), stdout=link.fileno(), stderr=link.fileno())
                link.close()

    def close(self):
        self.socket.close()


class Nodes(Folder, World):
    """Each scenario on its own running cluster with a supervisor; in parallel."""

    def other_muster(self):
        """The same program with different bytes."""
        other = self.dir / "other"
        other.mkdir()
        for name in ("muster", "muster-keeper"):
            shutil.copy(pathlib.Path(MUSTER).parent / name, other / name)
        with open(other / "muster", "ab") as program:
            program.write(b"\0")
        return other / "muster"

    def test_each_scenario_holds(self):
        sites = {name: Site(self, agents=2, grace="2s") for name in (
            "agent-kill", "agent-freeze", "keeper-kill", "node-loss", "partition", "disk-full", "restore", "upgrade", "storm")}
        if os.geteuid() != 0 or not shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin"):
            refused = self.drill(*sites.pop("partition").words("partition"))
            self.assertEqual(refused.returncode, 4, refused.stderr)
            self.assertRegex(refused.stderr, "root|nft")
        restored = sites["restore"]
        script = self.dir / "restore.sh"
        script.write_text(f"""set -e
touch {restored.stopped}
kill -9 $(sed -n 's/.*"pid": *\\([0-9]*\\).*/\\1/p' {restored.it.dir}/coordinator/endpoints.json)
mv {restored.it.dir}/coordinator {restored.it.dir}/lost
{MUSTER} restore "$1" --data-dir {restored.it.dir}/new
mv {restored.it.dir}/new {restored.it.dir}/coordinator
rm {restored.stopped}
""")
        more = {"restore": ["--restore", f"sh {script} {{backup}}"], "storm": ["--times", "3"],
                "upgrade": ["--binary", self.other_muster(), "--switch", f"ln -sfn {{binary}} {sites['upgrade'].program}"]}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            running = {name: pool.submit(site.held, name, *more.get(name, [])) for name, site in sites.items()}
            reports = {name: done.result()[0] for name, done in running.items()}
        for name in ("agent-freeze", "keeper-kill", "node-loss", "partition"):
            if name in reports:
                self.assertRegex(reports[name]["rounds"][0]["faults"][0]["node"], "^node-[01]$")
        self.assertEqual(sites["upgrade"].program.resolve(), pathlib.Path(MUSTER).resolve())


class Running(Folder, World):
    """Against a running cluster whose daemons have a supervisor."""

    def setUp(self):
        super().setUp()
        self.site = Site(self)
        self.it, self.witnesses, self.jobs = self.site.it, self.site.witnesses, self.site.jobs

    def against(self, *words, lie=None, yes=True, **more):
        api = self.it.api_addr
        if lie:
            liar = Liar(api, lie)
            self.addCleanup(liar.server_close)
            self.addCleanup(liar.shutdown)
            api = f"127.0.0.1:{liar.server_address[1]}"
        return self.drill(*self.site.words(*(words or ("coordinator-kill",)), api=api, yes=yes), **more)

    def broken(self, done, *promises):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("VERDICT   BROKEN", done.stdout)
        for promise in promises:
            self.assertRegex(done.stdout, rf"(?m)^  {promise}: \d+ ", done.stdout)

    def test_drill_holds_and_cleans_up(self):
        before = self.it.coord.pid
        _, said = self.site.held("coordinator-kill", "--times", "2")
        self.assertIn(f"pid {before}", said, "the plan names its victim")
        self.assertNotEqual(self.it.coord.pid, before)

    def test_drill_asks_before_it_disturbs_others(self):
        self.submit(self.it, sh_job("theirs", "sleep 60", 2))
        eventually(lambda: self.it.api.job("theirs")["status"].get("ready") == 2, "pods of others run")
        before = [p.pid for p in (self.it.coord, *self.it.agents.values())]
        for scenario, said in (("node-loss", "2 pods of others on these nodes (default 2) may end"),
                               ("agent-kill", "2 pods of others on these nodes (default 2) keep running"),
                               ("coordinator-kill", "API will be briefly unavailable")):
            done = self.against(scenario, yes=False)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("--yes", done.stderr)
            self.assertIn("will hit", done.stdout)
            self.assertIn(said, done.stdout)
        self.assertEqual([p.pid for p in (self.it.coord, *self.it.agents.values()) if p.poll() is None], before)
        pid = self.dir / "pid"
        pid.write_text(f"{os.getpid()}\n")
        refused = self.against("coordinator-kill", "--pid-file", pid)
        self.assertEqual(refused.returncode, 5, refused.stdout)
        self.assertIn("not `muster coordinator`", refused.stderr)
        refused = self.against("restore", "--restore", "true {backup}")
        self.assertEqual(refused.returncode, 5, refused.stdout)
        self.assertIn("1 unfinished job of others", refused.stderr)
        self.assertEqual(list(self.witnesses.iterdir()), [])

    def test_drill_uses_only_labeled_nodes(self):
        self.site.label("node-1", None)
        report, said = self.site.held("agent-kill", "--times", "3")
        self.assertEqual({fault["node"] for fault in report["rounds"][0]["faults"]}, {"node-0"})
        self.assertNotIn("node-1", said)
        self.site.label("node-0", None)
        done = self.against()
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("muster.dev/drill=true", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root, for a namespace without the agents' processes")
    def test_other_machines_are_reached_by_a_command(self):
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", MUSTER, "drill"]

        def drill(*words):
            return subprocess.run([*apart, *map(str, words)], text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, cwd=self.dir)
        refused = drill(*self.site.words("agent-kill"))
        self.assertEqual(refused.returncode, 4, refused.stdout)
        self.assertIn("--on-node 'ssh {node} {}'", refused.stderr)
        shell = Shell(self.dir / "shell")
        self.addCleanup(shell.close)
        for scenario in ("agent-kill", "node-loss"):
            done = drill(*self.site.words(scenario, "--on-node", f"{sys.executable} {shell.client} {{node}} {{}}"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(", by --on-node: agent pid", done.stdout)
            self.assertTrue([c for c in shell.commands if re.search(f"^node-[01] .* drill hand {scenario} ", c)], shell.commands)
            self.site.clean()

    @unittest.skipUnless(os.geteuid() == 0, "needs root, whose notes have a common parent")
    def test_drill_keeps_the_shared_parent_directory(self):
        """Another drill's hand may be about to create its folder there."""
        parent = pathlib.Path("/run/muster-drill")
        parent.mkdir(exist_ok=True)
        before = parent.stat().st_ino
        self.site.held("agent-kill")
        self.assertEqual(parent.stat().st_ino, before)

    def test_drill_is_inconclusive_if_the_agent_is_not_restarted(self):
        self.site.idle.update(self.it.agents)
        done = self.against("agent-kill", "--restart-within", "1s")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("VERDICT   INCONCLUSIVE", done.stdout)
        self.assertRegex(done.stdout, r"not proven: the agent of node-[01], pid \d+, .*no other runs there after 1.*--start CMD")
        self.site.idle.clear()
        self.site.clean()

    def interrupted(self, scenario, how):
        """Starts the scenario, and ends it with this signal while the fault is in force."""
        process = self.start(*self.site.words(scenario))
        self.addCleanup(lambda: process.poll() is None and process.kill())
        eventually(lambda: process.poll() is not None or self.hit(scenario), "the fault is in force", 60)
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def hit(self, scenario):
        if scenario == "partition":
            return any(f"muster_drill_{node['metadata']['uid'][:16]}" in rules() for node in self.it.api.call("GET", "/api/v1/nodes")[1]["items"])
        return any(pathlib.Path("/proc", str(agent.pid), "stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
                   for agent in self.it.agents.values())

    def test_an_interruption_leaves_nothing(self):
        for scenario in ("agent-freeze", *(["partition"] if os.geteuid() == 0 and shutil.which("nft", path="/usr/sbin:/usr/bin") else [])):
            code, _, err = self.interrupted(scenario, signal.SIGINT)
            self.assertEqual(code, 130, err)
            self.assertIn("everything was cleaned up", err)
            self.site.clean()

    def test_next_drill_cleans_up_after_a_killed_one(self):
        code, _, _ = self.interrupted("agent-freeze", signal.SIGKILL)
        self.assertEqual(code, -9)
        eventually(lambda: not self.hit("agent-freeze"), "the agent goes on by itself")
        self.assertNotEqual(self.jobs(), [])
        _, said = self.site.held("agent-kill")
        self.assertIn("clean up after drill", said)

    def test_one_drill_at_a_time(self):
        process = self.start(*self.site.words("coordinator-kill", "--times", "5"))
        self.addCleanup(lambda: process.poll() is None and process.kill())
        self.assertTrue(process.stderr.readline())
        refused = self.against("agent-kill")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("another drill", refused.stderr)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.site.clean()

    def test_drill_can_be_interrupted_if_the_coordinator_is_not_restarted(self):
        self.site.idle.add("coordinator")
        process = self.start(*self.site.words("coordinator-kill"))
        eventually(lambda: self.it.coord.poll() is not None, "it is killed", 60)
        process.send_signal(signal.SIGINT)
        self.site.idle.clear()
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.site.clean()

    # The tests below break one promise each.

    def test_planted_a_lost_termination(self):
        def lie(path, answer):
            if path.split("?")[0].endswith("/attempts"):
                answer["items"] = [a for a in answer["items"] if (a["index"], a["attempt"]) != (5, 0)]
            return answer
        self.broken(self.against(lie=lie), "lost")

    def test_planted_a_termination_that_counts_twice(self):
        def lie(path, answer):
            if path.split("?")[0].endswith("/attempts"):
                answer["items"] += [a for a in answer["items"] if (a["index"], a["attempt"]) == (5, 0)]
            elif answer.get("kind") == "Job" and answer.get("status", {}).get("failed"):
                answer["status"]["failed"] += 1
            return answer
        self.broken(self.against(lie=lie), "twice", "result")

    def test_planted_a_status_that_goes_back(self):
        shown = []

        def lie(path, answer):
            if answer.get("kind") == "Job" and answer.get("status", {}).get("succeeded", 0) > 5:
                shown.append(1)
                if len(shown) == 5:
                    answer["status"]["succeeded"] = 3
            return answer
        self.broken(self.against(lie=lie), "went back")

    def test_planted_a_forgotten_submission(self):
        def lie(path, answer):
            if answer.get("kind") == "JobList":
                answer["items"] = [j for j in answer["items"] if not j["metadata"]["name"].endswith("-small-0")]
            return answer
        self.broken(self.against(lie=lie), "forgotten")

    def during(self, act):
        """Runs a drill; `act` gets the pid, command and environment of a running canary pod, and returns whether it is done."""
        stop = threading.Event()

        def look():
            while not stop.wait(0.01):
                for pid in filter(str.isdigit, os.listdir("/proc")):
                    with contextlib.suppress(OSError, ValueError):
                        words = pathlib.Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
                        if words[1:3] != [b"drill", b"witness"] or not words[3].startswith(bytes(self.witnesses)):
                            continue
                        variables = dict(v.split(b"=", 1) for v in pathlib.Path("/proc", pid, "environ").read_bytes().split(b"\0") if v)
                        if act(int(pid), [w.decode() for w in words[:-1]], variables):
                            return
        helper = threading.Thread(target=look)
        helper.start()
        try:
            return self.against()
        finally:
            stop.set()
            helper.join()

    @contextlib.contextmanager
    def held_at_work(self, pid):
        """Keeps this canary pod stopped; yields whether it is at work: its start is recorded, its end is not."""
        os.kill(pid, signal.SIGSTOP)
        try:
            eventually(lambda: pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[0] in "TZ", "it stands still")
            said = [line.split()[1] for path in self.witnesses.glob("*/*") for line in path.read_text().splitlines() if f" {pid} " in line]
            yield said == ["start"]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def test_planted_pod_killed_with_its_agent_is_found(self):
        def act(pid, words, variables):
            with self.held_at_work(pid) as at_work:
                if at_work:
                    os.kill(pid, signal.SIGKILL)
                return at_work
        self.broken(self.during(act), "outlived")

    def test_planted_two_live_copies(self):
        def act(pid, words, variables):
            """Starts a second copy under the next attempt number, like a coordinator that has forgotten the first."""
            variables[b"MUSTER_ATTEMPT"] = b"%d" % (int(variables[b"MUSTER_ATTEMPT"]) + 1)
            with self.held_at_work(pid) as at_work:
                if at_work:
                    copy = subprocess.Popen(words, env=variables, stdout=subprocess.DEVNULL)
                    self.addCleanup(copy.wait)
                    eventually(lambda: any(f" {copy.pid} " in path.read_text() for path in self.witnesses.glob("*/*")), "the copy is at work")
                return at_work
        self.broken(self.during(act), "two live")


class BadInput(Folder):
    def refused(self, *words, code=2):
        done = self.drill(*words, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_wrong_arguments_are_refused(self):
        for words, said in (
                (["run"], "muster drill list"),
                (["run", "coordinator-kil", "--local"], "did you mean coordinator-kill"),
                (["list", "storm"], "only `muster drill run`"),
                (["coordinator-kil", "--local"], "did you mean coordinator-kill"),
                (["rum", "storm", "--local"], "did you mean run"),
                (["storm", "agent-kil", "--local"], "did you mean agent-kill"),
                (["storm", "agent-kill", "--local", "--replay", "x"], "one scenario; 2 are given"),
                (["run", "storm"], "--pid-file"),
                (["run", "clock-jump", "--pid-file", "x", "--witness-dir", "."], "clock-jump needs --local"),
                (["run", "agent-kill"], "--witness-dir"),
                (["run", "agent-kill", "--witness-dir", ".", "--on-node", "ssh {node}"], "{} is missing"),
                (["run", "agent-kill", "--witness-dir", ".", "--on-node", "ssh c01 {}"], "{node} is missing"),
                (["run", "upgrade", "--pid-file", "x", "--witness-dir", ".", "--binary", MUSTER], "--switch CMD"),
                (["run", "restore", "--pid-file", "x", "--witness-dir", "."], "--restore CMD"),
                (["run", "agent-kill", "--witness-dir", ".", "--restore", "true {backup}"], "only for restore"),
                (["run", "agent-kill", "--witness-dir", ".", "--restart-within", "soon"], "--restart-within"),
                (["run", "agent-kill", "--local", "--on-node", "ssh {node} {}"], "not for --local"),
                (["run", "coordinator-kill"], "--pid-file"),
                (["run", "coordinator-kill", "--pid-file", "x"], "--witness-dir"),
                (["run", "coordinator-kill", "--local", "--pid-file", "x"], "not for --local"),
                (["run", "coordinator-kill", "--local", "--times", "0"], "1 to 10000"),
                (["run", "coordinator-kill", "--local", "--canary", "3"], "4 to 10000"),
                (["run", "coordinator-kill", "--local", "--for", "soon"], "--for"),
                (["run", "restore", "--local", "--times", "2"], "once"),
                (["run", "upgrade", "--local"], "--binary"),
                (["run", "upgrade", "--local", "--binary", "/no/such"], "/no/such"),
                (["run", "storm", "--local", "--binary", MUSTER], "only for upgrade"),
                (["run", "takeover", "--local", "--coordinators", "1"], "--coordinators 2"),
                (["run", "takeover", "--local", "--coordinators", "8"], "1 to 7"),
                (["run", "storm", "--local", "--coordinators", "2"], "omit --coordinators"),
                (["run", "storm", "--pid-file", "x", "--coordinators", "2"], "only for --local"),
                (["run", "takeover"], "--pid-file"),
                (["run", "takeover", "--pid-file", "x", "--api", "127.0.0.1:1"], "--api A,B"),
                (["run", "takeover", "--pid-file", "x", "--api", "127.0.0.1:1,127.0.0.1:2", "--times", "2"], "omit --times"),
                (["run", "leader-freeze", "--pid-file", "/dev/null", "--api", "127.0.0.1:1,127.0.0.1:2"], "endpoints.json"),
                (["run", "leader-cut", "--pid-file", "x"], "by hand: on its machine, drop"),
                (["run", "store-loss", "--pid-file", "x"], "stop etcd by hand"),
                (["run", "storm", "--local", "--replay", "/no/such"], "cannot read"),
                (["run", "storm", "--local", "--replay", "x", "--seed", "1"], "--replay has its own")):
            with self.subTest(words):
                self.assertIn(said, self.refused(*words))

    def test_unreadable_reports_are_refused(self):
        report = self.dir / "report.json"
        report.write_text("{")
        self.assertIn("holds no plan", self.refused("run", "storm", "--local", "--replay", report))
        report.write_text(json.dumps({"plan": {"scenario": "restore"}}))
        self.assertTrue(re.search("plan: .*must be|steps", self.refused("run", "storm", "--local", "--replay", report)))
        self.assertIn("cannot read", self.refused("history", "--report", "/no/such", code=3))


def run_all():
    """Runs every test in this file; prints the output of those that fail."""
    classes = [Scenarios, Nodes, Planted, Running, BadInput]  # the longest first
    names = [f"{c.__name__}.{name}" for c in classes for name in unittest.defaultTestLoader.getTestCaseNames(c)]

    def run(name):
        begin = time.monotonic()
        done = subprocess.run([sys.executable, __file__, name], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        skipped = "skipped" in done.stdout.splitlines()[-1]
        print(f"{name} ... {'FAIL' if done.returncode else 'skipped' if skipped else 'ok'} ({time.monotonic() - begin:.0f} s)", flush=True)
        if done.returncode:
            print(done.stdout, flush=True)
        return done.returncode == 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        held = list(pool.map(run, names))
    print(f"Ran {len(held)} tests, {held.count(False)} failed")
    return not all(held)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(run_all())
    unittest.main(verbosity=2, warnings="ignore")
