"""Where agents put the facts of a tool call.

Recorded from the agents that `make test-real` starts (November 2026), in the `toolCall` of a permission request. The
name of the tool; the shell line; the folder that it runs in; files:

claude-agent-acp  `name`, `_meta.claudeCode.toolName`; `rawInput.command`; kept between lines, not told;
                  `rawInput.file_path`, diff, `locations`
Claude Code       `_meta.dragoman.toolName`; the rest as above
codex-acp         `name` or none; `rawInput.command` without its shell; `rawInput.cwd`;
                  `locations`, the diff only in the `tool_call` before
Codex             none; `rawInput.command` as `/bin/bash -lc '...'`; `rawInput.cwd`;
                  `rawInput.changes[].path`, diff, `locations`
OpenCode          none; `rawInput.command`; `rawInput.cwd` only in the `tool_call` before;
                  `rawInput.filepath`, `rawInput.files[].filePath`, diff
Gemini CLI        start of `toolCallId`; the title, there is no `rawInput`; `[in FOLDER]` at the start of the content;
                  diff, `locations`
Qwen Code         `_meta.toolName`; `rawInput.command`; `rawInput.directory`; `rawInput.file_path`, diff, `locations`
built-in          `_meta.dragoman.toolName`; `rawInput.command`; `rawInput.path`; `rawInput.path`, diff, `locations`

Calls of `fs/*` and `terminal/create` have their methods as names (`service.py`).

A tool that is not in the table is read by the names of its members, which all agents share.
"""

from __future__ import annotations

import enum
import re

NAMES = (
    ("name",),
    ("_meta", "claudeCode", "toolName"),
    ("_meta", "dragoman", "toolName"),
    ("_meta", "toolName"),
)
"""Members with the name of the tool."""
NAME_IN_ID = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,100}?)(?:__|-[0-9]{10,}-[0-9])")
"""gemini 0.61: `run_shell_command__call_1`, or `run_shell_command-1763424000000-1`."""

MCP_NAME = re.compile(r"mcp__(?P<server>.+?)__(?P<tool>.+)", re.DOTALL)
"""Claude Code and Qwen Code. The names of Gemini CLI and OpenCode do not say where the server's name ends."""

COMMANDS = (
    *(
        "command",
        "cmd",
        "commands",
        "script",
        "argv",
        "Command",
        "command_line",
        "commandLine",
        "CommandLine",
    ),
    *("shell_command", "shellCommand", "bash_command", "bashCommand"),
)
"""The first four are those of the tested agents; the others those that tools of other agents have."""
FOLDERS = ("cwd", "workdir", "directory", "dir_path")
PATHS = (
    *("file_path", "filePath", "filepath", "absolute_path", "notebook_path", "path", "dir_path", "directory"),
    *("parentDir", "old_path", "new_path", "source", "destination"),
)
PATH_LISTS = ("paths", "file_paths", "directories")
CHANGES = {
    "changes": (("path",), ("kind", "move_path"), ("move_path",)),
    "files": (("filePath",), ("movePath",), ("path",)),
    "edits": (("file_path",), ("filePath",), ("path",)),
}
"""Lists of changed files, and the members of an entry that are paths."""
ADDRESSES = ("url", "urls", "uri")
GRANTS = ("additionalPermissions", "permissions", "fileSystem", "network")
"""Codex asks with these for more than one call: nothing about a command says what they allow."""

NETWORK_TITLE = re.compile(r"\S+ network access to (\S+)")
"""codex-acp 2.6 asks so for a command's way to a host; the input has an address for http and https only."""
GEMINI_FOLDER = re.compile(r"\[in (?P<folder>[^\[\]]+)\](?: \([^\[\]]*\))?(?: \[background\])?")
GEMINI_NO_FOLDER = "[current working directory "


class Does(enum.Enum):
    """What a tool does, whatever kind the agent calls it."""

    RUNS = "runs"
    READS = "reads"
    WRITES = "writes"
    FETCHES = "fetches"
    NEITHER = "neither"
    """It touches no file and no host that its input names."""


def _rows() -> dict[str, Does]:
    rows = {
        Does.RUNS: """
            Bash exec_command shell local_shell shell_command bash run_shell_command run sandbox_run
            write_stdin PowerShell terminal/create
        """,
        Does.READS: """
            Read NotebookRead LS Glob Grep view_image read changes glob grep list lsp read_file read_many_files
            list_directory search_file_content grep_search sandbox_read sandbox_list sandbox_glob sandbox_grep
            fs/read_text_file
        """,
        Does.WRITES: """
            Edit MultiEdit Write NotebookEdit apply_patch write edit multiedit patch write_file replace
            apply sandbox_write sandbox_edit save_memory fs/write_text_file
        """,
        Does.FETCHES: "WebFetch WebSearch webfetch websearch web_fetch web_search google_web_search fetch",
        Does.NEITHER: """
            BashOutput TaskOutput KillShell KillBash TaskStop Task Agent Skill ToolSearch EnterPlanMode ExitPlanMode
            AskUserQuestion TodoWrite TaskCreate TaskUpdate TaskList TaskGet todowrite todoread task skill
            write_todos todo_write exit_plan_mode plan check_command stop_command session/set_mode
        """,
    }
    return {name: does for does, names in rows.items() for name in names.split()}


TOOLS = _rows()
"""By the names of the agents above."""
QUESTIONS = frozenset({"AskUserQuestion", "ask_user_question", "ask_user", "question", "request_user_input"})
"""Tools that ask a person something, with answers as options: Claude Code, Qwen Code, Gemini CLI, OpenCode, Codex."""
SEARCHES = frozenset(
    [
        "Glob",
        "Grep",
        "glob",
        "grep",
        "read_many_files",
        "search_file_content",
        "grep_search",
        "sandbox_glob",
        "sandbox_grep",
    ]
)
"""Tools that look into the files of a folder, or of the session's if they are told none."""
IN_TITLE = frozenset({"run_shell_command"})
"""Tools whose title is their shell line as it is, if there is no input: Gemini CLI neither shortens nor decorates it."""
KEEPS_FOLDER = frozenset({"Bash"})
"""Tools whose shell stays in the folder of the last `cd` of an earlier line, which is not told."""
FOLDER_OF: dict[str, tuple[str, ...]] = {
    "Bash": (),
    "run_shell_command": ("directory", "dir_path"),
    "run": ("path",),
    "sandbox_run": ("path",),
}
"""Members with a shell line's folder, where they are not those of `FOLDERS`: what else the model sends is ignored."""

BY_KIND = {
    "read": Does.READS,
    "search": Does.READS,
    "think": Does.NEITHER,
    "fetch": Does.FETCHES,
    "execute": Does.RUNS,
    "switch_mode": Does.NEITHER,
}
"""What an unknown tool is taken to do by the agent's label; any other kind writes."""
MILD = frozenset({"read", "search", "think", "fetch"})
"""Labels that a tool that writes or runs something does not keep."""
