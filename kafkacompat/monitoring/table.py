"""Every metric in one table: docs/METRICS.md is written from it, and collectors can only make what it has.

The columns are separated by `` | ``; a row that starts with spaces continues the one before: the name, the type, the labels, and
a text. A counter's samples have the suffix ``_total``, which the name leaves out, as in OpenMetrics.

Names with the prefix ``kafka_`` are those that the widely used rules of the JMX exporter make of the MBeans of Apache Kafka, and
``kafka_consumergroup_`` those of the Kafka exporter. What Kafka does not have begins with ``kafkacompat_``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from prometheus_client.metrics_core import Metric

TABLES = {
    "Requests": """
kafka_network_requestmetrics_requests | counter | request, version | Requests that were answered
kafka_network_requestmetrics_errors | counter | request, error | Error codes in responses; a response has one for each
    partition, group or the like, and those without an error are not counted
kafka_network_requestmetrics_totaltimems | summary | request, quantile | Milliseconds from the arrival of a request until its
    response was sent, of the last minute or more
kafka_network_requestmetrics_requestqueuetimems | summary | request, quantile | Milliseconds that a request waited for the
    ones before it
kafka_network_requestmetrics_localtimems | summary | request, quantile | Milliseconds in which the broker handled a request
kafka_network_requestmetrics_remotetimems | summary | request, quantile | Milliseconds that a request waited for data, the
    disk, replicas or other brokers
kafka_network_requestmetrics_responsequeuetimems | summary | request, quantile | Milliseconds that a response waited for the
    ones before it
kafka_network_requestmetrics_responsesendtimems | summary | request, quantile | Milliseconds until the socket had taken a
    response
kafkacompat_request_duration_seconds | histogram | request, version, le | Total times as in totaltimems, by version, since
    the start
kafkacompat_requests_in_flight | gauge | request | Requests that wait for data, the disk, replicas or other brokers
kafka_server_delayedoperationpurgatory_purgatorysize | gauge | delayedOperation | The same for Fetch and Produce
kafka_network_requestchannel_requestqueuesize | gauge | | Requests that have arrived and are not handled yet
""",
    "Topics": """
kafka_server_brokertopicmetrics_messagesin | counter | topic | Records that were appended to partitions led by this broker;
    without a label those of all topics
kafka_server_brokertopicmetrics_bytesin | counter | topic | Bytes of their batches
kafka_server_brokertopicmetrics_bytesout | counter | topic | Bytes of batches in responses to consumers
kafka_server_brokertopicmetrics_replicationbytesin | counter | topic | Bytes of batches that were fetched from leaders
kafka_server_brokertopicmetrics_replicationbytesout | counter | topic | Bytes of batches in responses to followers
kafka_server_brokertopicmetrics_totalproducerequests | counter | topic | Produce requests with batches for the topic
kafka_server_brokertopicmetrics_failedproducerequests | counter | topic | Batches that were refused
kafka_server_brokertopicmetrics_totalfetchrequests | counter | topic | Partitions in responses to Fetch
kafka_server_brokertopicmetrics_failedfetchrequests | counter | topic | Partitions with an error in responses to Fetch
""",
    "Connections": """
kafka_server_socket_server_metrics_connection_count | gauge | listener, networkProcessor | Open connections
kafka_server_socket_server_metrics_connection_creation | counter | listener, networkProcessor | Connections that were accepted
kafka_server_socket_server_metrics_connection_close | counter | listener, networkProcessor | Connections that have ended
kafka_server_socket_server_metrics_incoming_byte | counter | listener, networkProcessor | Bytes that clients have sent
kafka_server_socket_server_metrics_outgoing_byte | counter | listener, networkProcessor | Bytes that clients have received
kafka_server_socket_server_metrics_connections_software | gauge | clientSoftwareName, clientSoftwareVersion, listener,
    networkProcessor | Open connections by the client's library, as ApiVersions names it
kafka_server_socket_server_metrics_successful_authentication | counter | listener, networkProcessor, mechanism | Clients that
    were authenticated: by SASL, or, with the mechanism SSL, by the TLS handshake on a listener without SASL
kafka_server_socket_server_metrics_failed_authentication | counter | listener, networkProcessor, mechanism | Clients that were
    not; the mechanism SSL counts TLS handshakes that failed on any listener
kafka_server_socket_server_metrics_successful_reauthentication | counter | listener, networkProcessor, mechanism | Connected
    clients that were authenticated again
kafka_server_socket_server_metrics_failed_reauthentication | counter | listener, networkProcessor, mechanism | Connected clients
    that were not
kafka_server_socket_server_metrics_expired_connections_killed_count | gauge | listener, networkProcessor | Connections that were
    closed because their session had ended
kafka_server_socket_server_metrics_connection_accept_throttle_time | gauge | listener | Milliseconds that connections beyond
    max.connection.creation.rate waited, the mean of the last minute or more
kafka_server_socket_server_metrics_ip_connection_accept_throttle_time | gauge | listener | The same for connections of an address
    beyond its quota, which were closed after that time
kafkacompat_connections_turned_away | counter | listener, limit | Clients that were not accepted, by the limit: max.connections,
    max.connections.per.ip, connection_creation_rate, or an instance's limit.connections or whitelist
kafkacompat_frame_bytes | gauge | | Bytes of all requests that are held in memory
""",
    "Quotas": """
kafka_server_quota_throttle_time | gauge | resource, user, clientId | Milliseconds for which the clients of a quota were throttled,
    the mean of the last minute or more; clients that were not throttled for an hour have none
kafkacompat_throttled_responses | counter | resource | Responses with a throttle time, by the quota that asked for the longest one:
    Produce, Fetch, Request or ControllerMutation
kafkacompat_throttle_seconds | counter | resource | The sum of these throttle times
""",
    "Replicas": """
kafka_server_replicamanager_partitioncount | gauge | | Replicas on this broker
kafka_server_replicamanager_leadercount | gauge | | Partitions that this broker leads
kafka_server_replicamanager_offlinereplicacount | gauge | | Replicas in failed log directories, or with unreadable logs
kafka_server_replicamanager_underreplicatedpartitions | gauge | | Led partitions with replicas that are not in sync
kafka_server_replicamanager_underminisrpartitioncount | gauge | | Led partitions with fewer replicas in sync than
    min.insync.replicas
kafka_server_replicamanager_atminisrpartitioncount | gauge | | Led partitions with exactly min.insync.replicas in sync
kafka_server_replicamanager_reassigningpartitions | gauge | | Led partitions that are being reassigned
kafka_server_replicamanager_produceridcount | gauge | | Idempotent producers that all replicas remember
kafka_server_replicamanager_isrshrinks | counter | | In-sync sets that became smaller
kafka_server_replicamanager_isrexpands | counter | | In-sync sets that became larger
kafka_server_replicamanager_failedisrupdates | counter | | Proposed in-sync sets that the controller did not commit
kafka_server_replicafetchermanager_maxlag | gauge | clientId | The largest lag of a followed partition, in records
kafka_server_fetcherlagmetrics_consumerlag | gauge | clientId, topic, partition | Records that a follower on this broker lacks
kafka_cluster_partition_insyncreplicascount | gauge | topic, partition | Replicas of a led partition that are in sync
kafka_cluster_partition_replicascount | gauge | topic, partition | Replicas of a led partition
kafka_cluster_partition_underreplicated | gauge | topic, partition | 1 for a led partition with replicas not in sync
kafka_cluster_partition_underminisr | gauge | topic, partition | 1 for a led partition with fewer replicas in sync than
    min.insync.replicas
kafka_cluster_partition_atminisr | gauge | topic, partition | 1 for a led partition with exactly min.insync.replicas in sync
kafka_cluster_partition_laststableoffsetlag | gauge | topic, partition | Records from the last stable offset to the high
    watermark: those of open transactions and after
""",
    "Logs": """
kafka_log_log_size | gauge | topic, partition | Bytes of a replica's batches
kafka_log_log_numlogsegments | gauge | topic, partition | Segments of a replica's log
kafka_log_log_logstartoffset | gauge | topic, partition | First offset of a replica's log
kafka_log_log_logendoffset | gauge | topic, partition | Offset of the next record of a replica's log
kafka_log_logmanager_offlinelogdirectorycount | gauge | | Log directories that have failed
kafka_log_logmanager_logdirectoryoffline | gauge | logDirectory | 1 for a log directory that has failed
kafkacompat_log_directory_full | gauge | logDirectory | 1 for a log directory to which clients cannot produce for lack of space
kafkacompat_group_commit_rounds | counter | logDirectory | Rounds in which waiting appends were synced together
kafkacompat_group_commit_seconds | counter | logDirectory | Seconds that these rounds have taken
kafkacompat_scrub_read_bytes | counter | | Bytes that the scrub has read in search of damage
kafkacompat_scrub_rounds | counter | | Rounds of the scrub that have ended
kafkacompat_damaged_batches | gauge | | Batches that are known to be damaged, by the scrub or by a read
kafkacompat_compactions | counter | | Compactions that have ended
kafkacompat_compactions_failed | counter | | Compactions that have failed
kafkacompat_compactions_under_way | gauge | | Logs that are being compacted
kafkacompat_compaction_read_bytes | counter | | Bytes that compactions have read
kafkacompat_compaction_written_bytes | counter | | Bytes that compactions have written
kafkacompat_compaction_removed_records | counter | | Records that compactions have removed
kafka_log_logcleanermanager_uncleanable_partitions_count | gauge | logDirectory | Partitions that cannot be compacted
""",
    "Controller": """
kafka_controller_kafkacontroller_activecontrollercount | gauge | | 1 if this broker is the controller
kafka_controller_kafkacontroller_activebrokercount | gauge | | Brokers that are alive; 0 unless this broker is the controller, as
    in the rows below
kafka_controller_kafkacontroller_globaltopiccount | gauge | | Topics of the cluster
kafka_controller_kafkacontroller_globalpartitioncount | gauge | | Partitions of the cluster
kafka_controller_kafkacontroller_offlinepartitionscount | gauge | | Partitions without a leader
kafka_controller_kafkacontroller_preferredreplicaimbalancecount | gauge | | Partitions that another than the first replica leads
kafka_controller_controllerstats_leaderelectionrateandtimems_count | gauge | | Leaders that this broker has elected
kafka_controller_controllerstats_uncleanleaderelections | counter | | Leaders that were not in sync, so that records were lost
kafka_server_kafkaserver_brokerstate | gauge | | 1 while the broker starts, 3 while it serves, 6 while it stops
kafkacompat_ready | gauge | | 1 if /readyz answers 200
kafkacompat_zookeeper_connected | gauge | | 1 if the session with ZooKeeper is connected; only in a cluster
""",
    "Groups": """
kafka_coordinator_group_groupmetadatamanager_numgroups | gauge | | Groups that this broker coordinates
kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance | gauge | | Those that wait for members to join
kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance | gauge | | Those that wait for an assignment
kafka_coordinator_group_groupmetadatamanager_numgroupsstable | gauge | | Those whose members have their assignment
kafka_coordinator_group_groupmetadatamanager_numgroupsempty | gauge | | Those without members
kafka_coordinator_group_groupmetadatamanager_numgroupsdead | gauge | | Those that are being deleted
kafka_coordinator_group_groupmetadatamanager_numoffsets | gauge | | Offsets that these groups have committed
kafkacompat_groups | gauge | type, state | Groups by type (classic, consumer) and state
kafka_consumergroup_members | gauge | consumergroup | Members of a group
kafka_consumergroup_current_offset | gauge | consumergroup, topic, partition | The committed offset
kafka_consumergroup_current_offset_sum | gauge | consumergroup, topic | The sum of a topic's committed offsets
kafka_consumergroup_lag | gauge | consumergroup, topic, partition | Records from the committed offset to the high watermark, for
    partitions whose replica this broker has
kafka_consumergroup_lag_sum | gauge | consumergroup, topic | The sum of these lags
""",
    "Transactions": """
kafkacompat_transactional_ids | gauge | state | Transactional ids that this broker coordinates; those in Ongoing,
    PrepareCommit and PrepareAbort have an open transaction
kafkacompat_open_transactions | gauge | | Transactions with records in partitions that this broker leads, without a marker yet;
    one for each partition
""",
    "Instances": """
kafkacompat_instance_produced_bytes | counter | tenant | Bytes of batches that were appended to an instance's partitions led by
    this broker
kafkacompat_instance_produced_records | counter | tenant | Their records
kafkacompat_instance_fetched_bytes | counter | tenant | Bytes of batches in responses to consumers of an instance's topics
kafkacompat_instance_throttle_seconds | counter | tenant | The sum of the throttle times of an instance's clients
kafkacompat_instance_stored_bytes | gauge | tenant | Bytes on this broker that count for limit.storage.bytes
kafkacompat_instance_total_stored_bytes | gauge | tenant | The same on all brokers, as the controller has reported last
kafkacompat_instance_storage_full | gauge | tenant | 1 while producing is held back, as limit.storage.bytes is reached
kafkacompat_instance_topics | gauge | tenant | Topics with a replica on this broker
kafkacompat_instance_partitions | gauge | tenant | Replicas on this broker
kafkacompat_instance_groups | gauge | tenant | Groups that this broker coordinates
kafkacompat_instance_connections | gauge | tenant | Connections to this broker
""",
    "Process": """
kafkacompat_reactor_turn_seconds | histogram | le | Time for which the reactor was busy without looking for new events
kafkacompat_reactor_longest_turn_seconds | gauge | | The longest turn of the last minute or more
kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent | gauge | | The share of time in which the reactor has waited
    for events, of the last minute or more
kafka_network_socketserver_networkprocessoravgidle_percent | gauge | | The same: one thread does both
kafkacompat_worker_queue_length | gauge | worker | Works that wait for, or run in, the worker processes of a purpose
kafkacompat_disk_queue_length | gauge | disk | Operations that wait for, or run in, the thread of a log directory
process_cpu_seconds | counter | | CPU time of the broker, without its worker processes
process_resident_memory_bytes | gauge | | Memory that the process holds
process_virtual_memory_bytes | gauge | | Addresses that the process has
process_open_fds | gauge | | Open files and sockets
process_max_fds | gauge | | Files and sockets that the process may open
process_start_time_seconds | gauge | | When the process started, in seconds since 1970
python_gc_objects_collected | counter | generation | Objects that Python's garbage collector has freed
python_gc_objects_uncollectable | counter | generation | Objects that it could not free
python_gc_collections | counter | generation | Its collections
kafkacompat_build_info | gauge | version | 1
kafkacompat_test_mode | gauge | feature | 1 for each of clock and faults that tests control (serve --test-clock and --faults):
    the broker must not serve in production
kafkacompat_faults_applied | counter | rule | Requests to which a rule of faults was applied, by its number
kafkacompat_scrape_seconds | gauge | | Time in which the metrics above were collected, in the turns between requests
""",
    "Client telemetry": """
kafka_server_client_metrics_instance_count | gauge | | Clients that have requested a subscription, or pushed, lately
kafka_server_client_metrics_unknown_subscription_request | counter | | Pushes for a subscription that has changed
kafka_server_client_metrics_throttle | counter | | Requests that came too early
kafka_server_client_metrics_plugin_export | counter | | Pushes that were read
kafka_server_client_metrics_plugin_error | counter | | Pushes that could not be read
kafkacompat_telemetry_dropped_points | counter | | Values that were not kept, because kafkacompat.metrics.max.items is reached or
    a metric of that name is of another type; the rest of a push beyond 2,000 elements counts once
""",
}
"""Text tables by subject, in the order of the page."""

CLIENT_PREFIX = "kafkacompat_client_"
"""The prefix of what clients push: the name of the client's metric follows, without org.apache.kafka."""


class MetricRow(NamedTuple):
    """One metric; ``labels`` are those of its samples, some of which may have fewer."""

    name: str
    kind: str
    labels: tuple[str, ...]
    text: str

    @property
    def sample_name(self) -> str:
        """The name of its samples, as dashboards use it."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def parse_rows(table: str) -> Iterator[MetricRow]:
    """Parse the rows of one table."""
    for line in table.strip("\n").replace("\n    ", " ").split("\n"):
        name, kind, labels, text = (column.strip() for column in line.split("|"))
        yield MetricRow(name, kind, tuple(filter(None, map(str.strip, labels.split(",")))), text)


ROWS = {row.name: row for table in TABLES.values() for row in parse_rows(table)}


class Family:
    """One metric while it is collected."""

    def __init__(self, name: str) -> None:
        self._row = row = ROWS[name]
        self.metric = Metric(row.name, row.text, row.kind)

    def add(self, value: float, suffix: str = "", **labels: Any) -> None:
        """Add a sample; *suffix* names a part of a histogram or of a summary."""
        own = suffix or ("_total" if self._row.kind == "counter" else "")
        self.metric.add_sample(self._row.name + own, {name: str(label) for name, label in labels.items()}, value)


def make_metric(name: str, value: float, **labels: Any) -> Metric:
    """Make a metric with one sample."""
    family = Family(name)
    family.add(value, **labels)
    return family.metric
