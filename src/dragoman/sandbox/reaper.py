"""Ends process trees inside a box that signals of this machine do not reach.

Ending `podman exec` or `ssh` ends only the local process; the processes in the box go on. So a small shell script runs
in the box beside the agents and reads from its stdin, which this process holds, which trees to end. When this process
dies, stdin closes and the script ends all trees that it knows.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence

from dragoman.agents.custody import Custody, CustodyError, Ward
from dragoman.rpc.call import happens

log = logging.getLogger(__name__)

TOKEN = "DRAGOMAN_BOX"
"""The variable that marks all processes that one agent or command starts inside."""

START_PATIENCE = 30.0
END_PATIENCE = 8.0
"""Seconds to end a tree inside: SIGTERM and SIGKILL of the script take 4, the rest is for a slow connection."""

SCRIPT = r"""
own=$$
members() {
  marked=$(grep -l "DRAGOMAN_BOX=$1" /proc/[0-9]*/environ 2>/dev/null)
  found=' '
  for f in $marked; do p=${f#/proc/}; found="$found${p%/environ} "; done
  again=1
  while [ $again = 1 ]; do
    again=0
    for d in /proc/[0-9]*; do
      p=${d#/proc/}
      case "$found" in *" $p "*) continue;; esac
      read -r stat 2>/dev/null <"$d/stat" || continue
      set -- ${stat##*) }
      case "$found" in
        *" $2 "*|*" $4 "*) [ "$1" = Z ] || { found="$found$p "; again=1; };;
      esac
    done
  done
  list=
  for p in $found; do [ "$p" = "$own" ] || [ "$p" = 1 ] || list="$list $p"; done
}
end() {
  for name in TERM KILL; do
    tries=0
    while [ $tries -lt 20 ]; do
      members "$1"
      [ -n "$list" ] || return 0
      if [ $tries = 0 ] || [ $name = KILL ]; then kill -s $name $list 2>/dev/null; fi
      tries=$((tries + 1))
      sleep 0.1 2>/dev/null || sleep 1
    done
  done
  return 1
}
forget() {
  kept=
  for each in $known; do [ "$each" = "$1" ] || kept="$kept $each"; done
  known=$kept
}
trap '' HUP INT TERM PIPE
known=
echo ready
while read -r verb token; do
  case $verb in
    watch) known="$known $token";;
    end) end "$token" && forget "$token"; echo "ended $token";;
  esac
done
for token in $known; do end "$token"; done
"""
"""Needs a POSIX shell, `grep` and `sleep`. A tree: processes with the token, their descendants and sessions."""


class ReaperError(Exception):
    """The reaper did not start; the message is the tool's output."""


class Reaper:
    """The gateway's end of one reaper script."""

    def __init__(self, child: asyncio.subprocess.Process, custody: Custody, ward: Ward) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._child = child
        self._stdin = child.stdin
        self._stdout = child.stdout
        self._custody = custody
        self._ward = ward
        self._ended: dict[str, asyncio.Event] = {}
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, words: Sequence[str], env: Mapping[str, str], custody: Custody) -> Reaper:
        """Start the reaper; `words` is the whole command that runs `SCRIPT` inside the box."""
        try:
            ward = custody.admit()
        except CustodyError as error:
            raise ReaperError(str(error)) from error
        try:
            child = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=ward.mark(env),
                start_new_session=True,
            )
        except OSError as error:
            custody.release(ward)
            raise ReaperError(f"{words[0]}: {error.strerror}") from error
        custody.started(ward, child.pid)
        reaper = cls(child, custody, ward)
        await reaper._wait_ready()
        reaper._reading = asyncio.get_running_loop().create_task(reaper._read())
        return reaper

    @property
    def alive(self) -> bool:
        return self._child.returncode is None and not self._stdout.at_eof()

    def admit(self) -> str:
        """Register a tree that is about to start; returns its token."""
        token = secrets.token_hex(12)
        self._send(f"watch {token}")
        return token

    async def end(self, token: str) -> None:
        """End a tree inside; waits for `END_PATIENCE` at most."""
        if not self.alive:
            return  # the box is gone with all its processes
        ended = self._ended.setdefault(token, asyncio.Event())
        self._send(f"end {token}")
        if not await happens(ended, END_PATIENCE):
            log.warning("the box did not confirm that its processes have ended")
        self._ended.pop(token, None)

    async def close(self) -> None:
        """Make the script end all trees that are left, and itself."""
        self._stdin.close()
        try:
            async with asyncio.timeout(END_PATIENCE):
                await self._child.wait()
        except TimeoutError:
            log.warning("the box's reaper does not end by itself")
        await self._custody.end(self._ward)
        if self._reading is not None:
            self._reading.cancel()

    def _send(self, line: str) -> None:
        if not self._stdin.is_closing():
            self._stdin.write(line.encode() + b"\n")

    async def _wait_ready(self) -> None:
        try:
            async with asyncio.timeout(START_PATIENCE):
                first = await self._stdout.readline()
        except TimeoutError:
            first = b""
        if first.strip() == b"ready":
            return
        self._stdin.close()
        await self._custody.end(self._ward)
        assert self._child.stderr is not None
        said = (await self._child.stderr.read()).decode(errors="replace").strip()
        raise ReaperError(said or f"it exited with code {await self._child.wait()}")

    async def _read(self) -> None:
        while line := await self._stdout.readline():
            verb, _, token = line.decode(errors="replace").strip().partition(" ")
            if verb == "ended" and token in self._ended:
                self._ended[token].set()
        for ended in self._ended.values():
            ended.set()
