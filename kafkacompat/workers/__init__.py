"""Processes that compute for the broker, so that its reactor never does for long.

`processes` is the broker's side, `child` the other. Nothing is imported here, for a worker process would import it too, and
with Twisted it takes half as much memory again.
"""
