"""Bodies of the requests about worker pods."""

from coil.kinds.nodeset.actions import PatchConditions
from coil.kinds.nodeset.pods import conditions_patch
from coil.kube.views import ConditionView


def test_an_empty_message_replaces_an_old_one() -> None:
    idle = ConditionView(
        type="SlurmNodeStateIdle", status="True", last_transition_time="2026-01-01T00:00:00Z"
    )
    action = PatchConditions(
        name="a", uid="u", resource_version="1", wanted=(idle,), removed=("SlurmNodeStateDrain",)
    )
    written, removed = conditions_patch(action)["status"]["conditions"]
    assert written["message"] == ""
    assert removed == {"$patch": "delete", "type": "SlurmNodeStateDrain"}
