"""One session: its turn, questions, tool calls, options, files and terminals."""
