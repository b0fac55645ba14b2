"""Processes that compute for the broker, so that its reactor never does for long."""

from kafkacompat.workers.processes import Call, ProcessWorkers, Work, Workers, stopped

__all__ = ["Call", "ProcessWorkers", "Work", "Workers", "stopped"]
