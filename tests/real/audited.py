"""Every tool call that a client saw is in the audit exactly once, with its decision or marked as unmediated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.audit.read import Query, query
from dragoman.audit.verify import verify
from support.rpc_peer import Message, RpcPeer

TOOLS = ("tool_call", "tool_call_update")


@dataclass
class Audited:
    """What the audit has of one call."""

    kinds: Counter[str] = field(default_factory=Counter)
    decided: int = 0
    unmediated: int = 0
    killed: bool = False
    """Its gateway was killed, so that nothing may have seen its end."""

    def add(self, record: Message, killed: bool) -> None:
        self.killed = self.killed or killed
        self.kinds[record["kind"]] += 1
        self.decided += record["kind"] == "answer" or record.get("decision") in ("allow", "deny")
        self.unmediated += record["kind"] == "unmediated" or record.get("unmediated") is True

    @property
    def problem(self) -> str | None:
        begun, ended = self.kinds["tool_begun"], self.kinds["tool_ended"]
        if begun != 1 or (ended != 1 and not (self.killed and ended == 0)):
            return f"it began {begun} times and ended {ended} times"
        if bool(self.decided) == bool(self.unmediated) or self.unmediated > 1:
            return f"it was decided {self.decided} times and marked as unmediated {self.unmediated} times"
        return None


def check_audit(home: Path, clients: Iterable[RpcPeer]) -> None:
    """Compare the audit of a folder with what its gateways' clients were told, in all their lives."""
    seen = {call for client in clients for message in client.received for call in _calls(message)}
    report = verify(home / "audit")
    assert report.consistent, report.problems
    whole = {chain.chain for chain in report.chains if chain.ended and not chain.killed}
    found: dict[tuple[str, str], Audited] = {}
    for record in query(home / "audit", Query()):
        if isinstance(record.get("call"), str):
            killed = record["id"].partition(":")[0] not in whole
            found.setdefault((record["session"], record["call"]), Audited()).add(record, killed)
    problems = [f"{call}: {found.get(call, Audited()).problem}" for call in sorted(seen | found.keys())]
    wrong = [problem for problem in problems if not problem.endswith(": None")]
    assert not wrong, "\n".join(wrong)
    assert seen <= found.keys()


def _calls(message: Message) -> Iterable[tuple[str, str]]:
    params = message.get("params") or {}
    update = params.get("update") or {}
    if message.get("method") == "session/update" and update.get("sessionUpdate") in TOOLS:
        yield params["sessionId"], update["toolCallId"]
