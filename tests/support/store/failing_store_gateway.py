"""A real gateway whose store does as files in a folder say; see `support/store/failing_store.py`.

    python failing_store_gateway.py PYTHON -m dragoman ARGUMENTS      with TEST_FAULTS=FOLDER

`FOLDER/METHOD.fail` makes a method of the store fail for as long as the file is there. `FOLDER/METHOD.hold` keeps its
callers waiting until the file is gone; `FOLDER/METHOD.held` says that one of them waits.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.cli.entry import main
from dragoman.gateway.ports.store import StoreFull
from dragoman.store import FileStore

FOLDER = Path(os.environ.pop("TEST_FAULTS"))
ASYNC = ("read", "read_before", "get", "find", "create", "acquire", "release", "holders")
CALLED_BACK = ("append", "update", "touch")


def failing(method: str) -> StoreFull | None:
    return StoreFull("No space is left for the test.") if (FOLDER / f"{method}.fail").exists() else None


def faulty(method: str, real: Any) -> Callable[..., Any]:
    async def call(store: Any, *args: Any, **kwargs: Any) -> Any:
        while (FOLDER / f"{method}.hold").exists():
            (FOLDER / f"{method}.held").touch()
            await asyncio.sleep(0.01)
        if (error := failing(method)) is not None:
            raise error
        return await real(store, *args, **kwargs)

    return call


def faulty_callback(method: str, real: Any) -> Callable[..., Any]:
    """Their last argument is told the outcome."""

    def call(store: Any, *args: Any) -> None:
        if (error := failing(method)) is None:
            real(store, *args)
        elif callable(args[-1]):
            asyncio.get_running_loop().call_soon(args[-1], error)

    return call


for name in ASYNC:
    setattr(FileStore, name, faulty(name, getattr(FileStore, name)))
for name in CALLED_BACK:
    setattr(FileStore, name, faulty_callback(name, getattr(FileStore, name)))
sys.argv = ["dragoman", *sys.argv[4:]]
sys.exit(main())
