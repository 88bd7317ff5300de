"""Scoring many trajectories: in this process, in several, or on a Ray cluster. The results are the same."""
