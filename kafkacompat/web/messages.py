"""The messages of a topic: bounded reads, from the newest ones, from an offset or from a time on, filtered by time and key.

A page reads at most `MAX_BYTES` from the log and walks at most `MAX_RECORDS` records, whatever the topic holds. What lies beyond is said
on the page. Records are decoded in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.web.errors import explain
from kafkacompat.web.topics import PartitionRow, add_offsets, find_offsets
from kafkacompat.wire.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkacompat.wire.batch_header import BatchHeader, read_header, split_batches
from kafkacompat.wire.batch_records import Record, read_records
from kafkacompat.wire.primitives import MalformedError

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

    from kafkacompat.monitoring.administration.requests import InternalRequests

MAX_PARTITIONS = 50
"""Partitions that a page reads."""
MAX_BYTES = 4 << 20
"""Bytes that a page reads of all partitions together, and the most that it decompresses, but for the last batch."""
MAX_BATCH_BYTES = 8 << 20
"""The largest batch that is decoded, and the most that it may decompress to."""
MAX_RECORDS = 20_000
"""Records that a page walks over."""
SCANNED_FROM_END = 5_000
"""Offsets before the end of a partition in which the newest messages with a key are looked for."""
BY_NAME_VERSION = 12
"""The newest version of Fetch that names topics."""
NEWEST, OLDEST = "newest", "oldest"


class MessageSelection(NamedTuple):
    """The messages that a page shows: ``size`` of them at most.

    ``offset`` is where to begin in a single partition; without it ``begin`` is NEWEST or OLDEST. ``since_ms`` and ``until_ms`` bound the
    timestamps, and ``key`` is part of the key.
    """

    size: int = 50
    begin: str = NEWEST
    offset: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    key: bytes = b""

    def accepts(self, record: Record) -> bool:
        """Return whether a record passes the filters."""
        if self.key and (record.key is None or self.key not in record.key):
            return False
        after = self.since_ms is None or record.timestamp >= self.since_ms
        return after and (self.until_ms is None or record.timestamp <= self.until_ms)

    @property
    def is_from_end(self) -> bool:
        """Whether the messages are those nearest to the ends of the partitions."""
        return self.begin == NEWEST and self.offset is None and self.since_ms is None

    @property
    def is_filtered(self) -> bool:
        """Whether it leaves out messages."""
        return bool(self.key) or self.since_ms is not None or self.until_ms is not None


class SelectedMessage(NamedTuple):
    """One message; ``record`` is None for a batch that is not decoded, and ``note`` says why."""

    partition: int
    offset: int
    timestamp_ms: int
    record: Record | None
    note: str = ""


@dataclass
class PageRead:
    """What was read of one partition: offsets from ``begin`` up to ``end``, of those from ``start`` up to ``limit`` that it has."""

    index: int
    start: int
    limit: int
    begin: int
    end: int


class Budget(NamedTuple):
    """Bytes that may be read, and records that may be walked over."""

    size_bytes: int
    records: int


class MessagePage(NamedTuple):
    """Messages, the reads of the partitions, and a sentence for each partition that was not read."""

    messages: list[SelectedMessage]
    reads: list[PageRead]
    notes: list[str]


class DecodedMessages(NamedTuple):
    """The messages of some batches that a selection accepts.

    ``end`` is the offset after the last record that was walked over; ``size_bytes`` are those of keys, values and headers.
    """

    messages: list[SelectedMessage]
    end: int
    walked: int
    size_bytes: int


RunInThread = Callable[..., "Deferred[Any]"]


class MessageReader:
    """Reads the messages of one topic for one page."""

    def __init__(self, requests: InternalRequests, run: RunInThread, topic: str, node_id: int) -> None:
        self._requests = requests
        self._run = run
        self._topic = topic
        self._node_id = node_id
        self._records_left = MAX_RECORDS
        self._bytes_left = MAX_BYTES
        self._notes: list[str] = []

    async def read(self, partitions: Sequence[PartitionRow], selection: MessageSelection) -> MessagePage:
        """Return the selected messages, the newest first if they are selected from the end, else the oldest first."""
        here = [partition for partition in partitions if self._node_id in partition.replicas]
        if len(here) < len(partitions):
            missing = len(partitions) - len(here)
            have = "partition has" if missing == 1 else "partitions have"
            self._notes.append(f"{missing} {have} no replica on this broker: open the page of another broker")
        if len(here) > MAX_PARTITIONS:
            self._notes.append(
                f"only the first {MAX_PARTITIONS} partitions are read: choose a partition to read another"
            )
            here = here[:MAX_PARTITIONS]
        await add_offsets(self._requests, here, self._node_id)
        page_reads = await self._find_reads(here, selection)
        messages: list[SelectedMessage] = []
        reads: list[PageRead] = []
        for number, page_read in enumerate(page_reads):
            if self._bytes_left <= 0:
                self._notes.append(
                    f"{number} of {len(page_reads)} partitions have more bytes than a page reads: choose one to read another"
                )
                break
            messages += await self._read_partition(page_read, selection, self._share_budget(len(page_reads) - number))
            reads.append(page_read)
        # Timestamps may be out of order within a partition, whose order is that of the offsets.
        by_time = len(reads) > 1
        messages.sort(
            key=lambda message: (message.timestamp_ms if by_time else 0, message.offset), reverse=selection.is_from_end
        )
        self._note_unread(reads, selection, len(messages))
        return MessagePage(messages[: selection.size], reads, self._notes)

    def _share_budget(self, partitions: int) -> Budget:
        """Return the part of what is left for the next one of this many partitions."""
        return Budget(max(self._bytes_left // partitions, 1), max(self._records_left // partitions, 1))

    def _note_unread(self, reads: list[PageRead], selection: MessageSelection, count: int) -> None:
        """Say where a search with too few results has ended before the end."""
        unread = sum(1 for read in reads if read.end < read.limit)
        if selection.is_filtered and count < selection.size and unread:
            where = "the partition" if len(reads) == 1 else f"{unread} partitions"
            self._notes.append(f"the search has not reached the end of {where}: continue at the offsets below")

    async def _find_reads(self, partitions: list[PartitionRow], selection: MessageSelection) -> list[PageRead]:
        """Return where to begin in each partition that is not empty."""
        page_reads = []
        times = {}
        if selection.since_ms is not None and selection.offset is None:
            times = await find_offsets(self._requests, partitions, selection.since_ms, self._node_id)
        for partition in partitions:
            start, limit = partition.start_offset, partition.end_offset
            if start is None or limit is None or start >= limit:
                continue
            begin = start
            if selection.offset is not None:
                begin = min(max(selection.offset, start), limit)
            elif selection.since_ms is not None:
                begin = times.get((self._topic, partition.index), limit)
            elif selection.begin == NEWEST:
                begin = max(start, limit - (SCANNED_FROM_END if selection.is_filtered else selection.size))
            page_reads.append(PageRead(partition.index, start, limit, begin, begin))
        return page_reads

    async def _read_partition(
        self, page_read: PageRead, selection: MessageSelection, budget: Budget
    ) -> list[SelectedMessage]:
        """Read one partition; the newest messages are read from nearer to the end if the way there is too long."""
        while True:
            if selection.is_from_end:
                # Each attempt takes half of what is left, as the next ones are shorter.
                budget = Budget(max(budget.size_bytes // 2, 1), max(budget.records // 2, 1))
            messages = await self._read_forward(page_read, selection, budget)
            distance = page_read.limit - page_read.begin
            if not selection.is_from_end or page_read.end >= page_read.limit or distance <= 1:
                break
            page_read.begin = page_read.end = page_read.limit - max(distance // 4, 1)
        return messages[-selection.size :] if selection.is_from_end else messages[: selection.size]

    async def _read_forward(
        self, page_read: PageRead, selection: MessageSelection, budget: Budget
    ) -> list[SelectedMessage]:
        """Read from the beginning of *page_read* on, and note how far that came."""
        messages: list[SelectedMessage] = []
        max_bytes, max_records = budget
        while page_read.end < page_read.limit and max_records > 0 and max_bytes > 0:
            region = await self._fetch(page_read, max_bytes)
            if region is None:
                break
            try:
                size_bytes = len(region) if isinstance(region, bytes) else region.size_bytes
                decoded = await self._decode(region, page_read, selection, Budget(max_bytes, max_records))
            finally:
                if isinstance(region, FileRegion):
                    region.release()
            max_records -= decoded.walked
            self._records_left -= decoded.walked
            # A few bytes may decompress to many.
            used_bytes = max(size_bytes, decoded.size_bytes)
            max_bytes -= used_bytes
            self._bytes_left -= used_bytes
            messages += decoded.messages
            if decoded.end <= page_read.end:
                break
            page_read.end = min(decoded.end, page_read.limit)
            if not selection.is_from_end and len(messages) >= selection.size:
                break
        return messages

    async def _decode(
        self, region: bytes | FileRegion, page_read: PageRead, selection: MessageSelection, budget: Budget
    ) -> DecodedMessages:
        try:
            decoded: DecodedMessages = await self._run(decode_region, region, page_read, selection, budget)
        except (OSError, MalformedError) as problem:
            self._notes.append(f"partition {page_read.index} cannot be read from offset {page_read.end} on: {problem}")
            return DecodedMessages([], page_read.end, 0, 0)
        return decoded

    async def _fetch(self, page_read: PageRead, max_bytes: int) -> bytes | FileRegion | None:
        wanted = FetchPartition(partition=page_read.index, fetch_offset=page_read.end, partition_max_bytes=max_bytes)
        topic = FetchTopic(topic=self._topic, partitions=[wanted])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=[topic])
        response = await self._requests.send(request, BY_NAME_VERSION)
        data = response.responses[0].partitions[0]
        if data.error_code:
            self._notes.append(explain(data.error_code, f"partition {page_read.index}")[1])
            return None
        # The end of a follower's log may lie after what consumers may read.
        page_read.limit = min(page_read.limit, data.high_watermark)
        region: bytes | FileRegion = data.records
        return None if isinstance(region, bytes) and not region else region


def decode_region(
    region: bytes | FileRegion, page_read: PageRead, selection: MessageSelection, budget: Budget
) -> DecodedMessages:
    """Decode batches from the end of *page_read* on; the last one may exceed the budget. [disk]

    Raises OSError and MalformedError.
    """
    most_bytes = max(budget.size_bytes, MAX_BATCH_BYTES)
    data = region[:most_bytes] if isinstance(region, bytes) else region.pread(0, most_bytes)
    index, begin = page_read.index, page_read.end
    messages: list[SelectedMessage] = []
    end, walked, size_bytes = begin, 0, 0
    for batch in split_batches(data):
        if walked >= budget.records or size_bytes >= budget.size_bytes:
            return DecodedMessages(messages, end, walked, size_bytes)
        header = read_header(batch)
        end = header.last_offset + 1
        if header.is_control:
            continue
        note = "transactional" if header.is_transactional else ""
        try:
            for record in read_records(batch, MAX_BATCH_BYTES):
                size_bytes += _measure(record)
                if record.offset < begin:
                    continue
                walked += 1
                if selection.accepts(record):
                    messages.append(SelectedMessage(index, record.offset, record.timestamp, record, note))
                if walked >= budget.records:
                    # The batch may go on: the next page begins within it.
                    end = record.offset + 1
                    break
        except MalformedError as problem:
            messages.append(_skip_batch(index, header, f"cannot be decoded: {problem}"))
    if end == begin and data:
        header = read_header(data)
        messages.append(_skip_batch(index, header, f"has {header.size_bytes} bytes, which are too many for this page"))
        end = header.last_offset + 1
    return DecodedMessages(messages, end, walked, size_bytes)


def _skip_batch(partition: int, header: BatchHeader, reason: str) -> SelectedMessage:
    """Return what stands for a batch whose records are not shown."""
    note = f"the batch at offset {header.base_offset} {reason}"
    return SelectedMessage(partition, header.base_offset, header.latest_timestamp, None, note)


def _measure(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
