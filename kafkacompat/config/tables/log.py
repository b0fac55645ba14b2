"""Partition logs: where they lie, when they roll, are flushed, deleted and compacted.

Name, type, default, allowed values, flags and one line of text; `tables/__init__.py` explains the columns.
"""

TABLE = """
log.dir | list | /tmp/kafka-logs | distinct, some | U | The data directory, when log.dirs is not set
log.dirs | list | null | distinct, some | U | The data directories
cordoned.log.dirs | list | | distinct | UB | Directories that get no new replicas; * is all of them
num.partitions | int | 1 | 1.. | U | Partitions of a topic that does not say
log.segment.bytes | int | 1073741824 | 1048576.. | UC | The size at which a new segment begins
log.roll.ms | long | null | | UC | The age at which a new segment begins
log.roll.hours | int | 168 | 1.. | U | The same in hours; log.roll.ms wins
log.roll.jitter.ms | long | null | | UC | The most that is taken at random from that age
log.roll.jitter.hours | int | 0 | 0.. | U | The same in hours; log.roll.jitter.ms wins
log.retention.ms | long | null | | UC | How long records are kept; -1 is forever
log.retention.minutes | int | null | | U | The same in minutes; log.retention.ms wins
log.retention.hours | int | 168 | | U | The same in hours; the finer units win
log.retention.bytes | long | -1 | | UC | How much of a partition is kept; -1 is all
log.retention.check.interval.ms | long | 300000 | 1.. | U | How often old segments are looked for
log.cleanup.policy | list | delete | any of: compact, delete | UC | Whether old records are deleted, compacted or both
log.index.size.max.bytes | int | 10485760 | 4.. | UC | The largest offset index of a segment
log.index.interval.bytes | int | 4096 | 0.. | UC | Bytes between two entries of the offset index
log.flush.interval.messages | long | 9223372036854775807 | 1.. | UC | Records after which a log is synced to disk
log.flush.interval.ms | long | null | | UC | Time after which a log is synced to disk
log.flush.scheduler.interval.ms | long | 9223372036854775807 | | U | How often logs due for a sync are looked for
log.flush.offset.checkpoint.interval.ms | int | 60000 | 0.. | U | How often recovery points are written
log.flush.start.offset.checkpoint.interval.ms | int | 60000 | 0.. | | How often log start offsets are written
log.segment.delete.delay.ms | long | 60000 | 0.. | UC | How long a deleted segment's files stay
log.preallocate | boolean | false | | C | Give a new segment its full size at once
log.message.timestamp.type | string | CreateTime | CreateTime, LogAppendTime | UC | Whose clock stamps records: the
    producer's or the log's
log.message.timestamp.before.max.ms | long | 9223372036854775807 | 0.. | UC | How far a timestamp may lie in the past
log.message.timestamp.after.max.ms | long | 3600000 | 0.. | UC | How far a timestamp may lie in the future
log.dir.failure.timeout.ms | long | 30000 | 1.. | | How long a failed directory may go unreported
log.initial.task.delay.ms | long | 30000 | 0.. | I | How long after the start housekeeping begins
log.local.retention.ms | long | -2 | -2.. | C | How long tiered records stay local too
log.local.retention.bytes | long | -2 | -2.. | C | How much of a tiered partition stays local too
log.cleaner.enable | boolean | true | | U | Compact the logs of topics with the policy compact
log.cleaner.threads | int | 1 | 0.. | UC | How many logs are compacted at a time
log.cleaner.backoff.ms | long | 15000 | 0.. | UC | How long the compaction rests without work
log.cleaner.dedupe.buffer.size | long | 134217728 | | UC | Memory for the keys of a compaction
log.cleaner.io.buffer.size | int | 524288 | 0.. | C | Memory for reading and writing in a compaction
log.cleaner.io.buffer.load.factor | double | 0.9 | | UC | How full the table of keys may get
log.cleaner.io.max.bytes.per.second | double | 1.7976931348623157E308 | | UC | How fast compaction may read and write
log.cleaner.min.cleanable.ratio | double | 0.5 | 0..1 | UC | The share of uncompacted bytes that starts a compaction
log.cleaner.min.compaction.lag.ms | long | 0 | 0.. | UC | The age before which a record is not compacted
log.cleaner.max.compaction.lag.ms | long | 9223372036854775807 | 1.. | UC | The age at which a record is compacted at
    the latest
log.cleaner.delete.retention.ms | long | 86400000 | 0.. | UC | How long a deletion marker stays after compaction
compression.type | string | producer | uncompressed, zstd, lz4, snappy, gzip, producer | UC | The codec that batches
    are kept in; producer keeps what was sent
compression.gzip.level | int | -1 | 1..9 or -1 | UC | How hard gzip tries
compression.lz4.level | int | 9 | 1..17 | UC | How hard lz4 tries
compression.zstd.level | int | 3 | -131072..22 | UC | How hard zstd tries
min.insync.replicas | int | 1 | 1.. | UC | In-sync replicas that a write with acks=all needs
unclean.leader.election.enable | boolean | false | | C | A replica that is not in sync may become leader
unclean.leader.election.interval.ms | long | 300000 | 1.. | I | How often such elections are tried
producer.id.expiration.ms | int | 86400000 | 1.. | UC | How long a silent idempotent producer is remembered
producer.id.expiration.check.interval.ms | int | 600000 | 1.. | UI | How often silent producers are looked for
metadata.log.dir | string | null | | U | Where the cluster's metadata lies; the first of log.dirs by default
metadata.log.segment.bytes | int | 1073741824 | 8388608.. | | The segment size of Kafka's metadata log
metadata.log.segment.ms | long | 604800000 | | | The segment age of Kafka's metadata log
metadata.log.max.record.bytes.between.snapshots | long | 20971520 | 1.. | | Bytes between snapshots of Kafka's
    metadata log
metadata.log.max.snapshot.interval.ms | long | 3600000 | 0.. | | Time between snapshots of Kafka's metadata log
metadata.max.retention.bytes | long | 104857600 | | | How much of Kafka's metadata log is kept
metadata.max.retention.ms | long | 604800000 | | | How long Kafka's metadata log is kept
metadata.max.idle.interval.ms | int | 500 | 0.. | | How often Kafka's controller writes an empty record
internal.metadata.delete.delay.millis | long | 60000 | | I | How long deleted metadata files stay
internal.metadata.log.segment.bytes | int | null | | I | A segment size for tests of the metadata log
internal.metadata.max.batch.size.in.bytes | int | 8388608 | | I | The largest batch of the metadata log
"""
