"""A scripted `codex app-server`, for tests: it does what the prompt's lines tell it to.

Written from the wire as observed with codex 0.166: JSON-RPC without `jsonrpc`, ids of its own from 0, camelCase items.
Run it as a program; what only tests need is in flags of its own (`--x-...`). Standard library only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Line = dict[str, Any]

EFFORTS = [{"reasoningEffort": level, "description": ""} for level in ("low", "high")]
MODELS = [
    {
        "id": "gpt-5.5",
        "model": "gpt-5.5",
        "displayName": "GPT-5.5",
        "description": "Good",
        "serviceTiers": [{"id": "fast", "name": "Fast", "description": "Dearer"}],
        "hidden": False,
        "supportedReasoningEfforts": EFFORTS,
        "defaultReasoningEffort": "low",
    },
    {
        "id": "small",
        "model": "gpt-small",
        "displayName": "Small",
        "hidden": False,
        "defaultReasoningEffort": "low",
    },
    {"id": "secret", "model": "secret", "displayName": "Secret", "hidden": True},
]


class Refused(Exception):
    """A request that is answered with an error."""


class Codex:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.own_ids = itertools.count(0)
        self.answers: dict[int, queue.Queue[Any]] = {}
        self.interrupted = threading.Event()
        self.words: queue.Queue[str] = queue.Queue()
        self.count = itertools.count(1)
        self.store = Path(os.environ["CODEX_HOME"])
        self.turn: Line = {}
        self.items: list[Line] = []
        self.ended = False
        self.asked: Line = {}
        self.config: Line = {}

    def write(self, line: Line) -> None:
        with self.lock:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def tell(self, method: str, **params: Any) -> None:
        common = {"threadId": self.turn.get("thread"), "turnId": self.turn.get("id")}
        self.write({"method": method, "params": {**common, **params}, "emittedAtMs": 1})

    # -- requests

    def run(self) -> None:
        for raw in sys.stdin:
            line = json.loads(raw)
            assert "jsonrpc" not in line, "codex does not write it, so neither do we"
            if "method" not in line:
                self.answers[line["id"]].put(line.get("result"))
            elif "id" in line:
                self.answer(line["id"], line["method"], line.get("params") or {})

    def answer(self, id: Any, method: str, params: Line) -> None:
        try:
            result = METHODS[method](self, params)
        except Refused as refusal:
            self.write({"id": id, "error": {"code": -32600, "message": str(refusal)}})
            return
        except KeyError as missing:
            self.write(
                {"id": id, "error": {"code": -32600, "message": f"no rollout found for thread id {missing}"}}
            )
            return
        self.write({"id": id, "result": result})
        if "input" in params and method != "turn/steer":
            turn = result.get("turn") or {"id": f"turn_{next(self.count)}"}
            self.turn = {"id": turn["id"], "thread": params["threadId"]}
            threading.Thread(target=self.play, args=(params,), daemon=True).start()

    def initialize(self, params: Line) -> Line:
        return {"userAgent": "dragoman/0.166.0 (Linux; x86_64) dragoman"}

    def unknown(self, params: Line) -> Line:
        raise Refused("Invalid request: unknown variant `thread/start`")

    def models(self, params: Line) -> Line:
        return {"data": MODELS, "nextCursor": None}

    def start(self, params: Line) -> Line:
        return self.opened(f"thr_{os.getpid()}_{next(self.count)}", params, [])

    def resume(self, params: Line) -> Line:
        return self.opened(params["threadId"], params, self.stored(params["threadId"])["turns"])

    def fork(self, params: Line) -> Line:
        turns = self.stored(params["threadId"])["turns"]
        ids = [turn["id"] for turn in turns]
        if params.get("lastTurnId"):
            turns = turns[: ids.index(params["lastTurnId"]) + 1]
        id = f"thr_{os.getpid()}_{next(self.count)}"
        self.keep(id, {"id": id, "cwd": params["cwd"], "turns": turns})
        return self.opened(id, params, turns)

    def opened(self, id: str, params: Line, turns: list[Line]) -> Line:
        self.config = params.get("config") or {}
        thread = {"id": id, "cwd": params["cwd"], "turns": [] if params.get("excludeTurns") else turns}
        sandbox = {"type": "workspaceWrite"}
        reviewer = "user"
        return {"thread": thread, "model": "gpt-5.5", "reasoningEffort": "low", "sandbox": sandbox,
                "approvalsReviewer": reviewer, "serviceTier": None}  # fmt: skip

    def read_thread(self, params: Line) -> Line:
        return {"thread": self.stored(params["threadId"])}

    def listed(self, params: Line) -> Line:
        threads = [json.loads(file.read_text()) for file in sorted(self.store.glob("thr_*.json"))]
        found = [each for each in threads if params.get("cwd") in (None, each["cwd"])]
        return {
            "data": [{**each, "preview": each.get("preview", ""), "updatedAt": 1700000000} for each in found]
        }

    def start_turn(self, params: Line) -> Line:
        self.interrupted.clear()
        return {
            "turn": {"id": f"turn_{next(self.count)}", "status": "inProgress", "items": [], "error": None}
        }

    def steer(self, params: Line) -> Line:
        assert params["expectedTurnId"] == self.turn["id"]
        self.words.put(params["input"][0]["text"])
        return {"turnId": self.turn["id"]}

    def review(self, params: Line) -> Line:
        params["input"] = [{"type": "text", "text": "reviewing " + json.dumps(params["target"])}]
        return self.start_turn(params)

    def compact(self, params: Line) -> Line:
        """Answers before its turn has an id."""
        self.start_turn(params)
        params["input"] = [{"type": "text", "text": "compacting"}]
        return {}

    def skills(self, params: Line) -> Line:
        skill = {"name": "dig", "description": "Dig a hole", "enabled": True}
        return {"data": [{"cwd": params["cwds"][0], "skills": [skill], "errors": []}]}

    def delete(self, params: Line) -> Line:
        self.stored(params["threadId"])
        (self.store / f"{params['threadId']}.json").unlink()
        return {}

    def unsubscribe(self, params: Line) -> Line:
        (self.store / "unsubscribed").write_text(params["threadId"])
        return {"status": "unsubscribed"}

    def interrupt(self, params: Line) -> Line:
        assert params["turnId"] == self.turn["id"]
        self.interrupted.set()
        for answers in list(self.answers.values()):
            answers.put(None)
        return {}

    def stored(self, id: str) -> Line:
        file = self.store / f"{id}.json"
        if not file.exists():
            raise KeyError(id)
        thread: Line = json.loads(file.read_text())
        return thread

    def keep(self, id: str, thread: Line) -> None:
        self.store.mkdir(parents=True, exist_ok=True)
        (self.store / f"{id}.json").write_text(json.dumps(thread))

    # -- turns

    def play(self, params: Line) -> None:
        self.asked, self.ended, self.items = params, False, []
        script = "\n".join(each.get("text", "") for each in params["input"])
        self.items.append({"type": "userMessage", "id": "u", "content": params["input"]})
        self.tell("turn/started", turn={"id": self.turn["id"], "status": "inProgress"})
        for step in script.splitlines():
            word, _, rest = step.partition(" ")
            DIRECTIVES.get(word, Codex.text)(self, rest if word in DIRECTIVES else step)
            if self.interrupted.is_set():
                self.end("interrupted")
            if self.ended:
                return
        self.end("completed")

    def end(self, status: str, error: Line | None = None) -> None:
        self.ended = True
        id = self.turn["thread"]
        file = self.store / f"{id}.json"
        thread = (
            json.loads(file.read_text())
            if file.exists()
            else {"id": id, "cwd": os.environ["TEST_CWD"], "turns": []}
        )
        thread["turns"].append({"id": self.turn["id"], "items": self.items})
        thread["preview"] = thread["turns"][0]["items"][0]["content"][0]["text"]
        self.keep(id, thread)
        last = {"totalTokens": 60, "inputTokens": 50, "outputTokens": 10, "cachedInputTokens": 20}
        for _ in range(2):  # two requests, each told twice
            thread["used"] = {name: thread.get("used", {}).get(name, 0) + last[name] for name in last}
            usage = {"last": last, "total": thread["used"], "modelContextWindow": 258400}
            self.tell("thread/tokenUsage/updated", tokenUsage=usage)
            self.tell("thread/tokenUsage/updated", tokenUsage=usage)
        self.keep(id, thread)
        self.tell("turn/completed", turn={"id": self.turn["id"], "status": status, "error": error})

    def done(self, item: Line) -> None:
        self.items.append(item)
        self.tell("item/completed", item=item)

    def text(self, text: str) -> None:
        id = f"item_{next(self.count)}"
        self.tell("item/started", item={"type": "agentMessage", "id": id, "text": ""})
        for part in (text[: len(text) // 2], text[len(text) // 2 :]):
            self.tell("item/agentMessage/delta", itemId=id, delta=part)
        self.done({"type": "agentMessage", "id": id, "text": text})

    def think(self, text: str) -> None:
        id = f"item_{next(self.count)}"
        self.tell("item/reasoning/summaryTextDelta", itemId=id, delta=text, summaryIndex=0)
        self.done({"type": "reasoning", "id": id, "summary": [text], "content": []})

    def ask(self, method: str, **params: Any) -> Any:
        id = next(self.own_ids)
        answers = self.answers[id] = queue.Queue()
        common = {
            "threadId": self.turn["thread"],
            "conversationId": self.turn["thread"],
            "turnId": self.turn["id"],
        }
        self.write({"id": id, "method": method, "params": {**common, **params}})
        answer = answers.get()
        del self.answers[id]
        self.tell("serverRequest/resolved", requestId=id)
        return answer

    def command(self, item: str, command: str) -> Line:
        return {"type": "commandExecution", "id": item, "command": f"/bin/bash -lc '{command}'", "cwd": "/w",
                "status": "inProgress", "commandActions": [], "aggregatedOutput": None, "exitCode": None,
                "durationMs": None}  # fmt: skip

    def bash(self, command: str) -> None:
        id = f"item_{next(self.count)}"
        item = self.command(id, command)
        self.tell("item/started", item=item)
        answer = self.ask("item/commandExecution/requestApproval", itemId=id, command=item["command"],
                          reason="because", proposedExecpolicyAmendment=["make"])  # fmt: skip
        self.ruled(item, answer, accepted={"accept", "acceptForSession"}, cancel="cancel")

    def stepwise(self, gate: str) -> None:
        """A command that prints, waits for a file, prints again and fails."""
        item = self.command(f"item_{next(self.count)}", "make")
        self.tell("item/started", item=item)
        self.tell("item/commandExecution/outputDelta", itemId=item["id"], delta="first\n")
        while not Path(gate).exists():
            if self.interrupted.wait(0.01):
                return
        self.tell("item/commandExecution/outputDelta", itemId=item["id"], delta="second\n")
        self.done({**item, "status": "failed", "aggregatedOutput": "first\nsecond\n", "exitCode": 3})

    def legacy(self, command: str) -> None:
        id = f"item_{next(self.count)}"
        answer = self.ask("execCommandApproval", callId=id, command=["bash", "-lc", command], cwd="/w")
        self.ruled(
            self.command(id, command), answer, accepted={"approved", "approved_for_session"}, cancel="abort"
        )

    def ruled(self, item: Line, answer: Any, accepted: set[str], cancel: str) -> None:
        decision = answer["decision"] if answer is not None else cancel
        if decision == cancel:
            self.interrupted.set()
            return
        ran = isinstance(decision, dict) or decision in accepted
        printed = f"{json.dumps(decision)}\n"
        if ran:
            self.tell("item/commandExecution/outputDelta", itemId=item["id"], delta=printed)
        self.done({**item, "status": "completed" if ran else "declined", "aggregatedOutput": printed,
                   "exitCode": 0 if ran else None, "durationMs": 5})  # fmt: skip

    def patch(self, path: str) -> None:
        id = f"item_{next(self.count)}"
        change = {
            "path": path,
            "kind": {"type": "update", "move_path": None},
            "diff": "@@ -7,2 +7,2 @@\n same\n-old\n+new\n",
        }
        item = {"type": "fileChange", "id": id, "changes": [change], "status": "inProgress"}
        self.tell("item/started", item=item)
        answer = self.ask("item/fileChange/requestApproval", itemId=id)
        ran = answer is not None and answer["decision"] == "accept"
        self.done({**item, "status": "completed" if ran else "declined"})

    def grant(self, _: str) -> None:
        """More permissions than the sandbox gives."""
        wanted = {"network": {"enabled": True}}
        answer = self.ask(
            "item/permissions/requestApproval", itemId="perm", cwd="/w", reason="to fetch", permissions=wanted
        )
        self.text("granted " + json.dumps(answer))

    def network(self, host: str) -> None:
        id = f"item_{next(self.count)}"
        item = self.command(id, f"curl {host}")
        self.tell("item/started", item=item)
        rules = [{"host": host, "action": action} for action in ("allow", "deny")]
        answer = self.ask("item/commandExecution/requestApproval", itemId=id, command=item["command"],
                          networkApprovalContext={"host": host, "protocol": "https"},
                          proposedNetworkPolicyAmendments=rules,
                          availableDecisions=["accept", {"applyNetworkPolicyAmendment": {}}, "cancel"])  # fmt: skip
        self.ruled(item, answer, accepted={"accept"}, cancel="cancel")

    def old_patch(self, path: str) -> None:
        change = {"type": "update", "unified_diff": "@@ -1 +1 @@\n-old\n+new\n", "move_path": None}
        answer = self.ask("applyPatchApproval", callId="patch", fileChanges={path: change}, reason=None)
        self.text("decided " + json.dumps(answer))

    def question(self, text: str) -> None:
        options = [{"label": "red", "description": ""}, {"label": "blue", "description": ""}]
        asked = {"id": "q", "header": "Colour", "question": text, "isOther": False, "isSecret": False}
        answer = self.ask(
            "item/tool/requestUserInput", itemId="ask", questions=[{**asked, "options": options}]
        )
        self.text("answered " + json.dumps(answer))

    def form(self, text: str) -> None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        answer = self.ask("mcpServer/elicitation/request", serverName="s", mode="form", message=text,
                          requestedSchema=schema)  # fmt: skip
        self.text("answered " + json.dumps(answer))

    def wait_for_words(self, _: str) -> None:
        self.text("waiting")
        self.text("heard " + self.words.get())

    def plan(self, step: str) -> None:
        self.tell("turn/plan/updated", explanation=None, plan=[{"step": step, "status": "inProgress"}])

    def fail(self, info: str) -> None:
        error = {"message": f"it is {info}", "codexErrorInfo": info}
        self.tell("error", error={"message": "Reconnecting... 1/1"}, willRetry=True)
        self.end("failed", error)

    def hang(self, _: str) -> None:
        self.tell("item/started", item=self.command("hanging", "sleep 99"))
        self.interrupted.wait()

    def report(self, _: str) -> None:
        names: tuple[str, ...] = ("approvalPolicy", "sandboxPolicy", "model", "effort", "collaborationMode")
        names += ("approvalsReviewer", "serviceTier")
        facts = {name: self.asked[name] for name in names if name in self.asked}
        self.text("report " + json.dumps({**facts, "config": self.config}))

    def recall(self, _: str) -> None:
        """What was said in this thread before, by whatever way it came here."""
        turns = self.stored(self.turn["thread"])["turns"]
        words = [item["content"][0]["text"] for turn in turns for item in turn["items"][:1]]
        self.text("recall " + json.dumps(words))

    def die(self, code: str) -> None:
        sys.stderr.write("Something broke inside\n")
        sys.stderr.flush()
        os._exit(int(code or 1))

    def garbage(self, count: str) -> None:
        with self.lock:
            sys.stdout.write("this is not JSON\n" * int(count or 1))
            sys.stdout.flush()


METHODS: dict[str, Callable[[Codex, Line], Line]] = {
    "initialize": Codex.initialize,
    "model/list": Codex.models,
    "thread/start": Codex.start,
    "thread/resume": Codex.resume,
    "thread/fork": Codex.fork,
    "thread/read": Codex.read_thread,
    "thread/list": Codex.listed,
    "turn/start": Codex.start_turn,
    "turn/interrupt": Codex.interrupt,
    "turn/steer": Codex.steer,
    "review/start": Codex.review,
    "thread/compact/start": Codex.compact,
    "thread/delete": Codex.delete,
    "thread/unsubscribe": Codex.unsubscribe,
    "skills/list": Codex.skills,
}
DIRECTIVES: dict[str, Callable[[Codex, str], None]] = {
    "think": Codex.think,
    "bash": Codex.bash,
    "stepwise": Codex.stepwise,
    "legacy": Codex.legacy,
    "patch": Codex.patch,
    "plan": Codex.plan,
    "grant": Codex.grant,
    "network": Codex.network,
    "old-patch": Codex.old_patch,
    "question": Codex.question,
    "form": Codex.form,
    "wait-for-words": Codex.wait_for_words,
    "fail": Codex.fail,
    "hang": Codex.hang,
    "report": Codex.report,
    "recall": Codex.recall,
    "die": Codex.die,
    "garbage": Codex.garbage,
}


def main() -> None:
    flags = argparse.ArgumentParser()
    flags.add_argument("--x-bad-config", action="store_true")
    flags.add_argument("--x-no-server", action="store_true", help="so old that it has no app-server")
    flags.add_argument("--x-no-threads", action="store_true", help="so old that it has no threads")
    flags.add_argument("--x-mute", action="store_true", help="says nothing, ever")
    flags.add_argument("-c", action="append", help="settings, which it does without")
    flags.add_argument("command", choices=["app-server"])
    given = flags.parse_args()
    if given.x_bad_config:
        sys.stderr.write("Error: approval_policy untrusted is no longer supported\n")
        sys.exit(1)
    if given.x_no_server:
        sys.stderr.write("error: unrecognized subcommand 'app-server'\n")
        sys.exit(2)
    if given.x_mute:
        sys.stdin.read()
    if given.x_no_threads:
        METHODS["thread/start"] = Codex.unknown
    Codex().run()


if __name__ == "__main__":
    main()
