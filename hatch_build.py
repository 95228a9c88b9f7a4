"""Builds the web chat into the wheel (`web/build.py` says with what)."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebAssets(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    @property
    def _builder(self) -> dict[str, Any]:
        return runpy.run_path(str(Path(self.root) / "web" / "build.py"))

    def dependencies(self) -> list[str]:
        """Node from PyPI where the machine has none."""
        return [] if self._builder["machine_npm"]() else [self._builder["NODE_WHEEL"]]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a checkout: `make web` builds it, when its sources changed
        sys.stderr.write("building the web chat\n")
        self._builder["build"]()
        build_data["artifacts"].append("src/dragoman/web_assets")
