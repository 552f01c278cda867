"""The network of equation (1), part by part."""
