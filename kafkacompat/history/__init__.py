"""The history of a run of clients against a broker, and the checks of what a sound broker may show them.

`events` are the entries of a history, `index` collects the knowledge from them, `checks` judge it, and `counts` says whether a
history is enough to judge by. `run` and the modules of the clients' roles record a history.
"""
