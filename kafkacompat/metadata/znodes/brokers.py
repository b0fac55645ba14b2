"""The value of a broker's registration, /brokers/ids/N."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkacompat.config.listeners import MAX_PORT
from kafkacompat.metadata.image import NO_LOSSES, BrokerImage, Losses
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.values import Fields, build_damage_error, encode_json, parse_fields, quote_name

_VERSION = 5
_NO_JMX_PORT = -1
_SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_DEFAULT_PROTOCOLS = {name: name for name in _SECURITY_PROTOCOLS}
# The same expression as in Kafka; a host in brackets is an IPv6 address.
_ENDPOINT = re.compile(r"([^/]+)://\[?([0-9a-zA-Z\-%._:]+)\]?:([0-9]{1,5})")
_OWN_FIELD = "kafkacompat"
"""Field of a registration that only this broker writes and reads."""


class VersionRange(NamedTuple):
    """The levels of a feature that a broker supports (KIP-584)."""

    first: int
    last: int


class ProcessHome(NamedTuple):
    """Where a broker's process runs: the ids of its log directories, and the boot of its machine ("" if unknown)."""

    directory_ids: frozenset[str]
    boot_id: str

    def shares_directory(self, other: ProcessHome) -> bool:
        """Return whether a log directory of both has the same id: it is the same one, or a copy."""
        return not self.directory_ids.isdisjoint(other.directory_ids)

    def excludes(self, other: ProcessHome) -> bool:
        """Return whether *other* cannot run while a process of this home has locked its directories: a lock counts in one boot."""
        return self.shares_directory(other) and self.boot_id == other.boot_id != ""


def encode_broker(
    broker: BrokerImage,
    timestamp_ms: int,
    features: Mapping[str, VersionRange] | None = None,
    home: ProcessHome | None = None,
) -> bytes:
    """Encode the value of /brokers/ids/N, in version 5; *home* becomes a field that Kafka ignores.

    "host" and "port" are those of the first listener without security, for clients that know no listeners.
    """
    protocols = broker.security_protocols
    plaintext = (address for name, address in broker.endpoints.items() if protocols[name] == "PLAINTEXT")
    host, port = next(plaintext, (None, -1))
    values: dict[str, Any] = {
        "version": _VERSION,
        "host": host,
        "port": port,
        "jmx_port": _NO_JMX_PORT,
        "timestamp": str(timestamp_ms),
        "endpoints": [_format_endpoint(name, *address) for name, address in broker.endpoints.items()],
        "listener_security_protocol_map": {name: protocols[name] for name in broker.endpoints},
        "features": {
            name: {"min_version": levels.first, "max_version": levels.last} for name, levels in (features or {}).items()
        },
    }
    if broker.rack is not None:
        values["rack"] = broker.rack
    if home is not None:
        losses = broker.losses or NO_LOSSES
        values[_OWN_FIELD] = {
            "directory_ids": sorted(home.directory_ids),
            "boot_id": home.boot_id,
            "lacks_replicas": int(losses.replicas),
            "lacks_records": int(losses.records),
        }
    return encode_json(values)


def _format_endpoint(listener: str, host: str, port: int) -> str:
    return f"{listener}://[{host}]:{port}" if ":" in host else f"{listener}://{host}:{port}"


def decode_broker(node_id: int, value: bytes, epoch: int) -> BrokerImage:
    """Decode the value of /brokers/ids/N, of version 1 or newer; *epoch* is the znode's czxid. Raises StoreError.

    Version 1 has one listener, versions 2 and 3 list listeners that are named after their security protocols.
    """
    fields = parse_fields(Znode.BROKER.path(node_id=node_id), value)
    if fields.integer("version", low=1) == 1:
        endpoints = {"PLAINTEXT": (fields.text("host"), fields.integer("port", low=0, high=MAX_PORT))}
    else:
        endpoints = dict(_parse_endpoint(fields, endpoint) for endpoint in fields.texts("endpoints"))
    declared = fields.text_by_name("listener_security_protocol_map", _DEFAULT_PROTOCOLS)
    protocols = {listener.upper(): protocol for listener, protocol in declared.items()}
    for listener in endpoints:
        if protocols.get(listener) not in _SECURITY_PROTOCOLS:
            reason = f"the listener {quote_name(listener)} has none of the security protocols {', '.join(_SECURITY_PROTOCOLS)}"
            raise build_damage_error(fields.path, reason)
    rack = fields.text("rack", "") or None
    own = fields.nested(_OWN_FIELD, {})
    losses = None
    if own.values:
        losses = Losses(*(bool(own.integer(name, 0)) for name in ("lacks_replicas", "lacks_records")))
    return BrokerImage(
        node_id, rack, endpoints, epoch, {listener: protocols[listener] for listener in endpoints}, losses
    )


def decode_home(node_id: int, value: bytes) -> ProcessHome | None:
    """Return where the registered process runs; None if another program has registered it. Raises StoreError."""
    fields = parse_fields(Znode.BROKER.path(node_id=node_id), value).nested(_OWN_FIELD, {})
    if not fields.values:
        return None
    return ProcessHome(frozenset(fields.texts("directory_ids")), fields.text("boot_id", ""))


def _parse_endpoint(fields: Fields, endpoint: str) -> tuple[str, tuple[str, int]]:
    match = _ENDPOINT.fullmatch(endpoint)
    if match is None or int(match[3]) > MAX_PORT:
        raise build_damage_error(fields.path, f'"endpoints" has {endpoint[:100]!r}, not LISTENER://HOST:PORT')
    return match[1].upper(), (match[2], int(match[3]))
