"""The process that outlives the gateway by a moment, to end what the gateway left running.

Started by `lifeline.py` as `python -I -S watcher.py`, with the read end of a pipe as stdin whose only write
end is the gateway's. However the gateway ends, the kernel closes the pipe; then everything still registered
is ended.

    + MARKER             an agent is about to be started with this marker in its environment
    + MARKER PID START   it was started as PID at START
    - MARKER             its tree has ended
"""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.agents.custody import table, tree
else:
    # Isolated mode keeps the own folder off the path, which is right for everything but these two.
    sys.path.append(__file__.removesuffix("watcher.py"))
    import table  # noqa: I001
    import tree

# Whatever is aimed at the gateway, or at an editor's whole group, must not take away who cleans up.
IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE")

STARTING_UP = 0.1
"""A child that was being started when the gateway died shows its marker only once its exec is through."""


def read_registrations() -> dict[str, tree.Tree]:
    """Follow the gateway's lines until it is gone; what it had registered then."""
    trees: dict[str, tree.Tree] = {}
    for line in sys.stdin:
        sign, marker, *root = line.split()
        if sign == "-":
            trees.pop(marker, None)
            continue
        registered = trees.setdefault(marker, tree.Tree(marker))
        if root:
            registered.root(int(root[0]), " ".join(root[1:]))
    return trees


def main() -> None:
    for name in IGNORED:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    trees = list(read_registrations().values())
    if not trees:
        return
    if not all(one.rooted for one in trees):
        time.sleep(STARTING_UP)
    for pause in tree.escalate(trees, table):
        time.sleep(pause)


if __name__ == "__main__":
    main()
