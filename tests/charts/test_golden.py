"""Our charts render what the reference's render, but for the deviations that are listed with a reason."""

import pytest

from tests.support import chart_deviations
from tests.support.charts import ROOT, Case, RenderError, by_name, cases, differences, normalise, render

ALL = cases()
failing = [case for case in ALL if case.name in chart_deviations.FAILURES]
repaired = [case for case in ALL if case.name in chart_deviations.FACTS]
rendered = [case for case in ALL if case not in failing and case not in repaired]


@pytest.mark.parametrize("case", rendered, ids=lambda case: case.name)
def test_case_renders_as_the_reference_but_for_listed_deviations(case: Case) -> None:
    got = by_name(render(case, *chart_deviations.arguments(case)))
    wanted = by_name(normalise(chart_deviations.expected(case), "no version"))
    assert differences(got, wanted) == []


@pytest.mark.parametrize("case", failing, ids=lambda case: case.name)
def test_case_fails_and_says_why(case: Case) -> None:
    with pytest.raises(RenderError, match=chart_deviations.FAILURES[case.name]):
        render(case)


@pytest.mark.parametrize("case", repaired, ids=lambda case: case.name)
def test_case_that_fails_only_in_the_reference_renders(case: Case) -> None:
    name, path, wanted = chart_deviations.FACTS[case.name]
    value = by_name(render(case))[name]
    for member in path:
        value = value.get(member)
    assert value == wanted


def test_a_case_fails_where_the_reference_fails_or_a_deviation_says_so() -> None:
    reference = {case.name for case in ALL if case.must_fail}
    assert reference == (chart_deviations.FAILURES.keys() | chart_deviations.FACTS.keys()) - {
        "slurm-names-long",
        "slurm-conf-map-nested",
    }


def test_every_deviation_is_seen_in_a_case() -> None:
    used = {name for case in ALL for name in chart_deviations.used(case)}
    assert {deviation.name for deviation in chart_deviations.DEVIATIONS} - used == set()


def test_every_deviation_is_documented() -> None:
    text = (ROOT / "docs" / "compatibility.md").read_text()
    assert [deviation.name for deviation in chart_deviations.DEVIATIONS if deviation.name not in text] == []
