"""A metadata quorum alone: members, network and checks."""
