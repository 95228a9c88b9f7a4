"""The limits of the network side, each with the accident or attack that it prevents."""

from __future__ import annotations

MAX_HEAD_BYTES = 32 * 1024
"""A request whose headers never end."""

HEAD_TIMEOUT = 10.0
"""Seconds for the first request's headers: connections that send nothing, or a byte a minute (slow loris)."""

BODY_TIMEOUT = 60.0
"""Seconds for the body of a POST."""

DISCARDED_BYTES = 8 * 1024 * 1024
DISCARD_TIMEOUT = 2.0
"""How much of a body that is too long is still read, so that its sender gets the response."""

MAX_CONNECTIONS = 8192
"""A program that connects in a loop must not use up the memory; file descriptors may run out earlier."""

RESERVED_FILES = 512
"""Descriptors reserved for other uses than connections: agents' pipes, the store, files."""

LEAST_CONNECTIONS = 32
"""Connections that are accepted even if descriptors are few."""

MAX_H2_RESETS = 500
RESETS_WITHIN = 30.0
"""Streams that an HTTP/2 peer may reset within that many seconds (rapid reset, CVE-2023-44487), or cause to be reset
(CVE-2025-8671)."""

H2_FRAMES_WITHIN = 10.0
"""Seconds in which an HTTP/2 peer may send the following numbers of frames; one more ends the connection."""

MAX_H2_CONTROL_FRAMES = 1000
"""Settings, pings, continuations, empty data, frames of unknown kinds (CVE-2019-9512, 9515, 9518, CVE-2024-27316)."""

MAX_H2_PRIORITIES = 5000
"""Priority frames, which are dropped unread: old browsers send some (CVE-2019-9513)."""

MAX_H2_WINDOW_UPDATES = 1000
H2_WINDOW_UPDATES_PER_FRAME = 10
"""Window updates in total, and additional ones for each request and each sent piece of a response."""

STALL_TIMEOUT = 60.0
"""Seconds until a client is disconnected that reads not one byte, or not the one piece (256 KB) sent to it (G-123)."""

LINGER_TIMEOUT = 30.0
"""Seconds that a peer has to read the rest after the server has closed the connection."""

MAX_SOCKET_BACKLOG = 8 * 1024 * 1024
"""Bytes queued to a WebSocket peer above which reading from it stops: one that sends requests or pings, never reads."""

UNREAD_PONG_BYTES = 64 * 1024
"""Bytes of pongs that wait inside HTTP/2 behind unread data."""

MAX_H2_STREAMS = 256
"""Requests at once on one HTTP/2 connection."""

KEEP_ALIVE = 75.0
"""Seconds that an idle HTTP connection stays open."""

SOCKET_BYTES = 1024 * 1024
"""Bytes queued for a WebSocket inside HTTP/2 before its client counts as slow."""

INITIALIZE_TIMEOUT = 30.0
"""Seconds until a POSTed `initialize` is answered 504 (G-121)."""

HAND_OVER_TIMEOUT = 10.0
"""Seconds that a load response waits for its replay to be read from the session stream (G-085)."""

MAX_HTTP_CONNECTIONS = 1024
"""Streamable HTTP connections of one token, and client ids at `/acp/rpc`: the server cannot see that a client is gone
which never sends DELETE, and one token must not use up what others need."""

HTTP_CONNECTIONS_TOGETHER = 16 * MAX_HTTP_CONNECTIONS
"""`MAX_HTTP_CONNECTIONS` for all tokens together: memory."""

TOKEN_SHARE = 0.5
"""Share of the connections that one token may have, as WebSockets and running requests: behind a proxy all clients have
one address, and one token must not keep the others out."""

HTTP_IDLE = 300.0
"""Seconds without a request or an open stream until a Streamable HTTP connection ends; its sessions stay."""

HTTP_UNUSED = 60.0
"""`HTTP_IDLE` for a connection that was never used: with `serve.inline`, scripts initialize and go on without it."""

MAX_STREAMS = 1024
"""Session streams of one connection (G-123)."""

STREAM_BYTES = 2 * 1024 * 1024
"""Bytes queued for a reader of an event stream above which it reads on from the journal."""

UNREAD_STREAM_BYTES = 16 * 1024 * 1024
"""`STREAM_BYTES` for a stream that was never opened: a replay must fit before its response is sent."""

MAX_UNREAD_BYTES = 64 * 1024 * 1024
"""Bytes queued on all streams of a connection before it is ended (G-123)."""

KEPT_MESSAGES = 64
"""Responses and questions stored per stream, to be sent again to a reader that reconnects."""

KEPT_BYTES = 4 * 1024 * 1024
"""Bytes of those messages together; the last one is always stored."""

KEPT_ON_ONE_STREAM = 1024
"""`KEPT_MESSAGES` for a client whose sessions share one stream, where updates are stored too."""

MAX_LOGINS = 256
"""Logins per token; the least recently used are logged out: a holder of the token could fill the disk."""

MAX_PAGE_SECRETS = 8
"""Page secrets per browser cookie: each opening of the printed address creates one."""

MAX_API_BYTES = 4 * 1024 * 1024
"""Bytes in the body of a REST request; for long prompts with images there is ACP."""
