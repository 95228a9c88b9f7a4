"""Words and operators of a shell line. It knows less than bash, on purpose: what it does not know is opaque.

The text is one character per byte (latin-1), so that positions are those of the second opinion in `tree.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from dragoman.policy.shell.limits import MAX_PIECES
from dragoman.policy.shell.syntax.parts import Piece, Span, Unreadable, Word

OPERATORS = (
    *("<<<", "<<-", "&>>", ";;&"),
    *("&&", "||", ";;", ";&", "<<", ">>", "<&", ">&", "<>", ">|", "&>", "|&"),
    *(";", "&", "|", "(", ")", "<", ">", "\n"),
)
REDIRECTS = frozenset({"<", ">", ">>", "<<", "<<-", "<<<", "<&", ">&", "<>", ">|", "&>", "&>>"})
_SIMPLE = re.compile(r"[A-Za-z0-9_@%+=:,./\-\[\]*?~^!{}\x80-\xff]+")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_PARAMETER = re.compile(r"(#?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(\[[@*0-9]+\])?")
_DESCRIPTOR = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_ENDS = frozenset(" \t\n;&|<>()")
_ARITHMETIC = re.compile(r"[A-Za-z0-9_\s+\-*/%<>=!&|^~?:,()]*")
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "e": "\x1b", "f": "\f"}


class Token(Struct, frozen=True):
    kind: str
    """`word`, `operator`, `number` (before a redirection) or `end`."""
    text: str
    span: Span
    word: Word | None = None


class Lexer:
    """Reads one token after another; `inner` reads the commands of a substitution and returns their end."""

    def __init__(self, text: str, note: Callable[[str], None], inner: Callable[[int, str], int]) -> None:
        self.text = text
        self.at = 0
        self._note = note
        self._inner = inner

    def next(self) -> Token:
        text = self.text
        self._skip()
        at = self.at
        if at >= len(text):
            return Token("end", "", (at, at))
        char = text[at]
        if char == "\r":
            self._note("a carriage return, which shells and people read differently")
            self.at += 1
            return Token("operator", "\n", (at, at + 1))
        if char in ";&|<>()\n":
            return self._operator(at)
        word = self._word(at)
        if word.source.isdigit() and self.at < len(text) and text[self.at] in "<>":
            return Token("number", word.source, word.span, word)
        return Token("word", word.source, word.span, word)

    def _skip(self) -> None:
        if found := _BLANK.match(self.text, self.at):
            self.at = found.end()
        if self.at < len(self.text) and self.text[self.at] == "#":
            end = self.text.find("\n", self.at)
            if "\r" in self.text[self.at : end if end >= 0 else None]:
                self._note("a carriage return in a comment")
            self.at = len(self.text) if end < 0 else end

    def _operator(self, at: int) -> Token:
        operator = next(each for each in OPERATORS if self.text.startswith(each, at))
        if operator in "<>" and self.text.startswith("(", at + 1):
            self._note("a process substitution")
            self.at = at + 2
            self.at = self._inner(self.at, ")")
            return Token(
                "word", self.text[at : self.at], (at, self.at), self._made(at, [Piece("unknown", "")])
            )
        self.at = at + len(operator)
        return Token("operator", operator, (at, self.at))

    def _made(self, start: int, pieces: list[Piece]) -> Word:
        source = self.text[start : self.at]
        if not source.isascii():
            try:
                pieces = [Piece(piece.kind, piece.text.encode("latin-1").decode()) for piece in pieces]
                source = source.encode("latin-1").decode()
            except UnicodeDecodeError as error:
                raise Unreadable("a backslash before a character that is not ASCII") from error
        return Word(source, (start, self.at), tuple(pieces))

    def _word(self, start: int) -> Word:
        text, pieces = self.text, []
        found = _SIMPLE.match(text, start)
        if found is not None:
            self.at = found.end()
            pieces.append(Piece("raw", found[0]))
        while self.at < len(text) and (char := text[self.at]) not in _ENDS:
            if char == "\r":
                break
            found = _SIMPLE.match(text, self.at)
            if found is not None:
                self.at = found.end()
                pieces.append(Piece("raw", found[0]))
            else:
                self._part(char, pieces)
            if len(pieces) > MAX_PIECES:
                raise Unreadable(f"a word of more than {MAX_PIECES} parts")
        if self.at < len(text) and text[self.at] in "<>" and _DESCRIPTOR.fullmatch(text[start : self.at]):
            raise Unreadable("a redirection to a descriptor in a variable")
        if self.at < len(text) and text[self.at] == "(" and pieces:
            last = text[self.at - 1]
            if last in "?*+@!" and pieces[-1].kind == "raw":
                raise Unreadable("an extended pattern")
        return self._made(start, pieces)

    def _part(self, char: str, pieces: list[Piece]) -> None:
        text, at = self.text, self.at
        if char == "\\":
            if at + 1 >= len(text):
                raise Unreadable("a backslash at the end")
            self.at = at + 2
            if text[at + 1] in "\r\n":  # bash joins the lines before it looks for `$(`, names and operators
                raise Unreadable("a line end that is escaped inside a word")
            pieces.append(Piece("quoted", text[at + 1]))
        elif char == "'":
            end = text.find("'", at + 1)
            if end < 0:
                raise Unreadable("a quote that does not end")
            pieces.append(Piece("quoted", text[at + 1 : end]))
            self.at = end + 1
        elif char == '"':
            self._double(pieces)
        elif char == "$":
            self._dollar(pieces, quoted=False)
        elif char == "`":
            self._backtick(pieces)
        elif char == "#" or char.isprintable():
            pieces.append(Piece("raw", char))
            self.at += 1
        else:
            raise Unreadable(f"a control character ({ord(char):#04x})")

    def _double(self, pieces: list[Piece]) -> None:
        text = self.text
        self.at += 1
        pieces.append(Piece("quoted", ""))  # an empty string is a word
        plain = re.compile(r'[^"\\$`]+')
        while True:
            if found := plain.match(text, self.at):
                pieces.append(Piece("quoted", found[0]))
                self.at = found.end()
            if self.at >= len(text):
                raise Unreadable("a quote that does not end")
            char = text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\":
                self._escaped(pieces)
            elif char == "$":
                self._dollar(pieces, quoted=True)
            else:
                self._backtick(pieces)

    def _escaped(self, pieces: list[Piece]) -> None:
        """A backslash inside double quotes, which is one unless `$`, a quote or a line end follows."""
        after = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if after in ("$", "`", '"', "\\"):
            pieces.append(Piece("quoted", after))
        elif after == "\n":
            raise Unreadable("a line end that is escaped inside quotes")
        else:
            pieces.append(Piece("quoted", "\\" + after))

    def _backtick(self, pieces: list[Piece]) -> None:
        self._note("a command substitution")
        end = re.compile(r"(?:[^`\\]|\\.)*`", re.DOTALL).match(self.text, self.at + 1)
        if end is None:
            raise Unreadable("a backtick that does not end")
        self.at = end.end()
        pieces.append(Piece("unknown", ""))

    def _dollar(self, pieces: list[Piece], *, quoted: bool) -> None:
        text, at = self.text, self.at
        after = text[at + 1 : at + 2]
        if text.startswith("\\\n", at + 1):
            raise Unreadable("a line end that is escaped inside an expansion")
        if text.startswith("((", at + 1):
            self._arithmetic(pieces)
        elif after == "(":
            self._note("a command substitution")
            self.at = self._inner(at + 2, ")")
            pieces.append(Piece("unknown", ""))
        elif after == "{":
            self._braced(pieces, quoted=quoted)
        elif after == "'" and not quoted:
            self._ansi(pieces)
        elif after == '"' and not quoted:
            raise Unreadable("a translated string")
        elif after == "[":
            raise Unreadable("an arithmetic expansion of the old form")
        elif found := _NAME.match(text, at + 1):
            self.at = found.end()
            pieces.append(Piece("quoted_variable" if quoted else "variable", found[0]))
        else:
            self.at = at + 1
            pieces.append(Piece("quoted", "$"))

    def _arithmetic(self, pieces: list[Piece]) -> None:
        start = self.at + 3
        end = self.text.find("))", start)
        inside = self.text[start:end]
        if end < 0 or not _ARITHMETIC.fullmatch(inside) or inside.count("(") != inside.count(")"):
            raise Unreadable("an arithmetic expansion that is not plain")
        self.at = end + 2
        pieces.append(Piece("unknown", "arithmetic " + inside))

    def _braced(self, pieces: list[Piece], *, quoted: bool) -> None:
        found = _PARAMETER.match(self.text, self.at + 2)
        if found is None:
            raise Unreadable("an indirect or special expansion")
        self.at = found.end()
        if self.text.startswith("}", self.at):
            self.at += 1
            if found[1] or found[3]:
                one = quoted and "@" not in (found[3] or "") and "*" not in (found[3] or "")
                pieces.append(Piece("unknown", "length" if found[1] else "one word" if one else ""))
            else:
                pieces.append(Piece("quoted_variable" if quoted else "variable", found[2]))
            return
        inner = re.compile(
            r"(?::?[-+]|[#%]{1,2}|//?|\^\^?|,,?|:[0-9]+:?[0-9]*)[A-Za-z0-9_./*?:+ =,@%\-]*\}"
        ).match(self.text, self.at)
        if inner is None or found[1]:
            raise Unreadable("an expansion that is not plain")
        self.at = inner.end()
        one = quoted and found[2] not in ("@", "*") and found[3] is None
        pieces.append(Piece("unknown", "one word" if one else ""))

    def _ansi(self, pieces: list[Piece]) -> None:
        at = self.at + 2
        made: list[str] = []
        while at < len(self.text):
            char = self.text[at]
            if char == "'":
                self.at = at + 1
                pieces.append(Piece("quoted", "".join(made)))
                return
            if char == "\\":
                at += 1
                if self.text[at : at + 1] not in _ANSI:
                    raise Unreadable("an escape in $'…' that is not plain")
                char = _ANSI[self.text[at]]
            made.append(char)
            at += 1
        raise Unreadable("a quote that does not end")

    def heredoc(self, delimiter: str, *, tabs: bool) -> str:
        """The lines up to the one that is `delimiter`, which is read too."""
        lines: list[str] = []
        while True:
            if self.at >= len(self.text):
                raise Unreadable("a here-document that does not end")
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line = self.text[self.at : end]
            self.at = min(end + 1, len(self.text))
            if (line.lstrip("\t") if tabs else line) == delimiter:
                if end < len(self.text):
                    self.at = end  # the next command begins on a line of its own
                return "\n".join(lines)
            lines.append(line)
