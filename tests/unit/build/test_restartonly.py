"""Claims about what a running slurmctld cannot take over."""

import pytest

from coil.build.restartonly import needs_restart


@pytest.mark.parametrize(
    ("old", "new", "differing"),
    [
        ("SlurmctldPort=6817\n", "SlurmctldPort=6818\n", ("slurmctldport",)),
        ("SlurmctldPort=6817\n", "SlurmctldPort=6817\nslurmctldport = 6818 # x\n", ("slurmctldport",)),
        ("SlurmctldPort=6817\n", "SlurmctldPort=6817\nSlurmctldPort=6817\n", ()),
        ("SlurmctldHost=a\n", "SlurmctldHost=a\nSlurmctldHost=b\n", ()),
        ("", "CommunicationParameters=EnableIPv6,keepaliveinterval=5\n", ("communicationparameters",)),
        ("CommunicationParameters=x\n", "CommunicationParameters=keepaliveinterval=5\n", ()),
        ("CommunicationParameters=a,NoInAddrAny\n", "CommunicationParameters=noinaddrany\n", ()),
        ("AuthType=auth/slurm\n", "", ("authtype",)),
        ("MaxJobCount=1\n", "MaxJobCount=2\nPartitionName=x Nodes=ALL\n", ()),
        ("AccountingStorageHost=a\n", "AccountingStorageHost=b\n", ()),
        ("", "# AuthType=auth/slurm\n", ()),
    ],
)
def test_only_listed_parameters_need_a_restart(old: str, new: str, differing: tuple[str, ...]) -> None:
    assert needs_restart(old, new) == differing
