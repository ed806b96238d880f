"""Turns at something that few can use at once: a slow or greedy owner never keeps others waiting."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from privgp.server.errors import Refused

BUSY = "The server is busy: try again in a moment."


class Turns:
    """A fair queue. Owners are served one after the other, the requests of each in their order.

    Parameters
    ----------
    slots : requests that run at once
    per_owner : how many of them may be of one owner

    """

    def __init__(self, slots: int, per_owner: int) -> None:
        self.slots, self.per_owner = slots, per_owner
        self.running: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, owner: str, seconds: float | None = None) -> AsyncIterator[None]:
        """Run the body when it is the owner's turn.

        Parameters
        ----------
        owner
            For whom it runs.
        seconds
            The longest wait; None for any.

        Raises
        ------
        Refused
            The turn did not come within ``seconds``.

        """
        if owner in self._waiting or not self._is_free(owner):
            await self._wait(owner, seconds)
        else:
            self.running[owner] += 1
        try:
            yield
        finally:
            self._give_back(owner)

    @property
    def queue_length(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    def _is_free(self, owner: str) -> bool:
        return self.running.total() < self.slots and self.running[owner] < self.per_owner

    async def _wait(self, owner: str, seconds: float | None) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            async with asyncio.timeout(seconds):
                await turn
        except BaseException as problem:
            if turn.done() and not turn.cancelled():  # it came at the same moment
                self._give_back(owner)
            else:
                self._leave(owner, turn)
            if isinstance(problem, TimeoutError):
                raise Refused(503, BUSY) from None
            raise

    def _leave(self, owner: str, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(owner, deque())
        if turn in queue:
            queue.remove(turn)
        if not queue:
            self._waiting.pop(owner, None)

    def _give_back(self, owner: str) -> None:
        self.running[owner] -= 1
        if not self.running[owner]:
            del self.running[owner]
        ready = True
        while ready:
            ready = any(self._admit(each) for each in [*self._waiting])

    def _admit(self, owner: str) -> bool:
        """Let the next request of an owner run, if it may; the owner then goes to the end."""
        if not self._is_free(owner):
            return False
        turn = self._waiting[owner][0]
        self._leave(owner, turn)
        if owner in self._waiting:
            self._waiting.move_to_end(owner)
        if not turn.cancelled():  # a client that has just gone
            self.running[owner] += 1
            turn.set_result(None)
        return True
