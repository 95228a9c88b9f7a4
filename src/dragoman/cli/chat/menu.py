"""A choice below the conversation: a permission question, a session, a model. No IO.

Rules (keys while a question is open):

- No key counts while the line is not empty, nor within `GRACE` after a question appeared: it was meant for the line.
- A digit chooses an option that holds once. One that holds for longer is only marked by its digit, and needs Enter.
- The arrows mark, Enter chooses what is marked. Of more than `SHOWN` choices some are shown; digits count those.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.cli.chat.lines.markdown import Line, safe

GRACE = 0.5
"""Seconds after a question appeared in which no key chooses."""
SHOWN = 9
"""Choices that are shown at once."""


@dataclass(frozen=True, slots=True)
class Choice:
    label: str
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """What the user is asked, and may answer."""

    title: Sequence[Line]
    choices: Sequence[Choice]


class Menu:
    def __init__(
        self,
        title: Sequence[Line],
        choices: Sequence[Choice],
        chosen: Callable[[int], None],
        dismissed: Callable[[], None] | None = None,
        grace: float = GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`chosen` gets the index; `dismissed` is called for Escape, if it may be left without a choice.

        A menu that the user asked for needs no `grace`: the keys after it are meant for it.
        """
        self._title = title
        self._choices = choices
        self._first = 0
        self._chosen = chosen
        self.dismissed = dismissed
        self._clock = clock
        self._grace = grace
        self._shown_at = clock()
        self._marked = 0

    @classmethod
    def of(cls, offer: Offer, chosen: Callable[[int], None], dismissed: Callable[[], None]) -> Menu:
        """A menu that the user asked for."""
        return cls(offer.title, offer.choices, chosen, dismissed, grace=0)

    @property
    def ready(self) -> bool:
        return self._clock() - self._shown_at >= self._grace

    def shown(self) -> None:
        """Begin the grace: a menu that waited for another is shown now."""
        self._shown_at = self._clock()

    def digit(self, number: int) -> None:
        if not 1 <= number <= min(SHOWN, len(self._choices) - self._first):
            return
        self._marked = self._first + number - 1
        if not self._choices[self._marked].lasting:
            self.enter()

    def move(self, step: int) -> None:
        self._marked = (self._marked + step) % len(self._choices)
        self._first = max(self._marked - SHOWN + 1, min(self._first, self._marked))

    def enter(self) -> None:
        self._chosen(self._marked)

    def lines(self) -> list[Line]:
        shown = [*self._title]
        last = self._first + SHOWN
        for index, choice in enumerate(self._choices[self._first : last], self._first):
            marked = index == self._marked
            style = "bold" if marked else ""
            needs = "  (Enter)" if choice.lasting else ""
            number = ("ansiyellow", f" {'›' if marked else ' '} {index - self._first + 1} ")
            shown.append([number, (style, safe(choice.label)), ("ansibrightblack", needs)])
        if len(self._choices) > SHOWN:
            more = f"   {self._first + 1} to {min(last, len(self._choices))} of {len(self._choices)}, arrows show more"
            shown.append([("ansibrightblack", more)])
        return shown
