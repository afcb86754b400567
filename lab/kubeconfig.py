"""Kubeconfig files with everything inside, so that one file is all a client needs."""

import base64

import yaml

from lab.certificates import Credentials


def kubeconfig(server: str, authority: bytes, credentials: Credentials) -> str:
    """Return the text of a kubeconfig for one server and one user; `authority` is a PEM certificate."""
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    user = {
        "client-certificate-data": _base64(credentials.certificate),
        "client-key-data": _base64(credentials.key),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "coil-lab", "cluster": cluster}],
        "users": [{"name": "coil-lab", "user": user}],
        "contexts": [{"name": "coil-lab", "context": {"cluster": "coil-lab", "user": "coil-lab"}}],
        "current-context": "coil-lab",
    }
    return yaml.safe_dump(config, sort_keys=False)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
