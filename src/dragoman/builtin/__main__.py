"""The built-in agent as a process: ACP on stdin and stdout."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from pathlib import Path


def main() -> int:
    options = _parse(sys.argv[1:])
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    return asyncio.run(_serve(options))


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dragoman.builtin", description=__doc__)
    parser.add_argument("--model", help="provider:name")
    parser.add_argument("--base-url", help="the server of the model, if not the provider's own")
    parser.add_argument("--context-window", type=int, help="tokens that the model can hold")
    parser.add_argument(
        "--sandbox-files", choices=("copy", "workspace"), default="copy", help="what sandbox mode works on"
    )
    parser.add_argument("--forget", action="store_true", help="keep nothing on disk")
    return parser.parse_args(arguments)


async def _serve(options: argparse.Namespace) -> int:
    from dragoman.builtin.models.choice import ModelConfig
    from dragoman.builtin.server import Server
    from dragoman.transports.stdio import StdioLink
    from dragoman.wire import limits

    config = ModelConfig(options.model, options.base_url, options.context_window, options.sandbox_files)
    server = Server(config, None if options.forget else _state_folder())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.left.set)
    link = await StdioLink.open(server.peer, limits.MAX_MESSAGE_BYTES)
    await server.left.wait()
    await server.close()
    await link.finish()
    return 0


def _state_folder() -> Path | None:
    """Where sessions are stored; None without a home directory, as in some sandboxes."""
    from dragoman.config.errors import ConfigError
    from dragoman.config.paths import find_paths

    try:
        return find_paths().state_dir / "builtin"
    except ConfigError as error:
        logging.getLogger(__name__).warning("sessions are not saved: %s", error)
        return None


if __name__ == "__main__":
    sys.exit(main())
