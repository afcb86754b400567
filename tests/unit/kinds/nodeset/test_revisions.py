"""Which revisions are kept (spec: nodeset 11.2; 30, Q9)."""

import pytest

from coil.api import keys
from coil.kinds.nodeset.revisions import RevisionView, surplus
from coil.support.objects import ObjectMeta


def revision(number: int) -> RevisionView:
    meta = ObjectMeta(name=f"gpu-h{number}", labels={keys.LABEL_REVISION: f"h{number}"})
    return RevisionView(metadata=meta, revision=number)


@pytest.mark.parametrize(
    ("limit", "needed", "dropped"),
    [
        (0, {"h3"}, ["h1", "h2"]),
        (0, {"h1", "h3"}, ["h2"]),
        (1, {"h3"}, ["h1"]),
        (5, {"h3"}, []),
        (-1, {"h3"}, ["h1", "h2"]),
    ],
)
def test_the_oldest_that_nobody_needs_go(limit: int, needed: set[str], dropped: list[str]) -> None:
    found = surplus([revision(2), revision(3), revision(1)], needed, limit)
    assert [item.metadata.labels[keys.LABEL_REVISION] for item in found] == dropped
