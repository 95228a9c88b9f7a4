"""A conversation, and one streamed answer to it; only the modules of this package use pydantic-ai."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from dragoman.builtin.models.failures import ModelFailed, explain
from dragoman.builtin.models.spent import Spent
from dragoman.builtin.toolbox import Outcome, Status
from dragoman.builtin.tools.tool import Tool

RESULTS: dict[Status, Literal["success", "failed", "denied", "retried"]] = {
    "done": "success",
    "failed": "failed",
    "invalid": "retried",
    "refused": "denied",
}
"""pydantic-ai's names for the outcomes of a tool call."""
SETTINGS = ModelSettings(max_retries=0)  # `loop` retries instead, and shows it

IMAGE_TOKENS = 1600
"""The most tokens that an image costs with the large providers, however many bytes it has."""
BYTES_PER_SOUND_TOKEN = 500
"""About 32 tokens a second, for audio with the usual compression."""

DEFAULT_CONTEXT_WINDOW = 128_000
"""For unknown models: the most that current local models are usually run with."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer as it arrives."""

    text: str
    thinking: bool
    part: int


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model wants to use; `arguments` is None if they are not a JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    calls: Sequence[Call]
    finish: str | None
    tokens: int
    """Tokens of the context window in use after the answer."""
    cost: float | None
    suspended: bool
    spent: Spent


@dataclass
class Conversation:
    """The messages between the session and its models; the first `kept` of them are saved in the history."""

    messages: list[ModelMessage] = field(default_factory=list)
    kept: int = 0
    partial: list[str] = field(default_factory=list)
    """The text of an answer that is still streaming, in pieces."""

    @classmethod
    def restore(cls, encoded: Sequence[bytes]) -> Conversation:
        messages = ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(encoded) + b"]")
        return cls(messages, len(messages))

    def add_prompt(self, content: Sequence[str | BinaryContent]) -> None:
        parts: list[UserContent] = list(content)
        self.messages.append(ModelRequest([UserPromptPart(parts)]))

    def add_results(self, results: Sequence[tuple[Call, Outcome]]) -> None:
        """Add the outcomes of the last answer's calls; pictures follow as if the user had sent them."""
        parts: list[Any] = []
        pictures: list[UserContent] = []
        for call, outcome in results:
            kind = RESULTS[outcome.status]
            parts.append(ToolReturnPart(call.name, outcome.text, call.id, outcome=kind))
            pictures += [
                BinaryContent(picture.data, media_type=picture.media_type) for picture in outcome.pictures
            ]
        if pictures:
            parts.append(UserPromptPart(["The pictures that were read:", *pictures]))
        self.messages.append(ModelRequest(parts))

    def record_interruption(self, calls: Sequence[Call], results: Sequence[tuple[Call, Outcome]]) -> None:
        """Record a cancelled turn: the partial answer stays, and calls without an outcome fail as cancelled."""
        if self.partial:
            self.messages.append(ModelResponse([TextPart("".join(self.partial))]))
            self.partial = []
        done = {call.id for call, _ in results}
        open_calls = [call for call in calls if call.id not in done]
        cancelled = [(call, Outcome("failed", "The user cancelled this.")) for call in open_calls]
        if results or cancelled:
            self.add_results([*results, *cancelled])

    def forget_from(self, start: int) -> None:
        """Remove the messages from `start` on: after a refusal the prompt must not stay in the context."""
        del self.messages[start:]
        self.kept = 0

    def take_unsaved(self) -> list[bytes]:
        """The messages that the history lacks, encoded; from now on they count as saved."""
        fresh = self.messages[self.kept :]
        self.kept = len(self.messages)
        return [ModelMessagesTypeAdapter.dump_json([message])[1:-1] for message in fresh]

    def replace(self, summary: str, keep: int) -> list[bytes]:
        """A compaction: replace all but the last `keep` messages by a summary; returns all messages, encoded."""
        tail = self.messages[len(self.messages) - keep :] if keep else []
        head = UserPromptPart(f"The conversation so far, in short:\n\n{summary}")
        self.messages = [ModelRequest([head]), ModelResponse([TextPart("Understood.")]), *tail]
        self.kept = 0
        return self.take_unsaved()

    def last_turn(self) -> int:
        """The number of messages of the last turn, which a compaction does not replace.

        A request with a user's part and tool results does not begin a turn: it holds pictures that a tool read.
        """
        for count, message in enumerate(reversed(self.messages), start=1):
            if not isinstance(message, ModelRequest):
                continue
            kinds = {type(part) for part in message.parts}
            if UserPromptPart in kinds and ToolReturnPart not in kinds:
                return count
        return 0

    def estimate(self) -> int:
        """The estimated tokens, for models that do not report them: four bytes each, plus the cost of media."""
        media = [part for message in self.messages for part in _media(message)]
        encoded = sum((len(part.data) + 2) // 3 * 4 for part in media)
        text = len(ModelMessagesTypeAdapter.dump_json(self.messages)) - encoded
        return text // 4 + sum(_media_tokens(part) for part in media)


class Llm:
    """One model, ready for requests."""

    def __init__(self, model: Model, name: str, context_window: int | None = None) -> None:
        self.model = model
        self.name = name
        self.context_window = context_window or model.context_window or DEFAULT_CONTEXT_WINDOW

    def accepts(self, media_type: str) -> bool:
        """Whether the model takes files of this type."""
        profile = self.model.profile
        if media_type.startswith("image/"):
            return profile.get("supports_image_input", True)
        if media_type.startswith("audio/"):
            return profile.get("supports_audio_file_input", True)
        return False

    async def answer(
        self, conversation: Conversation, instructions: str, tools: Sequence[Tool]
    ) -> AsyncGenerator[Piece | Answer, None]:
        """Stream the pieces of one answer, then the whole `Answer`; raises `ModelFailed`."""
        _instruct(conversation.messages, instructions)
        parameters = ModelRequestParameters(function_tools=[_definition(tool) for tool in tools])
        conversation.partial = partial = []
        try:
            async with model_request_stream(
                self.model,
                conversation.messages,
                model_settings=SETTINGS,
                model_request_parameters=parameters,
            ) as stream:
                async for event in stream:
                    piece = _piece(event)
                    if piece is None:
                        continue
                    if not piece.thinking:
                        partial.append(piece.text)
                    yield piece
                response = stream.get()
        except (ModelAPIError, UnexpectedModelBehavior, UserError) as error:
            raise explain(error, self.name) from error
        conversation.partial = []
        if _cut(response):
            raise ModelFailed(f"{self.name} broke off in the middle of its answer.", "model_cut", retry=True)
        if response.parts:
            conversation.messages.append(response)
        yield _whole(response)


def _instruct(messages: list[ModelMessage], instructions: str) -> None:
    """Put the instructions into the newest request only, so that no outdated ones remain."""
    for message in messages:
        if isinstance(message, ModelRequest):
            message.instructions = None
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            message.instructions = instructions
            return


def _media(message: ModelMessage) -> Iterator[BinaryContent]:
    for part in message.parts:
        if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
            yield from (block for block in part.content if isinstance(block, BinaryContent))


def _media_tokens(media: BinaryContent) -> int:
    return IMAGE_TOKENS if media.is_image else len(media.data) // BYTES_PER_SOUND_TOKEN


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(name=tool.name, parameters_json_schema=tool.schema(), description=tool.description)


def _piece(event: object) -> Piece | None:
    if isinstance(event, PartDeltaEvent):
        delta = event.delta
        if isinstance(delta, TextPartDelta) and delta.content_delta:
            return Piece(delta.content_delta, False, event.index)
        if isinstance(delta, ThinkingPartDelta) and delta.content_delta:
            return Piece(delta.content_delta, True, event.index)
    elif isinstance(event, PartStartEvent):
        part = event.part
        if isinstance(part, TextPart | ThinkingPart) and part.content:
            return Piece(part.content, isinstance(part, ThinkingPart), event.index)
    return None


def _cut(response: ModelResponse) -> bool:
    """Whether the stream ended before the answer was complete; test models never give a finish reason."""
    scripted = response.provider_name in (None, "test", "function")
    return response.state == "incomplete" or (response.finish_reason is None and not scripted)


def _whole(response: ModelResponse) -> Answer:
    calls = [_call(part) for part in response.parts if isinstance(part, ToolCallPart)]
    usage = response.usage
    spent = Spent(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    suspended = response.state == "suspended"
    return Answer(calls, response.finish_reason, spent.total, _cost(response), suspended, spent)


def _call(part: ToolCallPart) -> Call:
    arguments: object = part.args
    if isinstance(arguments, str):
        try:
            # Not `json`, which accepts lone surrogates: such text can be neither sent nor stored.
            arguments = msgspec.json.decode(arguments or "{}")
        except (msgspec.DecodeError, RecursionError):
            arguments = None
    elif arguments is None:
        arguments = {}
    return Call(part.tool_call_id, part.tool_name, arguments if isinstance(arguments, dict) else None)


def _cost(response: ModelResponse) -> float | None:
    """In US dollars; None for models without a known price, such as local ones."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
