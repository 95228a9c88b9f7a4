"""Runs a user's Python agent: a class of the official SDK, or a plain function.

`python -m dragoman.builtin.host module:name` or `.../file.py:name`. What the user's code prints goes to
stderr; stdout belongs to the protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import inspect
import logging
import sys
from pathlib import Path
from typing import Any


class EntryError(Exception):
    """The entry names no agent; the message is a sentence."""


def main(arguments: list[str]) -> int:
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m dragoman.builtin.host module:name\n")
        return 2
    try:
        with contextlib.redirect_stdout(sys.stderr):
            entry = load_entry(arguments[0])
        asyncio.run(_run(entry))
    except EntryError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def load_entry(name: str) -> Any:
    """The class, instance or function that `module:name` names."""
    module_name, _, attribute = name.rpartition(":")
    if not module_name or not attribute:
        raise EntryError(f"{name!r} is not of the form module:name.")
    found: Any = _load_module(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise EntryError(f"{module_name!r} has no {attribute!r}.")
        found = getattr(found, part)
    return found


def _load_module(name: str) -> Any:
    try:
        if name.endswith(".py"):
            return _load_file(Path(name).expanduser())
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise EntryError(
            f"{error}. Is it installed beside Dragoman? PYTHONPATH in the agent's env, or a path, works too."
        ) from error


def _load_file(file: Path) -> Any:
    if not file.is_file():
        raise EntryError(f"There is no file {str(file)!r}.")
    sys.path.insert(0, str(file.parent))  # so that it can import modules beside it, as a script can
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise EntryError(f"{str(file)!r} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


async def _run(entry: Any) -> None:
    if inspect.isclass(entry) or hasattr(entry, "prompt"):
        await _run_sdk_agent(entry() if inspect.isclass(entry) else entry)
    elif callable(entry):
        from dragoman.agent import serve

        await serve(entry)
    else:
        raise EntryError(f"{entry!r} is neither an agent nor a function.")


async def _run_sdk_agent(agent: Any) -> None:
    try:
        from acp import run_agent
    except ModuleNotFoundError as error:
        raise EntryError("Agents of the official SDK need it: pip install agent-client-protocol.") from error
    from acp import stdio_streams

    reader, writer = await stdio_streams()
    sys.stdout = sys.stderr
    await run_agent(agent, writer, reader)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
