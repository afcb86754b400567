"""What the rules of Controllers need to know of other objects.

Read by GET when a Controller is checked: that is seldom, and a cache of all ConfigMaps and claims would
cost memory and could be behind what a user created a moment before.
"""

import asyncio

import msgspec

from coil.admission.facts import NOTHING, Files, Lookups, Wanted
from coil.admission.rules import is_subdomain
from coil.kube.client import Client
from coil.kube.core import CLAIMS, CONFIG_MAPS
from coil.kube.errors import ApiError, NotFound


async def fetch(client: Client, namespace: str, wanted: Wanted) -> Lookups:
    """Read all that is wanted at once; what fails is told in the result."""
    names = sorted(wanted.config_maps)
    files = asyncio.gather(*(_files(client, namespace, name) for name in names))
    found, claim = await asyncio.gather(files, _claim(client, namespace, wanted.claim))
    by_name = dict(zip(names, found, strict=True))
    return msgspec.structs.replace(
        claim,
        config_maps={name: files for name, files in by_name.items() if not isinstance(files, str)},
        unreadable={name: why for name, why in by_name.items() if isinstance(why, str)},
    )


async def _files(client: Client, namespace: str, name: str) -> Files | str:
    # Only a name goes into the path of a request: `../secrets/x` would read something else.
    if not is_subdomain(name):
        return "that is no name of a ConfigMap"
    try:
        found = await client.get(CONFIG_MAPS, name, namespace)
    except ApiError as error:
        return error.message or str(error)
    return {**dict.fromkeys(found.binary_data, ""), **found.data}


async def _claim(client: Client, namespace: str, name: str) -> Lookups:
    if not name:
        return NOTHING
    if not is_subdomain(name):
        return Lookups(claim_error="that is no name of a claim")
    try:
        found = await client.get(CLAIMS, name, namespace)
    except NotFound:
        return NOTHING
    except ApiError as error:
        return Lookups(claim_error=error.message or str(error))
    return Lookups(claim_modes=tuple(found.spec.get("accessModes") or ()))
