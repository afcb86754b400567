"""A cluster of the chart, with the operator at work."""

import pytest

from lab.apiserver import ApiServer
from tests.support.manager import Manager
from tests.support.site import Release

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(120)]

OFF = (
    "accounting.enabled=false",
    "accounting.storageConfig.host=mariadb",
    "accounting.storageConfig.username=slurm",
    "accounting.storageConfig.passwordKeyRef.name=mariadb-password",
    "accounting.storageConfig.passwordKeyRef.key=password",
    "accounting.extraConf=DebugLevel=debug2",
    "nodesets.cpu.replicas=1",
)


def test_values_of_a_database_that_is_off_hold_nothing_up(managed_server: ApiServer) -> None:
    """Field case DBD-12: the password's Secret does not exist, and nobody looks for it."""
    with Release(managed_server, "slurm", "c", *OFF) as release:
        space = release.space
        with Manager(managed_server, "--controller-workers=2", namespaces=[space.name]) as manager:
            for kind, name in (
                ("controller", "c-slurm"),
                ("restapi", "c-slurm"),
                ("nodeset", "c-slurm-worker-cpu"),
            ):
                space.wait_condition(kind, name, "Reconciled=True", within=60)
            logged = manager.entries()
        assert space.get("statefulset", "c-slurm-controller")
        assert space.get("deployment", "c-slurm-restapi")
        assert space.get("accounting", "c-slurm") is None
        conf = (space.get("configmap", "c-slurm-config") or {})["data"]["slurm.conf"]
        assert "AccountingStorageType=accounting_storage/none" in conf
        assert "mariadb" not in conf
        assert [line for line in logged if "mariadb" in str(line) or "slurmdbd" in str(line)] == []
