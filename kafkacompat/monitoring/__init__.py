"""The optional HTTP listener: /metrics for Prometheus, /healthz and /readyz.

Nothing here is imported unless kafkacompat.http.listener is set.
"""
