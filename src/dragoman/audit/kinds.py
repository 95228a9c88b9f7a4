"""The kinds of records, with what each says."""

from __future__ import annotations

KINDS = {
    "chain": "the first record of a process: version, machine, process id",
    "head": "a signature over all records before it",
    "gap": "how many records before this one could not be written",
    "gateway_started": "version, process id, hashes of the configuration files",
    "gateway_stopped": "process id",
    "session_begun": "session, agent, folder, who; the original of a fork",
    "session_loaded": "session, agent, who",
    "session_exported": "session, agent, who, where to or in which form",
    "session_deleted": "session, agent, who, or the setting that removed it",
    "mode_changed": "session, agent, the former and the new mode, who: a client, `agent`, or `policy`",
    "decision": "call, act, `allow`, `deny` or `ask`, the rule with its text, why, the hash of all rules",
    "answer": "call, outcome, who; what was remembered",
    "answer_forgotten": "a remembered answer that does not hold any more, who",
    "tool_begun": "call, tool, kind, title",
    "tool_ended": (
        "call, status; `unmediated` if it never reached the rules and that is not said by a record of its own; `reason` "
        "`untold` if a hook told of it and the agent nothing more"
    ),
    "unmediated": "call, tool, kind, title: it ran without a decision, although the agent is known to ask",
    "files_restored": "session, agent, who, which files a checkpoint brought back",
    "policy_changed": "workspace, files, hashes of the rules before and after, what is wider now",
    "policy_refused": "workspace, files, why the changed rules do not hold",
    "configuration_changed": "file, its hashes before and after, its owner; who: `local` (a command) or `file`",
    "trust_given": "workspace file, its hash",
    "trust_removed": "workspace file",
    "agent_added": "agent, command",
    "agent_removed": "agent",
    "token_made": "name, role, who",
    "token_revoked": "name, who",
    "token_used": "name, role, an address that it was not used from before",
    "tokens_changed": "names that a changed file adds and removes",
    "certificate_changed": "file, its hashes before and after",
    "key_changed": "fingerprints of the former and the new key that signs, signed by the former",
    "login": "a browser's login: name, role, address",
}
