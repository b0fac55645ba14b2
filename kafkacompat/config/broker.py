"""The configuration of one broker: the given properties, checked, over the defaults."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import TypeVar

from kafkacompat.config.checks import (
    check_config,
    check_inter_broker_listener,
    check_listener_properties,
    needs_broker_id,
    read_required_listeners,
)
from kafkacompat.config.development import DEVELOPMENT_DEFAULTS, SINGLE_NODE_DEFAULTS
from kafkacompat.config.java_properties import parse_properties
from kafkacompat.config.listeners import (
    EMULATE_PATTERN,
    INSTANCE_PREFIXES,
    USED_LISTENER_PROPERTIES,
    Listener,
    base_property_name,
    check_advertised,
    check_bindable,
    listener_property_name,
    parse_http_address,
    parse_listeners,
    parse_protocols,
    set_emulations,
)
from kafkacompat.config.old_names import translate_addresses
from kafkacompat.config.properties import ConfigError, Property, parse_tables
from kafkacompat.config.sasl import find_sasl_objection
from kafkacompat.config.tables import authorizer, cluster, groups, log, security, server, zookeeper
from kafkacompat.config.values import Value, format_value
from kafkacompat.config.web_page import find_web_page_objection

PROPERTIES: Mapping[str, Property] = parse_tables(
    server.TABLE, log.TABLE, cluster.TABLE, groups.TABLE, security.TABLE, authorizer.TABLE, zookeeper.TABLE
)
ZOOKEEPER_PROPERTIES = frozenset(parse_tables(zookeeper.TABLE))
"""The properties that a broker of a cluster has in addition."""
AUTHORIZER_PROPERTIES = frozenset(parse_tables(authorizer.TABLE))
"""The properties of Kafka's authorizers, and of the audit log."""

T = TypeVar("T")

# Properties for one setting in several units, the strongest first.
UNIT_SYNONYMS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_OF_INSTANCES = tuple(f"listener.name.{prefix.lower()}" for prefix in INSTANCE_PREFIXES)
"""Begin the names of the properties that are set for listeners of instances."""
_NODE_ID_NAMES = ("node.id", "broker.id")


def find_unit_synonyms(name: str) -> tuple[str, ...]:
    """Return the properties for the same setting as *name*, itself included, the strongest first (as in Kafka)."""
    if name == "log.flush.interval.ms":
        return ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    return next((group for group in UNIT_SYNONYMS if name in group), (name,))


def _override_properties(given: dict[str, str], layer: Mapping[str, str]) -> None:
    """Put the properties of a stronger *layer* over *given*; one that *layer* sets by another name or unit is gone."""
    for name in layer:
        for other in (*find_unit_synonyms(name), *_NODE_ID_NAMES * (name in _NODE_ID_NAMES)):
            given.pop(other, None)
    given.update(layer)


class BrokerConfig:
    """A broker's properties by name; immutable.

    The getters accept the names of `PROPERTIES` only. For a property without a value (Kafka's null) the ``optional_`` getters
    return None; the others raise TypeError, because asking them is a programming error.
    """

    def __init__(self, given: Mapping[str, str]) -> None:
        """Parse and check *given*, the texts of properties by name; raises ConfigError."""
        self.given = dict(given)
        self._values: dict[str, Value] = {
            name: PROPERTIES[name].parse(text) for name, text in given.items() if name in PROPERTIES
        }
        self._apply_own_defaults()
        check_config(self)
        self.listeners = tuple(self._read_listeners())
        self.advertised_listeners: Mapping[str, tuple[str, builtins.int]] = self._read_advertised_listeners()
        check_inter_broker_listener(self)
        check_listener_properties(self)
        between_brokers = self.inter_broker_listener.name if self.value("zookeeper.connect") else None
        self.required_listeners = read_required_listeners(self, between_brokers)
        """The names of the listeners that serve only clients of instances."""
        if objection := find_sasl_objection(self):
            raise ConfigError(objection)
        http_listener = self.optional_string("kafkacompat.http.listener")
        self.http_address = None if http_listener is None else parse_http_address(http_listener)
        """Where metrics are served: a host ("": every address) and a port (0: a free one); None for nowhere."""
        if objection := find_web_page_objection(self):
            raise ConfigError(objection)

    @classmethod
    def load(cls, text: str | None, *overrides: Mapping[str, str]) -> BrokerConfig:
        """Read a properties file's *text* (None: there is no file) under *overrides*, the strongest of them last.

        With a file Kafka's defaults apply, without one `DEVELOPMENT_DEFAULTS`. The names of addresses of Kafka up to 2.8 count
        where listeners are not given. Raises ConfigError.
        """
        try:
            given = dict(DEVELOPMENT_DEFAULTS) if text is None else parse_properties(text)
        except ValueError as problem:
            raise ConfigError(f"the properties file cannot be read: {problem}") from None
        if text is None and any("zookeeper.connect" in layer for layer in overrides):
            # Of the defaults for a first start, those of a single node are not for a broker among others.
            given = {name: value for name, value in given.items() if name not in SINGLE_NODE_DEFAULTS}
        for layer in overrides:
            _override_properties(given, layer)
        return cls(translate_addresses(given))

    def with_address(self, host: str | None, port: builtins.int | None) -> BrokerConfig:
        """Return the configuration with its only listener bound to another host or port; None keeps that part.

        Raises ConfigError when there are several listeners, or when advertised.listeners names an address of its own.
        """
        if host is None and port is None:
            return self
        if len(self.listeners) != 1:
            names = ", ".join(listener.name for listener in self.listeners)
            raise ConfigError(f"--host and --port are for one listener, not for {names}: set listeners by --override")
        if self.value("advertised.listeners") is not None:
            shown = self.text("advertised.listeners")
            reason = f"advertised.listeners={shown} tells clients another address"
            raise ConfigError(f"--host and --port are not enough: {reason}; set listeners and that one by --override")
        return BrokerConfig({**self.given, "listeners": self._move_listeners({self.listeners[0].name: (host, port)})})

    def with_ports(self, ports: Mapping[str, builtins.int]) -> BrokerConfig:
        """Return the configuration with its listeners bound to other ports, by their names.

        Advertised ports move as far as the ports that they stand for.
        """
        given = {**self.given, "listeners": self._move_listeners({name: (None, port) for name, port in ports.items()})}
        if self.value("advertised.listeners") is not None:
            bound = {listener.name: listener.port for listener in self.listeners}
            advertised = parse_listeners(
                "advertised.listeners", self.list("advertised.listeners"), self._read_protocols()
            )
            entries = [
                listener.with_address(None, listener.port + ports.get(name, bound[name]) - bound[name]).entry
                for listener in advertised
                if (name := listener.name) in bound
            ]
            given["advertised.listeners"] = ",".join(entries)
        return BrokerConfig(given)

    def _move_listeners(self, addresses: Mapping[str, tuple[str | None, builtins.int | None]]) -> str:
        """Return the property listeners with other addresses."""
        listeners = parse_listeners("listeners", self.list("listeners"), self._read_protocols())
        return ",".join(
            listener.with_address(*addresses.get(listener.name, (None, None))).entry for listener in listeners
        )

    def with_changes(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> BrokerConfig:
        """Return the configuration with changes made while the broker runs, for the cluster and for this broker.

        Raises ConfigError.
        """
        given = dict(self.given)
        for changes in (cluster, broker):
            _override_properties(given, changes)
        return BrokerConfig(given)

    def _apply_own_defaults(self) -> None:
        """Let broker.id and node.id stand for each other, and a larger frame raise the bound of all frames."""
        for name, other in (_NODE_ID_NAMES, _NODE_ID_NAMES[::-1]):
            if name not in self._values and other in self._values:
                self._values[name] = self._values[other]
        if "queued.max.request.bytes" not in self._values:
            own = self.int("queued.max.request.bytes")
            self._values["queued.max.request.bytes"] = max(own, self.int("socket.request.max.bytes"))

    def value(self, name: str) -> Value:
        """Return the value in the property's own type."""
        if name not in self._values:
            self._values[name] = PROPERTIES[name].default_value
        return self._values[name]

    def listener_value(self, listener_name: str, name: str) -> Value:
        """Return the value for one listener: its own, or that of all listeners."""
        own = listener_property_name(listener_name, name)
        return PROPERTIES[name]._replace(name=own).parse(self.given[own]) if own in self.given else self.value(name)

    def row(self, name: str) -> Property | None:
        """Return the row of a property, or of the property that *name* sets for a listener; None for neither.

        The listener exists, or is of an instance: instances are created while the broker runs.
        """
        if name in PROPERTIES:
            return PROPERTIES[name]
        is_of_listener = name.startswith(_OF_INSTANCES) or any(
            name.startswith(listener_property_name(listener.name, "")) for listener in self.listeners
        )
        return PROPERTIES.get(base_property_name(name)) if is_of_listener else None

    def text(self, name: str) -> str | None:
        """Return the value as Kafka's tools show it."""
        return format_value(self.value(name))

    def int(self, name: str) -> builtins.int:
        """Return a property of type short, int or long."""
        return self._typed_value(name, int)

    def float(self, name: str) -> builtins.float:
        """Return a property of type double."""
        return self._typed_value(name, float)

    def bool(self, name: str) -> builtins.bool:
        """Return a property of type boolean."""
        return self._typed_value(name, bool)

    def string(self, name: str) -> str:
        """Return a property of type string, class or password."""
        return self._typed_value(name, str)

    def list(self, name: str) -> builtins.list[str]:
        """Return a property of type list."""
        return [*self._typed_value(name, tuple)]

    def optional_string(self, name: str) -> str | None:
        """Return a property of type string, class or password, or None when it has no value."""
        return None if self.value(name) is None else self.string(name)

    @property
    def node_id(self) -> builtins.int:
        """This node's id, 0 or more."""
        return self.int("node.id")

    @property
    def needs_broker_id(self) -> builtins.bool:
        """Whether this node has no id and receives one from ZooKeeper; until then it has no ``node_id``."""
        return needs_broker_id(self)

    def with_broker_id(self, broker_id: builtins.int) -> BrokerConfig:
        """Return the configuration of a node that has received this id."""
        given = {name: text for name, text in self.given.items() if name not in _NODE_ID_NAMES}
        return BrokerConfig({**given, "broker.id": str(broker_id)})

    @property
    def inter_broker_listener(self) -> Listener:
        """The listener that brokers use among themselves."""
        name = self.optional_string("inter.broker.listener.name")
        protocol = self.string("security.inter.broker.protocol")
        chosen = (
            listener
            for listener in self.listeners
            if (listener.protocol == protocol if name is None else listener.name == name.upper())
        )
        return next(chosen, self.listeners[0])

    @property
    def log_dirs(self) -> tuple[str, ...]:
        """The log directories, at least one."""
        dirs = self.value("log.dirs") or self.value("log.dir")
        assert isinstance(dirs, tuple)
        return dirs

    @property
    def cordoned_log_dirs(self) -> tuple[str, ...]:
        """The log directories that get no new replicas (KIP-1066)."""
        cordoned = self.list("cordoned.log.dirs")
        return self.log_dirs if cordoned == ["*"] else tuple(cordoned)

    @property
    def metadata_log_dir(self) -> str:
        """The directory of the cluster's metadata."""
        return self.optional_string("metadata.log.dir") or self.log_dirs[0]

    @property
    def unknown_names(self) -> tuple[str, ...]:
        """The given names that are no property of a broker or of one of its listeners."""
        return tuple(
            sorted(name for name in self.given if self.row(name) is None and not EMULATE_PATTERN.fullmatch(name))
        )

    @property
    def names_without_effect(self) -> tuple[str, ...]:
        """The given properties that differ from their defaults and are accepted only so that Kafka's files load."""
        names = (name for name, text in self.given.items() if DEVELOPMENT_DEFAULTS.get(name) != text)
        return tuple(sorted(name for name in names if self._has_no_effect(name)))

    def _has_no_effect(self, name: str) -> builtins.bool:
        row = self.row(name)
        if row is None or name != row.name:
            return row is not None and row.name not in USED_LISTENER_PROPERTIES
        return not row.used and self.value(name) != row.default_value

    def _read_listeners(self) -> builtins.list[Listener]:
        """Return the listeners to bind: all but the controllers'."""
        listeners = [
            listener
            for listener in parse_listeners("listeners", self.list("listeners"), self._read_protocols())
            if listener.name not in self._controller_listeners()
        ]
        check_bindable(listeners)
        if not listeners:
            raise ConfigError("listeners names only controller listeners; add one that clients connect to")
        return set_emulations(listeners, self.given)

    def _read_advertised_listeners(self) -> dict[str, tuple[str, builtins.int]]:
        """Return the host and port that clients of each listener receive; "" stands for the host that they connected to."""
        entries = [] if self.value("advertised.listeners") is None else self.list("advertised.listeners")
        listeners = parse_listeners("advertised.listeners", entries, self._read_protocols())
        bound = {listener.name for listener in self.listeners}
        advertised = {}
        for listener in listeners:
            if listener.name in self._controller_listeners():
                continue
            check_advertised(listener, bound)
            advertised[listener.name] = (listener.host, listener.port)
        return advertised

    def _controller_listeners(self) -> set[str]:
        return {name.upper() for name in self.list("controller.listener.names")}

    def _read_protocols(self) -> dict[str, str]:
        """Return the given map; the default map also has PLAINTEXT for the controllers' listeners."""
        protocols = parse_protocols(self.string("listener.security.protocol.map"))
        if "listener.security.protocol.map" not in self.given:
            protocols = {**dict.fromkeys(self._controller_listeners(), "PLAINTEXT"), **protocols}
        return protocols

    def _typed_value(self, name: str, kind: type[T]) -> T:
        value = self.value(name)
        if not isinstance(value, kind):
            raise TypeError(f"{name} is {value!r}, not a {kind.__name__}")
        return value
