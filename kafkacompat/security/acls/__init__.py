"""Access rules (ACLs): what they say, the filters that find them, and the decisions that follow from them. No I/O."""
