"""Many clients that watch one session over a unix socket and only count lines; run as a script, standard library alone.

    watchers.py SOCKET COUNT LOAD_PARAMS

Says `attached` when all have loaded the session; then, for each number read from stdin, `counting`, and `done` when
every one of them has seen that many updates more.
"""

import json
import select
import socket
import sys

READ_SIZE = 1 << 18
MARK = b"agent_message_chunk"


def read_line(connection: socket.socket) -> None:
    """Read up to the response to the request that was sent last."""
    data = b""
    while b'"id":"w"' not in data:
        data += connection.recv(READ_SIZE)


def attach(path: str, params: dict[str, object]) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    for method, arguments in (("initialize", {"protocolVersion": 1}), ("session/load", params)):
        message = {"jsonrpc": "2.0", "id": "w", "method": method, "params": arguments}
        connection.sendall(json.dumps(message).encode() + b"\n")
        read_line(connection)
    return connection


def count(connections: list[socket.socket], wanted: int) -> None:
    poll = select.poll()
    by_number = {connection.fileno(): connection for connection in connections}
    missing = dict.fromkeys(by_number, wanted)
    rest = dict.fromkeys(by_number, b"")
    for number in by_number:
        poll.register(number, select.POLLIN)
    while missing:
        for number, _ in poll.poll(60_000):
            data = rest[number] + by_number[number].recv(READ_SIZE)
            missing[number] -= data.count(MARK)
            rest[number] = data[-len(MARK) + 1 :]
            if missing[number] <= 0:
                del missing[number]
                poll.unregister(number)


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    everybody = [attach(sys.argv[1], json.loads(sys.argv[3])) for _ in range(int(sys.argv[2]))]
    say("attached")
    for line in sys.stdin:
        say("counting")
        count(everybody, int(line))
        say("done")
