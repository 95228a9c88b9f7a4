"""Named tokens: list, create, revoke. A secret is sent once, when its token is created."""

from __future__ import annotations

import asyncio
import time

import msgspec

from dragoman.config.errors import ConfigError
from dragoman.gateway.ports.acts import telling
from dragoman.gateway.ports.audit import Audit
from dragoman.server.api.operation import Values
from dragoman.server.api.reading import read
from dragoman.server.api.shapes import MadeToken, NewToken, TokenList, TokenView
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.auth.named_tokens import Token, TokenFile


class Tokens:
    def __init__(self, file: TokenFile, audit: Audit) -> None:
        self._file = file
        self._audit = audit

    async def every(self, request: Request, values: Values) -> Response:
        return Response.json(TokenList([_shown(token) for token in await self._read()]))

    async def create(self, request: Request, values: Values) -> Response:
        wanted = await read(request, NewToken)
        now = time.time()
        if any(each.name == wanted.name and not each.expired(now) for each in await self._read()):
            raise HttpError(409, "There is a token of this name; revoke it first.", code="token_exists")
        facts = {"name": wanted.name, "role": wanted.role, "by": request.identity.name}
        try:
            with telling(self._audit, "token_made", facts):
                token, secret = await asyncio.to_thread(
                    self._file.create,
                    wanted.name,
                    wanted.role,
                    lifetime=wanted.lifetime,
                    quotas=wanted.quotas,
                )
        except ConfigError as error:
            raise HttpError(400, str(error)) from error
        made = MadeToken(secret=secret, **msgspec.structs.asdict(_shown(token)))
        return Response.json(made, 201)

    async def revoke(self, request: Request, values: Values) -> Response:
        name = values["name"]
        if all(token.name != name for token in await self._read()):
            raise HttpError(404, "There is no such token.", code="unknown_token")
        try:
            with telling(self._audit, "token_revoked", {"name": name, "by": request.identity.name}):
                await asyncio.to_thread(self._file.revoke, name)
        except ConfigError as error:
            raise HttpError(503, str(error)) from error
        return Response(204)

    async def _read(self) -> list[Token]:
        try:
            return await asyncio.to_thread(self._file.read)
        except ConfigError as error:
            raise HttpError(503, str(error)) from error


def _shown(token: Token) -> TokenView:
    return msgspec.convert(token.facts(), TokenView)
