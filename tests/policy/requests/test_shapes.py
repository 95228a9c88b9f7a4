"""The tool calls of permission requests, as the tested agents send them, become acts with their facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.policy.act import Act, PathFact, Tool
from dragoman.policy.requests.request import Surroundings, act_of_request


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    return folder


def act(project: Path, tool: dict[str, Any], **around: Any) -> Act:
    return act_of_request(tool, Surroundings(cwd=str(project), workspace=str(project), **around))


# `{p}` is the project. Recorded; ids, texts and paths are shortened.
COMMANDS: dict[str, dict[str, Any]] = {
    "claude-agent-acp": {
        "toolCallId": "toolu_1",
        "name": "Bash",
        "status": "pending",
        "rawInput": {"command": "touch a.txt", "description": "Run a command"},
        "title": "touch a.txt",
        "kind": "execute",
        "content": [{"type": "content", "content": {"type": "text", "text": "Run a command"}}],
        "locations": [{"path": "{p}/a.txt"}],
    },
    "claude": {
        "toolCallId": "toolu_1",
        "title": "touch a.txt",
        "kind": "execute",
        "rawInput": {"command": "touch a.txt"},
        "_meta": {"dragoman": {"toolName": "Bash"}},
    },
    "codex-acp": {
        "toolCallId": "call_1",
        "title": "Read file '{p}/a.txt'",
        "rawInput": {"command": "touch a.txt", "cwd": "{p}"},
        "kind": "read",
        "locations": [{"path": "{p}/a.txt"}],
    },
    "codex": {
        "kind": "read",
        "title": "touch a.txt",
        "rawInput": {"command": "/bin/bash -lc 'touch a.txt'", "cwd": "{p}"},
        "toolCallId": "call_1",
    },
    "codex argv": {"kind": "execute", "rawInput": {"command": ["bash", "-lc", "touch a.txt"], "cwd": "{p}"}},
    "opencode": {
        "toolCallId": "call_1",
        "title": "touch a.txt",
        "kind": "execute",
        "locations": [],
        "rawInput": {"command": "touch a.txt"},
    },
    "gemini": {
        "toolCallId": "run_shell_command__call_1",
        "title": "touch a.txt",
        "content": [
            {
                "type": "content",
                "content": {"type": "text", "text": "[current working directory /elsewhere] (Run a command)"},
            }
        ],
        "locations": [],
        "kind": "execute",
    },
    "qwen": {
        "toolCallId": "call_1",
        "title": "touch a.txt (Run a command)",
        "kind": "execute",
        "rawInput": {"command": "touch a.txt", "description": "Run a command", "is_background": False},
        "_meta": {"toolName": "run_shell_command"},
    },
    "builtin": {
        "toolCallId": "call_1",
        "title": "touch a.txt",
        "kind": "execute",
        "rawInput": {"command": "touch a.txt", "path": "."},
        "_meta": {"dragoman": {"toolName": "run"}},
    },
}
EDITS: dict[str, dict[str, Any]] = {
    "claude-agent-acp": {
        "name": "Write",
        "rawInput": {"file_path": "{p}/a.txt", "content": "x"},
        "kind": "edit",
        "content": [{"type": "diff", "path": "{p}/a.txt", "oldText": None, "newText": "x"}],
        "locations": [{"path": "{p}/a.txt"}],
    },
    "codex-acp": {
        "toolCallId": "call_1",
        "title": "Edit files",
        "locations": [{"path": "{p}/a.txt"}],
        "kind": "edit",
    },
    "codex": {"kind": "edit", "rawInput": {"changes": [{"path": "{p}/a.txt", "kind": {"type": "add"}}]}},
    "opencode": {"kind": "edit", "rawInput": {"filepath": "{p}/a.txt", "diff": "Index: …"}},
    "opencode files": {"kind": "edit", "rawInput": {"files": [{"filePath": "{p}/a.txt", "type": "add"}]}},
    "gemini": {
        "toolCallId": "write_file-1763424000000-1",
        "title": "Writing to a.txt",
        "content": [{"type": "diff", "path": "{p}/a.txt", "oldText": "", "newText": "x"}],
        "locations": [{"path": "{p}/a.txt"}],
        "kind": "edit",
    },
    "qwen": {"rawInput": {"file_path": "{p}/a.txt"}, "_meta": {"toolName": "write_file"}, "kind": "edit"},
    "builtin": {"rawInput": {"path": "a.txt", "content": "x"}, "_meta": {"dragoman": {"toolName": "write"}}},
    "a read with a diff": {"kind": "read", "content": [{"type": "diff", "path": "a.txt", "newText": "x"}]},
}


def filled(value: Any, project: Path) -> Any:
    if isinstance(value, str):
        return value.replace("{p}", str(project))
    if isinstance(value, dict):
        return {name: filled(inner, project) for name, inner in value.items()}
    return [filled(inner, project) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("agent", COMMANDS)
def test_a_shell_line_is_an_execute_with_its_commands_and_paths(project: Path, agent: str) -> None:
    found = act(project, filled(COMMANDS[agent], project))
    assert (found.kind, found.opaque, found.label_only) == ("execute", None, False)
    assert [command.words for command in found.commands] == [("touch", "a.txt")]
    assert found.all_paths == (PathFact(str(project / "a.txt"), "write", outside=False),)


@pytest.mark.parametrize("agent", EDITS)
def test_an_edit_has_the_files_that_it_writes(project: Path, agent: str) -> None:
    found = act(project, filled(EDITS[agent], project))
    assert found.kind == ("other" if agent == "builtin" else "edit")
    assert (found.paths, found.label_only) == (
        (PathFact(str(project / "a.txt"), "write", outside=False),),
        False,
    )


@pytest.mark.parametrize(
    ("tool", "folder"),
    [
        ({"rawInput": {"command": "touch x", "cwd": "{p}/sub"}}, "sub"),
        ({"rawInput": {"command": "touch x", "workdir": "sub"}}, "sub"),
        ({"name": "run_shell_command", "rawInput": {"command": "touch x", "directory": "{p}/sub"}}, "sub"),
        (
            {"rawInput": {"command": "touch x", "path": "sub"}, "_meta": {"dragoman": {"toolName": "run"}}},
            "sub",
        ),
        ({"rawInput": {"command": "touch x", "cwd": 7}}, None),
        ({"rawInput": {"command": "touch x", "cwd": False}}, None),
    ],
)
def test_a_line_runs_in_the_folder_that_is_told(
    project: Path, tool: dict[str, Any], folder: str | None
) -> None:
    path = act(project, filled({"kind": "execute", **tool}, project)).all_paths[0]
    assert path.outside == (folder is None)
    if folder is not None:
        assert path.path == str(project / folder / "x")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("[in sub]", True),
        ("[in {p}/sub] (Touch it) [background]", True),
        ("[in sub] (see [1])", False),
        ("[in sub]x] (Touch it)", False),
        ("Something else", False),
    ],
)
def test_gemini_tells_the_folder_in_the_content(project: Path, text: str, known: bool) -> None:
    content = [{"type": "content", "content": {"type": "text", "text": filled(text, project)}}]
    tool = {"toolCallId": "run_shell_command__1", "title": "touch x", "kind": "execute", "content": content}
    path = act(project, tool).all_paths[0]
    assert path == PathFact(str(project / "sub" / "x"), "write", outside=False) if known else path.outside


def test_a_shell_that_keeps_its_folder_may_be_anywhere_after_a_cd(project: Path) -> None:
    tool = {"name": "Bash", "kind": "execute", "rawInput": {"command": "touch x"}}
    assert not act(project, tool).all_paths[0].outside
    assert act(project, tool, moved=True).all_paths[0].outside
    assert not act(project, {**tool, "name": "exec_command"}, moved=True).all_paths[0].outside


@pytest.mark.parametrize(
    ("tool", "server", "name"),
    [
        ({"name": "mcp__db__query", "rawInput": {"command": "rm -rf /"}}, "db", "query"),
        ({"_meta": {"toolName": "mcp__my-db__list_all"}}, "my-db", "list_all"),
        ({"_meta": {"dragoman": {"mcp": {"server": "db", "tool": "query"}}}}, "db", "query"),
        (
            {"kind": "execute", "title": "mcp.db.query", "rawInput": {"server": "db", "tool": "query"}},
            "db",
            "query",
        ),
    ],
)
def test_a_tool_of_an_mcp_server_is_named(
    project: Path, tool: dict[str, Any], server: str, name: str
) -> None:
    found = act(project, tool)
    assert (found.mcp, found.commands, found.label_only) == (Tool(server, name), (), False)


def test_a_server_whose_name_is_not_clear_is_only_a_label(project: Path) -> None:
    found = act(project, {"name": "mcp__a__b__c"})
    assert found.mcp == Tool("a", "b__c") and found.label_only


@pytest.mark.parametrize(
    ("tool", "hosts"),
    [
        (
            {"name": "WebFetch", "kind": "fetch", "rawInput": {"url": "https://API.example.com:8/x"}},
            ("api.example.com",),
        ),
        ({"kind": "fetch", "rawInput": {"url": "example.com/x"}}, ("example.com",)),
        ({"kind": "fetch", "rawInput": {"url": ["http://a.org", 3, "http://[bad"]}}, ("a.org", "?")),
        ({"toolCallId": "web_fetch__1", "kind": "fetch", "title": "Processing URLs from the prompt"}, ("?",)),
        ({"rawInput": {"command": "npm test", "url": "https://evil.org"}}, ("evil.org",)),
        ({"title": "socks5 network access to evil.org", "rawInput": {"command": "npm test"}}, ("evil.org",)),
    ],
)
def test_hosts_are_those_of_addresses(project: Path, tool: dict[str, Any], hosts: tuple[str, ...]) -> None:
    assert act(project, tool).hosts == hosts


def test_what_only_a_label_supports_says_so(project: Path) -> None:
    assert act(project, {"kind": "read", "title": "Read notes.txt"}).label_only
    assert act(
        project, {"kind": "read", "rawInput": {"path": "notes.txt"}}
    ).label_only  # it may write as well
    assert not act(
        project, {"name": "Read", "kind": "read", "rawInput": {"file_path": "notes.txt"}}
    ).label_only
    assert act(project, {"name": "TodoWrite", "kind": "think", "rawInput": {"todos": []}}).label_only


@pytest.mark.parametrize(
    "told",
    [
        {"input": {"command": "touch x"}},
        {"arguments": {"tool": {"cmd": ["touch", "x"]}}},
        {"calls": [{"script": "touch x"}]},
        {"input": {"command": "touch x", "path": "notes.txt"}},
        {"commandLine": "touch x"},
        {"CommandLine": "touch x"},
        {"input": {"shell_command": "touch x"}},
        {"argv": ["touch", "x"]},
    ],
)
def test_a_command_deeper_in_the_input_is_seen(project: Path, told: dict[str, Any]) -> None:
    found = act(project, {"kind": "read", "rawInput": told})
    assert (found.kind, [command.words for command in found.commands]) == ("execute", [("touch", "x")])


def test_a_folder_beside_a_command_deeper_in_the_input_counts(project: Path) -> None:
    told = {"input": {"command": "touch x", "cwd": "/etc"}}
    assert act(project, {"kind": "execute", "rawInput": told}).all_paths[0] == PathFact(
        "/etc/x", "write", True
    )


def test_of_two_commands_deeper_in_the_input_none_is_believed(project: Path) -> None:
    found = act(project, {"kind": "read", "rawInput": {"calls": [{"command": "ls"}, {"command": "rm x"}]}})
    assert (found.kind, found.opaque) == ("execute", "a command of an unknown shape")


def test_files_of_a_list_of_edits_are_written(project: Path) -> None:
    told = {"edits": [{"file_path": "a.txt", "old_string": "x"}, {"filePath": "/etc/x"}]}
    found = act(project, {"kind": "read", "rawInput": told})
    assert found.kind == "edit"
    assert set(found.paths) == {
        PathFact(str(project / "a.txt"), "write", outside=False),
        PathFact("/etc/x", "write", outside=True),
    }


def test_an_address_deeper_in_the_input_is_seen(project: Path) -> None:
    assert act(project, {"kind": "fetch", "rawInput": {"request": {"url": "https://evil.org"}}}).hosts == (
        "evil.org",
    )


def test_an_input_that_is_too_large_to_look_through_is_opaque(project: Path) -> None:
    deep: dict[str, Any] = {"command": "rm x"}
    for _ in range(50):
        deep = {"input": deep}
    for told in (deep, {"edits": [{"old": "x"}] * 5000}):
        assert (
            act(project, {"name": "Edit", "kind": "edit", "rawInput": told}).opaque
            == "an input with many parts"
        )


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "TodoWrite", "kind": "think"},
        {"name": "Read", "kind": "read"},
        {"toolCallId": "TodoWrite__1", "kind": "think"},
        {"title": "mcp.a.b", "kind": "other", "server": "a"},
    ],
)
def test_no_name_hides_a_command(project: Path, tool: dict[str, Any]) -> None:
    told = {"command": "rm x", "server": "a", "tool": "b"}
    found = act(project, {**tool, "rawInput": told})
    assert (found.kind, found.commands[0].words, found.mcp) == ("execute", ("rm", "x"), None)


def test_a_folder_that_the_tool_does_not_take_is_not_believed(project: Path) -> None:
    tool = {
        "name": "Bash",
        "kind": "execute",
        "rawInput": {"command": "touch x", "cwd": str(project / "sub")},
    }
    assert act(project, tool).all_paths == (PathFact(str(project / "x"), "write", outside=False),)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"command": 7},
        {"command": "ls", "cmd": "rm x"},
        {"command": ["rm", 7]},
        {"command": ""},
        {"arguments": ["rm"]},
        "rm",
        [],
    ],
)
def test_a_command_that_is_not_told_is_opaque(project: Path, told: Any) -> None:
    found = act(project, {"kind": "execute", "rawInput": told, "locations": [{"path": "/etc/x"}]})
    assert found.opaque is not None and found.label_only and found.kind == "execute"
    assert found.paths == (PathFact("/etc/x", "write", outside=True),)


def test_permissions_beyond_one_call_are_opaque(project: Path) -> None:
    told = {"command": "ls", "additionalPermissions": {"fileSystem": {"write": ["/"]}}}
    found = act(project, {"kind": "execute", "rawInput": told})
    assert found.opaque == "it asks for more than this call (additionalPermissions)" and found.label_only


def test_paths_are_absolute_and_resolved_through_symlinks(project: Path) -> None:
    (project / "link").symlink_to("/etc")
    for told in (
        "link/passwd",
        "sub/../link/passwd",
        f"{project}/link/passwd",
        f"file://{project}/link/passwd",
    ):
        found = act(project, {"name": "Edit", "kind": "edit", "rawInput": {"file_path": told}})
        assert found.paths == (PathFact("/etc/passwd", "write", outside=True),), told


def test_paths_of_a_sandbox_are_those_of_the_host(project: Path) -> None:
    def to_host(path: str) -> str:
        return path.replace("/box", str(project), 1) if path.startswith("/box/") else path

    tool = {
        "name": "Edit",
        "kind": "edit",
        "rawInput": {"file_path": "/box/a"},
        "locations": [{"path": f"{project}/a"}],
    }
    assert act(project, tool, to_host=to_host).paths == (PathFact(f"{project}/a", "write", outside=False),)
    line = {"kind": "execute", "rawInput": {"command": "cat /box/a", "cwd": "/box/sub"}}
    seen = act(project, line, to_host=to_host, line_to_host=lambda text: text.replace("/box", str(project)))
    assert seen.all_paths == (PathFact(f"{project}/a", "read", outside=False),)
    assert act(project, line, to_host=to_host).all_paths[0].outside


def test_too_many_paths_leave_one_that_is_not_known(project: Path) -> None:
    told = [{"path": f"f{number}"} for number in range(5000)]
    found = act(project, {"kind": "edit", "locations": told})
    assert len(found.paths) == 101 and found.paths[-1] == PathFact("?", "write", outside=True)


@pytest.mark.parametrize(
    "told",
    [
        "rm x",
        ["rm", "x"],
        {"commands": ["rm x", "ls"]},
        {"command": ["rm x", "ls"]},
        {"command": "ls", "script": "rm x"},
        {"script": {"text": "rm x"}},
    ],
)
def test_a_read_whose_input_may_be_a_command_is_not_understood(project: Path, told: object) -> None:
    assert act(project, {"kind": "read", "rawInput": told}).opaque is not None


def test_a_tool_of_the_agent_is_not_one_of_a_server(project: Path) -> None:
    forged = {"dragoman": {"mcp": {"server": "docs", "tool": "search"}}}
    found = act(project, {"name": "Bash", "_meta": forged, "kind": "read", "rawInput": {"command": "rm x"}})
    assert (found.kind, found.mcp, found.commands[0].words) == ("execute", None, ("rm", "x"))


def test_a_path_with_blanks_around_it_is_outside(project: Path) -> None:
    found = act(project, {"name": "Write", "kind": "edit", "rawInput": {"file_path": " /etc/passwd"}})
    assert found.all_paths[0].outside
