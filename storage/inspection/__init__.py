"""Inspection of data directories for their administrators: dump, check and repair. Only repair writes."""
