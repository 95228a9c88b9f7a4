"""A scripted ACP agent over real pipes, for tests: it does what the prompt's lines tell it to.

Run it as a program. Flags decide how it starts and what it advertises; every line of a prompt is a
directive (see ``scripted_directives.DIRECTIVES``), run in order; a line that is no directive is said back.
Standard library only, no package needed, so that it starts fast and shares no code with what is tested.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from scripted_connection import Connection, RpcError
from scripted_directives import Turn, run_script

Params = dict[str, Any]

MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}
MODELS = {
    "currentModelId": "small",
    "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "large", "name": "Large"}],
}
CONFIG_OPTIONS = [
    {
        "id": "model",
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": "small",
        "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
    }
]
ALL_SESSION_METHODS = {
    "loadSession": True,
    "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}},
}


def parse_flags(arguments: list[str]) -> argparse.Namespace:
    flags = argparse.ArgumentParser(description=__doc__)
    add = flags.add_argument
    add(
        "--session-ids",
        default="s",
        metavar="PREFIX",
        help="ids are PREFIX1, PREFIX2, ... in every process; {pid} is replaced",
    )
    add(
        "--request-ids",
        choices=("zero", "string", "big"),
        default="zero",
        help="this agent's own request ids",
    )
    add("--early-updates", type=int, default=0, metavar="N", help="updates for a new id before its response")
    add("--early-size", type=int, default=0, metavar="N", help="how long these are")
    add("--late-commands", action="store_true", help="available_commands_update right after session/new")
    add("--caps", type=json.loads, default=None, metavar="JSON", help="agentCapabilities, instead of all")
    add("--auth", type=json.loads, default=[], metavar="JSON", help="authMethods")
    add("--auth-required", action="store_true", help="session/new fails with -32000 until authenticated")
    add("--info", type=json.loads, default=None, metavar="JSON", help="more fields for the initialize result")
    add("--version", default="1.0.0", help="agentInfo.version")
    add("--init-delay", type=float, default=0.0, metavar="SECONDS")
    add("--init-error", action="store_true", help="initialize fails with -32603")
    add("--init-garbage", action="store_true", help="initialize is answered with a line that is not JSON")
    add("--chatter", type=int, default=0, metavar="N", help="lines that are not JSON before everything else")
    add("--new-error", action="store_true", help="session/new fails with code 4242 and data")
    add("--new-hang", action="store_true", help="session/new is never answered")
    add("--hang", action="append", default=[], metavar="METHOD", help="a method that is never answered")
    add("--new-extra", type=json.loads, default={}, metavar="JSON", help="more fields for session results")
    add(
        "--answer",
        action="append",
        nargs=2,
        default=[],
        metavar=("METHOD", "MEMBERS"),
        help="answer a method with these members, as they are: '\"result\":[]'",
    )
    add("--modes", action="store_true")
    add("--models", action="store_true")
    add("--config-options", action="store_true")
    add(
        "--list", type=json.loads, default=None, metavar="JSON", help="the sessions that session/list answers"
    )
    add("--script", default=None, metavar="PATH", help="JSON: what to do for a prompt that reads so")
    add("--load-replay", type=int, default=0, metavar="N", help="updates that session/load replays")
    add("--load-run", default="", metavar="LINES", help="directives that session/load runs after its replay")
    add("--load-late", type=int, default=0, metavar="N", help="updates right after the load response")
    add(
        "--folder-bound",
        action="store_true",
        help="loads and resumes only sessions of the folder that its process runs in, as gemini does",
    )
    add("--no-resume-method", action="store_true", help="advertises resume, answers -32601")
    add("--no-cancel-answer", action="store_true", help="session/cancel is ignored")
    add("--honour-cancel-request", action="store_true", help="$/cancel_request of a prompt answers -32800")
    add("--ignore-eof", action="store_true", help="goes on living after stdin closed")
    add("--ignore-term", action="store_true", help="SIGTERM is ignored")
    add("--exit-on-start", type=int, default=None, metavar="CODE")
    add("--stderr-on-start", default="", metavar="TEXT")
    add("--spawn-child", action="store_true", help="runs itself again as a child, as gemini does")
    add("--journal-file", default=None, metavar="PATH", help="append each received line; {pid} is replaced")
    return flags.parse_args(arguments)


class Agent:
    """One agent process: its sessions, and a method table for what clients may call."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        journal = flags.journal_file and Path(flags.journal_file.replace("{pid}", str(os.getpid())))
        self.connection = Connection(journal, flags.request_ids)
        self.scripts: dict[str, str] = json.loads(Path(flags.script).read_text()) if flags.script else {}
        self.sessions: dict[str, Params] = {}
        self.session_numbers = itertools.count(1)
        self.turns: dict[str, Turn] = {}
        self.authenticated = not flags.auth_required
        self.frozen = threading.Event()
        self.requests: dict[str, Callable[[Params], Any]] = {
            "initialize": self.initialize,
            "authenticate": self.authenticate,
            "logout": lambda params: {},
            "session/new": self.new,
            "session/fork": self.new,
            "session/load": self.load,
            "session/resume": self.resume,
            "session/list": self.list,
            "session/close": self.close,
            "session/delete": lambda params: {},
            "session/set_mode": self.set_mode,
            "session/set_model": self.set_model,
            "session/set_config_option": self.set_config_option,
            "_echo": lambda params: params,
        }

    # What clients call

    def initialize(self, params: Params) -> Params:
        flags = self.flags
        if flags.init_delay:
            time.sleep(flags.init_delay)
        if flags.init_error:
            raise RpcError(-32603, "initialize refused by the script", {"why": "init-error"})
        if flags.init_garbage:
            self.connection.send_bytes(b"this is not JSON\n")
            threading.Event().wait()
        return {
            "protocolVersion": 1,
            "agentCapabilities": ALL_SESSION_METHODS if flags.caps is None else flags.caps,
            "agentInfo": {"name": "scripted", "version": flags.version},
            "authMethods": flags.auth,
            **(flags.info or {}),
        }

    def authenticate(self, params: Params) -> Params:
        known = [method["id"] for method in self.flags.auth]
        if params.get("methodId") not in known:
            raise RpcError(-32602, "unknown method id", {"known": known})
        self.authenticated = True
        return {}

    def new(self, params: Params) -> Params:
        if not self.authenticated:
            raise RpcError(-32000, "Authentication required")
        if self.flags.new_error:
            raise RpcError(4242, "session/new refused by the script", {"why": "new-error", "big": 2**60})
        if self.flags.new_hang:
            threading.Event().wait()
        prefix = self.flags.session_ids.replace("{pid}", str(os.getpid()))
        session = f"{prefix}{next(self.session_numbers)}"
        self.sessions[session] = params
        for number in range(self.flags.early_updates):
            self.connection.say(session, f"early {number}".ljust(self.flags.early_size))
        if self.flags.late_commands:
            self.connection.after_response(lambda: self.send_commands(session))
        return {"sessionId": session, **self.session_state()}

    def load(self, params: Params) -> Params:
        session = self.remember(params)
        for number in range(self.flags.load_replay):
            self.connection.say(session, f"replay {number}")
        if self.flags.load_run:
            script = {"prompt": [{"type": "text", "text": self.flags.load_run}]}
            run_script(Turn(self.connection, session, None, script, freeze=self.frozen.set), {})
        for number in range(self.flags.load_late):
            self.connection.after_response(partial(self.connection.say, session, f"late {number}"))
        return self.session_state()

    def resume(self, params: Params) -> Params:
        if self.flags.no_resume_method:
            raise RpcError(-32601, "Method not found")
        self.remember(params)
        return self.session_state()

    def remember(self, params: Params) -> str:
        session = params["sessionId"]
        if not isinstance(session, str) or session.startswith("gone"):
            raise RpcError(-32002, "no such session", {"sessionId": session})
        if self.flags.folder_bound and Path.cwd() != Path(params["cwd"]).resolve():
            missing = "No previous sessions found for this project"
            raise RpcError(-32603, "Internal error", {"details": missing})
        self.sessions[session] = params
        return session

    def list(self, params: Params) -> Params:
        if self.flags.list is not None:
            return {"sessions": self.flags.list}
        known = [{"sessionId": key, "cwd": value.get("cwd")} for key, value in self.sessions.items()]
        return {"sessions": known}

    def close(self, params: Params) -> Params:
        turn = self.turns.get(params["sessionId"])
        if turn:
            turn.cancelled.set()
            turn.finished.wait(10)
        self.sessions.pop(params["sessionId"], None)
        return {}

    def set_mode(self, params: Params) -> Params:
        update = {"sessionUpdate": "current_mode_update", "currentModeId": params["modeId"]}
        self.connection.update(params["sessionId"], update)
        return {}

    def set_model(self, params: Params) -> Params:
        if not self.flags.models:
            raise RpcError(-32601, "Method not found", {"method": "session/set_model"})
        return {}

    def set_config_option(self, params: Params) -> Params:
        options = [
            {**option, "currentValue": params["value"]} if option["id"] == params["configId"] else option
            for option in CONFIG_OPTIONS
        ]
        return {"configOptions": options}

    # State that several of them answer with

    def session_state(self) -> Params:
        offered = {
            "modes": (self.flags.modes, MODES),
            "models": (self.flags.models, MODELS),
            "configOptions": (self.flags.config_options, CONFIG_OPTIONS),
        }
        state = {key: value for key, (on, value) in offered.items() if on}
        return {**state, **self.flags.new_extra}

    def send_commands(self, session: str) -> None:
        commands = [{"name": "plan", "description": "Make a plan", "input": {"hint": "what for"}}]
        update = {"sessionUpdate": "available_commands_update", "availableCommands": commands}
        self.connection.update(session, update)

    # The loop

    def serve(self) -> None:
        for message in self.connection.messages():
            self.receive(message)
            if self.frozen.is_set():
                threading.Event().wait()
        if self.flags.ignore_eof:
            threading.Event().wait()

    def receive(self, message: Params) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            self.connection.settle(message)
        elif method == "session/prompt" and "id" in message:
            self.start_turn(message["id"], params)
        elif "id" in message:
            # A thread each, so that a request that hangs does not stop the reader.
            threading.Thread(target=self.answer, args=(message, params), daemon=True).start()
        elif method == "session/cancel":
            self.cancel(params)
        elif method == "$/cancel_request":
            self.cancel_request(params)

    def answer(self, message: Params, params: Params) -> None:
        handler = self.requests.get(message["method"])
        members = dict(self.flags.answer).get(message["method"])
        if members is not None:
            line = f'{{"jsonrpc":"2.0","id":{json.dumps(message["id"])},{members}}}\n'
            self.connection.send_bytes(line.encode())
            return
        if message["method"] in self.flags.hang:
            return
        with self.connection.answering(message["id"]) as reply:
            if handler is None:
                raise RpcError(-32601, "Method not found", {"method": message["method"]})
            reply.result = handler(params)

    def start_turn(self, request_id: Any, params: Params) -> None:
        session = params["sessionId"]
        turn = Turn(self.connection, session, request_id, params, freeze=self.frozen.set)
        self.turns[session] = turn
        threading.Thread(target=self.run_turn, args=(turn,), daemon=True).start()

    def run_turn(self, turn: Turn) -> None:
        try:
            with self.connection.answering(turn.request_id) as reply:
                if turn.session not in self.sessions:
                    raise RpcError(-32002, "no such session", {"sessionId": turn.session})
                reply.result = run_script(turn, self.scripts)
        finally:
            turn.finished.set()

    def cancel(self, params: Params) -> None:
        turn = self.turns.get(params.get("sessionId", ""))
        if turn and not self.flags.no_cancel_answer:
            turn.cancelled.set()

    def cancel_request(self, params: Params) -> None:
        for turn in self.turns.values():
            if turn.request_id == params.get("requestId") and self.flags.honour_cancel_request:
                turn.request_cancelled = True
                turn.cancelled.set()


def main() -> None:
    flags = parse_flags(sys.argv[1:])
    if flags.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stderr.write(flags.stderr_on_start)
    sys.stderr.flush()
    if flags.exit_on_start is not None:
        sys.exit(flags.exit_on_start)
    if flags.spawn_child:
        rest = [argument for argument in sys.argv[1:] if argument != "--spawn-child"]
        sys.exit(subprocess.run([sys.executable, "-S", "-E", __file__, *rest]).returncode)
    agent = Agent(flags)
    for number in range(flags.chatter):
        agent.connection.send_bytes(b"starting up, step %d\n" % number)
    agent.serve()
    os._exit(0)  # daemon threads may hold the stdout lock: a normal exit could wait for it


if __name__ == "__main__":
    main()
