#!/usr/bin/python3
"""The official Python client (Debian: python3-kubernetes) works with muster.

    MUSTER=build/release/muster tests/e2e/python_client.py [TEST…]
"""
import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
try:
    from kubernetes import client, watch
    from kubernetes.client.rest import ApiException
except ImportError:
    print("python_client.py: skipped: no Python client of Kubernetes (Debian: apt-get install python3-kubernetes)")
    sys.exit(0)
from world import World, eventually  # noqa: E402

NS = "default"


class PythonClient(World):
    def setUp(self):
        self.it = self.cluster(agents=1, slots=4)
        configuration = client.Configuration()
        configuration.host = f"http://{self.it.api_addr}"
        api = client.ApiClient(configuration)
        self.addCleanup(api.close)
        self.batch, self.core = client.BatchV1Api(api), client.CoreV1Api(api)

    def job(self, name, script="echo hello from $JOB_COMPLETION_INDEX", completions=2, **spec):
        container = client.V1Container(name="main", image="none", command=["sh", "-c", script])
        template = client.V1PodTemplateSpec(
            metadata=client.V1ObjectMeta(labels={"app": "demo"}),
            spec=client.V1PodSpec(restart_policy="Never", containers=[container], termination_grace_period_seconds=1))
        return client.V1Job(metadata=client.V1ObjectMeta(name=name), spec=client.V1JobSpec(
            completion_mode="Indexed", completions=completions, parallelism=completions, template=template, **spec))

    def create(self, *args, **spec):
        return self.batch.create_namespaced_job(NS, self.job(*args, **spec))

    def status(self, name):
        return self.batch.read_namespaced_job_status(name, NS).status

    def runs(self, name, pods):
        """Waits until that many of its pods run. (Debian's client predates status.ready.)"""
        eventually(lambda: len(self.core.list_namespaced_pod(NS, label_selector=f"job-name={name}",
                                                             field_selector="status.phase=Running").items) == pods, f"{pods} pods of {name} run")

    def refused(self, code, call, *args, **more):
        with self.assertRaises(ApiException) as caught:
            call(*args, **more)
        self.assertEqual(caught.exception.status, code)
        return json.loads(caught.exception.body)

    def test_python_client_creates_watches_and_reads_logs(self):
        made = self.create("whole")
        self.assertEqual((made.metadata.name, made.spec.backoff_limit), ("whole", 6))
        seen = []
        for event in watch.Watch().stream(self.batch.list_namespaced_job, NS, field_selector="metadata.name=whole", timeout_seconds=30):
            job = event["object"]
            seen.append(event["type"])
            if any(c.type == "Complete" and c.status == "True" for c in job.status.conditions or []):
                break
        self.assertEqual((seen[0], job.status.succeeded), ("ADDED", 2))
        status = self.status("whole")
        self.assertEqual((status.completed_indexes, status.failed), ("0,1", None))
        self.assertGreaterEqual(status.completion_time, status.start_time)
        pods = self.core.list_namespaced_pod(NS, label_selector="job-name=whole").items
        self.assertEqual(len(pods), 2)
        for pod in pods:
            index = pod.metadata.annotations["batch.kubernetes.io/job-completion-index"]
            self.assertEqual(self.core.read_namespaced_pod_log(pod.metadata.name, NS), f"hello from {index}\n")
            self.assertEqual(pod.status.container_statuses[0].state.terminated.exit_code, 0)
            self.assertEqual(pod.metadata.owner_references[0].uid, made.metadata.uid)
        events = self.core.list_namespaced_event(NS, field_selector="involvedObject.name=whole").items
        self.assertEqual([e.reason for e in events].count("SuccessfulCreate"), 2)
        self.assertIn("Completed", [e.reason for e in events])

    def test_follow_a_log(self):
        self.create("followed", "echo one; sleep 0.3; echo two", 1)
        pod = eventually(lambda: self.core.list_namespaced_pod(NS, label_selector="app=demo", field_selector="status.phase=Running").items,
                         "its pod runs")[0]
        lines = list(watch.Watch().stream(self.core.read_namespaced_pod_log, pod.metadata.name, NS))
        self.assertEqual([line for line in lines if line], ["one", "two"])

    def test_suspend_and_scale(self):
        self.create("paused", "sleep 600", 2)
        self.runs("paused", 2)
        self.batch.patch_namespaced_job("paused", NS, {"spec": {"suspend": True}})
        eventually(lambda: self.status("paused").active is None, "both have ended")
        self.assertEqual([c.type for c in self.status("paused").conditions if c.status == "True"], ["Suspended"])
        self.batch.patch_namespaced_job("paused", NS, {"spec": {"suspend": False, "parallelism": 1}})
        self.runs("paused", 1)
        whole = self.batch.read_namespaced_job("paused", NS)
        whole.spec.parallelism = 2
        self.assertEqual(self.batch.replace_namespaced_job("paused", NS, whole).spec.parallelism, 2)

    def test_python_client_deletes_and_evicts(self):
        self.create("gone", "sleep 600", 1)
        self.runs("gone", 1)
        self.batch.delete_namespaced_job("gone", NS, propagation_policy="Foreground")
        eventually(lambda: not self.batch.list_namespaced_job(NS).items, "the job is gone")
        self.assertEqual(self.core.list_namespaced_pod(NS).items, [])
        self.create("left", "sleep 600", 1)
        self.runs("left", 1)
        self.batch.delete_namespaced_job("left", NS, body=client.V1DeleteOptions(propagation_policy="Orphan"))
        pod, = self.core.list_namespaced_pod(NS).items
        self.assertEqual((pod.status.phase, pod.metadata.owner_references), ("Running", None))
        self.core.create_namespaced_pod_eviction(pod.metadata.name, NS, client.V1Eviction(
            metadata=client.V1ObjectMeta(name=pod.metadata.name, namespace=NS)))
        eventually(lambda: not self.core.list_namespaced_pod(NS).items, "it is evicted")

    def test_python_client_lists_and_patches_nodes(self):
        node, = self.core.list_node().items
        self.assertEqual((node.metadata.name, node.status.capacity["pods"]), ("node-0", "4"))
        self.core.patch_node("node-0", {"spec": {"unschedulable": True}, "metadata": {"labels": {"disk": "fast"}}})
        node, = self.core.list_node(label_selector="disk=fast").items
        self.assertTrue(node.spec.unschedulable)

    def test_python_client_gets_api_errors(self):
        self.create("taken", "sleep 600", 1)
        exists = self.refused(409, self.create, "taken")
        self.assertEqual((exists["kind"], exists["reason"], exists["details"]["name"]), ("Status", "AlreadyExists", "taken"))
        invalid = self.refused(422, self.create, "wrong", backoff_limit=-1, ttl_seconds_after_finished=-2)
        self.assertEqual({c["field"] for c in invalid["details"]["causes"]}, {"spec.backoffLimit", "spec.ttlSecondsAfterFinished"})
        self.assertEqual(self.refused(404, self.batch.read_namespaced_job, "nobody", NS)["reason"], "NotFound")
        stale = self.batch.read_namespaced_job("taken", NS)
        self.batch.patch_namespaced_job("taken", NS, {"metadata": {"labels": {"a": "b"}}})
        self.assertEqual(self.refused(409, self.batch.replace_namespaced_job, "taken", NS, stale)["reason"], "Conflict")
        self.it.restart_coordinator()
        eventually(lambda: self.it.api.call("GET", "/readyz")[0] == 200, "the coordinator is back")
        too_old = self.refused(410, self.batch.list_namespaced_job, NS, watch=True, resource_version="1", timeout_seconds=5)
        self.assertEqual(too_old["reason"], "Expired")
        wrong_type = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "typo"}, "spec": {"parallelism": "two"}}
        self.assertIn("spec.parallelism", self.refused(400, self.batch.create_namespaced_job, NS, wrong_type)["message"])


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
