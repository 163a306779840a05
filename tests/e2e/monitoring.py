#!/usr/bin/env python3
"""What an operator's Prometheus sees: the metrics, the alerts and the dashboard of examples/monitoring.

MUSTER names the executable. Needs Prometheus (lib/prometheus.py). Waits poll with a deadline.
"""
import json
import os
import re
import signal
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

import yaml

import cli
import prometheus
from command import free_port

FOLDER = cli.ROOT / "examples/monitoring"
METRICS = cli.ROOT / "docs/metrics.md"
# Alerts that say how the machine is on which the tests run.
OF_MACHINES = {"MusterDiskAlmostFull", "MusterDiskFull", "MusterNodeDiskAlmostFull", "MusterCommitsSlow", "MusterStartsSlow"}
OF_AGENTS, OF_FOLLOWERS = "## Of an agent", "## Of a coordinator that follows"  # the headings there
# Kubernetes' own names, which its dashboards know.
FOREIGN = ("job_controller_", "ttl_after_finished_")
# What exists only in circumstances that this cluster is not in.
SOMETIMES = {"job_controller_jobs_by_external_controller_total", "job_controller_pod_failures_handled_by_failure_policy_total",
             "ttl_after_finished_controller_job_deletion_duration_seconds", "muster_user_pods", "muster_user_share_ratio",
             "muster_agent_certificate_expiry_timestamp_seconds",
             # with --store
             "muster_coordinator_leader", "muster_coordinator_term", "muster_coordinator_in_sync_replicas", "muster_coordinator_store_answers",
             "muster_coordinator_store_wiped", "muster_coordinator_replica_in_sync", "muster_coordinator_replica_lag_commits", "muster_coordinator_replica_round_trip_seconds",
             # of a follower (standby.py)
             "muster_follower_commit_duration_seconds_bucket"}
WORDS = re.compile(r"\b(?:muster|process|job_controller)_[a-z_]+")


def alerts():
    return [rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]]


def panels():
    return [panel for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"] if panel["type"] != "row"]


def queries():
    return [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]]


def documented(text):
    """The metrics in the tables of a document, with their types."""
    found = {}
    for row in text.splitlines():
        names, kind = [cell.strip() for cell in (row + "|||").split("|")[1:3]]
        if kind in ("counter", "gauge", "histogram"):
            found |= {name: kind for name in re.findall(r"`(\w+)`", names)}
    return found


def read(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
        return answer.read().decode()


class Watched(cli.Case):
    """A coordinator that Prometheus may watch."""

    def serve(self, *words):
        coordinator = self.start("coordinator", "--data-dir", "d", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                                 "--listen-tls", "127.0.0.1:0", "--node-grace", "2s", "--log-level", "warn", *words)
        endpoints = self.dir / "d/endpoints.json"
        cli.poll("it serves", endpoints.exists)
        self.endpoints = json.loads(endpoints.read_text())
        self.env["MUSTER_API"] = self.endpoints["api"]
        return coordinator

    def watch(self, *agents):
        """Starts a Prometheus that reads the coordinator, and agents, each second, and to whose alerts a fault need not last."""
        self.file("rules.yml", re.sub(r"for: \w+", "for: 0s", (FOLDER / "alerts.yml").read_text()))
        jobs = {"muster": [self.endpoints["metrics"]], "muster-agents": list(agents)}
        self.file("prometheus.yml", json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": job, "static_configs": [{"targets": targets}]} for job, targets in jobs.items() if targets]}))
        self.watcher = f"127.0.0.1:{free_port()}"
        server = subprocess.Popen([prometheus.program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                                   f"--web.listen-address={self.watcher}"], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        cli.poll("three samples", lambda: self.result("count_over_time(muster_build_info[1m]) >= 3"))

    def ask(self, path, **arguments):
        with urllib.request.urlopen(f"http://{self.watcher}/api/v1/{path}?{urllib.parse.urlencode(arguments)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def result(self, expr):
        try:
            return self.ask("query", query=expr)["result"]
        except OSError:
            return []

    def firing(self):
        return {one["labels"]["alertname"] for one in self.ask("alerts")["alerts"] if one["state"] == "firing"} - OF_MACHINES

    def await_firing(self, wanted):
        try:
            cli.poll("the alerts", lambda: self.firing() == wanted)
        except AssertionError:
            self.assertEqual(self.firing(), wanted)


class Monitoring(Watched):
    def setUp(self):
        super().setUp()
        self.coordinator = self.serve("--user-pods-max", "50")

    def scrape(self):
        return read(self.endpoints["metrics"])

    def node(self, name="n1"):
        self.agent_metrics = f"127.0.0.1:{free_port()}"
        agent = self.start("agent", "--coordinator", self.endpoints["listen"], "--work-dir", name, "--name", name, "--slots", "2", "--log-level", "warn",
                           "--metrics-listen", self.agent_metrics)
        cli.poll("the node is ready", lambda: re.search(rf"(?m)^{name} +Ready", self.muster("get", "nodes").stdout))
        return agent

    def run_some_work(self):
        self.file("queue.yaml", "apiVersion: muster.dev/v1\nkind: Queue\nmetadata: {name: short}\nspec: {limits: {pods: 10}}\n")
        self.muster("apply", "-f", "queue.yaml")
        self.muster("submit", "--name", "a", "-n", "3", "--", "true")
        self.muster("wait", "job/a", "--timeout", "60s")
        self.muster("submit", "--name", "b", "-n", "4", "--", "sleep", "1000")
        cli.poll("two of four pods run", lambda: ({"phase": "running"}, 2) in prometheus.samples(self.scrape())["muster_pods"])

    def test_names_and_types_are_as_prometheus_wants_them(self):
        self.node()
        self.run_some_work()
        for text in (self.scrape(), read(self.agent_metrics)):
            checked = subprocess.run([prometheus.program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
            found = [line for line in (checked.stdout + checked.stderr).splitlines() if not line.startswith(FOREIGN)]
            self.assertEqual(found, [])

    def test_metrics_are_those_of_the_documentation(self):
        self.node()
        self.run_some_work()
        self.muster("backup", str(self.dir / "backup"))
        of_coordinator, of_agents = METRICS.read_text().split(OF_AGENTS)
        of_coordinator = of_coordinator.split(OF_FOLLOWERS)[0]
        for text, wanted in ((self.scrape(), documented(of_coordinator)), (read(self.agent_metrics), documented(of_agents))):
            shown = prometheus.types(text)
            self.assertEqual({name: kind for name, kind in shown.items() if wanted.get(name) != kind}, {})
            self.assertEqual(set(wanted) - set(shown) - SOMETIMES, set())

    def test_an_agent_says_how_its_node_is(self):
        agent = self.node()
        self.run_some_work()

        def seen():
            return {name: found for name, found in prometheus.samples(read(self.agent_metrics)).items()}

        now = seen()
        self.assertEqual(now["muster_agent_connected"], [({}, 1)])
        self.assertEqual(now["muster_agent_pods"], [({"phase": "running"}, 2), ({"phase": "waiting"}, 2)])
        self.assertEqual((now["muster_agent_process_starts_total"], now["muster_agent_process_ends_total"]), ([({}, 5)], [({}, 3)]))
        # Also while there is no coordinator.
        self.coordinator.kill()
        cli.poll("it is not connected", lambda: seen()["muster_agent_connected"] == [({}, 0)])
        self.assertIsNone(agent.poll())
        refused = self.start("agent", "--coordinator", "127.0.0.1:1", "--work-dir", "n2", "--metrics-listen", "nowhere")
        self.assertNotEqual(refused.wait(cli.DEADLINE), 0)
        self.assertIn("--metrics-listen nowhere: must be ADDRESS:PORT", refused.stdout.read())

    def test_a_backup_is_known_after_a_restart(self):
        self.muster("backup", str(self.dir / "backup"))
        before = prometheus.samples(self.scrape())["muster_last_backup_timestamp_seconds"]
        self.coordinator.terminate()
        self.coordinator.wait(cli.DEADLINE)
        (self.dir / "d/endpoints.json").unlink()
        self.start("coordinator", "--data-dir", "d", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--log-level", "warn")
        cli.poll("it serves", (self.dir / "d/endpoints.json").exists)
        self.endpoints = json.loads((self.dir / "d/endpoints.json").read_text())
        self.assertEqual(prometheus.samples(self.scrape())["muster_last_backup_timestamp_seconds"], before)

    def test_each_alert_is_tested(self):
        promtool = prometheus.program("promtool")
        for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
            ran = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        fired = set(re.findall(r'alertname="(\w+)"', (FOLDER / "alerts_test.yml").read_text()))
        self.assertEqual(fired, {rule["alert"] for rule in alerts()})

    def test_alerts_and_dashboard_name_only_what_exists(self):
        self.node()
        self.run_some_work()
        self.muster("backup", str(self.dir / "backup"))
        text = self.scrape() + read(self.agent_metrics)
        exist = set(prometheus.samples(text)) | SOMETIMES
        labels = {}
        for name, found in prometheus.samples(text).items():
            labels[name] = {label for one, _ in found for label in one}
        for where, expr in queries() + [(rule["alert"], rule["expr"]) for rule in alerts()]:
            with self.subTest(where=where):
                used = {name for name in WORDS.findall(expr) if name != "job_controller_"}
                self.assertTrue(used or "up{" in expr, expr)
                self.assertEqual(used - exist, set())
                for name, selector in re.findall(r"(\w+)\{([^}]*)\}", expr):
                    wanted = set(re.findall(r"(\w+)=~?\"", selector)) - {"job", "instance"}
                    if name in labels:
                        self.assertEqual(wanted - labels[name], set(), expr)

    def test_a_prometheus_answers_the_dashboard_and_fires_for_a_lost_node(self):
        agent = self.node()
        self.run_some_work()
        self.muster("backup", str(self.dir / "backup"))
        self.watch()
        for title, expr in queries():
            for name, value in (("$job", "muster"), ("$instance", self.endpoints["metrics"]), ("$__rate_interval", "1m")):
                expr = expr.replace(name, value)
            if not SOMETIMES & set(WORDS.findall(expr)):
                self.assertTrue(self.result(expr), f"{title}: {expr}")

        self.assertEqual(self.firing(), set())
        agent.send_signal(signal.SIGKILL)
        cli.poll("the alert", lambda: "MusterNodesLost" in self.firing())
        self.assertEqual(self.firing() - {"MusterNodesLost", "MusterNoNodes"}, set())
        self.node()
        self.await_firing(set())


class Faults(Watched):
    def test_alerts_fire_for_their_faults_and_nothing_else_does(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
                        "-days", "10", "-subj", "/CN=site", "-addext", "keyUsage=critical,keyCertSign,cRLSign"], cwd=self.dir, check=True, capture_output=True)
        coordinator = self.serve("--ca-cert", "ca.pem", "--ca-key", "ca.key", "--certificate-life", "2d")
        self.muster("token", "create", "--node", "n1", "--out", "n1.token")
        ports = [f"127.0.0.1:{free_port()}" for _ in range(2)]

        def agent(name, port, *words):
            return self.start("agent", "--work-dir", name, "--name", name, "--metrics-listen", port, "--log-level", "warn", *words)

        n1 = agent("n1", ports[0], "--coordinator", self.endpoints["listenTls"], "--token-file", "n1.token")
        cli.poll("it is ready", lambda: "Ready" in self.muster("get", "nodes").stdout)
        self.watch(*ports)
        # No backup, an authority that is valid for ten days, and a node's certificate for two.
        lasting = {"MusterCertificateExpires", "MusterNodeCertificateExpires"}
        self.await_firing(lasting | {"MusterNoBackup"})
        self.muster("backup", str(self.dir / "backup"))
        self.await_firing(lasting)
        agent("n2", ports[1], "--coordinator", self.endpoints["listen"], "--health-check", "echo no fans; false")
        self.await_firing(lasting | {"MusterNodesUnusable"})
        n1.kill()
        cli.poll("a node is lost", lambda: "MusterNodesLost" in self.firing())
        coordinator.kill()
        cli.poll("the coordinator is down", lambda: "MusterCoordinatorDown" in self.firing())


if __name__ == "__main__":
    if prometheus.program("prometheus") is None:
        print("monitoring.py: skipped: there is no Prometheus, and Debian's package cannot be downloaded")
        sys.exit(0)
    os.environ.setdefault("GOMAXPROCS", "1")
    unittest.main(verbosity=2, warnings="ignore")
