"""The plugins of Neovim that speak ACP: a file in `after/plugin`, which Neovim loads behind the user's own files.

The file changes the plugin's settings behind the plugin's `setup`. With lazy.nvim that may be later, when the plugin is
first used, so it waits for the event that lazy.nvim sends then.
"""

from __future__ import annotations

from pathlib import Path

from dragoman.editors.code_files import header, lua_list, lua_text
from dragoman.editors.editor import Launch, Machine

_WHEN = """
if package.loaded["lazy"] and not package.loaded[{module}] then
  vim.api.nvim_create_autocmd("User", {{
    pattern = "LazyLoad",
    callback = function(event)
      if event.data == {plugin} then
        apply()
        return true
      end
    end,
  }})
else
  apply()
end
"""


def _folder(machine: Machine) -> Path:
    return machine.config / (machine.environ.get("NVIM_APPNAME") or "nvim") / "after" / "plugin"


def codecompanion_file(machine: Machine) -> Path:
    return _folder(machine) / "dragoman_codecompanion.lua"


def avante_file(machine: Machine) -> Path:
    return _folder(machine) / "dragoman_avante.lua"


def codecompanion(launch: Launch) -> str:
    """Defines an adapter and makes it the one of chats; `strategies` is what old versions call `interactions`."""
    return f"""{header("--", "codecompanion", launch)}
local name = {lua_text(launch.id)}

local function adapter()
  return require("codecompanion.adapters").extend("gemini_cli", {{
    name = name,
    formatted_name = {lua_text(launch.name)},
    commands = {{ default = {lua_list(launch.words)} }},
    handlers = {{
      auth = function()
        return true -- each agent has its own login
      end,
    }},
  }})
end

local function apply()
  local found, config = pcall(require, "codecompanion.config")
  if not found then
    return
  end
  local adapters = config.adapters.acp or config.adapters
  adapters[name] = adapter
  local interactions = config.interactions or config.strategies
  interactions.chat.adapter = name
end
{_WHEN.format(module=lua_text("codecompanion"), plugin=lua_text("codecompanion.nvim"))}"""


def avante(launch: Launch) -> str:
    """Defines a provider and chooses it.

    Avante gives an agent PATH and what is in `env`, nothing else; without HOME an agent finds none of its settings.
    """
    words = launch.words
    return f"""{header("--", "avante", launch)}
local name = {lua_text(launch.id)}

local function apply()
  local found, config = pcall(require, "avante.config")
  if not found then
    return
  end
  config.override({{
    provider = name,
    acp_providers = {{
      [name] = {{
        command = {lua_text(words[0])},
        args = {lua_list(words[1:])},
        env = vim.fn.environ(),
      }},
    }},
  }})
end
{_WHEN.format(module=lua_text("avante"), plugin=lua_text("avante.nvim"))}"""
