"""Real daemons for each test: a fresh slurmctld and slurmrestd start in half a second."""

from collections.abc import Iterator

import pytest

from tests.support import slurm


@pytest.fixture
def cluster() -> Iterator[slurm.SlurmCluster]:
    """A running cluster without nodes."""
    if reason := slurm.missing():
        pytest.skip(reason)
    with slurm.slurm_cluster() as running:
        yield running
