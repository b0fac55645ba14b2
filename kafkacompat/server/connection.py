"""One client's connection: it receives bytes, hands requests to the dispatcher, and sends responses in order.

The connection stops reading, and so lets the client wait, while any of these holds: too many requests are in flight, a
request holds up the ones after it (its order is not settled yet), the client does not read its responses, it is throttled by a
quota, or memory for frames is short.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from kafkacompat.handlers.context import ClientSoftware, Peer, Pending, RequestContext, UnanswerableError
from kafkacompat.handlers.throttle_time import raise_throttle_time
from kafkacompat.metrics.connections import TLS, ListenerTraffic
from kafkacompat.quotas.client_quotas import ClientQuotas
from kafkacompat.quotas.request_meter import RequestMeter, begin_request
from kafkacompat.security.principals import ANONYMOUS, Principal
from kafkacompat.server.frame_queue import FrameQueue
from kafkacompat.server.muting import Muting
from kafkacompat.server.outgoing import release_part, release_regions
from kafkacompat.timers import make_steps
from kafkacompat.wire.connection import IncomingRequest, RequestError, ServerConnection
from kafkacompat.wire.frames import SIZE, FrameError
from kafkacompat.wire.schema import Response

if TYPE_CHECKING:
    from kafkacompat.metrics.requests import ConnectionWatch, RequestMetrics
    from kafkacompat.security.sasl.exchange import AuthenticationFailedError
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.server.frame_budget import FrameBudget
    from kafkacompat.server.instance_connections import InstanceConnections
    from kafkacompat.server.sasl_gate import SaslGate
    from kafkacompat.server.transport import ReadAhead, ZeroCopyTransport
    from kafkacompat.tenancy.tenant_view import TenantView
    from kafkacompat.timers import Clock

log = logging.getLogger(__name__)

MAX_IN_FLIGHT_REQUESTS = 64
MAX_REQUESTS_PER_TURN = 64
"""Requests that one connection may start before the others have their turn; thousands may be waiting."""
MAX_TURN_SECONDS = 0.005
"""Time after which a connection starts no further request before the others have their turn."""
MAX_TENANT_TURN_SECONDS = 0.001
"""The same for the clients of instances, so that one instance with much to do does not slow the others down."""
MAX_UNSENT_BYTES = 1024 * 1024
"""Bytes of responses that are unread, or wait for an earlier response; beyond this no further request is started."""


@dataclass
class ListenerServices:
    """What the connections of one listener share.

    ``connections`` are those of all listeners. ``complain(host, text)`` logs a line about a client, up to a bound.
    ``begin_sasl`` begins the authentication of a connection, on a listener with SASL. ``quotas`` are those of clients; nothing is measured
    while there is none. ``traffic`` counts the connections of the listener, under ``traffic_name``. ``metrics`` measures requests; None
    if nobody reads that. ``tenants`` are the connections of instances; None where there are no instances.
    """

    listener_name: str
    dispatcher: Dispatcher
    budget: FrameBudget
    max_frame_bytes: int
    clock: Clock
    connections: set[KafkaConnection]
    complain: Callable[[str, str], None]
    begin_sasl: Callable[[], SaslGate] | None = None
    quotas: ClientQuotas = field(default_factory=ClientQuotas)
    traffic: ListenerTraffic = field(default_factory=ListenerTraffic)
    metrics: RequestMetrics | None = None
    tenants: InstanceConnections | None = None
    traffic_name: str = ""


class KafkaConnection(Protocol):
    """A Twisted protocol over the sans-IO `ServerConnection`; the frame budget counts the memory that it holds.

    Nothing is read for ``delay_ms`` if too many connections are made at the same time. ``is_secured`` says that TLS protects it,
    ``tenant`` is the instance that it belongs to, if any.
    """

    transport: ZeroCopyTransport  # type: ignore[assignment]

    def __init__(
        self, shared: ListenerServices, read_ahead: ReadAhead, delay_ms: int = 0, *, is_secured: bool = False
    ) -> None:
        self._shared = shared
        self.is_secured = is_secured
        self.delay_ms = delay_ms
        self._read_ahead = read_ahead
        self._frames = FrameQueue(shared.max_frame_bytes)
        self._requests = ServerConnection(shared.dispatcher.handlers)
        self._pending: set[Deferred[Any]] = set()
        self._in_flight_bytes = 0
        self._held_up = 0
        self._pumping = False
        self._turn_is_over = False
        self._finishing = False
        self._paused = False
        self._short_of_memory = False
        self._seen_sent_bytes = 0
        self._last_taken_ms = 0
        self._muting = Muting(shared.clock, self._on_muted, self._on_unmuted)
        self.held_bytes = 0
        self.last_received_s = 0.0
        self.received_bytes = 0
        self.principal = ANONYMOUS
        self.tenant: TenantView | None = None
        self._sasl: SaslGate | None = None
        self.software = ClientSoftware()
        self.watch: ConnectionWatch | None = None if shared.metrics is None else shared.metrics.watch()

    # What Twisted calls

    def connectionMade(self) -> None:
        """Twisted: a client has connected."""
        shared, transport = self._shared, self.transport
        broker, client = transport.getHost(), transport.getPeer()
        self.peer = Peer(shared.listener_name, client.host, client.port, broker.host, broker.port)
        self.last_received_s = shared.clock.seconds()
        transport.on_drained = self._pump
        transport.read_ahead = self._read_ahead
        shared.connections.add(self)
        if shared.begin_sasl is not None:
            self._sasl = gate = shared.begin_sasl()
            self._frames.set_limit(gate.max_receive_bytes)
            gate.start(shared.clock, shared.traffic, self.delay_ms, self.cut_off)
        if self.delay_ms:
            self.mute(self.delay_ms)
        shared.traffic.note_opened()
        if shared.tenants is not None:
            self._end_if(shared.tenants.join_by_listener(self, awaits_user=self._sasl is not None or self.is_secured))

    def dataReceived(self, data: bytes) -> None:
        """Twisted: bytes have arrived."""
        self.last_received_s = self._shared.clock.seconds()
        self.received_bytes += len(data)
        try:
            has_frame = self._frames.receive(data)
        except FrameError as problem:
            self.cut_off(str(problem))
            return
        if has_frame:
            self._pump()
        else:
            self._count_held()

    def connectionLost(self, reason: Failure = Failure(ConnectionError("closed"))) -> None:  # noqa: B008
        """Twisted: the connection is closed; requests that may be abandoned are cancelled."""
        self._shared.connections.discard(self)
        if self._sasl is not None:
            self._sasl.stop_clock()
            self._sasl = None
        if self.tenant is not None and self._shared.tenants is not None:
            self._shared.tenants.leave(self)
        self._shared.traffic.note_closed(self.received_bytes, self.transport.sent_bytes)
        self._frames.drop_all()
        self._muting.cancel()
        for deferred in list(self._pending):
            deferred.cancel()
        for part in self._requests.abandon():
            release_part(part)
        # Requests that are not abandoned hold their bytes until they are done.
        self._count_held()

    def note_handshake(self, *, succeeded: bool) -> None:
        """Count a TLS handshake that has failed, or that has authenticated the client, as the listener has no SASL."""
        if self._sasl is None or not succeeded:
            self._shared.traffic.note_authentication(TLS, succeeded=succeeded)

    def note_certificate(self, principal: Principal, find_server_name: Callable[[], str]) -> str | None:
        """Note the user of a complete TLS handshake; return why the connection must end, or None."""
        tenants = self._shared.tenants
        if tenants is None or not tenants:
            self.principal = principal
            return None
        reason = None
        if tenants.routes.has_server_names and (server_name := find_server_name()):
            reason = tenants.join_by_server_name(self, server_name)
        if reason is not None or self._sasl is not None:
            return reason
        return tenants.join_by_certificate(self, principal)

    @property
    def traffic_name(self) -> str:
        """The name under which the metrics count the connection: its listener, or the listeners of all instances."""
        return self._shared.traffic_name or self._shared.listener_name

    @property
    def waiting_requests(self) -> int:
        """How many requests have arrived and are not handled yet."""
        return len(self._frames.waiting)

    # What the frame budget calls

    @property
    def last_received_ms(self) -> int:
        """When the last bytes arrived, by the steady clock."""
        return int(self.last_received_s * 1000)

    @property
    def is_receiving(self) -> bool:
        """Whether the rest of a frame is expected."""
        return self._frames.is_mid_frame and not self._paused

    @property
    def is_muted(self) -> bool:
        """Whether the client waits for its throttle time."""
        return self._muting.is_active

    def pause_for_memory(self) -> None:
        """Stop reading until `resume_for_memory`."""
        self._short_of_memory = True
        self._set_reading()

    def resume_for_memory(self) -> None:
        """Read on."""
        self._short_of_memory = False
        self._set_reading()

    # What the frame budget and the listener call

    def mute(self, duration_ms: int) -> None:
        """Read nothing and start no request for this time; responses of requests in flight are sent."""
        self._muting.mute(duration_ms)

    def _on_muted(self) -> None:
        self._shared.budget.choose_again()
        self._set_reading()

    def _on_unmuted(self) -> None:
        self._shared.budget.choose_again()
        if self.transport.connected:
            self._pump()

    def cut_off(self, reason: str) -> None:
        """Close at once, and log one line with the client and the reason."""
        self._shared.complain(self.peer.host, f"closing {self.peer.host}:{self.peer.port}: {reason}")
        self._frames.drop_waiting()
        self.transport.abortConnection()

    def end_with(self, data: bytes) -> None:
        """Send these bytes and close: no request in flight is answered."""
        self._finishing = True
        self._frames.drop_waiting()
        for part in self._requests.abandon():
            release_part(part)
        self.transport.send_parts([data])
        self.transport.loseConnection()

    def _end_if(self, reason: str | None) -> None:
        if reason is not None:
            self.cut_off(reason)

    def idle_ms(self, now_ms: int) -> int:
        """Return for how long the client has neither sent nor read a byte; 0 while it waits for a response.

        A client with unread responses does not wait, whatever else it has requested. To be called at intervals.
        """
        sent_bytes = self.transport.sent_bytes
        is_waiting = (self._requests.in_flight or self._short_of_memory) and not self.transport.queued_bytes
        if is_waiting or sent_bytes != self._seen_sent_bytes:
            self._seen_sent_bytes, self._last_taken_ms = sent_bytes, now_ms
        return now_ms - max(self.last_received_ms, self._last_taken_ms)

    def close_idle(self) -> None:
        """Close because the connection has been idle for too long."""
        if self.transport.queued_bytes:
            self.cut_off("it has not read its responses for as long as a connection may be idle")
        else:
            self.finish()

    def finish(self) -> None:
        """Close once every request in flight is answered: the broker or the listener stops."""
        self._finishing = True
        self._frames.drop_waiting()
        self._count_held()
        self._set_reading()
        self._close_when_done()

    def _close_when_done(self) -> None:
        if self._finishing and not self._requests.in_flight:
            self.transport.loseConnection()

    def _count_held(self) -> None:
        held = self._frames.held_bytes + self._in_flight_bytes
        if held != self.held_bytes:
            self._shared.budget.update_held_bytes(self, held)

    def _set_reading(self) -> None:
        pause = bool(self._frames.waiting) or self._short_of_memory or self._finishing or self._muting.is_active
        if pause == self._paused or not self.transport.connected:
            return
        self._paused = pause
        if pause:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    # The way of a request

    def _pump(self) -> None:
        """Start the requests that may start now, send the responses that are ready, and pause or resume reading."""
        if self._pumping:
            return
        self._pumping = True
        try:
            self._send_ready()
            self._start_some()
        except (RequestError, UnanswerableError) as problem:
            self._send_ready()
            self.cut_off(str(problem))
        except Exception as problem:
            self._give_up(problem)
        finally:
            self._pumping = False
        self._set_reading()
        self._count_held()

    def _start_some(self) -> None:
        """Start requests until the connection's turn is over."""
        waiting = self._frames.waiting
        if not waiting:
            return
        clock = self._shared.clock
        now_s = clock.seconds()
        turn_ends = now_s + (MAX_TURN_SECONDS if self.tenant is None else MAX_TENANT_TURN_SECONDS)
        for _ in range(MAX_REQUESTS_PER_TURN):
            if not self._may_start():
                # Sending responses makes room for more requests.
                self._send_ready()
                if not self._may_start():
                    return
            self._start(self._frames.take(), now_s)
            if not waiting:
                break
            now_s = clock.seconds()
            if now_s >= turn_ends:
                break
        self._send_ready()
        if waiting and self._may_start():
            self._turn_is_over = True
            clock.callLater(0, self._begin_turn)

    def _begin_turn(self) -> None:
        self._turn_is_over = False
        if self.transport.connected:
            self._pump()

    def _may_start(self) -> bool:
        return (
            bool(self._frames.waiting)
            and not self._turn_is_over
            and not self._held_up
            and not self._muting.is_active
            and self._requests.in_flight < MAX_IN_FLIGHT_REQUESTS
            and self.transport.queued_bytes + self._requests.waiting_bytes < MAX_UNSENT_BYTES
        )

    def _start(self, frame: memoryview, now_s: float) -> None:
        if self._sasl is not None and self._sasl.admits(frame):
            self._authenticate(frame, self._sasl)
            return
        incoming = self._requests.parse(frame)
        if self.watch is not None:
            self.watch.begin(incoming, self.last_received_s, now_s)
        tenant = self.tenant
        is_metered = self._shared.quotas.active or (tenant is not None and tenant.is_metered)
        meter = self._begin_metering(incoming) if is_metered else None
        context = RequestContext(
            incoming.api_version,
            incoming.client_id,
            self.peer,
            principal=self.principal,
            software=self.software,
            meter=meter,
            tenant=tenant,
        )
        result = self._shared.dispatcher.dispatch(incoming, context)
        if isinstance(result, Pending):
            result = result.unwrap_if_ready()
        if isinstance(result, Pending):
            if meter is not None:
                meter.pause(self._shared.clock.seconds())
            self._wait_for(incoming, result)
        else:
            self._answer(incoming, result)

    # Authentication

    def _authenticate(self, frame: memoryview, gate: SaslGate) -> None:
        """Answer a request, or a mechanism's bare message, that belongs to the authentication."""
        incoming, tenants = None, self._shared.tenants
        if tenants is not None:
            gate.set_scope(tenants.find_scope(self))
        try:
            if gate.takes_bare_token:
                token = gate.answer_bare(frame)
                self._send_ready()
                self.transport.send_parts([SIZE.pack(len(token)) + token])
            else:
                incoming = self._requests.parse(frame)
                if self.watch is not None:
                    self.watch.begin(incoming, self.last_received_s, self.last_received_s)
                self._answer(incoming, gate.answer(incoming, self._answer_versions))
        except gate.failure as problem:
            # No further request is started, and few bytes more are read.
            self._held_up += 1
            self._shared.clock.callLater(gate.failure_delay_s, self._end_failed, incoming, problem)
            return
        if gate.principal is not None:
            if tenants is None:
                self.principal = gate.principal
            else:
                self._end_if(tenants.join_by_user(self, gate.principal))
            self._frames.set_limit(self._shared.max_frame_bytes)
            gate.stop_clock()
            if not gate.session_is_limited:
                self._sasl = None

    def _answer_versions(self, incoming: IncomingRequest) -> Any:
        context = RequestContext(
            incoming.api_version, incoming.client_id, self.peer, software=self.software, tenant=self.tenant
        )
        return self._shared.dispatcher.answer_versions(incoming, context)

    def _end_failed(self, incoming: IncomingRequest | None, problem: AuthenticationFailedError) -> None:
        """Answer a failed authentication, and close."""
        if not self.transport.connected:
            return
        words = f"its authentication has failed on listener {self.peer.listener_name}: {problem.code.name}: {problem}"
        text = f"closing {self.peer.host}:{self.peer.port}: {words}"
        self._shared.complain(self.peer.host, text)
        if incoming is not None and problem.response is not None:
            self._answer(incoming, problem.response)
            self._send_ready()
        self._frames.drop_waiting()
        self.transport.loseConnection()

    # Quotas

    def _begin_metering(self, incoming: IncomingRequest) -> RequestMeter | None:
        shared = self._shared
        meter = incoming.meter = begin_request(
            shared.quotas,
            incoming.api_key,
            incoming.api_version,
            self.principal.name,
            incoming.client_id,
            shared.clock.seconds(),
            None if self.tenant is None else self.tenant.traffic,
        )
        return meter

    def _throttle(self, meter: RequestMeter, incoming: IncomingRequest, response: Response | None) -> None:
        """Charge a request; mute the connection if its client has used more than its quotas (KIP-219)."""
        now = self._shared.clock.seconds()
        meter.resume(now)
        throttle_ms = meter.finish(incoming.size_bytes, response is not None, now)
        if response is not None:
            declared = self._shared.dispatcher.handlers[incoming.api_key].response
            throttle_ms = raise_throttle_time(response, declared, incoming.api_version, throttle_ms)
        if throttle_ms:
            self._muting.mute(throttle_ms, meter.held_by)

    def _answer(self, incoming: IncomingRequest, response: Response | None) -> None:
        """Encode a response; one to an unknown version of ApiVersions has the layout of version 0 (KIP-511)."""
        meter = incoming.meter
        if meter is not None:
            self._throttle(meter, incoming, response)
        if self.watch is not None:
            self.watch.note_answer(incoming, response)
        version = incoming.api_version if incoming.body is not None else 0
        try:
            steps = self._requests.answer(incoming, response, version)
            writing = None if steps is None else make_steps(self._shared.clock, steps)
        except Exception:
            if response is not None:
                release_regions(response)
            raise
        if meter is not None:
            meter.charge_rest(self._shared.clock.seconds())
        if writing is not None and response is not None:
            self._held_up += 1
            writing.addCallbacks(
                self._on_written, self._on_write_failed, callbackArgs=(response,), errbackArgs=(response,)
            )

    def _on_written(self, _: None, response: Response) -> None:
        """Continue after a large response was encoded in several turns: the next request may start now."""
        self._held_up -= 1
        if self.transport.connected:
            self._pump()
            self._close_when_done()
        else:
            release_regions(response)

    def _on_write_failed(self, failure: Failure, response: Response) -> None:
        release_regions(response)
        self._give_up(failure.value)

    def _wait_for(self, incoming: IncomingRequest, pending: Pending[Response]) -> None:
        self._in_flight_bytes += incoming.size_bytes
        if self.watch is not None:
            self.watch.note_wait(incoming)
        if pending.abandonable:
            self._pending.add(pending.response)
        self._held_up += pending.in_order
        if pending.settled is not None:
            pending.settled.addCallback(lambda _: self._continue_after(pending))
        response = pending.response
        response.addBoth(self._on_settled, incoming, pending)
        response.addErrback(lambda failure: self._build_failure_response(incoming, failure))
        response.addCallback(lambda response: self._on_answered(incoming, response))
        response.addErrback(lambda failure: self._give_up(failure.value))

    def _on_settled(self, result: Any, incoming: IncomingRequest, pending: Pending[Response]) -> Any:
        self._pending.discard(pending.response)
        self._in_flight_bytes -= incoming.size_bytes
        self._release_order(pending)
        self._count_held()
        return result

    def _release_order(self, pending: Pending[Response]) -> None:
        self._held_up -= pending.in_order
        pending.in_order = False

    def _continue_after(self, pending: Pending[Response]) -> None:
        self._release_order(pending)
        if self.transport.connected:
            self._pump()

    def _build_failure_response(self, incoming: IncomingRequest, failure: Failure) -> Response:
        failure.trap(Exception)
        if failure.check(CancelledError):
            raise UnanswerableError("the request was cancelled")
        assert failure.value is not None
        return self._shared.dispatcher.build_failure_response(incoming, failure.value)

    def _on_answered(self, incoming: IncomingRequest, response: Response | None) -> None:
        if self.transport.connected:
            self._answer(incoming, response)
            self._pump()
            self._close_when_done()
            return
        if incoming.meter is not None:
            # The client is gone, and what it has used counts all the same.
            incoming.meter.finish(incoming.size_bytes, response is not None, self._shared.clock.seconds())
        if response is not None:
            release_regions(response)

    def _give_up(self, problem: BaseException | None) -> None:
        """Close the connection because a request cannot be answered; a defect is logged with its stack trace."""
        reason = str(problem)
        if not isinstance(problem, UnanswerableError):
            reason = f"a request could not be served: {problem!r}"
            log.error("a request of %s:%d could not be served", self.peer.host, self.peer.port, exc_info=problem)
        if self.transport.connected:
            self.cut_off(reason)

    def _send_ready(self) -> None:
        parts = self._requests.take_parts()
        if parts:
            self.transport.send_parts(parts)
        watch = self.watch
        if watch is not None and watch.is_due:
            watch.note_sent(self._requests.in_flight, not self.transport.queued_bytes)
