"""Metrics that clients push (KIP-714): subscriptions, the clients, and the values that they have sent."""
