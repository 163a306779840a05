#!/usr/bin/env python3
"""What kubectl users type out of habit, and `muster dev`, a local cluster in one command.

MUSTER names the executable. Waits poll with a deadline.
"""
import json
import os
import pathlib
import re
import signal
import socket
import sys
import time
import unittest
import urllib.request

import cli
from cli import manifest, poll

PAIR = manifest("one", "sleep 1000") + "---\n" + manifest("two", "sleep 1000").replace("metadata: {", "metadata: {namespace: lab, ")


def running_below(folder):
    """Processes with this folder in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in words and int(entry.name) != os.getpid():
                found.append(words.replace(b"\0", b" ").decode())
    return found


class Reflexes(cli.Cluster):
    def test_connection_flags_may_precede_the_verb(self):
        self.muster("-n", "lab", "create", "-f", "-", stdin=manifest("early", "true"))
        self.assertEqual(self.muster("-nlab", "--request-timeout", "9s", "get", "jobs", "-o", "name").stdout, "job.batch/early\n")
        self.assertIn("No jobs found", self.muster("get", "jobs").stderr)
        self.assertIn("n1", self.muster("-n", "lab", "--api", self.api, "get", "nodes", MUSTER_API="127.0.0.1:9").stdout)
        r = self.muster("-n", "lab", "submit", "-n", "1", "--name", "counted", "--", "true")
        self.assertIn("counted", r.stdout)
        self.muster("-n", "lab", "wait", "job/counted", "job/early")

    def test_delete_by_file_deletes_each_object(self):
        self.file("both.yaml", PAIR)
        self.muster("create", "-f", "both.yaml")
        self.assertEqual(self.muster("delete", "-f", "both.yaml").stdout, "job.batch/one deleted\njob.batch/two deleted\n")
        self.muster("wait", "job/one", "--for=delete")
        self.muster("wait", "-n", "lab", "job/two", "--for=delete")
        self.muster("delete", "-f", "both.yaml", code=3)
        self.muster("delete", "-f", "both.yaml", "--ignore-not-found")
        # An object that cannot be deleted does not prevent the deletion of the rest.
        self.muster("create", "-f", "-", stdin=manifest("one", "sleep 1000"))
        r = self.muster("delete", "-f", "missing.yaml", "-f", "-", stdin="kind: Pod\napiVersion: v1\n---\n" + manifest("one", "true"), code=5)
        self.assertEqual(r.stdout, "job.batch/one deleted\n")
        self.assertIn("metadata.namespace: is lab, but -n is other", self.muster("delete", "-n", "other", "-f", "both.yaml", code=3).stderr)

    def test_delete_by_label_all_and_pod(self):
        for name in ("red", "blue", "green"):
            self.muster("create", "-f", "-", stdin=manifest(name, "sleep 1000", 1, 1).replace("metadata: {", f"metadata: {{labels: {{color: {name}}}, "))
        self.assertEqual(self.muster("delete", "jobs", "-l", "color=red").stdout, "job.batch/red deleted\n")
        poll("it runs", lambda: self.status("blue").get("ready") == 1)
        pod = self.muster("get", "pods", "-l", "job-name=blue", "-o", "name").stdout.strip()
        self.assertEqual(self.muster("delete", pod).stdout, f"{pod} deleted\n")
        poll("another pod runs", lambda: pod not in self.muster("get", "pods", "-l", "job-name=blue", "-o", "name").stdout)
        self.assertEqual(sorted(self.muster("delete", "job", "--all").stdout.split()),
                         ["deleted", "deleted", "job.batch/blue", "job.batch/green"])
        self.assertIn("No jobs found", self.muster("delete", "job", "--all").stderr)

    def test_get_all_and_describe_a_name(self):
        text = manifest("huge", "true", 1, 1).replace("- name: main\n", "- name: main\n        resources: {requests: {cpu: 1000}}\n")
        self.assertIn("No objects found in namespace default", self.muster("get", "all").stderr)
        self.muster("create", "-f", "-", stdin=text + "---\n" + manifest("small", "true", 1, 1))
        self.muster("wait", "job/small")
        poll("it is Pending", lambda: self.muster("get", "job", "huge", "--no-headers").stdout.split()[1:2] == ["Pending"])
        pods = self.muster("get", "po", "-o", "name").stdout.split()
        table = self.muster("get", "all").stdout
        for name in (*pods, "job.batch/huge", "job.batch/small"):
            self.assertRegex(table, rf"(?m)^{re.escape(name)} ")
        self.assertEqual(len(table.split("\n\n")), 2, table)
        items = json.loads(self.muster("get", "jobs,pods,no", "-o", "json").stdout)["items"]
        self.assertEqual([item["kind"] for item in items], ["Job", "Job", "Pod", "Pod", "Node"])
        described = self.muster("describe", "huge").stdout
        for part in (r"State: +Pending", r"Why: +1 pod is waiting for a slot", "requests 1000 cpu", "Requests: +cpu=1k", "Command: +sh -c true"):
            self.assertRegex(described, part)
        self.assertRegex(self.muster("describe", pods[0].split("/")[1]).stdout, "Job: +(huge|small)")
        self.assertIn("Schedulable:", self.muster("describe", "n1").stdout)
        self.assertIn('no job, pod or node "nobody"', self.muster("describe", "nobody", code=3).stderr)
        self.muster("delete", "-f", "-", stdin=text)

    def test_explain_and_top(self):
        text = self.muster("explain", "job.spec.backoffLimitPerIndex").stdout
        self.assertIn("FIELD:    backoffLimitPerIndex <integer>", text)
        self.assertIn("VERSION:  batch/v1", text)
        self.assertIn("  podFailurePolicy <PodFailurePolicy>\n", self.muster("explain", "jobs.batch.spec").stdout)
        self.assertRegex(self.muster("explain", "job", "--recursive").stdout, r"(?m)^    podFailurePolicy <PodFailurePolicy>\n      rules <\[\]PodFailurePolicyRule>$")
        self.assertIn("did you mean spec", self.muster("explain", "job.spce", code=3).stderr)
        self.assertIn("<", self.muster("explain", "node.status").stdout)
        self.muster("create", "-f", "-", stdin=manifest("busy", "sleep 1000", 3, 3))
        poll("three run", lambda: self.status("busy").get("ready") == 3)
        self.assertEqual(self.muster("top", "nodes", "--no-headers").stdout.split()[:5], ["n1", "4", "3", "75%", "0"])
        self.assertEqual(self.muster("top", "jobs", "--no-headers").stdout.split(), ["busy", "3", "0", "0", "0"])
        self.muster("delete", "job", "busy")

    def test_left_node_is_shown_as_left(self):
        self.agent.terminate()
        self.assertEqual(self.agent.wait(cli.DEADLINE), 0)
        poll("it has left", lambda: re.search(r"^n1 +Left \(\d+s ago\) ", self.muster("get", "nodes").stdout, re.M))
        ready = json.loads(self.muster("get", "node", "n1", "-o", "json").stdout)["status"]["conditions"][0]
        self.assertEqual((ready["status"], ready["reason"]), ("False", "AgentLeft"))
        self.agent = self.start("agent", "--coordinator", self.listen, "--work-dir", "a", "--name", "n1", "--slots", "4", "--log-level", "warn")
        poll("it is back", lambda: re.search(r"^n1 +Ready ", self.muster("get", "nodes").stdout, re.M))
        self.agent.kill()
        poll("one that was killed has not left", lambda: re.search(r"^n1 +NotReady ", self.muster("get", "nodes").stdout, re.M))


class Starting(cli.Case):
    def test_client_reports_waiting_for_the_coordinator(self):
        began = time.monotonic()
        r = self.muster("get", "jobs", "--api", "127.0.0.1:9", "--connect-timeout", "1200ms", code=4)
        self.assertGreater(time.monotonic() - began, 1.1)
        self.assertIn("waiting up to 1s for the coordinator at 127.0.0.1:9", r.stderr)
        r = self.muster("get", "jobs", "--api", "127.0.0.1:9", code=4, MUSTER_CONNECT_TIMEOUT="0s")
        self.assertNotIn("waiting", r.stderr)


class Dev(cli.Case):
    def begin(self, *words):
        dev = self.start("dev", *words)
        line = dev.stdout.readline()
        folder = pathlib.Path(re.search(r"state and logs in (\S+)", line)[1])
        self.env["MUSTER_API"] = re.search(r"export MUSTER_API=(\S+)", dev.stdout.readline())[1]
        self.page = re.search(r"web page: (\S+)", dev.stdout.readline())[1]
        return dev, folder

    def end(self, dev, folder):
        dev.send_signal(signal.SIGINT)
        self.assertEqual(dev.wait(2 * cli.DEADLINE), 0)
        poll("no process is left", lambda: not running_below(folder))

    def test_dev_cluster_starts_and_stops_cleanly(self):
        dev, folder = self.begin("--nodes", "2", "--slots", "3")
        self.assertEqual(len(self.muster("get", "nodes", "-o", "name").stdout.split()), 2)
        self.muster("create", "-f", "-", stdin=manifest("polite", f"trap 'echo bye > {self.dir}/bye; exit 0' TERM; touch {self.dir}/here; while :; do sleep 0.05; done", 1, 1))
        poll("it runs", (self.dir / "here").exists)
        # A daemon that ends is restarted.
        ends = json.loads((folder / "coordinator/endpoints.json").read_text())
        self.assertEqual(ends["listen"], f"unix:{folder}/agents", "nobody else can take this place")
        self.assertEqual(self.env["MUSTER_API"], f"unix:{folder}/api.sock", "nor this one")
        self.assertEqual(urllib.request.urlopen(self.page).status, 200)
        before = ends["pid"]
        os.kill(before, signal.SIGKILL)
        self.assertIn("ended by itself", dev.stdout.readline() + dev.stdout.readline())
        self.assertIn("polite", self.muster("get", "jobs", "--connect-timeout", "30s").stdout)
        self.end(dev, folder)
        self.assertEqual((self.dir / "bye").read_text(), "bye\n")
        self.assertFalse(folder.exists())
        self.assertEqual(self.left_in_tmp(), [])

    def test_dev_uses_a_port_if_the_socket_path_is_too_long(self):
        dev, folder = self.begin("--nodes", "1", "--data-dir", "d" * 120)
        self.assertRegex(self.env["MUSTER_API"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(self.muster("get", "nodes", "-o", "name").stdout, "node/dev-0\n")
        self.end(dev, folder)

    def test_killed_dev_leaves_nothing(self):
        dev, folder = self.begin("--nodes", "1")
        self.muster("create", "-f", "-", stdin=manifest("stubborn", "trap '' TERM; while :; do sleep 0.05; done", 1, 1))
        dev.kill()
        poll("all are gone", lambda: not folder.exists() and not running_below(folder))

    def test_dev_keeps_state_in_its_data_dir(self):
        dev, folder = self.begin("--nodes", "1", "--data-dir", "d")
        self.assertEqual(folder, self.dir / "d")
        self.muster("run", "-n", "1", "--name", "kept", "--", "true")
        self.assertIn("in use by another muster dev", self.muster("dev", "--data-dir", "d", code=5).stderr)
        self.assertEqual(len(self.muster("get", "nodes", "-o", "name").stdout.split()), 1)  # undisturbed
        self.end(dev, folder)
        dev, folder = self.begin("--nodes", "1", "--data-dir", "d")
        self.assertIn("Complete", self.muster("get", "job", "kept").stdout)
        self.end(dev, folder)
        self.file("own", "")
        self.assertIn("neither empty nor from an earlier muster dev", self.muster("dev", "--data-dir", ".", code=5).stderr)

    def test_dev_runs_a_command(self):
        r = self.muster("dev", "--nodes", "1", "--", "sh", "-c", '"$0" run -n 2 -- echo hello && exit 7', cli.MUSTER, code=7)
        self.assertIn("2/2 succeeded", r.stderr)
        self.assertIn("muster dev: 1 node of 4 slots", r.stderr)
        self.assertEqual(self.left_in_tmp(), [])
        r = self.muster("dev", "--nodes", "1", "--", "/no/such", code=127)
        self.assertIn("cannot run /no/such: No such file or directory", r.stderr)

    def test_a_port_in_use_is_named(self):

        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.assertIn(f"--api {address}: address already in use", self.muster("dev", "--api", address, code=4).stderr)
        self.assertEqual(self.left_in_tmp(), [])


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
