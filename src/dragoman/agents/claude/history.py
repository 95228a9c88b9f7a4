"""Reads Claude's own transcripts: the list of its sessions, and the conversation of a session.

`claude` stores `projects/<folder>/<session id>.jsonl` below its configuration folder, one record per line. A record has
the same `message` as the stream, with `toolUseResult` in place of `tool_use_result` (2.1.197).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dragoman.agents.claude.stream import INJECTED, Stream
from dragoman.agents.native.earlier import Earlier
from dragoman.wire.json_types import JsonObject, objects

LISTED = 200
"""Most sessions in a list, newest first: years of transcripts must not keep an editor waiting."""
HEAD_LINES = 40
"""Lines of each transcript that are read to find its folder and first words."""
TAIL_BYTES = 64 * 1024
"""Bytes read at the end of each transcript for its title, which claude writes repeatedly during a conversation."""
NAMES = ("customTitle", "aiTitle", "summary")
"""Members that hold a title, the user's own title first."""
TITLE_LENGTH = 80
_SESSION_ID = re.compile(r"[0-9a-fA-F-]{36}")


class History:
    def __init__(self, environ: Mapping[str, str]) -> None:
        home = Path(environ.get("HOME", ""), ".claude")
        self._projects = Path(environ.get("CLAUDE_CONFIG_DIR") or home, "projects")

    def sessions(self, cwd: str | None) -> list[JsonObject]:
        """The sessions for `session/list`, newest first."""
        files = self._projects.glob(f"{_folder(cwd)}/*.jsonl" if cwd else "*/*.jsonl")
        dated = sorted(((_mtime(file), file) for file in files), reverse=True)[:LISTED]
        found = []
        for modified, file in dated:
            info = _info(file)
            if info is not None and cwd in (None, info["cwd"]):
                info["updatedAt"] = datetime.fromtimestamp(modified, UTC).isoformat().replace("+00:00", "Z")
                found.append(info)
        return found

    def updates(self, session_id: str) -> list[JsonObject] | None:
        """The conversation as updates; None for an unknown session."""
        file = self._file(session_id)
        if file is None:
            return None
        return [update for _, update in self.dated_updates(file)]

    def dated_updates(self, file: Path) -> Iterator[tuple[str, JsonObject]]:
        """The conversation in a transcript as updates, each with the time of its record."""
        stream = Stream(replay=True)
        stamp = ""
        for record in _records(file):
            stamp = str(record.get("timestamp") or stamp)
            if not (record.get("isSidechain") or record.get("isMeta") or record.get("isCompactSummary")):
                for update in stream.read({**record, "tool_use_result": record.get("toolUseResult")}):
                    yield stamp, update
        for update in stream.end_turn():
            yield stamp, update

    def message_before(self, session_id: str, earlier: Earlier) -> str:
        """The id of the last message before a prompt of the user; raises `RpcError` if there is none."""
        file = self._file(session_id)
        told = [(record, _prompt(record)) for record in _chain(file)] if file is not None else []
        prompts = [(place, text) for place, (_, text) in enumerate(told) if text is not None]
        begin = prompts[earlier.find([text for _, text in prompts])][0]
        said = [record for record, _ in told[:begin] if record.get("type") == "assistant"]
        return str(said[-1]["uuid"] if said else told[begin - 1][0].get("uuid"))

    def transcripts(self) -> Iterator[Path]:
        """The files of all sessions."""
        return self._projects.glob("*/*.jsonl")

    def info(self, file: Path) -> JsonObject | None:
        """Id, folder and title of a transcript; None for a file without a conversation."""
        return _info(file)

    def forget(self, session_id: str) -> None:
        """Remove a session's transcript."""
        file = self._file(session_id)
        if file is not None:
            file.unlink(missing_ok=True)

    def _file(self, session_id: str) -> Path | None:
        if not _SESSION_ID.fullmatch(session_id):  # it becomes part of a path
            return None
        return next(iter(self._projects.glob(f"*/{session_id}.jsonl")), None)


def _folder(cwd: str) -> str:
    """Claude's name for a project: all but letters and digits become dashes; long names end with a hash."""
    name = re.sub(r"[^a-zA-Z0-9]", "-", cwd)
    return name if len(name) <= 200 else f"{name[:200]}*"


def _mtime(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0


def _records(file: Path) -> Iterator[JsonObject]:
    try:
        with file.open("rb") as lines:
            for line in lines:
                record = _record(line)
                if record is not None:
                    yield record
    except OSError:
        return  # removed since it was listed


def _record(line: bytes) -> JsonObject | None:
    """A record; None for a line that is not JSON, such as a half-written last line."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _chain(file: Path) -> list[JsonObject]:
    """The records of the conversation that goes on at the end of a transcript, which is a tree."""
    records = [record for record in _records(file) if record.get("uuid") and not record.get("isSidechain")]
    known = {record["uuid"]: record for record in records}
    chain: list[JsonObject] = []
    record = next((one for one in reversed(records) if one.get("type") in ("user", "assistant")), None)
    while record is not None:
        chain.append(record)
        record = known.pop(record.get("parentUuid"), None)
    return chain[::-1]


def _prompt(record: JsonObject) -> str | None:
    """The text of a prompt of the user; None for any other record, such as a tool's result."""
    message = record.get("message")
    told = record.get("isMeta") or record.get("isCompactSummary")
    if record.get("type") != "user" or told or not isinstance(message, dict):
        return None
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    if any(block.get("type") == "tool_result" for block in blocks):
        return None
    text = "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    return None if text.lstrip().startswith(INJECTED) else text


def _info(file: Path) -> JsonObject | None:
    """Id, folder and title of a transcript; None for a file without a conversation."""
    cwd, names, words = "", _names(file), None
    for number, record in enumerate(_records(file)):
        cwd = cwd or str(record.get("cwd") or "")
        names = {**_named(record), **names}
        words = words or _first_words(record)
        if (cwd and (words or names)) or number > HEAD_LINES:
            break
    title = next((names[name] for name in NAMES if name in names), words)
    if not cwd or title is None:
        return None
    return {"sessionId": file.stem, "cwd": cwd, "title": title}


def _named(record: JsonObject) -> dict[str, str]:
    return {name: str(record[name]) for name in NAMES if record.get(name)}


def _names(file: Path) -> dict[str, str]:
    """The newest title of each kind at the end of the file."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(0, file.stat().st_size - TAIL_BYTES))
            lines = stream.read(TAIL_BYTES).splitlines()
    except OSError:
        return {}  # removed since it was listed
    found: dict[str, str] = {}
    for line in lines:
        if any(f'"{name}"'.encode() in line for name in NAMES):
            record = _record(line)
            found |= _named(record) if record is not None else {}
    return found


def _first_words(record: JsonObject) -> str | None:
    message = record.get("message")
    if record.get("type") != "user" or record.get("isMeta") or not isinstance(message, dict):
        return None
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, list) else []:
        text = str(block.get("text", "")).strip() if isinstance(block, dict) else ""
        if text and not text.startswith(INJECTED):
            line = text.splitlines()[0]
            return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
    return None
