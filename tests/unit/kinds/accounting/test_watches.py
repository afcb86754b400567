"""Which Accountings a change concerns, as far as it takes no store to say it."""

from typing import Any

import msgspec
import pytest

from coil.api.accounting import Accounting
from coil.kinds.accounting.observe import database
from coil.kinds.accounting.watches import accounting_of, databases, uses
from coil.kube.store import Change, ChangeKind
from coil.kube.views import PodView
from tests.support.resources import accounting


def storage(host: str = "db", **members: Any) -> dict[str, Any]:
    return {"host": host, "passwordKeyRef": {"name": "db", "key": "pw"}, **members}


def test_everything_it_refers_to_is_watched() -> None:
    wanted = accounting(jwksKeyRef={"name": "jwks", "key": "k"})
    assert set(uses(wanted)) == {"Secret/ns/keys", "Secret/ns/db", "ConfigMap/ns/jwks"}


def test_an_external_one_needs_no_password() -> None:
    assert set(uses(accounting(external=True))) == {"Secret/ns/keys"}


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (storage(), ["db.ns:3306/slurm_acct_db"]),
        (storage("db.ns"), ["db.ns:3306/slurm_acct_db"]),
        (storage("DB.ns.svc"), ["db.ns:3306/slurm_acct_db"]),
        (storage("db.ns.svc.cluster.local."), ["db.ns:3306/slurm_acct_db"]),
        (storage("db.example.test", port=1, database="x"), ["db.example.test:1/x"]),
        (storage(""), []),
        (None, []),
    ],
)
def test_one_database_has_one_name(config: dict[str, Any] | None, wanted: list[str]) -> None:
    assert list(database(accounting(storageConfig=config))) == wanted


def change(old: Accounting | None, new: Accounting | None) -> Change[Accounting]:
    return Change(ChangeKind.MODIFIED, old, new)


def test_a_status_concerns_no_other_accounting() -> None:
    """Otherwise two that share a database would wake one another for ever."""
    one, other = accounting(), accounting(storageConfig=storage("else"))
    assert databases(change(one, one)) == set()
    assert databases(change(one, None)) == databases(change(None, one)) == {"db.ns:3306/slurm_acct_db"}
    assert databases(change(one, other)) == {"db.ns:3306/slurm_acct_db", "else.ns:3306/slurm_acct_db"}


def test_a_pod_of_slurmdbd_concerns_its_accounting() -> None:
    def pod(**labels: str) -> PodView:
        names = {f"app.kubernetes.io/{name}": value for name, value in labels.items()}
        return msgspec.convert({"metadata": {"name": "p", "namespace": "ns", "labels": names}}, PodView)

    assert [str(key) for key in accounting_of(pod(name="slurmdbd", instance="acct"))] == ["ns/acct"]
    assert list(accounting_of(pod(name="slurmctld", instance="acct"))) == []
