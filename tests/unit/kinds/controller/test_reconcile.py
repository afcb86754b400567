"""Claims about how soon a Controller is looked at again."""

import pytest

from coil.kinds.controller.live import Outcome
from coil.kinds.controller.reconcile import NODES_S, PERIOD_S, next_look
from coil.slurm.wire import Number, SlurmNode


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
    assert next_look(outcome, now) == seconds
