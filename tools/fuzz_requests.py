"""Sends invalid requests to the header parser and every request decoder.

The rule: bytes decode, or `WireError` is raised; anything else is a finding. With atheris
installed its coverage-guided mutator runs; otherwise valid requests are mutated at random
from a seed, which is printed with the frame when something is found.

With --live the same invalid requests, and record batches among them, go to a running broker. The
rule there: it answers or closes the connection, serves the next client, logs no defect, and stops
cleanly in the end.

    python -m tools.fuzz_requests [--live] [--seconds N] [--seed N]
"""

import argparse
import contextlib
import struct
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from random import Random

from barnabas.handlers.registry import SERVED
from barnabas.model.errors import WireError
from barnabas.protocol.apis import APIS, request_class
from barnabas.protocol.codec import decoder, encoder
from barnabas.protocol.compression import Codec
from barnabas.protocol.headers import parse_request_header
from barnabas.protocol.message import Message
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.request_header import RequestHeader
from barnabas.protocol.records import Record, build
from barnabas.testing.process import BrokerSubprocess
from barnabas.testing.raw_client import RawClient, frame_of, framed
from tests.support.talk.random_messages import random_message

FUZZED = "fuzzed"
ANSWER_PATIENCE_S = 0.05
INTERESTING = (0, 1, 2, 127, 128, 254, 255)


def one_input(frame: bytes) -> Message | None:
    """Decode a frame as the broker would; None if it is refused with `WireError`."""
    view = memoryview(frame)
    try:
        header = parse_request_header(view)
        facts = APIS[header.api_key]
        if not facts.low <= header.api_version <= facts.high:
            return None
        request, end = decoder(request_class(header.api_key), header.api_version)(view, header.body)
    except WireError:
        return None
    assert header.body <= end <= len(frame)
    return request


def valid_frame(rng: Random) -> bytes:
    """Return a valid request."""
    key = rng.choice(list(APIS))
    facts = APIS[key]
    version = rng.randint(facts.low, facts.high)
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=1, client_id="fuzz"
    )
    cls = request_class(key)
    head = encoder(RequestHeader, 2 if version >= facts.flexible_from else 1)(header)
    return head + encoder(cls, version)(random_message(cls, version, rng))


def mutated(frame: bytes, rng: Random) -> bytes:
    """Return a frame with a few bytes changed, inserted, doubled or cut."""
    broken = bytearray(frame)
    for _ in range(rng.randrange(1, 5)):
        place = rng.randrange(len(broken) + 1)
        match rng.randrange(5):
            case 0:
                broken[place : place + 1] = bytes([rng.choice(INTERESTING)])
            case 1:
                broken[place:place] = rng.randbytes(rng.randrange(1, 6))
            case 2:
                broken[place : place + 4] = rng.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"))
            case 3:
                broken += broken[place : place + 64]
            case _:
                del broken[place : place + rng.randrange(1, 9)]
    return bytes(broken)


def run_random(seconds: float, seed: int) -> int:
    """Mutate valid requests until the time is over; return the exit status."""
    rng = Random(seed)
    end = time.monotonic() + seconds
    frames = understood = 0
    while time.monotonic() < end:
        valid = valid_frame(rng)
        assert one_input(valid) is not None, valid.hex()
        for _ in range(20):
            frame = mutated(valid, rng)
            try:
                understood += one_input(frame) is not None
            except Exception as finding:
                print(f"seed {seed}: {finding!r} from {frame.hex()}", file=sys.stderr)
                raise
            frames += 1
    print(f"seed {seed}: {frames} broken requests, {understood} of them understood, no finding")
    return 0


def served_frame(rng: Random) -> bytes:
    """Return a valid request of an API that the broker serves, half of them with real records."""
    while True:
        frame = valid_frame(rng)
        (key,) = struct.unpack_from(">h", frame)
        if key in SERVED:
            return produce_frame(rng) if rng.random() < 0.3 else frame


def produce_frame(rng: Random) -> bytes:
    """Return a request to produce a valid batch to an existing topic."""
    producer_id = rng.choice((-1, rng.randrange(5)))
    batch = build(
        [Record(n, 1 << 40, None, rng.randbytes(20)) for n in range(rng.randrange(1, 5))],
        codec=rng.choice(list(Codec)),
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=rng.randrange(3) if producer_id >= 0 else -1,
    )
    partition = PartitionProduceData(index=0, records=bytes(batch))
    topic = TopicProduceData(name=FUZZED, partition_data=[partition])
    request = ProduceRequest(acks=rng.choice((-1, 0, 1)), timeout_ms=1000, topic_data=[topic])
    return frame_of(request, rng.randint(3, 12))


def run_live(seconds: float, seed: int) -> int:
    """Send invalid requests to a broker until the time is over; return the exit status."""
    rng = Random(seed)
    end = time.monotonic() + seconds
    frames = 0
    with tempfile.TemporaryDirectory() as folder, BrokerSubprocess(folder) as broker:
        with RawClient(broker.address) as client:
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=FUZZED)])
            client.ask(asked, 9, MetadataResponse)
        while time.monotonic() < end:
            frames += throw_some(broker, rng)
            with RawClient(broker.address) as witness:
                witness.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        code = broker.terminate()
        findings = broker.log_lines("a request failed") + broker.log_lines("an event failed")
        for finding in findings[:3]:
            print(finding.get("exception"), file=sys.stderr)
    print(f"seed {seed}: {frames} broken requests, {len(findings)} findings, exit code {code}")
    return 1 if findings or code else 0


def throw_some(broker: BrokerSubprocess, rng: Random) -> int:
    """Send a few requests on one connection; return how many."""
    count = rng.randrange(1, 20)
    with RawClient(broker.address) as client, contextlib.suppress(EOFError, OSError):
        for _ in range(count):
            valid = served_frame(rng)
            client.send(framed(mutated(valid, rng) if rng.random() < 0.9 else valid))
        client.socket.settimeout(ANSWER_PATIENCE_S)
        client.receive_frame()
    return count


def run_atheris(seconds: float) -> int:
    """Let atheris choose the bytes; it exits by itself."""
    atheris = import_module("atheris")
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], f"-max_total_time={int(seconds)}"], one_input)
    atheris.Fuzz()
    return 0


def main() -> int:
    """Fuzz for a while."""
    parser = argparse.ArgumentParser(description="Fuzz the request decoders.")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--live", action="store_true", help="against a running broker")
    options = parser.parse_args()
    if options.live:
        return run_live(options.seconds, options.seed)
    if find_spec("atheris") is not None:
        return run_atheris(options.seconds)
    return run_random(options.seconds, options.seed)


if __name__ == "__main__":
    sys.exit(main())
