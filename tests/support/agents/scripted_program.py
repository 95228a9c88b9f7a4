"""The scripted agent itself: its sessions, and what clients may call. See ``scripted_agent.py``."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from support.agents.scripted_connection import Connection, RpcError
    from support.agents.scripted_directives import Turn, run_script
    from support.agents.scripted_flags import Flags

    Params = dict[str, Any]
else:
    from scripted_connection import Connection, RpcError
    from scripted_directives import Turn, run_script
    from scripted_flags import Flags

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


class Agent:
    """One agent process: its sessions, and a method table for what clients may call."""

    def __init__(self, flags: Flags) -> None:
        self.flags = flags
        journal = flags.journal_file and flags.journal_file.replace("{pid}", str(os.getpid()))
        self.connection = Connection(journal, flags.request_ids)
        self.scripts: dict[str, str] = {}
        if flags.script:
            with open(flags.script) as file:
                self.scripts = json.load(file)
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

            def say(text: str = f"late {number}") -> None:
                self.connection.say(session, text)

            self.connection.after_response(say)
        return self.session_state()

    def resume(self, params: Params) -> Params:
        if self.flags.no_resume_method:
            raise RpcError(-32601, "Method not found")
        while self.flags.resume_gate and not os.path.exists(self.flags.resume_gate):
            time.sleep(0.01)
        self.remember(params)
        return self.session_state()

    def remember(self, params: Params) -> str:
        session = params["sessionId"]
        if not isinstance(session, str) or session.startswith("gone"):
            raise RpcError(-32002, "no such session", {"sessionId": session})
        if self.flags.folder_bound and os.getcwd() != os.path.realpath(params["cwd"]):
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


def main(program: str) -> None:
    flags = Flags(sys.argv[1:])
    if flags.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stderr.write(flags.stderr_on_start)
    sys.stderr.flush()
    if flags.exit_on_start is not None:
        sys.exit(flags.exit_on_start)
    if flags.spawn_child:
        import subprocess

        rest = [argument for argument in sys.argv[1:] if argument != "--spawn-child"]
        sys.exit(subprocess.run([sys.executable, "-S", "-E", program, *rest]).returncode)
    agent = Agent(flags)
    for number in range(flags.chatter):
        agent.connection.send_bytes(b"starting up, step %d\n" % number)
    agent.serve()
    os._exit(0)  # daemon threads may hold the stdout lock: a normal exit could wait for it
