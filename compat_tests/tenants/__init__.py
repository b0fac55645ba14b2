"""``make tenants``: a noisy neighbour beside nine quiet instances on one node, and what the quiet ones notice of it."""
