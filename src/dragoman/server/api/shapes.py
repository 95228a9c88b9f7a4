"""Types of the API's request and response bodies; the class docstrings are descriptions in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman.gateway.access.identity import RoleName
from dragoman.server.auth.named_tokens import MAX_LIFETIME

JsonValue = Any


class SessionView(Struct, rename="camel", kw_only=True):
    """A session as it is now."""

    id: str
    agent: str
    cwd: Annotated[str, Meta(description="The folder that it works in.")]
    title: str | None
    updated_at: Annotated[str | None, Meta(description="ISO 8601, UTC.")]
    live: Annotated[bool, Meta(description="Whether a process has it open.")]
    state: Annotated[
        str,
        Meta(
            description="`idle`, `working`, `silent`, `waiting_for_permission`, `parked`, `agent_dead`, "
            "`context_lost`, `interrupted`, `closed` or `stored`."
        ),
    ]
    clients: Annotated[int, Meta(description="How many clients of this gateway are attached.")]
    mediation: Annotated[
        dict[str, str] | None,
        Meta(
            description="`level` and `why`, as in `/api/agents`, of the agent in its present mode; null if the session "
            "is not live in this process."
        ),
    ]
    question: Annotated[
        dict[str, JsonValue] | None,
        Meta(
            description="The permission that the agent waits for: `id`, `toolCall` and `options`; answer it with "
            "`POST /api/sessions/{id}/questions/{question}`."
        ),
    ] = None


class Answer(Struct, rename="camel", forbid_unknown_fields=True):
    """The answer to a question."""

    option_id: Annotated[str, Meta(description="The `optionId` of one of the question's options.")]
    remember: Annotated[
        dict[str, Any] | None,
        Meta(
            description="For an option that allows: remember it, `{scope, until, pattern}`. `scope` is session, project "
            "or everywhere, `until` such as `1h` or `today`, `pattern` lines as in the question's `remember.pattern`."
        ),
    ] = None


class MemoryView(Struct, rename="camel"):
    """An answer that a person had us remember."""

    id: str
    decision: Literal["allow", "deny"]
    words: Annotated[str, Meta(description="What it is about, in words.")]
    pattern: Annotated[list[dict[str, Any]], Meta(description="The same as conditions of policy rules.")]
    scope: Literal["session", "project", "everywhere"]
    root: Annotated[str, Meta(description="The project that it was said in.")]
    session: str
    call: Annotated[str, Meta(description="The `toolCallId` that was asked about.")]
    who: Annotated[str, Meta(description="Name of the token of the person who answered, or `local`.")]
    when: str
    until: str | None


class MemoryList(Struct, rename="camel", omit_defaults=True):
    """What is remembered and in force, the oldest first."""

    remembered: list[MemoryView]
    problem: Annotated[
        str | None, Meta(description="Why nothing is in force although something is stored; what to do.")
    ] = None


class SessionList(Struct, rename="camel", omit_defaults=True):
    """A page of sessions, the most recently used first."""

    sessions: list[SessionView]
    next_cursor: Annotated[
        str | None, Meta(description="Ask again with `cursor` set to it; absent on the last page.")
    ] = None


class NewWorktree(Struct, forbid_unknown_fields=True):
    """The worktree that a new session gets."""

    name: Annotated[str | None, Meta(description="Its name; unset: made of `title`.")] = None
    title: str = ""
    setup: Annotated[bool, Meta(description="The commands of `worktrees.setup` are approved.")] = False


class NewSession(Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """The session to create."""

    cwd: Annotated[str, Meta(description="The absolute path of the folder to work in.")]
    agent: Annotated[str | None, Meta(description="The agent; unset: the workspace's or the default.")] = None
    additional_directories: Annotated[list[str], Meta(description="More folders it may use.")] = []
    worktree: Annotated[
        NewWorktree | None, Meta(description="Work in a git worktree of `cwd`, on a branch of its own.")
    ] = None


class SessionEdit(Struct, forbid_unknown_fields=True):
    """Changes to a session."""

    title: Annotated[
        str, Meta(min_length=1, max_length=200, description="The title; agents do not change it afterwards.")
    ]


class Prompt(Struct, forbid_unknown_fields=True):
    """The prompt to send."""

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
    truncated: Annotated[bool, Meta(description="Whether `text` is cut; the export has all of it.")] = False


class MediationView(Struct, rename="camel"):
    """How much of what an agent does reaches the rules before it happens."""

    level: Annotated[
        str,
        Meta(
            description="`full`: every tool call; `asking`: what the agent asks about; `none`: nothing for sure."
        ),
    ]
    why: str
    never_asks: Annotated[list[str], Meta(description="Modes in which the level is `none`.")]


class AgentView(Struct, kw_only=True):
    """An agent."""

    name: str
    kind: str
    default: Annotated[bool, Meta(description="Sessions that name no agent get this one.")]
    sandbox: Annotated[str | None, Meta(description="The sandbox that it runs in; null: none.")]
    mediation: MediationView


class AgentList(Struct):
    """The agents that a session can use."""

    agents: list[AgentView]


class Used(Struct):
    """The present use of the limits."""

    sessions: Annotated[int, Meta(description="Live sessions; parked ones do not count.")]
    clients: int


class Limits(Struct):
    """The configured `limits`, and their present use."""

    limits: dict[str, JsonValue]
    used: Used


class TokenView(Struct, kw_only=True):
    """A token, without its secret."""

    name: str
    role: str
    created: Annotated[str, Meta(description="ISO 8601, UTC.")]
    expires: Annotated[str | None, Meta(description="ISO 8601, UTC; null: it does not expire.")]
    expired: bool
    quotas: Annotated[dict[str, int], Meta(description="Where it differs from `[serve.quotas]`.")]


class TokenList(Struct):
    """The named tokens; the instance's own is not among them."""

    tokens: list[TokenView]


class NewToken(Struct, kw_only=True, forbid_unknown_fields=True):
    """The token to create."""

    name: Annotated[str, Meta(description="Up to 64 letters, digits, `-`, `_`, `.` and `@`.")]
    role: Annotated[
        RoleName,
        Meta(
            description="`observe` reads, `approve` also answers questions, `control` also works with sessions, "
            "`admin` also manages tokens."
        ),
    ] = "control"
    lifetime: Annotated[
        Annotated[float, Meta(gt=0, le=MAX_LIFETIME)] | None,
        Meta(description="Seconds until it expires, 100 years at most."),
    ] = None
    quotas: Annotated[
        dict[str, int], Meta(description="Limits of its own, by the keys of `[serve.quotas]`.")
    ] = {}


class MadeToken(TokenView, kw_only=True):
    """A new token."""

    secret: Annotated[str, Meta(description="The token itself; only this response shows it.")]


class PolicyView(Struct, kw_only=True):
    """The rules in force for a folder."""

    workspace: Annotated[str, Meta(description="The root of the project that the folder belongs to.")]
    rules: Annotated[
        list[dict[str, JsonValue]],
        Meta(
            description="In the order of their authority: `name`, `from` (administrator, narrow, user), `file`, "
            "`decision` and the keys of the rule."
        ),
    ]
    protected: Annotated[list[str], Meta(description="Our own folders, which no agent may write to.")]
    trouble: Annotated[
        str | None, Meta(description="Why the files are not what is in force; null: they are.")
    ] = None


class DecisionPage(Struct, rename="camel", omit_defaults=True):
    """Decisions about tool calls, the newest first."""

    decisions: Annotated[
        list[dict[str, JsonValue]],
        Meta(
            description="`id` of the audit's record, `session`, `call`, `time`, `title`, `decision` (allow, deny, "
            "cancelled), `rule` or `by`, `why`, `act`, `approvals`."
        ),
    ]
    next_cursor: Annotated[
        str | None, Meta(description="Ask again with `cursor` set to it; absent on the last page.")
    ] = None


class PolicyTest(Struct, rename="camel", forbid_unknown_fields=True):
    """What to decide about."""

    command: Annotated[str, Meta(description="A shell line.")] = ""
    kind: Annotated[str, Meta(description="Kind of the tool call, if there is no command.")] = ""
    cwd: Annotated[str | None, Meta(description="The absolute path of the session's folder.")] = None
    agent: str = ""
    mode: str = ""
    tool: str = ""
    session: Annotated[str, Meta(description="Id of a session, for answers that hold in it alone.")] = ""
    without_remembered: Annotated[bool, Meta(description="Leave remembered answers out.")] = False


class VerdictView(Struct, omit_defaults=True):
    """What the rules say; the same object as `dragoman policy test --json` prints."""

    decision: str
    rule: str
    why: str
    act: dict[str, JsonValue]
    reason: str | None = None
    approvals: int | None = None
    approvers: list[str] | None = None
    wanted: list[dict[str, JsonValue]] | None = None
    level: int | None = None
    remembered: Annotated[
        dict[str, JsonValue] | None, Meta(description="The remembered answer that decided, if one did.")
    ] = None


class Explanation(Struct):
    """How a tool call was decided."""

    session: str
    call: str
    records: Annotated[
        list[dict[str, JsonValue]],
        Meta(description="Questions, approvals and decisions of the journal, with `kind`, `seq` and `time`."),
    ]
    now: Annotated[
        dict[str, JsonValue] | None,
        Meta(description="What the rules in force would say; null if the session is not live here."),
    ]


class Problem(Struct):
    """What went wrong."""

    error: Annotated[str, Meta(description="One sentence for people.")]
    code: Annotated[str, Meta(description="The kind of error, for programs.")]
