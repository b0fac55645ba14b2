"""The whitelists of topics: the networks whose clients may produce to a topic, and consume from it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkacompat.config.networks import Networks, parse_networks
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.config.topics import CONSUME_WHITELIST, PRODUCE_WHITELIST, TOPIC_CONFIGS
from kafkacompat.metadata.image import ConfigKey, MetadataImage

log = logging.getLogger(__name__)


class TopicWhitelists:
    """The whitelists of all topics; `update` follows an image. ``are_set`` says that a topic has one."""

    def __init__(self) -> None:
        self.are_set = False
        self._configs: Mapping[ConfigKey, Mapping[str, str]] = {}
        self._parsed: dict[tuple[str, str], Networks | None] = {}
        self._topics: dict[str, dict[str, Networks | None]] = {PRODUCE_WHITELIST: {}, CONSUME_WHITELIST: {}}

    @property
    def state(self) -> object:
        """What is another object after each change of a whitelist."""
        return self._parsed

    def update(self, image: MetadataImage) -> None:
        """Follow an image; only whitelists with other texts are parsed."""
        if image.configs is self._configs:
            return
        self._configs = image.configs
        parsed: dict[tuple[str, str], Networks | None] = {}
        for option, topics in self._topics.items():
            topics.clear()
            for (kind, topic), given in image.configs.items():
                if option in given and kind == ResourceType.TOPIC:
                    key = (option, given[option])
                    if key not in parsed:
                        parsed[key] = self._parsed[key] if key in self._parsed else _parse(*key)
                    topics[topic] = parsed[key]
        if parsed or self._parsed:
            self._parsed = parsed
        self.are_set = bool(parsed)

    def may_produce(self, topic: str, address: str) -> bool:
        """Return whether a client at an address may produce to a topic."""
        networks = self._topics[PRODUCE_WHITELIST].get(topic)
        return networks is None or address in networks

    def may_consume(self, topic: str, address: str) -> bool:
        """Return whether a client at an address may consume from a topic."""
        networks = self._topics[CONSUME_WHITELIST].get(topic)
        return networks is None or address in networks


def _parse(option: str, text: str) -> Networks | None:
    """Parse a whitelist; one that is damaged lets nobody in."""
    try:
        entries = TOPIC_CONFIGS[option].parse(text)
        return parse_networks(option, entries if isinstance(entries, tuple) else ())
    except ConfigError as problem:
        log.error("A topic's whitelist cannot be used, and lets nobody in: %s", problem)
        return Networks(())
