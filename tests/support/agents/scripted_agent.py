"""A scripted ACP agent over real pipes, for tests: it does what the prompt's lines tell it to.

Run it as a program. Flags (``scripted_flags.py``) decide how it starts and what it advertises; every line of a prompt is
a directive (see ``scripted_directives.DIRECTIVES``), run in order; a line that is no directive is said back. Standard
library only, no package needed, so that it shares no code with what is tested.

It starts thousands of times, so this file, which Python compiles at each start, is short, and the others import only
what every start needs.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from support.agents.scripted_program import main
else:
    from scripted_program import main

if __name__ == "__main__":
    main(__file__)
