"""What the boards and alerts ask of slurmctld is what the real one serves."""

import re
import urllib.request

from tests.support.queries import metrics
from tests.support.slurm import SlurmCluster

PATHS = ("jobs", "nodes", "partitions", "scheduler")


def test_slurmctld_serves_every_series_that_a_board_or_an_alert_asks_for(cluster: SlurmCluster) -> None:
    """A series that Slurm renames would leave a panel empty and an alert silent."""
    base = f"http://127.0.0.1:{cluster.ports['ctld']}/metrics"
    pages = [urllib.request.urlopen(f"{base}/{path}", timeout=10).read().decode() for path in PATHS]  # noqa: S310
    served = set(re.findall(r"^# HELP (\w+)", "\n".join(pages), re.MULTILINE))
    asked = {name for name in metrics() if name.startswith("slurm_")}
    assert asked
    assert asked <= served
