"""APIs about brokers, leaders and the metadata quorum, for clients and between brokers."""
