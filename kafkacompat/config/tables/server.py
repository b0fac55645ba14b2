"""The node itself: identity, listeners, sockets, requests and threads.

Name, type, default, allowed values, flags and one line of text; `tables/__init__.py` explains the columns.
"""

TABLE = """
node.id | int | null | 0.. | U | This node's number in the cluster
broker.id | int | -1 | | U | The older name of node.id
broker.rack | string | null | | U | The rack of this node, for clients and for placement
process.roles | list | broker,controller | some of: broker, controller | U | What this process is; only broker and
    controller together are served
listeners | list | PLAINTEXT://:9092 | distinct, some | UB | Where clients connect, as NAME://host:port; port 0 takes
    a free one
advertised.listeners | list | null | distinct, some | U | The addresses that clients receive, if they differ from
    the address they connected to
listener.security.protocol.map | string | SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
    | | UB | The security protocol of each listener name
inter.broker.listener.name | string | null | | U | The listener that brokers use among themselves
security.inter.broker.protocol | string | PLAINTEXT | PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL | U | The protocol
    among brokers when no listener is named
controller.listener.names | list | | distinct | U | Listeners of controllers; they are not bound here
early.start.listeners | list | null | distinct | | Listeners that open before the others
socket.send.buffer.bytes | int | 102400 | | | The socket's send buffer; -1 leaves it to the system
socket.receive.buffer.bytes | int | 102400 | | | The socket's receive buffer; -1 leaves it to the system
socket.request.max.bytes | int | 104857600 | 1.. | U | The largest frame a client may send
socket.listen.backlog.size | int | 50 | 1.. | | Connections that may wait to be accepted
socket.connection.setup.timeout.ms | long | 10000 | | | First wait for an outgoing connection
socket.connection.setup.timeout.max.ms | long | 30000 | | | Longest wait for an outgoing connection
queued.max.requests | int | 500 | 1.. | | Requests in line before reading pauses
queued.max.request.bytes | long | 268435456 | | U | Bytes of all frames held at once before reading pauses; -1 is no
    bound
max.connections | int | 2147483647 | 0.. | UC | Connections to this broker in all
max.connections.per.ip | int | 2147483647 | 0.. | UC | Connections from one address
max.connections.per.ip.overrides | string | | | UC | Other limits for single addresses, as address:count
max.connection.creation.rate | int | 2147483647 | 0.. | UC | New connections a second
connections.max.idle.ms | long | 600000 | | U | Idle time after which a connection is closed; negative is never
connection.failed.authentication.delay.ms | int | 100 | 0.. | U | How long a failed authentication waits for its answer
request.timeout.ms | int | 30000 | | U | How long another broker, or a change of a transaction, may take
num.network.threads | int | 3 | 1.. | C | Kafka's network threads; one reactor does it here
num.io.threads | int | 8 | 1.. | C | Kafka's request threads; one reactor does it here
background.threads | int | 10 | 1.. | C | Kafka's threads for housekeeping
num.recovery.threads.per.data.dir | int | 2 | 1.. | C | Kafka's threads that recover logs at start
num.replica.alter.log.dirs.threads | int | null | | | Kafka's threads that move replicas between directories
message.max.bytes | int | 1048588 | 0.. | UC | The largest record batch taken, as it lies on the wire
fetch.max.bytes | int | 57671680 | 1024.. | U | The largest answer to a Fetch
max.incremental.fetch.session.cache.slots | int | 1000 | 0.. | U | Fetch sessions that are remembered
max.request.partition.size.limit | int | 2000 | 1.. | U | The most partitions in one page of DescribeTopicPartitions
auto.create.topics.enable | boolean | true | | U | Metadata creates a topic that is not there
delete.topic.enable | boolean | true | | U | Topics may be deleted
controlled.shutdown.enable | boolean | true | | U | A stopping broker hands its leaderships over first
client.quota.callback.class | class | null | | | A class that decides quotas
authorizer.class.name | string | | | U | The class that authorizes requests
create.topic.policy.class.name | class | null | | | A class that may refuse new topics
alter.config.policy.class.name | class | null | | | A class that may refuse configuration changes
config.providers | list | | distinct | C | Names of classes that look up values elsewhere
security.providers | string | null | | | Classes that provide security algorithms
unstable.api.versions.enable | boolean | false | | I | Serve API versions under development
unstable.feature.versions.enable | boolean | false | | I | Serve feature levels under development
server.max.startup.time.ms | long | 9223372036854775807 | 0.. | I | The longest a start may take
kafka.metrics.reporters | list | | distinct | | Classes that report the server's metrics
kafka.metrics.polling.interval.secs | int | 10 | 1.. | | How often those classes are asked
metric.reporters | list | org.apache.kafka.common.metrics.JmxReporter | distinct | C | Classes that report metrics
metrics.num.samples | int | 2 | 1.. | | Samples of each metric
metrics.sample.window.ms | long | 30000 | 1.. | | The span of one sample
metrics.recording.level | string | INFO | | | The finest level of metrics recorded
telemetry.max.bytes | int | 1048576 | 1.. | U | The largest metrics push a client may send
kafkacompat.produce.validation | string | records | header, records | U | How far produced batches are checked: their
    header, or every record too
kafkacompat.decompressed.max.bytes | long | 104857600 | 1.. | U | The most a batch may decompress to where its records
    are read
kafkacompat.acks.after | string | kafka | fsync, kafka | U | When a record counts as stored: as in Kafka, or once it is on
    the disk
kafkacompat.disk.reserve.bytes | long | 67108864 | 0.. | U | Free space that producers leave to offset commits, checkpoints
    and deletion
kafkacompat.producer.ids.max | long | 1000000 | 1.. | U | Idempotent producers that all partitions remember together, the
    latest ones
kafkacompat.scrub.interval.ms | long | 604800000 | -1.. | U | How often every rolled segment is read through in search of
    damage; -1 is never
kafkacompat.scrub.max.bytes.per.second | long | 10485760 | 1.. | U | How fast that is done
kafkacompat.conversion.processes | int | 2 | 1.. | U | Processes that convert for clients older than 0.11 and
    check large batches
kafkacompat.traffic.interval.ms | int | 1000 | 100..60000 | U | How often brokers report the traffic of instances to the
    controller and receive their shares
kafkacompat.instances.required.listeners | list | | distinct | U | Listeners that serve only clients of an instance
kafkacompat.http.listener | string | null | | U | Where /metrics, /healthz and /readyz are served, as host:port; without it
    nowhere
kafkacompat.http.token.file | string | null | | U | A file of lines NAME:TOKEN; a token lets its bearer administer instances
    over HTTP as User:NAME
kafkacompat.http.scram.enable | boolean | false | | U | Whether SCRAM users of the cluster may administer instances over HTTP by
    their passwords
kafkacompat.ui.enable | boolean | false | | U | Whether kafkacompat.http.listener serves a web page at /ui
kafkacompat.ui.writable | boolean | false | | U | Whether the web page may create and delete topics, and reset offsets of groups
kafkacompat.instances.file | string | null | | U | A YAML file of the instances of a single node, which is read again when it
    changes
kafkacompat.metrics.max.items | int | 1000 | 1.. | U | Topics, partitions, groups and clients that have series of
    their own in /metrics, of each kind
kafkacompat.broker.groups | list | | distinct | UC | Groups of brokers that instances live in, as name:ids, with ids and ranges of
    ids joined by +
kafkacompat.broker.group.balance.interval.ms | long | 300000 | -1.. | U | How often the controller looks for a group with a broker
    whose disks are nearly full; -1 is never
kafkacompat.broker.group.balance.percentage | int | 80 | 1..100 | U | The used part of a broker's disks at which replicas of
    instances move to other brokers of its group
kafkacompat.broker.group.max.brokers | int | 100 | 1.. | UC | The most brokers of a group
kafkacompat.log.format | string | text | json, text | U | The form of the log: lines for people, or one JSON object a line
"""
