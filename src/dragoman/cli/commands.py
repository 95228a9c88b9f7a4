"""The table of commands, each imported only when it is used."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, NoReturn

import click

import dragoman
from dragoman.terminal import Colour, choose_colour

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "chat": ("dragoman.cli.chat.command:chat", "Talk to an agent in the terminal."),
    "exec": ("dragoman.cli.exec.command:exec_", "Send one prompt and print the answer, for scripts."),
    "serve": (
        "dragoman.cli.serve.command:serve",
        "Run the gateway for browsers, remote editors and programs.",
    ),
    "acp": ("dragoman.cli.acp.command:acp", "Speak ACP on stdio (or TCP), for editors."),
    "agents": ("dragoman.cli.agents.command:agents", "List, check, add, remove and install agents."),
    "sessions": (
        "dragoman.cli.sessions.command:sessions",
        "List, search, show, attach to, rename, set, export, locate, take over, close and delete sessions.",
    ),
    "ps": ("dragoman.cli.steering.ps:ps", "Show live sessions, those that wait for a person first."),
    "prompt": ("dragoman.cli.exec.hand_over:prompt", "Send a message to a session, without waiting."),
    "cancel": ("dragoman.cli.steering.change:cancel", "Cancel the running turn of a session."),
    "queue": (
        "dragoman.cli.steering.queue:queue",
        "List, edit and withdraw the prompts that wait in a session.",
    ),
    "changes": ("dragoman.cli.changes.command:changes", "Show what a session changed in its project."),
    "revert": (
        "dragoman.cli.changes.restore:revert",
        "Undo what a session changed: a hunk, a file, a turn or all.",
    ),
    "rewind": (
        "dragoman.cli.changes.rewind:rewind",
        "Take a session back to before a message: conversation, files or both.",
    ),
    "fork": (
        "dragoman.cli.changes.fork:fork",
        "Begin a new session with the history of another, also with another agent.",
    ),
    "retry": ("dragoman.cli.changes.rewind:retry", "Send the last message of a session again."),
    "commit": (
        "dragoman.cli.changes.commit:commit",
        "Commit what a session changed, push it, open a pull request.",
    ),
    "usage": ("dragoman.cli.usage.command:usage", "Show the tokens and the cost of turns."),
    "worktrees": (
        "dragoman.cli.worktrees.command:worktrees",
        "List, merge, rebase, keep, discard and clean the worktrees of sessions.",
    ),
    "tokens": ("dragoman.cli.tokens:tokens", "List, create and revoke tokens for `dragoman serve`."),
    "policy": (
        "dragoman.cli.policy.command:policy",
        "Show, check and try the rules that answer permission questions.",
    ),
    "audit": (
        "dragoman.cli.audit.command:audit",
        "Show what agents did and who allowed it, and prove it.",
    ),
    "mcp": ("dragoman.cli.mcp:mcp", "List the MCP servers that every agent gets."),
    "backup": ("dragoman.cli.backup:backup", "Write the state folder (sessions, tokens, logs) to one file."),
    "restore": ("dragoman.cli.backup:restore", "Replace the state folder with a back-up."),
    "editor": ("dragoman.cli.setup.editor:editor", "Put Dragoman into editors, and take it out again."),
    "service": ("dragoman.cli.setup.service:service", "Run `dragoman serve` as a service of the system."),
    "completion": ("dragoman.cli.completion:completion", "Print the completion script for a shell."),
    "man": ("dragoman.cli.man:man", "Print the manual page."),
    "config": ("dragoman.cli.config:config", "Show, change, find, create and trust configuration."),
    "doctor": (
        "dragoman.cli.doctor.command:doctor",
        "Find what is wrong, say how to mend it, and repair what can be repaired safely.",
    ),
}
"""Name: import path, help text."""

COMPLETING = "_DRAGOMAN_COMPLETE"
"""Set by the completion script of a shell while it asks for values."""

SETTINGS = {"help_option_names": ["-h", "--help"]}


AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Reporting(click.Command):
    """Reports an error of the store, an agent or another process as one sentence, with exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        from dragoman.cli.entry import complain
        from dragoman.client.errors import DragomanError
        from dragoman.gateway.ports.agent import AgentUnavailable
        from dragoman.gateway.ports.store import StoreError
        from dragoman.wire.errors import RpcError

        try:
            return super().invoke(ctx)
        except (StoreError, AgentUnavailable, RpcError, DragomanError) as error:
            complain(str(error))
            ctx.exit(1)


class WholeLines(click.Group):
    """A group that lists its commands with their whole first sentences."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = [(name, self.commands[name].get_short_help_str(1000)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, help.rstrip(".")) for name, help in listed])


class LazyGroup(click.Group):
    """A group that lists its commands from the table and imports only the one that runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        if COMPLETING in os.environ:
            from dragoman.cli.completion import complete_values

            complete_values(command, cmd_name)
        else:
            from dragoman.cli.examples import give_examples

            give_examples(command, cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands from the table: importing each for its help would take longer than a Tab may."""
        from click.shell_completion import CompletionItem

        found = [(name, help) for name, (_, help) in COMMANDS.items() if name.startswith(incomplete)]
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return [CompletionItem(name, help=help) for name, help in found]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help.rstrip(".")) for name, (_, help) in COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from dragoman.cli.examples import give_examples

        give_examples(self, "")
        super().format_epilog(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from dragoman.config.schema import suggest

            ctx.fail(f'there is no command "{args[0]}"{suggest(args[0], COMMANDS)}')
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings=SETTINGS)
@click.version_option(dragoman.__version__, message="dragoman %(version)s")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Use colours.  [default: auto: on a terminal, unless NO_COLOR is set or TERM is dumb]",
)
def root(color: Colour) -> None:
    """One gateway between clients and coding agents.

    Without a COMMAND, on a terminal, it is `dragoman chat`.
    """
    choose_colour(color)


def dispatch(arguments: list[str]) -> NoReturn:
    """Run the command; click itself answers bad usage with a message and exit code 2."""
    root.main(arguments, prog_name="dragoman")
