"""What one request uses of its client's quotas, and how long the client is throttled for it (KIP-219, KIP-599).

The connection creates a meter for a request of a client that has quotas, and the handlers of Fetch, CreateTopics, DeleteTopics and
CreatePartitions use it. The connection charges the other uses when the response is ready. It sends the response at once, with the
longest throttle time of all kinds, and then reads nothing from the client for that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkacompat.metrics.throttling import OTHERS, ClientNames
from kafkacompat.quotas.client_quotas import EXEMPT_APIS, NO_USES, ClientQuotas, ClientUses
from kafkacompat.quotas.limits import QuotaKind
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.headers import FETCH_KEY, PRODUCE_KEY
from kafkacompat.wire.primitives import MAX_INT32

if TYPE_CHECKING:
    from kafkacompat.tenancy.traffic.metering import Flow, InstanceTraffic

_KINDS = (QuotaKind.PRODUCE, QuotaKind.FETCH, QuotaKind.REQUEST, QuotaKind.MUTATION)
"""The kinds in the order of `ClientUses`."""
STRICT_VERSIONS = {
    19: 6,  # CreateTopics
    20: 5,  # DeleteTopics
    37: 3,  # CreatePartitions
}
"""From these versions on a mutation after the end of the quota is rejected; older clients are throttled only (KIP-599)."""


class RequestMeter:
    """Charges one request; times are those of one steady clock, in seconds.

    ``throttle_ms`` is the longest throttle time so far. *traffic* is that of the client's instance. ``held_by`` is the direction of it whose
    share is used up once the request is charged: its client waits until that is not so.
    """

    __slots__ = (
        "_api_key",
        "_api_version",
        "_begun_s",
        "_busy_s",
        "_charged",
        "_is_time_charged",
        "_kind",
        "_mutation_ends_ms",
        "_quotas",
        "_traffic",
        "_uses",
        "held_by",
        "throttle_ms",
    )

    def __init__(
        self,
        quotas: ClientQuotas,
        uses: ClientUses,
        api_key: int,
        api_version: int,
        begun_s: float,
        traffic: InstanceTraffic | None = None,
    ) -> None:
        self.throttle_ms = 0
        self.held_by: Flow | None = None
        self._traffic = traffic
        self._quotas = quotas
        self._uses = uses
        self._api_key = api_key
        self._api_version = api_version
        self._begun_s: float | None = begun_s
        self._busy_s = 0.0
        self._kind = QuotaKind.REQUEST
        self._is_time_charged = False
        self._mutation_ends_ms = 0
        self._charged: frozenset[str] = frozenset()

    def exempt(self) -> None:
        """Charge nothing: a follower fetches."""
        self._uses = NO_USES
        self._traffic = None

    # The time of the reactor's thread

    def pause(self, now_s: float) -> None:
        """Stop counting time: the response waits for something else."""
        if self._begun_s is not None:
            self._busy_s += now_s - self._begun_s
            self._begun_s = None

    def resume(self, now_s: float) -> None:
        """Count time again."""
        if self._begun_s is None:
            self._begun_s = now_s

    def _charge_time(self, now_s: float) -> None:
        """Charge the time up to now, once; what follows counts for the next check."""
        rate = self._uses.request
        if rate is None or self._is_time_charged:
            return
        self._is_time_charged = True
        self._throttle(QuotaKind.REQUEST, rate.record(self._take_percentage(now_s), _to_ms(now_s)))

    def _take_percentage(self, now_s: float) -> float:
        """Return the time since the last call, in hundredths of a second: in one second those are percents."""
        if self._begun_s is not None:
            self._busy_s += now_s - self._begun_s
            self._begun_s = now_s
        busy_s, self._busy_s = self._busy_s, 0.0
        return busy_s * 100

    def _throttle(self, kind: QuotaKind, throttle_ms: int) -> None:
        if throttle_ms > self.throttle_ms:
            self.throttle_ms, self._kind = throttle_ms, kind

    # What handlers charge

    @property
    def max_fetch_bytes(self) -> int | None:
        """The bytes that one fetch may return without being throttled for sure; None without a limit."""
        rate, most_bytes = self._uses.fetch, None if self._traffic is None else self._traffic.fetched.most_bytes
        if rate is None:
            return most_bytes
        number, length_ms = self._quotas.windows
        most_of_client = int(min(rate.limit * (number - 1) * length_ms / 1000, MAX_INT32))
        return most_of_client if most_bytes is None else min(most_of_client, most_bytes)

    def charge_fetch(self, size_bytes: int, now_s: float) -> bool:
        """Charge a fetch's time, and the size of its response; return True if the response must be empty instead.

        A response that is not sent does not count. One that is larger than the quota of all windows is sent if nothing is left of
        what the client fetched before: else it would never be sent. A response is sent whole while its instance has anything left of its
        share; the client waits after it.
        """
        self._charge_time(now_s)
        rate, now_ms = self._uses.fetch, _to_ms(now_s)
        if self._traffic is not None and self._hold(self._traffic.fetched, now_ms):
            return True
        if rate is not None:
            never_fits = size_bytes > rate.limit * self._quotas.windows.span_ms / 1000
            is_first = rate.measure(now_ms) <= 0
            throttle_ms = rate.record(size_bytes, now_ms)
            if not (never_fits and is_first):
                self._throttle(QuotaKind.FETCH, throttle_ms)
            if self.throttle_ms:
                rate.record_unchecked(-size_bytes, now_ms)
        if self._traffic is not None and not self.throttle_ms:
            self._traffic.fetched.charge(size_bytes, now_ms)
        return self.throttle_ms > 0

    def _hold(self, flow: Flow, now_ms: int) -> bool:
        """Let the client wait until its instance has anything left of its share; return whether it has to wait."""
        throttle_ms = flow.find_throttle_ms(now_ms)
        if throttle_ms:
            self.held_by = flow
            self.throttle_ms = max(self.throttle_ms, throttle_ms)
        return throttle_ms > 0

    def admit_mutation(self, topic: str, partitions: int, now_s: float) -> None:
        """Charge the creation or deletion of a topic's partitions, once though it may be planned again.

        Raises KafkaError THROTTLING_QUOTA_EXCEEDED if the client has used up its quota, and its version knows that error.
        """
        bucket, now_ms = self._uses.mutation, _to_ms(now_s)
        if bucket is None or topic in self._charged:
            return
        is_strict = self._api_version >= STRICT_VERSIONS.get(self._api_key, 0)
        if is_strict and (throttle_ms := bucket.find_throttle_ms(now_ms)):
            # A Metadata request that would create topics automatically is answered without them, and not throttled.
            if self._api_key in STRICT_VERSIONS:
                self._mutation_ends_ms = now_ms + throttle_ms
            reason = (
                f"the client has used up its controller_mutation_rate={bucket.limit:g}: try again in {throttle_ms} ms"
            )
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, reason)
        bucket.record(partitions, now_ms)
        if not is_strict:
            self._mutation_ends_ms = now_ms + bucket.find_throttle_ms(now_ms)
        self._charged |= {topic}

    # What the connection charges

    def finish(self, size_bytes: int, has_response: bool, now_s: float) -> int:
        """Charge what no handler has charged, and return the throttle time in milliseconds.

        A Produce request counts with its header, as in Kafka.
        The time of a request without a response (acks=0) counts, but throttles nothing.
        """
        now_ms = _to_ms(now_s)
        if self._api_key == PRODUCE_KEY and self._uses.produce is not None:
            self._throttle(QuotaKind.PRODUCE, self._uses.produce.record(size_bytes, now_ms))
        if has_response:
            self._charge_time(now_s)
        # Part of the mutations' throttle time has passed while they were carried out.
        self._throttle(QuotaKind.MUTATION, self._mutation_ends_ms - now_ms)
        by_quotas_ms = 0 if self.held_by is not None else self.throttle_ms
        if self._traffic is not None:
            self._charge_traffic(self._traffic, size_bytes, now_ms)
        if by_quotas_ms:
            self._quotas.throttled[self._kind].add(self._find_scope(), by_quotas_ms, now_ms)
        return self.throttle_ms

    def _charge_traffic(self, traffic: InstanceTraffic, size_bytes: int, now_ms: int) -> None:
        """Charge the client's instance; each request that uses its share up counts as a wait."""
        if self._api_key == PRODUCE_KEY:
            traffic.produced.charge(size_bytes, now_ms)
            self._hold(traffic.produced, now_ms)
        elif self._api_key == FETCH_KEY:
            self._hold(traffic.fetched, now_ms)
        if self.held_by is not None:
            self.held_by.throttled_ms += self.throttle_ms

    def _find_scope(self) -> ClientNames:
        """Return the clients that share the quota for which this one is throttled."""
        use = self._uses[_KINDS.index(self._kind)]
        return OTHERS if use is None else use.scope

    def charge_rest(self, now_s: float) -> None:
        """Charge the time of encoding the response, which the next request is throttled for."""
        if self._uses.request is not None:
            self._uses.request.record_unchecked(self._take_percentage(now_s), _to_ms(now_s))


def begin_request(
    quotas: ClientQuotas,
    api_key: int,
    api_version: int,
    user: str,
    client_id: str,
    begun_s: float,
    traffic: InstanceTraffic | None = None,
) -> RequestMeter | None:
    """Return the meter of a request, None if its client has no quota or the API is exempt.

    *traffic* is that of the client's instance, whose Produce and Fetch requests are always metered.
    """
    if api_key in EXEMPT_APIS:
        return None
    uses = quotas.find_uses(user, client_id, _to_ms(begun_s)) if quotas.active else None
    if api_key not in (PRODUCE_KEY, FETCH_KEY):
        traffic = None
    if uses is None and traffic is None:
        return None
    return RequestMeter(quotas, uses or NO_USES, api_key, api_version, begun_s, traffic)


def _to_ms(seconds: float) -> int:
    return int(seconds * 1000)
