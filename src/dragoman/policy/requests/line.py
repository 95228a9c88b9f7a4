"""The act of a shell line that is tried, not asked about."""

from __future__ import annotations

from dragoman.policy.act import Act
from dragoman.policy.shell.line import read_line


def act_of_command(
    line: str,
    *,
    cwd: str,
    workspace: str,
    kind: str = "execute",
    agent: str = "",
    mode: str = "",
    tool: str = "",
    session: str = "",
) -> Act:
    """The act of running a shell line. A line is an `execute`, whatever the agent calls it."""
    read_facts = read_line(line, cwd=cwd, workspace=workspace)
    return Act(
        agent=agent,
        session=session,
        workspace=workspace,
        tool=tool,
        kind="execute" if line.strip() else kind,
        commands=read_facts.commands,
        wrappers=read_facts.wrappers,
        paths=read_facts.paths,
        mode=mode,
        folder=cwd,
        opaque=read_facts.opaque,
        label_only=not line.strip(),
    )
