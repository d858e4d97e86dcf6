"""The actor that works on durable jobs: it calls models and embedders and reports the results to the writer."""
