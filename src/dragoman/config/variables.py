"""Environment variables that are not configuration keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

PREFIX = "DRAGOMAN_"

SPECIAL = {
    "DRAGOMAN_HOME": "One folder for everything Dragoman keeps, in place of the XDG directories.",
    "DRAGOMAN_TOKEN": "The token for `dragoman acp --port`, as `--token`, but not seen in the process list.",
    "DRAGOMAN_ACP_TEST_MODE": "`1`: any agent name is accepted; one that is unknown runs `NAME --acp`.",
    "DRAGOMAN_CUSTODY": "Set by Dragoman in everything that its agents start, so that nothing is left running.",
    "DRAGOMAN_BOX": "Set by Dragoman in everything that runs in a container or over ssh, for the same reason.",
    "DRAGOMAN_ACP_DIRECT_SPAWN": "`1`: agents are started directly, whatever their sandbox.",
    "CAI_ACP_TEST_MODE": "The same as `DRAGOMAN_ACP_TEST_MODE`, where that is not set.",
    "CAI_ACP_DIRECT_SPAWN": "The same as `DRAGOMAN_ACP_DIRECT_SPAWN`, where that is not set.",
    "CAI_NO_UPDATE_CHECK": "Dragoman looks for no updates; it sets this to `1` for what it starts, unless it is set.",
}
"""Variables that are not configuration keys."""

TEST_MODE = ("DRAGOMAN_ACP_TEST_MODE", "CAI_ACP_TEST_MODE")
DIRECT_SPAWN = ("DRAGOMAN_ACP_DIRECT_SPAWN", "CAI_ACP_DIRECT_SPAWN")
"""The first of the names that is set decides."""


def is_on(environ: Mapping[str, str], names: Sequence[str]) -> bool:
    return next((environ[name] for name in names if name in environ), "") == "1"
