"""The web page of a broker: /ui on the HTTP listener, with topics, messages, groups, brokers, instances and plots of throughput.

Without kafkacompat.ui.enable nothing here is imported. Every page reads the broker through `InternalRequests`, as /v1 does: so access
rules, instances and whitelists hold for it as for any client. Without kafkacompat.ui.writable it changes nothing.
"""
