"""Everything one pass over an Accounting knows."""

from collections.abc import Mapping

import msgspec

from coil.api.accounting import Accounting
from coil.kube.views import ManifestView, PodView
from coil.support.objects import ObjectKey


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The caches at the start of the pass, as far as they concern this Accounting.

    Attributes:
        accounting: with the operator's defaults filled in.
        secrets: data of the Secrets referred to that exist, by name.
        config_maps: data of the ConfigMap with the JWKS, if it exists, by name.
        service: the live child.
        config: the live child, the Secret with slurmdbd.conf.
        stateful_set: the live child.
        pod: the one pod of slurmdbd, if it exists.
        complaint: what slurmdbd says in its log while it is not ready; empty when nothing is known.
        sharing: other Accountings that name the same database.
    """

    accounting: Accounting
    secrets: Mapping[str, Mapping[str, bytes]] = {}
    config_maps: Mapping[str, Mapping[str, str]] = {}
    service: ManifestView | None = None
    config: ManifestView | None = None
    stateful_set: ManifestView | None = None
    pod: PodView | None = None
    complaint: str = ""
    sharing: tuple[ObjectKey, ...] = ()
