"""JSON values and texts for property tests, with what trips up parsers and line splitters in most of them."""

from __future__ import annotations

import json

from hypothesis import strategies as st

# What some line splitter somewhere takes for the end of a line, and text of every width in UTF-8.
TEXTS = st.text(
    st.sampled_from('abz 0"\\/{}[]:,ü漢😀\u0085\u2028\u2029\ufeff\n\r\t\x00\x0b\x0c\x1c\x7f'), max_size=12
)
INTEGERS = st.integers(min_value=-(2**80), max_value=2**80) | st.sampled_from(
    [2**53 + 1, 2**63, 2**64, -(2**63) - 1]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1.0, 1e2, -0.0, 1e300])
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
ARRAYS = st.lists(VALUES, max_size=3)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)
MESSAGES = OBJECTS | ARRAYS


@st.composite
def encoded(draw: st.DrawFn, value: st.SearchStrategy[object] = MESSAGES) -> bytes:
    """A value as some encoder writes it: compact or not, escaped or not."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    return json.dumps(draw(value), separators=separators, ensure_ascii=draw(st.booleans())).encode()
