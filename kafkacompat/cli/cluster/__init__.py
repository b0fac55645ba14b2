"""`kafkacompat cluster`: several brokers and their ZooKeeper on one machine, and the state of any cluster.

`supervision` decides without processes, `supervisor` carries out, `launcher` owns the processes.
"""
