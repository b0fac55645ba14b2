"""The place of each conversion: small ones at once, large ones in worker processes, and recent results from a cache.

Worker processes write converted records into nameless files. The broker sends them from there like other records, so a client
that reads slowly costs it no memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kafkacompat.conversion.job import ConversionJob, ConversionKey, ConvertedRecords, Outcome, RegionToConvert
from kafkacompat.conversion.spool import Spool
from kafkacompat.storage.files.filesystem import Files
from kafkacompat.storage.log_config import LogConfig
from kafkacompat.storage.segment.shared_files import FileRegion
from kafkacompat.wire.primitives import Buffer, MalformedError
from kafkacompat.wire.record_batch import read_header, split_batches
from kafkacompat.workers.processes import Call, Workers, build_stopped_error

IN_PLACE_BYTES = 32 * 1024
"""Most bytes of a request that are converted at once: a few milliseconds, unless they are compressed."""
CONVERSION_TIMEOUT_S = 300
"""No batch takes longer, even on a busy machine, and clients have given up by then."""
KEPT_BYTES = 32 * 1024 * 1024
"""Most bytes of the cache."""
ENOUGH_UNPACKED_BYTES = 16 * 1024 * 1024
"""A response is sent when this many bytes are unpacked for it, after about 1 s: other clients wait, for at most 30 s."""
MAX_KEPT = 64
"""Most results in the cache, because each may keep a file open."""


class Conversions:
    """Converts for handlers; ``files`` makes the nameless files."""

    def __init__(self, workers: Workers, files: Files) -> None:
        self._workers = workers
        self._files = files
        self._kept: OrderedDict[ConversionKey, ConvertedRecords] = OrderedDict()
        self._kept_bytes = 0
        self._closed = False

    def close(self) -> None:
        """Stop converting and empty the cache; running conversions fail."""
        self._closed = True
        self._workers.close()
        while self._kept:
            self._drop_oldest()

    # In

    def check_and_prepare(self, records: Buffer, config: LogConfig, now_ms: int) -> Deferred[Buffer]:
        """Check a produced batch or message set, and build the batch that a topic of that configuration stores.

        Fails with KafkaError as `take_in` of `storage.intake.preparation` does.
        """
        taking = self._workers.run(lambda call: call("take_in", bytes(records), config, now_ms))
        return taking.addCallback(lambda taken: records if taken is None else taken)

    def check_open(self) -> None:
        """Raise KafkaError while the broker closes its logs, when nothing may be appended."""
        if self._closed:
            raise build_stopped_error()

    # Down

    def down_convert(self, wanted: Sequence[RegionToConvert], magic: int) -> list[Outcome] | Deferred[list[Outcome]]:
        """Convert batches to message sets of format *magic* for one response; releases the regions.

        Returns an outcome for each. See `down_convert`. The caller may cancel the Deferred.
        """
        jobs = [ConversionJob(batches_of_log, magic) for batches_of_log in wanted]
        for job in jobs:
            if job.key in self._kept:
                job.set_outcome(self._share_kept(job.key))
        missing = [job for job in jobs if job.outcome is None]
        small = _read_if_small([job.region for job in missing])
        if small is None:
            return self._down_convert_elsewhere(jobs, missing)
        for job, data in zip(missing, small, strict=True):
            job.convert_in_place(data)
        return [_outcome_of(job) for job in jobs]

    def _down_convert_elsewhere(
        self, jobs: Sequence[ConversionJob], missing: Sequence[ConversionJob]
    ) -> Deferred[list[Outcome]]:
        answer: Deferred[list[Outcome]] = Deferred()

        def work(call: Call) -> None:
            """Convert in a worker's thread; start no further job when the client is gone."""
            spool = Spool(self._files, missing[0].disk)
            left_bytes = ENOUGH_UNPACKED_BYTES
            # Each job gets a share, so that the first ones leave something to the last.
            share_bytes = left_bytes // len(missing)
            try:
                for job in missing:
                    if left_bytes <= 0:
                        job.postpone()
                    elif not (answer.called or self._closed):
                        left_bytes -= job.convert_elsewhere(call, spool, share_bytes)
            finally:
                spool.close()

        def done(result: Failure | None) -> None:
            for job in missing:
                job.region.release()
                self._keep(job)
            if not (answer.called or result or self._closed):
                answer.callback([_outcome_of(job) for job in jobs])
                return
            for job in jobs:
                job.release_outcome()
            if not answer.called:
                answer.errback(result or build_stopped_error())

        self._workers.run(work).addBoth(done)
        return answer

    # Cache

    def _keep(self, job: ConversionJob) -> None:
        outcome = job.outcome
        if self._closed or job.key in self._kept or not isinstance(outcome, ConvertedRecords) or not outcome.size_bytes:
            return
        self._kept[job.key] = outcome.share()
        self._kept_bytes += outcome.size_bytes
        while self._kept_bytes > KEPT_BYTES or len(self._kept) > MAX_KEPT:
            self._drop_oldest()

    def _share_kept(self, key: ConversionKey) -> ConvertedRecords:
        self._kept.move_to_end(key)
        return self._kept[key].share()

    def _drop_oldest(self) -> None:
        _, kept = self._kept.popitem(last=False)
        self._kept_bytes -= kept.size_bytes
        kept.release()


def _outcome_of(job: ConversionJob) -> Outcome:
    assert job.outcome is not None
    return job.outcome


def _read_if_small(regions: Sequence[FileRegion]) -> list[bytes] | None:
    """Return the bytes of regions that convert quickly: in memory, short together, and not compressed; None otherwise."""
    if sum(region.size_bytes for region in regions) > IN_PLACE_BYTES:
        return None
    if not all(region.is_resident(0, region.size_bytes) for region in regions):
        return None
    try:
        contents = [region.pread(0, region.size_bytes) for region in regions]
        return None if any(read_header(batch).codec for data in contents for batch in split_batches(data)) else contents
    except (MalformedError, OSError):
        return None
