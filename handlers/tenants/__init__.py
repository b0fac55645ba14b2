"""Requests of an instance's clients: names become physical before the handler, and the clients' own after it.

`translation` works from the declarations alone. `table` lists the APIs that instances are served, with what else each one needs: a
request that lists everything is narrowed to the instance, and a request that concerns the whole cluster is refused.
"""
