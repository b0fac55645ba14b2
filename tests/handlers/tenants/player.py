"""A client whose requests two worlds answer, and the form of answers in which both must be the same."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping
from random import Random
from typing import Any

from kafkacompat.metadata.topic_names import INTERNAL_TOPICS
from kafkacompat.wire import entities
from kafkacompat.wire.apis import find_api
from kafkacompat.wire.compiler import decode_message
from kafkacompat.wire.primitives import ZERO_UUID
from kafkacompat.wire.schema import Request, Struct
from tests.handlers.tenants.hostile import Pool, RequestMaker
from tests.handlers.tenants.world import World

LEARNED = ("topic_id", "member_id", "leader", "session_id", "producer_id")
"""The fields of responses with an id that a broker draws; clients send these again."""
WORD_LIKE_ID = re.compile(r"(?<![\w-])[\w-]{22}(?![a-zA-Z0-9_])", re.ASCII)
MEMBER_ID = re.compile(r"\w+-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NO_IDS: Mapping[str, tuple[Any, ...]] = {
    "topic_id": (ZERO_UUID,),
    "member_id": ("",),
    "leader": ("",),
    "session_id": (0,),
    "producer_id": (-1, 0),
}
TIMES = frozenset({"transaction_start_time_ms", "log_append_time_ms", "last_timestamp", "timestamp"})
NOT_OF_INSTANCES = frozenset({"cluster_id", "current_txn_start_offset", "total_bytes", "usable_bytes", "log_dir"})
NAMES = ("name", "topic", "topic_name", "group_id", "transactional_id", "resource_name")
BROKER_LOGGER = 8
MAX_LEARNED = 40
SENT_AS = {"leader": "member_id", "topic_id": entities.TOPIC_ID}


class Player:
    """A client of an instance, or of the whole cluster, in one world."""

    def __init__(
        self, world: World, instance: str | None, pools: Pool, hidden: Collection[str] = NOT_OF_INSTANCES
    ) -> None:
        self.world = world
        self.instance = instance
        self._hidden = hidden
        self.pools: dict[str, list[Any]] = {kind: list(values) for kind, values in pools.items()}
        self._given: dict[Any, str] = {}
        self._counts: dict[str, int] = {}

    def make(self, api_key: int, version: int, seed: int) -> Request:
        """Make up a request; two players that have learned the same make the same."""
        return RequestMaker(Random(seed), self.pools).make(api_key, version)

    def send(self, request: Request, version: int) -> tuple[bytes | None, Any]:
        """Return the bytes of the answer, and its form for comparisons."""
        data = self.world.ask_bytes(self.instance, request, version)
        if data is None:
            return None, None
        response = decode_message(find_api(request.API_KEY).response, data, version)
        return data, self._normalize(response, version)

    def _normalize(self, value: Any, version: int, name: str = "") -> Any:
        if isinstance(value, Struct):
            fields = {key: field for key, field in type(value).FIELDS.items() if version in field.versions}
            return {key: self._normalize(getattr(value, key), version, key) for key in fields}
        if isinstance(value, list):
            shown = [item for item in value if not _is_internal(item)]
            return [self._normalize(item, version, name) for item in sorted(shown, key=self._find_order)]
        if name == "records" and value is not None:
            # Records hold times, and ids of producers.
            return len(value)
        if name in self._hidden:
            return None
        if name in TIMES:
            return value if value in (None, -1, 0) else f"<{name}>"
        if name in LEARNED and value is not None and value not in NO_IDS[name]:
            return self._learn(SENT_AS.get(name, name), value)
        return self._normalize_text(value) if isinstance(value, str) else value

    def _find_order(self, item: Any) -> tuple[str, str]:
        """Return what a list is sorted by: answers for everything have no order, and assignments that of random ids."""
        return _name_of(item), self._find_topic(getattr(item, "topic_id", ZERO_UUID))

    def _find_topic(self, topic_id: bytes) -> str:
        """Return the client's name of a topic; "" if there is none with this id."""
        services = self.world.services
        names = None if self.instance is None else services.instances.by_name[self.instance].names
        physical_id = topic_id if names is None else names.to_physical[entities.TOPIC_ID][topic_id]
        topic = services.metadata.image.topics_by_id.get(physical_id)
        if topic is None:
            return ""
        return topic.name if names is None else str(names.to_client[entities.TOPIC][topic.name])

    def _normalize_text(self, text: str) -> str:
        text = WORD_LIKE_ID.sub(lambda match: self._given.get(urlsafe_b64decode(match[0] + "=="), "<id>"), text)
        return MEMBER_ID.sub("<member>", text)

    def _learn(self, kind: str, value: Any) -> str:
        if value in self.pools.get(kind, ()) and value not in self._given:
            return f"{kind} {value!r}"
        if value not in self._given:
            label = f"{kind} {self._find_topic(value)}" if kind == entities.TOPIC_ID else kind
            count = self._counts[label] = self._counts.get(label, 0) + 1
            self._given[value] = f"{label} #{count}"
            pool = self.pools.setdefault(kind, [])
            if len(pool) < MAX_LEARNED:
                pool.append(value)
        return self._given[value]


def _name_of(item: Any) -> str:
    """Return the name in an element of a response; "" if it has none."""
    return next((value for name in NAMES if isinstance(value := getattr(item, name, None), str)), "")


def _is_internal(item: Any) -> bool:
    """Whether an element of a response is a topic or a logger of the brokers, which clients of instances do not see."""
    return _name_of(item) in INTERNAL_TOPICS or getattr(item, "resource_type", None) == BROKER_LOGGER


def find_difference(left: Any, right: Any, where: str = "") -> str:
    """Say where two forms of answers differ; "" if they are the same."""
    if isinstance(left, Mapping) and isinstance(right, Mapping) and left.keys() == right.keys():
        return next(filter(None, (find_difference(left[key], right[key], f"{where}.{key}") for key in left)), "")
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        pairs = enumerate(zip(left, right, strict=True))
        return next(filter(None, (find_difference(*pair, f"{where}[{index}]") for index, pair in pairs)), "")
    return "" if left == right else f"{where}: {left!r} != {right!r}"
