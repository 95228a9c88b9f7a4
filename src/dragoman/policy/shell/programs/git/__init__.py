"""Facts about git: its options and subcommands, and the repositories that it is used in."""
