"""Manifests that make a bare cluster usable."""

import yaml

from lab import addons


def test_there_is_one_default_storage_class_and_one_resolver() -> None:
    objects = {
        (item["kind"], item["metadata"]["name"]): item for item in yaml.safe_load_all(addons.manifests())
    }

    storage = objects["StorageClass", addons.STORAGE_CLASS]
    assert storage["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert objects["Service", "kube-dns"]["spec"]["clusterIP"] == "10.96.0.10"
    selector = objects["Service", "kube-dns"]["spec"]["selector"]
    assert objects["Deployment", "coredns"]["spec"]["template"]["metadata"]["labels"] == selector
