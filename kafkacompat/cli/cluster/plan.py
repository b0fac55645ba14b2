"""From the options of `kafkacompat cluster start` to the processes: checked before anything is created."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kafkacompat.cli.cluster.folder import BROKER_PREFIX, ClusterCommandError
from kafkacompat.cli.cluster.launcher import ProcessPlan, await_ready_line
from kafkacompat.cli.cluster.start_checks import check_distinct_ports
from kafkacompat.cli.cluster.supervision import EXIT_BAD_CONFIG
from kafkacompat.cli.serve import read_properties
from kafkacompat.config import BrokerConfig, ConfigError
from kafkacompat.config.environment import read_environment
from kafkacompat.config.java_properties import parse_properties
from kafkacompat.config.listeners import MAX_PORT

ZOOKEEPER_CONNECT = "zookeeper.connect"
SET_FOR_EACH_BROKER = {
    "node.id": "the command counts the brokers from 1",
    "broker.id": "the command counts the brokers from 1",
    "log.dirs": "each broker gets a folder in that of --data",
    "log.dir": "each broker gets a folder in that of --data",
}
"""Properties that differ from broker to broker, with the reason why --override does not take them."""

MOST_REPLICAS = 3
REPLICATION_FACTORS = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)


class ClusterOptions(NamedTuple):
    """The options of `kafkacompat cluster start`; with 0 brokers, the folder of the cluster says how many."""

    properties: Path | None
    brokers: int
    zookeeper: str | None
    port: int
    data: Path
    overrides: dict[str, str]

    def to_arguments(self) -> list[str]:
        """Return the command line with these options."""
        arguments = ["--brokers", str(self.brokers), "--port", str(self.port), "--data", str(self.data)]
        if self.zookeeper is not None:
            arguments += ["--zookeeper", self.zookeeper]
        for name, value in self.overrides.items():
            arguments += ["--override", f"{name}={value}"]
        return arguments if self.properties is None else [*arguments, str(self.properties)]


def check_options(options: ClusterOptions, environment: Mapping[str, str]) -> str | None:
    """Return the zookeeper.connect that the options, the environment or the file name, or None.

    Raises ClusterCommandError for options that no broker could be started with.
    """
    for name, reason in SET_FOR_EACH_BROKER.items():
        if name in options.overrides:
            raise ClusterCommandError(
                f"--override {name}={options.overrides[name]} is not possible: {reason}", EXIT_BAD_CONFIG
            )
    try:
        given = {
            **_parse_given(read_properties(options.properties)),
            **read_environment(environment),
            **options.overrides,
        }
        config = _load_config(options, environment)
        _check_ports(options, environment)
    except ConfigError as problem:
        raise ClusterCommandError(str(problem), EXIT_BAD_CONFIG) from problem
    for name in REPLICATION_FACTORS:
        if config.int(name) > options.brokers:
            raise ClusterCommandError(
                f"{name}={config.int(name)} needs as many brokers, and there are {options.brokers}: "
                f"give more --brokers, or --override {name}={options.brokers}",
                EXIT_BAD_CONFIG,
            )
    return options.zookeeper or given.get(ZOOKEEPER_CONNECT, "").strip() or None


def find_addresses(options: ClusterOptions, environment: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return the host and the port of each listener of the first broker; raises ConfigError.

    The first listener has the port of the options, each further one its own. The next broker has the next port of each. A host
    is "" for every address of the machine, a port 0 for a free one.
    """
    first, *further = _load_config(options, environment).listeners
    return [(first.host, options.port), *((listener.host, listener.port) for listener in further)]


def _check_ports(options: ClusterOptions, environment: Mapping[str, str]) -> None:
    """Raise ConfigError or ClusterCommandError if the brokers' listeners cannot have ports that follow each other."""
    first_ports = [port for _, port in find_addresses(options, environment)]
    for first_port in first_ports:
        last_port = first_port + options.brokers - 1
        if last_port > MAX_PORT:
            shown = f"--port {first_port}" if first_port == options.port else f"the port {first_port} of a listener"
            raise ConfigError(
                f"{shown} is too high for {options.brokers} brokers: "
                f"the last one would listen on {last_port}, and {MAX_PORT} is the highest port"
            )
    check_distinct_ports(first_ports, options.brokers)
    # The advertised ports of the last broker exist, too.
    _move_listeners(_load_config(options, environment), _count_ports(first_ports, options.brokers))


def _count_ports(first_ports: Sequence[int], number: int) -> list[int]:
    """Return the ports of the broker of that number; a port 0 stays."""
    return [port and port + number - 1 for port in first_ports]


def _load_config(options: ClusterOptions, environment: Mapping[str, str]) -> BrokerConfig:
    # Brokers check zookeeper.connect themselves, when they know whether they find it.
    overrides = {**broker_overrides(1, options, environment, zookeeper=""), ZOOKEEPER_CONNECT: ""}
    return BrokerConfig.load(read_properties(options.properties), read_environment(environment), overrides)


def _parse_given(text: str | None) -> dict[str, str]:
    try:
        return {} if text is None else parse_properties(text)
    except ValueError as problem:
        raise ConfigError(f"the properties file cannot be read: {problem}") from problem


def broker_overrides(
    number: int, options: ClusterOptions, environment: Mapping[str, str], *, zookeeper: str
) -> dict[str, str]:
    """Return the properties that are set for the broker of that number."""
    return {
        **_choose_replication(options, environment),
        **options.overrides,
        "node.id": str(number),
        "log.dirs": str(options.data / broker_name(number) / "data"),
        ZOOKEEPER_CONNECT: zookeeper,
    }


def _choose_replication(options: ClusterOptions, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the replication of a cluster without a properties file, whose defaults are otherwise those of a single node."""
    if options.properties is not None:
        return {}
    given = read_environment(environment)
    return {name: value for name, value in choose_replication(options.brokers).items() if name not in given}


def choose_replication(brokers: int) -> dict[str, str]:
    """Return the properties of replication for a number of brokers."""
    factor = min(brokers, MOST_REPLICAS)
    # One broker may be down without stopping producers with acks=all.
    in_sync = max(factor - 1, 1)
    chosen = {
        "default.replication.factor": factor,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": in_sync,
    }
    return {name: str(value) for name, value in chosen.items()}


def broker_name(number: int) -> str:
    """Return the name of a broker's process and of its folder."""
    return f"{BROKER_PREFIX}{number}"


def plan_broker(number: int, options: ClusterOptions, environment: Mapping[str, str], zookeeper: str) -> ProcessPlan:
    """Return how the broker of that number, from 1, is started."""
    folder = options.data / broker_name(number)
    command = [sys.executable, "-m", "kafkacompat", "serve"]
    overrides = broker_overrides(number, options, environment, zookeeper=zookeeper)
    config = _load_config(options, environment)
    ports = _count_ports([port for _, port in find_addresses(options, environment)], number)
    if len(ports) == 1 and not config.advertised_listeners:
        command += ["--port", str(ports[0])]
    else:
        overrides |= _move_listeners(config, ports)
    for name, value in overrides.items():
        command += ["--override", f"{name}={value}"]
    if options.properties is not None:
        command.append(str(options.properties.resolve()))
    return ProcessPlan(
        name=broker_name(number),
        command=command,
        folder=folder,
        log=folder / "broker.log",
        await_ready=await_ready_line,
    )


def _move_listeners(config: BrokerConfig, ports: Sequence[int]) -> dict[str, str]:
    """Return the properties by which the listeners have these ports."""
    moved = config.with_ports({listener.name: port for listener, port in zip(config.listeners, ports, strict=True)})
    return {name: moved.given[name] for name in ("listeners", "advertised.listeners") if name in moved.given}
