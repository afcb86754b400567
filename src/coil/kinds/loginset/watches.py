"""Which LoginSets a change concerns (spec: control-plane 11.1).

The JWT key of the Controller is left out: nothing of a login pod depends on it.
"""

from collections.abc import Iterable

from coil.api.controller import Controller
from coil.api.loginset import LoginSet
from coil.kinds.loginset.observe import Observer
from coil.kinds.owners import owners
from coil.kinds.secrets import data_changed
from coil.kube.queue import Queue
from coil.kube.store import Change
from coil.kube.views import SecretView
from coil.support.objects import ObjectKey

OF = "loginset/controller"
"""Index of LoginSets by the Controller they refer to."""
USERS_IN = "loginset/sssd"
"""Index of LoginSets by the Secret that holds their sssd.conf."""
KEY_IN = "loginset/slurm-key"
"""Index of Controllers by the Secret of their slurm key."""


def watch(observer: Observer, queue: Queue) -> None:
    """Add the keys of the LoginSets that a change concerns to the queue."""
    observer.loginsets.add_index(OF, lambda loginset: [str(_controller(loginset))])
    observer.loginsets.add_index(USERS_IN, lambda loginset: [str(_sssd(loginset))])
    observer.controllers.add_index(KEY_IN, _slurm_key)

    observer.loginsets.on_event(lambda change: queue.add(change.key))
    observer.controllers.on_event(lambda change: queue.add_all(referring(observer, change)))
    observer.secrets.on_event(lambda change: queue.add_all(using(observer, change)))
    for children in (observer.config_maps, observer.services, observer.deployments):
        children.on_event(lambda change: queue.add_all(owners(change, "LoginSet")))


def referring(observer: Observer, change: Change[Controller]) -> set[ObjectKey]:
    """The LoginSets of a Controller that came, went or wants something else; its status matters to none."""
    old, new = change.old, change.new
    if old is not None and new is not None and old.metadata.generation == new.metadata.generation:
        return set()
    return {loginset.metadata.key for loginset in observer.loginsets.by_index(OF, str(change.key))}


def using(observer: Observer, change: Change[SecretView]) -> set[ObjectKey]:
    """The LoginSets whose host keys, sssd.conf or slurm key are in a Secret that came, went or changed."""
    if not data_changed(change):
        return set()
    found = list(observer.loginsets.by_index(USERS_IN, str(change.key)))
    for controller in observer.controllers.by_index(KEY_IN, str(change.key)):
        found += observer.loginsets.by_index(OF, str(controller.metadata.key))
    return {loginset.metadata.key for loginset in found} | owners(change, "LoginSet")


def _controller(loginset: LoginSet) -> ObjectKey:
    return ObjectKey(loginset.metadata.namespace, loginset.spec.controller_ref.name)


def _sssd(loginset: LoginSet) -> ObjectKey:
    return ObjectKey(loginset.metadata.namespace, loginset.spec.sssd_conf_ref.name)


def _slurm_key(controller: Controller) -> Iterable[str]:
    if controller.spec.slurm_key_ref is not None:
        yield str(ObjectKey(controller.metadata.namespace, controller.spec.slurm_key_ref.name))
