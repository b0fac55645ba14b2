"""The application of a fault to one request: the broker carries it out or not, and its response is changed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from copy import copy
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from kafkacompat.faults.client_work import ClientWork
from kafkacompat.faults.damage import RECORD_DAMAGE, encode_frame, read_records
from kafkacompat.faults.error_responses import METADATA, must_be_patched, patch_response, reject_request
from kafkacompat.faults.request_facts import RequestReader
from kafkacompat.faults.rules import FaultRule
from kafkacompat.faults.targets import TopicKey, list_topics, merge, select
from kafkacompat.handlers.context import Pending, UnanswerableError
from kafkacompat.handlers.throttle_time import raise_throttle_time
from kafkacompat.server.direct_requests import decode_response
from kafkacompat.server.outgoing import release_regions
from kafkacompat.wire import entities
from kafkacompat.wire.apis.fetch import FetchableTopicResponse, PartitionData
from kafkacompat.wire.connection import EncodedFrames, IncomingRequest
from kafkacompat.wire.headers import FETCH_KEY

if TYPE_CHECKING:
    from kafkacompat.faults.tools import FaultTools
    from kafkacompat.handlers.context import RequestContext
    from kafkacompat.server.dispatcher import Answer
    from kafkacompat.wire.schema import Response

log = logging.getLogger(__name__)

TOPIC_IDS_FROM = 13
"""The first version of Fetch that names topics by their ids."""
NO_FAULT = FaultRule(action="delay")


class FaultApplication:
    """Applies the rules to one request of a client. *dispatch* lets the broker carry it out; *declared* is the class of its response."""

    def __init__(
        self,
        tools: FaultTools,
        dispatch: Callable[[IncomingRequest, RequestContext], Answer],
        incoming: IncomingRequest,
        context: RequestContext,
        declared: type[Response],
    ) -> None:
        self._tools = tools
        self._dispatch_to_broker = dispatch
        self._incoming = incoming
        self._context = context
        self._version = incoming.api_version
        self._declared = declared
        self._reader = RequestReader(incoming, context, tools.services)
        self._rule = NO_FAULT

    def begin(self) -> Answer:
        """Answer the request, with a fault if a rule chooses it."""
        facts = self._reader.read()
        rule = self._tools.faults.choose(facts)
        if rule is None:
            return self._carry_out() if self._may_damage_records else self._dispatch()
        log.info("Fault %s: %s v%d of client %r", rule.action, facts.api, facts.version, facts.client_id)
        self._rule = rule
        return _STARTS.get(rule.action, FaultApplication._carry_out)(self)

    def _dispatch(self) -> Answer:
        return self._dispatch_to_broker(self._incoming, self._context)

    @property
    def _may_damage_records(self) -> bool:
        return self._incoming.api_key == FETCH_KEY and self._tools.faults.has_record_rules

    # Ways to begin

    def _carry_out(self) -> Answer:
        """Carry out the request, and change its response."""
        return self._respond_later(self._dispatch(), self._change)

    def _fail(self) -> Answer:
        """Answer with the error, and carry out the part of the request that no rule is about."""
        rule, incoming, version = self._rule, self._incoming, self._version
        body: Any = incoming.body
        assert rule.error is not None
        if body is None or rule.carry_out:
            return self._carry_out()
        if must_be_patched(incoming.api_key, version):
            incoming.body = _make_harmless(body, incoming.api_key)
            return self._carry_out()
        rejected, rest = body, None
        if rule.has_targets:
            covers = self._reader.build_covers(rule)
            rejected = select(body, version, covers)
            rest = select(body, version, lambda key, partition: not covers(key, partition))
        rejection = reject_request(rejected, version, rule.error, by_topic=rule.has_targets)
        if rest is None or next(list_topics(rest, version), None) is None:
            return self._respond_later(rejection, self._send_rejection)
        incoming.body = rest

        async def add_rejection(response: Any) -> Any:
            if response is None:
                return self._answer_nothing()
            response = decode_response(response, self._declared, version)
            merge(response, rejection)
            return response

        return self._respond_later(self._dispatch(), add_rejection)

    def _drop(self) -> Answer:
        if self._rule.carry_out:
            return self._carry_out()
        return Pending(Deferred(), abandonable=True)

    def _disconnect(self) -> Answer:
        if self._rule.carry_out or self._rule.delay_ms:
            answer = self._dispatch() if self._rule.carry_out else None
            return self._respond_later(answer, self._refuse)
        raise UnanswerableError("a rule of faults disconnects it")

    def _begin_pause(self) -> Answer:
        self._tools.pause.begin(self._rule.amount)
        return self._tools.pause.answer_afterwards(self._dispatch, self._incoming.size_bytes)

    def _begin_move(self) -> Answer:
        tenant, topic = self._context.tenant, str(self._rule.topic)
        physical = topic if tenant is None else tenant.names.to_physical[entities.TOPIC][topic]
        self._tools.move_leader(physical, self._rule.partition or 0, self._rule.amount)
        return self._dispatch()

    # Changes of responses

    async def _change(self, response: Any) -> Any:
        if response is None and self._rule.action in ("error", "duplicate"):
            return self._answer_nothing()
        return await _CHANGES[self._rule.action](self, response)

    def _answer_nothing(self) -> None:
        """Answer a Produce with acks=0, which has no response; for an error the connection is closed, as Kafka does it."""
        if self._rule.action == "error":
            raise UnanswerableError("a rule of faults rejects a Produce with acks=0")

    async def _send_rejection(self, response: Any) -> Any:
        request: Any = self._incoming.body
        return self._answer_nothing() if getattr(request, "acks", 1) == 0 else response

    async def _keep(self, response: Any) -> Any:
        return response

    async def _refuse(self, response: Any) -> Any:
        if response is not None:
            release_regions(response)
        raise UnanswerableError("a rule of faults disconnects it")

    async def _write_error(self, response: Any) -> Any:
        rule = self._rule
        assert rule.error is not None
        response = decode_response(response, self._declared, self._version)
        version = self._version if self._incoming.body is not None else 0
        covers = self._reader.build_covers(rule) if rule.has_targets else None
        if self._incoming.api_key == FETCH_KEY and not response.error_code:
            self._name_partitions(response)
        patch_response(response, version, rule.error, covers, by_partition=rule.partition is not None)
        return response

    def _name_partitions(self, response: Any) -> None:
        """Let the response to a Fetch name each covered partition of its session."""
        names = [
            (self._reader.find_name(topic.key), index)
            for topic in list_topics(response, self._version)
            for index, _ in topic.partitions
        ]
        for target, key in self._reader.keys.items():
            if target.partition is None or target in names or not self._rule.covers(*target):
                continue
            _find_topic(response.responses, key, self._version).partitions.append(
                PartitionData(partition_index=target.partition, aborted_transactions=None)
            )

    async def _damage_records(self, response: Any) -> Any:
        """Damage the records of a response to a Fetch if a rule chooses it."""
        rule = self._tools.faults.choose_records(self._reader.read_records(response))
        if rule is None:
            return response
        log.info("Fault %s: Fetch v%d of client %r", rule.action, self._version, self._incoming.client_id)
        await self._wait(rule, response)
        covers, damage = self._reader.build_covers(rule), RECORD_DAMAGE[rule.action]
        for topic in list_topics(response, self._version):
            for index, data in topic.partitions:
                if covers(topic.key, index) and data.records:
                    data.records = damage(read_records(data.records))
        return response

    async def _lose(self, response: Any) -> Any:
        if response is None:
            return None
        release_regions(response)
        return await Deferred()

    async def _cut(self, response: Any) -> Any:
        data = b"" if response is None else encode_frame(self._incoming, response)
        connection = self._tools.find_connection(self._context.peer)
        if connection is not None:
            connection.end_with(data[: self._rule.amount])
        return await Deferred()

    async def _duplicate(self, response: Any) -> Any:
        return EncodedFrames(data=encode_frame(self._incoming, response) * 2)

    async def _throttle(self, response: Any) -> Any:
        """Name a throttle time in the response, and read nothing from the client for that time (KIP-219)."""
        throttle_ms = self._rule.amount
        if response is not None:
            raise_throttle_time(response, self._declared, self._version, throttle_ms)
        connection = self._tools.find_connection(self._context.peer)
        if connection is not None:
            connection.mute(throttle_ms)
        return response

    # Waiting

    async def _wait(self, rule: FaultRule, response: Any) -> None:
        if not rule.delay_ms:
            return
        try:
            await deferLater(self._tools.services.clock, rule.delay_ms / 1000)  # type: ignore[arg-type]
        except CancelledError:
            if response is not None:
                release_regions(response)
            raise

    def _respond_later(self, answer: Answer, change: Callable[[Any], Awaitable[Any]]) -> Answer:
        """Return the answer after the rule's delay, changed; its order among the requests stays.

        If the client disconnects, a request that must complete does so, and its response is released without the delay.
        """
        waiting = answer if isinstance(answer, Pending) else None
        work = ClientWork(must_complete=waiting is not None and not waiting.abandonable)

        async def respond() -> Any:
            response: Any = answer if waiting is None else await waiting.response
            work.must_complete = False
            if work.has_no_client:
                return response
            if self._may_damage_records and response is not None:
                response = await self._damage_records(response)
            if self._rule.delay_ms:
                await self._wait(self._rule, response)
            return await change(response)

        pending = Pending(work.begin(respond()), abandonable=True)
        if waiting is not None:
            pending.in_order, pending.settled = waiting.in_order, waiting.settled
        return pending


_STARTS: dict[str, Callable[[FaultApplication], Answer]] = {
    "error": FaultApplication._fail,
    "drop": FaultApplication._drop,
    "disconnect": FaultApplication._disconnect,
    "pause_ms": FaultApplication._begin_pause,
    "move_leader": FaultApplication._begin_move,
}
"""The actions that do not simply carry out the request and change its response."""

_CHANGES: dict[str, Callable[[FaultApplication, Any], Awaitable[Any]]] = {
    "delay": FaultApplication._keep,
    "error": FaultApplication._write_error,
    "drop": FaultApplication._lose,
    "disconnect": FaultApplication._refuse,
    "cut_after_bytes": FaultApplication._cut,
    "duplicate": FaultApplication._duplicate,
    "throttle_ms": FaultApplication._throttle,
}


def _make_harmless(body: Any, api_key: int) -> Any:
    """Return a request that waits for nothing and creates nothing."""
    changed = copy(body)
    if api_key == FETCH_KEY:
        changed.max_wait_ms = 0
    elif api_key == METADATA:
        changed.allow_auto_topic_creation = False
    return changed


def _find_topic(topics: list[Any], key: TopicKey, version: int) -> Any:
    """Return the part of a topic in a response to a Fetch; a new one if it has none."""
    field = "topic_id" if version >= TOPIC_IDS_FROM else "topic"
    part = next((topic for topic in topics if getattr(topic, field) == key), None)
    if part is None:
        part = FetchableTopicResponse(**{field: key})  # type: ignore[arg-type]
        topics.append(part)
    return part
