"""The gateway: its clients, sessions and agents. Everything that does IO is passed in as `Outside`."""

from __future__ import annotations

import itertools

from dragoman.config.model import Config
from dragoman.gateway.access.client import Client, Terms
from dragoman.gateway.client import ClientConnection
from dragoman.gateway.lifecycle import restart_agent
from dragoman.gateway.lifecycle.retention import renew_leases, run_retention
from dragoman.gateway.ownership import takeover
from dragoman.gateway.registry import Registry
from dragoman.gateway.requests import REQUESTS
from dragoman.gateway.runtime import Outside
from dragoman.gateway.session.policy import setup_question
from dragoman.gateway.session.session import Session
from dragoman.rpc.request import Request


class Gateway(Registry):
    def __init__(self, config: Config, outside: Outside) -> None:
        super().__init__(config, outside)
        self._keys = itertools.count(1)
        if self.store is not None:
            work = (run_retention(self, self.store), renew_leases(self, self.store))
            self.housekeeping = [self.spawn(each) for each in work]

    def connect(self, terms: Terms) -> ClientConnection:
        """Add a new client; its transport opens the link."""
        client = ClientConnection(self, next(self._keys), terms, REQUESTS)
        self.clients.add(client)
        return client

    async def ready(self, session: Session, client: Client) -> None:
        await restart_agent.ready(self, session, client)

    async def prepare(self, session: Session, request: Request, by: str) -> None:
        await setup_question.prepare(session, request, by)

    async def take_over(self, session: Session, client: Client) -> None:
        await takeover.take_over(self, session, client)
