"""The strict reader: a shell line to its parts, or the reason why it is not understood.

It is one of two opinions. Functions, `coproc`, `select` and C-like loops are refused as a whole; substitutions are
noted, and their commands are kept, so that rules that deny still see them.
"""

from __future__ import annotations

import re

from dragoman.policy.shell.limits import MAX_COMMANDS, MAX_DEPTH, MAX_WORDS
from dragoman.policy.shell.syntax.lexer import REDIRECTS, Lexer, Token
from dragoman.policy.shell.syntax.parts import (
    AndOr,
    Assignment,
    Background,
    Case,
    For,
    Group,
    If,
    Loop,
    Node,
    Piece,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    Test,
    Unreadable,
    Word,
)

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}", "in", "]]"})
_REFUSED = {
    "function": "a function",
    "coproc": "a coprocess",
    "select": "a menu",
}


class Reader:
    """Reads one line. `notes` are reasons to call the line opaque although it could be read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.notes: list[str] = []
        self._words = 0
        self.inner: list[Node] = []
        """Commands of substitutions."""
        self.simples: list[Simple] = []
        """Every simple command, in the order of the line."""
        self._lexer = Lexer(text, self._note, self._substitution)
        self._heredocs: list[Redirect] = []
        self._depth = 0
        self._token = Token("end", "", (0, 0))
        self._token = self._lexer.next()

    def read(self) -> Node:
        node = self._list(())
        if self._token.kind != "end":
            raise Unreadable(f"`{self._token.text}` where a command should begin")
        if self._heredocs:
            raise Unreadable("a here-document that does not end")
        return node

    def _note(self, reason: str) -> None:
        self.notes.append(reason)

    def _substitution(self, start: int, closer: str) -> int:
        """Read the commands of a substitution from `start`; returns the place after its end."""
        if self._heredocs:
            raise Unreadable("a substitution beside a here-document")
        token, lexer = self._token, self._lexer
        self._lexer = Lexer(self.text, self._note, self._substitution)
        self._lexer.at = start
        self._enter()
        self._advance()
        self.inner.append(self._list((closer,)))
        if self._token.text != closer or self._token.kind != "operator":
            raise Unreadable("a substitution that does not end")
        end = self._token.span[1]
        self._depth -= 1
        self._token, self._lexer = token, lexer
        return end

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable(f"nested more than {MAX_DEPTH} deep")

    # tokens

    def _advance(self) -> Token:
        token = self._token
        if token.kind == "operator" and token.text == "\n" and self._heredocs:
            self._read_heredocs()
        self._token = self._lexer.next()
        return token

    def _is(self, *operators: str) -> bool:
        return self._token.kind == "operator" and self._token.text in operators

    def _reserved(self) -> str:
        """The plain word that comes next, or nothing."""
        word = self._token.word
        return (word.plain or "") if self._token.kind == "word" and word is not None else ""

    def _expect(self, word: str) -> None:
        if self._reserved() != word:
            raise Unreadable(f"`{word}` is missing")
        self._advance()

    def _newlines(self) -> None:
        while self._is("\n"):
            self._advance()

    def _take_word(self) -> Word:
        token = self._token
        if token.kind not in ("word", "number") or token.word is None:
            raise Unreadable("a word is missing")
        self._advance()
        return token.word

    # lists

    def _list(self, ends: tuple[str, ...]) -> Node:
        """Commands until one of `ends`, an operator or a reserved word that closes something, or the end."""
        items: list[Node] = []
        while True:
            self._newlines()
            if self._token.kind == "end" or self._is(*ends) or self._is(";;", ";&", ";;&"):
                break
            if self._reserved() in _CLOSERS:
                break
            item = self._and_or()
            if self._is("&"):
                item = Background(item)
            items.append(item)
            if self._is(";", "&", "\n"):
                self._advance()
            elif self._token.kind != "end" and not self._is(*ends) and not self._is(";;", ";&", ";;&"):
                raise Unreadable(f"`{self._token.text}` after a command")
        return items[0] if len(items) == 1 else Sequence(items)

    def _and_or(self) -> Node:
        items, operators = [self._pipeline()], []
        while self._is("&&", "||"):
            operators.append(self._advance().text)
            self._newlines()
            items.append(self._pipeline())
        return AndOr(items, operators) if operators else items[0]

    def _pipeline(self) -> Node:
        negated = False
        while self._reserved() == "!":
            self._advance()
            negated = True
        items = [self._command()]
        while self._is("|", "|&"):
            self._advance()
            self._newlines()
            items.append(self._command())
        if negated and len(items) == 1:  # no command by itself: after `! cd x &&` the folder is the old one
            return Sequence(items)
        return Pipeline(items) if len(items) > 1 else items[0]

    # commands

    def _command(self) -> Node:
        self._enter()
        try:
            return self._compound() or self._simple()
        finally:
            self._depth -= 1

    def _compound(self) -> Node | None:
        if self._is("("):
            return self._subshell()
        match self._reserved():
            case "{":
                self._advance()
                body = self._body(())
                self._expect("}")
                return Group(body, self._redirects(), subshell=False)
            case "if":
                return self._if()
            case "while" | "until":
                self._advance()
                condition = self._body(())
                return Loop(condition, self._do(), self._redirects())
            case "for":
                return self._for()
            case "case":
                return self._case()
            case "[[":
                return self._test()
            case word if word in _REFUSED:
                raise Unreadable(_REFUSED[word])
            case word if word in _CLOSERS:
                raise Unreadable(f"`{word}` where a command should begin")
        return None

    def _body(self, ends: tuple[str, ...]) -> Node:
        node = self._list(ends)
        if isinstance(node, Sequence) and not node.items:
            raise Unreadable("an empty list of commands")
        return node

    def _subshell(self) -> Node:
        if self.text.startswith("((", self._token.span[0]):
            raise Unreadable("an arithmetic command")
        self._advance()
        body = self._body((")",))
        if not self._is(")"):
            raise Unreadable("`)` is missing")
        self._advance()
        return Group(body, self._redirects(), subshell=True)

    def _do(self) -> Node:
        self._expect("do")
        body = self._body(())
        self._expect("done")
        return body

    def _if(self) -> Node:
        branches: list[tuple[Node | None, Node]] = []
        self._advance()
        while True:
            condition = self._body(())
            self._expect("then")
            branches.append((condition, self._body(())))
            if self._reserved() != "elif":
                break
            self._advance()
        if self._reserved() == "else":
            self._advance()
            branches.append((None, self._body(())))
        self._expect("fi")
        return If(branches, self._redirects())

    def _for(self) -> Node:
        self._advance()
        name = self._take_word().plain or ""
        if not name.isidentifier():
            raise Unreadable("a loop that is not over words")
        self._newlines()
        words: list[Word] | None = None
        if self._reserved() == "in":
            self._advance()
            words = []
            while self._token.kind in ("word", "number"):
                words.append(self._take_word())
        if self._is(";"):
            self._advance()
        self._newlines()
        body = self._do()
        return For(name, words, body, self._redirects())

    def _case(self) -> Node:
        self._advance()
        subject = self._take_word()
        self._newlines()
        self._expect("in")
        items: list[tuple[list[Word], Node]] = []
        while True:
            self._newlines()
            if self._reserved() == "esac":
                break
            items.append(self._case_item())
        self._advance()
        return Case(subject, items, self._redirects())

    def _case_item(self) -> tuple[list[Word], Node]:
        if self._is("("):
            self._advance()
        patterns = [self._take_word()]
        while self._is("|"):
            self._advance()
            patterns.append(self._take_word())
        if not self._is(")"):
            raise Unreadable("a pattern of `case` that does not end")
        self._advance()
        body = self._list(())
        if self._is(";;", ";&", ";;&"):
            self._advance()
        elif self._reserved() != "esac":
            raise Unreadable("`;;` is missing")
        return patterns, body

    def _test(self) -> Node:
        """`[[ … ]]`: its words; brackets and operators are words there, save that `=~` takes another language."""
        span = self._advance().span
        words: list[Word] = []
        while self._reserved() != "]]":
            if self._token.kind == "end" or self._is(";", "&", "|", "\n"):
                raise Unreadable("`]]` is missing")
            if self._token.kind == "operator":
                if self._token.text not in ("&&", "||", "(", ")", "<", ">"):
                    raise Unreadable(f"`{self._token.text}` inside [[ ]]")
                self._advance()
                continue
            words.append(self._take_word())
        self._advance()
        return Test(span, words, self._redirects())

    def _simple(self) -> Node:
        simple = Simple()
        while True:
            if self._token.kind == "number" or self._is(*REDIRECTS):
                simple.redirects.append(self._redirect())
            elif self._token.kind == "word":
                self._add_word(simple)
            else:
                break
        if not (simple.words or simple.assignments or simple.redirects):
            raise Unreadable(f"`{self._token.text}` where a command should begin")
        if self._is("("):
            raise Unreadable("a function")
        self.simples.append(simple)
        if len(self.simples) > MAX_COMMANDS:
            raise Unreadable(f"more than {MAX_COMMANDS} commands")
        return simple

    def _add_word(self, simple: Simple) -> None:
        self._words += 1
        if self._words > MAX_WORDS:
            raise Unreadable(f"more than {MAX_WORDS} words")
        token = self._token
        assert token.word is not None
        if not simple.words and token.word.pieces and token.word.pieces[0].kind == "raw":
            text = token.word.pieces[0].text
            if found := _ASSIGNMENT.match(text):
                simple.assignments.append(self._assignment(token.word, found))
                return
            if _ELEMENT.match(text) and "=" in token.text:
                raise Unreadable("an assignment to an element of an array")
        simple.words.append(self._take_word())

    def _assignment(self, word: Word, found: re.Match[str]) -> Assignment:
        first = word.pieces[0]
        rest = first.text[found.end() :]
        value: Word | None = Word(
            word.source[found.end() :],
            (word.span[0] + found.end(), word.span[1]),
            ((Piece("raw", rest),) if rest else ()) + word.pieces[1:],
        )
        self._advance()
        end = word.span[1]
        if self._is("(") and word.source == found[0] and self._token.span[0] == end:
            self._advance()
            self._newlines()
            while not self._is(")"):
                if self._take_word().source.startswith("["):
                    raise Unreadable("an array with keys")
                self._newlines()
            end = self._token.span[1]
            self._advance()
            value = None
        return Assignment(found[1], value, found[2] == "+", (word.span[0], end))

    # redirections

    def _redirects(self) -> list[Redirect]:
        found = []
        while self._token.kind == "number" or self._is(*REDIRECTS):
            found.append(self._redirect())
        return found

    def _redirect(self) -> Redirect:
        descriptor = self._advance().text if self._token.kind == "number" else ""
        operator = self._advance().text
        token = self._token
        if token.kind not in ("word", "number") or token.word is None:
            raise Unreadable("a redirection without a target")
        redirect = Redirect(operator, descriptor, token.word)
        if operator in ("<<", "<<-"):
            self._heredocs.append(redirect)  # its text follows the line that it is in
        self._advance()
        return redirect

    def _read_heredocs(self) -> None:
        for redirect in self._heredocs:
            delimiter = redirect.target.fixed
            if delimiter is None:
                raise Unreadable("a here-document with an expansion in its end")
            body = self._lexer.heredoc(delimiter, tabs=redirect.operator == "<<-")
            quoted = any(piece.kind == "quoted" for piece in redirect.target.pieces)
            if not quoted and "\\\n" in body + "\n":  # lines are joined before the end is looked for
                raise Unreadable("an escaped line end in a here-document")
            if not quoted and ("`" in body or "$(" in body or "${" in body or "$[" in body):
                self._note("a substitution in a here-document")
            known = quoted or not ("$" in body or "\\" in body)
            redirect.body = (Piece("quoted", body) if known else Piece("unknown", ""),)
        self._heredocs.clear()
