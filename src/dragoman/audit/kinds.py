"""The kinds of records, with what each says."""

from __future__ import annotations

KINDS = {
    "chain": "the first record of a process: version, machine, process id",
    "head": "a signature over all records before it",
    "gap": "how many records before this one could not be written",
    "gateway_started": "version, process id, hashes of the configuration files",
    "gateway_stopped": "process id",
    "session_begun": "session, agent, folder, who; the original of a fork; MCP servers that the client brings",
    "session_loaded": "session, agent, who; MCP servers that the client brings",
    "session_exported": "session, agent, who, where to or in which form",
    "session_deleted": "session, agent, who, or the setting that removed it",
    "mode_changed": "session, agent, the former and the new mode, who: a client, `agent`, or `policy`",
    "decision": (
        "call, act, `allow`, `deny` or `ask`, the rule with its text, why, the hash of all rules; `again` if the same "
        "call was decided before, by its hook: this one holds"
    ),
    "answer": "call, outcome, who; what was remembered",
    "answer_forgotten": "a remembered answer that does not hold any more, who",
    "tool_begun": "call, tool, kind, title",
    "tool_ended": (
        "call, status; `unmediated` if it never reached the rules and that is not said by a record of its own; `reason` "
        "`untold` if a hook told of it and the agent nothing more, `not_run` if the built-in agent gave it up before it "
        "asked: no such tool, wrong arguments, a path outside"
    ),
    "unmediated": "call, tool, kind, title: it ran without a decision, although the agent is known to ask",
    "files_restored": "session, agent, who, which files a checkpoint brings back",
    "conversation_rewound": "session, agent, who, to before which message, or that a rewind is undone",
    "session_forked": "session, agent, who, the new session with its agent, before which message",
    "prompt_edited": "session, agent, who changed a waiting prompt, and whose it was",
    "prompt_withdrawn": "session, agent, who took a waiting prompt out, and whose it was",
    "worktree_made": "session, worktree, branch, repository, the commit that it begins at, who",
    "worktree_setup": "session, worktree, the commands of `worktrees.setup` that are run in it",
    "worktree_merged": "session, worktree, branch with its commit, repository, the branch it goes into, who",
    "worktree_rebased": "session, worktree, branch with its commit, repository, the branch it goes onto, who",
    "worktree_discarded": "session, worktree, branch with its commit, what is lost with it, why, who",
    "commit_made": "session, repository, branch, the commit before, which files, who",
    "pushed": "session, repository, remote, branch, commit, who",
    "pull_request_opened": "session, repository, remote, branch, the branch it goes into, who",
    "act_failed": "the kind of an act that is recorded before and was not done, or not wholly; why",
    "policy_changed": "workspace, files, hashes of the rules before and after, what is wider now",
    "policy_refused": "workspace, files, why the changed rules do not hold",
    "configuration_changed": "file, its hashes before and after, its owner; who: `local` (a command) or `file`",
    "trust_given": "workspace file, its hash",
    "trust_removed": "workspace file",
    "agent_added": "agent, command",
    "agent_removed": "agent",
    "agent_installed": (
        "agent, version, source (`binary`, `npm`, `uv`), package or address, whether its scripts run; hash of an "
        "archive and whether the registry named it (`pinned`); who"
    ),
    "agent_uninstalled": "agent, version, source, who",
    "registry_refreshed": "address, hash of the answer, how many agents, who",
    "token_made": "name, role, who",
    "token_revoked": "name, who",
    "token_used": "name, role, an address that it was not used from before",
    "tokens_changed": "names that a changed file adds and removes",
    "certificate_changed": "file, its hashes before and after",
    "repaired": "which check of `dragoman doctor`, what it was about, what was wrong: a repair of `--fix`",
    "key_changed": "fingerprints of the former and the new key that signs, signed by the former",
    "login": "a browser's login: name, role, address",
}
