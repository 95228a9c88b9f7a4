"""Variables that change what a program does: which are harmless, and which make a line opaque."""

from __future__ import annotations

import re

from dragoman.policy.shell.programs.names import names

_HARMLESS = names(
    """
    CI NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM TERM COLUMNS LINES LANG LANGUAGE TZ DEBUG
    VERBOSE NODE_ENV RAILS_ENV RACK_ENV APP_ENV ENVIRONMENT RUST_BACKTRACE RUST_LOG LOG_LEVEL LOGLEVEL
    PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED PYTHONFAULTHANDLER
    PYTEST_DISABLE_PLUGIN_AUTOLOAD CGO_ENABLED GOOS GOARCH DEBIAN_FRONTEND SOURCE_DATE_EPOCH MAKELEVEL PORT
    HOST
    """
)
_HARMLESS_PREFIX = "LC_"

_RUNS = re.compile(
    r"PATH|.*PATH|LD_.*|DYLD_.*|GIT_.*|.*PAGER|.*EDITOR|VISUAL|.*BROWSER|.*SHELL|.*SHELLOPTS|BASH.*|ENV|IFS|PS[0-9]"
    r"|PROMPT_COMMAND|CDPATH|GLOBIGNORE|HOME|HISTFILE|XDG_.*|PWD|OLDPWD|TMPDIR|POSIXLY_CORRECT|FUNCNEST|EXECIGNORE"
    r"|PYTHON.*|NODE_.*|NPM_.*|npm_.*|YARN_.*|PERL.*|RUBY.*|GEM_.*|BUNDLE_.*|JAVA_.*|_JAVA_.*|JDK_.*|.*_OPTS|.*_OPTIONS"
    r"|.*FLAGS|.*OPTS|.*_COMMAND|.*_CMD|.*_PROGRAM|.*_WRAPPER|.*_EXEC|.*ASKPASS|.*_RSH|.*_CONFIG|.*_CONFIG_.*|KUBECONFIG"
    r"|LESS.*|MANOPT|MAN.*|RIPGREP_.*|GREP_.*|TAR_.*|RSYNC_.*|CC|CXX|LD|AR|MAKE.*|CARGO.*|RUSTC.*|GO.*|PIP_.*|UV_.*"
    r"|.*_PROXY|.*_proxy|DOCKER_.*|SSH_.*|SUDO_.*|ZDOTDIR|FPATH|INPUTRC|TERMINFO.*|LOCALDOMAIN|RES_OPTIONS|HOSTALIASES"
    r"|VIMINIT|EXINIT|.*INIT|PSQLRC|PG.*|MYSQL.*|AWS_.*|GOOGLE_.*|AZURE_.*|GCONV_PATH|NLSPATH|COMSPEC|PYTEST_.*|TOX.*"
    r"|(?:f|cd|man|mail|module_)?path|functions|(?:g|s|dis_)?aliases|commands|options|parameters|NULLCMD|READNULLCMD|ARGV0"
    r"|S?RANDOM|SECONDS|HISTCMD|OPTIND|LINENO|SHLVL|HISTSIZE|SAVEHIST|KEYTIMEOUT|LISTMAX|LOGCHECK|MAILCHECK|TMOUT|BAUD"
    r"|DIRSTACKSIZE|REPORTTIME|ERRNO|E?[UG]ID|TRY_BLOCK_.*|PERIOD|ZLE_RPROMPT_INDENT"
    r"|NODE|DRAGOMAN_.*|CLAUDE.*|CODEX.*|GEMINI.*|OPENCODE.*"
)
"""From `RANDOM` on: integers of bash and zsh. What is assigned to them is evaluated, `RANDOM='a[$(id)]'` runs `id`."""
_INTEGERS = frozenset({"COLUMNS", "LINES"})
"""Integers of zsh that may be set to a number."""


def is_harmless(name: str) -> bool:
    """Whether a program that a rule allows may be given this variable too."""
    return name in _HARMLESS or name.startswith(_HARMLESS_PREFIX)


def runs_something(name: str, values: tuple[str, ...] | None = None) -> bool:
    """Whether the variable may choose what runs, or which settings it reads; `values` are those it gets, if known."""
    if name in _INTEGERS:
        return values is None or not all(re.fullmatch(r"[0-9]*", value) for value in values)
    return name not in _HARMLESS and _RUNS.fullmatch(name) is not None
