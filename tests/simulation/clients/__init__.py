"""Clients of a simulated cluster: small, true to the protocol, and deterministic.

Each client is a `ClientProcess` with a part that does its work. It sends bytes through the memory network, knows the cluster by its
own requests alone, and records the events of `kafkacompat.history`. All time is the given clock's, and all choices are the given
generator's.
"""
