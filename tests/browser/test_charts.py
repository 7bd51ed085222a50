"""The axes of charts: no time stands there twice, whatever the range is."""

import re
from typing import Any

import pytest

from tests.support.browsers import Open
from web.mock.server import MockConsole

RECORD_TEXTS = """
window.drawn = [];
const fill = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.drawn.push(String(text));
  return fill.call(this, text, ...rest);
};
"""
CLOCK = re.compile(r"\d\d:\d\d(:\d\d)?|\d\d-\d\d")
END_MS = 1_800_000_000_000
CHARTS = 4


@pytest.mark.parametrize(
    ("samples", "step_s", "shape"),
    [
        (3, 1, r"\d\d:\d\d:\d\d"),
        pytest.param(10, 10, r"\d\d:\d\d:\d\d", marks=pytest.mark.slow),
        (360, 10, r"\d\d:\d\d"),
        pytest.param(10, 86_400, r"\d\d-\d\d", marks=pytest.mark.slow),
    ],
)
def test_no_time_stands_twice_on_an_axis(
    console: MockConsole, open_page: Open, samples: int, step_s: int, shape: str
) -> None:
    page = open_page(f"{console.url}/topics", timezone_id="UTC")
    page.context.add_init_script(RECORD_TEXTS)

    def with_samples(route: Any) -> None:
        answer = route.fetch()
        found = answer.json()
        history = found["history"]
        for name, values in history.items():
            history[name] = (values * samples)[:samples]
        history["times_ms"] = [
            END_MS - 1000 * step_s * (samples - 1 - number) for number in range(samples)
        ]
        route.fulfill(response=answer, json=found)

    page.route("**/api/overview", with_samples)
    page.goto(f"{console.url}/")
    page.locator(".chart canvas").nth(CHARTS - 1).wait_for()
    page.wait_for_function(r"window.drawn.some(text => /^\d\d[:-]\d\d/.test(text))")
    times = [text for text in page.evaluate("window.drawn") if CLOCK.fullmatch(text)]
    assert all(re.fullmatch(shape, each) for each in times), times
    one_axis = times[: len(times) // times.count(times[0])]
    assert len(one_axis) >= 2
    assert len(set(one_axis)) == len(one_axis), times
