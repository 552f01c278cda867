"""Build the network of equation (1) from its parts."""
