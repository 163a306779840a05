#!/usr/bin/python3
"""Other versions of muster: state written by earlier ones, state in later formats, and clusters of two builds.

    MUSTER=build/release/muster [MUSTER_OTHER=path/to/muster] tests/e2e/upgrade.py [TEST…]

tests/journals has state left by earlier executables (make.py). Tests with two builds run only if MUSTER_OTHER names the other executable, with
its keeper beside it; `./dev upgrade [COMMIT]` builds it.
"""
import hashlib
import itertools
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import unittest
import zlib

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent / "lib"), str(pathlib.Path(__file__).resolve().parent)]
import users  # noqa: E402
from rows import Rows  # noqa: E402
from world import (ROOT, Cluster, Memory, World, condition, eventually, exit_code, finished, indexes, parent,  # noqa: E402
                   sh_job)
from work_dirs import adopt, keepers  # noqa: E402

KEPT = sorted((ROOT / "tests" / "journals").glob("*.tar.xz"))
OTHER = os.environ.get("MUSTER_OTHER")
UNTIL_GO = 'while [ ! -e "$WITNESS/go" ]; do sleep 0.05; done; code=0'
# Files that even a process that only reads may write: locks, messages, and the list of starts.
PASSING = {"lock", "LOCK", "LOG", "endpoints.json", "settings.json", "keeper.log", "crashes"}


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


def picture(folder):
    """A hash of every state file below the folder."""
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in PASSING and not p.name.startswith("LOG.old")}


def protocols(binary):
    printed = subprocess.run([binary, "version", "--client", "-o", "json"], text=True, capture_output=True, timeout=30, check=True)
    return json.loads(printed.stdout)["client"]["protocols"]


class Kept(Cluster):
    """A cluster that continues from the state of an earlier version."""

    def __init__(self, archive, binary=None):
        self.archive, self.binary = archive, binary
        super().__init__(agents=0, slots=16, grace="30s")

    def start_coordinator(self):
        if not (self.dir / "coordinator").exists():
            self.bin = self.binary or self.bin
            self.unpack()
            self.listen = free_address()
            for node in ("node-0", "node-1"):
                self.start_agent(node)  # a coordinator serves once its known nodes have registered
        super().start_coordinator()

    def unpack(self):
        with tarfile.open(self.archive) as archive:
            archive.extractall(self.dir)
        for folder in self.dir.glob("**/"):
            folder.chmod(0o700)
        for folder in self.dir.glob("node-*"):
            adopt(folder)


class KeptState(World):
    LEFT_OPEN = {"running", "gang-running", "half-done", "ended-unseen"}

    def check_all(self, archive, binary=None):
        golden = json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())["jobs"]
        cluster = self.cluster(kind=lambda: Kept(archive, binary))
        self.assertEqual(cluster.api.call("GET", "/readyz")[0], 200)
        for name, was in golden.items():
            job = cluster.api.job(name)
            self.assertEqual(job["spec"], was["spec"], name)
            if name not in self.LEFT_OPEN:
                self.assertEqual(job.get("status", {}), was["status"], name)
                self.assertEqual(self.exits(cluster, name), was["exits"], name)
        for name in sorted(self.LEFT_OPEN & set(golden)):
            cluster.wait(name, finished)
        self.assertEqual(set(golden) - {"suspended", "no-slot"}, {j["metadata"]["name"] for j in self.jobs(cluster) if finished(j)})
        for name, completions in (("running", 3), ("gang-running", 2), ("half-done", 2)):
            job = cluster.api.job(name)
            self.assertEqual(job["status"].get("succeeded"), completions, name)
            exits = dict(map(tuple, self.exits(cluster, name)))
            for pod, code in golden[name]["exits"]:  # running pods were lost with their machine, ended ones were not run again
                self.assertEqual(exits.pop(pod), 137 if code is None else code, pod)
            self.assertEqual(set(exits.values()), {0}, name)
        if binary is None:  # builds before hello.ends count the pods of a machine that was restarted as lost
            self.assertEqual(condition(cluster.api.job("ended-unseen"), "Failed")["reason"], "PodFailurePolicy",
                             "the end that only the spool knew")
            self.assertEqual([code for _, code in self.exits(cluster, "ended-unseen")], [42])
        lease = cluster.api.call("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/kept")
        self.assertEqual((lease[0], lease[1]["spec"]["holderIdentity"]), (200, "me"))
        self.assertTrue(cluster.api.call("GET", "/api/v1/nodes/node-1")[1]["spec"]["unschedulable"])
        code, answer = cluster.api.patch("suspended", {"spec": {"suspend": False}})
        self.assertEqual(code, 200, answer)
        self.assertEqual(cluster.wait("suspended", finished)["status"]["succeeded"], 2)
        code, answer = cluster.api.create(sh_job("after", "true", 2))
        self.assertEqual(code, 201, answer)
        self.assertEqual(cluster.wait("after", finished)["status"]["succeeded"], 2)
        if binary is None:
            self.check_history(cluster)
        sound = self.muster("verify", cluster=cluster)
        self.assertEqual(sound.returncode, 0, sound.stdout + sound.stderr)

    def check_history(self, cluster):
        """Jobs of an earlier version, which kept no history, are in it once."""
        entries = json.loads(self.muster("history", "-o", "json", cluster=cluster).stdout)["items"]
        self.assertEqual(sorted((e["name"], e["uid"]) for e in entries),
                         sorted((j["metadata"]["name"], j["metadata"]["uid"]) for j in self.jobs(cluster)))
        ends = {j["metadata"]["name"]: next((end for end in ("Complete", "Failed") if condition(j, end)), None) for j in self.jobs(cluster)}
        self.assertEqual({e["name"]: e["state"] for e in entries if ends[e["name"]]}, {name: end for name, end in ends.items() if end})

    def jobs(self, cluster):
        return cluster.api.call("GET", cluster.api.jobs())[1]["items"]

    def exits(self, cluster, name):
        return sorted([pod["metadata"]["name"], exit_code(pod)] for pod in self.pods_of(cluster, name))

    def test_state_of_earlier_versions_continues(self):
        self.assertGreaterEqual(len(KEPT), 2)
        for archive in KEPT:
            with self.subTest(archive.name):
                self.check_all(archive)
                self.doCleanups()

    @unittest.skipUnless(OTHER, "needs MUSTER_OTHER")
    def test_other_build_continues_state_of_earlier_versions(self):
        for archive in KEPT:
            with self.subTest(archive.name):
                self.check_all(archive, OTHER)
                self.doCleanups()

    def test_verify_accepts_state_of_earlier_versions_unchanged(self):
        for archive in KEPT:
            with self.subTest(archive.name):
                cluster = self.cluster(agents=0)
                cluster.kill_coordinator()
                folder = cluster.dir / "kept"
                with tarfile.open(archive) as kept:
                    kept.extractall(folder)
                (folder / "coordinator").chmod(0o700)
                was = picture(folder)
                sound = self.muster("verify", "--data-dir", str(folder / "coordinator"))
                self.assertEqual(sound.returncode, 0, sound.stdout + sound.stderr)
                self.assertIn("sound: 15 jobs", sound.stdout)
                self.assertEqual(picture(folder), was)
                self.doCleanups()


class LaterFormats(World):
    """State that a later version may have written is refused, with the reason, and left unchanged."""
    # A message whose root has only the field `version`, 2; packed.
    LATER = b"\x10\x02\x10\x01\x01\x02"

    def refused(self, cluster, key, why):
        """Checks that no coordinator starts while the value of this row is LATER."""
        data = cluster.dir / "coordinator"
        with Rows(data) as rows:
            good = rows.put(key, self.LATER)
        was = picture(data)
        done = self.muster("coordinator", "--data-dir", str(data), "--api", "127.0.0.1:0", "--listen", "127.0.0.1:0")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, why)
        self.assertEqual(picture(data), was)
        verified = self.muster("verify", "--data-dir", str(data))
        self.assertNotEqual(verified.returncode, 0)
        self.assertRegex(verified.stdout + verified.stderr, why)
        with Rows(data) as rows:
            rows.put(key, good)

    def test_rows_of_a_later_version_are_refused_and_pods_live(self):
        cluster = self.cluster(agents=1, slots=4, grace="30s", extra=["--listen-tls", "127.0.0.1:0"])
        witness = self.witness(cluster)
        code, answer = cluster.api.call("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases", {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "mine"}, "spec": {}})
        self.assertEqual(code, 201, answer)
        made = self.muster("token", "create", "--node", "c01", cluster=cluster)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.submit(cluster, sh_job("done", "true", 1))
        cluster.wait("done", finished)
        finished_uid = cluster.api.job("done")["metadata"]["uid"]
        self.submit(cluster, witness.job("long", UNTIL_GO, 1))
        eventually(lambda: cluster.api.job("long")["status"].get("ready") == 1, "it runs")
        uid = cluster.api.job("long")["metadata"]["uid"]
        cluster.kill_coordinator()
        with Rows(cluster.dir / "coordinator") as rows:
            done, = (key for key in rows.keys(b"o") if finished_uid.encode() in rows.get(key))
            node, = rows.keys(b"n")
            lease, = rows.keys(b"k")
            token, = rows.keys(b"t")
            owner, = (key for key in rows.keys(b"o") if uid.encode() in rows.get(key))
            records = rows.keys(b"r" + owner[1:])[-1]
        for row in (node, lease, token):
            self.refused(cluster, row, "version 2; this muster knows 1")
        self.refused(cluster, records, "records of version 2; this muster knows 1")
        cluster.start_coordinator()
        (witness.folder / "go").touch()
        self.assertEqual(cluster.wait("long", finished)["status"]["succeeded"], 1)
        self.assertEqual(len(self.pods_of(cluster, "long")), 1)
        witness.check(self)
        # A finished job is read when it is requested.
        cluster.kill_coordinator()
        with Rows(cluster.dir / "coordinator") as rows:
            key = rows.keys(b"r" + done[1:])[-1]
            good = rows.put(key, self.LATER)
        cluster.start_coordinator()
        code, answer = cluster.api.call("GET", f"{cluster.api.jobs()}/done")
        self.assertEqual(code, 500)
        self.assertIn("records of version 2; this muster knows 1", answer["message"])
        cluster.kill_coordinator()
        with Rows(cluster.dir / "coordinator") as rows:
            self.assertEqual(rows.put(key, good), self.LATER, "it has been written")
        cluster.start_coordinator()
        self.assertEqual(cluster.api.job("done")["status"]["succeeded"], 1)

    def test_a_work_dir_of_a_later_version_is_refused(self):
        cluster = self.cluster(agents=1)
        cluster.kill_agent("node-0")
        identity = cluster.dir / "node-0" / "identity"
        text = identity.read_text()
        identity.write_text(text.replace("muster-node 1", "muster-node 2", 1))
        was = picture(cluster.dir / "node-0")
        cluster.start_agent("node-0")
        self.assertNotEqual(cluster.agents["node-0"].wait(20), 0)
        self.assertIn('unknown format ("2", known: 1)', cluster.log("node-0"))
        self.assertEqual(picture(cluster.dir / "node-0"), was)
        identity.write_text(text)
        cluster.start_agent("node-0")
        cluster.wait_nodes()

    def test_a_spool_of_a_later_version_is_refused(self):
        """The ends in it are not lost: the keeper that wrote it, or a later one, finds them."""
        cluster = self.cluster(agents=1, grace="30s")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("unseen", UNTIL_GO.replace("code=0", "code=$a; [ $a -gt 0 ] || code=42"), 1, podFailurePolicy={
            "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}))
        eventually(lambda: cluster.api.job("unseen")["status"].get("ready") == 1, "it runs")
        keeper = parent(witness.starts()[0][3])
        spool = cluster.dir / "node-0" / "keeper" / "spool"

        def written():
            return b"".join(path.read_bytes().rstrip(b"\0") for path in sorted(spool.iterdir()))
        cluster.kill_agent("node-0")
        was = written()
        (witness.folder / "go").touch()
        eventually(lambda: written() != was, "the end is in the spool")
        os.kill(keeper, 9)
        eventually(lambda: not pathlib.Path("/proc", str(keeper)).exists(), "the keeper is gone")
        own = max(self.version(path) for path in spool.iterdir())
        for path in spool.iterdir():
            self.set_version(path, own + 1)
        was = written()
        cluster.start_agent("node-0")
        eventually(lambda: f"has version {own + 1}, but this keeper reads only versions up to {own}" in cluster.log("node-0"), "the reason")
        self.assertEqual(written(), was)
        cluster.kill_agent("node-0")
        for path in spool.iterdir():
            self.set_version(path, own)
        cluster.start_agent("node-0")
        self.assertEqual(condition(cluster.wait("unseen", finished), "Failed")["reason"], "PodFailurePolicy")

    @staticmethod
    def version(path):
        """That of a segment; 0: it is a spare."""
        return struct.unpack_from("=I", path.read_bytes(), 13)[0]

    @staticmethod
    def set_version(path, version):
        """Sets the version in a segment's header (docs/formats-keeper.md)."""
        segment = bytearray(path.read_bytes())
        if not any(segment):
            return
        _, length, _ = struct.unpack_from("=III", segment)
        struct.pack_into("=I", segment, 13, version)
        struct.pack_into("=I", segment, 8, zlib.crc32(segment[12:12 + length]))
        path.write_bytes(segment)

    def test_keeper_refuses_a_later_version_and_then_accepts_its_own(self):
        """The agent then says hello with the previous version on the same connection."""
        cluster = self.cluster(agents=1)
        newest = protocols(cluster.bin)["keeper"]
        cluster.kill_agent("node-0")
        cluster_id = (cluster.dir / "coordinator" / "cluster-id").read_text().strip().encode()
        with socket.socket(socket.AF_UNIX) as keeper:
            keeper.settimeout(20)
            keeper.connect(str(cluster.dir / "node-0" / "keeper" / "socket"))
            for version, kind in ((newest + 1, 65), (newest, 64)):
                payload = struct.pack("=BII", 1, version, len(cluster_id)) + cluster_id + b"\0"
                keeper.sendall(struct.pack("=I", len(payload)) + payload)
                length, = struct.unpack("=I", keeper.recv(4, socket.MSG_WAITALL))
                frame = keeper.recv(length, socket.MSG_WAITALL)
                self.assertEqual(frame[0], kind, frame)
                if kind == 65:
                    self.assertIn(f"the keeper speaks versions 1 to {newest}".encode(), frame)


class Mixed(Cluster):
    """A cluster in which each daemon runs the build last chosen for it."""

    def __init__(self, new, old, first, **kwargs):
        self.builds = {"new": new, "old": old}
        self.of = dict.fromkeys(("coordinator", "node-0", "node-1"), first)
        super().__init__(agents=2, grace="30s", **kwargs)

    def _spawn(self, name, args):
        self.bin = self.builds[self.of[name]]
        return super()._spawn(name, args)

    def move(self, name, to):
        """Kills the daemon and starts the other build; pods and keepers keep running."""
        self.of[name] = to
        if name == "coordinator":
            self.restart_coordinator()
        else:
            self.kill_agent(name)
            self.start_agent(name)


@unittest.skipUnless(OTHER, "needs MUSTER_OTHER")
class TwoBuilds(World):
    WORK = "sleep 0.1; code=0; [ $((i % 4)) -ne 1 ] || [ $a -ge 1 ] || code=3; [ $((i % 10)) -ne 9 ] || code=4"

    def mixed(self, first, slots=4, **builds):
        """`builds`: the daemons that run a different build from the start."""
        def kind():
            made = Mixed.__new__(Mixed)
            made.of = {}
            Mixed.__init__(made, os.environ["MUSTER"], os.path.abspath(OTHER), first, slots=slots)
            return made
        cluster = self.cluster(kind=kind)
        for name, build in builds.items():
            cluster.move(name.replace("_", "-"), build)
        cluster.wait_nodes()
        return cluster

    def load(self, cluster, count=40):
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("load", self.WORK, count, parallelism=8, backoffLimitPerIndex=2))
        return witness, Memory(cluster, "load")

    def all_counted(self, cluster, witness, memory, count=40):
        """Checks that every end is counted exactly once."""
        job = cluster.wait("load", finished, 60)
        memory.end(self)
        witness.check(self)
        ends = witness.ends()
        good = [index for index, _, _, code in ends if code == 0]
        self.assertEqual(sorted(good), [i for i in range(count) if i % 10 != 9])
        self.assertEqual(job["status"].get("succeeded"), len(good))
        self.assertEqual(job["status"].get("failed"), len(ends) - len(good))
        self.assertEqual(indexes(job["status"].get("failedIndexes")), {i for i in range(count) if i % 10 == 9})
        found = sorted((int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]), exit_code(pod))
                       for pod in self.pods_of(cluster, "load"))
        self.assertEqual(found, sorted((index, code) for index, _, _, code in ends))
        sound = self.muster("verify", cluster=cluster)
        self.assertEqual(sound.returncode, 0, sound.stdout + sound.stderr)
        self.nothing_left(witness)

    def test_coordinator_and_agents_of_different_builds_work_together(self):
        for coordinator, agents in (("old", "new"), ("new", "old")):
            with self.subTest(coordinator=coordinator, agents=agents):
                cluster = self.mixed(agents, coordinator=coordinator)
                witness, memory = self.load(cluster)
                self.all_counted(cluster, witness, memory)
                pod = self.pods_of(cluster, "load")[0]["metadata"]["name"]
                code, log = cluster.api.call("GET", f"{cluster.api.pods_path()}/{pod}/log")
                self.assertEqual(code, 200, log)
                self.doCleanups()

    def test_daemons_are_upgraded_and_downgraded_under_load_in_any_order(self):
        for order in itertools.permutations(("coordinator", "node-0", "node-1")):
            with self.subTest(order=order):
                cluster = self.mixed("old")
                witness, memory = self.load(cluster)
                for step, (name, to) in enumerate([*((name, "new") for name in order), *((name, "old") for name in order)], 1):
                    due = step * 6
                    eventually(lambda: len(witness.ends()) >= due, f"{due} ends")
                    cluster.move(name, to)
                self.all_counted(cluster, witness, memory)
                self.doCleanups()

    def test_pods_of_one_build_go_on_under_the_agent_of_the_other(self):
        for first, second in (("old", "new"), ("new", "old")):
            with self.subTest(first=first, second=second):
                cluster = self.mixed(first)
                witness = self.witness(cluster)
                self.submit(cluster, witness.job("long", UNTIL_GO, 6, parallelism=6))
                eventually(lambda: cluster.api.job("long")["status"].get("ready") == 6, "six pods run")
                keepers = {parent(pid) for _, _, _, pid in witness.starts()}
                for name in ("node-0", "node-1", "coordinator"):
                    cluster.move(name, second)
                cluster.wait_nodes()
                # More pods, started by the same keepers.
                more = witness.job("more", "code=0", 8)
                more["spec"]["template"]["spec"]["containers"][0]["command"][2] = "exit 0"
                self.submit(cluster, more)
                cluster.wait("more", finished)
                self.assertEqual({parent(pid) for _, _, _, pid in witness.starts()}, keepers)
                for pid in keepers:
                    self.assertEqual(pathlib.Path(os.readlink(f"/proc/{pid}/exe")).parent,
                                     pathlib.Path(cluster.builds[first]).resolve().parent)
                (witness.folder / "go").touch()
                self.assertEqual(cluster.wait("long", finished)["status"]["succeeded"], 6)
                self.assertEqual(len(self.pods_of(cluster, "long")), 6)
                witness.check(self)
                self.nothing_left(witness)
                self.doCleanups()

    def test_a_keeper_is_replaced_once_its_node_is_empty(self):
        """Follows docs/upgrade.md: end the agent and then the keeper, which exits only if nothing runs; start the other build."""
        for first, second in (("old", "new"), ("new", "old")):
            with self.subTest(first=first, second=second):
                cluster = self.mixed(first, slots=8)
                witness, memory = self.load(cluster)
                for step, name in enumerate(("node-0", "node-1"), 1):
                    eventually(lambda: len(witness.ends()) >= 8 * step, "the load is under way")
                    done = self.muster("cordon", name, cluster=cluster)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    eventually(lambda: not [pod for pod in self.pods_of(cluster, "load") if pod["spec"].get("nodeName") == name and
                                            pod["status"]["phase"] in ("Pending", "Running")], "its pods have ended")
                    cluster.agents[name].terminate()
                    self.assertEqual(cluster.agents[name].wait(20), 0, cluster.log(name)[-600:])
                    for pid in keepers(cluster.dir / name):
                        os.kill(pid, signal.SIGTERM)
                    eventually(lambda: not keepers(cluster.dir / name), "the keeper has ended")
                    cluster.of[name] = second
                    cluster.start_agent(name)
                    cluster.wait_nodes()
                    done = self.muster("uncordon", name, cluster=cluster)
                    self.assertEqual(done.returncode, 0, done.stderr)
                self.all_counted(cluster, witness, memory)
                self.submit(cluster, sh_job("who", "readlink /proc/$PPID/exe", 2))
                cluster.wait("who", finished)
                for pod in self.pods_of(cluster, "who"):
                    log = cluster.api.call("GET", f"{cluster.api.pods_path()}/{pod['metadata']['name']}/log")[1]
                    self.assertEqual(pathlib.Path(str(log).strip()).parent, pathlib.Path(cluster.builds[second]).resolve().parent)
                self.doCleanups()

    def test_keeper_without_fencing_gets_no_fenced_pods(self):
        old = protocols(OTHER)["keeper"]
        if old >= 10 or protocols(os.environ["MUSTER"])["keeper"] < 10:
            self.skipTest(f"the other keeper speaks version {old}")
        cluster = self.mixed("old")
        witness = self.witness(cluster)
        self.submit(cluster, witness.job("long", UNTIL_GO, 2))
        eventually(lambda: cluster.api.job("long")["status"].get("ready") == 2, "both pods run")
        for name in ("node-0", "node-1", "coordinator"):
            cluster.move(name, "new")
        cluster.wait_nodes()
        self.submit(cluster, sh_job("fenced", "true", 1, annotations={"muster.dev/fence-after": "15s"}, backoffLimit=0))
        cluster.wait("fenced", finished)
        pod, = self.pods_of(cluster, "fenced")
        ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        self.assertRegex(ended["message"], "does not (know|support) muster.dev/fence-after")
        self.assertEqual(ended["exitCode"], 126)
        self.submit(cluster, sh_job("plain", "true", 2))
        self.assertEqual(cluster.wait("plain", finished)["status"]["succeeded"], 2)
        (witness.folder / "go").touch()
        self.assertEqual(cluster.wait("long", finished)["status"]["succeeded"], 2)


@unittest.skipUnless(OTHER, "needs MUSTER_OTHER")
@unittest.skipUnless(users.possible(), "only root can make the users")
class TwoBuildsForUsers(users.RootKeeper):
    """A root keeper runs each pod as its job's creator, with a permit that the coordinator signs and the agent passes on."""

    @classmethod
    def setUpClass(cls):
        users.for_class(cls)

    def setUp(self):
        self.of = dict.fromkeys(("coordinator", "agent", "keeper"), "old")  # which build each daemon runs

    def use(self, build):
        """Makes `self.muster` this build from now on."""
        source, folder = pathlib.Path({"new": os.environ["MUSTER"], "old": OTHER}[build]).resolve().parent, self.dir / build
        if not folder.exists():
            folder.mkdir()
            for tool in ("muster", "muster-keeper"):
                shutil.copy(source / tool, folder / tool)
        self.muster = str(folder / "muster")

    def daemon(self, *args, **more):
        self.use(self.of[args[0]])
        return super().daemon(*args, **more)

    def keeper(self, key, **env):
        self.use(self.of["keeper"])
        return super().keeper(key, **env)

    def move(self, daemon, build):
        self.of[daemon] = build
        self.stop_agent()
        if daemon == "coordinator":
            self.daemons.remove(self.coordinator)
            self.coordinator.kill()
            self.coordinator.wait()
            self.start_coordinator()  # on another port
        elif daemon == "keeper":
            self.root.terminate()
            self.assertEqual(self.root.wait(20), 0, "a keeper without pods ends")
            self.restart_keeper(agent=False)
        self.start_agent()

    def says(self, user, job, text):
        eventually(lambda: self.log(user, job, 1) == (200, text), f"the output of {job}")

    def test_pods_run_as_their_owners_under_each_mix(self):
        uids = {user: pwd.getpwnam(users.name(user)).pw_uid for user in ("alice", "bob")}
        for first, second in (("old", "new"), ("new", "old")):
            with self.subTest(first=first, second=second):
                self.of = dict.fromkeys(self.of, first)
                super().setUp()
                gate, done = self.dir / "gate", []
                for daemon in ("coordinator", "agent", "keeper"):
                    gate.unlink(missing_ok=True)
                    self.create("alice", sh_job(f"long-{daemon}", f"while ! test -e {gate}; do sleep 0.05; done; id -u", 2))
                    eventually(lambda: self.ask("alice", "GET", f"{users.JOBS}/long-{daemon}")[1]["status"].get("ready") == 2, "both pods run")
                    if daemon == "keeper":  # a keeper is replaced only while nothing runs
                        gate.touch()
                        eventually(lambda: self.ask("alice", "GET", f"{users.JOBS}/long-{daemon}")[1]["status"].get("succeeded") == 2, "their ends")
                    self.move(daemon, second)
                    for user, uid in uids.items():
                        done.append((user, f"{user}-{daemon}"))
                        self.assertEqual(self.finish(user, sh_job(done[-1][1], "id -u", 2)), "Complete", (self.dir / "keeper.log").read_text())
                        self.says(*done[-1], f"{uid}\n")
                    gate.touch()
                    done.append(("alice", f"long-{daemon}"))
                    eventually(lambda: self.ask("alice", "GET", f"{users.JOBS}/long-{daemon}")[1]["status"].get("succeeded") == 2, "their ends")
                for user, job in done:
                    if second == "new":  # docs/upgrade.md lists what earlier agents cannot open
                        self.says(user, job, f"{uids[user]}\n")
                    self.assertEqual([one["counted"] for one in self.attempts(user, job)], ["succeeded"] * 2, job)
                self.doCleanups()


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
