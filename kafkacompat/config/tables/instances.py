"""The properties of instances: virtual clusters for tenants on shared brokers.

The columns are those of the broker's properties. The flag ``O`` marks what only the broker itself sets.
"""

INSTANCES = """
cluster.id | string | null | | O | The cluster id that the instance's clients see; drawn when it is created
secret | password | null | | O | The key of topic ids and of short names; drawn when the instance is created
state | string | active | active, deleting | U | A deleting instance serves no client, and can still be restored
delete.at.ms | long | -1 | -1.. | U | When a deleting instance's data go, in milliseconds since the epoch
description | string | | | U | A text for people
managed.by | string | null | file | U | Set to file for an instance of the broker's kafkacompat.instances.file
name.prefix | string | null | | U | The text before the physical name of everything that the instance has; its name
    and a dot by default
topic.names | list | | | U | Topics with a physical name of their own, as name:physical
topic.name.regex | string | | | U | Rewrites a topic's name before the prefix is added, as pattern=>replacement
topic.name.regex.back | string | | | U | The reverse of topic.name.regex, as pattern=>replacement
group.names | list | | | U | Groups with a physical name of their own, as name:physical
transactional.id.names | list | | | U | Transactional ids with a physical name of their own, as name:physical
user.names | list | | | U | Users with a physical name of their own, as name:physical
listeners | list | | | U | Addresses that lead to the instance, as PROTOCOL://host:port; without a host every address
    of the brokers
advertised.hosts | list | | | U | The host of each broker for the instance's clients, as id:host
sni.hosts | list | | | U | Names in TLS handshakes (SNI) that lead to the instance; *. stands for one label
sni.advertised | string | | | U | The address of a broker for clients that came by SNI, as host:port with {id} for its id
sasl.users | list | | | U | Users whose connections to the brokers' own listeners lead to the instance
subjects.without.prefix | boolean | false | | U | Whether certificates and tokens of an identity provider name users of the
    instance without its prefix
super.users | list | | | U | Users of the instance who may do everything in it, as User:name
whitelist | list | | | U | Networks that may connect; empty for all, none for nobody
placement.group | list | | distinct | U | The groups of brokers that the instance lives in: one, or two while it moves, the new one
    last; empty for the brokers outside all groups
placement.racks | list | | distinct | U | The racks that the instance's replicas are placed in; empty for all racks
quota.produce.bytes.per.second | long | -1 | -1.. | U | What the instance's clients may produce in all; -1 is no limit
quota.fetch.bytes.per.second | long | -1 | -1.. | U | What the instance's clients may fetch in all; -1 is no limit
traffic.algorithm | string | shared | shared, article | U | How the throughput is divided over the brokers
limit.storage.bytes | long | -1 | -1.. | U | The stored bytes at which producing is held back; -1 is no limit
limit.storage.counts | string | replicas | replicas, partitions | U | Whether all replicas count, or each partition once
limit.storage.error | string | retriable | retriable, final | U | The error of a produce request at the limit
limit.topics | int | -1 | -1.. | U | Topics of the instance; -1 is no limit
limit.partitions | int | -1 | -1.. | U | Partitions of all topics; -1 is no limit
limit.groups | int | -1 | -1.. | U | Groups on each broker; -1 is no limit
limit.connections | int | -1 | -1.. | U | Connections to each broker; -1 is no limit
limit.message.bytes | int | -1 | -1.. | U | The most that max.message.bytes of a topic may be; -1 is no limit
limit.retention.min.ms | long | -1 | -1.. | U | The least that retention.ms of a topic may be; -1 is no limit
limit.retention.max.ms | long | -1 | -1.. | U | The most that retention.ms of a topic may be; -1 is no limit
auto.create.topics.enable | boolean | true | | U | Whether requests may create missing topics, if the brokers allow it
num.partitions | int | -1 | -1.. | U | Partitions of a topic that is created without a number; -1 is the brokers' default
default.replication.factor | int | -1 | -1.. | U | Replicas of a topic that is created without a number; -1 is the
    brokers' default
default.topic.configs | list | | | U | Defaults of topic configs, as name=value; values may have commas
"""
