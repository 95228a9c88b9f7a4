"""Every bound of the bridge, each with the accident or attack that it prevents."""

from __future__ import annotations

COMMANDS_IN_FLIGHT = 256
"""A page that sends faster than things get done is not read any further until they are."""

COMMAND_BYTES = 16 * 1024 * 1024
"""The same in bytes: 256 messages with pictures of the largest size."""

COMMANDS_WAITING = 10_000
COMMAND_BYTES_WAITING = 64 * 1024 * 1024
"""More than these is refused: what one read brought at once, or came in HTTP/2, where reading cannot be held back. One
command alone always fits."""

REMEMBERED_COMMANDS = 4096
"""Ids of commands, per token, that are known again when a page sends them again; of those that are done, the oldest
are forgotten first."""

REMEMBERED_MESSAGES = 200
"""The same per session, for messages: what an offline queue could still send again."""

ID_LENGTH = 200
"""Longest `clientMessageId`, `sessionId` and `requestId`: they are kept in memory, and the first in the journal."""

QUEUED_MESSAGES = 20
"""Messages that wait for the end of a turn, per session."""

QUEUED_BYTES = 8 * 1024 * 1024
"""And their size together: each change of a queue is journaled whole."""

HISTORY_EVENTS = 1000
"""Longest page of history, whatever is asked for."""

LOOK_BACK_EVENTS = 20_000
LOOK_BACK_BYTES = 16 * 1024 * 1024
"""How far back the end of a stored journal is read for what still holds: its queue, its plan, its commands."""

PATHS = 200
"""Completions of a path that are sent."""

PATHS_LOOKED_AT = 20_000
"""Entries of a folder that are looked at: one with a million files must not keep us."""

SHARED_EVENTS = 512
"""Encoded events kept per session for its other watchers."""

TITLE_LENGTH = 200
CHANGE_PAUSE = 0.1
"""Seconds over which changes of sessions are collected before the lists of sessions hear of them."""

UNREAD_BYTES = 32 * 1024 * 1024
"""Answers that a page asked for and does not take: it is not listened to until it does."""

SHARED_EVENT_BYTES = 16 * 1024
"""Larger events are not kept for others."""

PAGE_EVENTS = 200
"""A page of history when nothing else is asked for."""
