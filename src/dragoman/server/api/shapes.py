"""Types of the API's request and response bodies; the class docstrings are descriptions in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman.server.auth.named_tokens import MAX_LIFETIME

JsonValue = Any


class SessionView(Struct, rename="camel", kw_only=True):
    """A session as it is now."""

    id: str
    agent: str
    cwd: Annotated[str, Meta(description="The folder that it works in.")]
    title: str | None
    updated_at: Annotated[str | None, Meta(description="ISO 8601, UTC.")]
    live: Annotated[bool, Meta(description="Some process has it open.")]
    state: Annotated[
        str,
        Meta(
            description="`idle`, `working`, `silent`, `waiting_for_permission`, `parked`, `agent_dead`, "
            "`context_lost`, `interrupted`, `closed` or `stored`."
        ),
    ]
    clients: Annotated[int, Meta(description="How many clients of this gateway are attached.")]
    question: Annotated[
        dict[str, JsonValue] | None,
        Meta(
            description="The permission that the agent waits for: `id`, `toolCall` and `options`; answer it with "
            "`POST /api/sessions/{id}/questions/{question}`."
        ),
    ] = None


class Answer(Struct, rename="camel", forbid_unknown_fields=True):
    """What is decided."""

    option_id: Annotated[str, Meta(description="The `optionId` of one of the question's options.")]


class SessionList(Struct, rename="camel", omit_defaults=True):
    """A page of sessions, the most recently used first."""

    sessions: list[SessionView]
    next_cursor: Annotated[
        str | None, Meta(description="Ask again with `cursor` set to it; absent on the last page.")
    ] = None


class NewSession(Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """What a new session shall be."""

    cwd: Annotated[str, Meta(description="The absolute path of the folder to work in.")]
    agent: Annotated[str | None, Meta(description="The agent; unset: the workspace's or the default.")] = None
    additional_directories: Annotated[list[str], Meta(description="More folders it may use.")] = []


class SessionEdit(Struct, forbid_unknown_fields=True):
    """What shall be different."""

    title: Annotated[
        str, Meta(min_length=1, max_length=200, description="Its name; agents do not change it.")
    ]


class Prompt(Struct, forbid_unknown_fields=True):
    """What to tell the agent."""

    prompt: Annotated[
        str | list[dict[str, JsonValue]], Meta(description="A text, or content blocks as ACP has them.")
    ]


class Turn(Struct, rename="camel"):
    """How a prompt ended."""

    stop_reason: Annotated[
        str,
        Meta(description="`end_turn`, `max_tokens`, `max_turn_requests`, `refusal` or `cancelled`."),
    ]
    text: Annotated[str, Meta(description="What the agent said, without thoughts and tool calls.")]
    truncated: Annotated[bool, Meta(description="It said more than fits; the export has all of it.")] = False


class AgentView(Struct, kw_only=True):
    """An agent by name."""

    name: str
    kind: str
    default: Annotated[bool, Meta(description="Sessions that name no agent get this one.")]
    sandbox: Annotated[str | None, Meta(description="Where it runs, if not plainly on this machine.")]


class AgentList(Struct):
    """The agents that can be asked for."""

    agents: list[AgentView]


class Used(Struct):
    """How much of it is used now."""

    sessions: Annotated[int, Meta(description="Live sessions; parked ones do not count.")]
    clients: int


class Limits(Struct):
    """How much is too much: `limits` as the configuration has it."""

    limits: dict[str, JsonValue]
    used: Used


class TokenView(Struct, kw_only=True):
    """A token, without its secret."""

    name: str
    role: str
    created: Annotated[str, Meta(description="ISO 8601, UTC.")]
    expires: Annotated[str | None, Meta(description="ISO 8601, UTC; null: when it is revoked.")]
    expired: bool
    quotas: Annotated[dict[str, int], Meta(description="Where it differs from `[serve.quotas]`.")]


class TokenList(Struct):
    """The named tokens; the instance's own is not among them."""

    tokens: list[TokenView]


class NewToken(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a new token shall be."""

    name: Annotated[str, Meta(description="Up to 64 letters, digits, `-`, `_`, `.` and `@`.")]
    role: Annotated[
        Literal["observe", "control", "admin"],
        Meta(description="What it may: read along; everything with sessions; tokens as well."),
    ] = "control"
    lifetime: Annotated[
        Annotated[float, Meta(gt=0, le=MAX_LIFETIME)] | None,
        Meta(description="Seconds that it is good, 100 years at most."),
    ] = None
    quotas: Annotated[
        dict[str, int], Meta(description="Limits of its own, by the keys of `[serve.quotas]`.")
    ] = {}


class MadeToken(TokenView, kw_only=True):
    """A new token."""

    secret: Annotated[str, Meta(description="Told now and never again.")]


class Problem(Struct):
    """What went wrong."""

    error: Annotated[str, Meta(description="One sentence for people.")]
    code: Annotated[str, Meta(description="The same for programs.")]
