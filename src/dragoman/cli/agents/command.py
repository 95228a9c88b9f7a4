"""`dragoman agents`: list, check, add and remove agents; those from a registry are in `registry.py`."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from dragoman.agents.known import KNOWN, find_agent, is_installed
from dragoman.cli.agents.registry import COMMANDS
from dragoman.cli.audit.tell import changing, telling
from dragoman.cli.commands import AS_JSON, SETTINGS, WholeLines
from dragoman.cli.settings import load_settings
from dragoman.cli.terminal.progress import waiting
from dragoman.config.errors import ConfigError
from dragoman.config.files.edit import add_agent, remove_agent
from dragoman.config.files.installed import ORIGIN, installed_agents
from dragoman.config.load import Layer
from dragoman.config.model import AgentConfig, Config
from dragoman.config.paths import Paths
from dragoman.masking import mask, mask_words
from dragoman.terminal import style

if TYPE_CHECKING:
    from dragoman.agents.custody import Custody
    from dragoman.agents.probe import ProbeResult
    from dragoman.gateway.ports.sandbox import Boxes

CHECK_SECONDS = 15.0
"""How long `agents add` waits for the new agent."""


@click.group(cls=WholeLines, context_settings=SETTINGS)
def agents() -> None:
    """List, check, add and remove agents, and install them from a registry."""


for command in COMMANDS:
    agents.add_command(command)


@agents.command("list")
@AS_JSON
def list_agents(as_json: bool) -> None:
    """Show every agent that is known or configured: its version, login, and how much of it rules see.

    The default agent is marked with *. LOGIN is ? where only the agent itself can tell; for the built-in one it says
    whether a model can be asked.
    FROM is PATH, configuration, or how `agents install` installed it; unpinned: no registry named its hash.
    MEDIATION is full (every tool call reaches the rules before it runs), asking (what the agent asks) or none.
    """
    from dragoman.cli.agents.listing import describe_all, print_agents

    paths, loaded = load_settings()
    with waiting("asking for versions"):
        rows = describe_all(loaded, installed_agents(paths))
    if as_json:
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        print_agents(rows)


@agents.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Wait so long for each agent."
)
@AS_JSON
@click.pass_context
def check(ctx: click.Context, names: tuple[str, ...], timeout: float | None, as_json: bool) -> None:
    """Start agents, ask what they can do and stop them again.

    Without NAME it checks all that are installed. The exit code is 1 if one of them fails.
    """
    paths, loaded = load_settings()
    config = loaded.config
    installed = [name for name, agent in config.agents.items() if is_installed(agent)]
    chosen = {name: find_agent(config, name) for name in names or installed}
    limit = config.limits.start_timeout if timeout is None else timeout
    if not chosen:
        raise ConfigError("no agent is installed: `dragoman agents list` shows how to install one")
    results = {}
    for name, agent in chosen.items():
        results[name] = _probe(name, agent, config, paths, limit)
        if not as_json:
            _report(name, results[name])
    if as_json:
        click.echo(json.dumps({name: _facts(result) for name, result in results.items()}, indent=2))
    ctx.exit(0 if all(result.ok for result in results.values()) else 1)


def _probe(name: str, agent: AgentConfig, config: Config, paths: Paths, limit: float) -> ProbeResult:
    from dragoman.agents.probe import probe

    boxes = partial(_boxes, config, paths) if agent.sandbox is not None else None
    with waiting(f"starting {name}"):
        return probe(agent, name, limit, boxes)


def _boxes(config: Config, paths: Paths, custody: Custody) -> Boxes:
    from dragoman.sandbox import Sandboxes

    return Sandboxes(config, paths, custody)


def _facts(result: ProbeResult) -> dict[str, Any]:
    return {
        "ok": result.ok,
        "error": result.error and mask(result.error),
        "seconds": round(result.seconds, 3),
        "result": result.result,
    }


def _report(name: str, result: ProbeResult) -> None:
    mark = style("ok", fg="green") if result.ok else style("failed", fg="red")
    click.echo(f"{style(name, bold=True)}: {mark} in {result.seconds:.1f} s")
    if result.error:
        click.echo(f"  {mask(result.error)}")
    if result.result is None:
        return
    info = result.result.get("agentInfo") or {}
    facts = {
        "version": " ".join(str(info[key]) for key in ("name", "version") if info.get(key)),
        "protocol": result.result.get("protocolVersion"),
        "can": ", ".join(capabilities(result.result.get("agentCapabilities") or {})),
        "log in": ", ".join(str(method.get("id")) for method in result.result.get("authMethods") or []),
    }
    for label, fact in facts.items():
        if fact not in ("", None):
            click.echo(f"  {label}: {fact}")


def capabilities(advertised: dict[str, Any], above: str = "") -> list[str]:
    """The capabilities that are on, as dotted names; `{}` counts as on, as the protocol has it."""
    found = []
    for key, value in advertised.items():
        name = f"{above}{key}"
        if key == "_meta" or value is None or value is False:
            continue
        inner = capabilities(value, f"{name}.") if isinstance(value, dict) else []
        found += inner or ([name] if not isinstance(value, dict) or not value else [])
    return found


@agents.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--kind",
    type=click.Choice(["acp", "claude", "codex", "builtin", "python"]),
    help="Protocol that the program speaks [default: that of a known agent of this name, else acp].",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a variable in the agent's environment.",
)
@click.option("--sandbox", metavar="NAME", help="Sandbox that the agent runs in.")
@click.option("--url", help="URL of a remote agent, instead of a command.")
@click.option("--force", is_flag=True, help="Replace an existing agent of this name.")
@click.option("--no-check", is_flag=True, help="Do not start it to see whether it answers.")
@click.pass_context
def add(
    ctx: click.Context,
    name: str,
    command: tuple[str, ...],
    kind: str | None,
    variables: tuple[str, ...],
    sandbox: str | None,
    url: str | None,
    force: bool,
    no_check: bool,
) -> None:
    """Add an agent to your configuration: a name, and the command that starts it.

    It is started once, to see whether it answers and what it can do. One that does not answer is added all the same.
    A running `dragoman serve` has it at once.
    """
    if bool(command) == bool(url) or (url and kind):
        raise click.UsageError("give either a command (with --kind) or --url", ctx)
    settings: dict[str, Any] = {"kind": "remote", "url": url} if url else _started_by(name, command, kind)
    if variables:
        settings["env"] = dict(_pair(ctx, variable) for variable in variables)
    if sandbox is not None:
        settings["sandbox"] = sandbox
    paths, loaded = load_settings([Layer("the new agent", {"agents": {name: settings}})])  # validates it
    facts = {"agent": name, "kind_of_agent": settings["kind"], "command": mask_words(command)}
    with telling("agent_added", **facts), changing(paths.config_file):
        add_agent(paths, name, settings, replace=force)
    click.echo(f"added {name} to {paths.config_file} (kind {settings['kind']})")
    if not no_check:
        _check_added(name, loaded.config, paths)


def _started_by(name: str, command: tuple[str, ...], kind: str | None) -> dict[str, Any]:
    known = KNOWN.get(name)
    return {"kind": kind or (known.kind if known is not None else "acp"), "command": list(command)}


def _check_added(name: str, config: Config, paths: Paths) -> None:
    """Start the new agent and say what it can do; what is wrong with it is no reason not to have it."""
    agent = find_agent(config, name)
    if not is_installed(agent):
        click.echo(f"it cannot be started yet: there is no program {agent.command[0]}", err=True)
        return
    result = _probe(name, agent, config, paths, min(CHECK_SECONDS, config.limits.start_timeout))
    _report(name, result)
    if not result.ok:
        click.echo(
            f"`dragoman agents check {name}` tries it again; `agents remove {name}` removes it", err=True
        )


def _pair(ctx: click.Context, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise click.UsageError(f'--env takes KEY=VALUE, not "{text}"', ctx)
    return key, value


@agents.command()
@click.argument("name")
def remove(name: str) -> None:
    """Remove an agent from your configuration."""
    paths, loaded = load_settings()
    if name in KNOWN and loaded.origin("agents", name) == "known agent":
        raise ConfigError(f'"{name}" is known without configuration: there is nothing to remove')
    if loaded.origin("agents", name, "command") == ORIGIN:
        raise ConfigError(f'"{name}" was installed: `dragoman agents uninstall {name}` removes it')
    with telling("agent_removed", agent=name), changing(paths.config_file):
        remove_agent(paths, name)
    click.echo(f"removed {name} from {paths.config_file}")
