"""The text for content blocks of a prompt that an agent's own protocol has no form for."""

from __future__ import annotations

from dragoman.wire.json_types import JsonObject, as_object


def words(block: JsonObject) -> str:
    """A link as Markdown, the text of an embedded file in a tag, any other block as its text."""
    if block.get("type") == "resource_link":
        return f"[@{block.get('name') or block.get('uri')}]({block.get('uri')})"
    if block.get("type") == "resource":
        resource = as_object(block.get("resource"))
        uri = resource.get("uri")
        known = "text" in resource
        return f'<context ref="{uri}">\n{resource["text"]}\n</context>' if known else f"[@{uri}]({uri})"
    return str(block.get("text", ""))
