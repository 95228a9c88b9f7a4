"""From files, environment and flags to one `Config`; later layers win, key by key."""

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
from dragoman.config.files.regular_file import read_regular
from dragoman.config.model import Config
from dragoman.config.paths import Paths
from dragoman.config.root import WORKSPACE_FILE
from dragoman.config.variables import PREFIX, SPECIAL, TEST_MODE, is_on
from dragoman.config.workspace import Trust, restrict, too_wide, without

DEFAULT = "default"
MAX_BYTES = 1024 * 1024
"""Of a configuration file: more is no configuration, and would be held in memory several times."""
NARROW = ("policy", "narrow")


DEEPEST = 32
"""Tables and lists inside each other in a file; the configuration has five. A workspace's file is a stranger's."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Some settings and where they come from, in words: a file, a variable, a flag."""

    origin: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The configuration, and how it came about."""

    config: Config
    origins: dict[tuple[str, ...], str]
    warnings: list[str] = field(default_factory=list)

    def origin(self, *path: str) -> str:
        """Who set the value at `path`, or the nearest thing around it that somebody set."""
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
    """Merge the layers: defaults, `known` agents, the user's file, the workspace's, environment, flags."""
    paths.check()
    env = os.environ if environ is None else environ
    layers = [known] if known is not None else []
    warnings: list[str] = []
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


def flag(name: str, path: tuple[str, ...], value: Any) -> Layer:
    """The layer that one command line option makes."""
    data = value
    for key in reversed(path):
        data = {key: data}
    return Layer(f"option {name}", data)


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
    """Level by level: what is too deep to read is too deep for a function that calls itself, too."""
    level = [data]
    for _ in range(levels):
        below = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for values in below for each in values if isinstance(each, dict | list)]
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
    """What counts of the workspace's file; trust is for the very bytes that are parsed."""
    file = workspace / WORKSPACE_FILE
    content = read(file)
    if content is None or _same(file, paths.config_file):
        return None
    trusted = Trust(paths).covers(file, content)
    data, ignored = restrict(parse(file, content), file, trusted)
    warnings += ignored
    return _WorkspaceFile(Layer(str(file), data), trusted)


def _without_wider(
    layers: list[Layer], workspace: Layer, warnings: list[str], *, any_agent: bool
) -> list[Layer]:
    """The layers, without what the workspace would widen: known only once everything else is merged."""
    from dragoman.config.narrow import widened

    others = [layer for layer in layers if layer is not workspace]
    wanted, own = _convert(merge(layers)[0], layers), _convert(merge(others)[0], others)
    wider = widened(own, wanted)
    if not any_agent and wanted.default_agent not in wanted.agents:
        wider.pop(("default_agent",), None)  # the check of names has the better words
    if not wider:
        return layers
    warnings += too_wide(Path(workspace.origin), workspace.data, wider)
    kept = Layer(workspace.origin, without(workspace.data, wider))
    return [kept if layer is workspace else layer for layer in layers]


def _same(one: Path, other: Path) -> bool:
    """`DRAGOMAN_HOME=~/.dragoman` makes the user's file look like the file of a workspace `~`."""
    return other.exists() and one.samefile(other)


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
    """Every mistake, one per line, blamed on the layer that made it."""
    from dragoman.config.model import Config
    from dragoman.config.schema import dotted, problems, struct_of

    described = struct_of(Config)
    return "\n".join(
        f"{layer.origin}: {dotted(problem.path)}: {problem.text}"
        for layer in layers
        for problem in problems(layer.data, described)
    )
