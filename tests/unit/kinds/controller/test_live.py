"""Claims about bringing a configuration to a running slurmctld."""

from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.kinds.controller.live import (
    FILES_S,
    LONGEST_S,
    READ_S,
    UNTOLD_S,
    Live,
    Progress,
    Reconfigure,
    Refresh,
    Step,
    Target,
    Wait,
    next_step,
    nodes_with,
    present,
)
from coil.kube.views import PodView
from coil.slurm.wire import Number, RunningConfiguration, SlurmNode
from coil.support.objects import ObjectMeta

TARGET = Target("abc", 7)
OLD, NEW = RunningConfiguration(6, 100), RunningConfiguration(7, 100)


def pod(value: str | None = None) -> PodView:
    annotations = {} if value is None else {keys.ANNOTATION_LIVE_CONFIG: value}
    return PodView(metadata=ObjectMeta(name="alba-controller-0", namespace="ns", annotations=annotations))


def progress(**members: Any) -> Progress:
    return Progress(**{"generation": "abc", "refreshed_at": -9.0, **members})


@pytest.mark.parametrize(
    ("running", "given", "now", "wanted"),
    [
        (NEW, None, 0.0, Live(told=True)),
        (OLD, None, 0.0, Refresh("abc", 1)),
        (OLD, progress(generation="before"), 0.0, Refresh("abc", 1)),
        (OLD, progress(refreshed_at=0.0), 0.0, Wait(FILES_S)),
        (OLD, progress(refreshed_at=0.0), FILES_S, Reconfigure()),
        (OLD, progress(reconfigured_at=0.0), 0.0, Wait(READ_S)),
        (NEW, progress(reconfigured_at=0.0), 0.0, Live(told=True)),
        (OLD, progress(reconfigured_at=0.0), 1.0, Refresh("abc.1", 2)),
        (OLD, progress(reconfigured_at=0.0, tries=2), 0.0, Wait(2 * READ_S)),
        (OLD, progress(reconfigured_at=0.0, tries=20), 0.0, Wait(LONGEST_S)),
    ],
)
def test_steps_while_slurmctld_tells_what_it_runs_with(
    running: RunningConfiguration, given: Progress | None, now: float, wanted: Step
) -> None:
    assert next_step(TARGET, running, given, [pod()], now) == wanted


@pytest.mark.parametrize("untold", [(TARGET, None), (Target("abc", None), OLD)])
def test_where_slurmctld_does_not_tell_there_is_one_careful_try(
    untold: tuple[Target, RunningConfiguration | None],
) -> None:
    steps = [
        next_step(*untold, given, [pod(value)], now)
        for given, value, now in (
            (None, None, 0.0),
            (progress(refreshed_at=0.0), "abc", 0.0),
            (progress(refreshed_at=0.0), "abc", UNTOLD_S),
            (progress(reconfigured_at=2.0), "abc", 2.0),
            (None, "abc", 0.0),
        )
    ]
    assert steps == [Refresh("abc", 1), Wait(UNTOLD_S), Reconfigure(), Live(told=False), Live(told=False)]


@pytest.mark.parametrize("running", [NEW, None])
def test_a_configuration_is_not_live_before_the_key_is(running: RunningConfiguration | None) -> None:
    """Whether slurmctld has the key is seen by the tokens that it takes, whatever else it tells."""
    given = progress(refreshed_at=-1.0, reconfigured_at=0.0)
    found = [
        next_step(TARGET, running, each, [pod("abc")], now, keyed=False)
        for each, now in (
            (None, 0.0),
            (progress(refreshed_at=0.0), 0.0),
            (progress(refreshed_at=0.0), FILES_S),
            (given, 0.0),
            (given, 9.0),
        )
    ]
    assert found == [Refresh("abc", 1), Wait(FILES_S), Reconfigure(), Wait(READ_S), Refresh("abc.1", 2)]
    assert next_step(TARGET, running, given, [pod("abc")], 9.0) == Live(told=running is not None)


def node(started: int, *state: str) -> SlurmNode:
    return SlurmNode(name="n", state=frozenset(state), started_at=Number(set=True, number=started))


def test_only_slurmds_begun_after_slurmctld_are_counted_and_only_present_ones_expected() -> None:
    nodes = {"a": node(100, "IDLE"), "b": node(90, "MIXED"), "c": node(90, "DOWN"), "d": node(0, "UNKNOWN")}
    here = present(nodes)
    assert set(here) == {"a", "b"}
    assert nodes_with(100, here) == 1


def test_the_answer_of_slurm_is_read() -> None:
    body = b'{"HashValue": 4031097061, "BOOT_TIME": 1796062618, "SLURM_VERSION": "26.05.5"}'
    assert msgspec.json.decode(body, type=RunningConfiguration) == RunningConfiguration(
        4031097061, 1796062618
    )
