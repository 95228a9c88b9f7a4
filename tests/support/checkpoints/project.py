"""A project in a folder, and an engine that records it as sessions do."""

from __future__ import annotations

import os
import subprocess
from contextlib import nullcontext
from pathlib import Path

from dragoman.checkpoints.engine import Engine
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.gateway.ports.checkpoints import Changes, Checkpoint, Kind, Mark, Restored, Restoring, Wish

SESSION = "dgm_" + "a" * 24
OTHER = "dgm_" + "b" * 24


class Project:
    """A project and its checkpoints, as one session makes them."""

    def __init__(self, folder: Path, state: Path, limits: CheckpointsConfig | None = None) -> None:
        self.folder = folder
        self.state = state
        self.engine = Engine(state / "checkpoints", limits or CheckpointsConfig())

    def record(self, kind: Kind, session: str = SESSION, title: str = "") -> Checkpoint:
        with self.engine.record(session, str(self.folder), Mark(kind, lambda: title)) as checkpoint:
            pass
        return checkpoint

    def write(self, name: str | bytes, content: str | bytes) -> Path:
        path = Path(os.fsdecode(os.path.join(os.fsencode(self.folder), os.fsencode(name))))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def changes(self, turn: int | None = None, session: str = SESSION) -> Changes:
        return self.engine.changes(session, turn)

    def paths(self, turn: int | None = None, session: str = SESSION) -> dict[str, str]:
        return {change.path: change.status for change in self.changes(turn, session).files}

    def restore(
        self,
        session: str = SESSION,
        act: Restoring = lambda before, files: nullcontext(),
        **wish: object,
    ) -> Restored:
        made = Wish(**wish)  # type: ignore[arg-type]
        return self.engine.restore(session, str(self.folder), made, lambda restored: None, act)

    def git(self, *words: str) -> bytes:
        """Plain git in the project."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.state),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        }
        done = subprocess.run(["git", *words], cwd=self.folder, env=env, capture_output=True, check=True)
        return done.stdout
