"""Options of the neural models: solvers, losses, outputs and features."""
