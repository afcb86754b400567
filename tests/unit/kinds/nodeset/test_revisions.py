"""Which revisions are kept (spec: nodeset 11.2; 30, Q9)."""

from typing import Any

import msgspec
import pytest

from coil.api import keys
from coil.api.nodeset import NodeSet, NodeSetSpec
from coil.build.nodeset import controller_revision
from coil.kinds.nodeset.revisions import RevisionView, stand_in, surplus
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


def _settled(generation: int = 3, observed: int = 3, **status: Any) -> NodeSet:
    live = {"nodeSetHash": "theirs", "observedGeneration": observed, **status}
    wire = {"metadata": {"name": "gpu", "generation": generation}, "status": live}
    return msgspec.convert(wire, NodeSet)


def _named(digest: str, stands_for: str = "") -> RevisionView:
    annotations = {keys.ANNOTATION_STANDS_FOR: stands_for} if stands_for else {}
    meta = ObjectMeta(name=f"gpu-{digest}", labels={keys.LABEL_REVISION: digest}, annotations=annotations)
    return RevisionView(metadata=meta)


INVALID = {
    "type": "Reconciled",
    "status": "False",
    "reason": "Invalid",
    "message": "",
    "lastTransitionTime": "",
}


@pytest.mark.parametrize(
    ("nodeset", "listed", "found"),
    [
        # Another program counted other bytes: what it rolled out for this generation is up to date.
        (_settled(), [_named("theirs"), _named("older")], "gpu-theirs"),
        # The NodeSet was changed since.
        (_settled(generation=4), [_named("theirs")], None),
        # Later changes of other members leave what was found out once.
        (_settled(generation=4), [_named("theirs", stands_for="ours")], "gpu-theirs"),
        (_settled(generation=4), [_named("theirs", stands_for="something else")], None),
        # It is recorded under its own name.
        (_settled(), [_named("theirs"), _named("ours")], None),
        # Nothing says what the pods were made from.
        (_settled(), [], None),
        # The generation was seen, but nothing could be built from it.
        (_settled(conditions=[INVALID]), [_named("theirs")], None),
    ],
)
def test_which_revision_stands_for_another_hash(
    nodeset: NodeSet, listed: list[RevisionView], found: str | None
) -> None:
    revision = stand_in(nodeset, "ours", listed)
    assert (revision and revision.metadata.name) == found


@pytest.mark.parametrize(
    ("name", "found"),
    [("helm.sh/chart", "gpu-theirs"), ("app.kubernetes.io/version", "gpu-theirs"), ("team", None)],
)
def test_another_chart_version_in_the_pods_labels_makes_no_worker_anew(name: str, found: str | None) -> None:
    """Charts of the reference write it there; ours do not."""
    changed = _labelled({"tier": "a"})
    was = controller_revision(_labelled({"tier": "a", name: "1"}), number=1)["data"]
    revision = stand_in(changed, "ours", [msgspec.structs.replace(_named("theirs"), data=was)])
    assert (revision and revision.metadata.name) == found


def _labelled(labels: dict[str, str]) -> NodeSet:
    """Changed since its status was written."""
    spec = msgspec.convert({"template": {"metadata": {"labels": labels}}}, NodeSetSpec)
    return msgspec.structs.replace(_settled(generation=4), spec=spec)
