"""The legs of recall: each turns a query into candidates, independently of the others."""
