"""Several nodes: controllers, replication and tiered storage.

Name, type, default, allowed values, flags and one line of text; `tables/__init__.py` explains the columns.
"""

TABLE = """
controller.quorum.voters | list | | voters | U | The controllers, as id@host:port
controller.quorum.bootstrap.servers | list | | servers | U | Where controllers are found at first
controller.quorum.append.linger.ms | int | 25 | 0.. | | How long the leading controller gathers writes
controller.quorum.auto.join.enable | boolean | false | | | A new controller joins by itself
controller.quorum.election.backoff.max.ms | int | 1000 | 0.. | | The longest pause between elections of a controller
controller.quorum.election.timeout.ms | int | 1000 | 0.. | | How long an election of a controller may take
controller.quorum.fetch.max.bytes | int | 1048576 | 1.. | | The largest fetch from the leading controller
controller.quorum.fetch.snapshot.max.bytes | int | 1048576 | 1.. | | The largest piece of a snapshot fetched
controller.quorum.fetch.timeout.ms | int | 2000 | 0.. | | How long a controller bears a silent leader
controller.quorum.request.timeout.ms | int | 2000 | 0.. | | How long a request between controllers may take
controller.quorum.retry.backoff.ms | int | 20 | 0.. | | The pause before such a request is repeated
controller.performance.always.log.threshold.ms | long | 2000 | 0.. | I | Controller events slower than this are logged
controller.performance.sample.period.ms | long | 60000 | 100.. | I | How often the controller's speed is logged
controller.socket.timeout.ms | int | 30000 | | | How long a request to the controller may take
broker.heartbeat.interval.ms | int | 2000 | | | How often a broker tells the controller that it lives
broker.session.timeout.ms | int | 9000 | | | How long a silent broker counts as alive
initial.broker.registration.timeout.ms | int | 60000 | | | How long a starting broker may take to register
default.replication.factor | int | 1 | | U | Replicas of a topic that does not say
auto.leader.rebalance.enable | boolean | true | | U | Leaderships return to the preferred replica
leader.imbalance.check.interval.seconds | long | 300 | 1.. | U | How often that is looked at
num.replica.fetchers | int | 1 | 1.. | UC | Kafka's threads that fetch from each leader
replica.fetch.backoff.ms | int | 1000 | 0.. | U | The pause after a failed replica fetch
replica.fetch.max.bytes | int | 1048576 | 0.. | U | Bytes of one partition in a replica fetch
replica.fetch.min.bytes | int | 1 | | U | Bytes a replica fetch waits for
replica.fetch.response.max.bytes | int | 10485760 | 0.. | U | Bytes of a whole replica fetch
replica.fetch.wait.max.ms | int | 500 | | U | The longest a replica fetch waits
replica.high.watermark.checkpoint.interval.ms | long | 5000 | | | How often high watermarks are written
replica.lag.time.max.ms | long | 30000 | | U | How long a replica may lag and still be in sync
replica.selector.class | string | null | | U | A class that picks the replica a consumer reads from
replica.socket.receive.buffer.bytes | int | 65536 | | | The receive buffer of replica fetches
replica.socket.timeout.ms | int | 30000 | | U | How long a replica fetch may take
follower.fetch.last.tiered.offset.enable | boolean | false | | C | A new replica starts after the tiered records
fetch.purgatory.purge.interval.requests | int | 1000 | | | Finished waits of Fetch kept before they are swept
producer.purgatory.purge.interval.requests | int | 1000 | | | Finished waits of Produce kept before they are swept
delete.records.purgatory.purge.interval.requests | int | 1 | | | Finished waits of DeleteRecords kept before they are
    swept
share.fetch.purgatory.purge.interval.requests | int | 1000 | | | Finished waits of ShareFetch kept before they are swept
remote.log.storage.system.enable | boolean | false | | | Tiered storage as a whole
remote.log.storage.manager.class.name | string | null | not empty | | The class that stores segments remotely
remote.log.storage.manager.class.path | string | null | | | Where that class is found
remote.log.storage.manager.impl.prefix | string | rsm.config. | not empty | | The prefix of that class's own properties
remote.log.metadata.manager.class.name | string |
    org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager | not empty | | The class
    that keeps the metadata of remote segments
remote.log.metadata.manager.class.path | string | null | | | Where that class is found
remote.log.metadata.manager.impl.prefix | string | rlmm.config. | not empty | | The prefix of that class's own
    properties
remote.log.metadata.manager.listener.name | string | null | not empty | | The listener that class connects to
remote.log.metadata.custom.metadata.max.bytes | int | 128 | 0.. | | The largest note such a class adds to a segment
remote.log.index.file.cache.total.size.bytes | long | 1073741824 | 1.. | C | Disk for indexes of remote segments
remote.log.index.file.cache.ttl.ms | long | 900000 | -1.. | I | How long such an index is kept unused
remote.log.manager.thread.pool.size | int | 2 | 1.. | | Kafka's threads for remote segments
remote.log.manager.copier.thread.pool.size | int | 10 | 1.. | C | Kafka's threads that copy segments out
remote.log.manager.expiration.thread.pool.size | int | 10 | 1.. | C | Kafka's threads that delete remote segments
remote.log.manager.follower.thread.pool.size | int | 2 | 1.. | C | Kafka's threads that follow remote segments
remote.log.manager.copy.max.bytes.per.second | long | 9223372036854775807 | 1.. | C | How fast segments are copied out
remote.log.manager.copy.quota.window.num | int | 11 | 1.. | | Sample windows of that speed
remote.log.manager.copy.quota.window.size.seconds | int | 1 | 1.. | | The span of one such window
remote.log.manager.fetch.max.bytes.per.second | long | 9223372036854775807 | 1.. | C | How fast remote segments are read
remote.log.manager.fetch.quota.window.num | int | 11 | 1.. | | Sample windows of that speed
remote.log.manager.fetch.quota.window.size.seconds | int | 1 | 1.. | | The span of one such window
remote.log.manager.task.interval.ms | long | 30000 | 1.. | | How often remote segments are looked at
remote.log.manager.task.retry.backoff.ms | long | 500 | 1.. | I | The first pause after a failed copy
remote.log.manager.task.retry.backoff.max.ms | long | 30000 | 1.. | I | The longest pause after a failed copy
remote.log.manager.task.retry.jitter | double | 0.2 | 0..0.5 | I | The random share of that pause
remote.log.reader.threads | int | 10 | 1.. | C | Kafka's threads that read remote segments
remote.log.reader.max.pending.tasks | int | 100 | 1.. | | Remote reads that may wait
remote.fetch.max.wait.ms | int | 500 | 1.. | C | The longest a Fetch waits for a remote segment
remote.list.offsets.request.timeout.ms | long | 30000 | 1.. | C | The longest a ListOffsets waits for a remote segment
quota.window.num | int | 11 | 1.. | U | Sample windows of client quotas
quota.window.size.seconds | int | 1 | 1.. | U | The span of one such window
controller.quota.window.num | int | 11 | 1.. | U | Sample windows of the quota of topic changes
controller.quota.window.size.seconds | int | 1 | 1.. | U | The span of one such window
replication.quota.window.num | int | 11 | 1.. | U | Sample windows of replication quotas
replication.quota.window.size.seconds | int | 1 | 1.. | U | The span of one such window
alter.log.dirs.replication.quota.window.num | int | 11 | 1.. | | Sample windows of the quota of moves between directories
alter.log.dirs.replication.quota.window.size.seconds | int | 1 | 1.. | | The span of one such window
leader.replication.throttled.rate | long | 9223372036854775807 | 0.. | UCI | Bytes a second that leaders send to
    throttled replicas
follower.replication.throttled.rate | long | 9223372036854775807 | 0.. | UCI | Bytes a second that throttled replicas
    fetch
replica.alter.log.dirs.io.max.bytes.per.second | long | 9223372036854775807 | 0.. | UCI | Bytes a second moved between
    directories
"""
