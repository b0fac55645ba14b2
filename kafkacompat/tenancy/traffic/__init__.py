"""Traffic control of instances, as rules without I/O: how an instance's limit is divided over the brokers, and how a broker keeps to it.

The modules know no reactor, no configuration and no metadata; times are passed in. The broker and `kafkacompat spark traffic` run the
same functions, and Spark ships this folder to its executors ([decision 018](../../../docs/decisions/018-traffic.md)). Traffic and shares
are in bytes per second.
"""
