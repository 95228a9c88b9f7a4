"""What goes wrong with a registry or an installation."""

from __future__ import annotations

from dragoman.config.errors import ConfigError


class RegistryError(ConfigError):
    """Nothing was changed; the text says what happened and what to do."""


class UnknownEntry(RegistryError):
    """The registry has no agent of this name."""

    def __init__(self, name: str, nearest: list[str]) -> None:
        self.nearest = nearest
        hint = (
            f"did you mean {' or '.join(nearest)}?"
            if nearest
            else "`dragoman agents search` shows what there is, `dragoman agents refresh` fetches the registry"
        )
        super().__init__(f'the registry has no agent "{name}": {hint}')


class NeedsScripts(RegistryError):
    """The package has to run scripts of its own, which a person has not allowed."""

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why
        super().__init__(
            f"{name} works only if scripts of its package run while it is installed ({why}): "
            f"`dragoman agents install {name} --scripts` allows them"
        )
