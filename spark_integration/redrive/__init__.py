"""Dead letters written back into the topics that they came from."""
