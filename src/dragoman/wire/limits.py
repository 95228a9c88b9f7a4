"""Every bound in one place, each with the accident or attack that it prevents."""

from __future__ import annotations

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""A peer that never sends a line feed must not fill our memory (G-143; `limits.max_message_bytes`)."""

MAX_HEADER_BYTES = 8 * 1024
"""A Content-Length peer that never ends its header block (G-142)."""

OVERSIZE_PREFIX_BYTES = 4 * 1024
"""How much of an oversize message is kept, to find its id and answer it (G-143)."""

MAX_BATCH_ENTRIES = 1000
"""One small array must not become a million replies (G-018)."""

MAX_REQUESTS_IN_FLIGHT = 10_000
"""A peer that asks without ever reading answers (G-010: both directions keep a table)."""

WRITE_HIGH_WATER = 256 * 1024
"""Bytes queued to one peer before whoever feeds it is paused (G-086)."""

WRITE_LOW_WATER = 64 * 1024
"""Bytes queued to one peer below which whoever feeds it goes on."""

CLIENT_BACKLOG_BYTES = 8 * 1024 * 1024
"""Bytes queued to one client before nothing more is read from it: one that asks and never reads the answers."""

ATTACHMENT_BACKLOG_BYTES = 2 * 1024 * 1024
"""Bytes queued to one client before it has to read on from the journal: memory per slow client."""

AGENT_BACKLOG_BYTES = 64 * 1024 * 1024
"""An agent that stops reading its stdin: further requests to it are refused, other sessions go on (G-084)."""

REQUEST_BYTES_IN_FLIGHT = 128 * 1024 * 1024
"""The same in bytes, ids and params together: ten thousand requests of the largest size. One alone always fits."""

GATEWAY_REQUEST_BYTES = 512 * 1024 * 1024
"""The same of all clients together: hundreds of connections that each stay below their own limit."""

TOKEN_REQUEST_BYTES = GATEWAY_REQUEST_BYTES // 2
"""The same of all clients with one token: it must not use up what the others need."""

EARLY_UPDATES = 1000
"""Updates held for a session whose `session/new` is not answered yet (G-044), whatever sessions they name."""

EARLY_BYTES = 16 * 1024 * 1024
"""And their bytes together, with the ids that they name: a thousand updates of the largest size, or with such ids."""

PEER_ID_LENGTH = 1024
"""Longest id of a peer's choice (tool call, terminal, elicitation, option) that is remembered: an id of megabytes."""

OPEN_TOOL_CALLS = 10_000
"""Tool calls of a session that are followed until their end: an agent that begins calls and ends none."""

ELICITATIONS = 1000
"""Elicitations of an agent whose completion is still passed on: one that asks for pages and never completes them."""

OPEN_TERMINALS = 1000
"""Terminals that an agent has open at a client: one that creates and never releases."""

KNOWN_TERMINALS = 10_000
"""Terminals of a session, open or not, of which is known whose they are: one that creates and releases for days."""

TERMINAL_OUTPUTS = 100
"""Outputs of a session's terminals that are kept for other clients; older ones are in the journal."""

TERMINAL_OUTPUT_BYTES = 32 * 1024 * 1024
"""And their size together: a hundred outputs of the largest size. The last one is kept in any case."""

PRINTED_CALLS = 100
"""Tool calls of a turn whose output in `_meta` is shown as text: an agent that prints in thousands of them."""

SWALLOWED_EVENTS = 500
"""Events of an agent's replay that is not shown, kept to compare its end with the journal."""

SWALLOWED_BYTES = 4 * 1024 * 1024
"""And their bytes together: a replay of pictures."""

CHOICES = 1000
"""Settings of a session that the next agent process is told: a client that sets options which it makes up."""

REMEMBERED_DECISIONS = 100
"""Answers of a session that are known to a client that answers a moment later: an agent that asks without end."""

REMEMBERED_DECISION_BYTES = 1024 * 1024
"""And their bytes together: a client that puts megabytes into its answers."""

HELD_REPLAY_BYTES = 64 * 1024 * 1024
"""An agent's own history that is journaled all at once when it is loaded for the first time; more is journaled as it
comes."""

GARBAGE_LINES = 1000
"""Non-JSON lines on an agent's stdout before it is taken for something that is not an agent (G-111)."""

STDERR_TAIL_LINES = 50
"""Lines of an agent's stderr kept for error messages (G-112)."""

STDERR_LINE_BYTES = 4 * 1024
"""Longest stderr line kept; the rest of such a line is cut."""

TURN_SECONDS = 0.001
"""Seconds of one loop turn for reading frames, of all peers together: megabytes of frames that are a few bytes long."""

MAX_TURN_PAUSE = 0.02
"""Seconds at most until the next of those who wait for their turn goes on."""

FRAMES_AT_ONCE = 32
"""Frames that are read before the clock is looked at."""

IDLE_FRAMES = 1000
IDLE_FRAMES_WITHIN = 10.0
"""Frames of a WebSocket that say nothing (pings, pongs, binaries, tiny fragments) within so many seconds: each costs its
sender six bytes. Who sends more is not read from until that time is over."""

TINY_FRAGMENT_BYTES = 64
"""A shorter piece of a message that is not its last says nothing."""

FOLLOWERS = 64
"""Commands of a session that a client shows in terminals at the same time: a client that makes terminals and never
starts them."""

FOLLOWER_BYTES = 1024 * 1024
"""Output that is kept for a terminal that does not read it; more is left out, and said to be."""
