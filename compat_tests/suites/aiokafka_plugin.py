"""A plugin of pytest that lets aiokafka's tests run on a broker of `kafkacompat.testing`.

Their tests start a container by the package ``docker``, and run Kafka's tools in it. This plugin brings a package of that name, whose
containers are brokers. The tag of the option ``--docker-image`` is the release that the tests expect; the listeners look like it.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from compat_tests.certificates import Authority
from compat_tests.suites.acl_command import build_request
from compat_tests.suites.security import plain_login_module, request, set_scram_passwords, split_pem
from kafkacompat.testing import broker
from kafkacompat.testing.releases import find_release_name

USERS = (("admin", "admin"), ("test", "test"), ("test2", "test2"))
CERTIFICATES = Path("tests/ssl_cert")
SERVER = "server"
TIMEOUT_S = 45
"""Time for one test, which is 120 s with a container."""
PORTS = {
    "PLAINTEXT": "ADVERTISED_PORT",
    "SSL": "ADVERTISED_SSL_PORT",
    "SASL_PLAINTEXT": "ADVERTISED_SASL_PLAINTEXT_PORT",
    "SASL_SSL": "ADVERTISED_SASL_SSL_PORT",
}
"""The variables of the image with the port of each listener."""
SCRAM_PASSWORD = re.compile(r"SCRAM-SHA-256=\[password=(.*?)\]")


class Container:
    """A broker as the tests use a container: Kafka's tools in it, and its end."""

    def __init__(self, image: str, environment: Mapping[str, Any]) -> None:
        self._kafka = broker(**build_properties(image.rpartition("_")[2], environment))

    def exec_run(self, command: str) -> tuple[int, bytes]:
        """Run one of Kafka's tools; returns its exit code and its output."""
        program, *arguments = shlex.split(command)
        TOOLS[Path(program).name](self, arguments)
        return 0, b""

    def alter_acls(self, arguments: Sequence[str]) -> None:
        """Stand for kafka-acls."""
        message = build_request(arguments)
        if message is not None:
            request(self._kafka, message)

    def set_password(self, arguments: Sequence[str]) -> None:
        """Stand for kafka-configs, which sets the password of a user."""
        match = SCRAM_PASSWORD.search(" ".join(arguments))
        assert match is not None
        set_scram_passwords(self._kafka, arguments[arguments.index("--entity-name") + 1], match[1])

    def stop(self) -> None:
        """Stop the broker."""
        self._kafka.stop()


TOOLS: Mapping[str, Callable[[Container, Sequence[str]], None]] = {
    "kafka-acls.sh": Container.alter_acls,
    "kafka-configs.sh": Container.set_password,
}


def build_properties(release: str, environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of the broker: what the image's start script makes of the variables."""
    emulated = find_release_name(release)
    key, *chain = split_pem((CERTIFICATES / f"{SERVER}.pem").read_text())
    listeners = [f"{name}://127.0.0.1:{environment[variable]}" for name, variable in PORTS.items()]
    return {
        # A test sends to the broker 0.
        "node.id": 0,
        "listeners": listeners,
        **{f"kafkacompat.listener.name.{name.lower()}.emulate": emulated for name in PORTS},
        "num.partitions": environment["NUM_PARTITIONS"],
        "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:admin",
        "sasl.enabled.mechanisms": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
        **{f"listener.name.{name}.plain.sasl.jaas.config": plain_login_module(USERS) for name in SASL_LISTENERS},
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": key,
        "ssl.keystore.certificate.chain": "".join(chain),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": (CERTIFICATES / "ca.crt").read_text(),
        "ssl.client.auth": "required",
        # Kafka's default, which tests of clients expect.
        "group.min.session.timeout.ms": 6000,
    }


SASL_LISTENERS = ("sasl_plaintext", "sasl_ssl")


def make_certificates() -> None:
    """Make the files that the tests' own script makes, if they are missing."""
    if not (CERTIFICATES / "ca.crt").exists():
        authority = Authority(CERTIFICATES)
        authority.issue(SERVER)
        authority.issue("client")
        (CERTIFICATES / "ca.crt").write_text(authority.certificate.read_text())


def build_docker() -> dict[str, Any]:
    """Return the modules of a package ``docker`` with what the tests use of it."""
    docker: Any = ModuleType("docker")
    docker.models = SimpleNamespace(containers=SimpleNamespace(Container=Container))

    def run(image: str, *, environment: Mapping[str, Any], **ignored: Any) -> Container:
        return Container(image, environment)

    client = SimpleNamespace(containers=SimpleNamespace(run=run), close=lambda: None)
    docker.from_env = lambda: client
    return {"docker": docker}


def pytest_configure() -> None:
    """Pytest: make the certificates, limit the time of tests, and leave Kerberos out, whose tests are deselected."""
    make_certificates()
    helpers: Any = import_module("tests._testutil")
    helpers.KerberosUtils.create_keytab = lambda *arguments: None
    helpers.KafkaIntegrationTestCase.TEST_TIMEOUT = TIMEOUT_S


sys.modules.update(build_docker())
