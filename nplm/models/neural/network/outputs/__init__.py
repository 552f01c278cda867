"""Output units, which compute probabilities from a and x."""
