"""The lab's volume provisioner: a folder for each claim, reachable from every node, gone with its claim.

Runs as a daemon of the lab: `python -m lab.storage KUBECONFIG`. Each watch begins with all objects there are,
so whatever was missed while the API server was away is found when it is back.
"""

import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx2
from lightkube import ApiError, Client, KubeConfig
from lightkube.models.core_v1 import (
    LocalVolumeSource,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectReference,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import PersistentVolume, PersistentVolumeClaim

from lab.addons import PROVISIONER, STORAGE_CLASS
from lab.namespaces import VOLUMES

_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_HARMLESS = {404, 409}
_WATCH_SECONDS = 60


def volume_for(claim: PersistentVolumeClaim) -> PersistentVolume | None:
    """Return the volume that a claim waits for, or None when it waits for none of ours."""
    spec, metadata = claim.spec, claim.metadata
    if spec is None or metadata is None or spec.volumeName or spec.storageClassName != STORAGE_CLASS:
        return None
    if metadata.deletionTimestamp or spec.volumeMode == "Block" or spec.resources is None:
        return None
    name = f"pvc-{metadata.uid}"
    return PersistentVolume(
        metadata=ObjectMeta(name=name, annotations={_PROVISIONED_BY: PROVISIONER}),
        spec=PersistentVolumeSpec(
            accessModes=spec.accessModes,
            capacity=spec.resources.requests,
            claimRef=ObjectReference(
                apiVersion="v1",
                kind="PersistentVolumeClaim",
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
            ),
            # A local volume and not a host path: the kubelet applies a pod's fsGroup to it.
            local=LocalVolumeSource(path=str(VOLUMES / name)),
            nodeAffinity=_every_node(),
            persistentVolumeReclaimPolicy="Delete",
            storageClassName=STORAGE_CLASS,
        ),
    )


def abandoned(volume: PersistentVolume) -> bool:
    """Tell whether a volume of ours lost its claim and is to be deleted."""
    metadata, spec, status = volume.metadata, volume.spec, volume.status
    if metadata is None or spec is None or status is None:
        return False
    ours = (metadata.annotations or {}).get(_PROVISIONED_BY) == PROVISIONER
    return ours and status.phase == "Released" and spec.persistentVolumeReclaimPolicy == "Delete"


def main(kubeconfig: str) -> None:
    """Provision until the process ends."""
    client = Client(KubeConfig.from_file(kubeconfig).get())
    threading.Thread(target=_forever, args=(_watch_volumes, client), daemon=True).start()
    _forever(_watch_claims, client)


def _every_node() -> VolumeNodeAffinity:
    anywhere = NodeSelectorRequirement(key="kubernetes.io/hostname", operator="Exists")
    return VolumeNodeAffinity(required=NodeSelector([NodeSelectorTerm(matchExpressions=[anywhere])]))


def _watch_claims(client: Client) -> None:
    for change, claim in client.watch(PersistentVolumeClaim, namespace="*", server_timeout=_WATCH_SECONDS):
        volume = volume_for(claim) if change != "DELETED" else None
        if volume and volume.spec and volume.spec.local:
            folder = Path(volume.spec.local.path)
            folder.mkdir(parents=True, exist_ok=True)
            # Pods of any user may write, as with other provisioners of folders.
            folder.chmod(0o777)
            _ignoring_harmless(lambda volume=volume: client.create(volume))
            print(f"made {folder}", flush=True)


def _watch_volumes(client: Client) -> None:
    for change, volume in client.watch(PersistentVolume, server_timeout=_WATCH_SECONDS):
        if change != "DELETED" and abandoned(volume) and volume.metadata and volume.metadata.name:
            name = volume.metadata.name
            shutil.rmtree(VOLUMES / name, ignore_errors=True)
            _ignoring_harmless(lambda name=name: client.delete(PersistentVolume, name))
            print(f"deleted {VOLUMES / name}", flush=True)


def _ignoring_harmless(call: Callable[[], object]) -> None:
    try:
        call()
    except ApiError as error:
        if error.status.code not in _HARMLESS:
            raise


def _forever(watch: Callable[[Client], None], client: Client) -> None:
    while True:
        try:
            watch(client)
        except (ApiError, httpx2.HTTPError) as error:
            print(f"{watch.__name__}: {error}; again in 1 s", flush=True)
            time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
