"""What a shell command reads, changes and runs: just enough to relate steps of coding agents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

#: Kinds of command, in the order in which the first match wins.
COMMAND_KINDS: tuple[str, ...] = (
    "none",
    "edit",
    "create",
    "test",
    "run",
    "search",
    "view",
    "list",
    "git",
    "install",
    "other",
)

_SHELL_TOOLS = re.compile(r"(^|[_.\-])(bash|shell|sh|terminal|exec|execute|run_command|cmd)([_.\-]|$)", re.I)
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)(?!\w)\1(.*?)^[^\S\n]*\2[^\S\n]*$", re.S | re.M)
_REDIRECT = re.compile(r"(?<![<0-9&])>{1,2}\s*([\w./~+\-]+)")
PATH = re.compile(r"(?<![\w$])(?:[\w.~+\-]*/)*[\w+\-]+\.[A-Za-z]\w{0,5}\b|(?:[\w.~+\-]+/)+[\w.+\-]*")
_PATH_RUN = re.compile(r"\$?[\w.~+\-/]+")
#: Longer runs of a path's characters are data (rules of dashes, base64), and slow to search.
_LONGEST_PATH = 1_000
_RANGE = re.compile(r"(\d+),\s*\+?(\d+)p")
_WORD = re.compile(r"[^\s|&;()]+")

_VIEW = {"cat", "head", "tail", "less", "more", "nl", "sed", "awk", "bat", "view", "open", "wc", "diff"}
_SEARCH = {"grep", "rg", "ag", "ack", "find", "fd", "egrep", "fgrep", "locate"}
_LIST = {"ls", "tree", "pwd", "du", "dir"}
_EDIT = {"patch", "mv", "cp", "rm", "touch", "mkdir", "chmod", "ln", "tee"}
_RUN = {"python", "python3", "node", "ruby", "perl", "make", "cargo", "go", "java", "bash", "sh"}
_TEST = re.compile(r"\b(pytest|tox|unittest|runtests\.py|jest|ctest|manage\.py test|npm test|nosetests)\b")
_INSTALL = re.compile(r"\b(pip3?|npm|apt(-get)?|conda|yarn)\s+(install|add|i)\b")


@dataclass(frozen=True, slots=True)
class Command:
    """The parts of a shell command that relations use.

    Parameters
    ----------
    kind : str
        One of `COMMAND_KINDS`.
    reads, writes : frozenset of str
        Base names of files that it names, and of those that it changes.
    lines : tuple of int or None
        The first and last line shown, where the command prints a range.
    script : str
        Source text written or run by the command (here-documents and `-c` strings).
    """

    kind: str
    reads: frozenset[str]
    writes: frozenset[str]
    lines: tuple[int, int] | None
    script: str


NO_COMMAND = Command("none", frozenset(), frozenset(), None, "")


def shell_text(tool: str, arguments: object) -> str | None:
    """Return the command line of a shell tool's call, or None for another tool."""
    if isinstance(arguments, dict):
        for key in ("command", "cmd", "script", "bash"):
            value = arguments.get(key)
            if isinstance(value, list) and all(isinstance(part, str) for part in value):
                value = " ".join(value)
            if isinstance(value, str) and (key != "command" or _looks_like_shell(tool, arguments)):
                return value
        return None
    if isinstance(arguments, str) and _SHELL_TOOLS.search(tool):
        return arguments
    return None


def _looks_like_shell(tool: str, arguments: dict[str, object]) -> bool:
    return bool(_SHELL_TOOLS.search(tool)) or len(arguments) <= 2


def base_name(path: str) -> str:
    """Return the last part of a path, lower case."""
    return path.rstrip("/").rsplit("/", 1)[-1].lower()


def paths_in(text: str) -> list[str]:
    """Return what looks like a file's path."""
    runs = (run for run in _PATH_RUN.findall(text) if len(run) <= _LONGEST_PATH and ("." in run or "/" in run))
    return [path for run in runs for path in PATH.findall(run)]


@lru_cache(maxsize=4096)
def parse_command(text: str) -> Command:
    """Read a shell command.

    Parameters
    ----------
    text : str
        One command line or script; only its first 20,000 characters are looked at.
    """
    text = text[:20_000]
    scripts: list[str] = []

    def keep(match: re.Match[str]) -> str:
        script = match.group(3)
        end = len(script.rstrip())
        scripts.append(script[: script.find("\n", end) + 1])
        head = script.split("\n", 1)[0]
        return f" {head} "

    outline = HEREDOC.sub(keep, text)
    writes = {base_name(name) for name in _REDIRECT.findall(outline) if name not in ("/dev/null",)}
    writes.discard("null")
    kinds: set[str] = set()
    for segment in re.split(r"[|;&\n]+", outline):
        words = _WORD.findall(segment)
        while words and (words[0] in ("cd", "sudo", "time", "timeout", "env") or "=" in words[0]):
            words = [] if words[0] == "cd" else words[1:]
        if not words:
            continue
        verb = words[0].rsplit("/", 1)[-1]
        if verb == "sed" and any(word.startswith("-i") for word in words[1:3]):
            kinds.add("edit")
            writes.update(base_name(word) for word in words[2:] if PATH.fullmatch(word))
        elif verb in _EDIT:
            kinds.add("edit")
            writes.update(base_name(word) for word in words[1:] if PATH.fullmatch(word))
        elif verb == "git":
            sub = words[1] if len(words) > 1 else ""
            kinds.add("edit" if sub in ("apply", "checkout", "stash", "reset", "restore") else "git")
            if sub in ("checkout", "restore", "apply"):
                writes.update(base_name(word) for word in words[2:] if PATH.fullmatch(word))
        elif verb in _SEARCH:
            kinds.add("search")
        elif verb in _VIEW:
            kinds.add("view")
        elif verb in _LIST:
            kinds.add("list")
        elif verb in _RUN:
            kinds.add("run")
    if scripts and writes:
        kinds.add("create")
    script = "\n".join(scripts)
    if re.search(r"\.write\(|write_text\(|open\([^)]*['\"][wa]\+?['\"]", script) and "run" in kinds:
        kinds.add("edit")
        writes.update(base_name(name) for name in paths_in(script))
    if _TEST.search(outline):
        kinds.add("test")
    if _INSTALL.search(outline):
        kinds.add("install")
    kind = next((kind for kind in COMMAND_KINDS[1:] if kind in kinds), "other")
    reads = {base_name(name) for name in paths_in(outline)}
    reads.discard("null")
    reads.discard("")
    found = _RANGE.search(outline)
    lines = (int(found.group(1)), int(found.group(2))) if found else None
    return Command(kind, frozenset(reads), frozenset(writes), lines, script)
