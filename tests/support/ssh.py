"""The machine's own ssh client, with nothing of the person who runs the tests."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

PLAIN = ("-F", "none", "-o", "BatchMode=no", "-o", "ConnectTimeout=10", "-o", "NumberOfPasswordPrompts=1")


@dataclass(frozen=True)
class Ssh:
    """A client that keeps its keys and what it knows of hosts in a folder."""

    folder: Path

    def new_key(self, name: str) -> str:
        """Make a key pair and give the public key."""
        path = self.folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True)
        return path.with_suffix(".pub").read_text().strip()

    def try_run(  # noqa: PLR0913 -- what one gives to ssh
        self,
        user: str,
        host: str,
        command: str,
        *,
        key: str = "",
        password: str = "",
        stdin: str = "",
        alias: str = "login",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a user of a host, with a key of this folder or else a password.

        Hosts of the same alias are one host to the client: it refuses a host key that changed. A command
        that does not end within 30 s fails with code 124.
        """
        options = ["-o", f"UserKnownHostsFile={self.folder / 'known_hosts'}"]
        options += ["-o", "StrictHostKeyChecking=accept-new", "-o", f"HostKeyAlias={alias}"]
        options += ["-o", "IdentitiesOnly=yes", "-o", f"IdentityFile={self.folder / key if key else 'none'}"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        if password:
            ask = self.folder / "ask"
            ask.write_text(f"#!/bin/sh\necho {password}\n")
            ask.chmod(0o700)
            environment |= {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
        return subprocess.run(
            ["timeout", "30", "ssh", *PLAIN, *options, f"{user}@{host}", command],
            input=stdin,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(
        self, user: str, host: str, command: str, *, key: str = "", password: str = "", stdin: str = ""
    ) -> str:
        """As `try_run`; gives the output, and raises with the client's words when it fails."""
        done = self.try_run(user, host, command, key=key, password=password, stdin=stdin)
        if done.returncode:
            raise AssertionError(f"ssh {user}@{host} {command}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout
