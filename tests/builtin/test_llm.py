"""The loop with pydantic-ai's own models for tests, in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.test import TestModel

from dragoman.agents.custody import Custody
from dragoman.builtin import loop
from dragoman.builtin.loop import ModelTurn
from dragoman.builtin.models.llm import Answer, Call, Conversation, Llm, Piece
from dragoman.builtin.toolbox import Outcome
from dragoman.builtin.tools.tool import Picture
from support.agents.builtin_session import BuiltinSession


@pytest.fixture
async def bench(workspace: Path) -> AsyncIterator[BuiltinSession]:
    custody = Custody()
    yield BuiltinSession(workspace, custody)
    await custody.close()


async def test_an_answer_comes_in_pieces_and_then_as_a_whole() -> None:
    llm = Llm(TestModel(custom_output_text="Hello there", call_tools=[]), "test")
    conversation = Conversation()
    conversation.add_prompt(["hi"])
    found = [each async for each in llm.answer(conversation, "Be brief.", [])]
    pieces = [each for each in found if isinstance(each, Piece)]
    assert "".join(piece.text for piece in pieces) == "Hello there"
    assert isinstance(found[-1], Answer)
    assert len(conversation.messages) == 2


async def test_a_model_that_calls_tools_for_ever_is_stopped(
    bench: BuiltinSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "MAX_REQUESTS", 3)

    async def plan_on(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        arguments = json.dumps({"entries": [{"content": f"step {len(messages)}"}]})
        yield {0: DeltaToolCall(name="plan", json_args=arguments, tool_call_id=f"id{len(messages)}")}

    conversation = Conversation()
    conversation.add_prompt(["go"])
    llm = Llm(FunctionModel(stream_function=plan_on), "function")
    turn = ModelTurn(bench.session, llm, conversation, 0)
    assert await turn.run() == "max_turn_requests"
    assert len([each for each in bench.person.updates if each["sessionUpdate"] == "plan"]) == 3


async def test_a_model_sees_only_the_tools_of_the_mode(bench: BuiltinSession) -> None:
    seen: list[str] = []

    async def look(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        seen.extend(tool.name for tool in info.function_tools)
        yield "done"

    bench.session.set_mode("read-only")
    conversation = Conversation()
    conversation.add_prompt(["go"])
    turn = ModelTurn(bench.session, Llm(FunctionModel(stream_function=look), "function"), conversation, 0)
    assert await turn.run() == "end_turn"
    assert "read" in seen
    assert not {"run", "write", "edit"} & set(seen)


def with_picture(data: bytes) -> Conversation:
    """A turn whose tool read a picture."""
    conversation = Conversation()
    conversation.add_prompt(["what is on it?"])
    conversation.messages.append(ModelResponse([ToolCallPart("read", {"path": "a.png"}, "id1")]))
    outcome = Outcome("done", "a.png", [Picture(data, "image/png")])
    conversation.add_results([(Call("id1", "read", {"path": "a.png"}), outcome)])
    return conversation


def test_a_picture_costs_the_same_whatever_its_size() -> None:
    small, large = with_picture(b"1").estimate(), with_picture(bytes(3_000_000)).estimate()
    assert small == large
    assert 1600 < small < 2000


def test_a_compaction_never_parts_a_call_from_its_result() -> None:
    conversation = with_picture(b"1")
    assert conversation.last_turn() == 3, "the request with the picture is no prompt of the user's"


@pytest.mark.parametrize("arguments", ['{"path": "\\udcff"}', "[" * 100_000, "[]", "{not json"])
async def test_arguments_that_are_no_sound_object_are_none(arguments: str) -> None:
    async def ask(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        yield {0: DeltaToolCall(name="read", json_args=arguments, tool_call_id="id1")}

    conversation = Conversation()
    conversation.add_prompt(["go"])
    llm = Llm(FunctionModel(stream_function=ask), "function")
    [answer] = [each async for each in llm.answer(conversation, "", []) if isinstance(each, Answer)]
    assert answer.calls[0].arguments is None


def test_a_conversation_survives_being_stored() -> None:
    conversation = Conversation()
    conversation.add_prompt(["hi", "there"])
    stored = conversation.take_unsaved()
    assert conversation.take_unsaved() == []
    assert Conversation.restore(stored).messages == conversation.messages
