"""Imports point one way: from the command line down to the bytes."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "dragoman"
SOURCE = Path(__file__).parent.parent / "src" / PACKAGE

ANYTHING = ("",)
ALLOWED: dict[str, tuple[str, ...]] = {
    # layer: what it may import besides itself, as module prefixes below `dragoman`
    "wire": (),
    "atomic_file": (),
    "machine": (),
    "installed": (),
    "edited_file": ("atomic_file",),
    "editors": ("edited_file",),
    "system_service": (),
    "masking": (),
    "terminal": (),
    "config": ("masking", "atomic_file"),
    "log": ("masking", "terminal"),
    "policy": ("config", "atomic_file"),
    "audit": ("wire", "config", "machine", "atomic_file", "masking", "gateway.ports", "__init__"),
    "checkpoints": ("config.sections.checkpoints", "gateway.ports"),
    "worktrees": (
        *("config.sections.worktrees", "config.root", "gateway.ports"),
        *("checkpoints.git", "checkpoints.reading", "checkpoints.writing", "atomic_file", "masking"),
    ),
    "commits": (
        *("config.sections.checkpoints", "gateway.ports"),
        *("checkpoints", "worktrees"),
    ),
    "rpc": ("wire",),
    "gateway": (
        *(
            "wire",
            "rpc",
            "config.model",
            "config.root",
            "config.sections.workspaces",
            "config.sections.mcp",
            "log",
            "masking",
        ),
        *(
            "policy.act",
            "policy.decide",
            "policy.rules",
            "policy.requests",
            "policy.memory",
            "policy.recorded",
        ),
    ),
    "agents": ("wire", "rpc", "gateway.ports", "config", "log", "terminal", "machine", "atomic_file"),
    "sandbox": (
        "wire",
        "rpc",
        "gateway.ports",
        "gateway.path_mapping.paths",
        "config",
        "agents",
        "masking",
        "atomic_file",
    ),
    "transports": ("wire", "rpc", "gateway", "terminal", "machine"),
    "usage": ("gateway.ports",),
    "store": ("wire", "gateway.ports", "config", "machine", "atomic_file", "search.index", "usage"),
    "search": (
        "wire",
        "gateway.ports",
        "gateway.delivery.events",
        "gateway.delivery.conversation.undone",
        "store",
        "agents",
        "terminal",
    ),
    "upkeep": ("wire", "gateway.ports", "store", "search.index", "machine", "atomic_file"),
    "registry": ("config", "atomic_file", "masking", "agents.known", "gateway.ports", "__init__"),
    "services": ("wire", "rpc", "gateway.ports", "agents"),
    "builtin": (
        "wire",
        "rpc",
        "config",
        "transports",
        "agents",
        "services",
        "sandbox",
        "masking",
        "terminal",
        "agent",
        "atomic_file",
    ),
    "agent": (
        "wire",
        "rpc",
        "transports",
        "builtin.client",
        "builtin.acp_server",
    ),  # public: agents that are one function
    "client": (
        *("wire", "rpc", "__init__", "config.paths", "config.errors"),
        *("agents.remote", "gateway.ports.agent", "transports.dial", "transports.stream"),
    ),  # public: programs that drive agents
    "bridge": ("wire", "rpc", "gateway", "config"),
    "server": (
        "wire",
        "rpc",
        "gateway",
        "config",
        "policy.memory",
        "transports",
        "log",
        "machine",
        "atomic_file",
        "audit",
    ),
    "cli": ANYTHING,
    "__main__": ("cli",),
    "__init__": (),
}
PORTS = ("wire", "rpc", "config.model", "gateway.ports", "gateway.path_mapping.paths")
"""What the ports may use: whoever implements one must not drag in the gateway behind it."""

HEAVY = (
    "pydantic",
    "pydantic_ai",
    "acp",
    "mcp",
    "hypercorn",
    "h11",
    "wsproto",
    "click",
    "sqlite3",
    "httpx",
    "typing_extensions",
    "tree_sitter",
)


@dataclass(frozen=True)
class Import:
    file: Path
    line: int
    target: str
    """The imported module or name, without the package's own name; empty for the package itself."""
    type_checking: bool

    @property
    def layer(self) -> str:
        return self.file.relative_to(SOURCE).parts[0].removesuffix(".py")

    def allowed(self, prefixes: tuple[str, ...]) -> bool:
        return any(is_below(self.target, prefix) for prefix in (self.layer, *prefixes))

    def __str__(self) -> str:
        under = " (for type checking)" if self.type_checking else ""
        return f"{self.file.relative_to(SOURCE.parent.parent)}:{self.line} imports {PACKAGE}.{self.target}{under}"


def is_below(module: str, prefix: str) -> bool:
    return not prefix or module == prefix or module.startswith(prefix + ".")


def is_module(name: str) -> bool:
    path = SOURCE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def imported_names(node: ast.AST) -> list[str]:
    """Absolute names of modules; of `from package import module` each module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert not node.level, "relative imports hide the layer"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def imports_of(file: Path) -> Iterator[Import]:
    tree = ast.parse(file.read_text(), str(file))
    guarded = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        for name in imported_names(node):
            package, _, target = name.partition(".")
            if package != PACKAGE:
                continue
            if not is_module(target):  # a name in a module: `wire.errors.Malformed`, or `__version__`
                target = target.rpartition(".")[0]
            assert isinstance(node, ast.Import | ast.ImportFrom)
            yield Import(file, node.lineno, target, node in guarded)


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return [each for file in FILES for each in imports_of(file) if each.target]


def complaint(wrong: list[Import]) -> str:
    rows = "\n".join(f"  {each}, {each.layer} may use: {ALLOWED.get(each.layer)}" for each in wrong)
    return f"{len(wrong)} imports point the wrong way:\n{rows}"


def test_every_folder_is_a_layer_with_a_row_in_the_table() -> None:
    found = {file.relative_to(SOURCE).parts[0].removesuffix(".py") for file in FILES}
    assert found <= ALLOWED.keys(), f"no row in ALLOWED for {sorted(found - ALLOWED.keys())}"


def test_no_layer_imports_one_above_it(imports: list[Import]) -> None:
    wrong = [
        each for each in imports if not each.type_checking and not each.allowed(ALLOWED.get(each.layer, ()))
    ]
    assert not wrong, complaint(wrong)


def test_types_are_borrowed_from_the_layers_below_too(imports: list[Import]) -> None:
    """`TYPE_CHECKING` breaks circles inside one layer; it is no way around the table."""
    wrong = [each for each in imports if each.type_checking and not each.allowed(ALLOWED.get(each.layer, ()))]
    assert not wrong, complaint(wrong)


def test_ports_do_not_drag_in_the_gateway_behind_them(imports: list[Import]) -> None:
    wrong = [
        each
        for each in imports
        if each.file.is_relative_to(SOURCE / "gateway" / "ports")
        and not any(is_below(each.target, prefix) for prefix in PORTS)
    ]
    assert not wrong, complaint(wrong)


def test_wire_does_no_io() -> None:
    io = ("asyncio", "socket", "subprocess", "threading", "select", "os", "io", "uvloop")
    wrong = [
        f"{file.name}: {name}"
        for file in sorted((SOURCE / "wire").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        for name in imported_names(node)
        if name.partition(".")[0] in io
    ]
    assert not wrong


START_PATH = [
    "dragoman.cli.entry",
    "dragoman.cli.acp.start",
    "dragoman.cli.acp.run",
    "dragoman.gateway.gateway",
    "dragoman.agents.launcher",
    "dragoman.transports.stdio",
]


@pytest.mark.parametrize("module", START_PATH)
def test_an_editor_does_not_wait_for_heavy_imports(module: str) -> None:
    """`dragoman acp` answers `initialize` before anybody notices; whoever needs these loads them then."""
    code = (
        "import sys; from dragoman.cli.entry import _import_msgspec; _import_msgspec(); "
        f"import {module}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert loaded.returncode == 0, loaded.stderr
    assert loaded.stdout.split() == [], f"{module} imports {loaded.stdout}"
