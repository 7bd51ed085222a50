"""The collector: reads exporters, nvidia-smi and files, and produces to topic gpu-telemetry."""
