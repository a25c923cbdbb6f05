"""On-device deployment: export, metadata, runtime, benchmarks."""
