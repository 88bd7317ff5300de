"""The torch module of the cross-encoder. Needed for training only; inference runs without torch."""
