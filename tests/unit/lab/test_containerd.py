"""What the lab tells containerd and reads from it."""

import tomllib

from lab import containerd, topology


def test_an_image_is_known_by_name_and_identity_when_kubernetes_has_both() -> None:
    listing = """\
REF                    TYPE                                       DIGEST        SIZE    PLATFORMS   LABELS
coil.local/a:lab       application/vnd.oci.image.manifest.v1+json sha256:aaaa   1.0 MiB linux/amd64 -
coil.local/b:lab       application/vnd.oci.image.manifest.v1+json sha256:bbbb   1.0 MiB linux/amd64 -
sha256:configuration-a application/vnd.oci.image.manifest.v1+json sha256:aaaa   1.0 MiB linux/amd64 -
"""

    assert ("coil.local/a:lab", "sha256:configuration-a") in containerd.parse_listing(listing)
    assert not any(name == "coil.local/b:lab" for name, _ in containerd.parse_listing(listing))


def test_the_node_configuration_is_valid_and_spares_the_oom_score() -> None:
    config = tomllib.loads(containerd.containerd_config(topology.nodes(2)[1]))

    cri = config["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["restrict_oom_score_adj"] is True
    assert cri["cni"]["conf_dir"].endswith("/worker-1/cni")


def test_pods_are_never_masqueraded() -> None:
    """The controller must record a worker's own address, or jobs hang."""
    plugins = containerd.cni_config(topology.nodes(2)[1])["plugins"]

    assert plugins[0]["ipMasq"] is False
    assert plugins[0]["ipam"]["ranges"] == [[{"subnet": "10.244.1.0/24"}]]
