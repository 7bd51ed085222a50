"""Simulated fleets: recorded traces on invented cards, with faults and labels that list them.

    settings -> plan (cards, jobs, faults, truth) -> signals (values a tick) -> stream (messages)

The same settings and seed give the same bytes. The entry point is `simulate`:

    fleet = simulate(FleetSettings(gpus=500, seed=7))
    for key, value, headers in fleet.messages(): ...
    fleet.truth
"""

from barnabas.telemetry.simulation.fleet_messages import Simulation, simulate
from barnabas.telemetry.simulation.fleet_settings import Fault, FleetSettings
from barnabas.telemetry.simulation.truth import Truth

__all__ = ["Fault", "FleetSettings", "Simulation", "Truth", "simulate"]
