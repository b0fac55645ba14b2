"""A whole broker with an authorizer, and clients that send it single requests from any address: without a thread or a socket."""

from __future__ import annotations

import struct
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from kafkacompat.broker import Broker
from kafkacompat.config import BrokerConfig
from kafkacompat.wire import compiler
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.headers import ResponseHeader, encode_request, response_header_version
from kafkacompat.wire.schema import Request
from tests.fakes.memory_files import MemoryFiles
from tests.fakes.memory_host import MemoryHost
from tests.fakes.memory_network import MemoryNetwork

HOST, PORT = "broker-1", 9092
TURNS = 3000
TURN_S = 0.01
SIZE = struct.Struct(">i")


class _Exchange(Protocol):
    """One connection; ``received`` is what came back, ``is_closed`` whether the broker has hung up."""

    transport: Any

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self.received = b""
        self.is_closed = False

    def connectionMade(self) -> None:
        self.transport.write(self._frame)

    def dataReceived(self, data: bytes) -> None:
        self.received += bytes(data)

    def connectionLost(self, reason: Failure = Failure(ConnectionError("closed"))) -> None:  # noqa: B008
        self.is_closed = True

    @property
    def is_complete(self) -> bool:
        size = SIZE.size
        return len(self.received) >= size and len(self.received) >= size + SIZE.unpack_from(self.received)[0]


class GuardedWorld:
    """One broker with these *properties*."""

    def __init__(self, folder: Path, **properties: str) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.network = MemoryNetwork(self.clock)
        self.files = MemoryFiles()
        config = BrokerConfig(
            {
                "node.id": "1",
                "listeners": f"PLAINTEXT://{HOST}:{PORT}",
                # The metadata is in SQLite, which knows real files only.
                "log.dirs": str(folder),
                "kafkacompat.scrub.interval.ms": "-1",
                "offsets.topic.num.partitions": "1",
                "transaction.state.log.num.partitions": "1",
                "group.initial.rebalance.delay.ms": "0",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                **{name.replace("_", "."): value for name, value in properties.items()},
            }
        )
        self.broker = Broker(MemoryHost(self.clock, self.network.at(HOST), files=self.files), config)
        self.run(self.broker.start())

    def run(self, work: Coroutine[Deferred[Any], Any, Any]) -> Any:
        """Turn the clock until *work* is done; returns its result or raises what it failed with."""
        results: list[Any] = []
        Deferred.fromCoroutine(work).addBoth(results.append)
        self.turn_until(lambda: bool(results))
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def turn_until(self, condition: Any) -> None:
        """Turn the clock until a condition holds."""
        for _ in range(TURNS):
            if condition():
                return
            self.clock.advance(TURN_S)
        raise AssertionError("it does not come about")

    def begin(self, address: str, request: Request, version: int) -> _Exchange:
        """Send a request from an address."""
        body = encode_request(request, version, 1, "test")
        exchange = _Exchange(SIZE.pack(len(body)) + body)
        connecting = self.network.at(address).connect(HOST, PORT, exchange, 30.0)
        connecting.addErrback(lambda failure: setattr(exchange, "is_closed", True))
        return exchange

    def finish(self, exchange: _Exchange, request: Request, version: int) -> Any:
        """Return the response, None if the broker closes the connection."""
        self.turn_until(lambda: exchange.is_complete or exchange.is_closed)
        if not exchange.is_complete:
            return None
        response = find_api(request.API_KEY).response
        header_version = response_header_version(response, version)
        data = exchange.received[SIZE.size :]
        _, position = compiler.find_reader(ResponseHeader, header_version)(data, 0)
        decoded = compiler.find_reader(response, version)(data, position)[0]
        if not exchange.is_closed:
            exchange.transport.loseConnection()
        return decoded

    def ask(self, address: str, request: Request, version: int) -> Any:
        """Send a request from an address; return the response, None if the broker closes the connection."""
        return self.finish(self.begin(address, request, version), request, version)

    def close(self) -> None:
        """Stop the broker."""
        self.run(self.broker.stop())
