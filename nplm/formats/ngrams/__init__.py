"""Files of n-grams opened and written in as much memory as there is, or in less."""
