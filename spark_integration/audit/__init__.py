"""Whether all records are there, once and in order, and how long they took: of topics, archives, or both compared."""
