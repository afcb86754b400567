"""How a pod and its Slurm node know each other (spec: nodeset 4; field cases REG-10, REG-13)."""

import msgspec

from coil.api import keys
from coil.kinds.nodeset.identity import PodInfo, decode_comment, encode_comment, pod_info, slurm_name
from coil.kube.views import PodSpecView, PodView
from tests.support.workers import nodeset, pod


def with_spec(view: PodView, **spec: object) -> PodView:
    return msgspec.structs.replace(view, spec=PodSpecView(**spec))  # type: ignore[arg-type]


def test_slurm_name_is_the_hostname_not_the_pod_name() -> None:
    assert slurm_name(with_spec(pod(0), node_name="kn-1", hostname="big-0")) == "big-0"


def test_slurm_name_without_hostname_is_the_pod_name() -> None:
    assert slurm_name(with_spec(pod(3), node_name="kn-1")) == "gpu-3"


def test_slurm_name_on_the_host_network_is_the_node() -> None:
    assert slurm_name(with_spec(pod(0), node_name="kn-7", hostname="big-0", host_network=True)) == "kn-7"


def test_slurm_name_of_daemon_pods_is_the_hostname() -> None:
    daemon = pod(0, labels={keys.LABEL_SCALING_MODE: "DaemonSet"})
    assert slurm_name(with_spec(daemon, node_name="kn-7", hostname="kn-7", host_network=True)) == "kn-7"


def test_comment_is_one_line_with_fixed_order() -> None:
    comment = encode_comment(pod_info(nodeset(), pod(0)))
    assert comment == (
        '{"namespace":"slurm","podName":"gpu-0","node":"kn-0","nodeSetName":"gpu","nodeSetUID":"uid-gpu"}'
    )


def test_comment_leaves_out_what_is_empty() -> None:
    info = PodInfo(namespace="a", pod_name="b", node="")
    assert encode_comment(info) == '{"namespace":"a","podName":"b","node":""}'


def test_comment_round_trip_and_foreign_text() -> None:
    info = pod_info(nodeset(), pod(0))
    assert decode_comment(encode_comment(info)) == info
    for text in ("", "rack 7", "[]", '{"podName":"x"}', '{"namespace":1}'):
        assert decode_comment(text) is None
