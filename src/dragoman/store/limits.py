"""Every bound of the store in one place, each with the accident that it prevents."""

from __future__ import annotations

ROW_BYTES = 64 * 1024
"""A reader that wants one event must not fetch a flood's worth of neighbours."""

GROUP_BYTES = 8 * 1024 * 1024
"""One commit must not grow without end while producers are faster than the disk."""

GROUP_OPERATIONS = 8192
"""The same for floods of tiny appends, and a bound on how long one delivery occupies the event loop."""

BACKLOG_HIGH = 16 * 1024 * 1024
"""Bytes queued before agents are paused: a slow disk must not fill the memory (G-086)."""

BACKLOG_LOW = 4 * 1024 * 1024
"""Bytes queued below which they go on."""

EVENT_OVERHEAD = 64
"""What an event costs in memory beyond its bytes; empty events must not look free."""

BUSY_SECONDS = 5.0
"""A process that keeps the database locked must not hang the others silently."""

BUSY_PATIENCE = 60.0
"""Seconds that events wait for a database that others keep locked, before their sessions go on unsaved."""

BUSY_PAUSE = 0.1
"""Seconds between two tries, where SQLite does not wait by itself."""

READERS = 2
"""Slow reads wait for each other instead of starting threads without end."""

PAGE_BACK_BYTES = 4 * 1024 * 1024
"""Paging back over huge events stops here even if fewer than asked were found."""

LIST_LIMIT = 1000
"""Longest page of sessions, whatever the client asks for."""

CHECKPOINT_PAGES = 4000
"""Pages written to the log (16 MiB) before they are moved to the database, beside the writer."""

LOG_PAGES = 16000
"""Pages in the log (64 MiB) before it is begun anew."""

LAST_PAGES = 300
"""Pages that the writer itself moves then: two syncs of a megabyte."""

LONGEST_LOG_PAGES = 64000
"""Pages in the log (256 MiB) before the writer moves all of it, whatever that takes: a reader held it back."""

PAGE_BYTES = 4096
"""SQLite's pages, for a guess at how many a commit writes."""

LOG_BYTES = 64 * 1024 * 1024
"""A log that grew under a long reader is cut back to this size."""

CROWD_COMMITS, CROWD_SESSIONS, CROWD_PAUSE = 16, 4, 0.001
"""Sixteen commits within as many milliseconds, of four sessions or more: from then on one a millisecond."""

VACUUM_PAGES = 2000
"""Free pages given back per commit, so that writers wait milliseconds and not the whole clean-up."""
