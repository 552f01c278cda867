"""Files: whole or not at all, compressed, of arrays."""
