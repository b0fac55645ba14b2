"""TLS, users and access rules of brokers of tests: the properties of the brokers, and those of their clients."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kafkacompat.testing.errors import BrokerError

if TYPE_CHECKING:
    from kafkacompat.testing.acls import Acl

PROTOCOLS = {
    (False, False): "PLAINTEXT",
    (True, False): "SSL",
    (False, True): "SASL_PLAINTEXT",
    (True, True): "SASL_SSL",
}
"""The security protocol, by whether there is TLS and whether there are users."""
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ITERATIONS = 4096
"""The fewest that Kafka permits: hashing a password once takes milliseconds."""
SUPER_USER = "Helper:kafkacompat.testing"
"""The user of the helpers. No client can authenticate itself as this user, since clients are of the kind User."""
BROKER_USER = "kafkacompat-broker"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
HOST = "127.0.0.1"


class Security(NamedTuple):
    """What protects the brokers: TLS, users with their passwords, access rules."""

    tls: bool = False
    users: Mapping[str, str] = {}
    acls: Sequence[Acl] | None = None
    instances: Sequence[str] = ()

    @property
    def users_of_instances(self) -> dict[str, str]:
        """The passwords of the users of all instances, which are those of the broker, by their names on the broker."""
        return {f"{instance}.{user}": password for instance in self.instances for user, password in self.users.items()}

    @property
    def protocol(self) -> str:
        """The security protocol of the clients' listener."""
        return PROTOCOLS[self.tls, bool(self.users)]

    def build_properties(self, *, in_cluster: bool) -> dict[str, object]:
        """Return the properties of a broker."""
        properties: dict[str, object] = {"listeners": f"{self.protocol}://{HOST}:0"}
        if self.tls:
            properties |= _build_tls_properties()
        if self.users:
            properties |= self._build_user_properties()
        if self.acls is not None:
            properties |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": SUPER_USER,
            }
        if in_cluster and properties.keys() != {"listeners"}:
            properties |= self._build_inter_broker_properties(properties)
        return properties

    def _build_user_properties(self) -> dict[str, object]:
        for name in self.users:
            if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
                raise BrokerError(f"user {name!r}: the name of a user has letters, digits, dots, - and _")
        listeners = {self.protocol: self.users}
        if self.instances:
            listeners[f"instances-{self.protocol}"] = self.users_of_instances
        return {
            "sasl.enabled.mechanisms": list(MECHANISMS),
            **{
                f"listener.name.{name.lower()}.plain.sasl.jaas.config": _format_plain_users(users)
                for name, users in listeners.items()
            },
        }

    def _build_inter_broker_properties(self, properties: Mapping[str, object]) -> dict[str, object]:
        """Return a listener of the brokers' own. With access rules they log in, as a super user."""
        protocol = "PLAINTEXT" if self.acls is None else "SASL_PLAINTEXT"
        built: dict[str, object] = {
            "listeners": f"{properties['listeners']},BROKERS://{HOST}:0",
            "listener.security.protocol.map": f"{self.protocol}:{self.protocol},BROKERS:{protocol}",
            "inter.broker.listener.name": "BROKERS",
        }
        if self.acls is not None:
            password = secrets.token_hex(16)
            login = f'username="{BROKER_USER}" password="{password}" user_{BROKER_USER}="{password}"'
            built |= {
                "sasl.enabled.mechanisms": list(MECHANISMS),
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "listener.name.brokers.plain.sasl.jaas.config": f"{PLAIN_MODULE} required {login};",
                "super.users": f"{SUPER_USER};User:{BROKER_USER}",
            }
        return built

    def find_password(self, user: str | None) -> tuple[str, str] | None:
        """Return a user, by default the first one, and its password; None without users. Raises BrokerError."""
        if not self.users:
            if user is not None:
                raise BrokerError(f"there is no user {user}: start the broker with users={{{user!r}: ...}}")
            return None
        name = next(iter(self.users)) if user is None else user
        if name not in self.users:
            raise BrokerError(f"there is no user {name}: the users are {', '.join(self.users)}")
        return name, self.users[name]


def _format_plain_users(users: Mapping[str, str]) -> str:
    entries = " ".join(f"user_{name}={quote(password)}" for name, password in users.items())
    return f"{PLAIN_MODULE} required {entries};"


def _build_tls_properties() -> dict[str, object]:
    from kafkacompat.testing.certificates import get_authority

    authority = get_authority()
    pair = authority.issue_for_broker()
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": pair.key,
        "ssl.keystore.certificate.chain": pair.certificate,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority.certificate,
    }


def quote(text: str) -> str:
    """Return a value of a JAAS text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class ScramPassword(NamedTuple):
    """A salted and hashed password, as a client sends it to set it; the mechanism is Kafka's number."""

    user: str
    mechanism: int
    salt: bytes
    salted_password: bytes


def hash_passwords(users: Mapping[str, str]) -> list[ScramPassword]:
    """Return the passwords of users for both mechanisms of SCRAM."""
    hashed = []
    for user, password in users.items():
        for mechanism, digest in ((1, "sha256"), (2, "sha512")):
            salt = secrets.token_bytes(16)
            salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS)
            hashed.append(ScramPassword(user, mechanism, salt, salted))
    return hashed
