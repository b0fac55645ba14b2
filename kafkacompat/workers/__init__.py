"""Worker processes, which compute for the broker so that its reactor does not have to for long.

`processes` is the broker's side, `child` the worker's. This module imports nothing: a worker process would import it too, and
with Twisted it takes half as much memory again.
"""
