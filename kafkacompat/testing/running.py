"""Brokers as tests use them: objects whose methods wait, callable from any thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafkacompat.testing.arguments import check_arguments
from kafkacompat.testing.clock import BrokerClock
from kafkacompat.testing.errors import BrokerError
from kafkacompat.testing.expectations import Expected, describe_records, find_missing
from kafkacompat.testing.faults import BrokerFaults
from kafkacompat.testing.leftovers import LEFTOVERS
from kafkacompat.testing.nodes import PATIENCE_S, Nodes, is_in_sync
from kafkacompat.testing.profile import format_property, read_properties
from kafkacompat.testing.reading import TopicReader, decode
from kafkacompat.testing.releases import find_release_servers
from kafkacompat.testing.rows import Partitioner, Record, Row, split_rows
from kafkacompat.testing.security import HOST, MECHANISMS, Security, hash_passwords
from kafkacompat.testing.topics import append, create_topic, delete_topic, ensure_topic
from kafkacompat.timers import now_ms
from kafkacompat.wire.batch_records import build_batch

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafkacompat.adjustable_reactor import AdjustableReactor
    from kafkacompat.broker import Broker
    from kafkacompat.faults import Faults
    from kafkacompat.testing.certificates import Authority, CertificateFiles
    from kafkacompat.testing.groups import PartitionLag
    from kafkacompat.testing.nasty import NastyTopics
    from kafkacompat.testing.node import Node
    from kafkacompat.testing.reactor_thread import ReactorThread

WITHIN_S = 10.0
FETCH_WAIT_S = 0.25
"""Time that a fetch waits for records in the thread of the brokers."""
MOST_ROWS = 10_000
MOST_BYTES = 512 * 1024
"""Limits of what one request of `produce` holds, below Kafka's ``message.max.bytes``."""


class RunningKafka:
    """What brokers of tests have in common, a single one and a cluster; see `RunningBroker` and `RunningCluster`."""

    def __init__(
        self,
        thread: ReactorThread,
        reactor: AdjustableReactor,
        nodes: Sequence[Node],
        faults: Faults,
        security: Security,
    ) -> None:
        self._thread = thread
        self._security = security
        self._nodes = Nodes(thread.reactor, nodes)
        self.clock = BrokerClock(self.call, reactor)
        self.faults = BrokerFaults(self.call, faults)
        self._is_stopped = False
        try:
            for node in nodes:
                self.call(node.start)
            self._secure()
        except BaseException:
            self.stop()
            raise
        self.bootstrap_servers = ",".join(node.find_address() for node in nodes)
        folders = [node.folder for node in nodes if node.folder is not None]
        LEFTOVERS.note_started(id(self), self.bootstrap_servers, folders)

    def _secure(self) -> None:
        """Create the users and the access rules."""
        if not (self._security.users or self._security.acls):
            return
        from kafkacompat.testing.provision import create_acls, create_users

        if self._security.users:
            self.call(create_users, self._nodes, hash_passwords(self._security.users))
        if self._security.acls:
            self.call(create_acls, self._nodes, self._security.acls)

    @property
    def ca_file(self) -> str | None:
        """The file with the certificate of the authority that clients trust, in PEM; None without TLS."""
        return self._authority.ca_file if self._security.tls else None

    @property
    def _authority(self) -> Authority:
        # Brokers without TLS do not pay for it.
        from kafkacompat.testing.certificates import get_authority

        return get_authority()

    def issue_certificate(self, user: str) -> CertificateFiles:
        """Write the certificate and the key of a client into files; with TLS its principal is ``User:CN=<user>``."""
        return self._authority.issue(user)

    def client_config(
        self,
        user: str | None = None,
        *,
        client: str = "librdkafka",
        mechanism: str = "SCRAM-SHA-512",
        certificate: CertificateFiles | None = None,
    ) -> dict[str, Any]:
        """Return what a client needs to connect, with TLS and as *user*, by default the first one.

        *client* is ``librdkafka`` (confluent-kafka and others), ``java``, ``kafka-python`` or ``aiokafka``. Raises BrokerError.
        """
        from kafkacompat.testing.client_config import ClientAccess, build_client_config

        login = self._security.find_password(user)
        if mechanism not in MECHANISMS:
            raise BrokerError(f"mechanism={mechanism!r}: give one of {', '.join(MECHANISMS)}")
        # A test may have given the brokers listeners of its own.
        listener = next(iter(self._nodes.by_id.values())).first_listener
        if user is not None and not listener.has_sasl:
            raise BrokerError(f"user={user!r}: users cannot log in on the listener {listener.name}, which has no SASL")
        access = ClientAccess(
            self.bootstrap_servers,
            listener.protocol,
            self.ca_file if listener.has_tls else None,
            login if listener.has_sasl else None,
            mechanism,
            certificate,
        )
        return build_client_config(client, access)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run *function* in the thread of the brokers and return its result; a Deferred or a coroutine is waited for.

        Raises what the function raises, and BrokerError if the thread has ended.
        """
        return self._thread.call(function, *arguments)

    def create_topic(self, name: str, partitions: int = 1, replicas: int = 1, **configs: object) -> None:
        """Create a topic; *configs* are those of Kafka's topics with ``_`` for ``.``. Raises BrokerError."""
        check_arguments(topic=name, partitions=partitions, replicas=replicas)
        texts = {key: format_property(value) for key, value in read_properties(configs).items()}
        self.call(create_topic, self._nodes, name, partitions, replicas, texts)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; raises BrokerError if there is no such topic."""
        check_arguments(topic=name)
        self.call(delete_topic, self._nodes, name)

    def produce(self, topic: str, rows: Iterable[Row], *, partition: int | None = None) -> None:
        """Append rows to a topic, and return when all in-sync replicas have them; a missing topic is created.

        A row is a value, ``(key, value)``, or a dictionary with some of key, value, headers, partition and timestamp (ms). Rows
        with a key go to the partition that Kafka's Java client chooses, rows without one to all in turn, or all to *partition*.
        Raises BrokerError.
        """
        if isinstance(rows, str | bytes | dict):
            raise BrokerError(f"rows={rows!r} is one row: give a list of rows")
        check_arguments(topic=topic, rows=rows, partition=partition)
        partitioner = Partitioner(self.call(ensure_topic, self._nodes, topic))
        clock = self._nodes.running[0].clock
        for piece in split_rows(rows, MOST_ROWS, MOST_BYTES):
            time_ms = now_ms(clock)
            chosen: dict[int, list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]] = {}
            for row in piece:
                record = time_ms if row.timestamp_ms is None else row.timestamp_ms, row.key, row.value, row.headers
                index = partitioner.choose(row) if partition is None else partition
                chosen.setdefault(index, []).append(record)
            batches = {index: build_batch(records) for index, records in chosen.items()}
            self.call(append, self._nodes, topic, batches)

    def records(
        self, topic: str, n: int | None = None, *, within: float = WITHIN_S, isolation_level: str = "read_uncommitted"
    ) -> list[Record]:
        """Return the records of a topic, by partition and offset.

        With *n* the method waits until there are at least that many, and raises AssertionError after *within* seconds. Surplus
        records are returned, too.
        """
        check_arguments(topic=topic, n=n, within=within)
        read = self._read(topic, isolation_level, lambda records: len(records) >= (n or 0), within if n else 0)
        if n is not None and len(read) < n:
            raise AssertionError(
                f"topic {topic} has {len(read)} of {n} records after {within:g} s{describe_records(read)}"
            )
        return read

    def assert_produced(
        self,
        topic: str,
        *rows: Expected,
        exactly: bool = False,
        within: float = WITHIN_S,
        isolation_level: str = "read_uncommitted",
    ) -> list[Record]:
        """Wait until a topic has a record for each of *rows*, at least one without rows; return the records of the topic.

        A row has the forms of `produce`, or is a function of a `Record` that returns whether it matches. What a row does not give is
        not compared. With *exactly* there is nothing else. Raises AssertionError after *within* seconds.
        """
        check_arguments(topic=topic, within=within)
        expected = rows or (lambda _: True,)
        read = self._read(topic, isolation_level, lambda records: not find_missing(expected, records), within)
        if missing := find_missing(expected, read):
            absent = ", ".join(missing) if rows else "a record"
            raise AssertionError(f"topic {topic} has not got {absent} after {within:g} s{describe_records(read)}")
        if exactly and len(read) > len(expected):
            raise AssertionError(f"topic {topic} has {len(read)} records, not {len(expected)}{describe_records(read)}")
        return read

    def _read(
        self, topic: str, isolation_level: str, is_enough: Callable[[list[Record]], bool], within: float
    ) -> list[Record]:
        """Read what there is now, and more until *is_enough* or until *within* seconds have passed."""
        reader = TopicReader(self._nodes, topic, isolation_level)
        ends = self.call(reader.find_ends)
        records: list[Record] = []
        deadline, wait_s = time.monotonic() + within, 0.0
        while True:
            fetched = self.call(reader.fetch, wait_s)
            for part in fetched:
                records += decode(topic, part)
            if fetched and not reader.has_reached(ends):
                continue
            left_s = deadline - time.monotonic()
            if left_s <= 0 or is_enough(records):
                return sorted(records, key=attrgetter("partition", "offset"))
            wait_s = min(left_s, FETCH_WAIT_S)

    def wait_for_lag(self, group: str, lag: int = 0, *, within: float = WITHIN_S) -> None:
        """Wait until a group has committed offsets, and at most *lag* records remain for it in the topics of these offsets.

        Raises AssertionError after *within* seconds, with each partition's offsets.
        """
        from kafkacompat.testing.groups import list_lags

        check_arguments(group=group, lag=lag, within=within)
        lags: list[PartitionLag] = []

        async def is_reached() -> bool:
            nonlocal lags
            lags = await list_lags(self._nodes, group) or []
            return bool(lags) and sum(partition.records for partition in lags) <= lag

        if not self.call(self._nodes.wait_until, is_reached, within):
            shown = "\n".join(f"  {partition}" for partition in lags) or "  it has committed no offset"
            raise AssertionError(f"the lag of group {group} is above {lag} after {within:g} s:\n{shown}")

    def release(self, name: str) -> str:
        """Return the ``bootstrap.servers`` of the listener that looks like a release of Kafka, such as "2.8".

        A single broker adds the listener at the first call; a cluster has those that it was started with (``releases``). Clients of
        the listener see the same topics and groups. Raises BrokerError for a release that is not known.
        """
        servers: str = self.call(find_release_servers, self._nodes, name)
        return servers

    def stop(self) -> None:
        """Stop all brokers and forget their data, unless they are in a folder.

        A second call does nothing, nor does one in a forked child, where the brokers do not run.
        """
        if self._is_stopped or self._thread.is_foreign:
            return
        self._is_stopped = True
        try:
            self.call(self._nodes.end)
        finally:
            clients = [client for node in self._nodes.by_id.values() for client in node.left_open]
            LEFTOVERS.note_stopped(id(self), clients)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class RunningBroker(RunningKafka):
    """A broker that runs in this process until `stop`, or until the end of its ``with`` block.

    ``bootstrap_servers`` is its address, ``instances`` are the addresses of its instances by name.
    """

    def __init__(
        self,
        thread: ReactorThread,
        reactor: AdjustableReactor,
        node: Node,
        faults: Faults,
        security: Security,
        instances: Mapping[str, dict[str, str]],
    ) -> None:
        self._node = node
        self._instances = instances
        self.instances: dict[str, str] = {}
        super().__init__(thread, reactor, [node], faults, security)

    def _secure(self) -> None:
        super()._secure()
        if not self._instances:
            return
        from kafkacompat.testing.provision import create_instances, create_users, find_free_ports

        ports = find_free_ports(len(self._instances))
        for (name, properties), port in zip(self._instances.items(), ports, strict=True):
            listeners = properties.setdefault("listeners", f"{self._security.protocol}://{HOST}:{port}")
            self.instances[name] = listeners.partition(",")[0].rpartition("://")[2]
        self.call(create_instances, self._nodes, self._instances)
        if self._security.users:
            self.call(create_users, self._nodes, hash_passwords(self._security.users_of_instances))

    @property
    def broker(self) -> Broker:
        """The broker itself, to be used by functions that `call` runs, and nowhere else."""
        return self._node.broker

    @property
    def nasty(self) -> NastyTopics:
        """Topics with the shapes that consumers have failed at, one call each: see NastyTopics."""
        from kafkacompat.testing.nasty import NastyTopics

        return NastyTopics(self, lambda: [self.broker])


class RunningCluster(RunningKafka):
    """Brokers that run in this process until `stop`, or until the end of their ``with`` block.

    ``bootstrap_servers`` are the addresses of all of them. A broker that is started again has its old address.
    """

    @property
    def brokers(self) -> dict[int, Broker]:
        """The brokers that run, by id, to be used by functions that `call` runs, and nowhere else."""
        return {node_id: node.broker for node_id, node in self._nodes.by_id.items() if node.is_running}

    @property
    def nasty(self) -> NastyTopics:
        """Topics with the shapes that consumers have failed at, one call each: see NastyTopics."""
        from kafkacompat.testing.nasty import NastyTopics

        return NastyTopics(self, lambda: list(self.brokers.values()), cluster=self)

    def start_broker(self, broker_id: int) -> None:
        """Start a broker that was stopped or killed, on its old address.

        Returns when it serves clients and is in sync for all of its partitions, or after `PATIENCE_S` if it cannot catch up.
        """
        self.call(self._find(broker_id).start)
        self.call(self._nodes.wait_until, partial(is_in_sync, self._nodes, broker_id), PATIENCE_S)

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in order: others lead its partitions first."""
        self.call(self._find(broker_id).stop)

    def kill_broker(self, broker_id: int) -> None:
        """End a broker without notice. Its session with ZooKeeper ends at once, so that others are elected."""
        self.call(self._find(broker_id).kill)

    def _find(self, broker_id: int) -> Node:
        if broker_id not in self._nodes.by_id:
            known = ", ".join(map(str, self._nodes.by_id))
            raise BrokerError(f"there is no broker {broker_id} in this cluster: its brokers are {known}")
        return self._nodes.by_id[broker_id]
