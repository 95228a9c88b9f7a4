"""Maps JSON-RPC errors to HTTP statuses."""

from __future__ import annotations

from dragoman.gateway.json_types import as_object
from dragoman.wire.errors import (
    AUTH_REQUIRED,
    CANCELLED,
    FORBIDDEN,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    TOO_MANY,
    RpcError,
)

BY_REASON = {
    **dict.fromkeys(("prompt_in_flight", "queue_full"), 409),
    "not_queued": 404,
    "turn_before_failed": 502,
    "session_held": 409,
    "session_limit": 503,
    "shutdown": 503,
    "parked": 503,
    "agent_exited": 502,
    "agent_unavailable": 502,
    "bad_cursor": 400,
    "unknown_session": 404,
    "store_failed": 503,
    **dict.fromkeys(("no_checkpoints", "no_turn", "no_change", "no_hunk"), 404),
    **dict.fromkeys(("checkpoints_off", "no_git", "shared_changes", "conflict", "in_the_way"), 409),
    **dict.fromkeys(("restoring", "rewinding", "nothing_to_undo", "other_folder"), 409),
    **dict.fromkeys(("no_journal", "not_saved"), 409),
    "unknown_message": 404,
    **dict.fromkeys(("bad_wish", "bad_name", "no_repository", "bare_repository", "no_commit"), 400),
    "no_worktree": 404,
    **dict.fromkeys(
        ("name_taken", "branch_exists", "submodules", "filters", "sparse", "separate_git_dir"), 409
    ),
    **dict.fromkeys(("uncommitted", "other_branch", "detached_head", "would_lose", "folder_missing"), 409),
    **dict.fromkeys(
        ("busy", "moved", "boxed", "not_linear", "no_branch", "nested_repository", "ambiguous"), 409
    ),
    **dict.fromkeys(("nothing_to_commit", "staged", "no_author", "no_remote", "bad_remote", "filter"), 409),
    **dict.fromkeys(("no_message", "bad_message"), 400),
    **dict.fromkeys(("push_failed", "pull_request_failed", "git_failed", "too_slow"), 502),
    **dict.fromkeys(("no_program", "no_host"), 501),
    **dict.fromkeys(("too_many_files", "too_many_bytes", "bad_config"), 409),
    "no_space": 507,
    "store_unavailable": 503,
    "store_closed": 503,
    "store_busy": 503,
    "store_full": 507,
    "store_read_only": 503,
}
BY_CODE = {
    INVALID_PARAMS: 400,
    INVALID_REQUEST: 400,
    METHOD_NOT_FOUND: 501,
    NOT_FOUND: 404,
    FORBIDDEN: 403,
    TOO_MANY: 429,
    AUTH_REQUIRED: 502,  # the agent wants a login; 401 would mean that the gateway's token is wrong
    CANCELLED: 409,
}


def reason_of(error: RpcError) -> str | None:
    reason = as_object(error.data).get("reason")
    return reason if isinstance(reason, str) else None


def status_of(error: RpcError) -> int:
    """The status of an error; 500 if neither its reason nor its code is in the tables."""
    return BY_REASON.get(reason_of(error) or "", BY_CODE.get(error.code, 500))
