"""What is converted where: a little at once, much in worker processes, and what was asked for lately not again.

Converted records that come from a worker process lie in nameless files, and are sent from there like any others: how
slowly a client reads them makes no difference to the broker's memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.conversion.down import ConvertedRecords, Job, Key, Outcome, Unconverted
from kafkacompat.conversion.spool import Spool
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.segment_file import FileRegion
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.record_batch import batches, read_header
from kafkacompat.workers.processes import Call, Workers, stopped

# So much of one request takes a few milliseconds at most, as long as nothing has to be unpacked.
IN_PLACE_BYTES = 32 * 1024
# No batch takes so long, however busy the machine is, and all clients have lost patience.
CONVERSION_TIMEOUT_S = 300
KEPT_BYTES = 32 * 1024 * 1024
# An answer is sent when so much was unpacked for it, which takes a second: clients wait in line, and lose patience after 30.
ENOUGH_UNPACKED_BYTES = 16 * 1024 * 1024
# Each may keep a file open.
MAX_KEPT = 64


class Conversions:
    """Converts for handlers; ``files`` makes the nameless files."""

    def __init__(self, workers: Workers, files: Files) -> None:
        self._workers = workers
        self._files = files
        self._kept: OrderedDict[Key, ConvertedRecords] = OrderedDict()
        self._kept_bytes = 0
        self._closed = False

    def close(self) -> None:
        """Stop converting and let go of what is kept; what is under way fails."""
        self._closed = True
        self._workers.close()
        while self._kept:
            self._drop_oldest()

    # In

    def take_in(self, records: Buffer, config: LogConfig, now_ms: int) -> Deferred[Buffer]:
        """Make the batch, checked, that a topic of that configuration stores, of a batch or a message set.

        Fails with KafkaError as `take_in` of `storage.produced` does.
        """
        taking = self._workers.run(lambda call: call("take_in", bytes(records), config, now_ms))
        return taking.addCallback(lambda taken: records if taken is None else taken)

    def check_open(self) -> None:
        """Raise KafkaError while logs are being closed: nothing may be appended to them."""
        if self._closed:
            raise stopped()

    # Down

    def down(self, wanted: Sequence[Unconverted], magic: int) -> list[Outcome] | Deferred[list[Outcome]]:
        """Make message sets of format *magic* for one answer, an outcome for each; the regions are released.

        See `down_convert` for the rest. What it gives may be cancelled.
        """
        jobs = [Job(each, magic) for each in wanted]
        for job in jobs:
            if job.key in self._kept:
                job.settle(self._again(job.key))
        missing = [job for job in jobs if job.outcome is None]
        found = _little([job.region for job in missing])
        if found is None:
            return self._down_elsewhere(jobs, missing)
        for job, data in zip(missing, found, strict=True):
            job.convert_in_place(data)
        return [_outcome(job) for job in jobs]

    def _down_elsewhere(self, jobs: Sequence[Job], missing: Sequence[Job]) -> Deferred[list[Outcome]]:
        answer: Deferred[list[Outcome]] = Deferred()

        def work(call: Call) -> None:
            """In a worker's thread; no more than has begun if the client has gone."""
            spool = Spool(self._files, missing[0].disk)
            left_bytes = ENOUGH_UNPACKED_BYTES
            # Everybody's share, so that those in front leave something to those behind.
            share_bytes = left_bytes // len(missing)
            try:
                for job in missing:
                    if left_bytes <= 0:
                        job.put_off()
                    elif not (answer.called or self._closed):
                        left_bytes -= job.convert_elsewhere(call, spool, share_bytes)
            finally:
                spool.close()

        def done(result: Failure | None) -> None:
            for job in missing:
                job.region.release()
                self._keep(job)
            if not (answer.called or result or self._closed):
                answer.callback([_outcome(job) for job in jobs])
                return
            for job in jobs:
                job.drop()
            if not answer.called:
                answer.errback(result or stopped())

        self._workers.run(work).addBoth(done)
        return answer

    # What is kept

    def _keep(self, job: Job) -> None:
        outcome = job.outcome
        if self._closed or job.key in self._kept or not isinstance(outcome, ConvertedRecords) or not outcome.size_bytes:
            return
        self._kept[job.key] = outcome.share()
        self._kept_bytes += outcome.size_bytes
        while self._kept_bytes > KEPT_BYTES or len(self._kept) > MAX_KEPT:
            self._drop_oldest()

    def _again(self, key: Key) -> ConvertedRecords:
        self._kept.move_to_end(key)
        return self._kept[key].share()

    def _drop_oldest(self) -> None:
        _, kept = self._kept.popitem(last=False)
        self._kept_bytes -= kept.size_bytes
        kept.release()


def _outcome(job: Job) -> Outcome:
    assert job.outcome is not None
    return job.outcome


def _little(regions: Sequence[FileRegion]) -> list[bytes] | None:
    """The bytes of regions that take no time to convert: in memory, together short, and nothing in them is compressed."""
    if sum(region.size_bytes for region in regions) > IN_PLACE_BYTES:
        return None
    if not all(region.is_resident(0, region.size_bytes) for region in regions):
        return None
    try:
        found = [region.pread(0, region.size_bytes) for region in regions]
        return None if any(read_header(batch).codec for data in found for batch in batches(data)) else found
    except (MalformedError, OSError):
        return None
