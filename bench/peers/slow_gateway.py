"""`dragoman` on a slow disk: every write to a journal takes `BENCH_WRITE_SECONDS`; run as a script by `bench.disk`.

With `BENCH_INLINE=1` the event loop writes whatever happens, as it would if no thread ever did.
"""

from __future__ import annotations

import os
import time
from typing import Any

from dragoman.cli.entry import main
from dragoman.store import limits

SECONDS = float(os.environ["BENCH_WRITE_SECONDS"])
write = os.pwritev


def slow_write(*arguments: Any) -> int:
    time.sleep(SECONDS)
    return write(*arguments)


if __name__ == "__main__":
    os.pwritev = slow_write
    if os.environ.get("BENCH_INLINE"):
        limits.SLOW_SECONDS = float("inf")
    main()
