"""The handlers of data over real partitions and a file system in memory."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from kafkacompat.config import BrokerConfig
from kafkacompat.conversion import Conversions
from kafkacompat.handlers import HANDLERS
from kafkacompat.handlers.context import Pending
from kafkacompat.metadata.image import TopicImage
from kafkacompat.partitions.fetch_sessions import FetchSessions
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire import compiler
from kafkacompat.wire.record_batch import build_batch
from kafkacompat.wire.schema import Request
from tests.fakes.workers import ManualWorkers
from tests.handlers.node import Answer, context_of, handle_request, make_services
from tests.kafkacompat.metadata.deferreds import outcome
from tests.kafkacompat.partitions.node import EPOCH, START_S, Node, topic

__all__ = ["EPOCH", "NOW_MS", "OFFSETS_ID", "T_ID", "U_ID", "DataNode", "make_batch"]


NOW_MS = START_S * 1000
T_ID, U_ID, OFFSETS_ID = b"t" * 16, b"u" * 16, b"o" * 16


def make_batch(count: int = 1, *, timestamp: int = NOW_MS, codec: int = 0, value: bytes = b"v") -> bytes:
    """A batch of `count` records, a millisecond apart."""
    return build_batch([(timestamp + index, b"k", value, []) for index in range(count)], codec=codec)


class DataNode:
    """Node 1 with t of two partitions, u and the offsets topic of one, each in leader epoch EPOCH."""

    def __init__(
        self,
        config: LogConfig | None = None,
        paths: Sequence[str] = (),
        syncs_always: bool = False,
        **properties: str,
    ) -> None:
        self.node = Node(*paths, config=config, syncs_always=syncs_always)
        for image in (topic("t", 2, T_ID), topic("u", 1, U_ID), topic("__consumer_offsets", 1, OFFSETS_ID)):
            self.node.open(image)
        given = {"node.id": "1", **{name.replace("_", "."): value for name, value in properties.items()}}
        self.sessions = FetchSessions(10, Random(1))
        self.workers = ManualWorkers(self.node.disks[0])
        self.conversions = Conversions(self.workers, self.node.files)
        self.services = make_services(
            clock=self.node.clock,
            config=BrokerConfig(given),
            replica_manager=self.node.replicas,
            fetch_sessions=self.sessions,
            conversions=self.conversions,
            served={key: handler.versions for key, handler in HANDLERS.items()},
        )

    def delete(self, image: TopicImage) -> None:
        """Delete a topic."""
        self.node.replicas.delete_partitions(image)
        self.node.work()

    def append(self, name: str, index: int, records: bytes | None = None) -> None:
        """Put a batch into a partition, past the handlers."""
        self.node.replicas.find(name, index).append(make_batch() if records is None else records, NOW_MS)
        self.node.work()

    def send(self, request: Request, version: int, client_id: str = "test") -> Any:
        """Return the handler's result: a response, None, or a Pending."""
        return handle_request(request, context_of(version, client_id=client_id), self.services)

    def ask(self, request: Request, answer: type[Answer], version: int, client_id: str = "test") -> Answer:
        """The response as the client reads it, after the disks have worked."""
        response = self.send(request, version, client_id)
        self.node.work()
        return self.read(response, answer, version)

    def read(self, response: Any, answer: type[Answer], version: int) -> Answer:
        """A response that was sent, as the client reads it."""
        if isinstance(response, Pending):
            response = outcome(response.response)
        data = b"".join(_read_part(part) for part in compiler.find_writer(answer, version)(response))
        return compiler.decode_message(answer, data, version)


def _read_part(part: Any) -> bytes:
    if not isinstance(part, FileRegion):
        return bytes(part)
    data = part.pread(0, part.size_bytes)
    part.release()
    return data
