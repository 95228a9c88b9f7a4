"""Every bound of the store in one place, each with the accident that it prevents."""

from __future__ import annotations

SEGMENT_BYTES = 4 * 1024 * 1024
"""A file of a journal is not continued beyond this: finding an event, and the end after a crash, means reading one."""

BATCH_BYTES = 256 * 1024
"""A reader that wants one event must not fetch a flood's worth of neighbours."""

MOST_BATCHES = 500
"""Batches of one append: `writev` takes 1024 pieces."""

INLINE_BYTES = 512 * 1024
"""An append of more than this is written by a thread: half a millisecond of the event loop at most."""

SLOW_SECONDS = 0.003
"""Two writes that took longer say that the disk is slow: threads write from then on, and the event loop goes on."""

SLOW_RATE = 100_000_000
"""Bytes a second: a large write may take longer than a small one before the disk counts as slow."""

QUICK_WRITES = 32
"""Writes in a row that were not slow: after so many by threads the event loop writes by itself again."""

WRITERS = 4
"""Threads for writes that may take long: sessions wait for each other only when so many are slow at once."""

READERS = 2
"""Slow reads wait for each other instead of starting threads without end."""

EVENT_OVERHEAD = 64
"""What an event costs in memory beyond its bytes; empty events must not look free."""

READ_BYTES = 256 * 1024
"""How much a reader takes from a file at once."""

PAGE_BACK_BYTES = 4 * 1024 * 1024
"""Paging back over huge events stops here even if fewer than asked were found."""

BOOKMARKS = 1024
"""Places of readers that go on where they stopped: as many as can be half way through a journal at once."""

LIST_LIMIT = 1000
"""Longest page of sessions, whatever the client asks for."""

BUSY_SECONDS = 5.0
"""A process that keeps the directory locked must not hang the others silently."""

DIRECTORY_SECONDS = 1.0
"""How a session is goes to the directory at most once in this time: a turn costs no write of its own."""

LOG_BYTES = 4 * 1024 * 1024
"""The directory's write-ahead log is cut back to this size."""

BREAK_EPOCH = 1_000_000_000
"""Epochs from here on are seconds since 1970: the journal may have lost its end before them (`Leases`)."""

LEASE_SECONDS = 0.1
"""How long an owner believes that its lock file is still there and its own: it may have been removed by hand."""
