"""The tools; `TOOLS` is the table of them."""

from __future__ import annotations

from dataclasses import replace

from dragoman.builtin.tools.apply import apply
from dragoman.builtin.tools.changes import changes
from dragoman.builtin.tools.edit import edit
from dragoman.builtin.tools.fetch import fetch
from dragoman.builtin.tools.find import glob, grep, list_folder
from dragoman.builtin.tools.plan import plan
from dragoman.builtin.tools.read import read
from dragoman.builtin.tools.run import check_command, run, stop_command
from dragoman.builtin.tools.tool import Tool
from dragoman.builtin.tools.write import write

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        read,
        write,
        edit,
        list_folder,
        glob,
        grep,
        run,
        check_command,
        stop_command,
        fetch,
        plan,
        apply,
    )
}
"""In the order that models see them."""

COMMAND_TOOLS: dict[str, Tool] = {tool.name: tool for tool in (changes,)}
"""Tools of slash commands, which models are not offered."""

BOXED = tuple(
    replace(tool, name=f"sandbox_{tool.name}", description=f"In the box: {tool.description}")
    for tool in TOOLS.values()
    if tool not in (fetch, plan)
)
"""The tools again, under `sandbox_*` names for sandbox mode."""
