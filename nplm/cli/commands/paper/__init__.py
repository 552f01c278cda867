"""The subcommands that measure the paper's models again."""
