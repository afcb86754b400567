"""Read the caches, and the log of a slurmdbd that is not ready, into one Snapshot."""

from collections.abc import Iterable, Sequence
from typing import Any

from coil.api import keys, names
from coil.api.accounting import Accounting
from coil.api.defaults import with_defaults
from coil.kinds import podlog, secrets
from coil.kinds.accounting.plan import key_refs, password_ref
from coil.kinds.accounting.snapshot import Snapshot
from coil.kinds.resources import ACCOUNTINGS
from coil.kinds.runtime import Runtime
from coil.kube import core
from coil.kube.store import Store
from coil.kube.views import PodView
from coil.support.objects import ObjectKey

DATABASE = "accounting/database"
"""Index of Accountings by the database they name."""


class Observer:
    """Gives the Snapshot of an Accounting."""

    def __init__(self, runtime: Runtime) -> None:
        self._client = runtime.client
        self.accountings = runtime.store(ACCOUNTINGS)
        self.secrets = runtime.store(core.SECRETS)
        self.config_maps = runtime.store(core.CONFIG_MAP_MANIFESTS)
        self.services = runtime.store(core.SERVICES)
        self.stateful_sets = runtime.store(core.STATEFUL_SETS)
        self.pods = runtime.store(core.PODS)
        self.stores: Sequence[Store[Any]] = (
            self.accountings,
            self.secrets,
            self.config_maps,
            self.services,
            self.stateful_sets,
            self.pods,
        )
        self.accountings.add_index(DATABASE, database)

    async def snapshot(self, key: ObjectKey) -> Snapshot | None:
        """What is known now; None when there is no such Accounting."""
        found = self.accountings.get(*key)
        if found is None:
            return None
        accounting, child = with_defaults(found), names.accounting(key.name)
        pod = self.pods.get(key.namespace, f"{child}-0")
        return Snapshot(
            accounting=accounting,
            secrets=self._secrets(accounting),
            config_maps=self._config_maps(accounting),
            service=self.services.get(key.namespace, child),
            config=secrets.manifest(self.secrets.get(key.namespace, child)),
            stateful_set=self.stateful_sets.get(key.namespace, child),
            pod=pod,
            complaint=await self._complaint(pod),
            sharing=tuple(other.metadata.key for other in self.sharing(accounting)),
        )

    def sharing(self, accounting: Accounting) -> list[Accounting]:
        """Other Accountings with the same database."""
        key = accounting.metadata.key
        found = (self.accountings.by_index(DATABASE, value) for value in database(accounting))
        return [other for others in found for other in others if other.metadata.key != key]

    def _secrets(self, accounting: Accounting) -> dict[str, dict[str, bytes]]:
        refs = [*key_refs(accounting), *filter(None, [password_ref(accounting)])]
        found = ((ref.name, self.secrets.get(accounting.metadata.namespace, ref.name)) for ref in refs)
        return {name: secret.data for name, secret in found if secret is not None}

    def _config_maps(self, accounting: Accounting) -> dict[str, dict[str, str]]:
        ref = accounting.spec.jwks_key_ref
        found = self.config_maps.get(accounting.metadata.namespace, ref.name) if ref else None
        return {found.metadata.name: found.data} if found else {}

    async def _complaint(self, pod: PodView | None) -> str:
        if pod is None or pod.ready or pod.terminating:
            return ""
        return await podlog.complaint(self._client, pod, keys.SLURMDBD)


def database(accounting: Accounting) -> Iterable[str]:
    """Which database slurmdbd writes to, as one text; none when slurmdbd runs elsewhere.

    A host without a dot is a Service of the Accounting's own namespace.
    """
    storage = accounting.spec.storage_config
    if storage is None or accounting.spec.external or not storage.host:
        return
    host = storage.host.lower().rstrip(".")
    host = f"{host}.{accounting.metadata.namespace}" if "." not in host else host
    host = host.removesuffix(".cluster.local").removesuffix(".svc")
    yield f"{host}:{storage.port}/{storage.database}"
