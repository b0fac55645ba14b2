"""An archive written back into topics."""
