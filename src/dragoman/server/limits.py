"""Every bound of the network side, each with the accident or attack that it prevents."""

from __future__ import annotations

MAX_HEAD_BYTES = 32 * 1024
"""A request whose headers never end."""

HEAD_TIMEOUT = 10.0
"""Seconds for the first request's headers: connections that say nothing, or a byte a minute (slow loris)."""

BODY_TIMEOUT = 60.0
"""Seconds for the body of a POST."""

DISCARDED_BYTES = 8 * 1024 * 1024
DISCARD_TIMEOUT = 2.0
"""How much of a body that is too long is still read, so that its sender sees the answer."""

MAX_CONNECTIONS = 8192
"""A program that connects in a loop must not use up our memory; file descriptors may end earlier."""

RESERVED_FILES = 512
"""Descriptors kept from connections: agents' pipes, the store, and the files of those who are inside."""

LEAST_CONNECTIONS = 32
"""Connections that are let in however few descriptors there are."""

MAX_H2_RESETS = 500
RESETS_WITHIN = 30.0
"""Requests that an HTTP/2 peer may take back within that many seconds (rapid reset, CVE-2023-44487), or make us refuse
(CVE-2025-8671)."""

H2_FRAMES_WITHIN = 10.0
"""Seconds in which an HTTP/2 peer may send as many of these as follow; one more ends the connection."""

MAX_H2_CONTROL_FRAMES = 1000
"""Settings, pings, continuations, empty data, frames of unknown kinds (CVE-2019-9512, 9515, 9518, CVE-2024-27316)."""

MAX_H2_PRIORITIES = 5000
"""Priorities, which are dropped unread: browsers of yesterday send some (CVE-2019-9513)."""

MAX_H2_WINDOW_UPDATES = 1000
H2_WINDOW_UPDATES_PER_FRAME = 10
"""Window updates besides those that a request, or a piece of a response, is good for."""

STALL_TIMEOUT = 60.0
"""Seconds until a reader is cut off that takes not one byte, or not the one piece (256 KB) it was sent (G-123)."""

LINGER_TIMEOUT = 30.0
"""Seconds that a peer has to read the end of what it was sent after we have closed."""

MAX_SOCKET_BACKLOG = 8 * 1024 * 1024
"""Bytes queued to a WebSocket peer before nothing more is read from it: one that asks, or pings, and never reads."""

UNREAD_PONG_BYTES = 64 * 1024
"""Answers to pings that wait inside HTTP/2 behind what the peer has not read yet."""

MAX_H2_STREAMS = 256
"""Requests at once on one HTTP/2 connection."""

KEEP_ALIVE = 75.0
"""Seconds that an idle HTTP connection is kept."""

SOCKET_BYTES = 1024 * 1024
"""Bytes queued for a WebSocket inside HTTP/2 before its client counts as slow."""

INITIALIZE_TIMEOUT = 30.0
"""Seconds until a POSTed `initialize` is answered 504 (G-121)."""

HAND_OVER_TIMEOUT = 10.0
"""Seconds that a load response waits for its replay to be read from the session stream (G-085)."""

MAX_HTTP_CONNECTIONS = 1024
"""Streamable HTTP connections of one token, and ids of clients at `/acp/rpc`: nothing tells us that a client which never
says DELETE is gone, and one token must not use up what others need."""

HTTP_CONNECTIONS_TOGETHER = 16 * MAX_HTTP_CONNECTIONS
"""The same of all tokens together: memory."""

TOKEN_SHARE = 0.5
"""How much of the room for connections one token may have, as WebSockets and as requests that are being answered: behind
a proxy all come from one address, and one token must not keep the others out."""

HTTP_IDLE = 300.0
"""Seconds without a request or an open stream until such a connection ends; its sessions stay."""

HTTP_UNUSED = 60.0
"""The same for one that was opened and never used: with `serve.inline`, scripts initialize and go on without it."""

MAX_STREAMS = 1024
"""Session streams of one connection (G-123)."""

STREAM_BYTES = 2 * 1024 * 1024
"""Bytes queued for a reader of an event stream before it has to read on from the journal."""

UNREAD_STREAM_BYTES = 16 * 1024 * 1024
"""The same for a stream that nobody has opened yet: a replay must fit before its response goes out."""

MAX_UNREAD_BYTES = 64 * 1024 * 1024
"""Bytes queued on all streams of a connection before it is ended (G-123)."""

KEPT_MESSAGES = 64
"""Responses and questions of a stream that a returning reader can get again."""

KEPT_BYTES = 4 * 1024 * 1024
"""How much these may be together, whatever their number; the last one is kept in any case."""

KEPT_ON_ONE_STREAM = 1024
"""The same for a client whose sessions all come on one stream, where updates have no stream of their own."""

MAX_LOGINS = 256
"""Browsers logged in with one token; those longest unused are logged out: its holder could fill the disk."""

MAX_PAGE_SECRETS = 8
"""Secrets that go with one browser's cookie: each opening of the printed address makes one."""

MAX_API_BYTES = 4 * 1024 * 1024
"""The body of a REST request; long prompts with images speak ACP."""
