#!/usr/bin/python3
"""An unmodified kubectl as a client of muster: the usual commands for Jobs behave as with Kubernetes.

    MUSTER=build/release/muster [KUBECTL=/usr/bin/kubectl] tests/e2e/kubectl.py [TEST…]

Nodes, logs and unsupported requests are in kubectl_nodes.py.
"""
import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from kube_client import VERSION, Kubectl, main, since  # noqa: E402
from world import eventually  # noqa: E402

UID = "-o=jsonpath={.metadata.uid}"


class Discovery(Kubectl):
    def test_version_and_api_versions_are_served(self):
        printed = json.loads(self.kubectl("version", "-o", "json"))
        self.assertIn("muster", printed["serverVersion"]["gitVersion"])
        self.assertIn("is running at", self.kubectl("cluster-info"))
        self.assertEqual(self.kubectl("api-versions").split(), ["authentication.k8s.io/v1", "authorization.k8s.io/v1", "batch/v1", "coordination.k8s.io/v1", "events.k8s.io/v1", "muster.dev/v1", "policy/v1", "scheduling.k8s.io/v1", "v1"])

    def test_api_resources_list_served_and_watchable_kinds(self):
        names = self.kubectl("api-resources", "-o", "name").split()
        for name in ("jobs.batch", "pods", "nodes", "events", "namespaces"):
            self.assertIn(name, names)
        watched = self.kubectl("api-resources", "--verbs=watch", "-o", "name").split()
        self.assertEqual(set(watched), {"jobs.batch", "pods", "nodes", "events", "events.events.k8s.io", "leases.coordination.k8s.io", "configmaps", "namespaces", "serviceaccounts",
                                        "cronjobs.batch", "queues.muster.dev", "priorityclasses.scheduling.k8s.io"})

    def test_explain_describes_fields(self):
        self.assertIn("process on a node", " ".join(self.kubectl("explain", "job").split()))
        text = self.kubectl("explain", "job.spec.backoffLimitPerIndex")
        self.assertIn("backoffLimitPerIndex", text)
        self.assertIn("each index", text)
        recursive = self.kubectl("explain", "jobs.spec", "--recursive")
        for field in ("succeededIndexes", "terminationGracePeriodSeconds", "ttlSecondsAfterFinished", "podReplacementPolicy"):
            self.assertIn(field, recursive)
        for path, word in {"pod.status.containerStatuses": "restartCount", "node.spec": "unschedulable", "events": "involvedObject",
                           "job.spec.template.spec.volumes": "emptyDir", "job.spec.template.spec.affinity": "nodeAffinity", "job.spec.template.spec.hostPID": "Refused"}.items():
            self.assertIn(word, self.kubectl("explain", path))
        self.assertIn("does not exist", self.refused("explain", "job.spec.nonsense"))

    def test_auth_can_i_answers_yes(self):
        self.assertEqual(self.kubectl("auth", "can-i", "create", "jobs").strip(), "yes")

    def test_namespaces_exist_by_use(self):
        self.kubectl("create", "-n", "blue", "-f", "-", stdin=json.dumps(self.job("there")))
        self.assertEqual({r["NAME"]: r["STATUS"] for r in self.table("ns")}, {"blue": "Active", "default": "Active"})
        self.assertEqual([r["NAME"] for r in self.table("jobs", "-n", "blue")], ["there"])
        self.assertEqual([(r["NAMESPACE"], r["NAME"]) for r in self.table("jobs", "-A")], [("blue", "there")])
        self.assertIn("No resources found", self.run_kubectl("get", "jobs").stderr)
        self.assertIn("AlreadyExists", self.refused("create", "namespace", "default"))


class Reading(Kubectl):
    def setUp(self):
        super().setUp()
        self.complete(self.create(self.job("done", "echo hello")))
        failing = self.job("broken", '[ "$JOB_COMPLETION_INDEX" = 0 ] || exit 3', backoffLimitPerIndex=0)
        failing["metadata"]["labels"] = failing["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
        self.create(failing)
        self.kubectl("wait", "job/broken", "--for=condition=Failed", "--timeout=30s")

    def test_get_as_a_table(self):
        jobs = {r["NAME"]: r for r in self.table("jobs")}
        self.assertEqual((jobs["done"]["STATUS"], jobs["done"]["COMPLETIONS"]), ("Complete", "2/2"))
        self.assertEqual((jobs["broken"]["STATUS"], jobs["broken"]["COMPLETIONS"]), ("Failed", "1/2"))
        wide = self.kubectl("get", "jobs", "-o", "wide").splitlines()[0].split()
        self.assertEqual(wide, ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE", "CONTAINERS", "IMAGES", "SELECTOR", "HELD", "EXPECTED", "QUEUE"])
        pods = self.table("pods", "-o", "wide", "-l", "app=other", "--sort-by=.metadata.name")
        self.assertEqual([(r["READY"], r["STATUS"], r["NODE"]) for r in pods], [("0/1", "Completed", "node-0"), ("0/1", "Error", "node-0")])
        all_kinds = self.kubectl("get", "all")
        self.assertIn("job.batch/done", all_kinds)
        self.assertIn("pod/done-0-", all_kinds)
        self.assertEqual(len(self.kubectl("get", "pods", "--no-headers").splitlines()), 4)

    def test_get_as_data(self):
        one = json.loads(self.kubectl("get", "job", "done", "-o", "json"))
        self.assertEqual((one["kind"], one["status"]["succeeded"], one["status"]["completedIndexes"]), ("Job", 2, "0,1"))
        self.assertIn("completedIndexes: 0,1", self.kubectl("get", "job", "done", "-o", "yaml"))
        self.assertEqual(set(self.kubectl("get", "jobs,nodes", "-o", "name").split()), {"job.batch/done", "job.batch/broken", "node/node-0"})
        self.assertEqual(self.kubectl("get", "job", "broken", "-o", "jsonpath={.status.failedIndexes}"), "1")
        columns = self.kubectl("get", "jobs", "-o", "custom-columns=N:.metadata.name,S:.status.succeeded", "--sort-by=.status.succeeded")
        self.assertEqual(columns.split(), ["N", "S", "broken", "1", "done", "2"])
        self.assertEqual(self.kubectl("get", "jobs", "-o", "go-template={{len .items}}"), "2")
        self.assertEqual(len(json.loads(self.kubectl("get", "pods", "-A", "-o", "json"))["items"]), 4)

    def test_get_by_label_and_field_selectors(self):
        def names(*args):
            return sorted(line.split("/")[1] for line in self.kubectl("get", *args, "-o", "name").split())
        self.assertEqual(names("jobs", "-l", "app=demo"), ["done"])
        self.assertEqual(names("jobs", "-l", "app in (demo,other),app!=demo"), ["broken"])
        self.assertEqual(names("jobs", "--field-selector", "metadata.name=done"), ["done"])
        self.assertEqual(len(names("pods", "-l", "batch.kubernetes.io/job-name=done")), 2)
        self.assertEqual(len(names("pods", "-l", "batch.kubernetes.io/job-completion-index=1")), 2)
        self.assertEqual(len(names("pods", "--field-selector", "status.phase=Failed")), 1)
        self.assertEqual(len(names("pods", "--field-selector", "spec.nodeName=node-0,status.phase!=Failed")), 3)
        self.assertIn("field label not supported", self.refused("get", "pods", "--field-selector", "spec.colour=red"))

    def test_missing_objects_and_kinds_are_not_found(self):
        self.assertIn('jobs.batch "nobody" not found', self.refused("get", "job", "nobody"))
        self.assertEqual(self.kubectl("get", "job", "nobody", "--ignore-not-found"), "")
        self.assertIn("the server doesn't have a resource type", self.refused("get", "deployments"))

    def test_describe_shows_statuses_and_events(self):
        job = self.kubectl("describe", "job", "broken")
        for part in (r"Pods Statuses: +0 (Active .*|Running) / 1 Succeeded / 1 Failed", r"Warning +FailedIndexes",
                     r"SuccessfulCreate .* Created pod: broken-1-"):
            self.assertRegex(job, part)
        pod = self.kubectl("get", "pods", "-l", "app=other", "--field-selector=status.phase=Failed", "-o", "name").strip()
        described = self.kubectl("describe", pod)
        for part in (r"Status: +Failed", r"Controlled By: +Job/broken", r"Reason: +Error", r"Exit Code: +3", r"Node: +node-0"):
            self.assertRegex(described, part)

    def test_events_show_reasons_and_warnings(self):
        listed = self.kubectl("get", "events")
        self.assertRegex(listed, r"Normal +Completed +job/done +Job completed")
        self.assertRegex(listed, r"Warning +FailedIndexes +job/broken")
        warnings = self.kubectl("get", "events", "--field-selector", "type=Warning", "-o", "jsonpath={.items[*].involvedObject.name}")
        self.assertEqual(warnings, "broken")

    @since(26, "kubectl events")
    def test_events_for_a_job_exclude_others(self):
        printed = self.kubectl("events", "--for", "job/done")
        self.assertIn("Completed", printed)
        self.assertNotIn("broken", printed)
        self.assertEqual(len(self.kubectl("events", "--types=Warning", "--no-headers").splitlines()), 1)


class Waiting(Kubectl):
    def test_get_watch_shows_each_change(self):
        self.create(self.sleeper("there", suspend=True))
        watch = self.start("get", "jobs", "-w", "--output-watch-events")
        lines = []

        def read_until(job, status):
            while not lines or lines[-1].split()[1:3] != [job, status]:
                lines.append(watch.stdout.readline())
                self.assertTrue(lines[-1], "the watch ended: " + "".join(lines))
        try:
            read_until("there", "Suspended")  # it watches from here on
            self.create(self.job("seen"))
            read_until("seen", "Complete")
        finally:
            watch.kill()
            watch.communicate()
        self.assertEqual(lines[0].split()[:3], ["EVENT", "NAME", "STATUS"])
        self.assertEqual([line.split()[0] for line in lines if "there" in line][:1], ["ADDED"])
        seen = [line.split()[0] for line in lines if "seen" in line]
        self.assertEqual((seen[0], seen[-1]), ("ADDED", "MODIFIED"))
        self.assertIn("2/2", lines[-1])

    def test_wait_ends_at_condition_deletion_or_timeout(self):
        self.create(self.job("good"))
        self.assertEqual(self.kubectl("wait", "job/good", "--for=condition=Complete", "--timeout=30s"), "job.batch/good condition met\n")
        self.create(self.job("bad", "false", backoffLimit=0))
        self.kubectl("wait", "job/bad", "--for=condition=Failed", "--timeout=30s")
        self.create(self.sleeper("long"))
        self.assertIn("timed out", self.refused("wait", "job/long", "--for=condition=Complete", "--timeout=1s"))
        waiting = self.start("wait", "job/long", "--for=delete", "--timeout=30s", "-v=6")
        while "watch=true" not in (line := waiting.stderr.readline()):
            self.assertTrue(line, "it ended before it watched")
        self.kubectl("delete", "job", "long")
        printed = waiting.communicate(timeout=30)
        self.assertEqual(waiting.returncode, 0, printed)

    @since(23, "wait for a jsonpath")
    def test_wait_for_a_value(self):
        self.create(self.job("counted"))
        self.kubectl("wait", "job/counted", "--for=jsonpath={.status.succeeded}=2", "--timeout=30s")


class Writing(Kubectl):
    def get(self, name, path):
        return self.kubectl("get", "job", name, "-o", f"jsonpath={{{path}}}")

    def test_create_takes_a_manifest_or_a_command(self):
        manifest = self.it.dir / "job.yaml"
        manifest.write_text("apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: some-}\nspec:\n  template:\n    spec:\n"
                            "      restartPolicy: Never\n      containers: [{name: main, command: ['true']}]\n")
        made = self.kubectl("create", "-f", manifest, "-o", "name").strip()
        self.assertRegex(made, r"^job\.batch/some-[a-z0-9]{5}$")
        self.kubectl("wait", made, "--for=condition=Complete", "--timeout=30s")
        self.assertEqual(self.kubectl("create", "job", "short", "--image=none", "--", "sh", "-c", "exit 0"), "job.batch/short created\n")
        self.complete("short")
        self.assertIn("already exists", self.refused("create", "job", "short", "--image=none", "--", "true"))
        self.assertIn("(server dry run)", self.kubectl("create", "job", "tried", "--image=none", "--dry-run=server", "--", "true"))
        self.assertIn('"tried" not found', self.refused("get", "job", "tried"))

    def test_create_of_invalid_jobs_is_refused(self):
        wrong = self.job("wrong", parallelism=-1)
        self.assertIn("spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
                      self.refused("create", "-f", "-", stdin=json.dumps(wrong)))
        wrong = self.job("wrong")
        wrong["spec"]["template"]["spec"]["volumes"] = [{"name": "v", "nfs": {"server": "s", "path": "/"}}]
        self.assertIn("spec.template.spec.volumes[0].nfs: Forbidden", self.refused("create", "-f", "-", stdin=json.dumps(wrong)))

    def test_unknown_fields_are_refused(self):
        typo = self.job("typo")
        typo["spec"]["paralelism"] = 3
        self.assertRegex(self.refused("create", "-f", "-", stdin=json.dumps(typo)), r'unknown field "(spec\.)?paralelism"')

    @since(27, "--validate=warn")
    def test_unknown_fields_are_warned_of_on_request(self):
        typo = self.job("typo")
        typo["spec"]["paralelism"] = 3
        done = self.run_kubectl("create", "--validate=warn", "-f", "-", stdin=json.dumps(typo))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('Warning: unknown field "spec.paralelism"', done.stderr)
        typo["metadata"]["name"] = "ignored"
        self.kubectl("create", "--validate=ignore", "-f", "-", stdin=json.dumps(typo))

    def test_apply_creates_and_updates_and_removes_left_out_fields(self):
        job = self.sleeper("kept", 4, suspend=True)
        self.assertEqual(self.kubectl("apply", "-f", "-", stdin=json.dumps(job)), "job.batch/kept created\n")
        self.assertEqual(self.kubectl("apply", "-f", "-", stdin=json.dumps(job)), "job.batch/kept unchanged\n")
        job["spec"]["parallelism"] = 1
        job["metadata"]["labels"] = {"new": "yes"}
        self.assertEqual(self.kubectl("apply", "-f", "-", stdin=json.dumps(job)), "job.batch/kept configured\n")
        self.assertEqual(self.get("kept", ".spec.parallelism"), "1")
        self.assertEqual(json.loads(self.get("kept", ".metadata.labels")).get("new"), "yes")
        self.assertNotIn("app", json.loads(self.get("kept", ".metadata.labels")), "what is left out is taken away")
        job["spec"]["completionMode"] = "NonIndexed"
        self.assertIn("field is immutable", self.refused("apply", "-f", "-", stdin=json.dumps(job)))
        self.assertIn("parallelism: 1", self.kubectl("apply", "view-last-applied", "job/kept"))

    def test_apply_prune_by_label(self):
        jobs = {"apiVersion": "v1", "kind": "List", "items": [self.sleeper("a", 1), self.sleeper("b", 1)]}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(jobs))
        del jobs["items"][1]
        only = "--prune-allowlist" if VERSION >= (1, 26) else "--prune-whitelist"
        pruned = self.kubectl("apply", "-f", "-", "--prune", "-l", "app=demo", f"{only}=batch/v1/Job", stdin=json.dumps(jobs))
        self.assertIn("job.batch/b pruned", pruned)

    @since(27, "server-side apply of this suite")
    def test_server_side_apply_reports_conflicts_unless_forced(self):
        job = self.sleeper("shared", 4, suspend=True)
        done = self.run_kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(job))
        self.assertEqual((done.returncode, done.stdout), (0, "job.batch/shared serverside-applied\n"), done.stderr)
        self.kubectl("patch", "job", "shared", "--type=merge", "-p", '{"spec":{"parallelism":2}}')
        conflict = self.refused("apply", "--server-side", "-f", "-", stdin=json.dumps(job))
        self.assertIn('conflict with "kubectl-patch"', conflict)
        self.assertIn(".spec.parallelism", conflict)
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(job))
        self.assertEqual(self.get("shared", ".spec.parallelism"), "4")
        managers = self.kubectl("get", "job", "shared", "-o", "yaml", "--show-managed-fields")
        self.assertIn("operation: Apply", managers)

    def test_patch_by_strategic_merge_merge_and_json(self):
        self.create(self.sleeper("patched", 4, suspend=True))
        self.kubectl("patch", "job", "patched", "-p", '{"spec":{"parallelism":3}}')
        self.assertEqual(self.get("patched", ".spec.parallelism"), "3")
        self.kubectl("patch", "job", "patched", "--type=merge", "-p", '{"spec":{"parallelism":2}}')
        self.assertEqual(self.get("patched", ".spec.parallelism"), "2")
        self.kubectl("patch", "job", "patched", "--type=json", "-p", '[{"op":"replace","path":"/spec/parallelism","value":1}]')
        self.assertEqual(self.get("patched", ".spec.parallelism"), "1")
        # A strategic patch matches the container by its name.
        resources = '{"spec":{"template":{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1m"}}}]}}}}'
        self.kubectl("patch", "job", "patched", "-p", resources)
        container = json.loads(self.get("patched", ".spec.template.spec.containers[0]"))
        self.assertEqual((container["resources"]["requests"], container["command"][0]), ({"cpu": "1m"}, "sh"))
        self.assertIn("no change", self.kubectl("patch", "job", "patched", "-p", '{"spec":{"parallelism":1}}'))
        self.assertIn("field is immutable", self.refused("patch", "job", "patched", "-p", '{"spec":{"completionMode":"NonIndexed"}}'))

    def test_edit_changes_the_job(self):
        self.create(self.sleeper("edited", 4, suspend=True))
        done = self.kubectl("edit", "job", "edited", EDITOR="sed -i s/parallelism:.4/parallelism:\\ 3/")
        self.assertIn("job.batch/edited edited", done)
        self.assertEqual(self.get("edited", ".spec.parallelism"), "3")
        self.assertIn("no changes made", self.run_kubectl("edit", "job", "edited", EDITOR="true").stderr)

    def test_replace_refuses_a_stale_version_unless_forced(self):
        self.create(self.sleeper("replaced", 4, suspend=True))
        stale = json.loads(self.kubectl("get", "job", "replaced", "-o", "json"))
        stale["spec"]["parallelism"] = 2
        self.kubectl("replace", "-f", "-", stdin=json.dumps(stale))
        self.assertEqual(self.get("replaced", ".spec.parallelism"), "2")
        stale["spec"]["parallelism"] = 1
        self.assertIn("the object has been modified", self.refused("replace", "-f", "-", stdin=json.dumps(stale)))
        uid = self.kubectl("get", "job", "replaced", UID)
        self.kubectl("replace", "--force", "-f", "-", stdin=json.dumps(self.sleeper("replaced", 4, suspend=True)))
        self.assertNotEqual(self.kubectl("get", "job", "replaced", UID), uid)

    def test_scale_sets_parallelism(self):
        self.runs(self.create(self.sleeper("scaled", 4)), 4)
        self.assertEqual(self.kubectl("scale", "job/scaled", "--replicas=2"), "job.batch/scaled scaled\n")
        self.runs("scaled", 2)
        self.assertEqual(self.get("scaled", ".spec.parallelism"), "2")
        self.assertRegex(self.refused("scale", "job/scaled", "--current-replicas=7", "--replicas=1"), "(?i)expected replicas to be 7")

    def test_labels_and_annotations(self):
        self.create(self.sleeper("named", suspend=True))
        self.assertEqual(self.kubectl("label", "job", "named", "team=red"), "job.batch/named labeled\n")
        self.assertIn("already has a value", self.refused("label", "job", "named", "team=blue"))
        self.kubectl("label", "job", "named", "team=blue", "--overwrite")
        self.assertEqual([r["NAME"] for r in self.table("jobs", "-l", "team=blue")], ["named"])
        self.kubectl("label", "job", "named", "team-")
        self.assertIn("No resources found", self.run_kubectl("get", "jobs", "-l", "team").stderr)
        self.kubectl("annotate", "job", "--all", "note=for people")
        self.assertEqual(self.get("named", ".metadata.annotations.note"), "for people")
        self.kubectl("annotate", "job", "named", "note-")
        self.assertEqual(self.get("named", ".metadata.annotations.note"), "")

    def test_delete_follows_the_cascade_policy(self):
        for name in ("a", "b", "c"):
            self.create(self.sleeper(name, 1))
        self.runs("a", 1)
        self.assertEqual(self.kubectl("delete", "job", "a"), 'job.batch "a" deleted\n')
        eventually(lambda: not self.pods_of(self.it, "a"), "its pods have ended")
        self.kubectl("delete", "job", "b", "--cascade=foreground")
        self.assertEqual(self.pods_of(self.it, "b"), [], "the foreground waits for the pods")
        self.runs("c", 1)
        self.kubectl("delete", "job", "c", "--cascade=orphan")
        self.assertEqual([p["status"]["phase"] for p in self.pods_of(self.it, "c")], ["Running"])
        self.kubectl("delete", "pods", "--all")
        self.assertIn("No resources found", self.run_kubectl("get", "all").stderr)

    def test_delete_selects_by_label_or_all(self):
        self.create(self.sleeper("one", 1))
        other = self.sleeper("two", 1)
        other["metadata"]["labels"] = {"app": "other"}
        self.create(other)
        self.kubectl("delete", "jobs", "-l", "app=other", "--wait=false")
        self.assertEqual([r["NAME"] for r in self.table("jobs")], ["one"])
        self.kubectl("delete", "jobs", "--all")
        self.assertIn("No resources found", self.run_kubectl("get", "jobs").stderr)
        self.assertIn("not found", self.refused("delete", "job", "one"))
        self.kubectl("delete", "job", "one", "--ignore-not-found")

    def test_diff_shows_changes_without_making_them(self):
        job = self.sleeper("differs", 4, suspend=True)
        self.kubectl("apply", "-f", "-", stdin=json.dumps(job))
        self.assertEqual(self.kubectl("diff", "-f", "-", stdin=json.dumps(job)), "")
        job["spec"]["parallelism"] = 1
        done = self.run_kubectl("diff", "-f", "-", stdin=json.dumps(job))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("-  parallelism: 4\n+  parallelism: 1\n", done.stdout)
        self.assertEqual(self.get("differs", ".spec.parallelism"), "4")

    def test_diff_of_what_was_created_is_silent(self):
        made = [self.sleeper("created", 2, suspend=True), {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m"}, "data": {"a": "b"}}]
        made[0]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "0.5", "memory": "1024Mi"}}
        manifests = json.dumps({"kind": "List", "apiVersion": "v1", "items": made})
        self.kubectl("create", "-f", "-", stdin=manifests)
        self.assertEqual(self.kubectl("diff", "-f", "-", stdin=manifests), "")


if __name__ == "__main__":
    main()
