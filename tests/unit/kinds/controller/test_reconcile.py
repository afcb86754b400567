"""Claims about how soon a Controller is looked at again."""

from typing import Any

import msgspec
import pytest

from coil.api.controller import Controller
from coil.kinds.controller.reconcile import PERIOD_S, TAKEOVER_S, period
from coil.kinds.controller.report import Slurm
from coil.kinds.controller.snapshot import NO_RESTAPI, Snapshot
from coil.kube.views import PodView

ANSWERS = Slurm("True", "Answers", "")


def controller(backups: int) -> Controller:
    ha = {"enabled": backups > 0, "backups": max(1, backups)}
    return msgspec.convert({"metadata": {"name": "alba", "namespace": "ns"}, "spec": {"ha": ha}}, Controller)


def pods(*ready: str) -> tuple[PodView, ...]:
    return tuple(
        msgspec.convert(
            {
                "metadata": {"name": f"alba-controller-{ordinal}"},
                "status": {"conditions": [{"type": "Ready", "status": state}]},
            },
            PodView,
        )
        for ordinal, state in enumerate(ready)
    )


@pytest.mark.parametrize(
    ("backups", "members", "seconds"),
    [
        (0, {"pods": pods("False"), "slurm": ANSWERS}, PERIOD_S),
        (1, {"pods": pods("True", "True"), "slurm": ANSWERS, "responding": (True, True)}, PERIOD_S),
        (1, {"pods": pods("False", "True"), "slurm": ANSWERS, "responding": (True, True)}, TAKEOVER_S),
        (1, {"pods": pods("True", "True"), "slurm": ANSWERS, "responding": (False, False)}, TAKEOVER_S),
        (1, {"pods": pods("True", "True"), "slurm": ANSWERS, "responding": None}, TAKEOVER_S),
        (1, {"pods": pods("False", "False"), "slurm": NO_RESTAPI, "responding": None}, PERIOD_S),
    ],
)
def test_while_a_backup_may_take_over_the_look_comes_soon(
    backups: int, members: dict[str, Any], seconds: float
) -> None:
    assert period(Snapshot(controller=controller(backups), **members)) == seconds
