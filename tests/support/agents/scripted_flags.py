"""What the scripted agent can be told on its command line. Not `argparse`: loading it would be a fifth of the start."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SWITCH, LIST, PAIRS = "switch", "list", "pairs"
"""Kinds of flags beside those that convert one value: without a value, given several times, with two values."""

FLAGS: dict[str, tuple[Any, Any]] = {
    # ids are PREFIX1, PREFIX2, ... in every process; {pid} is replaced
    "--session-ids": (str, "s"),
    # this agent's own request ids: zero, string or big
    "--request-ids": (str, "zero"),
    # so many updates for a new id before its response, and how long these are
    "--early-updates": (int, 0),
    "--early-size": (int, 0),
    # available_commands_update right after session/new
    "--late-commands": (SWITCH, False),
    # agentCapabilities, instead of all
    "--caps": (json.loads, None),
    # authMethods
    "--auth": (json.loads, []),
    # session/new fails with -32000 until authenticated
    "--auth-required": (SWITCH, False),
    # more fields for the initialize result
    "--info": (json.loads, None),
    # agentInfo.version
    "--version": (str, "1.0.0"),
    # seconds until initialize is answered
    "--init-delay": (float, 0.0),
    # initialize fails with -32603
    "--init-error": (SWITCH, False),
    # initialize is answered with a line that is not JSON
    "--init-garbage": (SWITCH, False),
    # so many lines that are not JSON before everything else
    "--chatter": (int, 0),
    # session/new fails with code 4242 and data
    "--new-error": (SWITCH, False),
    # session/new is never answered
    "--new-hang": (SWITCH, False),
    # a method that is never answered
    "--hang": (LIST, []),
    # more fields for session results
    "--new-extra": (json.loads, {}),
    # METHOD MEMBERS: answer a method with these members, as they are: '"result":[]'
    "--answer": (PAIRS, []),
    "--modes": (SWITCH, False),
    "--models": (SWITCH, False),
    "--config-options": (SWITCH, False),
    # the sessions that session/list answers
    "--list": (json.loads, None),
    # the path of a JSON file: what to do for a prompt that reads so
    "--script": (str, None),
    # updates that session/load replays, directives that it runs after them, updates right after its response
    "--load-replay": (int, 0),
    "--load-run": (str, ""),
    "--load-late": (int, 0),
    # loads and resumes only sessions of the folder that its process runs in, as gemini does
    "--folder-bound": (SWITCH, False),
    # advertises resume, answers -32601
    "--no-resume-method": (SWITCH, False),
    # session/resume is answered when this file is there
    "--resume-gate": (str, ""),
    # session/cancel is ignored
    "--no-cancel-answer": (SWITCH, False),
    # $/cancel_request of a prompt answers -32800
    "--honour-cancel-request": (SWITCH, False),
    # goes on living after stdin closed
    "--ignore-eof": (SWITCH, False),
    # SIGTERM is ignored
    "--ignore-term": (SWITCH, False),
    # exit code
    "--exit-on-start": (int, None),
    "--stderr-on-start": (str, ""),
    # runs itself again as a child, as gemini does
    "--spawn-child": (SWITCH, False),
    # append each received line to this file; {pid} is replaced
    "--journal-file": (str, None),
}
"""By name: how its value is read, and what holds without it."""


class Flags:
    """`--session-ids` is `session_ids`."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, arguments: list[str]) -> None:
        values = {name: default for name, (_, default) in FLAGS.items()}
        words = iter(arguments)
        for name in words:
            if name not in FLAGS:
                raise SystemExit(f"the scripted agent has no flag {name}")
            kind, _ = FLAGS[name]
            if kind is SWITCH:
                values[name] = True
            elif kind is LIST:
                values[name] = [*values[name], next(words)]
            elif kind is PAIRS:
                values[name] = [*values[name], (next(words), next(words))]
            else:
                values[name] = kind(next(words))
        for name, value in values.items():
            setattr(self, name.removeprefix("--").replace("-", "_"), value)
