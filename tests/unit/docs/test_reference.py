"""The reference pages hold what the code holds: nothing is left out, nothing is made up."""

from pathlib import Path

import pytest
import yaml

from docs._ext import reference
from docs._ext.pages import resources, table, values

TEXT = """\
# Shown above.
# And on two lines.
first: 1
group:
  # Inside.
  second: "a|b"
  third: {}
"""


def test_values_carry_the_comment_right_above_them() -> None:
    """A comment of several lines is one text; a group without comment is no value."""
    assert list(values.rows(TEXT)) == [
        ("`first`", "`1`", "Shown above. And on two lines."),
        ("`group.second`", '`"a|b"`', "Inside."),
        ("`group.third`", "`{}`", ""),
    ]


def test_a_bar_stays_inside_its_cell() -> None:
    """Markdown would read a bar as the end of the cell."""
    assert table(["a"], [["x|y\nz"]]).splitlines()[-1] == "| x\\|y z |"


@pytest.mark.parametrize("chart", sorted(values.CHARTS.glob("*/values.yaml")), ids=lambda p: p.parent.name)
def test_every_leaf_of_a_chart_is_listed(chart: Path) -> None:
    """A value that is not in the reference is one that nobody finds."""
    listed = {row[0].strip("`") for row in values.rows(chart.read_text())}
    assert _leaves("", yaml.safe_load(chart.read_text())) <= listed


def test_fields_of_lists_and_maps_are_listed() -> None:
    """Members below lists are found too."""
    page = resources.page()
    assert "`spec.template.spec`" in page
    assert "`spec.configFileRefs[].name`" in page


def test_reports_name_conditions_events_and_failures() -> None:
    """One known example of each, with its reason and words."""
    page = reference.PAGES["reports"]()
    assert "| all | `Reconciled` | True | `AllAsWanted` | all objects are as wanted |" in page
    assert "| `ScalingUp` | Normal | Creating {what} |" in page
    assert "| token | `SecretTaken` |" in page


def test_pages_are_written_only_when_they_change(tmp_path: Path) -> None:
    """A build that changes nothing reads nothing again."""
    reference.write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    reference.write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert len(before) == len(reference.PAGES)


def _leaves(path: str, value: object) -> set[str]:
    if not value and not path:
        return set()
    if not isinstance(value, dict) or not value:
        return {path}
    return {leaf for key, inner in value.items() for leaf in _leaves(f"{path}.{key}" if path else key, inner)}
