"""Secrets as kinds need them: their content to read, the same object to compare with what was built."""

import base64

from coil.kube import core
from coil.kube.store import Change
from coil.kube.views import ManifestView, SecretView


def manifest(secret: SecretView | None) -> ManifestView | None:
    """The Secret as a child to compare; the cache of contents serves both, instead of a second one."""
    if secret is None:
        return None
    return ManifestView(
        api_version=core.SECRETS.api_version,
        kind=core.SECRETS.kind,
        metadata=secret.metadata,
        data={key: base64.b64encode(value).decode() for key, value in secret.data.items()},
        immutable=secret.immutable,
        type=secret.type,
    )


def data_changed(change: Change[SecretView]) -> bool:
    """Whether a Secret came, went or holds other data."""
    return change.old is None or change.new is None or change.old.data != change.new.data
