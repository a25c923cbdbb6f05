"""Export of models to .tflite files with metadata."""
