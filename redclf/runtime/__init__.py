"""Scoring backends behind one interface."""
