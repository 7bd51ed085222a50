"""A broker that is killed under load repeatedly keeps all acknowledged records."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from barnabas.testing.process import BrokerSubprocess
from tests.support.disks.ledger import stored_on_disk
from tests.support.loads.load import Load, consume_all, create_topic

pytestmark = pytest.mark.chaos

KILLS = int(os.environ.get("CHAOS_KILLS", "3"))
TOPIC = "load"
PARTITIONS = 3


@pytest.mark.parametrize("flush", ["ack", "interval"])
@pytest.mark.timeout(60 + 30 * KILLS)
def test_nothing_acknowledged_is_lost_by_a_crash(
    tmp_path: Path, flush: str, record_property: Callable[[str, object], None]
) -> None:
    rng = Random(KILLS)
    with BrokerSubprocess(tmp_path, settings={"storage.flush": flush}) as broker:
        create_topic(broker.bootstrap, TOPIC, PARTITIONS, {"segment.bytes": "65536"})
        with Load(broker.bootstrap, TOPIC, PARTITIONS) as load:
            for _ in range(KILLS):
                load.wait_for(rng.randrange(300, 3000))
                broker.restart()
            load.wait_for(500)
            load.finish()
        assert load.failures == []
        assert load.ledger.violations(consume_all(broker.bootstrap, TOPIC, PARTITIONS)) == []
        assert broker.terminate() == 0
        assert load.ledger.violations(stored_on_disk(tmp_path, TOPIC)) == []
    record_property("acknowledged", load.ledger.count)
