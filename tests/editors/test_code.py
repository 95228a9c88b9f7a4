"""The Lua and the Emacs Lisp that are written: read by the editors themselves, with stand-ins for the plugins.

The Neovim and the Emacs of a stable distribution are older than the plugins need, so the plugins are stubs that have
the functions and tables which the plugins document.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.editors.catalog import EDITORS
from dragoman.editors.editor import Launch

LAUNCH = Launch('A "b" \\ ü', "/opt/my tools/dragoman", "gemini", None, "/usr/bin:/bin")
PLAIN = Launch("Dragoman", "/opt/dragoman")
COMMAND = ["/usr/bin/env", "PATH=/usr/bin:/bin", "/opt/my tools/dragoman", "acp", "gemini"]

CODECOMPANION = """
package.preload["codecompanion.config"] = function()
  return { adapters = { acp = { opts = {} } }, INTERACTIONS = { chat = { adapter = "copilot" } } }
end
package.preload["codecompanion.adapters"] = function()
  return { extend = function(base, options) options.base = base; return options end }
end
function Report()
  local config = require("codecompanion.config")
  local chat = (config.interactions or config.strategies).chat.adapter
  local make = config.adapters.acp[chat]
  local adapter = make and make() or {}
  return { chat = chat, base = adapter.base, commands = adapter.commands, title = adapter.formatted_name,
           auth = adapter.handlers and adapter.handlers.auth() }
end
"""
AVANTE = """
package.preload["avante.config"] = function()
  local config = { provider = "claude", acp_providers = {} }
  config.override = function(options)
    for key, value in pairs(options) do config[key] = value end
  end
  return config
end
function Report()
  local config = require("avante.config")
  local chosen = config.acp_providers[config.provider] or {}
  return { provider = config.provider, command = chosen.command, args = chosen.args, home = (chosen.env or {}).HOME }
end
"""


def nvim(tmp_path: Path, lines: str) -> dict[str, object]:
    program = shutil.which("nvim")
    if program is None:
        pytest.skip("NOT TESTED: nvim is not installed, so the Lua for Neovim was not run")
    script, out = tmp_path / "test.lua", tmp_path / "out.json"
    script.write_text(
        lines + f"\nvim.fn.writefile({{ vim.fn.json_encode(Report()) }}, {json.dumps(str(out))})\n"
    )
    command = [
        program,
        "--headless",
        "-u",
        "NONE",
        "-i",
        "NONE",
        "-n",
        "-c",
        f"luafile {script}",
        "-c",
        "qa!",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert out.exists(), done.stderr
    found: dict[str, object] = json.loads(out.read_text())
    return found


def written(tmp_path: Path, editor: str, launch: Launch) -> str:
    file = tmp_path / "written"
    file.write_text(EDITORS[editor].show(launch))
    return f"dofile({json.dumps(str(file))})\n"


@pytest.mark.long
@pytest.mark.parametrize("table", ["interactions", "strategies"])
def test_codecompanion_gets_an_adapter_and_uses_it(tmp_path: Path, table: str) -> None:
    stub = CODECOMPANION.replace("INTERACTIONS", table)
    found = nvim(tmp_path, stub + written(tmp_path, "codecompanion", LAUNCH))
    assert found == {
        "chat": "a_b",
        "base": "gemini_cli",
        "commands": {"default": COMMAND},
        "title": LAUNCH.name,
        "auth": True,
    }


@pytest.mark.long
def test_avante_gets_a_provider_with_the_whole_environment(tmp_path: Path) -> None:
    found = nvim(tmp_path, AVANTE + written(tmp_path, "avante", LAUNCH))
    assert (found["provider"], found["command"], found["args"]) == ("a_b", COMMAND[0], COMMAND[1:])
    assert found["home"]
    plain = nvim(tmp_path, AVANTE + written(tmp_path, "avante", PLAIN))
    assert (plain["command"], plain["args"]) == ("/opt/dragoman", ["acp"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("editor", "plugin"), [("codecompanion", "codecompanion.nvim"), ("avante", "avante.nvim")]
)
def test_a_plugin_that_loads_later_is_set_up_then(tmp_path: Path, editor: str, plugin: str) -> None:
    """lazy.nvim sends `User LazyLoad` with the plugin's name behind its `setup`."""
    stub = {"codecompanion": CODECOMPANION.replace("INTERACTIONS", "interactions"), "avante": AVANTE}[editor]
    key = {"codecompanion": "chat", "avante": "provider"}[editor]
    listen = """
    package.loaded["lazy"] = {}
    vim.api.nvim_create_autocmd = function(event, options) Listener = { event, options.pattern, options.callback } end
    """  # the callback is called here, because Neovim hands `data` on only since 0.8
    begin = stub + listen + written(tmp_path, editor, LAUNCH) + 'assert(Listener[2] == "LazyLoad")\n'
    other = 'assert(not Listener[3]({ data = "other.nvim" }))\n'
    assert nvim(tmp_path, begin + other)[key] != "a_b"
    assert nvim(tmp_path, begin + f'assert(Listener[3]({{ data = "{plugin}" }}))\n')[key] == "a_b"


STUBS = """
(require 'cl-lib)
(defvar agent-shell-agent-configs nil)
(defvar started nil)
(cl-defun agent-shell-make-agent-config (&rest options) options)
(cl-defun acp-make-client (&key command command-params environment-variables context-buffer)
  (list :command command :params command-params :env environment-variables :buffer context-buffer))
(cl-defun agent-shell-start (&key config) (setq started config))
(provide 'agent-shell)
"""
REPORT = """
(load (expand-file-name "written.el") nil t)
(dragoman-agent-shell)
(let ((client (funcall (plist-get started :client-maker) "buffer")))
  (princ (json-encode
    `((name . ,(plist-get started :buffer-name)) (listed . ,(length agent-shell-agent-configs))
      (prompt . ,(and (string-match-p (plist-get started :shell-prompt-regexp) (plist-get started :shell-prompt)) t))
      (command . ,(plist-get client :command)) (params . ,(vconcat (plist-get client :params)))
      (env . ,(vconcat (plist-get client :env)))))))
"""


@pytest.mark.long
def test_agent_shell_offers_dragoman_and_starts_it(tmp_path: Path) -> None:
    program = shutil.which("emacs")
    if program is None:
        pytest.skip("NOT TESTED: emacs is not installed, so the Lisp for agent-shell was not run")
    (tmp_path / "written.el").write_text(EDITORS["agent-shell"].show(LAUNCH))
    (tmp_path / "test.el").write_text("(require 'json)\n" + STUBS + REPORT)
    command = [program, "-Q", "--batch", "-l", "test.el"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "name": LAUNCH.name,
        "listed": 1,
        "prompt": True,
        "command": "/opt/my tools/dragoman",
        "params": ["acp", "gemini"],
        "env": ["PATH=/usr/bin:/bin"],
    }


@pytest.mark.parametrize("editor", ["codecompanion", "avante", "agent-shell"])
def test_quotes_in_names_do_not_end_a_text(editor: str) -> None:
    """Every text in the code ends on the line on which it begins, whatever is in it."""
    for line in EDITORS[editor].show(LAUNCH).splitlines():
        if not line.startswith(("--", ";;")):
            assert line.replace("\\\\", "").replace('\\"', "").count('"') % 2 == 0, line
