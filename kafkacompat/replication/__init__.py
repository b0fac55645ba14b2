"""The follower's network half: it fetches from partition leaders, and keeps each log equal to its leader's.

`ReplicaFetcherManager` spreads partitions over one `LeaderFetcher` for each leader and fetcher number. A fetcher sends the
requests and gives the answers to a `PartitionFetch`, the state machine of one partition. The state machine decides how
the log changes.
"""
