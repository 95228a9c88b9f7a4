"""How long a search takes: `python -m bench.search [--gigabytes 1]`. Journals with words of a skewed vocabulary."""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import msgspec

from dragoman.gateway.delivery import events
from dragoman.gateway.ports.search import Wanted
from dragoman.search.feed import Feed
from dragoman.search.index import FILE, Index, open_index
from dragoman.search.query import search
from dragoman.store import directory, segments
from dragoman.store.database import Database
from dragoman.store.locks import Folder

SESSION_BYTES = 4 * 1024 * 1024
TURN_CHUNKS = 60
WORDS = 50_000
STARTED = 1_780_000_000_000
ROUNDS = 15
QUERIES = {
    "a rare word": Wanted("word49000"),
    "a common word": Wanted("word1"),
    "a phrase": Wanted('"word1 word2"'),
    "beginnings of words": Wanted("word12*"),
    "three words": Wanted("word3 word40 word500"),
    "a common word, of one agent, in one folder": Wanted("word1", agent="agent3", cwd="/src/project8"),
    "a rare word, the best first": Wanted("word9000", best=True),
    "nothing found": Wanted("absent"),
}


def line(kind: str, text: str) -> bytes:
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    params = {"sessionId": "dgm_generated", "update": update}
    return msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})


def journal(chance: random.Random, vocabulary: list[str], weights: list[float]) -> list[bytes]:
    """The events of one session: prompts, answers in chunks, and tool calls with output."""
    made: list[bytes] = []
    size = 0
    words = iter(chance.choices(vocabulary, cum_weights=weights, k=SESSION_BYTES // 20))

    def some(count: int) -> str:
        return " ".join(next(words, "end") for _ in range(count)) + " "

    while size < SESSION_BYTES:
        turn = [b"P" + line("user_message_chunk", some(30))]
        turn += [b"U" + line("agent_message_chunk", some(4)) for _ in range(TURN_CHUNKS)]
        content = [{"type": "content", "content": {"type": "text", "text": some(400)}}]
        tool = {
            "sessionUpdate": "tool_call",
            "toolCallId": str(len(made)),
            "title": some(3),
            "content": content,
        }
        turn.append(b"U" + msgspec.json.encode({"params": {"sessionId": "x", "update": tool}}))
        turn.append(events.record("turn_ended", stopReason="end_turn"))
        made += turn
        size += sum(map(len, turn))
    return made


def generate(state: Path, gigabytes: float) -> int:
    """Write journals and their directory; returns the bytes of the journals."""
    from zlib import crc32

    chance = random.Random(20)
    vocabulary = [f"word{number}" for number in range(1, WORDS)]
    total = 0.0
    weights = [total := total + 1 / rank for rank in range(1, WORDS)]
    folder, written = Folder(state), 0
    with closing(Database(state / "dragoman.db").prepare()) as connection:
        number = 0
        while written < gigabytes * 1e9:
            session_id, lines = f"dgm_{number:010d}", journal(chance, vocabulary, weights)
            home = folder.of(session_id)
            home.mkdir(parents=True)
            body = segments.file_head(session_id)
            for start in range(0, len(lines), 62):
                batch = b"\n".join(lines[start : start + 62]) + b"\n"
                count = batch.count(b"\n")
                stamp = time.strftime(
                    "%Y-%m-%dT%H:%M:%S", time.gmtime(STARTED / 1000 + number * 3600 + start)
                )
                head = b"#%d %d %d 1 %b.000Z " % (start + 1, count, len(batch), stamp.encode())
                body += head + b"%08x\n" % crc32(head, crc32(batch)) + batch
            (home / segments.name(1, 1)).write_bytes(body)
            written += len(body)
            row = {
                "id": session_id, "agent": f"agent{number % 5}", "cwd": f"/src/project{number % 20}",
                "workspace": "/src", "created_at": stamp, "updated_at": stamp, "state": "closed", "epoch": 1,
                "first_seq": 1, "last_seq": len(lines), "agent_session_id": None, "sandbox": None, "owner": None,
                "node": None, "additional_directories": "[]", "title": session_id, "forked_from": None, "extra": "{}",
            }  # fmt: skip
            directory.create(connection, row)
            number += 1
    return written


def measure(index: Index, wanted: Wanted) -> tuple[int, float, float]:
    """Hits, median and longest time in milliseconds; the first time counts too."""
    taken, hits = [], 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        hits = len(search(index, wanted))
        taken.append((time.perf_counter() - start) * 1000)
    return hits, statistics.median(taken), max(taken)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dragoman-search-") as scratch:
        state = Path(scratch)
        written = generate(state, options.gigabytes)
        start, spent = time.perf_counter(), time.process_time()
        with closing(open_index(state)) as index:
            Feed(state, index).catch_up()
        seconds, used = time.perf_counter() - start, time.process_time() - spent
        size = os.stat(state / FILE).st_size
        with closing(open_index(state)) as index:
            start = time.perf_counter()
            Feed(state, index).catch_up()
            idle = (time.perf_counter() - start) * 1000
            passages = index.connection.execute("SELECT count(*) FROM passages").fetchone()[0]
            print(
                f"SQLite {sqlite3.sqlite_version}; journals {written / 1e9:.2f} GB, index {size / 1e9:.2f} GB"
            )
            print(f"{passages:,} passages, read in {seconds:.0f} s ({used:.0f} s of processor)")
            print(f"looking for news when there is none: {idle:.1f} ms\n")
            print(f"{'search':45} {'hits':>5} {'median ms':>10} {'longest ms':>11}")
            for name, wanted in QUERIES.items():
                print("{:45} {:>5} {:>10.1f} {:>11.1f}".format(name, *measure(index, wanted)))


if __name__ == "__main__":
    main()
