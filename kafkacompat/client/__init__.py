"""Requests of this broker to other brokers: connections, versions, deadlines and reconnection."""
