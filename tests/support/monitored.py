"""A Slurm cluster with metrics, and the lab's Prometheus that scrapes it and the operator."""

import json
import string
from pathlib import Path

import yaml

from lab import cluster as lab
from lab import images
from tests.support.kubectl import Kubectl, wait_until
from tests.support.slurm_cluster import SlurmCluster

PROMETHEUS = string.Template((Path(__file__).parents[1] / "data/e2e/prometheus.yaml").read_text())


def create(cluster: SlurmCluster, kubectl: Kubectl, *, replicas: int) -> str:
    """Create the cluster with its Prometheus; the URL of Prometheus from this machine."""
    images.build(["prometheus"])
    lab.load(images.IMAGES["prometheus"].reference)
    documents = list(yaml.safe_load_all(cluster.manifests(replicas=replicas)))
    for document in documents:
        if document["kind"] == "Controller":
            document["spec"]["metrics"] = {"enabled": True}
    kubectl.apply(yaml.safe_dump_all(documents))
    wait_until(lambda: cluster.try_slurm("sinfo"), within=90, what=f"slurmctld of {cluster.name} answers")
    if replicas:
        cluster.wait_idle(replicas)
    kubectl.apply(PROMETHEUS.substitute(name=cluster.name))
    place = ("pod/prometheus", "--namespace", cluster.name)
    kubectl.run("wait", *place, "--for=condition=Ready", "--timeout=60s", within=70)
    pod = json.loads(kubectl.run("get", *place, "--output=json"))
    return f"http://{pod['status']['podIP']}:9090"
