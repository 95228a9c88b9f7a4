"""Programs whose further words name more things to run: `make test deploy` runs two targets.

Each further target counts as a command of its own: a rule for the first one does not allow the others, and a rule that
denies one of them holds wherever it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.policy.shell.programs.names import names
from dragoman.policy.shell.values import Arg


@dataclass(frozen=True, slots=True)
class Targets:
    takes: str = ""
    """Letters of options whose value is the next word."""
    long_takes: frozenset[str] = frozenset()
    after: int = 1
    """Words that come first and are no targets: the program, for `turbo run` also `run`."""
    passes: bool = False
    """Words after `--` are arguments of the target."""


_GRADLE = Targets(
    "pbcIxg",
    names(
        """
        --tests --exclude-task --project-dir --build-file --settings-file --init-script --gradle-user-home
        --max-workers --console --warning-mode --priority
        """
    ),
)
_MAVEN = Targets(
    "", names("-pl --projects -rf --resume-from -T --threads -P --activate-profiles -f --file -l")
)
_MAKE = Targets(
    "CfIoW",
    names(
        "--directory --file --makefile --include-dir --old-file --assume-old --what-if --new-file --assume-new"
    ),
)
TARGETS: dict[str, Targets] = {
    **dict.fromkeys(("make", "gmake", "bmake", "remake"), _MAKE),
    **dict.fromkeys(("gradle", "gradlew"), _GRADLE),
    **dict.fromkeys(("mvn", "mvnw", "mvnd"), _MAVEN),
    "just": Targets("fd", names("--justfile --working-directory --color")),
    "task": Targets("tdCo", names("--taskfile --dir --concurrency --output"), passes=True),
    "rake": Targets("fRI", names("--rakefile --libdir")),
    "ninja": Targets("Cfjkldtw"),
    "samu": Targets("Cfjkl"),
    "ant": Targets("", names("-f -file -buildfile -l -logfile -propertyfile")),
    "scons": Targets("Cfj", names("--directory --file --jobs")),
    "doit": Targets("fd", names("--file --dir --process")),
    **dict.fromkeys(
        ("invoke", "inv", "fab"), Targets("crfH", names("--collection --search-root --config --hosts"))
    ),
    **dict.fromkeys(("grunt", "gulp"), Targets("f", names("--gruntfile --gulpfile --cwd"))),
    "mage": Targets("dwt"),
    **dict.fromkeys(("run-s", "run-p", "npm-run-all", "npm-run-all2"), Targets(passes=True)),
    "turbo": Targets("F", names("--filter"), after=2, passes=True),
    **dict.fromkeys(("sbt", "lein", "mill"), Targets()),
}


def further_targets(program: str, words: list[Arg]) -> list[list[Arg]]:
    """The words of one more command for each target after the first."""
    known = TARGETS.get(program)
    if known is None or len(words) <= known.after + 1:
        return []
    options: list[Arg] = []
    targets: list[Arg] = []
    takes = False
    for arg in words[known.after :]:
        text = arg.only if arg.only is not None else ""
        if text == "--" and known.passes:
            break
        if takes or text.startswith("-"):
            takes = not takes and _takes_value(known, text)
            options.append(arg)
        else:
            targets.append(arg)
    return [[*words[: known.after], target, *options] for target in targets[1:]]


def _takes_value(known: Targets, text: str) -> bool:
    """Whether the next word is the value of this option: `-C dir`, `-kC dir`, but not `-Cdir`."""
    if text in known.long_takes or text.startswith("--"):
        return text in known.long_takes
    at = next((at for at, letter in enumerate(text[1:], 1) if letter in known.takes), None)
    return at == len(text) - 1
