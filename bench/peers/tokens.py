"""An agent that says `tokens N` or `lines N`: so many small pieces, or so many lines, as fast as they are read."""

from __future__ import annotations

import json
import sys
from typing import Any

TOKENS_A_LINE = 12
LINES_A_CHUNK = 20


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def say(session: str, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def prompt(session: str, words: list[str]) -> None:
    count = int(words[1])
    if words[0] == "tokens":
        for number in range(count):
            say(session, f"word{number % 100}" + ("\n" if number % TOKENS_A_LINE == 0 else " "))
            sys.stdout.flush()
    else:
        for number in range(0, count, LINES_A_CHUNK):
            say(session, "".join(f"line {number + one} of the output\n" for one in range(LINES_A_CHUNK)))
    say(session, "\nthat is all\n")


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        method, params = request.get("method"), request.get("params", {})
        if method == "initialize":
            result: dict[str, Any] = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
        elif method == "session/new":
            result = {"sessionId": "s"}
        elif method == "session/prompt":
            prompt(params["sessionId"], params["prompt"][0]["text"].split())
            result = {"stopReason": "end_turn"}
        else:
            result = {}
        if "id" in request:
            send({"id": request["id"], "result": result})
            sys.stdout.flush()


if __name__ == "__main__":
    main()
