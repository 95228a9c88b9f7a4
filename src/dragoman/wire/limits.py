"""The limits, each with the accident or attack that it prevents."""

from __future__ import annotations

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""A peer that never sends a line feed must not fill the memory (G-143; `limits.max_message_bytes`)."""

MAX_HEADER_BYTES = 8 * 1024
"""A Content-Length peer that never ends its header block (G-142)."""

OVERSIZE_PREFIX_BYTES = 4 * 1024
"""Bytes of an oversize message that are stored, to find its id and answer it (G-143)."""

MAX_BATCH_ENTRIES = 1000
"""One small array must not become a million replies (G-018)."""

MAX_REQUESTS_IN_FLIGHT = 10_000
"""A peer that sends requests and never reads responses (G-010: both directions keep a table)."""

WRITE_HIGH_WATER = 256 * 1024
"""Bytes queued to one peer above which its source is paused (G-086)."""

WRITE_LOW_WATER = 64 * 1024
"""Bytes queued to one peer below which its source is resumed."""

CLIENT_BACKLOG_BYTES = 8 * 1024 * 1024
"""Bytes queued to one client above which reading from it stops: a client that never reads its responses."""

ATTACHMENT_BACKLOG_BYTES = 2 * 1024 * 1024
"""Bytes queued to one client above which its attachment reads on from the journal: memory per slow client."""

AGENT_BACKLOG_BYTES = 64 * 1024 * 1024
"""An agent that stops reading its stdin: further requests to it are refused, other sessions go on (G-084)."""

REQUEST_BYTES_IN_FLIGHT = 128 * 1024 * 1024
"""Bytes (ids and params) of one peer's unanswered requests: ten thousand of the largest size. A single one always
fits."""

GATEWAY_REQUEST_BYTES = 512 * 1024 * 1024
"""`REQUEST_BYTES_IN_FLIGHT` for all clients together: hundreds of connections that each stay below their own limit."""

TOKEN_REQUEST_BYTES = GATEWAY_REQUEST_BYTES // 2
"""`REQUEST_BYTES_IN_FLIGHT` for all clients with one token: one token must not use up the share of the others."""

EARLY_UPDATES = 1000
"""Updates held, for all sessions together, whose `session/new` is not answered yet (G-044)."""

EARLY_BYTES = 16 * 1024 * 1024
"""Bytes of those updates and their session ids together: a thousand of the largest size."""

PEER_ID_LENGTH = 1024
"""Longest id chosen by a peer (tool call, terminal, elicitation, option) that is stored: an id of megabytes."""

QUEUED_PROMPT_BYTES = 32 * 1024 * 1024
"""Bytes of the prompts per session that wait for the end of a turn: a client that queues pictures."""

OPEN_TOOL_CALLS = 10_000
"""Unfinished tool calls tracked per session: an agent that starts calls and ends none."""

SEEN_TOOL_CALLS = 256
"""Open tool calls of which names, commands and paths are stored for a question about them, about 10 KiB each."""

OPEN_QUESTIONS = 500
"""Questions of a session that wait for an answer, each sent to every client: an agent that asks thousands a second."""

HOOK_CALLS = 500
"""Hooks of one agent process that wait for a decision, each a connection: an agent that starts calls without end."""

ALLOWED_CALLS = 64
"""Allowed tool calls of a turn of which the facts are stored, for the files and commands that follow from them."""

ELICITATIONS = 1000
"""Elicitations of an agent whose completion is still forwarded: an agent that never completes them."""

OPEN_TERMINALS = 1000
"""Terminals that an agent has open at a client: an agent that creates and never releases them."""

KNOWN_TERMINALS = 10_000
"""Terminals of a session, open or released, whose client is stored: an agent that creates and releases for days."""

TERMINAL_OUTPUTS = 100
"""Outputs of a session's terminals that are stored for other clients; older ones are in the journal."""

TERMINAL_OUTPUT_BYTES = 32 * 1024 * 1024
"""Bytes of those outputs together: a hundred of the largest size. The last one is always stored."""

PRINTED_CALLS = 100
"""Tool calls of a turn whose output in `_meta` is shown as text: an agent that prints in thousands of them."""

DISCARDED_EVENTS = 500
"""Events stored of an agent's replay that is not shown, to compare its end with the journal."""

DISCARDED_BYTES = 4 * 1024 * 1024
"""Bytes of those events together: a replay of pictures."""

CHOICES = 1000
"""Settings of a session that are reapplied to a restarted agent: a client that sets made-up options."""

REMEMBERED_DECISIONS = 100
"""Answered questions stored per session, for clients that answer a moment later: an agent that asks without end."""

REMEMBERED_DECISION_BYTES = 1024 * 1024
"""Bytes of those answers together: a client that puts megabytes into its answers."""

HELD_REPLAY_BYTES = 64 * 1024 * 1024
"""Bytes of an agent's history that are journaled all at once on its first load; more is journaled as it arrives."""

GARBAGE_LINES = 1000
"""Non-JSON lines on stdout after which a program does not count as an agent (G-111)."""

STDERR_TAIL_LINES = 50
"""Lines of an agent's stderr stored for error messages (G-112)."""

STDERR_LINE_BYTES = 4 * 1024
"""Longest stderr line stored; the rest of the line is cut."""

LOOP_BUDGET_SECONDS = 0.001
"""Seconds of one loop turn for reading frames of all peers together: megabytes of frames of a few bytes each."""

MAX_READER_PAUSE = 0.02
"""Longest pause in seconds between two waiting readers (`rpc.loop_budget`)."""

FRAMES_AT_ONCE = 32
"""Frames read between two looks at the clock."""

IDLE_FRAMES = 1000
IDLE_FRAMES_WITHIN = 10.0
"""WebSocket frames without content (pings, pongs, binary, tiny fragments) within so many seconds: each costs its sender
six bytes. A peer that sends more is not read from until the time is over."""

TINY_FRAGMENT_BYTES = 64
"""A fragment shorter than this that does not end its message counts as a frame without content."""

FOLLOWERS = 64
"""Commands that a client shows in terminals at the same time: a client that creates terminals and never starts them."""

FOLLOWER_BYTES = 1024 * 1024
"""Bytes of output stored for a terminal that does not read; more is left out, and a line in the terminal says so."""
