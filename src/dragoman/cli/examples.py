"""Examples at the end of each command's help: the line to type, and what it does where that is not plain."""

from __future__ import annotations

import click

ROOM = 76
"""Columns for a line and its note, behind the indent of a help text."""

EXAMPLES: dict[str, dict[str, str]] = {
    "": {
        "dragoman chat": "talk to the default agent",
        "dragoman serve --open": "in a browser; sessions go on alone",
        "dragoman ps --watch": "all sessions; Enter opens one",
        'dragoman exec "What does this do?"': "one answer, for a script",
        "dragoman agents list": "which there are, how to get more",
        "dragoman chat --help": "more about a command",
    },
    "acp": {
        "dragoman acp": "the command for an editor's settings",
        "dragoman acp claude": "always with this agent",
        "dragoman acp --connect always": "through the running `dragoman serve`",
    },
    "agents": {
        "dragoman agents list": "",
        "dragoman agents install gemini": "",
        "dragoman agents check claude": "",
    },
    "agents add": {
        "dragoman agents add mine -- my-agent --acp": "a program that speaks ACP on stdio",
        "dragoman agents add claude -- /opt/claude/bin/claude": "a known one elsewhere",
        "dragoman agents add far --url wss://host.example/acp": "",
    },
    "agents check": {
        "dragoman agents check": "all that are installed",
        "dragoman agents check claude --timeout 20": "",
    },
    "agents install": {
        "dragoman agents install gemini": "",
        "dragoman agents install codex@latest": "the newest that npm has",
        "dragoman agents install claude --scripts": "its package has to run a script",
    },
    "agents outdated": {"dragoman agents outdated": ""},
    "agents refresh": {"dragoman agents refresh": "fetch the public list"},
    "agents search": {"dragoman agents search": "all", "dragoman agents search google": ""},
    "agents uninstall": {"dragoman agents uninstall gemini": ""},
    "agents update": {"dragoman agents update": "all", "dragoman agents update gemini": ""},
    "agents list": {"dragoman agents list": "", "dragoman agents list --json": "with all that is known"},
    "agents remove": {"dragoman agents remove mine": ""},
    "chat": {
        "dragoman chat": "a new session with the default agent",
        "dragoman chat claude": "with this one",
        "dragoman chat -c": "go on where this folder's last session ended",
        "dragoman chat -s dgm_9f3kx2": "a session of any folder and any client",
    },
    "exec": {
        'dragoman exec "What does this project do?"': "",
        'git diff | dragoman exec -q "Write a commit message for this" -': "",
        'dragoman exec -c "And now the tests"': "go on with the last session",
    },
    "sessions": {
        "dragoman sessions list": "",
        "dragoman sessions attach dgm_9f3kx2": "",
        "dragoman sessions export dgm_9f3kx2 -o talk.md": "",
    },
    "sessions attach": {
        "dragoman sessions attach dgm_9f3kx2": "",
        "dragoman sessions attach dgm_9f3kx2 --read-only": "only look",
    },
    "sessions close": {"dragoman sessions close dgm_9f3kx2": ""},
    "sessions delete": {"dragoman sessions delete dgm_9f3kx2 dgm_b71xm4": ""},
    "sessions export": {
        "dragoman sessions export dgm_9f3kx2 -o talk.md": "to read",
        "dragoman sessions export dgm_9f3kx2 > talk.ndjson": "every event",
    },
    "sessions list": {
        "dragoman sessions list": "",
        "dragoman sessions list --cwd . --all": "all of this folder",
    },
    "sessions path": {'tail -f "$(dragoman sessions path dgm_9f3kx2)"/*': ""},
    "sessions rename": {'dragoman sessions rename dgm_9f3kx2 "Faster start"': ""},
    "sessions search": {
        "dragoman sessions search timeout retry": "both words in one message",
        'dragoman sessions search "connection refused" --since 7d': "a phrase",
    },
    "sessions set": {"dragoman sessions set dgm_9f3kx2 mode=plan model=opus": ""},
    "sessions show": {"dragoman sessions show dgm_9f3kx2": ""},
    "sessions take": {"dragoman sessions take dgm_9f3kx2": ""},
    "ps": {
        "dragoman ps": "",
        "dragoman ps --watch": "live; Enter opens a session",
        "dragoman ps --all --json": "for scripts",
    },
    "prompt": {
        'dragoman prompt dgm_9f3kx2 "Also update the docs"': "",
        'dragoman prompt --now dgm_9f3kx2 "Leave the tests alone"': "into the running turn",
    },
    "cancel": {"dragoman cancel dgm_9f3kx2": ""},
    "queue": {
        "dragoman queue dgm_9f3kx2": "",
        'dragoman queue dgm_9f3kx2 edit 1 "Update the docs, too"': "",
        "dragoman queue dgm_9f3kx2 withdraw 1": "",
    },
    "changes": {
        "dragoman changes --stat": "files of the project's last session",
        "dragoman changes dgm_9f3kx2 --turn 2": "the patch of one turn",
    },
    "revert": {
        "dragoman revert": "all that the last session changed",
        "dragoman revert dgm_9f3kx2 --file src/main.py --hunk 2": "",
    },
    "rewind": {
        "dragoman rewind --list": "",
        "dragoman rewind --to 3 --both": "conversation and files",
        "dragoman rewind --undo": "",
    },
    "fork": {
        "dragoman fork dgm_9f3kx2": "",
        'dragoman fork dgm_9f3kx2 --at 3 -a codex --name "Another way"': "",
    },
    "retry": {"dragoman retry": "", "dragoman retry dgm_9f3kx2 --both": "files too"},
    "commit": {
        'dragoman commit -m "Add a retry"': "what the last session changed",
        "dragoman commit --propose --pr": "the agent writes the message",
    },
    "usage": {
        "dragoman usage --since 7d": "",
        "dragoman usage --by model --since today": "",
        "dragoman usage --by day --csv > usage.csv": "",
    },
    "worktrees": {
        'dragoman exec --worktree --name docs "Write the docs"': "makes one",
        "dragoman worktrees merge docs": "",
    },
    "worktrees clean": {"dragoman worktrees clean": ""},
    "worktrees discard": {"dragoman worktrees discard docs": ""},
    "worktrees keep": {"dragoman worktrees keep docs": ""},
    "worktrees list": {"dragoman worktrees list": "", "dragoman worktrees list -r ~/project": ""},
    "worktrees merge": {
        "dragoman worktrees merge docs": "",
        'dragoman worktrees merge docs -m "Write the docs"': "commits first",
    },
    "worktrees rebase": {"dragoman worktrees rebase docs": ""},
    "tokens": {"dragoman tokens create phone --role approve": "", "dragoman tokens list": ""},
    "tokens create": {
        "dragoman tokens create phone --role approve --expires 30d": "",
        "dragoman tokens create ci --sessions 4 --turns 2": "",
    },
    "tokens list": {"dragoman tokens list": ""},
    "tokens revoke": {"dragoman tokens revoke phone": ""},
    "policy": {'dragoman policy test "git push"': "", "dragoman policy show": ""},
    "policy check": {"dragoman policy check": ""},
    "policy edit": {"dragoman policy edit": ""},
    "policy explain": {
        "dragoman policy explain dgm_9f3kx2": "the last decision",
        "dragoman policy explain dgm_9f3kx2:call_1": "",
    },
    "policy forget": {"dragoman policy forget 5f1c": "an ID of `policy remembered`"},
    "policy remembered": {"dragoman policy remembered": ""},
    "policy replay": {
        "dragoman policy replay --since 7d": "",
        "dragoman policy replay --rules draft.toml": "rules that are not in force yet",
    },
    "policy show": {"dragoman policy show": ""},
    "policy test": {
        'dragoman policy test "rm -rf build"': "",
        "dragoman policy test --kind read --agent claude": "",
    },
    "audit": {"dragoman audit tail": "", "dragoman audit verify": ""},
    "audit export": {"dragoman audit export --format csv --since 30d > audit.csv": ""},
    "audit key": {"dragoman audit key": ""},
    "audit query": {
        "dragoman audit query --decision deny --since 7d": "",
        "dragoman audit query --session dgm_9f3kx2": "",
    },
    "audit show": {"dragoman audit show 3c9a:120": ""},
    "audit tail": {"dragoman audit tail -f": "", "dragoman audit tail -n 5 --agent claude": ""},
    "audit verify": {
        "dragoman audit verify": "",
        "dragoman audit verify --anchor heads.ndjson": "with heads that were kept elsewhere",
    },
    "mcp": {"dragoman mcp list": ""},
    "mcp list": {"dragoman mcp list": ""},
    "backup": {"dragoman backup ~/dragoman.tar.gz": ""},
    "restore": {"dragoman restore ~/dragoman.tar.gz": "", "dragoman restore --replace ~/dragoman.tar.gz": ""},
    "editor": {"dragoman editor list": "", "dragoman editor install zed --agent claude": ""},
    "editor install": {
        "dragoman editor install zed --agent claude": "",
        "dragoman editor install codecompanion -a gemini --sandbox bubblewrap": "",
    },
    "editor list": {"dragoman editor list": ""},
    "editor remove": {"dragoman editor remove zed": ""},
    "service": {"dragoman service install": "", "dragoman service status": ""},
    "service install": {
        "dragoman service install": "",
        "dragoman service install --print": "the unit, for another service manager",
    },
    "service remove": {"dragoman service remove": ""},
    "service status": {"dragoman service status": ""},
    "editor show": {"dragoman editor show vscode --agent claude": ""},
    "completion": {
        'eval "$(dragoman completion bash)"': "in ~/.bashrc",
        'eval "$(dragoman completion zsh)"': "in ~/.zshrc, behind compinit",
        "dragoman completion fish > ~/.config/fish/completions/dragoman.fish": "",
    },
    "man": {
        "dragoman man | man -l -": "",
        "dragoman man > ~/.local/share/man/man1/dragoman.1": "",
    },
    "config": {"dragoman config set default_agent claude": "", "dragoman config show": ""},
    "config edit": {"EDITOR=nano dragoman config edit": ""},
    "config get": {"dragoman config get serve.port": ""},
    "config init": {"dragoman config init": ""},
    "config path": {"dragoman config path": "", "dragoman config path --all": ""},
    "config set": {
        "dragoman config set default_agent claude": "",
        "dragoman config set agents.claude.env.ANTHROPIC_MODEL opus": "",
    },
    "config show": {"dragoman config show": ""},
    "config trust": {"dragoman config trust": "the workspace of this folder"},
    "doctor": {
        "dragoman doctor": "",
        "dragoman doctor agents sandboxes": "only these checks",
        "dragoman doctor --fix": "",
    },
    "serve": {
        "dragoman serve --open": "on this machine, with the web page",
        "dragoman serve --port 0 --agent claude": "",
        "dragoman serve --url": "the address of the one that runs",
    },
}
"""By the command's words; the line, then a note."""


def give_examples(command: click.Command, path: str) -> None:
    """Put the examples of a command and of those below it at the end of their help."""
    command.epilog = "\b\nExamples:\n" + "\n".join(_lines(EXAMPLES.get(path, {})))
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            give_examples(inner, f"{path} {name}")


def _lines(examples: dict[str, str]) -> list[str]:
    """The lines with their notes beside them, as long as there is room."""
    noted = [line for line, note in examples.items() if note]
    width = max(map(len, noted), default=0)
    beside = all(width + 2 + len(note) <= ROOM - 2 for note in examples.values())
    shown: list[str] = []
    for line, note in examples.items():
        if not note:
            shown.append(f"  {line}")
        elif beside:
            shown.append(f"  {line:<{width}}  {note}")
        else:
            shown += [f"  {line}", f"      {note}"]
    return shown
