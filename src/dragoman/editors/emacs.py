"""Emacs with agent-shell: a file of our own in the folder of Emacs, and a block in the init file that loads it."""

from __future__ import annotations

from pathlib import Path

from dragoman.editors.code_files import header, lua_text
from dragoman.editors.editor import Launch, Machine

FILE = "dragoman-agent-shell.el"


def file(machine: Machine) -> Path:
    """In Doom's folder if there is one, else in the folder that Emacs uses: `~/.emacs.d` goes before the XDG one."""
    for folder in (machine.config / "doom", machine.home / ".doom.d"):
        if (folder / "config.el").is_file():
            return folder / FILE
    old, new = machine.home / ".emacs.d", machine.config / "emacs"
    return (new if new.is_dir() and not old.is_dir() else old) / FILE


def init_file(own: Path) -> Path:
    """The file that Emacs loads at its start, in the order in which it looks for one."""
    if (own.parent / "config.el").is_file():
        return own.parent / "config.el"
    if own.parent.name == ".emacs.d":
        for name in (".emacs.el", ".emacs"):
            if (own.parent.parent / name).is_file():
                return own.parent.parent / name
    return own.parent / "init.el"


def load_line(own: Path) -> str:
    return f"(load {lua_text(str(own.with_suffix('')))} t)"


def agent_shell(launch: Launch) -> str:
    """Offers Dragoman in `M-x agent-shell`, and starts it with `M-x dragoman-agent-shell`."""
    name = lua_text(launch.name)
    args = " ".join(map(lua_text, launch.args))
    env = f"'({lua_text(f'PATH={launch.path}')})" if launch.path is not None else "nil"
    head = header(";;", "agent-shell", launch)
    return f""";;; {FILE} --- Dragoman in agent-shell  -*- lexical-binding: t; -*-
{head}
(defun dragoman-agent-shell-config ()
  "Return the configuration of Dragoman for agent-shell."
  (agent-shell-make-agent-config
   :identifier 'dragoman
   :mode-line-name {name}
   :buffer-name {name}
   :shell-prompt {lua_text(launch.name + "> ")}
   :shell-prompt-regexp (regexp-quote {lua_text(launch.name + "> ")})
   :client-maker (lambda (buffer)
                   (acp-make-client
                    :command {lua_text(launch.program)}
                    :command-params '({args})
                    :environment-variables {env}
                    :context-buffer buffer))))

(defun dragoman-agent-shell ()
  "Start an agent shell with Dragoman."
  (interactive)
  (require 'agent-shell)
  (agent-shell-start :config (dragoman-agent-shell-config)))

(with-eval-after-load 'agent-shell
  (add-to-list 'agent-shell-agent-configs (dragoman-agent-shell-config)))

(provide 'dragoman-agent-shell)
;;; {FILE} ends here
"""
