"""The collector: exporters, nvidia-smi and files in, messages on topic gpu-telemetry out."""
