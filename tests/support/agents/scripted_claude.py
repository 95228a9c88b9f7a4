"""A scripted `claude` in stream-json mode, for tests: it does what the prompt's lines tell it to.

Written from the wire as observed with claude 2.1.197 and 2.1.325. Run it as a program with the real flags; what only
tests need is in flags of its own (`--x-...`). Standard library only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Line = dict[str, Any]

MODELS: list[Line] = [
    {
        "value": "default",
        "resolvedModel": "claude-opus-4-8",
        "displayName": "Default",
        "supportedEffortLevels": ["low", "high"],
        "supportsAutoMode": True,
    },
    {"value": "haiku", "resolvedModel": "claude-haiku-4-5", "displayName": "Haiku", "description": "Fast"},
]
COMMANDS = [
    {"name": "compact", "description": "Clear the conversation", "argumentHint": "<instructions>"},
    {"name": "review", "description": "Review", "argumentHint": ""},
]


def parse() -> argparse.Namespace:
    flags = argparse.ArgumentParser()
    flags.add_argument("-p", action="store_true")
    permissions = ("dangerously-skip-permissions", "allow-dangerously-skip-permissions")
    for name in ("verbose", "include-partial-messages", "fork-session", *permissions):
        flags.add_argument(f"--{name}", action="store_true")
    words = ("input-format", "output-format", "permission-prompt-tool", "session-id", "resume")
    for name in (*words, "permission-mode", "resume-session-at"):
        flags.add_argument(f"--{name}")
    flags.add_argument("--add-dir", action="append", default=[])
    flags.add_argument("--version", action="store_true")
    flags.add_argument("--x-version", default="2.1.325")
    flags.add_argument("--x-tireless", action="store_true", help="always stops at its turn limit")
    flags.add_argument("--x-offer", type=Path, help="waits for this file; its models, or its last words")
    flags.add_argument("--x-mute", action="store_true", help="says nothing, ever, but garbage")
    return flags.parse_args()


class Claude:
    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.session = flags.session_id or flags.resume or str(uuid.uuid4())
        self.mode, self.model = "default", "claude-opus-4-8"
        self.settings: Line = {}
        self.servers: Line = {}
        self.interrupted = threading.Event()
        self.answers: dict[str, queue.Queue[Line]] = {}
        self.turns: queue.Queue[Line | None] = queue.Queue()
        self.hooks: list[str] = []
        self.count = itertools.count(1)
        self.lock = threading.Lock()
        self.cost = 0.0
        self.ended = False
        self.last: str | None = None

    # -- lines

    def write(self, line: Line) -> None:
        with self.lock:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def say(self, line: Line) -> None:
        common = {"parent_tool_use_id": None, "session_id": self.session, "uuid": str(uuid.uuid4())}
        self.write({**line, **common})

    def record(self, line: Line) -> None:
        folder = "".join(c if c.isalnum() else "-" for c in str(Path.cwd()))
        file = Path(os.environ["CLAUDE_CONFIG_DIR"], "projects", folder, f"{self.session}.jsonl")
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as out:
            own = {"uuid": str(uuid.uuid4()), "parentUuid": self.last, **line}
            self.last = own["uuid"]
            kept = {**own, "isSidechain": False, "cwd": str(Path.cwd()), "sessionId": self.session}
            out.write(json.dumps(kept) + "\n")

    # -- input

    def read(self) -> None:
        for raw in sys.stdin:
            try:
                line = json.loads(raw)
            except ValueError:
                os._exit(1)  # as the real one does
            kind = line["type"]
            if kind == "user":
                self.turns.put(line)
            elif kind == "control_response":
                response = line["response"]
                self.answers[response["request_id"]].put(response)
            elif kind == "control_request":
                self.control(line["request_id"], line["request"])
        self.turns.put(None)

    def models(self) -> list[Line]:
        file = self.flags.x_offer
        if file is None:
            return MODELS
        while not file.exists():
            time.sleep(0.01)
        offer: Line = json.loads(file.read_text())
        if "last words" in offer:
            sys.stderr.write(offer["last words"])
            sys.stderr.flush()
            os._exit(3)
        return [each for each in MODELS if each["value"] in offer["models"]]

    def control(self, id: str, request: Line) -> None:
        subtype = request["subtype"]
        response: Line | None = None
        if subtype == "initialize":
            self.hooks = [each for entry in (request["hooks"] or {}).get("PreToolUse", [])
                          for each in entry["hookCallbackIds"]]  # fmt: skip
            response = {"commands": COMMANDS, "models": self.models(), "agents": [], "account": {}}
        elif subtype == "set_permission_mode":
            if request["mode"] == "bypassPermissions":
                self.write(
                    {
                        "type": "control_response",
                        "response": {"subtype": "error", "request_id": id, "error": "no"},
                    }
                )
                return
            self.mode = request["mode"]
            response = {"mode": self.mode}
        elif subtype == "set_model":
            self.model = {"haiku": "claude-haiku-4-5"}.get(request["model"], "claude-opus-4-8")
            noted = f"<local-command-stdout>Set model to {request['model']}</local-command-stdout>"
            self.say({"type": "user", "message": {"role": "user", "content": noted}, "isReplay": True})
        elif subtype == "apply_flag_settings":
            self.settings.update(request["settings"])
        elif subtype == "mcp_set_servers":
            self.servers = request["servers"]
            response = {"added": list(self.servers), "removed": [], "errors": {}}
        elif subtype == "interrupt":
            response = {"still_queued": []}
        elif subtype == "get_usage":
            response = {"session": {"total_cost_usd": self.cost, "model_usage": {}}}
        body: Line = {"subtype": "success", "request_id": id}
        if response is not None:
            body["response"] = response
        self.write({"type": "control_response", "response": body})
        if subtype == "set_permission_mode":
            self.say({"type": "system", "subtype": "status", "status": None, "permissionMode": self.mode})
        if subtype == "interrupt":
            self.interrupted.set()
            for asked, answers in self.answers.items():
                self.write({"type": "control_cancel_request", "request_id": asked})
                answers.put({"subtype": "cancelled"})

    # -- turns

    def run(self) -> None:
        if self.flags.resume and not self.known(self.flags.resume):
            said = f"No conversation found with session ID: {self.flags.resume}"
            self.say(
                {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": [said]}
            )
            sys.stderr.write(said + "\n")
            sys.exit(1)
        if self.flags.fork_session:
            for kept in self.transcript(self.flags.resume):
                self.record(kept)
                if kept["uuid"] == self.flags.resume_session_at:
                    break
        elif self.flags.resume:
            self.last = self.transcript(self.flags.resume)[-1].get("uuid")
        threading.Thread(target=self.read, daemon=True).start()
        while (line := self.turns.get()) is not None:
            self.interrupted.clear()
            self.ended = False
            self.turn(line)

    def transcript(self, session: str) -> list[Line]:
        """The lines of a session; one that was cut off is skipped, as the real program does."""
        lines = []
        for file in Path(os.environ["CLAUDE_CONFIG_DIR"]).glob(f"projects/*/{session}.jsonl"):
            for line in file.read_text().splitlines():
                with suppress(ValueError):
                    lines.append(json.loads(line))
        return lines

    def known(self, session: str) -> bool:
        return any(Path(os.environ["CLAUDE_CONFIG_DIR"]).glob(f"projects/*/{session}.jsonl"))

    def turn(self, line: Line) -> None:
        self.record({"type": "user", "message": line["message"]})
        self.say({"type": "system", "subtype": "init", "model": self.model, "permissionMode": self.mode,
                  "cwd": str(Path.cwd()), "claude_code_version": self.flags.x_version})  # fmt: skip
        blocks = line["message"]["content"]
        script = blocks if isinstance(blocks, str) else "\n".join(b.get("text", "") for b in blocks)
        for step in script.splitlines():
            word, _, rest = step.partition(" ")
            DIRECTIVES.get(word, Claude.text)(self, rest if word in DIRECTIVES else step)
            if self.interrupted.is_set():
                self.text_line("user", "[Request interrupted by user]")
                self.result("error_during_execution", is_error=True, terminal_reason="aborted_streaming")
                return
            if self.ended:
                return
        self.result("error_max_turns" if self.flags.x_tireless else "success", result="done")

    def result(self, subtype: str, **members: Any) -> None:
        self.cost += 0.25
        usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 0}
        line = {"type": "result", "subtype": subtype, "is_error": False, "stop_reason": "end_turn",
                "total_cost_usd": self.cost, "usage": usage,
                "modelUsage": {self.model: {"contextWindow": 200000}}}  # fmt: skip
        self.say({**line, **members})
        self.ended = True

    def text_line(self, role: str, text: str) -> None:
        self.say({"type": role, "message": {"role": role, "content": [{"type": "text", "text": text}]}})

    def event(self, event: Line) -> None:
        self.say({"type": "stream_event", "event": event})

    def block(self, kind: str, member: str, text: str) -> None:
        """Deltas, then the same again as a whole message, then the end of the block."""
        message = f"msg_{next(self.count)}"
        usage = {"input_tokens": 100, "output_tokens": 20}
        self.event({"type": "message_start", "message": {"id": message}})
        self.event({"type": "content_block_start", "index": 0, "content_block": {"type": kind, member: ""}})
        for part in (text[: len(text) // 2], text[len(text) // 2 :]):
            self.event(
                {"type": "content_block_delta", "index": 0, "delta": {"type": f"{kind}_delta", member: part}}
            )
        self.whole(message, {"type": kind, member: text})
        self.event({"type": "content_block_stop", "index": 0})
        self.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})

    def whole(self, message: str, block: Line) -> None:
        line = {"type": "assistant", "message": {"id": message, "role": "assistant", "content": [block]}}
        self.record(line)
        self.say(line)

    def text(self, text: str) -> None:
        self.block("text", "text", text)

    def think(self, text: str) -> None:
        self.block("thinking", "thinking", text)

    # -- tools

    def tool(
        self, name: str, given: Line, ask: bool, suggestions: list[Line], content: Any, detail: Any
    ) -> None:
        message, tool = f"msg_{next(self.count)}", f"toolu_{next(self.count)}"
        self.event({"type": "message_start", "message": {"id": message}})
        begun = {"type": "tool_use", "id": tool, "name": name, "input": {}}
        self.event({"type": "content_block_start", "index": 0, "content_block": begun})
        self.whole(message, {**begun, "input": given})
        said = self.call_hooks(name, given, tool)
        answer: Line = {"behavior": "allow", "updatedInput": given}
        if said.get("permissionDecision") == "deny":
            answer = {"behavior": "deny", "message": said["permissionDecisionReason"]}
        elif said.get("permissionDecision") == "ask" or (ask and not said):
            answer = self.ask(name, given, tool, suggestions)
        failed = answer["behavior"] != "allow"
        if failed:
            content, detail = answer.get("message", "withdrawn"), "User rejected tool use"
        elif callable(content):
            content = content(answer)
        block = {"type": "tool_result", "tool_use_id": tool, "content": content, "is_error": failed}
        line = {"type": "user", "message": {"role": "user", "content": [block]}}
        self.record({**line, "toolUseResult": detail})
        self.say({**line, "tool_use_result": detail})
        if answer.get("interrupt"):
            self.interrupted.set()

    def call_hooks(self, name: str, given: Line, tool: str) -> Line:
        """What the hooks decided about a call; nothing if they have no opinion."""
        called = {
            "hook_event_name": "PreToolUse",
            "tool_name": name,
            "tool_input": given,
            "tool_use_id": tool,
        }
        for hook in self.hooks:
            request = {"subtype": "hook_callback", "callback_id": hook, "input": called, "tool_use_id": tool}
            said = (self.request(request).get("response") or {}).get("hookSpecificOutput")
            if said:
                return dict(said)
        return {}

    def request(self, request: Line) -> Line:
        id = str(uuid.uuid4())
        answers = self.answers[id] = queue.Queue()
        self.write({"type": "control_request", "request_id": id, "request": request})
        response = answers.get()
        del self.answers[id]
        return response

    def ask(self, name: str, given: Line, tool: str, suggestions: list[Line]) -> Line:
        response = self.request({"subtype": "can_use_tool", "tool_name": name, "input": given, "tool_use_id": tool,
                                 "permission_suggestions": suggestions})  # fmt: skip
        answer: Line = response.get("response") or {"behavior": "deny", "message": "cancelled"}
        for each in answer.get("updatedPermissions", []):
            if each["type"] == "setMode":
                self.mode = each["mode"]
                self.say({"type": "system", "subtype": "status", "status": None, "permissionMode": self.mode})
        return answer

    def bash(self, command: str) -> None:
        rule = {"toolName": "Bash", "ruleContent": f"{command} *"}
        suggestions = [
            {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings"}
        ]
        detail = {"stdout": f"ran {command}\n", "stderr": "", "interrupted": False}
        self.tool("Bash", {"command": command}, True, suggestions, lambda answer: json.dumps(answer), detail)

    def edit(self, path: str) -> None:
        hunk = {
            "oldStart": 7,
            "oldLines": 2,
            "newStart": 7,
            "newLines": 2,
            "lines": [" same", "-old", "+new"],
        }
        detail = {"filePath": path, "structuredPatch": [hunk], "originalFile": "same\nold\n"}
        given = {"file_path": path, "old_string": "old", "new_string": "new"}
        self.tool("Edit", given, False, [], "The file was edited", detail)

    def todo(self, text: str) -> None:
        todos = [{"content": text, "status": "in_progress", "activeForm": text}]
        self.tool("TodoWrite", {"todos": todos}, False, [], "ok", {"newTodos": todos})

    def exit_plan(self, plan: str) -> None:
        self.tool("ExitPlanMode", {"plan": plan}, True, [], "ok", None)

    def ask_user(self, question: str) -> None:
        options = [{"label": "red", "description": ""}, {"label": "blue", "description": ""}]
        given = {
            "questions": [{"question": question, "header": "?", "options": options, "multiSelect": False}]
        }
        self.tool("AskUserQuestion", given, True, [], lambda answer: json.dumps(answer["updatedInput"]), None)

    # -- trouble

    def fail(self, status: str) -> None:
        text = "Failed to authenticate. API Error: 401" if status == "401" else f"API Error: {status}"
        line = {"type": "assistant", "error": "unknown",
                "message": {"id": "x", "model": "<synthetic>", "role": "assistant",
                            "content": [{"type": "text", "text": text}]}}  # fmt: skip
        self.say(
            {
                "type": "system",
                "subtype": "api_retry",
                "attempt": 1,
                "max_retries": 10,
                "error_status": int(status),
            }
        )
        self.say(line)
        self.result("success", is_error=True, api_error_status=int(status), result=text)

    def stop(self, subtype: str) -> None:
        self.result(subtype, is_error=subtype.startswith("error"))

    def refuse(self, _: str) -> None:
        self.result("success", stop_reason="refusal")

    def hang(self, _: str) -> None:
        self.text("tick")
        self.interrupted.wait()

    def wait_for_words(self, _: str) -> None:
        """A line in the middle of a turn belongs to that turn."""
        self.text("waiting")
        line = self.turns.get()
        assert line is not None
        self.text("heard " + line["message"]["content"][0]["text"])

    def hook(self, printed: str) -> None:
        self.say({"type": "system", "subtype": "hook_response", "hook_name": "Stop", "stdout": printed,
                  "stderr": "", "exit_code": 2})  # fmt: skip

    def report(self, _: str) -> None:
        facts = {"mode": self.mode, "model": self.model, "settings": self.settings, "servers": self.servers,
                 "folders": self.flags.add_dir, "cwd": str(Path.cwd())}  # fmt: skip
        self.text("report " + json.dumps(facts))

    def recall(self, _: str) -> None:
        """What was said in this session before, by whatever way it came here."""
        said = [
            line["message"]["content"] for line in self.transcript(self.session) if line["type"] == "user"
        ]
        self.text("recall " + json.dumps(said))

    def die(self, code: str) -> None:
        sys.stderr.write("Something broke inside\n")
        sys.stderr.flush()
        os._exit(int(code or 1))

    def garbage(self, count: str) -> None:
        with self.lock:
            sys.stdout.write("this is not JSON\n" * int(count or 1))
            sys.stdout.flush()

    def logged_out(self, _: str) -> None:
        self.say(
            {"type": "system", "subtype": "auth_required", "content": "Please run /login to authenticate"}
        )
        self.interrupted.wait()


DIRECTIVES: dict[str, Callable[[Claude, str], None]] = {
    "think": Claude.think,
    "bash": Claude.bash,
    "edit": Claude.edit,
    "todo": Claude.todo,
    "plan": Claude.exit_plan,
    "question": Claude.ask_user,
    "fail": Claude.fail,
    "stop": Claude.stop,
    "refuse": Claude.refuse,
    "hang": Claude.hang,
    "report": Claude.report,
    "recall": Claude.recall,
    "wait-for-words": Claude.wait_for_words,
    "hook": Claude.hook,
    "die": Claude.die,
    "garbage": Claude.garbage,
    "logged-out": Claude.logged_out,
}


def main() -> None:
    flags = parse()
    if flags.version:
        sys.stdout.write(f"{flags.x_version} (Claude Code)\n")
        return
    if flags.x_mute:
        sys.stdout.write("Welcome!\n")
        sys.stdout.flush()
        sys.exit(3)
    Claude(flags).run()


if __name__ == "__main__":
    main()
