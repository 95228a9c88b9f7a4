"""The second opinion on a shell line: where tree-sitter's grammar for bash sees commands, words and redirections.

The grammar alone is not to be trusted: it skips what it cannot parse. It is compared, place by place, with what the
strict reader found; a line on which they differ is opaque. Language and parser are made once and kept for the life
of the process: a `Parser` holds a pointer into its `Language`.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING

from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.syntax.parts import Span, Unreadable

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_KNOWN = names(
    """
    program command command_name word number string string_content raw_string ansi_c_string concatenation
    simple_expansion expansion variable_name special_variable_name variable_assignment variable_assignments
    array list pipeline redirected_statement file_redirect file_descriptor herestring_redirect
    heredoc_redirect heredoc_start heredoc_body heredoc_content heredoc_end subshell compound_statement
    do_group for_statement while_statement if_statement elif_clause else_clause case_statement case_item
    test_command test_operator unary_expression binary_expression parenthesized_expression negated_command
    declaration_command unset_command comment extglob_pattern regex arithmetic_expansion postfix_expression
    ternary_expression subscript brace_expression
    """
)
"""Kinds of node that an understood line may have; functions, substitutions and what a new grammar adds are not here."""

_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_LOCK = threading.Lock()  # a Parser is not for two threads at once


class Places:
    """Positions of all parts that both opinions must agree on."""

    __slots__ = ("assignments", "names", "words")

    def __init__(self) -> None:
        self.names: set[Span] = set()
        self.words: set[Span] = set()
        self.assignments: set[Span] = set()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Places)
            and self.names == other.names
            and self.words == other.words
            and self.assignments == other.assignments
        )

    __hash__ = None  # type: ignore[assignment]


@functools.cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def places(line: bytes) -> Places:
    """What the grammar sees; raises `Unreadable` if it is not sure."""
    with _LOCK:
        try:
            parser = _parser()
        except (ImportError, AttributeError, OSError, ValueError) as error:  # half installed, or another ABI
            raise Unreadable(f"the grammar for bash cannot be loaded ({error})") from error
        root = parser.parse(line).root_node
    if root.has_error:
        raise Unreadable("a line that the grammar cannot parse")
    found = Places()
    _collect(root, found)
    return found


def _collect(root: Node, found: Places) -> None:
    pending = [root]
    while pending:
        node = pending.pop()
        kind = node.type
        if not node.is_named:
            continue
        if kind not in _KNOWN:
            raise Unreadable(
                "a substitution" if kind in _SUBSTITUTIONS else f"`{kind.replace('_', ' ')}` in the line"
            )
        if kind == "command_name":
            found.names.add((node.start_byte, node.end_byte))
            pending += node.children
            continue
        if kind in _HOLDERS:
            for child in node.children:
                if child.is_named and child.type not in _NO_WORDS:
                    found.words.add((child.start_byte, child.end_byte))
        if kind == "variable_assignment":
            found.assignments.add((node.start_byte, node.end_byte))
        elif kind in ("test_command", "declaration_command", "unset_command"):
            first = node.children[0]
            found.names.add((first.start_byte, first.end_byte))
        pending += node.children


_HOLDERS = frozenset({"command", "file_redirect", "heredoc_redirect", "herestring_redirect", "for_statement"})
_NO_WORDS = names(
    """
    command_name variable_assignment file_redirect herestring_redirect heredoc_redirect file_descriptor heredoc_start
    heredoc_body heredoc_end pipeline list command do_group variable_name compound_statement redirected_statement comment
    subshell test_command negated_command while_statement for_statement if_statement case_statement declaration_command
    unset_command
    """
)
"""Children of these that are no words of them."""
