"""Claude's task list as an ACP plan: `TodoWrite` replaces the list, the Task tools change single tasks."""

from __future__ import annotations

from dragoman.wire.json_types import JsonObject, objects

STATUS = {"pending": "pending", "in_progress": "in_progress", "completed": "completed"}


class Plan:
    def __init__(self) -> None:
        self._tasks: dict[str, JsonObject] = {}

    def called(self, name: str, given: JsonObject) -> JsonObject | None:
        """The plan after a call, before its result; None if unchanged."""
        if name == "TodoWrite":
            todos = given.get("todos")
            entries = [_entry(todo) for todo in objects(todos)]
            return {"sessionUpdate": "plan", "entries": entries}
        if name == "TaskUpdate":
            return self._changed(given)
        return None

    def answered(self, name: str, given: JsonObject, detail: object) -> JsonObject | None:
        """The plan after a result, which has the id of a new task; None if unchanged."""
        task = detail.get("task") if isinstance(detail, dict) else None
        if name != "TaskCreate" or not isinstance(task, dict) or "id" not in task:
            return None
        subject = task.get("subject") or given.get("subject") or ""
        self._tasks[str(task["id"])] = {"content": subject, "status": "pending"}
        return self._whole()

    def _changed(self, given: JsonObject) -> JsonObject | None:
        task = self._tasks.get(str(given.get("taskId")))
        if task is None:
            return None
        if given.get("status") == "deleted":
            del self._tasks[str(given.get("taskId"))]
            return self._whole()
        task["status"] = given.get("status", task["status"])
        task["content"] = given.get("subject") or task["content"]
        return self._whole()

    def _whole(self) -> JsonObject:
        return {"sessionUpdate": "plan", "entries": [_entry(task) for task in self._tasks.values()]}


def _entry(todo: JsonObject) -> JsonObject:
    return {
        "content": str(todo.get("content") or todo.get("activeForm") or ""),
        "priority": str(todo.get("priority") or "medium"),
        "status": STATUS.get(str(todo.get("status")), "pending"),
    }
