"""Looking into data directories for people who look after them. No reactor, and nothing is written but by `repair`."""
