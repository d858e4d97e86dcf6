"""The actor that decides what is to become of a fact: it asks a searcher and a model, and writes nothing."""
