"""The network trained: steps, epochs, threads and processes."""
