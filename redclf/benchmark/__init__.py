"""RedundancyBench: data, official metrics, evaluation, tables."""
