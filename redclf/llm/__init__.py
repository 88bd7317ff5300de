"""Judges behind an API: configs, prompts, replies, and the runner that pays for no reply twice.

What needs the `llm` extra (`openai`, `typesafe-sdk`, `pyyaml`) is imported where it is used.
"""
