"""Train a network over epochs, in threads and processes."""
