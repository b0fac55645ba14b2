"""Requests to any broker of a cluster, to its controller, to coordinators and to leaders."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from kafkacompat.cli.command_config import read_command_config
from kafkacompat.cli.remote.errors import RemoteError, explain_refusal
from kafkacompat.cli.requests import BlockingConnection, NoResponseError, connect_first, parse_address
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafkacompat.wire.errors import ErrorCode
from kafkacompat.wire.schema import Request, Response

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafkacompat.cli.cluster.reading import Connect, Connection
    from kafkacompat.cli.remote.options import Target

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 30.0
CHANGE_TIMEOUT_MS = 25_000
"""Time that the brokers may take for a change; it is shorter than ANSWER_TIMEOUT_S."""
COORDINATOR_ATTEMPTS, COORDINATOR_PAUSE_S = 50, 0.2
"""The first use of a cluster's groups creates their topic, which takes moments."""
NOT_YET = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}
GROUP_KEY, TRANSACTION_KEY = 0, 1

ResponseType = TypeVar("ResponseType", bound=Response)
Outcome = TypeVar("Outcome")
Wait = Callable[[float], object]
_NEVER_SET = threading.Event()


class RemoteCluster:
    """Connections to the brokers of a cluster, each opened at its first use.

    The methods raise NoResponseError for a broker that does not answer, and RemoteError for a request that is refused.
    """

    def __init__(self, addresses: Iterable[tuple[str, int]], connect: Connect, wait: Wait = _NEVER_SET.wait) -> None:
        self.addresses = list(addresses)
        self.connect = connect
        self._wait = wait
        self._bootstrap = connect_first(self.addresses, connect)
        self._connections: dict[int, Connection] = {}
        self._brokers: MetadataResponse | None = None
        self._coordinators: dict[tuple[int, str], int] = {}
        """The coordinators found, by key type and key, until one of them rejects a request."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bootstrap.close()
        for connection in self._connections.values():
            connection.close()

    # Requests

    def find_version(self, request: type[Request]) -> int | None:
        """Return the version of this request for the first broker, or None if that broker does not serve it."""
        return self._bootstrap.find_version(request)

    def request(self, request: Request, response: type[ResponseType]) -> ResponseType:
        """Send a request to any broker."""
        return self._bootstrap.request(request, response)

    def request_broker(self, node_id: int, request: Request, response: type[ResponseType]) -> ResponseType:
        """Send a request to one broker."""
        return self._connect_broker(node_id).request(request, response)

    def request_controller(self, request: Request, response: type[ResponseType]) -> ResponseType:
        """Send a change to the controller. With KRaft, Metadata names any broker, which forwards the request."""
        controller = self.brokers.controller_id
        return (self._bootstrap if controller < 0 else self._connect_broker(controller)).request(request, response)

    def _connect_broker(self, node_id: int) -> Connection:
        if node_id not in self._connections:
            address = next(((node.host, node.port) for node in self.brokers.brokers if node.node_id == node_id), None)
            if address is None:
                raise NoResponseError(f"broker {node_id} is not part of the cluster: see `kafkacompat brokers`")
            try:
                self._connections[node_id] = self.connect(*address)
            except NoResponseError as problem:
                advertised = f"broker {node_id} at its advertised address {address[0]}:{address[1]}"
                raise NoResponseError(f"{advertised}: {problem}") from None
        return self._connections[node_id]

    # Metadata

    @property
    def brokers(self) -> MetadataResponse:
        """The live brokers, the controller and the cluster's id, as they are at the first use."""
        if self._brokers is None:
            self._brokers = self.request(MetadataRequest(topics=[], allow_auto_topic_creation=False), MetadataResponse)
        return self._brokers

    def read_topics(self, names: Iterable[str] | None = None) -> list[MetadataResponseTopic]:
        """Return the topics of these names, each with its error code, or all topics; in order, as are their partitions."""
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        response = self.request(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), MetadataResponse)
        for topic in response.topics:
            topic.partitions.sort(key=lambda partition: partition.partition_index)
        return sorted(response.topics, key=lambda topic: topic.name or "")

    # Coordinators

    def find_coordinator(self, key: str, key_type: int) -> int:
        """Return the broker that coordinates a group or a transactional id."""
        request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])

        def find() -> tuple[int, int, str | None]:
            response = self.request(request, FindCoordinatorResponse)
            coordinator = response.coordinators[0] if response.coordinators else response
            return coordinator.node_id, coordinator.error_code, coordinator.error_message

        node_id, code, message = self.retry(find, lambda outcome: outcome[1])
        if code:
            raise RemoteError(f"the coordinator of {key} is not found: {explain_refusal(code, message)}")
        self._coordinators[key_type, key] = node_id
        return node_id

    def request_coordinator(
        self,
        key: str,
        key_type: int,
        request: Request,
        response: type[ResponseType],
        find_code: Callable[[ResponseType], int],
    ) -> ResponseType:
        """Send a request to the coordinator of *key*, again while the coordinator moves or loads."""

        def find_and_request() -> ResponseType:
            node_id = self._coordinators.get((key_type, key))
            if node_id is None:
                node_id = self.find_coordinator(key, key_type)
            answer = self.request_broker(node_id, request, response)
            if find_code(answer) in NOT_YET:
                self._coordinators.pop((key_type, key), None)
            return answer

        return self.retry(find_and_request, find_code)

    def retry(self, attempt: Callable[[], Outcome], find_code: Callable[[Outcome], int]) -> Outcome:
        """Return the outcome of *attempt*, which is repeated while its error code says that a coordinator is not there yet."""
        for _ in range(COORDINATOR_ATTEMPTS):
            outcome = attempt()
            if find_code(outcome) not in NOT_YET:
                break
            self._wait(COORDINATOR_PAUSE_S)
        return outcome


def connect_cluster(
    target: Target, *, connect_timeout_s: float = CONNECT_TIMEOUT_S, answer_timeout_s: float = ANSWER_TIMEOUT_S
) -> RemoteCluster:
    """Connect to the first broker that answers; raises ValueError (ConfigError among them) and NoResponseError."""
    addresses = [parse_address(server) for server in target.bootstrap.split(",")]
    security = read_command_config(target.command_config)
    connect = partial(
        BlockingConnection, timeout_s=connect_timeout_s, security=security, answer_timeout_s=answer_timeout_s
    )
    return RemoteCluster(addresses, connect)
