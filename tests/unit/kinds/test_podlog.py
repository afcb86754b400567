"""What is taken from a daemon's log for a condition."""

import msgspec
import pytest

from coil.kinds.podlog import has_run, last_complaint
from coil.kube.views import PodView

REFUSED = """\
[2026-11-30T17:45:51.715] error: Unable to open pidfile `/run/slurmdbd.pid': Permission denied
[2026-11-30T17:45:51.737] error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.0.0.1'
[2026-11-30T17:45:51.737] error: The database must be up when starting the plugin.  Trying again in 5 seconds.
"""
FATAL = """\
[2026-11-30T17:47:17.584] slurmctld version 26.05.5 started on cluster contract(2654)
[2026-11-30T17:47:17.591] fatal: CLUSTER ID MISMATCH.
slurmctld has been started with "ClusterID=2654"  from the state files.
Remove /var/spool/slurmctld/clustername to override this safety check.
"""
FATAL_TEXT = (
    'CLUSTER ID MISMATCH. slurmctld has been started with "ClusterID=2654"  from the state files. '
    "Remove /var/spool/slurmctld/clustername to override this safety check."
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", ""),
        ("[2026-11-30T17:45:59.952] slurmdbd version 26.05.5 started\nplain words\n", ""),
        (REFUSED, "mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.0.0.1'"),
        ("slurmdbd: fatal: no such file\n", "no such file"),
        (
            FATAL,
            FATAL_TEXT,
        ),
        (FATAL + "[2026-11-30T17:47:18.000] something else\nmore\n", None),
        (FATAL + REFUSED, "mysql_real_connect failed: 1045 Access denied for user 'slurm'@'10.0.0.1'"),
    ],
)
def test_the_last_error_counts_and_not_its_time(text: str, complaint: str | None) -> None:
    if complaint is None:
        assert last_complaint(text) == last_complaint(FATAL)
    else:
        assert last_complaint(text) == complaint


@pytest.mark.parametrize(
    ("status", "wanted"),
    [
        ({"state": {"running": {}}}, True),
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, False),
        ({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 2}, True),
        ({"state": {"terminated": {"exitCode": 1}}}, True),
    ],
)
def test_a_container_that_never_began_has_no_log(status: dict[str, object], wanted: bool) -> None:
    found = {"name": "slurmdbd", **status}
    pod = msgspec.convert(
        {"metadata": {"name": "p", "namespace": "ns"}, "status": {"containerStatuses": [found]}}, PodView
    )
    assert has_run(pod, "slurmdbd") is wanted
    assert not has_run(pod, "another")
