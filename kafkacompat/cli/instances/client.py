"""Reads and changes the instances of a cluster through one of its brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from kafkacompat.cli.requests import NoResponseError, connect_first
from kafkacompat.config.resources import ResourceType
from kafkacompat.tenancy.instance_messages import decode_properties, encode_changes
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kafkacompat.wire.errors import ErrorCode, describe_code
from kafkacompat.wire.schema import Request, Response

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafkacompat.cli.cluster.reading import Connect, Connection
    from kafkacompat.metadata.config_changes import ConfigOperation

INSTANCES_A_REQUEST = 100

NO_INSTANCES = "the broker lists no instances: give the address of a kafkacompat broker itself, not of an instance"

ResponseType = TypeVar("ResponseType", bound=Response)
Properties = Mapping[str, str]


class InstanceError(Exception):
    """The cluster refuses a request; the text is one sentence."""


class NoInstanceError(InstanceError):
    """There is no instance of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no instance {name}: see `kafkacompat instances list`")


class InstanceClient:
    """Requests about instances to the first of *addresses* that answers; raises NoResponseError if none does.

    The methods raise InstanceError for what the cluster refuses.
    """

    def __init__(self, addresses: Iterable[tuple[str, int]], connect: Connect) -> None:
        self.connect = connect
        self._connection = connect_first(addresses, connect)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._connection.close()

    def request(self, request: Request, response: type[ResponseType]) -> ResponseType:
        """Send any request to the broker and return its response."""
        return self._connection.request(request, response)

    def list_names(self) -> list[str]:
        """Return the names of all instances, in order."""
        request = ListConfigResourcesRequest(resource_types=[ResourceType.INSTANCE])
        if (self._connection.find_version(ListConfigResourcesRequest) or 0) < 1:
            raise InstanceError(NO_INSTANCES)
        response = self._connection.request(request, ListConfigResourcesResponse)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            raise InstanceError(NO_INSTANCES)
        if response.error_code:
            raise InstanceError(_describe_error(response.error_code, None))
        return sorted(resource.resource_name for resource in response.config_resources)

    def describe_all(self) -> dict[str, Properties]:
        """Return the properties of all instances by name; an instance that goes meanwhile is left out."""
        names = iter(self.list_names())
        instances: dict[str, Properties] = {}
        while portion := list(islice(names, INSTANCES_A_REQUEST)):
            for result in self._describe(portion):
                if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
                    instances[result.resource_name] = _read_properties(result)
        return instances

    def describe(self, name: str) -> Properties:
        """Return the properties that an instance has been given; secrets are left out. Raises NoInstanceError."""
        return _read_properties(self._describe([name])[0])

    def _describe(self, names: Sequence[str]) -> list[DescribeConfigsResult]:
        resources = [_name_resource(name) for name in names]
        return self._connection.request(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse).results

    def alter(self, name: str, changes: Iterable[ConfigOperation], *, validate_only: bool = False) -> None:
        """Change the properties of an instance, all together or none."""
        configs = encode_changes(changes)
        resource = AlterConfigsResource(resource_type=ResourceType.INSTANCE, resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
        (result,) = self._connection.request(request, IncrementalAlterConfigsResponse).responses
        if result.error_code:
            raise InstanceError(_describe_error(result.error_code, result.error_message))


def _name_resource(name: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=ResourceType.INSTANCE, resource_name=name, configuration_keys=None)


def _read_properties(result: DescribeConfigsResult) -> Properties:
    if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
        raise NoInstanceError(result.resource_name)
    if result.error_code:
        raise InstanceError(_describe_error(result.error_code, result.error_message))
    return decode_properties(result.configs)


def _describe_error(code: int, message: str | None) -> str:
    return message or f"the broker returns {describe_code(code, None)}"


def visit_brokers(
    addresses: Mapping[int, tuple[str, int]], connect: Connect, visit: Callable[[Connection], ResponseType]
) -> Iterator[tuple[int, ResponseType]]:
    """Yield the response of each broker to what *visit* sends it; raises NoResponseError, which names the broker."""
    for node_id, (host, port) in addresses.items():
        try:
            connection = connect(host, port)
            try:
                response = visit(connection)
            finally:
                connection.close()
        except NoResponseError as problem:
            raise NoResponseError(f"broker {node_id} at {host}:{port}: {problem}") from None
        yield node_id, response
