"""Output units: from a and x to probabilities."""
