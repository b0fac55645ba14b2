"""Client properties as Kafka's command line takes them, in the words of librdkafka, whose names are mostly the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from kafkacompat.config.java_properties import parse_properties
from kafkacompat.history.broker import RunError

Properties = Mapping[str, str]

_RENAMED = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|([^\s";]+))')
_UNKNOWN = re.compile(r'No such configuration property: "(.*?)"')


def read_client_properties(path: Path) -> tuple[dict[str, str], list[str]]:
    """What a file says in librdkafka's words, and the names that it does not know; raises RunError."""
    try:
        properties = parse_properties(path.read_text(encoding="latin-1"))
    except (OSError, ValueError) as problem:
        raise RunError(f"client properties cannot be read: {problem}") from problem
    config: dict[str, str] = {}
    for name, value in properties.items():
        config.update(_TRANSLATIONS.get(name, _as_it_is)(name, value, properties))
    return _known(config)


def _known(config: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """What librdkafka knows, and the names of the rest, which Kafka's tools do not refuse either."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    unknown: list[str] = []
    while True:
        known = {name: value for name, value in config.items() if name not in unknown}
        try:
            AdminClient({"log_level": 0, **known})
        except KafkaException as problem:
            if (name := _UNKNOWN.search(str(problem))) is None or name[1] not in known:
                raise RunError(f"librdkafka refuses the client properties: {problem.args[0].str()}") from problem
            unknown.append(name[1])
        else:
            return known, unknown


def _as_it_is(name: str, value: str, _: Properties) -> dict[str, str]:
    return {_RENAMED.get(name, name): value}


def _nothing(_name: str, _value: str, _: Properties) -> dict[str, str]:
    return {}


def _login(name: str, value: str, _: Properties) -> dict[str, str]:
    options = {key: re.sub(r"\\(.)", r"\1", quoted) or plain for key, quoted, plain in _JAAS_OPTION.findall(value)}
    if not {"username", "password"} <= set(options):
        raise RunError(f"{name} names no username and password: librdkafka can use no other login module here")
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _truststore(name: str, value: str, properties: Properties) -> dict[str, str]:
    _store_type(name, "ssl.truststore.type", properties, "PEM")
    return {"ssl.ca.location": value}


def _keystore(name: str, value: str, properties: Properties) -> dict[str, str]:
    if _store_type(name, "ssl.keystore.type", properties, "PEM", "PKCS12") == "PKCS12":
        return {"ssl.keystore.location": value}
    return {"ssl.certificate.location": value, "ssl.key.location": value}


def _store_type(name: str, type_name: str, properties: Properties, *readable: str) -> str:
    store_type = properties.get(type_name, "JKS").upper()
    if store_type not in readable:
        raise RunError(
            f"{name} is of {type_name} {store_type}, which librdkafka cannot read: it reads {' and '.join(readable)}"
        )
    return store_type


def _host_check(name: str, value: str, _: Properties) -> dict[str, str]:
    return {name: value or "none"}


_TRANSLATIONS: dict[str, Callable[[str, str, Properties], dict[str, str]]] = {
    "bootstrap.servers": _nothing,
    "sasl.jaas.config": _login,
    "ssl.truststore.location": _truststore,
    "ssl.truststore.type": _nothing,
    "ssl.truststore.password": _nothing,
    "ssl.keystore.location": _keystore,
    "ssl.keystore.type": _nothing,
    "ssl.endpoint.identification.algorithm": _host_check,
}
