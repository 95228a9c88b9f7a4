"""A scripted ACP agent that runs the hook which its settings name before each tool call, as Qwen Code does.

A prompt is JSON: `{"calls": [{"id", "tool", "input"}], "ask": "before" | "after"}`. All calls run at once; with `ask`
the agent also asks about each itself, before the hook or after it. What came of each is told as one line of JSON, with
the decisions that the audit in the folder `audit` of a call had when the hook answered. With `"hooks": "off"` it runs
them without hooks, then waits to be cancelled. Standard library only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class Agent:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[int, Any] = {}
        self._arrived = threading.Condition()
        self._asked = 0
        self._cancelled = threading.Event()

    def send(self, **message: Any) -> None:
        with self._lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                with self._arrived:
                    self._answers[message["id"]] = message.get("result")
                    self._arrived.notify_all()
            elif message["method"] == "session/prompt":
                threading.Thread(target=self.prompt, args=(message,), daemon=True).start()
            elif message["method"] == "session/cancel":
                self._cancelled.set()
            elif "id" in message:
                results = {"initialize": {"protocolVersion": 1, "agentCapabilities": {}}}
                results["session/new"] = {"sessionId": "s1"}
                self.send(id=message["id"], result=results.get(message["method"], {}))

    def prompt(self, message: Any) -> None:
        self._cancelled.clear()
        script = json.loads(message["params"]["prompt"][0]["text"])
        if script.get("hooks") == "off":
            for call in script["calls"]:
                self.update(sessionUpdate="tool_call_update", toolCallId=call["id"], status="completed")
            self._cancelled.wait(30)
            self.send(id=message["id"], result={"stopReason": "cancelled"})
            return
        with ThreadPoolExecutor(max(len(script["calls"]), 1)) as pool:
            came = list(pool.map(lambda call: self.call(call, script.get("ask")), script["calls"]))
        content = {"type": "text", "text": json.dumps(came)}
        self.update(sessionUpdate="agent_message_chunk", content=content)
        self.send(id=message["id"], result={"stopReason": "end_turn"})

    def call(self, call: Any, ask: str | None) -> Any:
        told = {"toolCallId": call["id"], "title": call["tool"], "kind": call.get("kind", "other")}
        if not call.get("untold"):
            self.update(sessionUpdate="tool_call", status="pending", rawInput=call["input"], **told)
        came: dict[str, Any] = {}
        if ask == "before":
            came["answer"] = self.ask({**told, "rawInput": call["input"]})
        if came.get("answer", "yes") == "yes":
            came["code"], came["out"], came["err"] = hook(call)
            if "audit" in call:
                came["recorded"] = decisions(call["audit"], call["id"])
        if ask == "after" and came["code"] == 0:
            came["answer"] = self.ask({**told, "rawInput": call["input"]})
        ran = came.get("answer", "yes") == "yes" and came.get("code") == 0
        status = "completed" if ran else "failed"
        if not call.get("untold"):
            self.update(sessionUpdate="tool_call_update", toolCallId=call["id"], status=status)
        return came

    def update(self, **update: Any) -> None:
        self.send(method="session/update", params={"sessionId": "s1", "update": update})

    def ask(self, tool: Any) -> Any:
        with self._arrived:
            self._asked += 1
            number = self._asked
        question = {"sessionId": "s1", "toolCall": tool, "options": OPTIONS}
        self.send(id=number, method="session/request_permission", params=question)
        with self._arrived:
            self._arrived.wait_for(lambda: number in self._answers)
            return self._answers[number]["outcome"].get("optionId")


def decisions(folder: str, call_id: str) -> int:
    lines = [line for file in Path(folder).rglob("*.ndjson") for line in file.read_text().splitlines()]
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return sum((each.get("kind"), each.get("call")) == ("decision", call_id) for each in found)


def hook(call: Any) -> tuple[int, str, str]:
    with open(os.environ["QWEN_CODE_SYSTEM_SETTINGS_PATH"]) as file:
        line = json.load(file)["hooks"]["PreToolUse"][-1]["hooks"][0]["command"]
    told = {"session_id": "s1", "tool_name": call["tool"], "tool_input": call["input"]}
    told["tool_use_id"] = f"other-{call['id']}"
    told["tool_call_id"] = call["id"]
    ended = subprocess.run(["bash", "-c", line], input=json.dumps(told), capture_output=True, text=True)
    return ended.returncode, ended.stdout, ended.stderr


if __name__ == "__main__":
    Agent().run()
