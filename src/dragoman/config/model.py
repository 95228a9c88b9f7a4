"""The configuration after all layers are merged; `docs/reference/configuration.md` is generated from this module.

Every key of a table has a default, so that a layer may set a few and leave the rest to others.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from dragoman.config.audit_model import AuditConfig
from dragoman.config.sandbox_model import SandboxConfig
from dragoman.config.sections.chat import ChatConfig
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.config.sections.log import LogConfig, TracesConfig
from dragoman.config.sections.mcp import McpConfig
from dragoman.config.sections.registry import RegistryConfig
from dragoman.config.sections.usage import UsageConfig
from dragoman.config.sections.workspaces import WorkspaceRule
from dragoman.config.sections.worktrees import WorktreesConfig

AgentKind = Literal["acp", "claude", "codex", "builtin", "remote", "python"]
Decision = Literal["allow", "deny", "ask"]


class AgentConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One agent, by the name that clients and commands use for it."""

    kind: Annotated[AgentKind, Meta(description="How the gateway speaks to it.")] = "acp"
    command: Annotated[list[str], Meta(description="The program and its arguments.")] = []
    env: Annotated[dict[str, str], Meta(description="Added to the agent's environment.")] = {}
    secrets: Annotated[
        dict[str, str],
        Meta(description="Variables from elsewhere: `env:NAME`, `file:PATH` or `keyring:SERVICE/ACCOUNT`."),
    ] = {}
    sandbox: Annotated[
        str | None, Meta(description="Where it runs: the name of a sandbox, or `local` or `bubblewrap`.")
    ] = None
    share: Annotated[
        Literal["session", "workspace", "all"],
        Meta(description="Which sessions share one process: none, those of one workspace, or all."),
    ] = "session"
    serve_fs: Annotated[
        bool,
        Meta(
            description="Answer the agent's `fs/*` calls for clients that do not offer them; in a box always on."
        ),
    ] = False
    serve_terminal: Annotated[
        bool, Meta(description="Answer the agent's `terminal/*` calls for clients that do not offer them.")
    ] = False
    park: Annotated[
        Literal["auto", "always", "never"],
        Meta(description="End the idle process: when the agent can resume or load, in any case, or never."),
    ] = "auto"
    auto_resume: Annotated[
        bool,
        Meta(description="New sessions of a `claude` or `codex` agent go on from the workspace's last one."),
    ] = False
    duet: Annotated[
        bool,
        Meta(
            description="`/codex` in a `claude` session, and the reverse, asks the other if it is installed."
        ),
    ] = True
    continue_command: Annotated[
        list[str],
        Meta(description="Prints open tasks; then a `claude` or `codex` agent at its turn limit continues."),
    ] = []
    continue_limit: Annotated[
        int, Meta(ge=0, le=100, description="Most automatic continuations in one turn.")
    ] = 5
    url: Annotated[
        str | None,
        Meta(description="Where a `remote` agent listens: `ws://`, `wss://`, `http://` or `https://`."),
    ] = None
    token: Annotated[
        str | None,
        Meta(
            description="The token of a `remote` agent: `env:NAME`, `file:PATH` or `keyring:SERVICE/ACCOUNT`."
        ),
    ] = None
    headers: Annotated[
        dict[str, str],
        Meta(description="More headers for a `remote` agent; values may be references like `token`."),
    ] = {}
    ca: Annotated[
        str | None,
        Meta(
            description="The authority behind a `remote` agent's certificate, if not a public one: a PEM file."
        ),
    ] = None
    insecure: Annotated[bool, Meta(description="Reach a `remote` agent on another machine without TLS.")] = (
        False
    )
    entry: Annotated[
        str | None, Meta(description="What a `python` agent runs: `module:name` or `/path/to/file.py:name`.")
    ] = None
    model: Annotated[
        str | None,
        Meta(description="The model of a `builtin` agent, as `provider:name`; unset: by the keys in `env`."),
    ] = None
    base_url: Annotated[
        str | None,
        Meta(description="The server of that model, if not the provider's own: any OpenAI-compatible one."),
    ] = None
    context_window: Annotated[
        int, Meta(ge=0, description="Tokens that the model can hold; 0: what is known of it.")
    ] = 0
    sandbox_files: Annotated[
        Literal["copy", "workspace"],
        Meta(
            description="What the sandbox mode of a `builtin` agent changes: a copy of the workspace, or the workspace."
        ),
    ] = "copy"


class QuotaConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of each token at `dragoman serve`; a token may have its own. 0 means no limit."""

    requests_per_minute: Annotated[
        int, Meta(ge=0, description="HTTP requests, and requests on a WebSocket.")
    ] = 0
    bytes_per_minute: Annotated[int, Meta(ge=0, description="Bytes that its requests may have.")] = 0
    sessions: Annotated[int, Meta(ge=0, description="Live sessions that it created or brought back.")] = 0
    turns: Annotated[int, Meta(ge=0, description="Turns that it has running at once.")] = 0


class ServeConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where `dragoman serve` listens."""

    host: Annotated[str, Meta(description="The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="The port to listen on; 0 takes a free one.")] = (
        8420
    )
    inline: Annotated[
        bool, Meta(description="Answer a POST to `/acp` in its own response, as `/acp/inline` does.")
    ] = False
    auth_token: Annotated[
        str | None,
        Meta(
            description="The token, instead of a random one; to listen beyond loopback it needs at least 16 "
            "characters."
        ),
    ] = None
    names: Annotated[
        list[str], Meta(description="Host names it is reached by, besides `localhost` and addresses.")
    ] = []
    origins: Annotated[
        list[str], Meta(description="Origins of other web pages that may connect: `https://example.org`.")
    ] = []
    ping_interval: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds between WebSocket pings; a peer silent for twice as long is disconnected.",
        ),
    ] = 20.0
    keep_alive: Annotated[
        float, Meta(gt=0, description="Seconds of silence before a comment keeps an event stream open.")
    ] = 15.0
    tls_cert: Annotated[str | None, Meta(description="The certificate chain, a PEM file.")] = None
    tls_key: Annotated[str | None, Meta(description="The key of the certificate, a PEM file.")] = None
    allow_from: Annotated[
        list[str],
        Meta(
            description="Names of the tokens that are accepted; empty: every valid one. At `acp --port` a client "
            "with the token is named `admin`, one without `local`."
        ),
    ] = []
    deny_by_default: Annotated[
        bool, Meta(description="Accept no network client while `allow_from` is empty.")
    ] = False
    connections_per_address: Annotated[
        int,
        Meta(ge=0, description="Connections at once from one address but this machine's own; 0: no limit."),
    ] = 256
    trusted_proxies: Annotated[
        list[str],
        Meta(
            description="Addresses and networks of proxies whose `X-Forwarded-*` and `Forwarded` headers are trusted, "
            "such as `10.0.0.0/8`."
        ),
    ] = []
    quotas: QuotaConfig = field(default_factory=QuotaConfig)


class LimitsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sizes, counts and timeouts."""

    max_sessions: Annotated[
        int, Meta(ge=1, description="Live sessions at once; parked and stored ones do not count.")
    ] = 1000
    max_message_bytes: Annotated[int, Meta(ge=1024, description="The longest message a peer may send.")] = (
        33554432
    )
    max_prompt_bytes: Annotated[
        int, Meta(ge=0, description="Bytes of text in the longest prompt; 0 means no limit.")
    ] = 0
    cancel_timeout: Annotated[
        float,
        Meta(ge=0, description="Seconds an agent has to end a cancelled turn before the gateway ends it."),
    ] = 30.0
    session_timeout: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds an agent may be silent before it answers `session/new`, `load` or `resume`.",
        ),
    ] = 120.0
    start_timeout: Annotated[
        float,
        Meta(gt=0, description="Seconds an agent has to answer `initialize`; slow ones need 20 under load."),
    ] = 60.0


class ProtocolConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choices that the protocol leaves open."""

    batches: Annotated[
        Literal["accept", "reject"],
        Meta(description="What happens to a JSON-RPC batch (an array of messages)."),
    ] = "accept"


class SessionsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long sessions live and what is kept of them."""

    on_disconnect: Annotated[
        Literal["keep", "cancel"],
        Meta(description="What happens to a turn when its network client leaves; the end of stdin cancels."),
    ] = "keep"
    queue: Annotated[
        int,
        Meta(
            ge=0, le=100, description="Prompts of ACP clients that may wait for the end of a turn; 0: none."
        ),
    ] = 0
    park_after: Annotated[
        float,
        Meta(ge=0, description="Seconds without a turn or a question until the process ends; 0: never."),
    ] = 900.0
    journal: Annotated[bool, Meta(description="Keep every event of a session on disk.")] = True
    search: Annotated[bool, Meta(description="Keep an index of what was said, for searching.")] = True
    sync: Annotated[
        Literal["normal", "full"], Meta(description="`full` also survives power loss, at some cost in speed.")
    ] = "normal"
    write_patience: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds that events, and their agent, wait for a disk that fails before they are shown "
            "unsaved; 0: for ever.",
        ),
    ] = 60.0
    question_timeout: Annotated[
        float, Meta(ge=0, description="Seconds until an unanswered question counts as denied; 0: it waits.")
    ] = 0.0
    prompt_timeout: Annotated[
        float, Meta(ge=0, description="Seconds a turn may take before it is cancelled; 0: no limit.")
    ] = 0.0
    silent_after: Annotated[
        float,
        Meta(ge=0, description="Seconds without an update until a turn is shown as silent; 0: never."),
    ] = 60.0
    expire_after: Annotated[
        float, Meta(ge=0, description="Seconds without use until a session is closed; 0: never.")
    ] = 0.0
    retain_days: Annotated[float, Meta(ge=0, description="Days a closed session is kept; 0: for ever.")] = 0.0
    retain_bytes: Annotated[
        int,
        Meta(ge=0, description="Bytes of journal to keep; the oldest closed sessions go first; 0: no limit."),
    ] = 0


class PolicyRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to answer to a permission request that matches. All keys have to hold; items of a list are alternatives."""

    decision: Annotated[Decision, Meta(description="The answer.")]
    kind: Annotated[list[str], Meta(description="The kinds of tool call it is for; empty: all.")] = []
    name: Annotated[str | None, Meta(description="What the audit calls this rule.")] = None
    command: Annotated[
        list[list[str | list[str]]],
        Meta(
            description="First words of commands, such as "
            '`[["git", ["status", "diff"]], ["pytest"]]`; an inner list is a choice.'
        ),
    ] = []
    exact: Annotated[
        bool,
        Meta(description="The words of `command`, and redirections, are all of it; no files but `paths`."),
    ] = False
    match: Annotated[list[str], Meta(description="Lines that it must match; `policy check` tries them.")] = []
    not_match: Annotated[list[str], Meta(description="Lines that it must not match.")] = []
    access: Annotated[
        Literal["read", "write"] | None,
        Meta(description="What is done to paths; a command's `write` includes `read`."),
    ] = None
    outside_workspace: Annotated[
        bool | None,
        Meta(description="Whether paths are outside the workspace; unset: allow-rules cover none."),
    ] = None
    paths: Annotated[
        list[str], Meta(description="Absolute globs; `{workspace}` and `~/` work, `**` is any depth.")
    ] = []
    hosts: Annotated[list[str], Meta(description="Names of hosts; `*` works.")] = []
    mcp: Annotated[list[str], Meta(description="Tools of MCP servers, as `server/tool`; `*` works.")] = []
    tool: Annotated[list[str], Meta(description="Names of tools; `*` works.")] = []
    agent: Annotated[list[str], Meta(description="Names of agents.")] = []
    mode: Annotated[list[str], Meta(description="Modes of the session.")] = []
    boxed: Annotated[bool | None, Meta(description="Whether the agent runs in a sandbox.")] = None
    watched: Annotated[bool | None, Meta(description="Whether a person who may answer is attached.")] = None
    prompted_by: Annotated[
        list[str], Meta(description="Who sent the prompt: names of tokens, or `local`.")
    ] = []
    expires: Annotated[
        str | None, Meta(description="When the rule ends, such as `2027-01-31` or `2027-01-31T18:00+01:00`.")
    ] = None
    trust_label: Annotated[bool, Meta(description="Allow also what only the agent's own label says.")] = False
    approvals: Annotated[
        int, Meta(ge=1, le=9, description="How many people must agree; more than one needs `ask`.")
    ] = 1
    approvers: Annotated[
        list[str],
        Meta(description="Who may answer: names of tokens, or `role:approve` for that role or higher."),
    ] = []
    reason: Annotated[str | None, Meta(description="Told to the agent when it is denied.")] = None


class PolicyConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules that answer a permission request before, or instead of, a person."""

    rules: Annotated[
        list[PolicyRule],
        Meta(
            description="A `deny` that matches counts wherever it stands; else the first `allow` or `ask` decides."
        ),
    ] = []
    narrow: Annotated[
        list[PolicyRule],
        Meta(description="`deny` and `ask`; the stricter of both answers holds. Workspace rules land here."),
    ] = []
    require: Annotated[
        Literal["full", "asking"] | None,
        Meta(
            description="Least mediation level of agents and their modes; those below it are refused. Unset: none."
        ),
    ] = None
    remember: Annotated[
        Literal["gateway", "agent"],
        Meta(
            description="Where a lasting answer is kept: listed and revocable here, or as each agent does it."
        ),
    ] = "gateway"


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole configuration, resolved."""

    default_agent: Annotated[str, Meta(description="The agent of a session that names none.")] = "builtin"
    agents: Annotated[dict[str, AgentConfig], Meta(description="The agents by name.")] = {}
    sandboxes: Annotated[dict[str, SandboxConfig], Meta(description="The sandboxes by name.")] = {}
    mcp: Annotated[dict[str, McpConfig], Meta(description="MCP servers for sessions, by name.")] = {}
    workspaces: Annotated[
        list[WorkspaceRule], Meta(description="Agents and sandboxes by workspace; the first match counts.")
    ] = []
    serve: ServeConfig = field(default_factory=ServeConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    sessions: SessionsConfig = field(default_factory=SessionsConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    checkpoints: CheckpointsConfig = field(default_factory=CheckpointsConfig)
    usage: UsageConfig = field(default_factory=UsageConfig)
    worktrees: WorktreesConfig = field(default_factory=WorktreesConfig)
    chat: ChatConfig = field(default_factory=ChatConfig)
    registry: RegistryConfig = field(default_factory=RegistryConfig)
    log: LogConfig = field(default_factory=LogConfig)
    traces: TracesConfig = field(default_factory=TracesConfig)
