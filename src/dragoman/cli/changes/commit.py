"""The command `dragoman commit`: through the session's owner, or a gateway of its own."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.changes.command import Checked, open_engine, resolve
from dragoman.cli.changes.restore import SHARED, ask_shared
from dragoman.cli.commands import AS_JSON, SETTINGS
from dragoman.cli.settings import load_settings
from dragoman.terminal import escape

if TYPE_CHECKING:
    from dragoman.cli.changes.attached import Attached
    from dragoman.client.question import Question
    from dragoman.config.model import Config
    from dragoman.config.paths import Paths
    from dragoman.gateway.json_types import JsonObject
    from dragoman.wire.errors import RpcError

PROPOSE = """Propose a git commit message for these changed files of this project:

{files}

Say what changed and why, from what you know of this session. The first line is a summary of at most 72 characters in \
the imperative, then an empty line and a short text if it needs one. Answer with the message alone, without quotation \
marks or a fence. Change no files and run no commands."""
LISTED = 200
WAITS = ("This waits for", "Approved by")
"""Beginnings of notices about approvals; what was done is printed at the end."""


@click.command(cls=Checked, context_settings=SETTINGS)
@click.argument("id", required=False)
@click.argument("paths", nargs=-1)
@click.option("-m", "--message", metavar="TEXT", help="The message. [default: an editor, on a terminal]")
@click.option("--propose", is_flag=True, help="Ask the session's agent for a message, and confirm it.")
@click.option("--turn", type=click.IntRange(min=1), metavar="N", help="Only files that turn N changed.")
@click.option("--all", "every", is_flag=True, help="Everything that is not committed, by the session or not.")
@click.option("--push", is_flag=True, help="Push the branch to its remote.")
@click.option("--pr", is_flag=True, help="Push the branch, and open a pull request with gh or glab.")
@click.option("--base", metavar="BRANCH", help="The branch that the pull request goes into.")
@click.option("--draft", is_flag=True, help="Open the pull request as a draft.")
@click.option("--hooks", is_flag=True, help="Let hooks, filters and signing of the repository run.")
@SHARED
@AS_JSON
def commit(
    id: str | None,
    paths: tuple[str, ...],
    message: str | None,
    propose: bool,
    turn: int | None,
    every: bool,
    push: bool,
    pr: bool,
    base: str | None,
    draft: bool,
    hooks: bool,
    shared: str | None,
    as_json: bool,
) -> None:
    """Commit the files that a session changed, to the branch that is checked out.

    Without an ID: the session that worked last in this project. PATHS are files and folders to commit instead, changed
    by the session or not, as `dragoman changes --uncommitted --stat` names them. The repository's hooks do not run.
    """
    import json

    if message is not None and propose:
        raise click.UsageError("give either --message or --propose")
    if sum((turn is not None, every, bool(paths))) > 1:
        raise click.UsageError("choose one of --turn, --all and PATHS")
    if (base is not None or draft) and not pr:
        raise click.UsageError("--base and --draft need --pr")
    named = [path.encode(errors="surrogateescape").decode(errors="backslashreplace") for path in paths]
    wish = {"message": message, "turn": turn, "all": every, "paths": named, "shared": shared, "hooks": hooks}
    wish |= {"push": push, "pullRequest": pr, "base": base, "draft": draft}
    given = {name: value for name, value in wish.items() if value not in (None, False, [])}
    places, loaded = load_settings(quiet=True)
    session = resolve(*open_engine(), id)
    told = asyncio.run(Request(session, given, propose).run(loaded.config, places))
    if as_json:
        click.echo(json.dumps(told, indent=2))
    else:
        _print(told)


def _print(told: JsonObject) -> None:
    committed, pushed, opened = (told.get(name) for name in ("committed", "pushed", "pullRequest"))
    if committed:
        for path in committed["files"]:
            click.echo(escape(path))
        for path in committed.get("left", []):
            click.echo(f"left out: {escape(path)}", err=True)
        count = len(committed["files"])
        files = f"{count} file{'s' if count != 1 else ''}"
        click.echo(
            f"committed {files} to {escape(committed['branch'])}: {committed['commit'][:12]}", err=True
        )
    else:
        click.echo("There was nothing to commit.", err=True)
    if pushed:
        how = "pushed" if pushed.get("changed", True) else "had been pushed"
        click.echo(f"{escape(pushed['branch'])} {how} to {escape(pushed['url'])}", err=True)
    if opened:
        click.echo(escape(opened["url"]))


class Request:
    """One commit: asked for again with what the first answer says is missing."""

    def __init__(self, session: str, wish: dict[str, Any], propose: bool) -> None:
        self._session = session
        self._wish = wish
        self._propose = propose
        self._proposing = False
        self._terminal = sys.stdin is not None and sys.stdin.isatty()

    async def run(self, config: Config, paths: Paths) -> JsonObject:
        from dragoman.cli.changes.attached import attached
        from dragoman.gateway.lifecycle.committing import COMMIT
        from dragoman.wire.errors import RpcError

        async with attached(self._session, config, paths) as client:
            client.on_question = self._question
            client.on_update = self._update
            while True:
                try:
                    return await client.result(COMMIT, {"sessionId": self._session, **self._wish})
                except RpcError as error:
                    await self._complete(client, error)

    async def _complete(self, client: Attached, error: RpcError) -> None:
        """Add to the wish what it lacks; raises the error if that is not it."""
        data = error.data if isinstance(error.data, dict) else {}
        files, reason = data.get("paths") or [], data.get("reason")
        if reason == "shared_changes" and "shared" not in self._wish:
            self._wish["shared"] = await asyncio.to_thread(ask_shared, error, "commit")
        elif reason == "no_message" and "message" not in self._wish:
            self._wish["message"] = await self._message(client, files)
        else:
            raise error

    # -- the message

    async def _message(self, client: Attached, files: list[str]) -> str:
        if not self._terminal and not self._propose:
            raise click.UsageError("give a message: -m TEXT")
        text = await self._proposed(client, files) if self._propose else ""
        if not self._propose:
            return await asyncio.to_thread(_edited, "", files)
        if not self._terminal:
            click.echo(escape(text))
            raise click.UsageError("a person confirms a proposed message at a terminal: give it with -m")
        click.echo(escape(text), err=True)
        choice = await asyncio.to_thread(_choose)
        if choice == "no":
            raise click.Abort
        return await asyncio.to_thread(_edited, text, files) if choice == "edit" else text

    async def _proposed(self, client: Attached, files: list[str]) -> str:
        """What the agent says in a turn of its own."""
        shown = [escape(path) for path in files[:LISTED]]
        shown += [f"and {len(files) - LISTED} more"] if len(files) > LISTED else []
        self._said: list[str] = []
        self._proposing = True
        try:
            prompt = [{"type": "text", "text": PROPOSE.format(files="\n".join(shown))}]
            await client.result("session/prompt", {"sessionId": self._session, "prompt": prompt})
        finally:
            self._proposing = False
        text = _unfenced("".join(self._said))
        if not text:
            raise click.ClickException("the agent proposed no message: give one with -m")
        return text

    def _update(self, update: JsonObject) -> None:
        from dragoman.client.reading import chunk_text

        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk" and self._proposing:
            self._said.append(chunk_text(update))
        elif kind == "tool_call" and self._proposing:
            self._said.clear()  # what came before it is no message
        elif kind == "notice":
            title = str(update.get("title"))
            if update.get("severity") != "info" or title.startswith(WAITS):
                click.echo(escape(title), err=True)

    # -- questions of rules

    def _question(self, question: Question) -> None:
        """A person at the terminal answers what a rule asks; the agent is allowed nothing while it proposes."""
        if self._proposing or not self._terminal:
            question.reject()
            return
        asking = asyncio.get_running_loop().create_task(self._ask(question))
        asking.add_done_callback(lambda done: done.exception() if not done.cancelled() else None)

    async def _ask(self, question: Question) -> None:
        if await asyncio.to_thread(_confirmed, f"A rule asks: {escape(question.title)}. Allow it?"):
            question.allow()
        else:
            question.reject()


def _confirmed(words: str) -> bool:
    try:
        return click.confirm(words, err=True)
    except click.Abort:
        return False


def _choose() -> str:
    kinds = click.Choice(["yes", "edit", "no"])
    return str(click.prompt("Commit with this message", type=kinds, default="no", err=True))


def _edited(text: str, files: list[str]) -> str:
    """The message from the user's editor; raises if it is left empty."""
    shown = "".join(f"# {escape(path)}\n" for path in files[:LISTED])
    given = click.edit(f"{text}\n\n# Lines that begin with # are left out. To be committed:\n{shown}")
    kept = [line for line in (given or "").splitlines() if not line.startswith("#")]
    message = "\n".join(kept).strip()
    if not message:
        raise click.Abort
    return message


def _unfenced(text: str) -> str:
    """What an agent said, without a fence around it."""
    lines = text.strip().splitlines()
    if len(lines) > 2 and lines[0].startswith("```") and lines[-1].startswith("```"):
        lines = lines[1:-1]
    return "\n".join(lines).strip()
