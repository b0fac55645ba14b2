"""Records decoded by a schema into typed columns, and records that do not fit into a topic of dead letters."""
