"""Instances: virtual clusters for tenants on shared brokers, as rules without I/O.

An instance has its own topics, groups, transactional ids, users, access rules, quotas and cluster id. To its clients it is a whole
Kafka cluster. On the brokers everything that an instance has bears a *physical* name, which no other instance can have.
"""
