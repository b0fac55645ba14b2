"""SASL: the mechanisms by which clients prove who they are, and the rules of the exchange, without I/O.

Time, randomness and look-ups are passed in. The messages and errors are those of Apache Kafka 4.3.1.
"""
