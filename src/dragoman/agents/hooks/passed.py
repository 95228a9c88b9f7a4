"""What agents need to be made to run our hook; how each is, is in the files beside this one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from dragoman.agents.hooks.call import Describe, Manner
from dragoman.gateway.ports.agent import AgentUnavailable
from dragoman.wire.json_types import JsonObject, as_object

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Passed:
    """What makes one agent process run the hook."""

    env: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    """Added to its command."""
    rewrite: Callable[[bytes], bytes] | None = None
    """Changes messages to the agent."""


@dataclass(frozen=True, slots=True)
class Passing:
    manner: Manner
    give: Callable[[Path, Mapping[str, str]], Passed]
    """Prepares the private folder; gets the environment of the agent. Raises `AgentUnavailable`."""


def shell_line() -> str:
    """The command that runs the hook program, for any shell; denies also if it cannot be started, or is killed."""
    program = shlex.join([sys.executable, "-I", "-S", str(HERE / "program.py")])
    failed = "Not allowed: the program that asks the rules failed."
    line = f'{program} || {{ [ $? = 2 ] || echo "{failed}" >&2; exit 2; }}'
    return shlex.join(["/bin/sh", "-c", line])


def read_settings(text: str, where: str) -> JsonObject:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise AgentUnavailable(
            f"{where} is not JSON ({error}), so that Dragoman cannot add its hook to it: correct it, or unset it"
        ) from error
    return as_object(found)


def by_name(kinds: Mapping[str, str]) -> Describe:
    """Describes tool calls by a table of their kinds."""
    return lambda name, given, folder: {"kind": kinds[name]} if name in kinds else {}
