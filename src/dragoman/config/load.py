"""Loads files, environment and flags into one `Config`; later layers win, key by key."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from dragoman.config.check import check
from dragoman.config.errors import ConfigError
from dragoman.config.files.installed import ORIGIN, read_installed, settings_of
from dragoman.config.files.regular_file import read_regular
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.config.root import WORKSPACE_FILE
from dragoman.config.variables import PREFIX, SPECIAL, TEST_MODE, is_on
from dragoman.config.workspace import Trust, restrict, too_wide, without

DEFAULT = "default"
MAX_BYTES = 1024 * 1024
"""Size limit of a configuration file, which is held in memory several times."""
MAX_WORKSPACE_BYTES = 128 * 1024
"""Of a repository's file, whose authors may be strangers: it is read while other sessions wait."""
MAX_WORKSPACE_RULES = 200
"""Of its rules, each of which is looked at with every decision in this repository."""
NARROW = ("policy", "narrow")


DEEPEST = 32
"""Nesting limit of tables and lists in a file; the configuration needs five. A workspace's file is untrusted."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings and their origin in words: a file, a variable or an option."""

    origin: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The merged configuration, the origins of its values, and warnings."""

    config: Config
    origins: dict[tuple[str, ...], str]
    warnings: list[str] = field(default_factory=list)

    def origin(self, *path: str) -> str:
        """The origin of the value at `path`, or of the nearest table around it that has one."""
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins.get(path, DEFAULT)


def load(
    paths: Paths,
    *,
    known: Layer | None = None,
    workspace: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Sequence[Layer] = (),
) -> Loaded:
    """Merge the layers: defaults, `known` agents, installed ones, the user's file, the workspace's, environment, flags.

    A list of installed agents that cannot be used is a warning: the rest of the configuration holds without it.
    """
    paths.check()
    env = os.environ if environ is None else environ
    layers = [known] if known is not None else []
    warnings: list[str] = []
    layers += _installed(paths, warnings)
    if (content := read(paths.config_file)) is not None:
        layers.append(Layer(str(paths.config_file), parse(paths.config_file, content)))
    found = _workspace_file(paths, workspace, warnings) if workspace is not None else None
    if found is not None:
        layers.append(found.layer)
    layers += _environment_layers(env, layers)
    layers += flags
    any_agent = is_on(env, TEST_MODE)
    if found is not None and not found.trusted:
        layers = _without_wider(layers, found.layer, warnings, any_agent=any_agent)
    data, origins = merge(layers)
    config = _convert(data, layers)
    loaded = Loaded(config, origins, warnings)
    check(config, loaded.origin, any_agent=any_agent)
    return loaded


def _installed(paths: Paths, warnings: list[str]) -> list[Layer]:
    try:
        found = read_installed(paths.installed_file)
    except ConfigError as error:
        warnings.append(str(error))
        return []
    return [Layer(ORIGIN, settings_of(found))] if found else []


def flag(name: str, path: tuple[str, ...], value: Any) -> Layer:
    """The layer that one command line option makes; without a name, problems of the value do not say where it is."""
    data = value
    for key in reversed(path):
        data = {key: data}
    return Layer(f"option {name}" if name else "", data)


def read(file: Path) -> bytes | None:
    """The file's bytes, or None when there is no such file."""
    return read_regular(file, MAX_BYTES)


def parse(file: Path, content: bytes) -> dict[str, Any]:
    """The TOML in `content`; `file` is for the error."""
    import tomllib  # only when there is a file: many have none

    try:
        data = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file}:{line}: is not UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        line = int(found[1]) if found else content.count(b"\n") + 1
        what = re.sub(r" \(at [^)]*\)$", "", str(error))
        raise ConfigError(f"{file}:{line}: is not valid TOML: {what}") from error
    except ValueError as error:  # Python reads no number of more than 4300 digits
        raise ConfigError(f"{file}: holds a number that is too long") from error
    except RecursionError as error:
        raise ConfigError(f"{file}: is nested too deeply") from error
    if _is_deeper(data, DEEPEST):
        raise ConfigError(f"{file}: is nested too deeply")
    return data


def _is_deeper(data: Any, levels: int) -> bool:
    """Whether the nesting exceeds `levels`; not recursive, since deep data would exceed the recursion limit."""
    level = [data]
    for _ in range(levels):
        below = [value.values() if isinstance(value, dict) else value for value in level]
        level = [value for values in below for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def merge(layers: Sequence[Layer]) -> tuple[dict[str, Any], dict[tuple[str, ...], str]]:
    """One tree of settings, and the origin of each leaf."""
    data: dict[str, Any] = {}
    origins: dict[tuple[str, ...], str] = {}
    for layer in layers:
        _lay(layer.data, layer.origin, data, origins, ())
    return data, origins


def _lay(
    top: dict[str, Any],
    origin: str,
    base: dict[str, Any],
    origins: dict[tuple[str, ...], str],
    path: tuple[str, ...],
) -> None:
    for key, value in top.items():
        here = (*path, key)
        if isinstance(value, dict):
            below = base.get(key)
            base[key] = dict(below) if isinstance(below, dict) else {}
            _lay(value, origin, base[key], origins, here)
        elif here == NARROW and isinstance(value, list) and isinstance(base.get(key), list):
            base[key] = [*base[key], *value]  # a layer that replaced these rules would widen the policy
        else:
            base[key] = value
        if value != {} or here not in origins:
            origins[here] = origin


@dataclass(frozen=True, slots=True)
class _WorkspaceFile:
    layer: Layer
    trusted: bool


def _workspace_file(paths: Paths, workspace: Path, warnings: list[str]) -> _WorkspaceFile | None:
    """The accepted settings of the workspace's file; trust is checked for the same bytes that are parsed."""
    file = workspace / WORKSPACE_FILE
    if _same(file, paths.config_file):
        return None
    content = read_regular(file, MAX_WORKSPACE_BYTES)
    if content is None:
        return None
    trusted = Trust(paths).covers(file, content)
    data, ignored = restrict(parse(file, content), file, trusted)
    warnings += ignored
    policy = data.get("policy")
    narrow = policy.get("narrow") if isinstance(policy, dict) else None
    if isinstance(narrow, list) and len(narrow) > MAX_WORKSPACE_RULES:
        raise ConfigError(
            f"{file}: policy.narrow: more than {MAX_WORKSPACE_RULES} rules are not read from a repository's file: "
            "join those that differ in one word (a list is a choice), or put them into your own configuration"
        )
    return _WorkspaceFile(Layer(str(file), data), trusted)


def _without_wider(
    layers: list[Layer], workspace: Layer, warnings: list[str], *, any_agent: bool
) -> list[Layer]:
    """The layers without those workspace settings that, with all layers merged, allow more than the user's."""
    from dragoman.config.narrow import widened

    others = [layer for layer in layers if layer is not workspace]
    wanted, own = _convert(merge(layers)[0], layers), _convert(merge(others)[0], others)
    wider = widened(own, wanted)
    if not any_agent and wanted.default_agent not in wanted.agents:
        wider.pop(("default_agent",), None)  # `check` reports an unknown agent more clearly
    if not wider:
        return layers
    warnings += too_wide(Path(workspace.origin), workspace.data, wider)
    kept = Layer(workspace.origin, without(workspace.data, wider))
    return [kept if layer is workspace else layer for layer in layers]


def _same(one: Path, other: Path) -> bool:
    """Whether both are one file: with `DRAGOMAN_HOME=~/.dragoman` the user's file is also that of the workspace `~`."""
    return os.path.exists(one) and other.exists() and one.samefile(other)  # noqa: PTH110 (does not raise)


def _environment_layers(env: Mapping[str, str], layers: Sequence[Layer]) -> list[Layer]:
    if not any(name.startswith(PREFIX) and name not in SPECIAL for name in env):
        return []
    from dragoman.config.environment import read_environment

    data, _ = merge(layers)
    names = {table: list(entries) for table, entries in data.items() if isinstance(entries, dict)}
    return [Layer(f"environment variable {name}", value) for name, value in read_environment(env, names)]


def _convert(data: dict[str, Any], layers: Sequence[Layer]) -> Config:
    try:
        return msgspec.convert(data, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(_explain(layers) or f"the configuration: {error}") from error


def _explain(layers: Sequence[Layer]) -> str:
    """Every invalid value, one per line, with the origin of its layer."""
    from dragoman.config.model import Config
    from dragoman.config.schema import dotted, problems, struct_of

    described = struct_of(Config)
    return "\n".join(
        f"{layer.origin}{': ' * bool(layer.origin)}{dotted(problem.path)}: {problem.text}"
        for layer in layers
        for problem in problems(layer.data, described)
    )
