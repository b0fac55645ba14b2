"""The committed metadata: turns plans into changes of the store, and keeps the newest image."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from kafkacompat.metadata import codec
from kafkacompat.metadata.client_entities import format_client_key
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage, PartitionImage
from kafkacompat.metadata.inheritance import Inheritance
from kafkacompat.metadata.producer_ids import BLOCK_SIZE
from kafkacompat.metadata.store import ABSENT, ConflictError, MetadataStore, StoreChange, StoreEntry, StoreError
from kafkacompat.metadata.store_changes import SINGLE_NODE, StoreForm, apply_changes
from kafkacompat.metadata.znodes.cluster import decode_next_producer_id, encode_cluster_id, encode_producer_ids
from kafkacompat.metadata.znodes.paths import Znode
from kafkacompat.metadata.znodes.topics import decode_topic
from kafkacompat.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 10

Result = TypeVar("Result")


class MetadataLedger:
    """Commits plans to a store by compare-and-set; ``image`` holds the contents of the store.

    ``complete`` adds the parts of an image that no store holds. The caller makes one commit at a time.
    """

    def __init__(
        self,
        store: MetadataStore,
        complete: Callable[[MetadataImage], MetadataImage],
        form: StoreForm = SINGLE_NODE,
    ) -> None:
        self.image = MetadataImage()
        self._store = store
        self._complete = complete
        self._form = form
        self._versions: dict[str, int] = {}
        self._foreign: dict[str, bytes] = {}
        self._stale = False

    async def load(self) -> None:
        """Read the whole store; raises StoreError.

        A tree as in ZooKeeper has many writers: topics and configurations that one of them has damaged are left alone.
        """
        entries = await self._store.load()
        damaged: set[str] = set()

        def leave_out(key: str, problem: StoreError) -> None:
            log.error("The controller leaves out damaged metadata: %s", problem)
            damaged.add(key)

        contents = codec.decode_store(entries, leave_out if self._form.has_tree else None)
        # Without its version a damaged topic cannot be overwritten: creating it again is a conflict.
        self._versions = {key: entry.version for key, entry in entries.items() if key not in damaged}
        self._foreign = dict(contents.foreign)
        self.image = self._complete(contents.image)
        self._stale = False

    # What others have changed

    def knows_version(self, key: str, version: int) -> bool:
        """Return whether the image has a key's value in this version."""
        return not self._stale and self._versions.get(key) == version

    async def refresh_topics(self, names: Collection[str]) -> None:
        """Read topics and their partitions again, which others have changed or removed; raises StoreError."""
        if self._stale:
            await self.load()
            return
        paths = {name: Znode.TOPIC.path(topic=name) for name in names}
        entries = dict(await self._store.read([*paths.values()]))
        states: list[str] = []
        for name, path in paths.items():
            known = self.image.topics.get(name)
            count = max(
                len(known.partitions) if known else 0,
                len(decode_topic(name, entries[path].value).partitions) if path in entries else 0,
            )
            states += (Znode.PARTITION_STATE.path(topic=name, partition=index) for index in range(count))
        entries.update(await self._store.read(states))
        stored = self._take_over([*paths.values(), *states], entries).image.topics
        kept = {name: topic for name, topic in self.image.topics.items() if name not in paths or name in stored}
        self.image = self.image.with_topics({**kept, **stored})

    async def refresh_states(self, keys: Iterable[tuple[str, int]]) -> None:
        """Read the states of single partitions again, which others have changed; raises StoreError."""
        if self._stale:
            await self.load()
            return
        known = {
            Znode.PARTITION_STATE.path(topic=topic, partition=index): (topic, partition)
            for topic, index in keys
            if (partition := self.image.partition(topic, index)) is not None
        }
        entries = await self._store.read([*known])
        changed: dict[str, dict[int, PartitionImage]] = {}
        for path, entry in entries.items():
            topic, partition = known[path]
            refreshed, is_foreign = codec.refresh_partition(path, partition, entry)
            changed.setdefault(topic, {})[partition.partition] = refreshed
            self._note_entry(path, entry, is_foreign)
        topics = dict(self.image.topics)
        for name, partitions in changed.items():
            before = topics[name].partitions
            topics[name] = topics[name]._replace(
                partitions=tuple(partitions.get(partition.partition, partition) for partition in before)
            )
        self.image = self.image.with_topics(topics)

    async def refresh_configs(self, keys: Collection[str]) -> None:
        """Read the configurations at these keys again, which others have changed; raises StoreError."""
        if self._stale:
            await self.load()
            return
        stored = self._take_over(keys, await self._store.read([*keys])).image
        configs = {
            resource: values
            for resource, values in self.image.configs.items()
            if codec.format_config_key(resource) not in keys
        }
        clients = {
            entity: values for entity, values in self.image.clients.items() if format_client_key(entity) not in keys
        }
        self.image = replace(self.image, configs={**configs, **stored.configs}, clients={**clients, **stored.clients})

    def _take_over(self, keys: Iterable[str], entries: Mapping[str, StoreEntry]) -> codec.StoreContents:
        """Note the entries that the store has at *keys* now; raises StoreError, and then notes nothing."""
        contents = codec.decode_store(entries)
        for key in keys:
            self._versions.pop(key, None)
            self._foreign.pop(key, None)
        for key, entry in entries.items():
            self._note_entry(key, entry, key in contents.foreign)
        return contents

    def _note_entry(self, key: str, entry: StoreEntry, is_foreign: bool) -> None:
        self._versions[key] = entry.version
        self._foreign.pop(key, None)
        if is_foreign:
            self._foreign[key] = entry.value

    # Changes

    async def initialize_store(self, cluster_id: str, inheritance: Inheritance, node_id: int) -> None:
        """Write the cluster's id and the inheritance into a new store; raises StoreError and ConflictError."""
        draft = MetadataDraft(self.image)
        inheritance.fill_draft(draft)
        changes = [
            StoreChange(codec.CLUSTER_ID, ABSENT, encode_cluster_id(cluster_id)),
            *draft.list_changes(self._versions, self._foreign, self._form),
        ]
        if next_producer_id := inheritance.next_producer_id:
            block = range(next_producer_id - BLOCK_SIZE, next_producer_id)
            version = self._versions.get(codec.PRODUCER_IDS, ABSENT)
            changes.append(StoreChange(codec.PRODUCER_IDS, version, encode_producer_ids(node_id, block)))
        await self._store.compare_and_set(changes)
        await self.load()

    async def commit(self, plan: Callable[[MetadataDraft], Result]) -> Result:
        """Plan on the newest image until the store accepts the changes; a plan without changes is not stored.

        Raises KafkaError: the plan's own, or KAFKA_STORAGE_ERROR for a failure of the store.
        """
        try:
            for _ in range(MAX_ATTEMPTS):
                if self._stale:
                    await self.load()
                draft = MetadataDraft(self.image)
                result = plan(draft)
                changes = draft.list_changes(self._versions, self._foreign, self._form)
                if not changes or await self._compare_and_set(changes):
                    apply_changes(self._versions, self._foreign, changes)
                    self.image = draft.build_image()
                    return result
        except StoreError as problem:
            # The store may have made the change: read it before the next one.
            self._stale = True
            log.error("Cannot change the metadata: %s", problem)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(problem)) from problem
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the metadata changes faster than the broker can read it")

    async def _compare_and_set(self, changes: Sequence[StoreChange]) -> bool:
        try:
            await self._store.compare_and_set(changes)
        except ConflictError:
            self._stale = True
            return False
        return True

    async def allocate_producer_ids(self, node_id: int) -> range:
        """Allocate the next block of producer ids; the store holds it before a producer gets an id."""
        try:
            for _ in range(MAX_ATTEMPTS):
                entry = (await self._store.read([codec.PRODUCER_IDS])).get(codec.PRODUCER_IDS)
                version, value = (ABSENT, b"") if entry is None else (entry.version, entry.value)
                first = decode_next_producer_id(value)
                block = range(first, first + BLOCK_SIZE)
                change = StoreChange(codec.PRODUCER_IDS, version, encode_producer_ids(node_id, block, value))
                if await self._compare_and_set([change]):
                    return block
        except StoreError as problem:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(problem)) from problem
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "producer ids are allocated faster than the broker can read them"
        )
