"""Consumer, share and streams groups; committed offsets; transactions.

Name, type, default, allowed values, flags and one line of text; `tables/__init__.py` explains the columns.
"""

TABLE = """
offset.metadata.max.bytes | int | 4096 | | U | The longest note a commit may carry
offsets.commit.timeout.ms | int | 5000 | 1.. | U | The longest a commit waits for its replicas
offsets.load.buffer.size | int | 5242880 | 1.. | | Bytes read at once when offsets are loaded
offsets.retention.check.interval.ms | long | 600000 | 1.. | U | How often old offsets are looked for
offsets.retention.minutes | int | 10080 | 1.. | U | How long an empty group's offsets are kept
offsets.topic.compression.codec | int | 0 | | U | The codec of the offsets topic, by its number
offsets.topic.num.partitions | int | 50 | 1.. | U | Partitions of the offsets topic
offsets.topic.replication.factor | short | 3 | 1.. | U | Replicas of the offsets topic
offsets.topic.segment.bytes | int | 104857600 | 1.. | U | The segment size of the offsets topic
group.initial.rebalance.delay.ms | int | 3000 | | U | How long a new group waits for more members
group.max.session.timeout.ms | int | 1800000 | | U | The longest session timeout a member may ask for
group.min.session.timeout.ms | int | 6000 | | U | The shortest session timeout a member may ask for
group.max.size | int | 2147483647 | 1.. | U | Members that a classic group may have
group.coordinator.append.linger.ms | int | -1 | -1.. | | How long the coordinator gathers writes; -1 decides itself
group.coordinator.background.threads | int | 2 | 1.. | | Kafka's threads that compute assignments
group.coordinator.cached.buffer.max.bytes | int | 1048588 | 524288.. | C | The largest write buffer that is kept
group.coordinator.rebalance.protocols | list | classic,consumer,streams | some of: consumer, classic, share, streams | U
    | The group protocols that are served
group.coordinator.threads | int | 4 | 1.. | | Kafka's coordinator threads
group.consumer.assignment.interval.ms | int | 1000 | 0.. | UC | The least time between two assignments
group.consumer.assignors | list | uniform,range | distinct, some | U | The assignors of consumer groups
group.consumer.heartbeat.interval.ms | int | 5000 | 1.. | U | How often members send heartbeats
group.consumer.max.assignment.interval.ms | int | 15000 | 0.. | U | The most a group may set for that
group.consumer.max.heartbeat.interval.ms | int | 15000 | 1.. | U | The most a group may set for heartbeats
group.consumer.max.session.timeout.ms | int | 60000 | 1.. | U | The most a group may set for sessions
group.consumer.max.size | int | 2147483647 | 1.. | U | Members that a consumer group may have
group.consumer.migration.policy | string | bidirectional | any case: DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL | U |
    Which group protocols may turn into each other
group.consumer.min.assignment.interval.ms | int | 0 | 0.. | U | The least a group may set for assignments
group.consumer.min.heartbeat.interval.ms | int | 5000 | 1.. | U | The least a group may set for heartbeats
group.consumer.min.session.timeout.ms | int | 45000 | 1.. | U | The least a group may set for sessions
group.consumer.regex.refresh.interval.ms | int | 600000 | 10000.. | UI | How often patterns are matched again
group.consumer.session.timeout.ms | int | 45000 | 1.. | U | How long a silent member stays
group.share.assignment.interval.ms | int | 1000 | 0.. | C | The least time between two assignments
group.share.assignors | list | simple | distinct, some | | The assignors of share groups
group.share.delivery.count.limit | int | 5 | 2..10 | | How often a record is delivered at most
group.share.heartbeat.interval.ms | int | 5000 | 1.. | | How often members send heartbeats
group.share.initialize.retry.interval.ms | int | 30000 | 1.. | I | How often a failed start of a partition is repeated
group.share.max.assignment.interval.ms | int | 15000 | 0.. | | The most a group may set for assignments
group.share.max.delivery.count.limit | int | 10 | 5..25 | | The most a group may set for deliveries
group.share.max.heartbeat.interval.ms | int | 15000 | 1.. | | The most a group may set for heartbeats
group.share.max.partition.max.record.locks | int | 4000 | 2000..10000 | | The most a group may set for locked records
group.share.max.record.lock.duration.ms | int | 60000 | 30000..3600000 | | The most a group may set for locks
group.share.max.session.timeout.ms | int | 60000 | 1.. | | The most a group may set for sessions
group.share.max.share.sessions | int | 2000 | 1.. | | Share sessions of this broker
group.share.max.size | int | 200 | 1..1000 | | Members that a share group may have
group.share.min.assignment.interval.ms | int | 0 | 0.. | | The least a group may set for assignments
group.share.min.delivery.count.limit | int | 2 | 2..5 | | The least a group may set for deliveries
group.share.min.heartbeat.interval.ms | int | 5000 | 1.. | | The least a group may set for heartbeats
group.share.min.partition.max.record.locks | int | 100 | 100..2000 | | The least a group may set for locked records
group.share.min.record.lock.duration.ms | int | 15000 | 1000..30000 | | The least a group may set for locks
group.share.min.session.timeout.ms | int | 45000 | 1.. | | The least a group may set for sessions
group.share.partition.max.record.locks | int | 2000 | 100..10000 | | Records of a partition locked at once
group.share.persister.class.name | string | org.apache.kafka.server.share.persister.DefaultStatePersister | | I | The
    class that keeps share groups' state
group.share.record.lock.duration.ms | int | 30000 | 1000..3600000 | | How long a record is locked for its consumer
group.share.session.timeout.ms | int | 45000 | 1.. | | How long a silent member stays
group.streams.assignment.interval.ms | int | 1000 | 0.. | C | The least time between two assignments
group.streams.heartbeat.interval.ms | int | 5000 | 1.. | | How often members send heartbeats
group.streams.initial.rebalance.delay.ms | int | 3000 | 0.. | | How long a new group waits for more members
group.streams.max.assignment.interval.ms | int | 15000 | 0.. | | The most a group may set for assignments
group.streams.max.heartbeat.interval.ms | int | 15000 | 1.. | | The most a group may set for heartbeats
group.streams.max.session.timeout.ms | int | 60000 | 1.. | | The most a group may set for sessions
group.streams.max.size | int | 2147483647 | 1.. | | Members that a streams group may have
group.streams.max.standby.replicas | int | 2 | 0.. | | The most a group may set for standby tasks
group.streams.min.assignment.interval.ms | int | 0 | 0.. | | The least a group may set for assignments
group.streams.min.heartbeat.interval.ms | int | 5000 | 1.. | | The least a group may set for heartbeats
group.streams.min.session.timeout.ms | int | 45000 | 1.. | | The least a group may set for sessions
group.streams.num.standby.replicas | int | 0 | 0.. | | Standby copies of each task
group.streams.session.timeout.ms | int | 45000 | 1.. | | How long a silent member stays
share.coordinator.append.linger.ms | int | -1 | -1.. | | How long the share coordinator gathers writes
share.coordinator.cached.buffer.max.bytes | int | 1048588 | 524288.. | C | The largest write buffer that is kept
share.coordinator.cold.partition.snapshot.interval.ms | int | 300000 | 1.. | I | How often idle state is written whole
share.coordinator.load.buffer.size | int | 5242880 | 1.. | | Bytes read at once when share state is loaded
share.coordinator.snapshot.update.records.per.snapshot | int | 500 | 0..500 | | Updates between two whole states
share.coordinator.state.topic.compression.codec | int | 0 | | | The codec of the share state topic, by its number
share.coordinator.state.topic.min.isr | short | 2 | 1.. | | In-sync replicas that the share state topic needs
share.coordinator.state.topic.num.partitions | int | 50 | 1.. | | Partitions of the share state topic
share.coordinator.state.topic.prune.interval.ms | int | 300000 | 1.. | I | How often old share state is deleted
share.coordinator.state.topic.replication.factor | short | 3 | 1.. | | Replicas of the share state topic
share.coordinator.state.topic.segment.bytes | int | 104857600 | 1.. | | The segment size of the share state topic
share.coordinator.threads | int | 1 | 1.. | | Kafka's share coordinator threads
share.coordinator.write.timeout.ms | int | 5000 | 1.. | | How long a write of share state may take
transaction.abort.timed.out.transaction.cleanup.interval.ms | int | 10000 | 1.. | U | How often overdue transactions are
    looked for
transaction.max.timeout.ms | int | 900000 | 1.. | U | The longest a transaction may be open
transaction.partition.verification.enable | boolean | true | | UC | Ask the coordinator before a transaction's first
    write
transaction.remove.expired.transaction.cleanup.interval.ms | int | 3600000 | 1.. | U | How often unused transactional
    ids are looked for
transaction.state.log.load.buffer.size | int | 5242880 | 1.. | | Bytes read at once when transactions are loaded
transaction.state.log.min.isr | int | 2 | 1.. | U | In-sync replicas that the transactions topic needs
transaction.state.log.num.partitions | int | 50 | 1.. | U | Partitions of the transactions topic
transaction.state.log.replication.factor | short | 3 | 1.. | U | Replicas of the transactions topic
transaction.state.log.segment.bytes | int | 104857600 | 1.. | U | The segment size of the transactions topic
transaction.two.phase.commit.enable | boolean | false | | | Transactions of foreign coordinators
transactional.id.expiration.ms | int | 604800000 | 1.. | U | How long an unused transactional id is remembered
add.partitions.to.txn.retry.backoff.ms | int | 20 | 1.. | | The pause between attempts to add a partition
add.partitions.to.txn.retry.backoff.max.ms | int | 100 | 0.. | U | How long adding one may wait in all
"""
