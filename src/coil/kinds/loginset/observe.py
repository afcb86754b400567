"""Read the caches into one Snapshot of a LoginSet."""

from typing import Any

from coil.api import names
from coil.api.defaults import with_defaults
from coil.kinds.domain import cluster_domain
from coil.kinds.loginset.plan import Snapshot
from coil.kinds.resources import CONTROLLERS, LOGINSETS
from coil.kinds.runtime import Runtime
from coil.kube import core
from coil.kube.store import Store
from coil.support.objects import ObjectKey


class Observer:
    """The caches that a LoginSet is judged by."""

    def __init__(self, runtime: Runtime) -> None:
        self.loginsets = runtime.store(LOGINSETS)
        self.controllers = runtime.store(CONTROLLERS)
        self.secrets = runtime.store(core.SECRETS)
        self.config_maps = runtime.store(core.CONFIG_MAP_MANIFESTS)
        self.services = runtime.store(core.SERVICES)
        self.deployments = runtime.store(core.DEPLOYMENTS)
        self.stores: tuple[Store[Any], ...] = (
            self.loginsets,
            self.controllers,
            self.secrets,
            self.config_maps,
            self.services,
            self.deployments,
        )

    def snapshot(self, key: ObjectKey) -> Snapshot | None:
        """What is known now; None when there is no such LoginSet."""
        found = self.loginsets.get(*key)
        if found is None:
            return None
        namespace, name = key
        controller = self.controllers.get(namespace, found.spec.controller_ref.name)
        slurm_key = controller.spec.slurm_key_ref if controller is not None else None
        return Snapshot(
            loginset=with_defaults(found),
            cluster_domain=cluster_domain(),
            controller=with_defaults(controller) if controller is not None else None,
            slurm_key=self.secrets.get(namespace, slurm_key.name) if slurm_key is not None else None,
            sssd=self.secrets.get(namespace, found.spec.sssd_conf_ref.name),
            host_keys=self.secrets.get(namespace, names.ssh_host_keys(name)),
            ssh_config=self.config_maps.get(namespace, names.ssh_config(name)),
            service=self.services.get(namespace, names.loginset(name)),
            deployment=self.deployments.get(namespace, names.loginset(name)),
        )
