"""A whole broker in memory whose clients belong to instances, or to none; requests pass the wire format."""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from random import Random
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.broker import Broker
from kafkacompat.config import BrokerConfig
from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import Peer, Pending, RequestContext, UnanswerableError
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.security.principals import ANONYMOUS, Principal
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.compiler import decode_message, encode_message, find_writer
from kafkacompat.wire.connection import IncomingRequest, RequestError
from kafkacompat.wire.schema import Request
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_host import MemoryHost
from tests.fakes.memory_network import MemoryNetwork

HOST, PORT = "broker-1", 9092
START_S = 1_700_000_000
TURNS = 5000
TURN_S = 0.01
SUPER_USERS = {"super.users": f"User:{ANONYMOUS.name}"}
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    **SUPER_USERS,
}
CLUSTER_ID = "cluster-of-"


class World:
    """One broker on one clock; instances are created by name. With *guarded* it has an authorizer, whose super users are all clients."""

    def __init__(self, folder: Path, seed: int = 1, *, guarded: bool = False, **properties: str) -> None:
        self.clock = Clock()
        self.clock.advance(START_S)
        given = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{PORT}",
            # The metadata is in SQLite, which knows real files only.
            "log.dirs": str(folder),
            # Scrubbing begins with a worker process.
            "kafkacompat.scrub.interval.ms": "-1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            **(AUTHORIZER if guarded else {}),
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        host = MemoryHost(self.clock, MemoryNetwork(self.clock).at(HOST), files=MemoryFiles(), rng=Random(seed))
        self.broker = Broker(host, BrokerConfig(given))
        self.run(self.broker.start())
        self.services = self.broker._services
        self.dispatcher = Dispatcher(self.broker._handlers(), self.services)
        self._warm_up()

    def _warm_up(self) -> None:
        """Let the broker create its topics: before, it answers differently for a moment. Producer id 0 is a default, too."""
        for key_type in (0, 1):
            self.ask(None, FindCoordinatorRequest(key="any", key_type=key_type), 3)
        self.ask(None, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 3)

    def run(self, work: Coroutine[Deferred[Any], Any, Any] | Deferred[Any]) -> Any:
        """Turn the clock until *work* is done; returns its result or raises what it failed with."""
        results: list[Any] = []
        (work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)).addBoth(results.append)
        for _ in range(TURNS):
            if results:
                break
            self.clock.advance(TURN_S)
        assert results, "it does not end"
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def keep_pace(self, other: World) -> None:
        """Let both worlds have the same time."""
        slower, faster = sorted((self, other), key=lambda world: world.clock.seconds())
        while (behind_s := faster.clock.seconds() - slower.clock.seconds()) > 0:
            slower.clock.advance(min(TURN_S, behind_s))

    def make_instance(self, name: str, **properties: str) -> None:
        """Create an instance, or change its properties."""
        given = {
            "cluster.id": f"{CLUSTER_ID}{name}",
            "secret": f"secret of {name}",
            **SUPER_USERS,
            **{option.replace("_", "."): value for option, value in properties.items()},
        }
        operations = [ConfigOperation(option, ConfigOperationType.SET, value) for option, value in given.items()]
        change = ResourceChange(ResourceType.INSTANCE, name, operations)
        assert self.run(self.broker.controller.alter_configs([change])) == [None]

    def stop(self) -> None:
        self.run(self.broker.stop())

    def begin(
        self, instance: str | None, request: Request, version: int, client_id: str = "client"
    ) -> Deferred[Any] | Any:
        """Send a request as a client of an instance; return the response, or a Deferred of it. A closed connection is None."""
        if request.API_KEY not in self.dispatcher.handlers:
            return None
        read = decode_message(type(request), encode_message(request, version), version)
        size_bytes = len(encode_message(request, version))
        incoming = IncomingRequest(request.API_KEY, version, 1, client_id, read, size_bytes)
        tenant = None if instance is None else self.services.instances.by_name[instance]
        peer = Peer("PLAINTEXT", "127.0.0.1", 40_000, HOST, PORT)
        principal = ANONYMOUS if tenant is None else Principal("User", tenant.find_physical_user(ANONYMOUS.name))
        context = RequestContext(version, client_id, peer, principal=principal, tenant=tenant)
        try:
            answer = self.dispatcher.dispatch(incoming, context)
        except (UnanswerableError, RequestError):
            return None
        return answer.response if isinstance(answer, Pending) else answer

    def ask_bytes(
        self, instance: str | None, request: Request, version: int, client_id: str = "client"
    ) -> bytes | None:
        """The bytes of a response; None if the connection is closed, or the protocol has no response."""
        answer = self.begin(instance, request, version, client_id)
        if isinstance(answer, Deferred):
            try:
                answer = self.run(answer)
            except (UnanswerableError, RequestError):
                return None
            except Exception as problem:
                incoming = IncomingRequest(request.API_KEY, version, 1, "client", request, 0)
                try:
                    answer = self.dispatcher.build_failure_response(incoming, problem)
                except UnanswerableError:
                    return None
        if answer is None:
            return None
        return b"".join(map(_read_part, find_writer(type(answer), version)(answer)))

    def ask(self, instance: str | None, request: Request, version: int, client_id: str = "client") -> Any:
        """The response as the client reads it; None if the connection is closed."""
        data = self.ask_bytes(instance, request, version, client_id)
        return None if data is None else decode_message(find_api(request.API_KEY).response, data, version)


def _read_part(part: Any) -> bytes:
    if not isinstance(part, FileRegion):
        return bytes(part)
    data = part.pread(0, part.size_bytes)
    part.release()
    return data
