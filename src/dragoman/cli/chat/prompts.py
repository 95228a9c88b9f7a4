"""The prompts of a chat that have no end yet: the one whose turn runs, and those that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.cli.chat.editor.content import blocks_of, edited_text, text_of_prompt, without_images
from dragoman.cli.chat.editor.editor import Editor
from dragoman.client import DragomanError, Session, Turn, TurnEnded
from dragoman.wire.json_types import JsonObject, as_object, own_meta

NO_IMAGES = "the agent takes no images: it gets the path of the file"


@dataclass(slots=True, eq=False)
class Sent:
    text: str
    blocks: list[JsonObject]
    turn: Turn
    begun: bool = False
    """Its turn runs, and it was printed."""
    steered: bool = False
    """It was meant for the turn that runs."""


class Prompts:
    def __init__(
        self, editor: Editor, began: Callable[[str, bool], None], say: Callable[[str], None]
    ) -> None:
        """`began` gets each prompt when its turn begins, or with True when it goes into the running turn."""
        self._editor = editor
        self._began = began
        self._say = say
        self._session: Session | None = None
        self.early: list[str] = []
        """Lines typed before there was a session."""
        self._sent: list[Sent] = []
        self._recalled: list[Sent] = []
        """Taken back; the gateway has not answered yet."""
        self._others: list[str] = []

    def open(self, session: Session) -> None:
        """Begin with another session."""
        self._session = session
        self._sent.clear()
        self._recalled.clear()
        self._others.clear()

    @property
    def any(self) -> bool:
        return bool(self._sent)

    @property
    def waiting(self) -> bool:
        """Whether a prompt waits for the end of a turn."""
        return any(not sent.begun for sent in self._sent)

    def queued(self) -> Sequence[str]:
        own = [sent.text for sent in self._sent if not sent.begun]
        return [*own, *self._others, *self.early] if own or self.early else []

    # -- sending

    def send(self, text: str, *, at_once: bool) -> None:
        """Send a prompt; `at_once`: no turn runs, so this one's begins."""
        session = self._session
        assert session is not None
        blocks = blocks_of(text, Path(session.cwd))
        self._sent.append(Sent(text, blocks, session.send(blocks)))
        if len(self._sent) == 1 and at_once:
            self.begin_next()

    def steer(self, text: str) -> None:
        """Hand a message, or all that wait if there is none, to the turn that runs; the gateway says if it cannot."""
        session = self._session
        if session is None:
            return
        texts = [text] if text else [sent.text for sent in self._sent if not sent.begun]
        if not text:
            for sent in [sent for sent in self._sent if not sent.begun]:
                self._withdraw(sent)
        if not texts:
            self._say("nothing waits: type a message, and Ctrl-S hands it to the running turn")
        for message in texts:
            blocks = blocks_of(message, Path(session.cwd))
            turn = session.send(blocks, steer=True)
            self._sent.append(Sent(message, blocks, turn, begun=True, steered=True))
            self._began(message, True)

    def begin_next(self) -> None:
        """Tell of the prompt whose turn runs now, unless it was told."""
        first = next((sent for sent in self._sent if not sent.steered), None)
        if first is not None and not first.begun:
            first.begun = True
            self._began(first.text, False)

    # -- taking back

    def recall(self) -> str | None:
        """Take the last queued prompt back for editing."""
        if self.early:
            return self.early.pop()
        if self._sent and not self._sent[-1].begun:
            sent = self._sent[-1]
            self._withdraw(sent)
            return sent.text
        return None

    def _withdraw(self, sent: Sent) -> None:
        self._sent.remove(sent)
        self._recalled.append(sent)
        sent.turn.withdraw()

    async def look(self) -> None:
        """Learn what other clients made of the prompts that wait, and which of theirs wait too."""
        session = self._session
        if session is None:
            return
        try:
            queue = await session.queue()
        except DragomanError:
            return
        own = [queued for queued in queue if queued.own]
        mine = [sent for sent in self._sent if not sent.begun]
        if len(own) == len(mine):  # else one begins just now
            for sent, queued in zip(mine, own, strict=True):
                if queued.edited:
                    sent.text = text_of_prompt(queued.prompt) or sent.text
        self._others = [
            f"{queued.prompted_by or 'another client'}: {text_of_prompt(queued.prompt)}"
            for queued in queue
            if not queued.own
        ]

    # -- ends

    def ended(self, event: TurnEnded) -> bool:
        """Take the end of a turn; False if there is nothing to show: no turn ran, or it was another message of one."""
        sent = next((sent for sent in self._sent if sent.turn.end is event), None)
        edited = edited_text(dict(event.raw))
        if sent is None:
            if event.own:
                self._taken_back(event, edited)
            return not event.own
        if event.stop_reason == "end_turn":
            self.begin_next()
        self._sent.remove(sent)
        if sent.steered and own_meta(dict(event.raw)).get("steer") == "sent":
            return False
        if _takes_no_images(event) and self._session is not None:
            self._say(NO_IMAGES)
            blocks = without_images(sent.blocks)
            self._sent.insert(0, Sent(sent.text, blocks, self._session.send(blocks), begun=True))
            return False
        if not sent.begun:
            self._editor.put(edited or sent.text)
        return sent.begun

    def _taken_back(self, event: TurnEnded, edited: str | None) -> None:
        """A recalled prompt is out of the queue; what another client made of it replaces what was sent."""
        recalled = next((sent for sent in self._recalled if sent.turn.end is event), None)
        if recalled is not None:
            self._recalled.remove(recalled)
            if edited is not None and not self._editor.replace(recalled.text, edited):
                self._say(f"this message had been changed to: {edited}")


def _takes_no_images(event: TurnEnded) -> bool:
    data = as_object(as_object(event.raw.get("error")).get("data"))
    return data.get("reason") == "content_type" and data.get("contentType") == "image"
