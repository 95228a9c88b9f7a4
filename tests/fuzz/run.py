"""Runs one parser on many inputs: `python -m fuzz.run TARGET INPUTS [SEED]`, with `tests` on the path.

With atheris (LibFuzzer, guided by coverage) where it is installed; its finds lie in `.cache/fuzz/finds`. Elsewhere the
corpus is changed at random, which `make test` does for a moment too. Inputs that reached something new are kept in
`.cache/fuzz/corpus`, and the next run begins with them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from fuzz import worker
from fuzz.worker import Reporter, Result, resident

HERE = Path(__file__).parent
SEEDS = HERE / "corpus"
CACHE = HERE.parents[1] / ".cache" / "fuzz"
CHUNK = 5000
"""Inputs between two reports."""
LONGEST = 512
"""Bytes of an input: parsers have no state that needs more, and short ones are many."""


def seeds(target: str) -> list[bytes]:
    return [file.read_bytes() for file in sorted((SEEDS / target).iterdir())]


def changed(corpus: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """The corpus itself, then inputs made of it."""
    chance = random.Random(seed)
    yield from corpus[:count]
    for _ in range(count - len(corpus)):
        data = bytearray(chance.choice(corpus))
        for _ in range(chance.randrange(1, 6)):
            place = chance.randrange(len(data) + 1)
            what = chance.randrange(5)
            if what == 0:
                data[place:place] = chance.randbytes(chance.randrange(1, 5))
            elif what == 1:
                del data[place : place + chance.randrange(1, 9)]
            elif what == 2 and place < len(data):
                data[place] = chance.randrange(256)
            elif what == 3:
                other = chance.choice(corpus)
                start = chance.randrange(len(other) + 1)
                data[place:place] = other[start : start + chance.randrange(1, 30)]
            else:
                data[place : place + 8] = data[place : place + 8] * 2
        yield bytes(data[:LONGEST])


def run(target: str, inputs: int, seed: int = 1) -> Result:
    return asyncio.run(worker.run("fuzz.run", target, inputs, seed))


# In the worker


def _work(target: str, inputs: int, seed: int) -> None:
    """Ends with the first find."""
    report = Reporter()
    (_guided if find_spec("atheris") else _unguided)(target, inputs, seed, report)


def _guided(target: str, inputs: int, seed: int, report: Reporter) -> None:
    import atheris

    with contextlib.redirect_stderr(sys.stdout), atheris.instrument_imports(include=["dragoman"]):
        from fuzz import targets

    corpus, finds = CACHE / "corpus" / target, CACHE / "finds"
    corpus.mkdir(parents=True, exist_ok=True)
    finds.mkdir(parents=True, exist_ok=True)
    flags = [f"-runs={inputs}", f"-seed={seed}", f"-max_len={LONGEST}", "-timeout=10", "-rss_limit_mb=2048"]
    flags += [f"-artifact_prefix={finds}/{target}-", "-verbosity=1"]
    with targets.listening_for_errors():
        counted = _counted(targets.TARGETS[target], inputs, report)
        atheris.Setup([sys.argv[0], *flags, str(corpus), str(SEEDS / target)], counted)
        atheris.Fuzz()


def _unguided(target: str, inputs: int, seed: int, report: Reporter) -> None:
    from fuzz import targets

    with targets.listening_for_errors():
        counted = _counted(targets.TARGETS[target], inputs, report)
        for data in changed(seeds(target), inputs, seed):
            try:
                counted(data)
            except Exception:
                print(repr(data), file=sys.stderr)
                raise


def _counted(target: Callable[[bytes], None], inputs: int, report: Reporter) -> Callable[[bytes], None]:
    """The target, which reports after each chunk and at the end; the first chunk is its warm-up."""
    done = reported = warm = 0

    def run_one(data: bytes) -> None:
        nonlocal done, reported, warm
        target(data)
        done += 1
        if done - reported == CHUNK or done == inputs:
            memory = resident()
            warm = warm or memory
            try:
                report(Result(done - reported, memory - warm))
            except BrokenPipeError:
                os._exit(1)  # the run was killed: an exception would be kept as a find
            reported = done

    return run_one


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        _work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        print(run(sys.argv[1], int(sys.argv[2]), int("".join(sys.argv[3:4]) or 1)))
