"""Claims about the host keys that are made (spec: control-plane 8.2)."""

import asyncio

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from coil.build.loginset import HOST_KEYS
from coil.kinds.loginset.hostkeys import generate
from coil.kinds.loginset.strength import rsa_bits


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return asyncio.run(generate())


def test_there_are_three_kinds_each_with_both_halves(files: dict[str, str]) -> None:
    assert set(files) == set(HOST_KEYS)
    for name in HOST_KEYS[::2]:
        private = serialization.load_ssh_private_key(files[name].encode(), password=None)
        public = private.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
        assert files[f"{name}.pub"] == f"{public.decode()}\n"


def test_they_are_strong_enough_for_the_clients_of_today(files: dict[str, str]) -> None:
    """Field case LGN-02."""
    keys = [serialization.load_ssh_private_key(files[name].encode(), None) for name in HOST_KEYS[::2]]
    first, second, third = keys
    assert isinstance(first, rsa.RSAPrivateKey)
    assert first.key_size == 4096
    assert isinstance(second, ed25519.Ed25519PrivateKey)
    assert isinstance(third, ec.EllipticCurvePrivateKey)
    assert third.curve.name == "secp256r1"


def test_they_are_in_the_formats_that_sshd_reads(files: dict[str, str]) -> None:
    for name, text in files.items():
        assert text.endswith("\n")
        if name.endswith(".pub"):
            assert len(text.split()) == 2, "no comment"
        else:
            assert text.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")


@pytest.mark.asyncio
async def test_the_event_loop_goes_on_while_they_are_made() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    counting = asyncio.create_task(count())
    await generate()
    counting.cancel()
    assert turns > 10


def test_the_length_of_an_rsa_key_is_told_if_there_is_one(files: dict[str, str]) -> None:
    old = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()  # noqa: S505 -- that it is weak is the point
    text = old.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert rsa_bits({"ssh_host_rsa_key.pub": text}) == 1024
    assert rsa_bits({"ssh_host_rsa_key.pub": files["ssh_host_rsa_key.pub"].encode()}) == 4096
    for other in (b"", b"garbage", files["ssh_host_ed25519_key.pub"].encode()):
        assert rsa_bits({"ssh_host_rsa_key.pub": other}) is None
    assert rsa_bits({}) is None
