"""The legs of recall: each turns a query into candidates; a leg knows nothing of the others."""
