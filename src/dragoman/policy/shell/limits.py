"""Bounds of the reader: an agent chooses the line, so each has to end quickly, and beyond it the line is opaque."""

MAX_BYTES = 64 * 1024
"""Longest line that is read; a 1 MB command would keep the event loop busy for seconds."""

MAX_DEPTH = 24
"""Nesting of groups, loops and `sh -c`; deeper lines would exhaust the interpreter's stack."""

MAX_COMMANDS = 500
"""Commands in one line; a person could not read a question about more."""

MAX_WORDS = 4000
"""Words in one line."""

MAX_PIECES = 500
"""Quoted and unquoted parts of one word."""

MAX_VALUES = 32
"""Values that are followed for one variable or one brace expansion; beyond it the value is unknown."""

MAX_FOLDERS = 8
"""Folders that the line may be in after its `cd`s; beyond it the folder is unknown."""

MAX_GLOB = 512
"""Entries of one folder that are looked at for a pattern; beyond it the pattern may name anything."""

MAX_TREE = 5000
"""Entries below a folder that are looked at for links that lead out; beyond it there may be one."""

MAX_LOOKUPS = 6000
"""Names that are looked up for one line: loops over many values in many folders would take seconds."""
