"""Tests streams of events: a slow page, a page that goes away, limits."""

import asyncio
import threading

import pytest

from barnabas.console.web.event_streams import EventChannel, StreamPlaces, frame
from barnabas.console.web.problems import ProblemError


def test_a_search_waits_for_a_slow_page_and_a_tail_does_not() -> None:
    async def scenario() -> None:
        channel = EventChannel(asyncio.get_running_loop(), queued_max=2)
        assert channel.offer("record", {"n": 1})
        assert channel.offer("record", {"n": 2})
        assert not channel.offer("record", {"n": 3})
        waiting = threading.Thread(target=lambda: channel.put("record", {"n": 4}))
        waiting.start()
        received: list[bytes] = []
        async for content in channel.contents():
            received.append(content)
            if len(received) == 3:
                channel.end()
        waiting.join()
        assert received == [frame("record", {"n": each}) for each in (1, 2, 4)]

    asyncio.run(scenario())


def test_large_events_are_bounded_by_their_bytes_and_the_largest_passes_alone() -> None:
    async def scenario() -> list[bytes]:
        channel = EventChannel(asyncio.get_running_loop(), queued_bytes_max=1_000)
        large, small = {"value": "x" * 2_000}, {"value": "y"}
        assert channel.offer("record", large), "nothing else waits"
        assert not channel.offer("record", small)
        contents = channel.contents()
        found = [await anext(contents)]
        assert channel.offer("record", small)
        assert not channel.offer("record", large)
        channel.end()
        return found + [content async for content in contents]

    assert [len(each) > 2_000 for each in asyncio.run(scenario())] == [True, False]


def test_a_page_that_goes_away_ends_the_work() -> None:
    async def scenario() -> None:
        channel = EventChannel(asyncio.get_running_loop(), queued_max=1)
        done: list[bool] = []

        def work() -> None:
            while channel.put("record", {}):
                pass
            done.append(True)

        thread = threading.Thread(target=work)
        thread.start()
        frames = channel.frames()
        await anext(frames)
        await anext(frames)
        await frames.aclose()
        await asyncio.to_thread(thread.join)
        assert done == [True]
        assert channel.is_closed

    asyncio.run(scenario())


def test_a_failure_is_the_last_event() -> None:
    async def scenario() -> list[bytes]:
        channel = EventChannel(asyncio.get_running_loop())
        channel.put("record", {"n": 1})
        channel.fail("no leader")
        channel.end()
        return [content async for content in channel.frames()]

    *_, last = asyncio.run(scenario())
    assert last == b'event: failed\ndata: {"error":"no leader"}\n\n'


def test_data_cannot_break_out_of_its_line() -> None:
    content = frame("record", {"text": "a\n\ndata: evil\r\u2028"}, "0:1")
    assert content.count(b"\n") == 4
    assert b"\r" not in content


def test_streams_are_bounded_in_all_and_for_a_session() -> None:
    places = StreamPlaces(3, 2)
    places.take("a")
    places.take("a")
    with pytest.raises(ProblemError, match="You have 2"):
        places.take("a")
    places.take("b")
    with pytest.raises(ProblemError, match="3 searches"):
        places.take("c")
    places.give_back("a")
    places.take("c")
