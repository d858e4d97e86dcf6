"""multilingual-e5-small with int8 weights on onnxruntime, from a file that is downloaded on request."""
