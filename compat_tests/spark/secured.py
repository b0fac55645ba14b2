"""A broker that Spark reaches over TLS alone: on LOGIN by SCRAM-SHA-512, on MUTUAL by certificates."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from compat_tests.brokers import BROKERS
from compat_tests.certificates import Authority
from compat_tests.sasl_nodes import SCRAM_MODULE, add_scram_user
from compat_tests.spark.cluster import make_environment
from compat_tests.spark.releases import ROOT
from compat_tests.tls import TlsBroker
from compat_tests.waiting import until

USER, PASSWORD = "alice", "alice-password"
MECHANISM = "SCRAM-SHA-512"
RUN_SECONDS = 180


class SecuredBroker(TlsBroker):
    """A broker to be started over *folder*, by `start`; clients show ``member``."""

    def __init__(self, kind: str, folder: Path) -> None:
        properties = {
            "sasl.enabled.mechanisms": f"PLAIN,{MECHANISM}",
            f"listener.name.login.{MECHANISM.lower()}.sasl.jaas.config": f"{SCRAM_MODULE} required;",
            "delegation.token.secret.key": "a-token-key",
        }
        super().__init__(BROKERS[kind](folder / "node"), Authority(folder / "certificates"), properties)
        self.member = self.authority.issue(USER)

    def start(self) -> None:
        """Start the broker, and create the user."""
        self.broker.start()
        add_scram_user(self.broker.port, USER, PASSWORD)

    def trust(self) -> dict[str, str]:
        """Return the properties of a client that trusts the authority."""
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.authority.certificate)}

    def login(self, user: str = USER, password: str = PASSWORD, *, by_token: bool = False) -> dict[str, str]:
        """Return the properties of a client of LOGIN."""
        token = ' tokenauth="true"' if by_token else ""
        jaas = f'{SCRAM_MODULE} required username="{user}" password="{password}"{token};'
        return {
            "security.protocol": "SASL_SSL",
            **self.trust(),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": jaas,
        }

    def certificate_in_a_file(self) -> dict[str, str]:
        """Return the properties of a client of MUTUAL whose key store is PKCS#12."""
        store = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": str(self.authority.export(self.member))}
        return {"security.protocol": "SSL", **self.trust(), **store, "ssl.keystore.password": "password"}

    def certificate_as_text(self) -> dict[str, str]:
        """Return the properties of a client of MUTUAL whose key and certificates are text, so that no file is needed."""
        key, begin, chain = self.member.read_text().partition("-----BEGIN CERTIFICATE-----")
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": self.authority.certificate.read_text(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": key,
            "ssl.keystore.certificate.chain": begin + chain,
        }

    def options(self, listener: str, properties: dict[str, str]) -> dict[str, str]:
        """Return Spark's options for a listener and the properties of its clients."""
        given = {f"kafka.{name}": value for name, value in properties.items()}
        return {"kafka.bootstrap.servers": self.bootstrap(listener), **given}


def write_properties(path: Path, properties: dict[str, str]) -> Path:
    """Write a file for --command-config; line breaks in values are escaped, as java.util.Properties wants it."""
    lines = [f"{name}={value}".replace("\n", "\\n") for name, value in properties.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


class WatchedRun(NamedTuple):
    """A process that has ended, and the command lines that a list of processes showed of it and its children."""

    code: int
    output: str
    errors: str
    command_lines: set[str]


def run_watched(module: str, arguments: Sequence[str], folder: Path, stdin: str = "") -> WatchedRun:
    """Run a Python module to its end, and watch its processes meanwhile."""
    environment = make_environment(PYTHONPATH=str(ROOT))
    files = {name: folder / f"{module}.{name}" for name in ("in", "out", "err")}
    files["in"].write_text(stdin)
    with files["in"].open() as given, files["out"].open("w") as out, files["err"].open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env=environment,
            stdin=given,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    command_lines: set[str] = set()

    def has_ended() -> bool:
        command_lines.update(read_command_lines(process.pid))
        return process.poll() is not None

    try:
        until(has_ended, timeout_seconds=RUN_SECONDS)
    finally:
        process.kill()
        process.wait()
    return WatchedRun(process.returncode, files["out"].read_text(), files["err"].read_text(), command_lines)


def read_command_lines(session: int) -> set[str]:
    """Return the command lines of a session's processes."""
    command_lines = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                command_lines.add((folder / "cmdline").read_text(errors="replace").replace("\0", " "))
        except (ProcessLookupError, FileNotFoundError):
            continue
    return command_lines
