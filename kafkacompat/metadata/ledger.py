"""The committed metadata: turns plans into changes of the store, and keeps the newest image."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from kafkacompat.metadata import codec
from kafkacompat.metadata.draft import MetadataDraft
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.metadata.inheritance import Inheritance
from kafkacompat.metadata.producer_ids import BLOCK_SIZE
from kafkacompat.metadata.store import ABSENT, ConflictError, MetadataStore, StoreChange, StoreError
from kafkacompat.metadata.store_changes import SINGLE_NODE, StoreForm, apply_changes
from kafkacompat.metadata.znodes.cluster import decode_next_producer_id, encode_cluster_id, encode_producer_ids
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
        """Read the whole store; raises StoreError."""
        entries = await self._store.load()
        contents = codec.decode_store(entries)
        self._versions = {key: entry.version for key, entry in entries.items()}
        self._foreign = dict(contents.foreign)
        self.image = self._complete(contents.image)
        self._stale = False

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
