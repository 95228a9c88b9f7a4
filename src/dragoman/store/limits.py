"""All limits of the store, each with the accident that it prevents."""

from __future__ import annotations

SEGMENT_BYTES = 4 * 1024 * 1024
"""Size at which a journal file is not continued: finding an event, or the end after a crash, means reading one."""

BATCH_BYTES = 256 * 1024
"""Size of a batch: a reader of one event must not have to read megabytes of others."""

MOST_BATCHES = 500
"""Maximum batches of one append: each is two buffers, and `writev` takes 1024."""

INLINE_BYTES = 512 * 1024
"""A larger append is written by a thread, so that the event loop is held for half a millisecond at most."""

SLOW_SECONDS = 0.003
"""Two longer writes in close succession mean that the disk is slow: threads write from then on."""

SLOW_RATE = 100_000_000
"""Bytes per second that a large write is allowed on top of `SLOW_SECONDS` before the disk counts as slow."""

QUICK_WRITES = 32
"""After so many thread writes in a row that were not slow, the event loop writes by itself again."""

WRITERS = 4
"""Threads for writes that may take long: sessions wait for each other only when so many writes are slow at once."""

READERS = 2
"""Threads for reads: slow reads wait for each other instead of starting threads without end."""

READ_BYTES = 256 * 1024
"""Buffer size for reading a journal file."""

PAGE_BACK_BYTES = 4 * 1024 * 1024
"""Paging back over huge events stops at this size, even with fewer events than requested."""

BOOKMARKS = 8192
"""Positions stored for readers that continue where they stopped: enough for all that read at the same time."""

LIST_LIMIT = 1000
"""Most sessions in one page of the list, even if the client asks for more."""

BUSY_SECONDS = 5.0
"""Longest wait for a locked directory: the process that locks it must not hang the others silently."""

DIRECTORY_SECONDS = 1.0
"""A session's state is written to the directory at most once in this time, so that a turn costs no write."""

BREAK_EPOCH = 1_000_000_000
"""Epochs from here on are seconds since 1970 and mark a break: the journal may have lost events before (`Leases`)."""

LEASE_SECONDS = 0.1
"""How long an owner trusts its last look at its lock file, which may have been removed by hand."""
