"""The two ways to a session that people and programs have: commands in a shell, and REST."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx

from support.command_line import CommandLine

Json = dict[str, Any]


@dataclass(frozen=True)
class Begun:
    """A session in a worktree."""

    id: str
    name: str
    folder: Path


class Refused(Exception):
    """An act that was refused, with the words for a person."""


class Way(Protocol):
    """What the story does with sessions, in the order in which it does it."""

    async def begin(self, repository: Path, agent: str, name: str, prompt: str) -> Begun: ...
    async def prompt(self, session: str, prompt: str) -> None: ...
    async def patch(self, session: str) -> bytes: ...
    async def changed(self, session: str) -> dict[str, str]: ...
    async def uncommitted(self, session: str) -> bytes: ...
    async def rewind(self, session: str, message: int) -> Json: ...
    async def fork(self, session: str, agent: str) -> Begun: ...
    async def worktrees(self) -> list[Json]: ...
    async def merge(self, name: str, message: str) -> Json: ...
    async def discard(self, name: str, *, sure: bool = False) -> None: ...
    async def search(self, phrase: str) -> list[Json]: ...
    async def usage(self, by: str) -> Json: ...
    async def delete(self, session: str) -> str: ...


class Commands:
    """Each step is a command; no `dragoman serve` runs."""

    def __init__(self, shell: CommandLine) -> None:
        self._shell = shell

    async def begin(self, repository: Path, agent: str, name: str, prompt: str) -> Begun:
        _, told = await self._run("exec", "-a", agent, "--worktree", "--name", name, prompt)
        return await self._begun(told.strip().splitlines()[-1].removeprefix("session "))

    async def prompt(self, session: str, prompt: str) -> None:
        await self._run("exec", "-s", session, prompt)

    async def patch(self, session: str) -> bytes:
        return (await self._run("changes", session))[0].encode()

    async def changed(self, session: str) -> dict[str, str]:
        return statuses(await self._json("changes", session))

    async def uncommitted(self, session: str) -> bytes:
        return (await self._run("changes", session, "--uncommitted"))[0].encode()

    async def rewind(self, session: str, message: int) -> Json:
        return dict(await self._json("rewind", session, "--to", str(message), "--both"))

    async def fork(self, session: str, agent: str) -> Begun:
        made, _ = await self._run("fork", session, "--agent", agent)
        return await self._begun(made.strip())

    async def worktrees(self) -> list[Json]:
        return list(await self._json("worktrees", "list"))

    async def merge(self, name: str, message: str) -> Json:
        return dict(await self._json("worktrees", "merge", name, "-m", message))

    async def discard(self, name: str, *, sure: bool = False) -> None:
        await self._run("worktrees", "discard", name, *(["--yes"] if sure else []))

    async def search(self, phrase: str) -> list[Json]:
        return list(await self._json("sessions", "search", phrase))

    async def usage(self, by: str) -> Json:
        return dict(await self._json("usage", "--by", by))

    async def delete(self, session: str) -> str:
        out, told = await self._run("sessions", "delete", "-y", session)
        return out + told

    async def _begun(self, session: str) -> Begun:
        found = next(one for one in await self.worktrees() if one["session"] == session)
        return Begun(session, found["name"], Path(found["folder"]))

    async def _json(self, *words: str) -> Any:
        return json.loads((await self._run(*words, "--json"))[0])

    async def _run(self, *words: str) -> tuple[str, str]:
        """In a thread: the scripted model answers meanwhile."""
        done = await asyncio.to_thread(self._shell.run, *words)
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout, done.stderr


class Rest:
    """Each step is a request to `dragoman serve`."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def begin(self, repository: Path, agent: str, name: str, prompt: str) -> Begun:
        body = {"cwd": str(repository), "agent": agent, "worktree": {"name": name}}
        made = await self._ask("POST", "sessions", body)
        await self.prompt(made["id"], prompt)
        return Begun(made["id"], name, Path(made["cwd"]))

    async def prompt(self, session: str, prompt: str) -> None:
        await self._ask("POST", f"sessions/{session}/prompt", {"prompt": prompt})

    async def patch(self, session: str) -> bytes:
        return (await self._send("GET", f"sessions/{session}/changes.patch")).content

    async def changed(self, session: str) -> dict[str, str]:
        return statuses(await self._ask("GET", f"sessions/{session}/changes"))

    async def uncommitted(self, session: str) -> bytes:
        return (await self._send("GET", f"sessions/{session}/uncommitted.patch")).content

    async def rewind(self, session: str, message: int) -> Json:
        return dict(await self._ask("POST", f"sessions/{session}/rewind", {"to": message, "what": "both"}))

    async def fork(self, session: str, agent: str) -> Begun:
        made = await self._ask("POST", f"sessions/{session}/fork", {"agent": agent})
        found = next(one for one in await self.worktrees() if one["session"] == made["id"])
        return Begun(made["id"], found["name"], Path(made["cwd"]))

    async def worktrees(self) -> list[Json]:
        return list((await self._ask("GET", "worktrees"))["worktrees"])

    async def merge(self, name: str, message: str) -> Json:
        return dict(await self._ask("POST", f"worktrees/{name}/merge", {"message": message}))

    async def discard(self, name: str, *, sure: bool = False) -> None:
        await self._ask("DELETE", f"worktrees/{name}{'?force=true' if sure else ''}")

    async def search(self, phrase: str) -> list[Json]:
        found = await self._send("GET", "search", params={"q": f'"{phrase}"'})
        return list(found.json()["hits"])

    async def usage(self, by: str) -> Json:
        return dict(await self._ask("GET", f"usage?by={by}"))

    async def delete(self, session: str) -> str:
        return (await self._send("DELETE", f"sessions/{session}")).text

    async def _ask(self, method: str, path: str, body: Json | None = None) -> Any:
        return (await self._send(method, path, json=body)).json()

    async def _send(self, method: str, path: str, **given: Any) -> httpx.Response:
        done = await self._http.request(method, f"/api/{path}", **given)
        if done.is_error:
            raise Refused(done.json()["error"])
        return done


def statuses(changes: Json) -> dict[str, str]:
    return {file["path"]: file["status"] for file in changes["files"]}
