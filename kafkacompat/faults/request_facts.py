"""The facts of a request that rules compare: its topics by the names that its client knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkacompat.faults.error_responses import METADATA
from kafkacompat.faults.parsing import name_api
from kafkacompat.faults.rules import FaultRule, RequestFacts, RequestTarget
from kafkacompat.faults.targets import Covers, TopicKey, list_topics
from kafkacompat.wire import entities
from kafkacompat.wire.headers import FETCH_KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkacompat.handlers.context import RequestContext, Services
    from kafkacompat.wire.connection import IncomingRequest
    from kafkacompat.wire.schema import Struct


class RequestReader:
    """Reads the facts of one request. ``services`` know the ids of topics and the partitions of fetch sessions."""

    def __init__(self, incoming: IncomingRequest, context: RequestContext, services: Services) -> None:
        self._incoming = incoming
        self._context = context
        self._services = services
        self.keys: dict[RequestTarget, TopicKey] = {}
        """How the client names the topic of each target."""

    def read(self) -> RequestFacts:
        """Return the facts of the request."""
        targets = [] if self._incoming.body is None else list(self._list_targets(self._incoming.body))
        return self._build(targets)

    def read_records(self, response: Any) -> RequestFacts:
        """Return the facts of a Fetch, about the partitions only whose records the response has."""
        topics = list_topics(response, self._incoming.api_version)
        return self._build(
            [
                RequestTarget(self.find_name(topic.key), index)
                for topic in topics
                for index, data in topic.partitions
                if _has_records(data)
            ]
        )

    def _build(self, targets: list[RequestTarget]) -> RequestFacts:
        incoming, context = self._incoming, self._context
        return RequestFacts(
            name_api(incoming.api_key),
            incoming.api_version,
            incoming.client_id,
            context.peer.listener_name,
            str(context.principal),
            targets,
            self._names_all_topics(),
        )

    def _names_all_topics(self) -> bool:
        body: Any = self._incoming.body
        if body is None or self._incoming.api_key != METADATA:
            return False
        return body.topics is None or (self._incoming.api_version == 0 and not body.topics)

    def _list_targets(self, body: Struct) -> Iterator[RequestTarget]:
        if self._incoming.api_key == FETCH_KEY:
            yield from self._list_session()
        for topic in list_topics(body, self._incoming.api_version):
            name = self.find_name(topic.key)
            indexes: list[int | None] = [index for index, _ in topic.partitions]
            for index in indexes or [None]:
                target = RequestTarget(name, index)
                self.keys[target] = topic.key
                yield target

    def _list_session(self) -> Iterator[RequestTarget]:
        """Yield the partitions of the session that a Fetch continues, in the names of the client."""
        request: Any = self._incoming.body
        sessions, tenant = self._services.fetch_sessions, self._context.tenant
        sessions = sessions if tenant is None else sessions.of_instance(tenant)
        session = next((session for session in sessions if session.session_id == request.session_id), None)
        if session is None or request.session_epoch <= 0:
            return
        forgotten = {
            (getattr(topic, "topic_id", None) or topic.topic, index)
            for topic in request.forgotten_topics_data
            for index in topic.partitions
        }
        for physical, index in session.partitions:
            key = physical
            if tenant is not None:
                kind = entities.TOPIC if isinstance(physical, str) else entities.TOPIC_ID
                key = tenant.names.to_client[kind][physical]
            if (key, index) not in forgotten:
                target = RequestTarget(self.find_name(key), index)
                self.keys[target] = key
                yield target

    def find_name(self, key: TopicKey) -> str:
        """Return the name of a topic as its client knows it; "" for an id that no topic has."""
        if isinstance(key, str):
            return key
        tenant = self._context.tenant
        physical_id = key if tenant is None else tenant.names.to_physical[entities.TOPIC_ID][key]
        topic = self._services.metadata.image.topics_by_id.get(physical_id)
        if topic is None:
            return ""
        return topic.name if tenant is None else str(tenant.names.to_client[entities.TOPIC][topic.name])

    def build_covers(self, rule: FaultRule) -> Covers:
        """Return the function that says whether a rule is about a partition of a topic, by its key."""
        return lambda key, partition: rule.covers(self.find_name(key), partition)


def _has_records(data: Any) -> bool:
    records = getattr(data, "records", None)
    return records is not None and (getattr(records, "size_bytes", None) or len(records)) > 0
