"""The actor that works on durable jobs: it asks models and embedders, and reports to the writer."""
