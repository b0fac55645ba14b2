"""Chaos: real brokers, ZooKeeper and clients in networks of their own, faults by a plan, and the checks of `verify history`."""
