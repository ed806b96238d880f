"""Greedy, slow and vanishing clients: whatever they do, others are served."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import httpx
import pytest

from privgp.server.errors import Refused
from privgp.server.guard import Guard
from privgp.server.jobs.turns import Turns
from tests.server.live import listening
from tests.server.world import CUSTODIAN, World, settings

GREEDY, PATIENT = "greedy", "patient"


# a fair queue


def order_of(turns, asked, seconds=0.01):
    """The order in which requests of these owners run."""
    ran = []

    async def one(owner):
        async with turns.turn(owner):
            ran.append(owner)
            await asyncio.sleep(seconds)

    async def all_of_them():
        await asyncio.gather(*map(one, asked))

    asyncio.run(all_of_them())
    return ran


def test_owners_are_served_in_turn():
    assert order_of(Turns(1, 1), "aaaabbc") == [*"aabcaba"]


def test_no_owner_has_more_than_its_share_at_once():
    most = 0

    async def one(turns, owner):
        nonlocal most
        async with turns.turn(owner):
            most = max(most, turns.running["a"])
            await asyncio.sleep(0.01)

    async def all_of_them():
        turns = Turns(4, 2)
        await asyncio.gather(*(one(turns, owner) for owner in "aaaaaaab"))
        return turns

    turns = asyncio.run(all_of_them())
    assert most == 2
    assert (turns.queue_length, turns.running.total()) == (0, 0)


def test_whoever_gives_up_leaves_the_queue():
    async def wait(turns, seconds):
        async with turns.turn("b", seconds):
            return True

    async def all_of_them():
        turns = Turns(1, 1)
        async with turns.turn("a"):
            gone = asyncio.create_task(wait(turns, None))
            next_one = asyncio.create_task(wait(turns, None))
            with pytest.raises(Refused, match="busy"):
                await wait(turns, 0.01)
            gone.cancel()
            assert turns.queue_length >= 1
        return await next_one, turns

    served, turns = asyncio.run(all_of_them())
    assert served
    assert (turns.queue_length, turns.running.total()) == (0, 0)


def test_what_is_done_for_a_client_that_went_away_is_cancelled(world, tmp_path):
    seen = []

    async def application(_, __, ___):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    messages = [
        {"type": "http.request", "body": b"", "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive():
        await asyncio.sleep(0.01)
        return messages.pop(0)

    async def send(message):
        seen.append(message["type"])

    store = world.client.app.state.service.store
    guard = Guard(application, settings(tmp_path), store)
    headers = [(b"authorization", f"Bearer {world.keys[CUSTODIAN]}".encode())]
    scope = {"type": "http", "path": "/api/x", "method": "POST", "headers": headers}
    asyncio.run(asyncio.wait_for(guard({**scope, "client": ("h", 1)}, receive, send), 5))
    assert seen == ["cancelled"]
    assert guard._turns.running.total() == 0


# a server that is attacked


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    with listening(tmp_path_factory.mktemp("attacked"), predictors=1) as world:
        assert world.register("visits").status_code == 201
        plan = world.plan(CUSTODIAN, "visits")
        number = world.released(CUSTODIAN, "visits", plan, "to-be-asked")
        for name in (GREEDY, PATIENT):
            body = {"name": name, "role": "analyst", "datasets": ["visits"]}
            world.keys[name] = world.ask(CUSTODIAN, "POST", "/api/keys", json=body).json()["key"]
        yield world, f"/api/releases/{number}/predict"


def seconds_for_others(world, path):
    """How long ``/health`` and a small prediction of another key take."""
    times = []
    for _ in range(3):
        start = time.monotonic()
        assert httpx.get(f"{world.client.base_url}/health", timeout=10).status_code == 200
        times.append(time.monotonic() - start)
        start = time.monotonic()
        assert world.ask(PATIENT, "POST", path, json={"points": [[30.0]]}).status_code == 200
        served = time.monotonic() - start
    return max(times), served


def test_nine_large_predictions_leave_room_for_others(attacked):
    world, path = attacked
    large = {"points": [[20.0 + 0.004 * place] for place in range(10_000)]}
    found = []

    def greedy():
        headers = {"Authorization": f"Bearer {world.keys[GREEDY]}"}
        with httpx.Client(base_url=world.client.base_url, timeout=120) as client:
            found.append(client.post(path, json=large, headers=headers))

    threads = [threading.Thread(target=greedy) for _ in range(9)]
    for each in threads:
        each.start()
    time.sleep(0.1)
    health, served = seconds_for_others(world, path)
    for each in threads:
        each.join()
    assert health < 1.0
    assert served < 5.0
    statuses = [answer.status_code for answer in found]
    assert {*statuses} <= {200, 503}
    assert all(len(each.json()["mean"]) == 10_000 for each in found if each.status_code == 200)


def test_parts_of_a_prediction_are_those_of_the_whole(attacked):
    world, path = attacked
    points = [[20.0 + 0.03 * place] for place in range(1_200)]
    whole = world.ask(CUSTODIAN, "POST", path, json={"points": points}).json()
    some = world.ask(CUSTODIAN, "POST", path, json={"points": points[490:510]}).json()
    assert whole["coverage"] == 0.9
    assert whole["low"][490:510] == pytest.approx(some["low"], rel=1e-12)
    wrong = world.ask(CUSTODIAN, "POST", path, json={"points": [*points, [1.0, 2.0]]})
    assert (wrong.status_code, wrong.json()["error"]) == (422, "Every point must have 1 cells.")


@pytest.mark.parametrize("sent", ["GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", "a body"])
def test_slow_headers_and_slow_bodies_leave_room_for_others(attacked, sent):
    world, path = attacked
    if sent == "a body":
        sent = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
            f"Authorization: Bearer {world.keys[GREEDY]}\r\n\r\n{{"
        )
    place = (world.client.base_url.host, world.client.base_url.port)
    sockets = [socket.create_connection(place) for _ in range(60)]
    try:
        for each in sockets:
            each.sendall(sent.encode("ascii"))
        health, served = seconds_for_others(world, path)
    finally:
        for each in sockets:
            each.close()
    assert health < 1.0
    assert served < 5.0


def accepted(world):
    """How many requests are there that are not answered."""
    guard = world.application.middleware_stack
    while not isinstance(guard, Guard):
        guard = guard.app
    return guard._accepted.total()


@pytest.mark.parametrize("seconds", [60.0, 0.5])
def test_who_does_not_read_the_answer_has_no_turn_and_is_cut_off(tmp_path, seconds):
    """Somebody without a key, from many addresses."""
    with listening(tmp_path, threads=2, predictors=0, header_seconds=seconds) as world:
        port = world.client.base_url.port
        readers = [slow_reader(f"127.0.0.{2 + place}", port) for place in range(8)]
        end = time.monotonic() + 30.0
        try:
            while accepted(world) < len(readers) and seconds > 1.0:
                assert time.monotonic() < end
                time.sleep(0.05)
            time.sleep(0.5)
            assert world.ask(CUSTODIAN, "GET", "/api/me").status_code == 200
            while accepted(world) and seconds < 1.0:
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            for each in readers:
                each.close()


def slow_reader(address, port):
    """A connection from an address that asks for a long answer, again and again, and reads nothing."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    made.bind((address, 0))
    made.connect(("127.0.0.1", port))
    made.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 60)
    return made


def _ask_until_served(world: World) -> int:
    """While all connections are being answered, there is none to close for another: as clients do, ask
    again."""
    for _ in range(600):
        try:
            return int(world.ask(CUSTODIAN, "GET", "/api/me").status_code)
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("nobody else was served for half a minute")


def test_idle_connections_make_room_for_others(tmp_path):
    """Those that have been idle longest are closed: nobody keeps others out by doing nothing."""
    with listening(tmp_path, max_connections=10, predictors=0, header_seconds=60.0) as world:
        port = world.client.base_url.port
        begun = (
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /sign"  # an answer, and half a request
        )
        idle = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(40)]
        try:
            for each in idle[20:]:
                each.sendall(begun)
            assert _ask_until_served(world) == 200
            assert {each.recv(1) for each in idle[:20]} == {b""}  # all of these were closed
        finally:
            for each in idle:
                each.close()


def test_parts_of_files_are_not_counted_out(attacked):
    world, _ = attacked
    parts = {"Range": "bytes=" + ",".join(f"{2 * k}-{2 * k}" for k in range(90))}
    answer = world.ask(CUSTODIAN, "GET", "/static/page.css", headers=parts)
    assert (answer.status_code, "content-range" in answer.headers) == (200, False)
