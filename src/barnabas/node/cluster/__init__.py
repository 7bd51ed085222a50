"""This broker in its cluster: quorum, controller, lifecycle, other brokers, local replicas."""
