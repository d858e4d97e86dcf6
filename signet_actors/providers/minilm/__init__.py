"""all-MiniLM-L6-v2 with int8 weights on onnxruntime, from files that come with the installation."""
