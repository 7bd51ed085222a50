"""NVIDIA's XID codes: what each means and what an operator should do.

`DCGM_FI_DEV_XID_ERRORS` is a gauge with the last code, so an XID is a change of it, not a sample.
There are three groups of codes: those after which the card must be drained, those that are the
job's own fault or were contained, and unknown ones, which are also reported.
"""

from dataclasses import dataclass

from barnabas.telemetry.findings.severity import Severity


@dataclass(frozen=True)
class Xid:
    """The meaning of a code, and the action for an operator."""

    code: int
    meaning: str
    action: str
    severity: Severity


_DRAIN = {
    46: ("the GPU stopped processing", "drain the node and reset the GPU"),
    48: ("double-bit ECC error", "drain the node, reset the GPU and watch its row remaps"),
    64: ("row remapping failed", "drain the node and reset the GPU; replace it if it recurs"),
    74: ("NVLink error", "drain the node and check the NVLink bridge and its seating"),
    79: ("the GPU fell off the bus", "drain and power-cycle the node; reseat or replace the GPU"),
    94: ("contained ECC error", "restart the job, drain the node and reset the GPU"),
    95: ("uncontained ECC error", "drain the node at once and reset the GPU"),
    119: ("the GPU's system processor timed out", "drain the node and reset the GPU"),
}
_HARMLESS = {
    13: ("graphics engine exception", "debug the job: it accessed memory out of bounds"),
    31: ("GPU memory page fault", "debug the job: it used an illegal address"),
    43: ("the job's channel was stopped", "debug the job; the GPU is healthy"),
    45: ("the job was cleaned up after another fault", "none; look at the XID before it"),
    63: ("a row remap is pending", "reset the GPU when the node is next free"),
    68: ("video processor exception", "debug the job"),
    92: ("high rate of corrected ECC errors", "watch the ECC counters of the GPU"),
    109: ("context switch timed out", "debug the job; update the driver if it recurs"),
}

KNOWN = {
    **{code: Xid(code, *words, Severity.CRITICAL) for code, words in _DRAIN.items()},
    **{code: Xid(code, *words, Severity.INFO) for code, words in _HARMLESS.items()},
}


def xid(code: int) -> Xid:
    """Return the meaning of a code; an unknown one must be looked up."""
    unknown = "look the code up in NVIDIA's XID catalogue"
    return KNOWN.get(code) or Xid(code, "a code not listed here", unknown, Severity.WARNING)
