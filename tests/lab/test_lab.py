"""A Kubernetes that is real where it matters to a Slurm cluster: network, names, volumes, logs, exec."""

import json
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from lab import baseimages, binaries, cluster

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

_WORKLOAD = f"""
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: web}}
spec:
  serviceName: web
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 0
      securityContext: {{fsGroup: 401}}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {{matchLabels: {{app: web}}}}
      containers:
      - name: web
        image: {baseimages.BUSYBOX}
        command: [sh, -c, "hostname > /data/index.html; echo serving; exec httpd -f -v -p 80 -h /data"]
        volumeMounts: [{{name: data, mountPath: /data}}]
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteMany], resources: {{requests: {{storage: 1Mi}}}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec: {{selector: {{app: web}}, ports: [{{port: 80}}]}}
"""


class _Namespace:
    """kubectl in one namespace."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        return cluster.kubectl("--namespace", self.name, *arguments, stdin=stdin)

    def shell(self, pod: str, command: str) -> str:
        return self("exec", pod, "--", "sh", "-c", command).strip()

    def pods(self) -> dict[str, dict[str, str]]:
        found = json.loads(self("get", "pods", "-o", "json"))["items"]
        return {
            pod["metadata"]["name"]: {"ip": pod["status"]["podIP"], "node": pod["spec"]["nodeName"]}
            for pod in found
        }


@pytest.fixture(scope="module")
def web() -> Iterator[_Namespace]:
    """Two web servers on two nodes, each with a claim and both behind one Service."""
    if not cluster.KUBECONFIG.exists():
        pytest.skip("the lab is down: run `make up`")
    namespace = _Namespace(f"lab-test-{uuid.uuid4().hex[:6]}")
    cluster.kubectl("create", "namespace", namespace.name)
    try:
        namespace("apply", "-f", "-", stdin=_WORKLOAD)
        namespace("rollout", "status", "statefulset/web", "--timeout=60s")
        yield namespace
    finally:
        cluster.kubectl("delete", "namespace", namespace.name, "--wait=false")


def test_workers_are_on_two_nodes_and_none_is_the_control_node(web: _Namespace) -> None:
    assert {pod["node"] for pod in web.pods().values()} == {"worker-1", "worker-2"}


def test_a_pod_reaches_another_node_by_address_and_keeps_its_own(web: _Namespace) -> None:
    """No masquerading between pods: slurmctld must see a worker's own address."""
    pods = web.pods()

    assert web.shell("web-0", f"wget -qO- http://{pods['web-1']['ip']}/") == "web-1"
    assert f"[::ffff:{pods['web-0']['ip']}]" in web("logs", "web-1")


def test_names_of_services_and_of_single_pods_resolve(web: _Namespace) -> None:
    assert web.shell("web-0", "wget -qO- http://web-1.web/") == "web-1"
    answers = {web.shell("web-1", f"wget -qO- http://web.{web.name}.svc.cluster.local/") for _ in range(20)}
    assert answers == {"web-0", "web-1"}, "a Service reaches the other node and the own one"


def test_a_name_outside_does_not_exist_and_takes_no_time(web: _Namespace) -> None:
    assert "NXDOMAIN" in web.shell("web-0", "timeout 2 nslookup registry.example; true")


def test_the_host_reaches_pods_and_services(web: _Namespace) -> None:
    service = json.loads(web("get", "service", "web", "-o", "json"))["spec"]["clusterIP"]
    for address, expected in ((service, "web-"), (web.pods()["web-1"]["ip"], "web-1")):
        command = ["curl", "--silent", "--max-time", "5", f"http://{address}/"]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert answer.startswith(expected)


def test_claims_bind_and_belong_to_the_pods_group(web: _Namespace) -> None:
    claims = json.loads(web("get", "persistentvolumeclaims", "-o", "json"))["items"]

    assert [claim["status"]["phase"] for claim in claims] == ["Bound", "Bound"]
    assert web.shell("web-0", "stat -c %g /data") == "401"


def test_logs_and_exec_work_on_every_worker(web: _Namespace) -> None:
    for pod in web.pods():
        assert "serving" in web("logs", pod)
        assert web.shell(pod, "hostname") == pod


def test_every_process_of_a_pod_is_below_the_lab_cgroup(web: _Namespace) -> None:
    """`lab down` finds processes by it, and Slurm puts its steps below it."""
    for name, pod in web.pods().items():
        groups = web.shell(name, "cat /proc/self/cgroup").splitlines()
        assert any(group.partition(":/")[2].startswith(f"coil-lab/{pod['node']}/") for group in groups)


def test_helm_talks_to_it(web: _Namespace) -> None:
    command = [str(binaries.binary("helm")), "list", "--kubeconfig", str(cluster.KUBECONFIG)]

    done = subprocess.run([*command, "--namespace", web.name], capture_output=True, text=True, check=True)

    assert "NAME" in done.stdout
