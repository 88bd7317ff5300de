"""Small changes to arguments, results and texts: other words, other values, another format."""

from __future__ import annotations

import json
import random
import re
import string
from typing import Any

from train import wordings

_PIECE = re.compile(r"[A-Za-z0-9]+")
_FILLERS = ("official", "current", "details", "about", "info", "latest")


def reword(value: Any, rng: random.Random) -> Any:
    """Say the same arguments in another way: order, filler words."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: reword(value[key], rng) for key in keys}
    if isinstance(value, str) and value.count(" ") >= 2:
        words = value.split(" ")
        for _ in range(rng.randint(1, 3)):
            move = rng.random()
            if move < 0.4 and len(words) > 3:
                words.pop(rng.randrange(len(words)))
            elif move < 0.7:
                at = rng.randrange(len(words) - 1)
                words[at], words[at + 1] = words[at + 1], words[at]
            else:
                words.insert(rng.randrange(len(words)), rng.choice(_FILLERS))
        return " ".join(words)
    return value


def reword_shell(command: str, rng: random.Random) -> str:
    """Write the same command in another way."""
    move = rng.random()
    if move < 0.3:
        return command + " 2>&1"
    if move < 0.5:
        return command.replace(" -n ", " -n  ", 1)
    if move < 0.7:
        return command + " "
    return command


def same_shape(text: str, rng: random.Random) -> str:
    """Return another code of the same shape: digits for digits, letters for letters of its codes.

    Only pieces with a digit, or all in capitals, are changed; the first digit of a number is never 0.
    """

    def other(match: re.Match[str]) -> str:
        piece = match.group()
        if not any(char.isdigit() for char in piece) and not (piece.isupper() and len(piece) > 1):
            return piece
        made = ""
        for char in piece:
            if char.isdigit():
                made += rng.choice(string.digits[1:] if not made else string.digits)
            elif char.isupper():
                made += rng.choice(string.ascii_uppercase)
            else:
                made += char
        return made

    for _ in range(4):
        found = _PIECE.sub(other, text)
        if found != text:
            return found
    return text + rng.choice(string.digits)


def shape_of(text: str) -> str:
    """Return a text with its letters and digits made alike: codes of one kind share it."""
    return re.sub(r"[A-Za-z]+", "a", re.sub(r"\d+", "0", text))


def spoil(value: str, rng: random.Random) -> str:
    """Return an identifier that is slightly wrong."""
    if not value:
        return "unknown"
    at = rng.randrange(len(value))
    letters = string.digits if value[at].isdigit() else string.ascii_lowercase
    move = rng.random()
    if move < 0.5:
        return value[:at] + rng.choice(letters) + value[at + 1 :]
    if move < 0.8:
        return value[:at] + value[at + 1 :] or "x"
    return value + rng.choice(letters)


def other_words(value: str, rng: random.Random) -> str:
    """Return another value for a search or a look-up."""
    words = value.split(" ")
    if len(words) > 2:
        return " ".join([*words[: len(words) // 2], rng.choice(wordings.NOUNS)])
    return value[: max(2, len(value) // 2)] + rng.choice(wordings.NOUNS)


def other_result(text: str, rng: random.Random, keep: float = 0.2) -> str:
    """Return the result of the same tool for another object: its form, with other values.

    Parameters
    ----------
    keep : float
        Share of the values that both objects have in common.
    """
    text = text[:12_000]
    try:
        document = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        document = None
    if document:
        return json.dumps(_other_value(document, rng, keep), ensure_ascii=False)
    words: dict[str, str] = {}

    def other(match: re.Match[str]) -> str:
        word = match.group()
        if word not in words:
            if rng.random() < keep or (len(word) < 4 and not word.isdigit()):
                words[word] = word
            elif any(char.isdigit() for char in word):
                words[word] = same_shape(word, rng)
            else:
                words[word] = rng.choice(wordings.NOUNS)
        return words[word]

    lines = [line if line.startswith("<") else _PIECE.sub(other, line) for line in text.split("\n")]
    return "\n".join(lines)


def _other_value(value: Any, rng: random.Random, keep: float) -> Any:
    if isinstance(value, dict):
        return {key: _other_value(item, rng, keep) for key, item in value.items()}
    if isinstance(value, list):
        return [_other_value(item, rng, keep) for item in value[: max(1, len(value) - rng.randrange(2))]]
    if isinstance(value, bool) or value is None or rng.random() < keep:
        return value
    if isinstance(value, int):
        return int(same_shape(str(abs(value)), rng))
    if isinstance(value, float):
        return round(value * rng.uniform(0.4, 1.9) + 1, 2)
    if any(char.isdigit() for char in value) or value.isupper():
        return same_shape(value, rng)
    if len(value) < 3:
        return value
    return " ".join(rng.choice(wordings.NOUNS) for _ in value.split(" "))


def to_lines(value: Any, depth: int = 0) -> str:
    """Write a JSON document as indented `key: value` lines, as many tools print their results."""
    pad = "  " * depth
    if isinstance(value, dict) and value:
        lines = []
        for key, item in value.items():
            if isinstance(item, dict | list) and item:
                lines.append(f"{pad}{key}:\n{to_lines(item, depth + isinstance(item, dict))}")
            else:
                lines.append(f"{pad}{key}: {_scalar(item)}")
        return "\n".join(lines)
    if isinstance(value, list) and value:
        lines = []
        for item in value:
            if isinstance(item, dict | list) and item:
                block = to_lines(item, depth + 1)
                lines.append(f"{pad}- {block[len(pad) + 2 :]}")
            else:
                lines.append(f"{pad}- {_scalar(item)}")
        return "\n".join(lines)
    return pad + _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and value and "\n" not in value:
        return value
    return json.dumps(value, ensure_ascii=False)


def part_of(text: str, rng: random.Random) -> str | None:
    """Return a proper part of a result, None where it has no parts."""
    try:
        document = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and len(document) > 2:
        size = rng.randint(1, max(1, len(document) // 2))
        keys = set(rng.sample(list(document), size))
        return json.dumps({key: item for key, item in document.items() if key in keys}, ensure_ascii=False)
    if isinstance(document, list) and len(document) > 2:
        size = rng.randint(1, max(1, len(document) // 2))
        start = rng.randrange(len(document) - size + 1)
        return json.dumps(document[start : start + size], ensure_ascii=False)
    lines = text.split("\n")
    if document is None and len(lines) > 5:
        size = rng.randint(2, max(2, len(lines) // 2))
        start = rng.randrange(len(lines) - size + 1)
        found = "\n".join(lines[start : start + size])
        return found if len(found.strip()) > 12 else None
    return None
