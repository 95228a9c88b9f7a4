"""Programs that run the command in their arguments, in an environment of their own: `uv run`, `npx`, `docker exec`.

A rule that allows has to name them. A rule that denies `rm` holds for `uv run rm` too: the inner command is seen.
"""

from __future__ import annotations

from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.values import Arg

_AT_ONCE = names(
    """
    npx bunx pnpx uvx pipx watchexec nodemon torsocks torify proxychains proxychains4 setarch linux32
    linux64 chronic ifne sem numactl tini dumb-init gosu su-exec runcon flatpak-spawn dotenv dotenvx with-env cross-env
    gtime catchsegv heaptrack rr hyperfine coproc cgexec setuidgid softlimit unbuffer tsp winpty ssh mosh
    """
)
_AFTER: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        ("uv", "poetry", "pdm", "hatch", "rye", "pipenv", "conda", "mamba", "micromamba"), names("run")
    ),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), names("exec x dlx run")),
    **dict.fromkeys(("docker", "podman", "nerdctl", "lxc", "incus"), names("exec run")),
    **dict.fromkeys(("kubectl", "oc"), names("exec run debug")),
    **dict.fromkeys(
        ("bundle", "direnv", "mise", "asdf", "opam", "rbenv", "pyenv", "aws-vault", "stack", "cabal"),
        names("exec x"),
    ),
    **dict.fromkeys(
        ("doppler", "op", "toolbox", "distrobox", "dapr", "infisical", "chamber", "pipx"),
        names("run exec enter"),
    ),
    "nix": names("run shell develop"),
    "ip": names("exec"),
    "go": names("run"),
    "cmake": names("-E"),
    "git": names("foreach"),
}
"""Words after which the command begins."""
_NAMED_FIRST = names("ssh mosh docker podman nerdctl lxc incus direnv ip aws-vault")
"""The command comes after the name of a machine, container or folder."""
_MOST = 4


def inner_commands(program: str, words: list[Arg]) -> list[list[Arg]]:
    """What may be the command inside: the first word that is no option, or the next one if that is an option's value."""
    at = 1
    if program in _AFTER:
        found = next((at for at, arg in enumerate(words[1:6], 2) if arg.only in _AFTER[program]), None)
        if found is None:
            return []
        at = found
    elif program not in _AT_ONCE:
        return []
    for index in range(at, len(words)):
        if words[index].only == "--":
            return [words[index + 1 :]] if words[index + 1 :] else []
    made: list[list[Arg]] = []
    after_option, names_first = False, program in _NAMED_FIRST
    for index in range(at, len(words)):
        text = words[index].only or ""
        if text.startswith("-"):
            after_option = "=" not in text
            continue
        made.append(words[index:])
        if not (after_option or names_first) or len(made) == _MOST:
            break
        after_option, names_first = False, names_first and after_option
    return made
