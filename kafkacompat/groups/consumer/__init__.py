"""Groups of the consumer protocol, whose assignments the coordinator computes (KIP-848).

`reconciliation` moves a member towards its target, as a table; `assignors` has the two assignors. Both are pure. `contents` is the
state of a group that the log holds, and `draft` is a change on its way to the log. `heartbeats`, `departures` and
`classic_members` answer requests. They share `admission`, `progress`, `retargeting`, `pattern_subscriptions` and `group_writer`.
`conversion` is the interface to classic groups, which this package does not know.
"""
