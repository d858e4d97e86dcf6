"""The writer under ``bench.sampling``."""

from bench.sampling import run_sampled

if __name__ == "__main__":
    run_sampled("signet_actors.writer")
