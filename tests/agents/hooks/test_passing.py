"""Each agent is given the hook beside the user's own settings, and nothing is written but in the private folder."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.hooks.call import read_call
from dragoman.agents.hooks.codex import _hash
from dragoman.agents.hooks.passed import shell_line
from dragoman.agents.hooks.passing import BY_PROGRAM, VARIABLE, pass_hook, passing_for
from dragoman.agents.hooks.process import private_folder
from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentUnavailable

RECORDED = "sha256:379627cf161591ebb436925fc4f049a7aa1f7b0532268656c427f2f7152d5259"


def passed(name: str, folder: Path, **env: str) -> Any:
    return pass_hook(BY_PROGRAM[name], folder, "/s#x", env)


@pytest.mark.parametrize("name", BY_PROGRAM)
def test_every_agent_is_told_the_address(name: str, tmp_path: Path) -> None:
    assert passed(name, tmp_path).env[VARIABLE] == "/s#x"


def test_plugins_and_settings_of_opencode_stay(tmp_path: Path) -> None:
    own = {"plugin": ["mine"], "permission": {"bash": "ask"}}
    env = passed("opencode", tmp_path, OPENCODE_CONFIG_CONTENT=json.dumps(own)).env
    settings = json.loads(env["OPENCODE_CONFIG_CONTENT"])
    assert settings["permission"] == own["permission"]
    assert settings["plugin"] == ["mine", (tmp_path / "dragoman.js").as_uri()]
    assert (tmp_path / "dragoman.js").is_file()


def test_npm_gives_up_soon_only_where_opencode_lacks_its_library(tmp_path: Path) -> None:
    config = tmp_path / "config"
    (tmp_path / "hook").mkdir()
    own = {"XDG_CONFIG_HOME": str(config), "npm_config_fetch_timeout": "1"}
    hurried = passed("opencode", tmp_path / "hook", **own).env
    assert hurried["npm_config_fetch_retries"] == "0" and "npm_config_fetch_timeout" not in hurried
    (config / "opencode" / "node_modules" / "@opencode-ai" / "plugin").mkdir(parents=True)
    assert "npm_config_fetch_retries" not in passed("opencode", tmp_path / "hook", **own).env


def test_settings_that_cannot_be_read_are_an_error_that_names_them(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable, match="OPENCODE_CONFIG_CONTENT is not JSON"):
        passed("opencode", tmp_path, OPENCODE_CONFIG_CONTENT="// mine")


def test_the_settings_of_the_system_stay_for_qwen_code(tmp_path: Path) -> None:
    system = tmp_path / "system" / "settings.json"
    system.parent.mkdir()
    system.write_text(
        json.dumps({"tools": {"exclude": ["x"]}, "hooks": {"PreToolUse": [{"matcher": "a"}], "Stop": []}})
    )
    env = passed("qwen", tmp_path, QWEN_CODE_SYSTEM_SETTINGS_PATH=str(system)).env
    settings = json.loads(Path(env["QWEN_CODE_SYSTEM_SETTINGS_PATH"]).read_text())
    assert settings["tools"] == {"exclude": ["x"]} and settings["hooks"]["Stop"] == []
    first, ours = settings["hooks"]["PreToolUse"]
    assert first == {"matcher": "a"} and ours["hooks"][0]["command"] == shell_line()
    assert env["QWEN_CODE_SYSTEM_DEFAULTS_PATH"] == str(system.with_name("system-defaults.json"))


def test_sessions_of_claude_agent_acp_name_our_plugin_beside_the_clients(tmp_path: Path) -> None:
    rewrite = passed("claude-agent-acp", tmp_path).rewrite
    params = {
        "cwd": "/x",
        "_meta": {"a": 1, "claudeCode": {"options": {"model": "m", "plugins": [{"path": "p"}]}}},
    }
    told = json.loads(rewrite(json.dumps({"id": 1, "method": "session/new", "params": params}).encode()))
    options = told["params"]["_meta"]["claudeCode"]["options"]
    assert told["params"]["_meta"]["a"] == 1 and options["model"] == "m"
    theirs, ours = options["plugins"]
    assert theirs == {"path": "p"}
    hooks = json.loads((Path(ours["path"]) / "hooks" / "hooks.json").read_text())
    assert hooks["hooks"]["PreToolUse"][0]["hooks"][0]["command"] == shell_line()
    prompt = b'{"method":"session/prompt","params":{"text":"\\"session/new\\""}}'
    assert rewrite(prompt) is prompt


def test_folders_that_dead_gateways_left_are_removed(tmp_path: Path) -> None:
    left = tmp_path / "4194304-00"  # above the largest id of a process
    left.mkdir()
    made, other = private_folder(tmp_path), private_folder(tmp_path)
    assert not left.exists() and made.is_dir() and other.is_dir()
    assert made.stat().st_mode & 0o777 == 0o700


def test_hooks_that_codex_acp_is_given_stay_before_ours(tmp_path: Path) -> None:
    own = {"model": "m", "hooks": {"PreToolUse": [{"hooks": []}], "state": {"a": {"enabled": False}}}}
    settings = json.loads(passed("codex-acp", tmp_path, CODEX_CONFIG=json.dumps(own)).env["CODEX_CONFIG"])
    assert settings["model"] == "m" and settings["hooks"]["state"]["a"] == {"enabled": False}
    first, ours = settings["hooks"]["PreToolUse"]
    assert first == {"hooks": []} and ours["hooks"][0]["command"] == shell_line()
    trusted = settings["hooks"]["state"]["/<session-flags>/config.toml:pre_tool_use:1:0"]["trusted_hash"]
    assert trusted.startswith("sha256:")


def test_codex_is_given_the_hook_as_a_setting_of_its_start(tmp_path: Path) -> None:
    found = passing_for(AgentConfig(kind="codex", command=["codex"]))
    assert found is not None
    option, setting = pass_hook(found, tmp_path, "/s#x", {}).arguments
    hooks = tomllib.loads(setting)["hooks"]
    assert option == "-c" and hooks["PreToolUse"][0]["hooks"][0]["command"] == shell_line()


def test_the_trust_of_a_hook_of_codex_is_the_hash_that_codex_makes() -> None:
    """Recorded from `hooks/list` of codex 0.166."""
    assert _hash({"type": "command", "command": "true", "timeout": 5}) == RECORDED


@pytest.mark.parametrize(
    ("given", "acts"),
    [
        ({"tool_name": "Bash", "tool_input": {"command": "ls"}}, ({"command": "ls", "cwd": "/w"}, "execute")),
        (
            {
                "tool_name": "apply_patch",
                "tool_input": {"command": "*** Add File: a\n+*** x\n*** Move to: /b\n"},
            },
            ({"changes": [{"path": "/w/a"}, {"path": "/b"}]}, "edit"),
        ),
        ({"tool_name": "apply_patch", "tool_input": {"command": "?"}}, ({"changes": [{"path": 0}]}, "edit")),
    ],
)
def test_a_call_of_codex_is_read_with_its_folder_and_its_files(given: Any, acts: Any) -> None:
    call = {"session_id": "s", "tool_use_id": "t", "cwd": "/w", **given}
    describe = BY_PROGRAM["codex-acp"].manner.describe
    tool = json.loads(read_call(json.dumps(call).encode(), describe, says_ask=False)[1])["toolCall"]
    assert (tool["rawInput"], tool["kind"]) == acts
