"""The configs of topics, groups and client metrics subscriptions.

The columns are those of the broker's properties. A topic config's default applies only if the broker has no property for it.
The flag ``U`` marks those that have an effect here.
"""

TOPICS = """
cleanup.policy | list | delete | any of: compact, delete | U | Whether old records are deleted, compacted or both
compression.gzip.level | int | -1 | 1..9 or -1 | U | How hard gzip tries
compression.lz4.level | int | 9 | 1..17 | U | How hard lz4 tries
compression.type | string | producer | uncompressed, zstd, lz4, snappy, gzip, producer | U | The codec that batches
    are kept in; producer keeps what was sent
compression.zstd.level | int | 3 | -131072..22 | U | How hard zstd tries
delete.retention.ms | long | 86400000 | 0.. | U | How long a deletion marker stays after compaction
file.delete.delay.ms | long | 60000 | 0.. | U | How long a deleted segment's files stay
flush.messages | long | 9223372036854775807 | 1.. | U | Records after which the log is synced to disk
flush.ms | long | 9223372036854775807 | 0.. | U | Time after which the log is synced to disk
follower.replication.throttled.replicas | list | | replicas | U | Replicas whose fetching is throttled
index.interval.bytes | int | 4096 | 0.. | U | Bytes between two entries of the offset index
internal.segment.bytes | int | null | | UI | A segment size below what segment.bytes allows, for tests
kafkacompat.instance.topic | string | null | | UI | What the clients of an instance call a topic whose name with the
    instance's prefix is too long
leader.replication.throttled.replicas | list | | replicas | U | Replicas whose leaders send throttled
kafkacompat.whitelist.consume | list | | | UI | Networks whose clients may consume; none for nobody
kafkacompat.whitelist.produce | list | | | UI | Networks whose clients may produce; none for nobody
local.retention.bytes | long | -2 | -2.. | | How much of a tiered partition stays local too
local.retention.ms | long | -2 | -2.. | | How long tiered records stay local too
max.compaction.lag.ms | long | 9223372036854775807 | 1.. | U | The age at which a record is compacted at the latest
max.message.bytes | int | 1048588 | 0.. | U | The largest record batch taken, as it lies on the wire
message.timestamp.after.max.ms | long | 3600000 | 0.. | U | How far a timestamp may lie in the future
message.timestamp.before.max.ms | long | 9223372036854775807 | 0.. | U | How far a timestamp may lie in the past
message.timestamp.type | string | CreateTime | CreateTime, LogAppendTime | U | Whose clock stamps records: the
    producer's or the log's
min.cleanable.dirty.ratio | double | 0.5 | 0..1 | U | The share of uncompacted bytes that starts a compaction
min.compaction.lag.ms | long | 0 | 0.. | U | The age before which a record is not compacted
min.insync.replicas | int | 1 | 1.. | U | In-sync replicas that a write with acks=all needs
preallocate | boolean | false | | | Give a new segment its full size at once
remote.log.copy.disable | boolean | false | | | Tiered data is read but no more is copied
remote.log.delete.on.disable | boolean | false | | | Tiered data is deleted when tiering ends
remote.storage.enable | boolean | false | | | Keep old segments in tiered storage
retention.bytes | long | -1 | | U | How much of a partition is kept; -1 is all
retention.ms | long | 604800000 | -1.. | U | How long records are kept; -1 is forever
segment.bytes | int | 1073741824 | 1048576.. | U | The size at which a new segment begins
segment.index.bytes | int | 10485760 | 4.. | U | The largest offset index of a segment
segment.jitter.ms | long | 0 | 0.. | U | The most that is taken at random from segment.ms
segment.ms | long | 604800000 | 1.. | U | The age at which a new segment begins
unclean.leader.election.enable | boolean | false | | U | A replica that is not in sync may become leader
"""

GROUPS = """
consumer.assignment.interval.ms | int | 1000 | 0.. | U | The least time between two assignments
consumer.heartbeat.interval.ms | int | 5000 | 1.. | U | How often members send heartbeats
consumer.session.timeout.ms | int | 45000 | 1.. | U | How long a silent member stays
share.assignment.interval.ms | int | 1000 | 0.. | | The least time between two assignments
share.auto.offset.reset | string | latest | reset | | Where a share group starts to read
share.delivery.count.limit | int | 5 | 2.. | | How often a record is delivered at most
share.heartbeat.interval.ms | int | 5000 | 1.. | | How often members send heartbeats
share.isolation.level | string | read_uncommitted | read_committed, read_uncommitted | | Whether records of open
    transactions are delivered
share.partition.max.record.locks | int | 2000 | 100.. | | Records of a partition locked at once
share.record.lock.duration.ms | int | 30000 | 1000.. | | How long a record is locked for its consumer
share.renew.acknowledge.enable | boolean | true | | | Consumers may prolong their locks
share.session.timeout.ms | int | 45000 | 1.. | | How long a silent member stays
streams.assignment.interval.ms | int | 1000 | 0.. | | The least time between two assignments
streams.heartbeat.interval.ms | int | 5000 | 1.. | | How often members send heartbeats
streams.initial.rebalance.delay.ms | int | 3000 | 0.. | | How long a new group waits for more members
streams.num.standby.replicas | int | 0 | 0.. | | Standby copies of each task
streams.session.timeout.ms | int | 45000 | 1.. | | How long a silent member stays
"""

CLIENT_METRICS = """
interval.ms | int | 300000 | | U | How often clients push metrics
match | list | | distinct | U | Which clients push, as name=pattern
metrics | list | | distinct | U | Prefixes of the metrics pushed
"""
