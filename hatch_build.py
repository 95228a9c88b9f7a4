"""Puts the web chat into the wheel, building it first when it is not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WebAssets(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a checkout: `make web` builds it, when its sources changed
        root = Path(self.root)
        if not (root / "src" / "dragoman" / "web_assets" / "index.html").exists():
            subprocess.run([sys.executable, str(root / "web" / "build.py")], check=True)
        build_data["artifacts"].append("src/dragoman/web_assets")
