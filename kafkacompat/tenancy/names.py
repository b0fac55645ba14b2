"""The names of one instance: what its clients call a thing, and the physical name that the brokers give it.

A physical name is the instance's prefix with the client's name: ``shop.orders``. No prefix is the beginning of another one, so no
two instances can name the same thing. A topic whose physical name would be longer than 249 characters gets a short form that ends
in a keyed hash. Adopted topics, groups, transactional ids and users keep their physical names, by a table.

Topic ids are permuted by a secret of the instance (`topic_ids`). So an id of another instance names nothing here.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from kafkacompat.metadata.topic_names import MAX_NAME_LENGTH, is_legal_name
from kafkacompat.patterns import Pattern, PatternError
from kafkacompat.tenancy.group_bytes import GroupBytes
from kafkacompat.tenancy.topic_ids import PermutedIds
from kafkacompat.wire import entities
from kafkacompat.wire.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.primitives import format_uuid

FOREIGN: Any = object()
"""Stands for the name of something that is not the instance's; the element of a response that holds it is left out."""

MAX_CACHED = 4096
MAX_CACHED_CHARACTERS = 128 * 1024
"""What the remembered names of one kind have together: there may be thousands of instances whose clients choose long names."""
MAX_CACHED_LENGTH = MAX_NAME_LENGTH - 1
"""Longer names are not remembered: clients choose them, and a name may have tens of thousands of characters.

A topic with a name of the full length may have a short form, whose long name becomes known later.
"""
MAX_ID_BYTES = 32_000
"""The longest physical name of a group, a transactional id or a user; a record holds 32,767 bytes."""
HASH_DIGITS = 32
ILLEGAL = "!"
"""Begins the physical name of a topic that cannot be renamed: no topic may have it."""
ALL_NAMES = "*"

_ID = "[a-zA-Z0-9_-]{21}[AQgw]"
_TOPIC_ID_IN_TEXT = re.compile(rf"(?<=the id ){_ID}(?![a-zA-Z0-9_-])|(?<![a-zA-Z0-9._-]){_ID}(?=-[0-9])")
"""A topic's id in base64 for URLs, after "the id " or before the number of a partition. Only four letters can end such an id.

The ids of members have the same form.
"""
_NAME_IN_TEXT = re.compile(r"[a-zA-Z0-9._-]+")

LOG_DIRECTORY_SHOWN = "/kafkacompat"
"""The one log directory that an instance's clients see."""


class CachedNames(dict[Any, Any]):
    """A translation that is remembered for the names that were last used."""

    def __init__(self, translate: Callable[[Any], Any]) -> None:
        super().__init__()
        self._translate = translate
        self._characters = 0

    def __missing__(self, name: Any) -> Any:
        translated = self._translate(name)
        if len(name) > MAX_CACHED_LENGTH:
            return translated
        if len(self) >= MAX_CACHED or self._characters + len(name) > MAX_CACHED_CHARACTERS:
            self.clear()
        self._characters += len(name)
        self[name] = translated
        return translated

    def clear(self) -> None:
        """Forget all names."""
        super().clear()
        self._characters = 0


class Computed:
    """A translation that is computed for each use: texts and bytes differ nearly always."""

    def __init__(self, translate: Callable[[Any], Any]) -> None:
        self._translate = translate

    def __getitem__(self, name: Any) -> Any:
        return self._translate(name)


Translations = Mapping[str, Any]
"""By entity: an object whose ``[name]`` translates a name."""


def _with_empty_ids(translations: Translations) -> Translations:
    """Return translations in which an empty id of a group or a transaction stays empty."""

    def keep_empty(translate: Any) -> Computed:
        return Computed(lambda name: translate[name] if name else name)

    ids = (entities.GROUP, entities.TRANSACTIONAL_ID)
    return {**translations, **{entity: keep_empty(translations[entity]) for entity in ids}}


class RenamedTopics:
    """A reversible change of topic names that an instance's operator has configured: two regular expressions.

    A name for which the second one does not undo the first has no physical name.
    """

    def __init__(self, forth: tuple[str, str], back: tuple[str, str]) -> None:
        import re2  # Most instances have none.

        self._forth, self._forth_text = re2.compile(forth[0]), forth[1]
        self._back, self._back_text = re2.compile(back[0]), back[1]

    def rename(self, name: str) -> str | None:
        """Return the renamed form; None if it cannot be turned back."""
        renamed: str = self._forth.sub(self._forth_text, name)
        return renamed if self.restore(renamed) == name else None

    def restore(self, renamed: str) -> str:
        """Return the name that clients know."""
        restored: str = self._back.sub(self._back_text, renamed)
        return restored


class Names:
    """Translates names between an instance's clients and the brokers.

    ``to_physical`` and ``to_client`` hold a translation for each kind of name. Those with ``_or_empty`` leave empty ids of groups and
    transactions empty. *tables* has the physical names of adopted things, by entity. *find_long_name* returns the client's name of a
    topic with a short form, or None; *find_topic_name* returns the physical name of the topic with an id, or None.
    """

    def __init__(
        self,
        prefix: str,
        secret: bytes,
        cluster_id: str,
        tables: Mapping[str, Mapping[str, str]],
        renamed: RenamedTopics | None = None,
        find_long_name: Callable[[str], str | None] = lambda _: None,
        find_topic_name: Callable[[bytes], str | None] = lambda _: None,
    ) -> None:
        self.prefix = prefix
        self.cluster_id = cluster_id
        self._secret = secret
        self._ids = PermutedIds(secret)
        self.tables = tables
        self._adopted = {kind: {physical: name for name, physical in table.items()} for kind, table in tables.items()}
        self._renamed = renamed
        self._find_long_name = find_long_name
        self._find_topic_name = find_topic_name
        self._long_names: dict[str, str] = {}
        revealed, hidden = CachedNames(self._ids.reveal), CachedNames(self._ids.hide)
        same = Computed(lambda value: value)
        self.to_physical: Translations = {
            entities.TOPIC: CachedNames(self._find_physical_topic),
            entities.TOPIC_ID: revealed,
            entities.GROUP: CachedNames(lambda name: self._find_physical(entities.GROUP, name)),
            entities.TRANSACTIONAL_ID: CachedNames(lambda name: self._find_physical(entities.TRANSACTIONAL_ID, name)),
            entities.USER: CachedNames(self._find_physical_user),
            entities.PRINCIPAL: Computed(self._find_physical_principal),
            entities.CLUSTER: same,
            entities.TOPIC_PATTERN: Computed(self._wrap_pattern),
            entities.TRANSACTIONAL_ID_PATTERN: Computed(self._wrap_pattern),
            entities.SUBSCRIPTION: GroupBytes(ConsumerProtocolSubscription, self._rename_to_physical),
            entities.ASSIGNMENT: GroupBytes(ConsumerProtocolAssignment, self._rename_to_physical),
            entities.LOG_DIRECTORY: same,
            entities.CLIENT_INSTANCE: revealed,
            entities.TEXT: same,
        }
        self.to_client: Translations = {
            entities.TOPIC: CachedNames(self._find_client_topic),
            entities.TOPIC_ID: hidden,
            entities.GROUP: CachedNames(lambda name: self._find_client(entities.GROUP, name)),
            entities.TRANSACTIONAL_ID: CachedNames(lambda name: self._find_client(entities.TRANSACTIONAL_ID, name)),
            entities.USER: Computed(self._find_client_user),
            entities.PRINCIPAL: Computed(self._find_client_principal),
            entities.CLUSTER: Computed(lambda shown: cluster_id if shown else shown),
            entities.TOPIC_PATTERN: Computed(self._unwrap_pattern),
            entities.TRANSACTIONAL_ID_PATTERN: Computed(self._unwrap_pattern),
            entities.SUBSCRIPTION: GroupBytes(ConsumerProtocolSubscription, self._rename_to_client),
            entities.ASSIGNMENT: GroupBytes(ConsumerProtocolAssignment, self._rename_to_client),
            entities.LOG_DIRECTORY: Computed(lambda _: LOG_DIRECTORY_SHOWN),
            entities.CLIENT_INSTANCE: hidden,
            entities.TEXT: Computed(self.clean_text),
        }
        self.to_physical_or_empty = _with_empty_ids(self.to_physical)
        self.to_client_or_empty = _with_empty_ids(self.to_client)

    # Topics

    def _find_physical_topic(self, name: str) -> str:
        """Return a topic's physical name; a name that no topic may have stays, and names nothing."""
        adopted = self.tables.get(entities.TOPIC, {}).get(name)
        if adopted is not None:
            return adopted
        if not is_legal_name(name):
            return name
        renamed = name if self._renamed is None else self._renamed.rename(name)
        if renamed is None:
            return ILLEGAL + name
        physical = self.prefix + renamed
        return physical if len(physical) <= MAX_NAME_LENGTH else self._shorten(physical, name)

    def _show_illegal(self, physical: str) -> str:
        name = physical.removeprefix(ILLEGAL)
        return name if self._renamed is not None and is_legal_name(name) else physical

    def _shorten(self, physical: str, name: str) -> str:
        digest = hmac.digest(self._secret, physical.encode(), "sha256").hex()[:HASH_DIGITS]
        short = physical[: MAX_NAME_LENGTH - HASH_DIGITS - 1] + "-" + digest
        if len(self._long_names) >= MAX_CACHED:
            # A short form that is remembered must have its long name.
            self._long_names.clear()
            self.to_physical[entities.TOPIC].clear()
        self._long_names[short] = name
        return short

    def _find_client_topic(self, physical: str) -> Any:
        adopted = self._adopted.get(entities.TOPIC)
        if adopted and physical in adopted:
            return adopted[physical]
        if not physical.startswith(self.prefix):
            return FOREIGN if is_legal_name(physical) else self._show_illegal(physical)
        name = self._find_long_client_name(physical)
        if name is not None:
            return name
        renamed = physical[len(self.prefix) :]
        return renamed if self._renamed is None else self._renamed.restore(renamed)

    def _find_long_client_name(self, physical: str) -> str | None:
        if len(physical) != MAX_NAME_LENGTH or not physical.startswith(self.prefix):
            return None
        return self._long_names.get(physical) or self._find_long_name(physical)

    def find_long_name(self, physical: str) -> str | None:
        """Return the client's name of a topic that has a short form and was named lately; None for other topics."""
        return self._long_names.get(physical)

    def _rename_to_physical(self, topic: str) -> str:
        physical: str = self.to_physical[entities.TOPIC][topic]
        return physical

    def _rename_to_client(self, topic: str) -> str:
        name = self.to_client[entities.TOPIC][topic]
        return "" if name is FOREIGN else str(name)

    # Groups, transactional ids and users

    def _find_physical(self, kind: str, name: str) -> str:
        adopted = self.tables.get(kind, {}).get(name)
        if adopted is not None:
            return adopted
        physical = self.prefix + name
        if len(physical) * 4 > MAX_ID_BYTES and len(physical.encode()) > MAX_ID_BYTES:
            code = ErrorCode.INVALID_GROUP_ID if kind == entities.GROUP else ErrorCode.INVALID_REQUEST
            raise KafkaError(code, f"a name of {len(name)} characters is too long")
        return physical

    def _find_client(self, kind: str, physical: str) -> Any:
        adopted = self._adopted.get(kind)
        if adopted and physical in adopted:
            return adopted[physical]
        return physical[len(self.prefix) :] if physical.startswith(self.prefix) else FOREIGN

    def _find_physical_user(self, name: str) -> str:
        """Return a user's physical name; an empty name stays, as the prefix alone is the default user of quotas."""
        return self._find_physical(entities.USER, name) if name else name

    def _find_client_user(self, physical: str) -> Any:
        return self._find_client(entities.USER, physical) if physical else physical

    def _find_physical_principal(self, principal: str) -> str:
        kind, colon, name = principal.partition(":")
        if not colon or name in ("", ALL_NAMES):
            return principal
        return f"{kind}:{self.to_physical[entities.USER][name]}"

    def _find_client_principal(self, principal: str) -> Any:
        kind, colon, physical = principal.partition(":")
        if not colon or physical == ALL_NAMES:
            return principal
        name = self._find_client(entities.USER, physical)
        return FOREIGN if name is FOREIGN else f"{kind}:{name}"

    # Patterns

    def _wrap_pattern(self, text: str) -> str:
        """Return the form of a pattern in which a group keeps it; one that is not valid stays, so that its error is the client's own.

        `compile_pattern` reads the form. Taken for a pattern of physical names, it matches names of this instance only: the client's
        pattern is checked alone, as an unbalanced one could match other names.
        """
        return f"{self._pattern_start}{text})" if text and _is_pattern(text) else text

    def compile_pattern(self, kind: str, stored: str) -> Callable[[str], bool]:
        """Return whether a physical name is one of this instance's that a pattern of its clients matches; raises PatternError."""
        pattern = Pattern(self._unwrap_pattern(stored))
        to_client = self.to_client[kind]

        def matches(physical: str) -> bool:
            name = to_client[physical]
            return name is not FOREIGN and pattern.matches(name)

        return matches

    @cached_property
    def _pattern_start(self) -> str:
        import re2  # Most instances have no patterns.

        return f"{re2.escape(self.prefix)}(?:"

    def _unwrap_pattern(self, pattern: str) -> str:
        return pattern[len(self._pattern_start) : -1] if pattern.startswith(self._pattern_start) else pattern

    def is_own(self, kind: str, physical: str) -> bool:
        """Return whether a physical name has the prefix or is adopted."""
        return physical.startswith(self.prefix) or physical in self._adopted.get(kind, ())

    # Texts

    def clean_text(self, text: str) -> str:
        """Return a text for people with the names that clients know."""
        text = _TOPIC_ID_IN_TEXT.sub(self._show_id, text)
        if self._adopted or len(text) >= MAX_NAME_LENGTH:
            text = _NAME_IN_TEXT.sub(self._show_special_name, text)
        return self._prefix_in_text.sub("", text)

    def _show_id(self, match: re.Match[str]) -> str:
        """Return a topic id in a text as clients know it.

        A client may have written the text. The id of another instance's topic stays, as its other form would name the topic.
        """
        word = match[0]
        topic_id = urlsafe_b64decode(word + "==")
        topic = self._find_topic_name(topic_id)
        is_foreign = topic is not None and not self.is_own(entities.TOPIC, topic)
        if is_foreign or self._find_special_name(word) is not None:
            return word
        return format_uuid(self._ids.hide(topic_id))

    @cached_property
    def _prefix_in_text(self) -> re.Pattern[str]:
        return re.compile(rf"(?<![a-zA-Z0-9._-]){re.escape(self.prefix)}")

    def _show_special_name(self, match: re.Match[str]) -> str:
        """Return the client's name for an adopted name or a short form; the number of a partition or a full stop may follow it."""
        word = match[0]
        for name in (word, word.rstrip("."), word.rpartition("-")[0]):
            shown = self._find_special_name(name)
            if shown is not None:
                return shown + word[len(name) :]
        return word

    def _find_special_name(self, physical: str) -> str | None:
        for names in self._adopted.values():
            if physical in names:
                return names[physical]
        return self._find_long_client_name(physical)


def _is_pattern(text: str) -> bool:
    try:
        Pattern(text)
    except PatternError:
        return False
    return True
