"""A real repository, plain git in it, and the engine that looks at it as Dragoman does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from dragoman.commits.engine import Engine
from dragoman.config.sections.checkpoints import CheckpointsConfig

PLAIN = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--binary", "--full-index", "-M")

HOOKS = (
    *("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-push", "reference-transaction"),
    *("post-index-change", "post-checkout", "pre-auto-gc", "post-rewrite"),
)


class Repository:
    def __init__(self, folder: Path, home: Path, limits: CheckpointsConfig | None = None) -> None:
        """`home` is that of the user, with a git configuration of its own."""
        self.folder = folder
        self.home = home
        self.engine = Engine(home / "state", limits or CheckpointsConfig())

    @classmethod
    def make(cls, folder: Path, home: Path) -> Repository:
        folder.mkdir()
        home.mkdir(exist_ok=True)
        (home / ".gitconfig").write_text("[user]\n\tname = Me\n\temail = me@example.org\n")
        made = cls(folder, home)
        made.git("init", "-q", "-b", "main")
        return made

    def git(self, *words: str, **more: str) -> str:
        return self.run(*words, **more).decode(errors="surrogateescape").strip()

    def run(self, *words: str, **more: str) -> bytes:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", **more}
        done = subprocess.run(["git", *words], cwd=self.folder, env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, name: str | bytes, content: str | bytes = "1\n") -> Path:
        path = Path(os.fsdecode(os.path.join(os.fsencode(self.folder), os.fsencode(name))))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(self, message: str = "first", **files: str) -> str:
        for name, content in files.items():
            self.write(name, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def plain_diff(self) -> bytes:
        """`git diff HEAD` with all files that are not ignored, by an index of its own."""
        index = self.home / "index"
        own = self.folder / ".git" / "index"
        index.unlink(missing_ok=True)
        if own.exists():
            shutil.copy2(own, index)
        env = {"GIT_INDEX_FILE": str(index)}
        self.run("add", "-A", **env)
        head = "HEAD" if self.has_commit else "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
        return self.run("diff", "--cached", *PLAIN, head, **env)

    @property
    def has_commit(self) -> bool:
        refs = self.folder / ".git"
        return any(refs.glob("refs/heads/**/*")) or (refs / "packed-refs").exists()

    def paths(self) -> dict[str, str]:
        return {change.path: change.status for change in self.engine.uncommitted(str(self.folder)).files}

    def patch(self) -> bytes:
        return self.engine.patch(str(self.folder))

    def arm(self, mark: Path, folder: Path | None = None) -> None:
        """Configure every program that git would run, so that running one of them leaves a mark."""
        place = folder or self.folder
        act = f"touch {mark}; cat"
        hooks = place / ".git" / "hooks"
        hooks.mkdir(exist_ok=True)
        for name in HOOKS:
            (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
            (hooks / name).chmod(0o755)
        program = self.home / "evil"
        program.write_text(f"#!/bin/sh\ntouch {mark}\n")
        program.chmod(0o755)
        values = {
            "core.fsmonitor": act,
            "core.editor": act,
            "core.pager": act,
            "core.sshCommand": act,
            "core.askPass": str(program),
            "core.alternateRefsCommand": act,
            "credential.helper": f"!{act}",
            "diff.external": str(program),
            "diff.x.textconv": act,
            "diff.x.command": act,
            "filter.x.clean": act,
            "filter.x.smudge": act,
            "filter.x.process": act,
            "merge.x.driver": act,
            "commit.gpgSign": "true",
            "gpg.program": str(program),
            "push.gpgSign": "true",
            "gc.auto": "1",
            "url.ext::sh -c 'touch MARK' %S.insteadOf".replace("MARK", str(mark)): "https://",
            "protocol.ext.allow": "always",
        }
        for key, value in values.items():
            subprocess.run(["git", "config", key, value], cwd=place, check=True, capture_output=True)
        mark.unlink(missing_ok=True)
