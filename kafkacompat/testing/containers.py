"""`KafkaContainer`: a broker of this process with the interface of testcontainers' class of that name, without Docker.

What has no meaning without a container is accepted and has no effect, see docs/testing/dropins.md.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from kafkacompat.testing.container_properties import read_variables
from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.starting import broker

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafkacompat.testing.running import RunningBroker

HOST = "127.0.0.1"
INTERNAL_PORT = 9092
"""The second port of testcontainers' broker; here it leads to the same listener."""


class KafkaContainer:
    """A broker with empty topics in memory, which runs from `start` to `stop` or within a ``with`` block.

    ``image``, ``cluster_id`` and other arguments of containers have no effect. ``kafka`` is the `RunningBroker` after `start`, with
    its clock, its faults and its helpers.
    """

    def __init__(
        self,
        image: str = "kafkacompat",
        port: int = 9093,
        wait_strategy_check_string: str = "",
        listener_name: str = "PLAINTEXT",
        security_protocol: str = "PLAINTEXT",
        env: dict[str, str] | None = None,
        **ignored: Any,
    ) -> None:
        self.image = image
        self.port = port
        self.listener_name = listener_name
        self.security_protocol = security_protocol
        self.env: dict[str, Any] = dict(env or {})
        self.kraft_enabled = False
        self.cluster_id = ""
        self._host_port = 0
        self._kafka: RunningBroker | None = None
        self._has_run = False

    # Before the start

    def with_env(self, key: str, value: Any) -> Self:
        """Set a variable: ``KAFKA_NUM_PARTITIONS`` sets num.partitions. Variables of listeners and of the JVM have no effect."""
        self.env[key] = value
        return self

    def with_envs(self, **variables: Any) -> Self:
        """Set several variables, see `with_env`."""
        self.env.update(variables)
        return self

    def with_env_file(self, env_file: str | os.PathLike[str]) -> Self:
        """Set the variables of a file with lines of NAME=VALUE, see `with_env`."""
        with open(env_file, encoding="utf-8") as lines:
            for line in lines:
                name, equals, value = line.strip().removeprefix("export ").partition("=")
                if equals and not name.startswith("#"):
                    self.with_env(name.strip(), value.strip().strip("'\""))
        return self

    def with_bind_ports(self, container: str | int, host: str | int | None = None) -> Self:
        """Listen on the port *host* instead of a free one."""
        self._check_port(container)
        self._host_port = int(str(host or 0).partition("/")[0])
        return self

    def with_kraft(self) -> Self:
        """Return the container: test brokers need no ZooKeeper in any case."""
        self.kraft_enabled = True
        return self

    def with_cluster_id(self, cluster_id: str) -> Self:
        """Return the container: the cluster id of the broker stays a random one."""
        self.cluster_id = cluster_id
        return self

    def with_exposed_ports(self, *ports: str | int) -> Self:
        """Return the container: its one port is exposed in any case."""
        return self

    def _ignore(self, *arguments: Any, **options: Any) -> Self:
        """Return the container: the setting has no meaning without Docker."""
        return self

    with_command = with_copy_into_container = with_kwargs = with_name = with_network = with_network_aliases = _ignore
    with_tmpfs_mount = with_volume_mapping = maybe_emulate_amd64 = waiting_for = _ignore

    # Running

    def start(self, timeout: int = 30) -> Self:
        """Start the broker; returns when it serves. Raises BrokerError, one sentence."""
        if self._kafka is None:
            properties: dict[str, Any] = {
                "listeners": f"{self.listener_name}://{HOST}:{self._host_port}",
                "listener.security.protocol.map": f"{self.listener_name}:{self.security_protocol}",
                **read_variables(self.env),
            }
            self._kafka = broker(**properties)
            self._has_run = True
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Stop the broker and forget its data; a second call does nothing."""
        kafka, self._kafka = self._kafka, None
        if kafka is not None:
            kafka.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def kafka(self) -> RunningBroker:
        """The running broker; raises BrokerError before `start` and after `stop`."""
        if self._kafka is None:
            raise BrokerError("the container does not run: call start() first")
        return self._kafka

    @property
    def status(self) -> str:
        """``created``, ``running`` or ``exited``."""
        if self._kafka is not None:
            return "running"
        return "exited" if self._has_run else "created"

    def reload(self) -> None:
        """Do nothing: `status` is always up to date."""

    # Addresses

    def get_bootstrap_server(self) -> str:
        """Return ``host:port`` for clients; raises BrokerError if the broker does not run."""
        return self.kafka.bootstrap_servers

    def get_container_host_ip(self) -> str:
        """Return the host of the broker's address."""
        return HOST

    def get_exposed_port(self, port: str | int) -> int:
        """Return the port that clients connect to; raises BrokerError if the broker does not run, or for another *port*."""
        self._check_port(port)
        return int(self.kafka.bootstrap_servers.rpartition(":")[2])

    def _check_port(self, port: str | int) -> None:
        if int(str(port).partition("/")[0]) not in (self.port, INTERNAL_PORT):
            raise BrokerError(f"port {port} is not exposed: the broker has one port, {self.port}")

    # Docker

    def get_container_id(self) -> str:
        """Return a name for the running broker, which no Docker knows."""
        return f"kafkacompat-{self.get_exposed_port(self.port)}"

    def get_logs(self) -> tuple[bytes, bytes]:
        """Return two empty texts: the broker logs through `logging` of this process."""
        return b"", b""

    def _refuse(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise BrokerError: there is no container in which anything can be done."""
        raise BrokerError(
            "the broker runs in this process, not in a container: use the broker in .kafka, or a client of Kafka"
        )

    exec = create_file = get_docker_client = get_wrapped_container = get_container_info = _refuse
    copy_from_container = copy_into_container = wait = _refuse
