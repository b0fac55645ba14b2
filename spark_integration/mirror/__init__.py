"""Topics of one cluster copied into another, and consumer groups moved to the copy."""
