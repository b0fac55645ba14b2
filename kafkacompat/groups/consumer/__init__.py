"""Consumer groups of the protocol whose assignments the coordinator makes (KIP-848).

`reconciliation` is the life of a member as a table, `assignors` are the two ways to share partitions out; both are
pure. `contents` is what the log says of a group, `draft` a change of it on its way to the log. `heartbeats`,
`departures` and `classic_members` answer requests; `retargeting`, `pattern_subscriptions` and `conversion` are what they have in common.
"""
