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
# Kubernetes' own names, which its dashboards know.
FOREIGN = ("job_controller_", "ttl_after_finished_")
# What exists only in circumstances that this cluster is not in.
SOMETIMES = {"job_controller_jobs_by_external_controller_total", "job_controller_pod_failures_handled_by_failure_policy_total",
             "ttl_after_finished_controller_job_deletion_duration_seconds", "muster_user_pods", "muster_user_share_ratio"}
WORDS = re.compile(r"\b(?:muster|process|job_controller)_[a-z_]+")


def alerts():
    return [rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]]


def panels():
    return [panel for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"] if panel["type"] != "row"]


def queries():
    return [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]]


class Monitoring(cli.Case):
    def setUp(self):
        super().setUp()
        self.coordinator = self.start("coordinator", "--data-dir", "d", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                                      "--listen-tls", "127.0.0.1:0", "--node-grace", "2s", "--user-pods-max", "50", "--log-level", "warn")
        endpoints = self.dir / "d/endpoints.json"
        cli.poll("it serves", endpoints.exists)
        self.endpoints = json.loads(endpoints.read_text())
        self.env["MUSTER_API"] = self.endpoints["api"]

    def scrape(self):
        with urllib.request.urlopen(f"http://{self.endpoints['metrics']}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def node(self, name="n1"):
        agent = self.start("agent", "--coordinator", self.endpoints["listen"], "--work-dir", name, "--name", name, "--slots", "2", "--log-level", "warn")
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
        text = self.scrape()
        checked = subprocess.run([prometheus.program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
        found = [line for line in (checked.stdout + checked.stderr).splitlines() if not line.startswith(FOREIGN)]
        self.assertEqual(found, [])

    def test_metrics_are_those_of_the_documentation(self):
        self.node()
        self.run_some_work()
        self.muster("backup", str(self.dir / "backup"))
        shown = prometheus.types(self.scrape())
        documented = {}
        for row in METRICS.read_text().splitlines():
            names, kind = [cell.strip() for cell in (row + "|||").split("|")[1:3]]
            if kind in ("counter", "gauge", "histogram"):
                documented |= {name: kind for name in re.findall(r"`(\w+)`", names)}
        self.assertEqual({name: kind for name, kind in shown.items() if documented.get(name) != kind}, {})
        self.assertEqual(set(documented) - set(shown) - SOMETIMES, set())

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
        text = self.scrape()
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

    def prometheus(self):
        """Starts a Prometheus that reads the coordinator each second, and to whose alerts a fault need not last. Returns its address."""
        rules = re.sub(r"for: \w+", "for: 0s", (FOLDER / "alerts.yml").read_text())
        self.file("rules.yml", rules)
        self.file("prometheus.yml", json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "muster", "static_configs": [{"targets": [self.endpoints["metrics"]]}]}]}))
        address = f"127.0.0.1:{free_port()}"
        server = subprocess.Popen([prometheus.program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                                   f"--web.listen-address={address}"], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return address

    def ask(self, server, path, **arguments):
        with urllib.request.urlopen(f"http://{server}/api/v1/{path}?{urllib.parse.urlencode(arguments)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def test_a_prometheus_answers_the_dashboard_and_fires_for_a_lost_node(self):
        agent = self.node()
        self.run_some_work()
        self.muster("backup", str(self.dir / "backup"))
        server = self.prometheus()

        def result(expr):
            try:
                return self.ask(server, "query", query=expr)["result"]
            except OSError:
                return []

        cli.poll("two samples", lambda: result("count_over_time(muster_build_info[1m]) >= 3"))
        for title, expr in queries():
            for name, value in (("$job", "muster"), ("$instance", self.endpoints["metrics"]), ("$__rate_interval", "1m")):
                expr = expr.replace(name, value)
            if not SOMETIMES & set(WORDS.findall(expr)):
                self.assertTrue(result(expr), f"{title}: {expr}")

        def firing():
            return {one["labels"]["alertname"] for one in self.ask(server, "alerts")["alerts"] if one["state"] == "firing"}

        self.assertEqual(firing(), set())
        agent.send_signal(signal.SIGKILL)
        cli.poll("the alert", lambda: "MusterNodesLost" in firing())
        self.assertEqual(firing() - {"MusterNodesLost", "MusterNoNodes"}, set())
        self.node()
        cli.poll("its end", lambda: not firing())


if __name__ == "__main__":
    if prometheus.program("prometheus") is None:
        print("monitoring.py: skipped: there is no Prometheus, and Debian's package cannot be downloaded")
        sys.exit(0)
    os.environ.setdefault("GOMAXPROCS", "1")
    unittest.main(verbosity=2, warnings="ignore")
