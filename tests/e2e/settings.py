#!/usr/bin/env python3
"""Configuration, completion, version, kubeconfig.

MUSTER names the executable. Waits poll with a deadline.
"""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import unittest

import yaml

import cli

ROOT = cli.ROOT


class Config(cli.Case):
    def view(self, *words, **env):
        return {s["key"]: s for s in json.loads(self.muster("config", "view", "-o", "json", *words, **env).stdout)}

    def test_config_view_names_the_source_of_each_value(self):
        user = self.dir / ".config/muster/config.yaml"
        user.parent.mkdir(parents=True)
        self.file("system.yaml", "api: s:1\nnamespace: site\nagent:\n  label: {disk: ssd}\n")
        user.write_text("# mine\nnamespace: lab\n")
        seen = self.view()
        self.assertEqual((seen["api"]["value"], seen["api"]["from"]), ("s:1", f"{self.dir}/system.yaml:1"))
        self.assertEqual((seen["namespace"]["value"], seen["namespace"]["from"]), ("lab", f"{user}:2"))
        self.assertEqual(seen["agent.label"]["value"], ["disk=ssd"])
        self.assertEqual((seen["coordinator.node-grace"]["value"], seen["coordinator.node-grace"]["from"]), ("40s", "default"))
        self.assertEqual(self.view(MUSTER_API="v:2")["api"]["from"], "MUSTER_API")
        self.assertEqual(self.view("--api", "f:3", MUSTER_API="v:2")["api"]["from"], "--api")
        self.assertEqual(yaml.safe_load(self.muster("config", "view", "-o", "yaml").stdout)[0]["key"], "api")
        table = self.muster("config", "view").stdout
        self.assertRegex(table, r"(?m)^KEY +VALUE +FROM$")
        self.assertIn("MUSTER_AGENT_SLOTS", self.muster("config", "view", "-o", "wide").stdout)
        paths = self.muster("config", "path").stdout
        self.assertIn(f"user    {user}\n", paths)
        user.unlink()
        self.assertIn(f"{user} (not found)\n", self.muster("config", "path").stdout)

    def test_unknown_config_key_stops_each_verb_that_reads_the_file(self):
        self.file("system.yaml", "api: s:1\nnamspace: x\n")
        for words in (("get", "jobs"), ("config", "view"), ("coordinator", "--data-dir", "d"), ("agent", "--hollow")):
            r = self.muster(*words, code=2)
            self.assertIn(f"{self.dir}/system.yaml:2: unknown key namspace; did you mean namespace?", r.stderr)
        self.muster("completion", "bash")
        self.muster("get", "--help")

    def test_config_check_says_whether_the_daemons_would_start(self):
        self.file("system.yaml", "namespace: site\n")
        self.file("c.yaml", "data-dir: /var/lib/muster\nnode-grace: 1m\n")
        self.file("a.yaml", "work-dir: /local/muster\nlabel: {disk: ssd}\n")
        files = ("--coordinator-config", "c.yaml", "--agent-config", "a.yaml")
        checked = self.muster("config", "check", *files).stdout.splitlines()
        self.assertEqual(checked, [f"{self.dir}/system.yaml: no errors", "c.yaml: no errors", "a.yaml: no errors"])
        for file, text, error in (("c.yaml", "data-dir: d\nnode-grace: 1ms\n", "c.yaml:2: coordinator.node-grace: must be at least 1s"),
                                  ("c.yaml", "data-dir: d\nnode-grce: 1s\n", "c.yaml:2: unknown key node-grce of coordinator; did you mean node-grace?"),
                                  ("c.yaml", "node-grace: 1s\n", "c.yaml: --data-dir D is required"),
                                  ("a.yaml", "work-dir: w\nslots: none\n", "a.yaml:2: agent.slots: ")):
            self.file("c.yaml", "data-dir: d\n")
            self.file("a.yaml", "work-dir: w\n")
            self.file(file, text)
            self.assertIn(error, self.muster("config", "check", *files, code=2).stderr)
        self.assertFalse((self.dir / "d").exists())

    def test_each_config_key_is_documented(self):
        table = (ROOT / "docs/configuration.md").read_text()
        for key, setting in self.view().items():
            self.assertIn(f"| `{key}` |", table)
            self.assertIn(f"`{setting['variable']}`", table)

    def test_daemons_start_from_a_config_file(self):
        self.file("c.yaml", "data-dir: d\napi: 127.0.0.1:0\nlisten: 127.0.0.1:0\nlog-level: warn\n")
        self.start("coordinator", "--config", "c.yaml")
        endpoints = self.dir / "d/endpoints.json"
        cli.poll("it serves", endpoints.exists)
        addresses = json.loads(endpoints.read_text())
        self.file("a.yaml", f"coordinator: {addresses['listen']}\nhollow: true\nname: h1\nslots: 3\nlog-level: warn\nlabel: {{disk: ssd}}\n")
        self.start("agent", "--config", "a.yaml")
        self.env["MUSTER_API"] = addresses["api"]
        cli.poll("the node is there", lambda: "h1" in self.muster("get", "nodes", "-o", "name").stdout)
        node = json.loads(self.muster("get", "node", "h1", "-o", "json").stdout)
        self.assertEqual(node["metadata"]["labels"]["disk"], "ssd")


    def hang_up(self, daemon, log, *expected):
        """Sends SIGHUP, and expects these lines in the daemon's log since the last time."""
        before = log.stat().st_size
        daemon.send_signal(signal.SIGHUP)
        cli.poll(f"{expected} in {log.name}", lambda: all(line in log.read_text()[before:] for line in expected))
        self.assertIsNone(daemon.poll())

    def test_daemons_read_their_files_again(self):
        text = "data-dir: d\napi: 127.0.0.1:0\nlisten: 127.0.0.1:0\n"
        self.file("c.yaml", text)
        logs = {name: self.dir / f"{name}.log" for name in ("coordinator", "agent")}
        daemons = {}
        def start(name, *words):
            with open(logs[name], "wb") as log:
                daemons[name] = self.start(name, *words, stderr=log, start_new_session=True)  # without a terminal
        start("coordinator", "--config", "c.yaml")
        endpoints = self.dir / "d/endpoints.json"
        cli.poll("it serves", endpoints.exists)
        self.hang_up(daemons["coordinator"], logs["coordinator"], "SIGHUP: no setting has changed")
        self.file("c.yaml", text + "log-level: debug\nnode-grace: 1m\n")
        self.hang_up(daemons["coordinator"], logs["coordinator"], "SIGHUP: log-level: info -> debug (c.yaml:4)",
                     "SIGHUP: node-grace: 40s -> 1m (c.yaml:5): takes effect after a restart")
        self.file("c.yaml", text + "log-level: loud\n")
        self.hang_up(daemons["coordinator"], logs["coordinator"], "SIGHUP: the configuration stays as it is: c.yaml:4: ")
        self.file("c.yaml", text + "node-grace: 1ms\n")
        self.hang_up(daemons["coordinator"], logs["coordinator"], "SIGHUP: the configuration stays as it is: c.yaml:4: ")

        agent = f"coordinator: {json.loads(endpoints.read_text())['listen']}\nwork-dir: w\n"
        self.file("a.yaml", agent)
        start("agent", "--config", "a.yaml")
        cli.poll("it runs", lambda: (self.dir / "w/keeper/socket").exists())
        self.file("a.yaml", agent + "log-level: debug\nslots: 3\n")
        self.hang_up(daemons["agent"], logs["agent"], "SIGHUP: log-level: info -> debug (a.yaml:3)",
                     "SIGHUP: slots: <none> -> 3 (a.yaml:4): takes effect after a restart")


    def running(self, daemon, *words):
        """What `config view --daemon` shows, by key without the daemon's name."""
        shown = json.loads(self.muster("config", "view", "--daemon", daemon, "-o", "json", *words).stdout)
        return {s["key"].removeprefix(daemon + "."): s for s in shown}

    def test_config_view_shows_what_running_daemons_use(self):
        text = "data-dir: d\napi: 127.0.0.1:0\nlisten: 127.0.0.1:0\n"
        self.file("c.yaml", text + "log-level: warn\n")
        log = self.dir / "coordinator.log"
        view = ("config", "view", "--daemon", "coordinator", "--data-dir", "d")
        self.assertIn(f"no coordinator is running on {self.dir}/d", self.muster(*view, code=4).stderr)
        with open(log, "wb") as err:
            coordinator = self.start("coordinator", "--config", "c.yaml", "--node-grace", "50s", stderr=err, start_new_session=True)
        endpoints = self.dir / "d/endpoints.json"
        cli.poll("it serves", endpoints.exists)
        cli.poll("its settings", (self.dir / "d/settings.json").exists)
        self.assertEqual((self.dir / "d/settings.json").stat().st_mode & 0o777, 0o600)
        find = ("--coordinator-config", f"{self.dir}/c.yaml")  # which has its data-dir
        seen = self.running("coordinator", *find)
        self.assertEqual(seen["node-grace"], {"key": "coordinator.node-grace", "value": "50s", "from": "--node-grace",
                                              "variable": "MUSTER_COORDINATOR_NODE_GRACE"})
        self.assertEqual((seen["log-level"]["value"], seen["log-level"]["from"]), ("warn", "c.yaml:4"))
        self.assertEqual((seen["placement"]["value"], seen["placement"]["from"]), ("pack", "default"))
        self.assertEqual([s for s in seen.values() if "changedTo" in s], [])
        self.assertNotIn("CHANGED", self.muster(*view).stdout)

        self.file("c.yaml", text + "log-level: info\nplacement: spread\nnode-grace: 1m\n")
        path = f"{self.dir}/c.yaml"
        seen = self.running("coordinator", *find)
        self.assertEqual(seen["log-level"]["changedTo"], {"value": "info", "from": f"{path}:4", "takesEffectAt": "reload"})
        self.assertEqual(seen["placement"]["changedTo"], {"value": "spread", "from": f"{path}:5", "takesEffectAt": "restart"})
        self.assertNotIn("changedTo", seen["node-grace"])  # its flag wins
        self.assertEqual(seen["placement"]["value"], "pack")
        table = self.muster(*view).stdout
        self.assertRegex(table, r"(?m)^KEY +VALUE +FROM +CHANGED TO$")
        self.assertRegex(table, rf"(?m)^coordinator.placement +pack +default +spread \({path}:5\), takes effect at a restart$")

        self.hang_up(coordinator, log, "SIGHUP: placement: pack -> spread (c.yaml:5): takes effect after a restart")
        cli.poll("the reload is shown", lambda: self.running("coordinator", *find)["log-level"]["value"] == "info")
        seen = self.running("coordinator", *find)
        self.assertNotIn("changedTo", seen["log-level"])
        self.assertIn("changedTo", seen["placement"])

        self.file("c.yaml", text + "plcement: spread\n")
        broken = self.muster(*view, "-o", "json", code=5)
        self.assertIn(f"its files cannot be compared with this: {path}:4: unknown key plcement", broken.stderr)
        self.assertTrue(any(s["key"] == "coordinator.placement" for s in json.loads(broken.stdout)))

        self.file("a.yaml", f"coordinator: {json.loads(endpoints.read_text())['listen']}\nwork-dir: {self.dir}/w\nslots: 2\n")
        self.env["MUSTER_AGENT_LABEL"] = "disk=ssd"
        self.start("agent", "--config", "a.yaml", start_new_session=True, stderr=subprocess.DEVNULL)
        del self.env["MUSTER_AGENT_LABEL"]
        cli.poll("its settings", (self.dir / "w/settings.json").exists)
        self.file("a.yaml", f"work-dir: {self.dir}/w\nslots: 3\n")
        seen = self.running("agent", "--agent-config", f"{self.dir}/a.yaml")
        self.assertEqual(seen["slots"]["value"], "2")
        self.assertEqual(seen["slots"]["changedTo"]["value"], "3")
        self.assertEqual(seen["label"], {"key": "agent.label", "value": ["disk=ssd"], "from": "MUSTER_AGENT_LABEL", "variable": "MUSTER_AGENT_LABEL"})

        self.file("keeper.env", "# ours\nMUSTER_KEEPER_UMASK=077\nMUSTER_KEEPER_CGROUP='off'\nOTHER=1\n")
        keeper = self.running("keeper", "--work-dir", "w", "--keeper-env", "keeper.env")
        self.assertEqual(keeper["MUSTER_KEEPER_UMASK"]["changedTo"], {"value": "077", "from": "keeper.env:2", "takesEffectAt": "restart"})
        self.assertNotEqual(keeper["MUSTER_KEEPER_UMASK"]["value"], "077")
        self.assertEqual(keeper["MUSTER_KEEPER_CGROUP"]["changedTo"]["value"], "off")
        self.assertIsNone(keeper["MUSTER_KEEPER_CGROUP"]["value"])
        self.assertNotIn("OTHER", keeper)
        self.assertIn(f"no keeper is running on {self.dir}/d", self.muster("config", "view", "--daemon", "keeper", "--work-dir", "d", code=4).stderr)

        coordinator.kill()
        coordinator.wait()
        self.assertIn(f"the last one, pid {coordinator.pid}, has ended", self.muster(*view, code=4).stderr)
        wrong = self.muster("config", "view", "--daemon", "agent", "--work-dir", "d", code=5)
        self.assertIn("is the directory of a coordinator, not of an agent", wrong.stderr)
        for words, error in ((("config", "check", "--daemon", "agent"), "--daemon belongs to muster config view"),
                             (("config", "view", "--data-dir", "d"), "--data-dir needs --daemon coordinator"),
                             (("config", "view", "--daemon", "agent"), "which work-dir? Give --work-dir D")):
            self.assertIn(error, self.muster(*words, code=2).stderr)
        if os.getuid() != 0:
            (self.dir / "d").chmod(0)
            self.assertIn("Permission denied; only root and the coordinator's user may", self.muster(*view, code=5).stderr)
            (self.dir / "d").chmod(0o700)

    def test_logs_are_json_if_asked(self):
        logs, daemons = {}, {}
        def start(name, *words):
            logs[name] = self.dir / f"{name}.log"
            with open(logs[name], "wb") as log:
                daemons[name] = self.start(name, *words, "--log-format", "json", "--log-level", "debug", stderr=log, start_new_session=True)
        start("coordinator", "--data-dir", "d", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0")
        endpoints = self.dir / "d/endpoints.json"
        cli.poll("it serves", endpoints.exists)
        addresses = json.loads(endpoints.read_text())
        self.env["MUSTER_API"] = addresses["api"]
        start("agent", "--coordinator", addresses["listen"], "--work-dir", "w", "--name", "n1", "--slots", "2")
        cli.poll("the node is there", lambda: "n1" in self.muster("get", "nodes", "-o", "name").stdout)
        self.file("j.yaml", cli.manifest("j", "exit $(($JOB_COMPLETION_INDEX == 1))"))
        self.muster("create", "-f", "j.yaml")
        self.muster("wait", "job/j", "--for=condition=Failed", "--timeout", "60s")
        self.muster("delete", "job", "j")
        second = self.muster("coordinator", "--data-dir", "d", "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0", "--log-format", "json", code=5)
        self.assertIn("d is in use", json.loads(second.stderr.splitlines()[-1])["message"], second.stderr)
        seen = {}
        for name in ("agent", "coordinator"):
            daemons[name].terminate()
            self.assertEqual(daemons[name].wait(cli.DEADLINE), 0)
            lines = [json.loads(line) for line in logs[name].read_bytes().decode().splitlines()]
            for line in lines:
                self.assertEqual(list(line), ["time", "level", "component", "message"], line)
                self.assertEqual(line["component"], name)
                self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
                self.assertIn(line["level"], ("debug", "info", "warning", "error"))
            self.assertEqual([line["time"] for line in lines], sorted(line["time"] for line in lines))
            seen[name] = [line["message"] for line in lines]
            self.assertRegex("\n".join(seen[name]), rf"(?m)^muster \S+ has started, pid {daemons[name].pid}$")
            self.assertEqual(seen[name][-1], "stopped")
        told = "\n".join(seen["coordinator"])
        self.assertRegex(told, r"(?m)^j1 default/j created")
        self.assertRegex(told, r"(?m)^j1 default/j is over: Failed \(FailedIndexes\): 2 of 3 succeeded, 1 failed, 3 attempts$")
        self.assertRegex(told, rf"(?m)^delete jobs default/j by \S+ \(uid {os.getuid()}\)$")
        self.assertIn("SIGTERM: shutting down; pods keep running", seen["coordinator"])


class Bash:
    """Asks bash for completions."""

    def complete(self, line):
        script = (f"source <(muster completion bash); COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}; _muster; "
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        env = {**self.env, "PATH": f"{os.path.dirname(cli.MUSTER)}:{os.environ['PATH']}"}
        r = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, cwd=self.dir, env=env, timeout=60)
        self.assertEqual(r.stderr, "", line)
        return r.stdout.split("\n")[:-1] if r.stdout.strip() else []


class Completion(Bash, cli.Case):
    def test_bash_completes_verbs_flags_and_values(self):
        self.assertEqual(self.complete("muster dr"), ["drain", "drill"])
        self.assertIn("run", self.complete("muster "))
        self.assertEqual(self.complete("muster get --all"), ["--all-namespaces"])
        self.assertEqual(self.complete("muster get jobs -o j"), ["json"])
        self.assertEqual(self.complete("muster get jobs --output=y"), ["yaml"])
        self.assertEqual(self.complete("muster get no"), ["nodes"])
        self.assertEqual(self.complete("muster get a"), ["all", "attempts", "allocations"])
        self.assertEqual(self.complete("muster coordinator --log-level d"), ["debug"])
        self.assertEqual(self.complete("muster completion f"), ["fish"])
        self.assertEqual(self.complete("muster config "), ["view", "path", "check"])
        self.assertEqual(self.complete("muster nonsense "), [])

    def test_bash_completes_files_and_directories(self):
        self.file("job.yaml", "")
        (self.dir / "job-state").mkdir()
        self.assertEqual(sorted(self.complete("muster create -f job")), ["job-state", "job.yaml"])
        self.assertIn("job.yaml", self.complete("muster run jo"))
        self.assertEqual(self.complete("muster coordinator --data-dir jo"), ["job-state"])
        self.assertEqual(sorted(self.complete("muster run -n 3 -- ./jo")), ["./job-state", "./job.yaml"])

    def test_completion_is_silent_without_a_coordinator(self):
        self.env["MUSTER_API"] = "127.0.0.1:9"
        self.assertEqual(self.complete("muster wait "), [])
        self.assertEqual(self.complete("muster get pods "), [])

    def test_zsh_and_fish_parse_their_scripts(self):
        checked = []
        for shell in ("zsh", "fish"):
            script = self.muster("completion", shell).stdout
            self.assertIn("drain", script)
            if shutil.which(shell):
                r = subprocess.run([shell, "-n", self.file(f"muster.{shell}", script)], capture_output=True, text=True, cwd=self.dir)
                self.assertEqual((r.returncode, r.stderr), (0, ""))
                checked.append(shell)
        if "fish" in checked:
            r = subprocess.run(["fish", "--no-config", "-c", 'source muster.fish; complete -C "muster dr"'], capture_output=True,
                               text=True, cwd=self.dir, env=self.env)
            self.assertTrue(r.stdout.startswith("drain\t"), r.stdout + r.stderr)
        if len(checked) < 2:
            self.skipTest(f"the syntax is checked with the shells that are here: {', '.join(checked) or 'none'}")


class CompletionOfNames(Bash, cli.Cluster):
    def test_names_come_from_the_coordinator(self):
        self.muster("create", "-f", "-", stdin=cli.manifest("sweep", "true", 1, 1) + "---\n" + cli.manifest("train", "true", 1, 1))
        self.muster("wait", "job/sweep", "job/train", "--timeout", "30s")
        self.assertEqual(self.complete("muster wait "), ["job/sweep", "job/train"])
        self.assertEqual(self.complete("muster delete job/s"), ["job/sweep"])
        self.assertEqual(self.complete("muster describe job t"), ["train"])
        self.assertEqual(self.complete("muster drain "), ["n1"])
        pods = self.complete("muster get pods sweep")
        self.assertEqual(len(pods), 1)
        self.assertRegex(pods[0], r"^sweep-0-\w{5}$")
        self.assertIn(pods[0], self.complete("muster logs "))
        self.assertEqual(self.complete("muster wait -n other "), [])
        del self.env["MUSTER_API"]
        self.assertEqual(self.complete(f"muster wait --api {self.api} job/t"), ["job/train"])


class Version(cli.Case):
    def test_version_describes_this_build(self):
        said = json.loads(self.muster("version", "--client", "-o", "json").stdout)["client"]
        self.assertRegex(said["version"], r"^\d+\.\d+\.\d+$")
        self.assertRegex(said["revision"], r"^([0-9a-f]{12}(-dirty)?|unknown)$")
        self.assertIn("RocksDB", said["libraries"])
        schema = (ROOT / "schema/journal.capnp").read_text()
        self.assertEqual(said["formats"]["journal"], int(re.search(r"journalFormat :UInt32 = (\d+)", schema).group(1)))
        self.assertEqual(set(said["protocols"]), {"agent", "keeper", "keeperOldest", "spool", "standby", "standbyOldest"})
        self.assertEqual(yaml.safe_load(self.muster("version", "--client", "-o", "yaml").stdout)["client"], said)
        self.assertRegex(self.muster("version", "--client").stdout, r"^muster \d")

    def test_version_fails_without_the_coordinator_named_by_api(self):
        self.muster("version", "--api", "127.0.0.1:9", code=4)
        # If the address was not given on the command line, an unreachable coordinator is not an error.
        (self.dir / "system.yaml").write_text("api: 127.0.0.1:9\n")
        self.assertIn("cannot reach", self.muster("version", "--request-timeout", "1s").stdout)


class Kubeconfig(cli.Cluster):
    def test_version_shows_the_coordinator(self):
        said = json.loads(self.muster("version", "-o", "json").stdout)["coordinator"]
        self.assertEqual(said["address"], self.api)
        self.assertIn("muster", said["version"])

    def test_it_names_this_coordinator(self):
        config = yaml.safe_load(self.muster("kubeconfig", "-n", "lab").stdout)
        self.assertEqual(config["clusters"][0]["cluster"]["server"], f"http://{self.api}")
        self.assertEqual(config["contexts"][0]["context"]["namespace"], "lab")

    def test_p01_through_a_unix_socket_it_names_the_port_that_kubectl_can_use(self):
        self.start("coordinator", "--data-dir", "s", "--api", "127.0.0.1:0", "--api-socket", self.dir / "api.sock", "--listen", "127.0.0.1:0", "--log-level", "warn")
        cli.poll("it serves", (self.dir / "s/endpoints.json").exists)
        config = yaml.safe_load(self.muster("kubeconfig", "--api", f"unix:{self.dir}/api.sock").stdout)
        self.assertEqual(config["clusters"][0]["cluster"]["server"], "http://" + json.loads((self.dir / "s/endpoints.json").read_text())["api"])
        self.assertEqual(config["users"][0]["user"], {})

    def test_kubectl_accepts_the_kubeconfig(self):
        if not shutil.which("kubectl"):
            self.skipTest("there is no kubectl")
        self.muster("create", "-f", "-", stdin=cli.manifest("seen", "true", 1, 1))
        path = self.file("kubeconfig", self.muster("kubeconfig").stdout)
        r = subprocess.run(["kubectl", "--kubeconfig", path, "get", "jobs"], capture_output=True, text=True, env=self.env, cwd=self.dir,
                           timeout=60)
        self.assertIn("seen", r.stdout, r.stderr)


if __name__ == "__main__":
    sys.exit(0 if unittest.main(exit=False, verbosity=2).result.wasSuccessful() else 1)
