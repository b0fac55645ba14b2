"""A cluster on ZooKeeper: the properties of Apache Kafka 3.9 that its later releases no longer have.

Name, type, default, allowed values, flags and one line of text; `tables/__init__.py` explains the columns.
"""

TABLE = """
zookeeper.connect | string | null | | U | The ZooKeeper ensemble, as host1:2181,host2:2181/chroot; without it the node is alone
zookeeper.session.timeout.ms | int | 18000 | 1.. | U | How long a silent broker counts as alive
zookeeper.connection.timeout.ms | int | null | | U | How long a start waits for ZooKeeper; as the session's timeout if unset
zookeeper.set.acl | boolean | false | | U | Only clients with the broker's certificate may change the metadata
zookeeper.max.in.flight.requests | int | 10 | 1.. | | Requests that wait for ZooKeeper's answer
zookeeper.ssl.client.enable | boolean | false | | U | Connect to ZooKeeper by TLS
zookeeper.ssl.keystore.location | string | null | | U | The broker's certificate and key for ZooKeeper, in PEM
zookeeper.ssl.keystore.password | password | null | | U | The password of that key
zookeeper.ssl.truststore.location | string | null | | U | The certificates that ZooKeeper's is checked with, in PEM
zookeeper.ssl.endpoint.identification.algorithm | string | HTTPS | | U | HTTPS checks the host name in ZooKeeper's certificate
broker.id.generation.enable | boolean | true | | U | A broker without an id gets one from ZooKeeper
reserved.broker.max.id | int | 1000 | 0.. | U | The largest id that is not generated
controlled.shutdown.max.retries | int | 3 | 0.. | U | How often a stopping broker asks for other leaders
controlled.shutdown.retry.backoff.ms | long | 5000 | 0.. | U | The pause before it asks again
leader.imbalance.per.broker.percentage | int | 10 | 0.. | U | The share of a broker's leaderships that may be elsewhere
inter.broker.protocol.version | string | 3.9 | | U | The release whose protocol brokers speak among themselves
control.plane.listener.name | string | null | | U | The listener for the controller's orders alone
"""
