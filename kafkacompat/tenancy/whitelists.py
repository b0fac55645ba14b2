"""The whitelists of topics: the networks whose clients may produce to a topic, and consume from it."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from kafkacompat.config.networks import Networks, parse_networks
from kafkacompat.config.properties import ConfigError
from kafkacompat.config.resources import ResourceType
from kafkacompat.config.topics import CONSUME_WHITELIST, PRODUCE_WHITELIST, TOPIC_CONFIGS
from kafkacompat.metadata.image import ConfigKey, MetadataImage, list_changed_configs
from kafkacompat.metadata.instance_defaults import NO_CONFIGS

log = logging.getLogger(__name__)


class TopicWhitelists:
    """The whitelists of all topics; `update` follows an image. ``are_set`` says that a topic has one."""

    def __init__(self) -> None:
        self.are_set = False
        self._configs: Mapping[ConfigKey, Mapping[str, str]] = {}
        self._texts: dict[str, dict[str, str]] = {PRODUCE_WHITELIST: {}, CONSUME_WHITELIST: {}}
        self._topics: dict[str, dict[str, Networks | None]] = {PRODUCE_WHITELIST: {}, CONSUME_WHITELIST: {}}
        self._parsed: dict[tuple[str, str], Networks | None] = {}

    @property
    def state(self) -> object:
        """Another object after each change of a whitelist."""
        return self._parsed

    def update(self, image: MetadataImage) -> None:
        """Follow an image; only whitelists with other texts are parsed."""
        before, self._configs = self._configs, image.configs
        changed = [
            self._follow(topic, image.configs.get((kind, topic), NO_CONFIGS))
            for kind, topic in list_changed_configs(before, image.configs)
            if kind == ResourceType.TOPIC
        ]
        if any(changed):
            used = {(option, text) for option, texts in self._texts.items() for text in texts.values()}
            self._parsed = {key: self._parsed[key] for key in used}
            self.are_set = bool(used)

    def _follow(self, topic: str, given: Mapping[str, str]) -> bool:
        """Follow the configs of one topic; return whether its whitelists have changed."""
        changed = False
        for option, texts in self._texts.items():
            text = given.get(option)
            if text == texts.get(topic):
                continue
            changed = True
            if text is None:
                del texts[topic], self._topics[option][topic]
            else:
                texts[topic] = text
                if (option, text) not in self._parsed:
                    self._parsed[option, text] = _parse(option, text)
                self._topics[option][topic] = self._parsed[option, text]
        return changed

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
