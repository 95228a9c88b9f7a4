"""`/copy` and `/export`: what was said, for elsewhere."""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path

from dragoman.cli.chat.commands.chat import Chat
from dragoman.cli.chat.lines.markdown import one_line, safe
from dragoman.cli.chat.screen import ChatScreen
from dragoman.client.session import Session

MOST_COPIED = 74_000
"""Bytes that are copied: terminals drop an OSC 52 sequence of more than 100,000."""


def copy(chat: Chat, screen: ChatScreen) -> None:
    """Put the agent's last message into the clipboard, by the terminal (OSC 52)."""
    text = safe(chat.last_message)
    data = text.encode()
    if not data:
        chat.say("the agent has said nothing yet")
    elif len(data) > MOST_COPIED:
        chat.say(
            f"the message is too long for the clipboard ({len(data):,} bytes): /export writes a file",
            "ansired",
        )
    else:
        screen.write_sequence(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
        chat.say(
            f"copied {len(text):,} characters, if the terminal allows it (OSC 52; in tmux: set-clipboard on)"
        )


async def export(chat: Chat, session: Session, name: str) -> None:
    """Write the conversation as Markdown, by `dragoman sessions export`."""
    file = Path(session.cwd) / Path(name or f"{session.id[:16]}.md").expanduser()
    if file.exists():
        chat.say(f"{file} is there already: /export FILE takes another name", "ansired")
        return
    command = [sys.executable, "-m", "dragoman", "sessions", "export", session.id, "-o", str(file)]
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    if process.returncode:
        chat.say(f"! {one_line(said.decode(errors='replace')) or 'the export failed'}", "ansired")
    else:
        chat.say(f"written: {file}")
