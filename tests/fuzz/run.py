"""Runs one parser on many inputs: `python -m fuzz.run TARGET INPUTS [SEED]`, with `tests` on the path.

With atheris (LibFuzzer, guided by coverage) where it is installed; its finds lie in `.cache/fuzz/finds`. Elsewhere the
corpus is changed at random, which `make test` does for a moment too. Inputs that reached something new are kept in
`.cache/fuzz/corpus`, and the next run begins with them.
"""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
SEEDS = HERE / "corpus"
CACHE = HERE.parents[1] / ".cache" / "fuzz"
LONGEST = 512
"""Bytes of an input: parsers have no state that needs more, and short ones are many."""


@dataclass(frozen=True)
class Result:
    inputs: int
    grown: int
    """Megabytes of memory at the end, less those after the corpus was read."""
    find: str = ""
    """What went wrong; empty: nothing."""


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


def guided(target: str, inputs: int, seed: int) -> Result:
    """In a process of its own, which ends with the first find."""
    corpus, finds = CACHE / "corpus" / target, CACHE / "finds"
    corpus.mkdir(parents=True, exist_ok=True)
    finds.mkdir(parents=True, exist_ok=True)
    flags = [f"-runs={inputs}", f"-seed={seed}", f"-max_len={LONGEST}", "-timeout=10", "-rss_limit_mb=2048"]
    flags += [f"-artifact_prefix={finds}/{target}-", "-verbosity=1"]
    command = [sys.executable, "-m", "fuzz.run", "--worker", target, *flags, str(corpus), str(SEEDS / target)]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", cwd=HERE.parent, check=False
    )
    told = re.findall(r"^#(\d+)\s+(\w+).* rss: (\d+)Mb", done.stderr, re.MULTILINE)
    began = [int(memory) for _, word, memory in told if word == "INITED"]
    grown = int(told[-1][2]) - began[0] if began else 0
    ran = max((int(count) for count, _, _ in told), default=0)
    return Result(ran, grown, "" if done.returncode == 0 else done.stdout[-2000:] + done.stderr[-4000:])


def unguided(target: str, inputs: int, seed: int) -> Result:
    from fuzz import targets

    ran = 0
    with targets.listening_for_errors():
        for data in changed(seeds(target), inputs, seed):
            ran += 1
            try:
                targets.TARGETS[target](data)
            except Exception as error:
                return Result(ran, 0, f"{data!r}: {type(error).__name__}: {error}")
    return Result(ran, 0)


def run(target: str, inputs: int, seed: int = 1) -> Result:
    return (guided if find_spec("atheris") else unguided)(target, inputs, seed)


def _worker(target: str, arguments: list[str]) -> None:
    import atheris  # type: ignore[import-not-found]

    with contextlib.redirect_stderr(sys.stdout), atheris.instrument_imports(include=["dragoman"]):
        from fuzz import targets

    with targets.listening_for_errors():
        atheris.Setup([sys.argv[0], *arguments], targets.TARGETS[target])
        atheris.Fuzz()


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        _worker(sys.argv[2], sys.argv[3:])
    else:
        print(run(sys.argv[1], int(sys.argv[2]), int("".join(sys.argv[3:4]) or 1)))
