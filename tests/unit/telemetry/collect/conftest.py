"""Fixtures: servers that send prepared responses."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.pipelines.canned_http import Canned, Certificate, Talk, canned, make_certificate


@pytest.fixture
def serve() -> Iterator[Callable[..., Canned]]:
    with ExitStack() as stack:

        def start(*answers: bytes | Talk, context: ssl.SSLContext | None = None) -> Canned:
            return stack.enter_context(canned(*answers, context=context))

        yield start


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificate"))
