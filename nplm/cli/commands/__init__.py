"""The subcommands: a file each, and one of those that show what a model predicts."""
