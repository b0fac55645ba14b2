"""Real clients of every age through one programme, on this broker and on Apache Kafka 4.3.1.

`rows` lists the clients, `install` brings them from the registries into ``build/matrix``, `programme` is what each
has to do, `proxy` and `recording` see what it says on the wire, `report` writes docs/COMPATIBILITY.md.
Our broker runs from the working tree: do not edit it during a run, or the results are worth nothing.
A client is driven by a small program of its own in `clients/`; `driver` says how they talk.
"""
