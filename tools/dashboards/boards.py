"""All dashboards."""

from tools.dashboards.broker_board import BROKER
from tools.dashboards.client_boards import CLIENT
from tools.dashboards.cluster_board import CLUSTER
from tools.dashboards.pipeline_boards import GPU, STREAMS
from tools.dashboards.topic_boards import GROUP, TOPIC

BOARDS = (CLUSTER, BROKER, TOPIC, GROUP, CLIENT, STREAMS, GPU)
