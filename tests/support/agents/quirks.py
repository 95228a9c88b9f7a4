"""The quirks that agents were seen to have: docs/reference/quirks.md has the same rows, and each has a test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quirk:
    name: str
    seen: tuple[str, ...]
    """Agents with the version in which the quirk was observed."""
    fact: str
    test: str
    """Name of a test in one of the files that tests/gateway/test_quirks.py lists."""


QUIRKS = (
    Quirk(
        "question_without_tool_call",
        ("gemini 0.61.0", "qwen 0.15.10"),
        "asks for permission for a tool call that was never announced",
        "test_a_tool_call_exists_before_its_question",
    ),
    Quirk(
        "tool_call_left_open",
        ("claude-agent-acp 0.49.0", "codex-acp 2.6.0", "gemini 0.61.0", "qwen 0.15.10"),
        "leaves a cancelled or rejected tool call pending for ever",
        "test_no_tool_call_is_left_open_when_the_turn_ends",
    ),
    Quirk(
        "mode_in_the_chat",
        ("gemini 0.61.0",),
        "says `[MODE_UPDATE] yolo` in the chat when its mode changes",
        "test_a_mode_that_is_said_in_the_chat_becomes_a_mode_update",
    ),
    Quirk(
        "terminal_in_meta",
        ("codex-acp 2.6.0",),
        "refers to terminals that were never created and puts their output into `_meta`",
        "test_terminal_output_in_meta_becomes_content",
    ),
    Quirk(
        "error_code_of_http",
        ("gemini 0.61.0", "codex-acp 2.6.0"),
        "answers with error codes that are not JSON-RPC's: 400, 401, 500, 1001",
        "test_error_codes_become_json_rpcs",
    ),
    Quirk(
        "command_runs_on",
        ("codex-acp 2.6.0",),
        "lets the command of a cancelled turn run on; it ends with its agent, which is resumed",
        "test_a_command_that_runs_on_after_cancel_ends_with_its_agent",
    ),
    Quirk(
        "killed_as_cancelled",
        ("qwen 0.24.4",),
        "runs behind a process of its own: when that is killed, it ends the turn as `cancelled`; here it is an error",
        "test_a_killed_agent_is_an_error_whatever_its_child_says",
    ),
    Quirk(
        "failure_as_end_turn",
        ("codex-acp 2.6.0",),
        "ends a turn that failed with `end_turn`; only `_meta.codex.threadStatus` says systemError",
        "test_an_end_turn_that_was_a_failure_is_reported_as_one",
    ),
    Quirk(
        "question_left_open",
        ("claude-agent-acp 0.49.0", "opencode 1.18.33"),
        "leaves a permission question open when its turn is cancelled",
        "test_a_question_that_is_left_open_is_withdrawn",
    ),
    Quirk(
        "cancel_waits_for_the_answer",
        ("gemini 0.61.0", "qwen 0.15.10"),
        "does not end a cancelled turn until its open question is answered",
        "test_an_agent_that_waits_for_an_answer_gets_one_at_cancel",
    ),
    Quirk(
        "second_prompt",
        ("claude-agent-acp 0.49.0", "codex-acp 2.6.0", "opencode 1.18.33", "gemini 0.61.0", "qwen 0.15.10"),
        "folds a second prompt into the first, queues it, or cancels the first; here it is refused",
        "test_a_second_prompt_is_refused_and_the_first_goes_on",
    ),
    Quirk(
        "one_vocabulary",
        ("opencode 1.18.33", "gemini 0.61.0", "claude-agent-acp 0.49.0"),
        "tells modes, models and options in one or two of three shapes; clients see all, models if they ask",
        "test_modes_models_and_options_are_told_in_all_words",
    ),
    Quirk(
        "fs_not_survived",
        ("gemini 0.61.0",),
        "fails to write a new file when reading it is answered with an error; it is not offered `fs`",
        "test_fs_is_not_offered_to_an_agent_that_does_not_survive_it",
    ),
    Quirk(
        "answer_within_the_replay",
        ("gemini 0.61.0",),
        "answers `session/load` in the middle of its replay; what comes then is not shown a second time",
        "test_a_replay_that_goes_on_after_its_answer_is_not_shown",
    ),
    Quirk(
        "silent_retries",
        ("claude-agent-acp 0.49.0", "opencode 1.18.33"),
        "retries a failed request for minutes without a word; the session says that it is silent",
        "test_silence_is_shown_as_such",
    ),
    Quirk(
        "unknown_mode",
        ("qwen 0.15.10",),
        "accepts a mode that it does not offer, and has none then; the gateway refuses it",
        "test_a_mode_that_is_not_offered_is_refused_here",
    ),
    Quirk(
        "relative_diff",
        ("qwen 0.15.10",),
        "names the file of a diff or a location relative to the working folder; clients get the whole path",
        "test_the_paths_of_a_tool_call_are_absolute",
    ),
    Quirk(
        "failure_said_and_answered",
        ("claude-agent-acp 0.49.0",),
        "says the words of an API failure in the chat and answers with them; both are passed on",
        "test_a_failure_that_is_said_and_answered_is_one_error",
    ),
    Quirk(
        "text_said_again",
        ("codex-acp 2.6.0",),
        "says the beginning of an answer again when its stream broke; what was shown cannot be taken back",
        "test_text_that_is_said_again_is_shown_again",
    ),
    Quirk(
        "bypass_needs_a_sandbox",
        ("claude 2.1.325", "claude-agent-acp 0.49.0"),
        "offers root the mode `bypassPermissions` only with `IS_SANDBOX=1`, which is for the agent's `env`",
        "test_the_variables_of_an_agent_are_the_configurations",
    ),
    Quirk(
        "empty_prompt",
        ("gemini 0.61.0",),
        "never answers again after an empty prompt; the gateway refuses it",
        "test_an_empty_prompt_is_refused",
    ),
    Quirk(
        "relative_cwd",
        ("opencode 1.18.33", "qwen 0.15.10"),
        "accepts a working folder that is relative; the gateway refuses it",
        "test_a_cwd_that_is_not_absolute_is_refused",
    ),
    Quirk(
        "resume_in_vain",
        ("qwen 0.15.10",),
        "advertises `session/resume` and does not know the method; the session is loaded instead",
        "test_resume_that_is_advertised_in_vain_leads_to_the_next_rung",
    ),
    Quirk(
        "load_of_anything",
        ("qwen 0.15.10",),
        "loads an unknown session as an empty one; it is told the conversation so far",
        "test_an_agent_that_loads_an_empty_session_has_lost_it",
    ),
)
