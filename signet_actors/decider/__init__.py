"""The actor that decides how a fact changes the store: it asks a searcher and a model, and writes nothing."""
