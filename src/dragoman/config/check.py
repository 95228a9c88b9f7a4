"""Checks that types cannot express: names that must exist, keys that a kind needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from dragoman.config.errors import ConfigError
from dragoman.config.model import AgentConfig, Config
from dragoman.config.sandbox_model import SandboxConfig
from dragoman.config.sections.mcp import McpConfig

RESERVED_NAMES = frozenset({"rpc", "sse", "inline", "events"})
"""Not allowed as agent names: `/acp/NAME` is another endpoint for these."""

PLAIN_SANDBOXES = ("local", "bubblewrap")
"""Kinds that need no settings, so their name alone is a sandbox."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_MEMORY = re.compile(r"\d+[kmgt]?b?", re.IGNORECASE)
_ANCHOR = re.compile(r"file:/|syslog:(//.+)?$|(otlp\+)?https?://.")
_ANCHORS = "expected file:/PATH, https://URL, syslog: or syslog://HOST:PORT, or otlp+https://URL"
_CURRENCY = re.compile(r"[A-Za-z]{3}")
_SECRET = re.compile(r"(env|file|keyring):.+")

_NEEDS = {
    AgentConfig: {
        "acp": "command",
        "claude": "command",
        "codex": "command",
        "remote": "url",
        "python": "entry",
    },
    SandboxConfig: {"podman": "image", "docker": "image", "ssh": "host", "command": "command"},
}
"""The key that each kind of agent and sandbox needs."""


def check(config: Config, blame: Callable[..., str], any_agent: bool = False) -> None:
    """Raise `ConfigError` with one line per inconsistency, which begins with the origin of a key, by `blame`.

    `any_agent` accepts unknown agent names.
    """
    found: list[str] = []

    def complain(path: tuple[str, ...], text: str) -> None:
        found.append(f"{blame(*path)}: {'.'.join(path).replace('.[', '[')}: {text}")

    for name, agent in config.agents.items():
        _check_agent(name, agent, config, complain)
    for name, box in config.sandboxes.items():
        _check_sandbox(name, box, complain)
    for name, server in config.mcp.items():
        _check_mcp(name, server, config, complain, any_agent)
    for index, rule in enumerate(config.workspaces):
        here = ("workspaces", f"[{index}]")
        if rule.agent is not None and not any_agent:
            _must_exist("agent", rule.agent, config.agents, (*here, "agent"), complain)
        if rule.sandbox is not None:
            _must_exist("sandbox", rule.sandbox, sandbox_names(config), (*here, "sandbox"), complain)
    for index, narrow in enumerate(config.policy.narrow):
        if narrow.decision == "allow":
            complain(("policy", "narrow", f"[{index}]", "decision"), 'expected "deny" or "ask", got "allow"')
    for index, network in enumerate(config.serve.trusted_proxies):
        if (trouble := _network_trouble(network)) is not None:
            complain(("serve", "trusted_proxies", f"[{index}]"), trouble)
    for pattern, price in config.usage.prices.items():
        if not _CURRENCY.fullmatch(price.currency):
            complain(("usage", "prices", pattern, "currency"), 'expected three letters, such as "EUR"')
    for index, place in enumerate(config.audit.anchors):
        if _ANCHOR.match(place) is None:
            complain(("audit", "anchors", f"[{index}]"), _ANCHORS)
    if not any_agent and config.default_agent != Config().default_agent:
        _must_exist("agent", config.default_agent, config.agents, ("default_agent",), complain)
    if found:
        raise ConfigError("\n".join(found))


def sandbox_names(config: Config) -> list[str]:
    """Every name that `sandbox =` and `--sandbox` take."""
    return [*PLAIN_SANDBOXES, *config.sandboxes]


_Complain = Callable[[tuple[str, ...], str], None]


def _check_agent(name: str, agent: AgentConfig, config: Config, complain: _Complain) -> None:
    path = ("agents", name)
    if name in RESERVED_NAMES:
        complain(path, f"the name is reserved, as are {', '.join(sorted(RESERVED_NAMES - {name}))}")
    _check_entry(path, agent, "an agent", complain)
    if agent.kind == "remote":
        _check_remote(path, agent, complain)
    for variable, reference in agent.secrets.items():
        _check_secret((*path, "secrets", variable), reference, complain)
    if agent.sandbox is not None:
        _must_exist("sandbox", agent.sandbox, sandbox_names(config), (*path, "sandbox"), complain)


def _check_entry(
    path: tuple[str, str], entry: AgentConfig | SandboxConfig, what: str, complain: _Complain
) -> None:
    """Check the name, and the key that the kind needs."""
    if not _NAME.fullmatch(path[1]):
        complain(path, "a name has letters, digits, - and _ only")
    key = _NEEDS[type(entry)].get(entry.kind)
    if key is not None and getattr(entry, key) in (None, "", [], [""]):
        complain((*path, key), f'{what} of kind "{entry.kind}" needs it')


def _check_secret(path: tuple[str, ...], reference: str, complain: _Complain) -> None:
    if not _SECRET.fullmatch(reference):
        complain(path, "expected env:NAME, file:PATH or keyring:SERVICE/ACCOUNT, not the secret itself")


def _check_remote(path: tuple[str, ...], agent: AgentConfig, complain: _Complain) -> None:
    url, loopback = _url_trouble(agent.url or "")
    if agent.url and url is not None:
        complain((*path, "url"), url)
    elif agent.url and not loopback and not agent.insecure and agent.url.lower().startswith(("ws:", "http:")):
        complain(
            (*path, "url"),
            "everything, the token too, would cross the network in the clear: use wss:// or https://, "
            "tunnel it, or set `insecure = true`",
        )
    if agent.token is not None:
        _check_secret((*path, "token"), agent.token, complain)
    if agent.sandbox is not None:
        complain((*path, "sandbox"), "a remote agent runs where it is: set its sandbox there")


def _url_trouble(url: str) -> tuple[str | None, bool]:
    """The problem with a URL, if there is one, and whether its host is loopback."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises for an invalid port
    except ValueError:  # its message would quote the URL, which may hold a password
        return "not an address: its host or its port cannot be read", False
    if parts.scheme.lower() not in ("ws", "wss", "http", "https") or not parts.hostname:
        return "expected ws://HOST/acp, wss://HOST/acp, http://HOST/acp or https://HOST/acp", False
    if parts.username is not None:
        return "a password does not belong into an address: set `token` or `headers`", False
    try:
        return None, ip_address(parts.hostname).is_loopback
    except ValueError:
        return None, parts.hostname.lower() == "localhost"


def _network_trouble(text: str) -> str | None:
    from ipaddress import ip_network

    try:
        ip_network(text.strip(), strict=False)
    except ValueError:
        return f'expected an address or a network, such as "10.0.0.2" or "10.0.0.0/8", got "{text}"'
    return None


def _check_mcp(name: str, server: McpConfig, config: Config, complain: _Complain, any_agent: bool) -> None:
    path = ("mcp", name)
    if not _NAME.fullmatch(name):
        complain(path, "a name has letters, digits, - and _ only")
    if bool(server.command and server.command[0]) == (server.url is not None):
        complain(path, "a server has either `command` or `url`")
    elif server.url is not None:
        url, _ = _url_trouble(server.url)
        if url is not None or not server.url.lower().startswith("http"):
            complain((*path, "url"), "expected http://HOST/… or https://HOST/…, without a password in it")
    for key, kept in (("env", server.command), ("headers", server.url)):
        if getattr(server, key) and not kept:
            complain((*path, key), f"a server with `{'url' if server.url else 'command'}` has no {key}")
    for key, reference in server.secrets.items():
        _check_secret((*path, "secrets", key), reference, complain)
        if key in server.env or key in server.headers:
            complain((*path, "secrets", key), "it is set twice: leave one of them out")
    for agent in () if any_agent else server.agents:
        _must_exist("agent", agent, config.agents, (*path, "agents"), complain)


def _check_sandbox(name: str, box: SandboxConfig, complain: _Complain) -> None:
    path = ("sandboxes", name)
    _check_entry(path, box, "a sandbox", complain)
    if box.workspace is not None and not box.workspace.startswith("/"):
        complain((*path, "workspace"), "expected an absolute path")
    if box.memory is not None and not _MEMORY.fullmatch(box.memory):
        complain((*path, "memory"), f'expected a number with k, m or g, such as "2g", got "{box.memory}"')
    if box.kind == "command" and box.command and "{agent...}" not in box.command:
        complain(
            (*path, "command"),
            'expected "{agent...}" among the arguments: it stands for the agent\'s command',
        )


def _must_exist(
    what: str, name: str, known: Iterable[str], path: tuple[str, ...], complain: _Complain
) -> None:
    names = list(known)
    if name not in names:
        from dragoman.config.schema import suggest

        complain(path, f'there is no {what} "{name}"{suggest(name, names)}')
