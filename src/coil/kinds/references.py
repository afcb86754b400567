"""What is told of an object that another one refers to and that is not there. Pure."""

from collections.abc import Mapping

import msgspec

from coil.api.meta import SecretKeySelector

CONTROLLER_MISSING = "ControllerMissing"
SECRET_MISSING = "SecretMissing"  # noqa: S105 -- a reason of a condition
SECRET_KEY_MISSING = "SecretKeyMissing"  # noqa: S105 -- the same


class Missing(msgspec.Struct, frozen=True, gc=False):
    """What is not there: `reason` is CamelCase, `message` says what to do."""

    reason: str
    message: str


def missing_controller(name: str) -> Missing:
    """The Controller that `spec.controllerRef` names does not exist."""
    message = f'Controller "{name}" not found; create it or correct spec.controllerRef.name'
    return Missing(CONTROLLER_MISSING, message)


def missing_key(
    ref: SecretKeySelector, data: Mapping[str, bytes] | None, where: str = "", *, needs_text: bool = False
) -> Missing | None:
    """Why the key of a Secret cannot be used; None when it can.

    Args:
        ref: the Secret and the key in it.
        data: of that Secret; None when there is no such Secret.
        where: the member that names it, for readers who would not know.
        needs_text: an empty value counts as none.
    """
    secret = f'Secret "{ref.name}"' + (f" ({where})" if where else "")
    if data is None:
        return Missing(SECRET_MISSING, f'{secret} not found; create it with key "{ref.key}"')
    if ref.key not in data or (needs_text and not data[ref.key]):
        return Missing(SECRET_KEY_MISSING, f'{secret} has no key "{ref.key}"; add it')
    return None
