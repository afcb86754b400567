"""Claims about how soon a Controller is looked at again."""

from typing import Any

import msgspec
import pytest

from coil.api.controller import Controller
from coil.kinds.controller.live import Outcome
from coil.kinds.controller.reconcile import NODES_S, PERIOD_S, TAKEOVER_S, next_look, period
from coil.kinds.controller.report import Slurm
from coil.kinds.controller.snapshot import NO_RESTAPI, Snapshot
from coil.kube.views import PodView
from coil.slurm.wire import Number, SlurmNode

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


def _nodes(*started: int) -> dict[str, SlurmNode]:
    return {
        f"n{begun}": SlurmNode(
            name=f"n{begun}", state=frozenset({"IDLE"}), started_at=Number(set=True, number=begun)
        )
        for begun in started
    }


@pytest.mark.parametrize(
    ("outcome", "now", "seconds"),
    [
        (None, 0.0, PERIOD_S),
        (Outcome("g", live=False, again_s=0.4), 0.0, 0.4),
        (Outcome("g", live=False), 0.0, PERIOD_S),
        (Outcome("g", live=True, since=100, nodes=_nodes(100, 101)), 101.0, PERIOD_S),
        (Outcome("g", live=True, since=100, nodes=_nodes(50, 101)), 101.0, NODES_S),
        (Outcome("g", live=True, since=100, nodes=_nodes(50, 101)), 1000.0, PERIOD_S),
        (Outcome("g", live=True), 0.0, PERIOD_S),
    ],
)
def test_while_a_configuration_is_on_its_way_the_look_comes_soon(
    outcome: Outcome | None, now: float, seconds: float
) -> None:
    assert next_look(Snapshot(controller=controller(0)), outcome, now) == seconds
