"""The limits of the bridge, each with the accident or attack that it prevents."""

from __future__ import annotations

COMMANDS_IN_FLIGHT = 256
"""Unfinished commands of a page above which reading from it stops: a page that sends faster than commands are done."""

COMMAND_BYTES = 16 * 1024 * 1024
"""Bytes of those commands together: 256 messages with pictures of the largest size."""

COMMANDS_WAITING = 10_000
COMMAND_BYTES_WAITING = 64 * 1024 * 1024
"""Waiting commands above which more are refused: many in one read, or over HTTP/2, where reading cannot be paused. A
single command always fits."""

REMEMBERED_COMMANDS = 4096
"""Command ids stored per token, to recognize a command that a page sends again; of the finished ones, the oldest are
dropped first."""

REMEMBERED_MESSAGES = 200
"""Message ids stored per session, to recognize messages that a page's offline queue sends again."""

ID_LENGTH = 200
"""Longest `clientMessageId`, `sessionId` and `requestId`: they are stored in memory, the first also in the journal."""

QUEUED_MESSAGES = 20
"""Messages per session that wait for the end of a turn."""

QUEUED_BYTES = 8 * 1024 * 1024
"""Bytes of those messages together: each change journals the whole queue."""

HISTORY_EVENTS = 1000
"""Most events in one history response, whatever is requested."""

LOOK_BACK_EVENTS = 20_000
LOOK_BACK_BYTES = 16 * 1024 * 1024
"""How far back the end of a stored journal is read for its latest state: queue, plan, commands."""

PATHS = 200
"""Most completions of a path in one response."""

PATHS_LOOKED_AT = 20_000
"""Entries of a folder that are read: a folder with a million files must not take too long."""

SHARED_EVENTS = 512
"""Encoded events stored per session for its other pages."""

TITLE_LENGTH = 200
CHANGE_PAUSE = 0.1
"""Seconds over which session changes are collected before they are sent to the lists of sessions."""

UNREAD_BYTES = 32 * 1024 * 1024
"""Bytes queued to a page above which reading from it stops: a page that does not read its responses."""

SHARED_EVENT_BYTES = 16 * 1024
"""Largest event that is stored for other pages."""

PAGE_EVENTS = 200
"""Events in a history response by default."""
