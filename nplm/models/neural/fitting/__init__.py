"""The network trained: epochs, threads and processes."""
