"""Environment variables that are not configuration keys."""

from __future__ import annotations

PREFIX = "DRAGOMAN_"

SPECIAL = {
    "DRAGOMAN_HOME": "One folder for everything Dragoman keeps, in place of the XDG directories.",
    "DRAGOMAN_TOKEN": "The token for `dragoman acp --port`, as `--token`, but not seen in the process list.",
    "DRAGOMAN_ACP_TEST_MODE": "`1`: any agent name is accepted; one that is unknown runs `NAME --acp`.",
    "DRAGOMAN_CUSTODY": "Set by Dragoman in everything that its agents start, so that nothing is left running.",
    "DRAGOMAN_BOX": "Set by Dragoman in everything that runs in a container or over ssh, for the same reason.",
    "DRAGOMAN_ACP_DIRECT_SPAWN": "`1`: agents are started directly, whatever their sandbox.",
}
"""Variables that are not configuration keys."""
