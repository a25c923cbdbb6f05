"""A model on the device: export, metadata, runtime, measurements."""
