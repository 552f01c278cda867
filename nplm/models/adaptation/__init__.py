"""Models that adapt to the text that they read."""
