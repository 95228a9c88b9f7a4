"""Which options of a program write or run something: a table of facts. A program that is not here takes any option."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from dragoman.policy.act import Effect
from dragoman.policy.shell.programs.names import names


@dataclass(frozen=True, slots=True)
class Options:
    """Long names, and letters of short options; a unique beginning of a long name counts, as it does for getopt."""

    writes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    prints: bool = True
    """Reads and prints: a redirection of it writes what the agent chose."""
    single_dash: bool = False
    """Long names have one dash (`find`, `go`, `java`)."""
    any_dash: bool = False
    """One dash before a long name is as good as two (`npm -scri=x` is `--script-shell=x`)."""
    takes: str = ""
    """Letters of short options whose value may follow at once: the letters after them are no options."""
    words: tuple[str, ...] = field(default=())
    """Arguments, as patterns, that run something."""
    assigns: bool = False
    """An argument with `=` anywhere in it sets a variable that may run something (`make SHELL=x`)."""

    def index(self, does: Literal["runs", "writes"]) -> _Index:
        return _index(does, self.runs if does == "runs" else self.writes, self.single_dash)


_READER = Options()
_ASSIGNS = r"[^-=][^=]*=.*"
"""A variable set by a word of the line, which may choose what runs."""

PROGRAMS: dict[str, Options] = {
    **dict.fromkeys(
        names(
            """
    cat head tail wc cut tr nl tac rev fold od hexdump strings stat ls dir diff cmp comm cksum md5sum sha1sum
    sha224sum sha256sum sha384sum sha512sum b2sum readlink realpath basename dirname column paste join expand
    unexpand fmt grep egrep fgrep zgrep zcat jq echo printf seq yes expr numfmt tsort factor base64 base32 du
    df pwd whoami id groups uname nproc arch uptime free ps pgrep which type printenv tput locale getconf
    logname tty true false : test [ sleep wait kill date cal look pr ptx sum exa eza pwdx lscpu lsblk cd pushd
    popd dirs exit return break continue shift umask ulimit times set unset export readonly declare local
    typeset read
    """
        ),
        _READER,
    ),
    "date": Options(writes=("-s", "--set"), takes="Idfr"),
    "sort": Options(writes=("-o", "--output"), runs=("--compress-program", "--files0-from")),
    "strings": Options(words=(r"@.*",)),  # options from a file
    # A program in a file may import any file: `import "x" as $x {search: "/etc"}`.
    "jq": Options(runs=("-f", "--from-file"), words=(r".*\b(?:import|include|modulemeta)\b.*",)),
    **dict.fromkeys(
        ("pytest", "py.test"),
        Options(
            writes=(
                *("--basetemp", "--junitxml", "--junit-xml", "--log-file", "--debug", "--report-log"),
                *("--cov-report", "--html", "--result-log"),
            ),
            runs=(
                *("--pastebin", "-p", "--override-ini", "-o", "--pdbcls", "--pyargs", "--trace"),
                *(
                    "--tx",
                    "--px",
                    "--rsyncdir",
                    "--rsyncignore",
                ),  # of xdist: other interpreters, other machines
            ),
            prints=False,
            words=(r"@.*",),
            takes="krmnWc",
        ),
    ),
    "shuf": Options(writes=("-o", "--output")),
    "tree": Options(writes=("-o", "--output", "-R")),
    "iconv": Options(writes=("-o", "--output")),
    "base64": Options(writes=("-o", "--output")),
    "file": Options(writes=("-C", "--compile")),
    "xxd": Options(),
    "uniq": Options(),
    "yq": Options(
        writes=("-i", "--inplace", "-s", "--split-exp"),
        runs=("--from-file",),
        words=(r".*(?:load|\bsystem\b).*",),
    ),
    "less": Options(
        writes=("-o", "-O", "--log-file", "--LOG-FILE"),
        runs=("-k", "--lesskey-file", "--lesskey-src", "--lesskey-content", "--cmd"),
        words=(r"\+.*",),
    ),
    "history": Options(writes=("-a", "-w", "-c", "-d"), runs=("-s", "-p", "-r", "-n")),
    "more": Options(words=(r"\+.*",)),
    "most": Options(runs=("-k",)),
    "man": Options(runs=("-P", "--pager", "-H", "--html", "-C", "--config-file", "-p", "--preprocessor")),
    "help": Options(),
    "bat": Options(
        writes=("--generate-config-file", "--build", "--clear", "--source", "--target"),
        runs=("--pager", "--config-file"),
    ),
    "rg": Options(runs=("--pre", "--hostname-bin")),
    "ag": Options(runs=("--pager",)),
    "ack": Options(runs=("--pager", "--ackrc", "--output", "--filter")),
    "fd": Options(runs=("-x", "-X", "--exec", "--exec-batch")),
    "fdfind": Options(runs=("-x", "-X", "--exec", "--exec-batch")),
    **dict.fromkeys(
        ("tar", "bsdtar", "gtar"),
        Options(
            runs=(
                *(
                    "--to-command",
                    "--checkpoint-action",
                    "-I",
                    "--use-compress-program",
                    "--rsh-command",
                    "--rmt-command",
                ),
                *("-F", "--info-script", "--new-volume-script"),
            ),
            writes=(
                *("-P", "--absolute-names", "-x", "--extract", "--get", "-g", "--listed-incremental"),
                *("--remove-files", "--index-file", "--volno-file"),
            ),
            prints=False,
            words=(
                r"[^-/=][^/=]*:.*",
                r"--f[a-z]*=[^/]*:.*",
                r"-[A-Za-z]*f[^/]*:.*",
            ),  # a machine, reached by a shell
        ),
    ),
    "cpio": Options(
        runs=("--rsh-command",), prints=False, words=(r"[^-/=][^/=]*:.*", r"-[A-Za-z]*[FIO][^/]*:.*")
    ),
    "ar": Options(runs=("--plugin",), prints=False),
    "jar": Options(runs=("-J",), prints=False),
    "patch": Options(runs=("-e", "--ed", "-g", "--get"), prints=False, takes="pdioFBDrVYz"),
    "zip": Options(
        writes=("-m", "--move", "-O", "--output-file", "-lf", "--logfile-path"),
        runs=("-T", "-TT", "--test", "--unzip-command"),
        prints=False,
    ),
    "split": Options(runs=("--filter",), prints=False),
    "rsync": Options(
        writes=("--remove-source-files", "--remove-sent-files"),
        runs=("-e", "--rsh", "--rsync-path", "--daemon", "--config"),
        prints=False,
    ),
    "install": Options(runs=("--strip-program",), prints=False),
    "scp": Options(runs=("-o", "-S", "-F"), prints=False),
    "sftp": Options(runs=("-o", "-S", "-F", "-b", "-s", "-D"), prints=False),
    "ssh": Options(runs=("-o", "-F", "-E", "-w"), prints=False),
    "curl": Options(
        writes=(
            *(
                "-o",
                "--output",
                "-O",
                "--remote-name",
                "--remote-name-all",
                "--output-dir",
                "-c",
                "--cookie-jar",
                "-D",
            ),
            *(
                "--dump-header",
                "--trace",
                "--trace-ascii",
                "--stderr",
                "--etag-save",
                "--hsts",
                "--alt-svc",
                "--libcurl",
            ),
        ),
        runs=("-K", "--config", "--engine"),
        takes="XHduAbFmxerUwyYzQPtE",
    ),
    "wget": Options(runs=("-e", "--execute", "--use-askpass", "--config"), prints=False),
    **dict.fromkeys(
        ("make", "gmake"),
        Options(
            runs=("--eval", "-E"),
            prints=False,
            assigns=True,
            words=(_ASSIGNS, r"-", r"-[A-Za-z]*f-", r"--[a-z]+=-", r".*/dev/(?:stdin|fd/).*"),
        ),
    ),
    "just": Options(
        runs=("--shell", "--shell-arg", "-c", "--command", "--chooser", "--set", "--dotenv-path"),
        prints=False,
        words=(_ASSIGNS,),
    ),
    "task": Options(prints=False, words=(_ASSIGNS,)),
    "rake": Options(
        runs=("-r", "--require", "-e", "--execute", "-E", "--execute-continue", "-p", "--execute-print"),
        prints=False,
        words=(_ASSIGNS,),
    ),
    **dict.fromkeys(
        ("mvn", "mvnw", "mvnd"),
        Options(
            prints=False,
            words=(
                r"-g?s|--settings.*|--global-settings.*",
                r"-D(?!(?:skipTests|skipITs|test|it\.test|maven\.test\.skip|style\.color)(?:=|$)).*",
            ),
        ),
    ),
    **dict.fromkeys(
        ("gradle", "gradlew"),
        Options(
            prints=False, words=(r"-I.*|--init-script.*|--include-build.*|-D(?:org\.gradle|java|sun).*",)
        ),
    ),
    "ant": Options(prints=False, words=(r"-(?:lib|logger|listener|inputhandler|main|D.*)",)),
    "npm": Options(
        runs=(
            "--script-shell",
            "--node-options",
            "--prefix",
            "--userconfig",
            "--globalconfig",
            "--shell",
            "--call",
            "-C",
            "--local-prefix",
            "--onload-script",
        ),
        prints=False,
        any_dash=True,
    ),
    "pnpm": Options(runs=("--script-shell", "--node-options", "--shell-mode", "--dir"), prints=False),
    "yarn": Options(runs=("--script-shell", "--use-yarnrc", "--cwd"), prints=False),
    # Code from elsewhere: another index, a repository, an archive at an address, another interpreter.
    **dict.fromkeys(
        ("pip", "pip3"),
        Options(
            writes=("--log", "--target", "-t", "--prefix", "--root", "--report"),
            runs=(
                *(
                    "--index-url",
                    "-i",
                    "--extra-index-url",
                    "--find-links",
                    "-f",
                    "--trusted-host",
                    "--proxy",
                ),
                *(
                    "--python",
                    "--cert",
                    "--client-cert",
                    "--global-option",
                    "--build-option",
                    "--config-settings",
                ),
            ),
            prints=False,
            words=(r"(?:[A-Za-z+]+:|[^-]*@ *[a-z+]+:)//.*|(?:git|hg|svn|bzr)\+.*|[^-]*@ *[a-z]+\+.*",),
        ),
    ),
    "cargo": Options(runs=("--config", "-Z"), prints=False),
    "go": Options(
        runs=("-exec", "-toolexec", "-vettool", "-modfile", "-overlay", "-ldflags", "-gcflags"),
        prints=False,
        single_dash=True,
    ),
    "kubectl": Options(runs=("--kubeconfig",), prints=False),
    "gh": Options(prints=False),
    "hg": Options(runs=("--config", "--cwd", "-R", "--repository"), prints=False),
    "docker": Options(runs=("--config", "-H", "--host"), prints=False),
    "nc": Options(runs=("-e", "-c", "--exec", "--sh-exec"), prints=False),
    "ncat": Options(runs=("-e", "-c", "--exec", "--sh-exec", "--lua-exec"), prints=False),
    "diff": Options(),
    "journalctl": Options(
        writes=("--rotate", "--vacuum-size", "--vacuum-time", "--cursor-file"), prints=True
    ),
}

OPAQUE_PROGRAMS = names(
    """
    eval source . trap alias unalias enable shopt hash bind complete compgen compopt fc let coproc mapfile
    readarray watch parallel script expect unbuffer strace ltrace gdb lldb perf valgrind flock unshare nsenter
    chroot su runuser pkexec systemd-run screen tmux at batch crontab entr setpriv prlimit capsh faketime
    proot fakeroot firejail bwrap chpst dbus-run-session xvfb-run rlwrap cpulimit hyperfine ed ex vi vim view
    nvim emacs emacsclient nano pico joe micro fish csh tcsh elvish nu xonsh pwsh powershell socat expect
    tclsh wish osascript dc m4 gawkbug busybox toybox start-stop-daemon run-parts sshpass daemon daemonize
    dtach abduco script scriptreplay logsave iex ghci irb sqlite3 psql mysql mongo redis-cli gnuplot octave
    maxima bc ftp telnet lftp env-update rvim rview vimdiff ex concurrently nix-shell
    """
)
"""Programs that run what they are given in a language of their own, or that change what later words mean."""


def effect(program: str, options: Options, word: str) -> Effect | None:
    """What an argument makes the program do beyond what it is known for."""
    for index in (options.index("runs"), options.index("writes")):
        if index.has(word, options):
            return Effect(word, index.does)
    if options.words and any(re.fullmatch(pattern, word, re.DOTALL) for pattern in options.words):
        return Effect(word, "runs")
    return None


@dataclass(frozen=True, slots=True)
class _Index:
    """Options of one effect, made ready: asked for with every argument of every line."""

    does: Literal["runs", "writes"]
    beginnings: frozenset[str]
    """Of long names, each beginning that getopt would take for them."""
    letters: frozenset[str]
    exact: frozenset[str]
    """Names with one dash and several letters; with `single_dash` all of them, without it."""

    def has(self, word: str, options: Options) -> bool:
        if options.single_dash:
            return word.lstrip("-").partition("=")[0] in self.exact
        if not word.startswith("-"):
            return False
        if options.any_dash and len(name := word.partition("=")[0].lstrip("-")) > 1:
            return f"--{name}" in self.beginnings
        if word.startswith("--"):
            return word.partition("=")[0] in self.beginnings
        if word in self.exact:
            return True
        for letter in word[1:] if self.letters else "":
            if letter in self.letters:
                return True
            if letter in options.takes:
                return False
        return False


@lru_cache(maxsize=512)
def _index(does: Literal["runs", "writes"], listed: tuple[str, ...], single_dash: bool) -> _Index:
    if single_dash:
        return _Index(does, frozenset(), frozenset(), frozenset(name.lstrip("-") for name in listed))
    long = [name for name in listed if name.startswith("--")]
    short = [name for name in listed if not name.startswith("--")]
    return _Index(
        does,
        frozenset(name[:end] for name in long for end in range(3, len(name) + 1)),
        frozenset(name[1] for name in short if len(name) == 2),
        frozenset(name for name in short if len(name) > 2),
    )
