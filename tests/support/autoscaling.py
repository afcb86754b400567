"""A cluster that scales itself: Prometheus beside it, the examples of the documentation, what happened."""

import json
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import yaml

from tests.support.kubectl import Kubectl, wait_until
from tests.support.slurm_cluster import SlurmCluster

EXAMPLES = Path(__file__).parents[2] / "docs/examples/autoscaling"
STEP_S = 2
"""Prometheus of the lab scrapes this often."""

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Scaled:
    """One Slurm cluster whose NodeSet `cpu` an autoscaler drives."""

    kubectl: Kubectl
    cluster: SlurmCluster
    prometheus: str
    """URL of its Prometheus, from this machine."""

    def example(self, name: str) -> str:
        """An example of the documentation, for this cluster's names."""
        document = yaml.safe_load((EXAMPLES / name).read_text())
        document["metadata"]["namespace"] = self.cluster.name
        document["spec"]["scaleTargetRef"]["name"] = "cpu"
        text = yaml.safe_dump(document).replace("prometheus.monitoring", f"prometheus.{self.cluster.name}")
        for key in ("namespace", "name"):
            text = text.replace(f'{key}="slurm"', f'{key}="{self.cluster.name}"')
        return text.replace("name: slurm\n", f"name: {self.cluster.name}\n")

    def replicas(self) -> int:
        """spec.replicas of the NodeSet."""
        return self.kubectl.get("nodeset", "cpu", "--namespace", self.cluster.name)["spec"]["replicas"]

    def submit(self, *nodes: int, seconds: int) -> list[int]:
        """Submit one job for each count of nodes; their numbers."""
        return [
            self.cluster.submit(f"srun sleep {seconds}", f"--nodes={count}", "--exclusive") for count in nodes
        ]

    def wait_completed(self, jobs: Sequence[int], *, within: float) -> None:
        """Wait until every job ended well, none of them started twice."""
        wanted = dict.fromkeys(map(str, jobs), "COMPLETED")

        def states() -> dict[str, str]:
            lines = self.cluster.try_slurm("squeue", "--all", "--noheader", "--states=all", "--format=%i %T")
            return dict(line.split() for line in lines.splitlines() if line.strip())

        wait_until(lambda: wanted.items() <= states().items(), within=within, what=f"{wanted}", every=2)
        assert {self.cluster.job(job)["Restarts"] for job in jobs} == {"0"}

    def wait_workers(self, count: int, *, within: float) -> None:
        """Wait until so many worker pods exist and the NodeSet wants no other number."""
        wait_until(
            lambda: len(self.cluster.workers()) == count and self.replicas() == count,
            within=within,
            what=f"{count} workers in {self.cluster.name}",
            every=2,
        )

    def history(self, query: str, begin: float, end: float) -> Points:
        """What a query gave over time, one point for each scrape; times count from `begin`."""
        wanted = {"query": query, "start": begin, "end": end, "step": STEP_S}
        url = f"{self.prometheus}/api/v1/query_range?{urllib.parse.urlencode(wanted)}"
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 -- of the lab
            found = json.load(answer)["data"]["result"]
        return [(at - begin, float(value)) for at, value in found[0]["values"]] if found else []


def turns(points: Points) -> int:
    """How often a series went up again after it had gone down, or down after it had gone up."""
    moves = [after - before for (_, before), (_, after) in pairwise(points) if after != before]
    return sum((one > 0) != (other > 0) for one, other in pairwise(moves))


def first(points: Points, value: float) -> float:
    """When a series first had the value, in seconds."""
    return next(at for at, found in points if found == value)
