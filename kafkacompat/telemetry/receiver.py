"""The broker's side of KIP-714, with the checks of Kafka's ClientMetricsManager in their order."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkacompat.complaints import LoggedComplaints
from kafkacompat.telemetry.clients import TelemetryClient
from kafkacompat.telemetry.decoding import load_messages, read_points
from kafkacompat.telemetry.points import PointStore
from kafkacompat.telemetry.subscriptions import ClientProperties, Subscriptions
from kafkacompat.timers import steady_ms
from kafkacompat.wire.compression import Codec, TooLargeError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import ZERO_UUID, MalformedError, format_uuid

if TYPE_CHECKING:
    from kafkacompat.metadata.image import ImageHolder
    from kafkacompat.timers import Clock
    from kafkacompat.wire.apis.push_telemetry import PushTelemetryRequest

log = logging.getLogger(__name__)

MAX_CLIENTS = 16_384
"""As in Kafka."""
COMPLAINTS_PERIOD_S = 60.0
"""Time in which one unreadable push of a client is logged."""
MAX_CHARACTERS = 100
"""Characters of a client id in a log line."""
RESERVED_IDS = frozenset({ZERO_UUID, bytes(15) + b"\1"})
ASKS_AGAIN_AFTER = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""Errors after which a client asks for its subscription at once."""


class ClientTelemetry:
    """Answers clients, and keeps what they push in ``points``.

    ``random_bytes`` makes ids. ``limit`` bounds the clients whose values are kept, ``max_bytes`` a push, packed and unpacked.
    """

    def __init__(
        self, metadata: ImageHolder, clock: Clock, random_bytes: Callable[[int], bytes], *, limit: int, max_bytes: int
    ) -> None:
        self.max_bytes = max_bytes
        self.points = PointStore(limit)
        self.throttled = 0
        self.unknown_subscriptions = 0
        self.exported = 0
        self.failed = 0
        self._metadata = metadata
        self._clock = clock
        self._random_bytes = random_bytes
        self._subscriptions = Subscriptions()
        self._clients: OrderedDict[bytes, TelemetryClient] = OrderedDict()
        self._complain = LoggedComplaints(clock, most_lines=1, period_s=COMPLAINTS_PERIOD_S, say=log.info)

    def list_clients(self) -> list[TelemetryClient]:
        """Forget the clients that have been silent for too long, with their values, and return the others."""
        now_ms = steady_ms(self._clock)
        for client in list(self._clients.values()):
            if now_ms - client.used_ms > client.expiry_ms:
                del self._clients[client.instance_id]
        self.points.keep(self._clients)
        return list(self._clients.values())

    @staticmethod
    def load_ahead() -> None:
        """Import what the first push would wait for otherwise: a tenth of a second."""
        load_messages()

    def find_client(self, instance_id: bytes) -> TelemetryClient | None:
        """Return a client by its id."""
        return self._clients.get(instance_id)

    def subscribe(self, instance_id: bytes, properties: ClientProperties) -> TelemetryClient:
        """Return a client with its subscription; zeros ask for a new id.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED for a client that asks again before its interval is over.
        """
        while instance_id in RESERVED_IDS:
            instance_id = self._random_bytes(16)
        client = self._use_client(instance_id, properties)
        if not client.may_get(steady_ms(self._clock)) and client.last_error not in ASKS_AGAIN_AFTER:
            self.throttled += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the client asks before its push interval is over")
        client.last_error = ErrorCode.NONE
        return client

    def push(self, request: PushTelemetryRequest, properties: ClientProperties) -> None:
        """Keep what a client pushes; raises KafkaError."""
        if request.client_instance_id in RESERVED_IDS:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a push needs the id of a client")
        client = self._use_client(request.client_instance_id, properties)
        try:
            self._check_push(client, request)
            self._read(client, request)
        except KafkaError as problem:
            client.last_error = problem.code
            raise
        finally:
            client.is_terminating = request.terminating
        client.last_error = ErrorCode.NONE

    def _use_client(self, instance_id: bytes, properties: ClientProperties) -> TelemetryClient:
        """Return a client by its id; a new one, or one whose subscription may have changed, gets its subscription."""
        self._subscriptions.update(self._metadata.image)
        client = self._clients.get(instance_id)
        if client is None or client.version < self._subscriptions.version:
            own = properties if client is None else client.properties
            subscription = self._subscriptions.find(own, instance_id)
            client = TelemetryClient(instance_id, own, subscription, self._subscriptions.version)
            self._clients[instance_id] = client
        client.used_ms = steady_ms(self._clock)
        self._clients.move_to_end(instance_id)
        if len(self._clients) > MAX_CLIENTS:
            self._clients.popitem(last=False)
        return client

    def _check_push(self, client: TelemetryClient, request: PushTelemetryRequest) -> None:
        if client.is_terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the client has said that it ends")
        if not client.may_push(steady_ms(self._clock)) and not request.terminating:
            self.throttled += 1
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "the client pushes before its interval is over")
        if request.subscription_id != client.subscription.subscription_id:
            self.unknown_subscriptions += 1
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, "the subscription of the client has changed")
        if request.compression_type not in list(Codec):
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"codec {request.compression_type} is unknown")
        if len(request.metrics) > self.max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE, f"telemetry.max.bytes={self.max_bytes}")

    def _read(self, client: TelemetryClient, request: PushTelemetryRequest) -> None:
        if not request.metrics:
            return
        try:
            points, is_whole = read_points(request.compression_type, request.metrics, self.max_bytes)
        except MalformedError as problem:
            self.failed += 1
            code = ErrorCode.TELEMETRY_TOO_LARGE if isinstance(problem, TooLargeError) else ErrorCode.INVALID_RECORD
            self._complain_of(client, problem)
            raise KafkaError(code, str(problem)) from None
        self.exported += 1
        self.points.dropped += not is_whole
        self.points.add(client.instance_id, points)

    def _complain_of(self, client: TelemetryClient, problem: MalformedError) -> None:
        instance, client_id = format_uuid(client.instance_id), client.properties.get("client_id", "")[:MAX_CHARACTERS]
        self._complain(instance, f"A push of metrics by client {client_id!r} ({instance}) cannot be read: {problem}")
