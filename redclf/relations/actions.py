"""What one call of a coding agent does to files: lines shown, text changed, patterns searched, scripts run.

Shell commands and the usual tools of editors (`view`, `str_replace`, `open`, `edit`, `apply_patch`, `read_file`, `grep`
...) come out in the same form, so that relations need not know the agent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from redclf.relations.commands import HEREDOC, PATH, Command, base_name, parse_command, paths_in, shell_text

#: Last line of a view of a whole file.
END = 1_000_000_000
#: Characters of a command or edit that are looked at.
MAX_TEXT = 20_000

_TOKEN = re.compile(
    r"(?P<op>&&|\|\||[;|\n])"
    r"|(?P<out>[0-9&]?>{1,2}&?)"
    r"|(?P<word>(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s;|&<>'\"\\])+)",
    re.S,
)
_QUOTES = re.compile(r"'([^']*)'|\"((?:\\.|[^\"\\])*)\"|\\(.)", re.S)
_SED_PRINT = re.compile(r"(\d+)(?:,\s*(\+?)(\d+|\$))?\s*p")
_SED_LINES = re.compile(r"(?:^|[;{\s])(\d+)(?:,\s*(\d+))?\s*[sdciar]")
_SED_SWAP = re.compile(r"(?:^|[\d\s;{/!$])s([/|#,@:!~])((?:\\.|(?!\1).)*)\1((?:\\.|(?!\1).)*)\1", re.S)
_SED_TEXT = re.compile(r"[\d$/}\s][aic]\\?\s*(.+)", re.S)
_PATCH_FILE = re.compile(r"^(?:\*\*\* (Add|Update|Delete) File: (.+)|\+\+\+ (?:b/)?(\S+))", re.M)
_CODE_WRITES = re.compile(r"\.write\(|\.writelines\(|write_text\(|open\([^)]*['\"][wa]\+?['\"]")
_NUMBER = re.compile(r"-?\d+")

_SEARCHES = {"grep", "rg", "ag", "ack", "egrep", "fgrep"}
_FINDS = {"find", "fd", "locate"}
_PRINTS = {"cat", "nl", "less", "more", "bat", "head", "tail", "sed", "awk"}
_SHELLS = {"python", "python3", "python2", "node", "ruby", "perl", "bash", "sh", "pytest"}
_VALUED = frozenset("-A -B -C -m -e -f -n -c -k -g -t --include --exclude --type --glob -maxdepth".split())

#: Names of the argument that holds a file's path.
PATH_KEYS = (
    "path", "file_path", "filepath", "filename", "file_name", "file", "absolute_path", "target_file",
    "relative_workspace_path", "notebook_path", "relative_path",
)  # fmt: skip
_NEW_KEYS = (
    "new_str", "new_string", "file_text", "content", "contents", "replacement_text", "replace", "insert_text",
    "new_text", "text", "code_edit", "new_content",
)  # fmt: skip
_OLD_KEYS = ("old_str", "old_string", "search", "old_text", "old_content")
_FIRST_KEYS = (
    "start_line",
    "line_number",
    "offset",
    "start",
    "line",
    "insert_line",
    "start_line_one_indexed",
    "from_line",
)
_LAST_KEYS = ("end_line", "end", "end_line_one_indexed_inclusive", "to_line")
_PATTERN_KEYS = ("pattern", "query", "search_term", "regex", "search_query", "term", "keyword", "glob_pattern")
_PLACE_KEYS = ("path", "dir", "directory", "dir_path", "root", "include")
_EDITOR_NAME = re.compile(
    r"(?i)(edit|str_?replace|view|open|goto|scroll|create|write|insert|apply_?patch|read|replace|undo|notebook|cat)"
)
_VERBS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("search", re.compile(r"(?i)(^|_)(grep|glob|search|find)|codebase_search|^grep$|_search$")),
    ("list", re.compile(r"(?i)(^|_)(ls|list|tree)(_|$)|list_?dir|listfiles")),
    ("undo", re.compile(r"(?i)undo|revert")),
    ("create", re.compile(r"(?i)(^|_)(create|write)(_|$)|^write|^create")),
    ("edit", re.compile(r"(?i)edit|replace|insert|patch")),
    ("view", re.compile(r"(?i)view|open|goto|scroll|read|cat$|show")),
    ("delete", re.compile(r"(?i)delete|remove")),
)
_SUBCOMMANDS = {
    "view": "view", "create": "create", "str_replace": "edit", "insert": "edit", "undo_edit": "undo", "edit": "edit",
    "write": "create", "read": "view", "open": "view", "replace": "edit", "append": "edit", "delete": "delete",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Action:
    """What one call does to files.

    Parameters
    ----------
    kind : str
        One of `redclf.relations.commands.COMMAND_KINDS`.
    looks : tuple of (path, first, last)
        Line ranges that it prints; a whole file ends at `END`. The path is "" where the call leaves it to what is open.
    named, writes, creates, deletes, restores, runs : tuple of str
        Paths, as the call spells them. `creates` are also in `writes`; `restores` go back to the committed version.
    patterns : tuple of str
        What it searches for.
    spots : tuple of (first, last)
        Lines that it changes, where it names them.
    added, removed : tuple of str
        Text that an edit writes, and text that it replaces.
    script : str
        Source text written or run by a shell command.
    """

    kind: str = "none"
    looks: tuple[tuple[str, int, int], ...] = ()
    named: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    creates: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    restores: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    spots: tuple[tuple[int, int], ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    script: str = ""


NO_ACTION = Action()


def action_of(tool: str, arguments: object) -> Action:
    """Return what a call does to files; `NO_ACTION` for a tool that is neither a shell nor an editor's."""
    edited = _editor_action(tool, arguments)
    if edited is not None:
        return edited
    shell = shell_text(tool, arguments)
    return NO_ACTION if shell is None else shell_action(shell)


def editor_command(tool: str, arguments: object) -> Command | None:
    """Return an editor tool's call in the form of a shell command, None for any other tool."""
    action = _editor_action(tool, arguments)
    if action is None:
        return None
    lines = [(first, last) for _, first, last in action.looks if last != END]
    reads = frozenset(base_name(path) for path in action.named if path)
    writes = frozenset(base_name(path) for path in (*action.writes, *action.deletes) if path)
    return Command(action.kind, reads, writes, lines[0] if lines else None, "")


# ---- editors ------------------------------------------------------------------------------------


def _text(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return value[:MAX_TEXT]
    return None


def _number(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) and len(value) < 12:
            return int(value)
    return None


def _looks_like_path(text: str) -> bool:
    return len(text) < 400 and "\n" not in text and ("/" in text or PATH.fullmatch(text.strip()) is not None)


def _patch_text(arguments: object) -> str | None:
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    for value in values:
        if isinstance(value, str) and ("*** Begin Patch" in value[:2_000] or re.search(r"^@@ ", value[:2_000], re.M)):
            return value[:MAX_TEXT]
    return None


def _editor_action(tool: str, arguments: object) -> Action | None:
    patch = _patch_text(arguments) if re.search(r"(?i)patch|diff", tool) else None
    if patch is not None:
        return _patch_action(patch)
    if not isinstance(arguments, dict) or not arguments:
        return None
    sub = arguments.get("command")
    path = _text(arguments, PATH_KEYS)
    verb = _SUBCOMMANDS.get(sub.strip()) if isinstance(sub, str) and path is not None else None
    if verb is None:
        if isinstance(sub, str) or shell_text(tool, arguments) is not None:
            return None
        verb = next((name for name, pattern in _VERBS if pattern.search(tool)), None)
    pattern = _text(arguments, _PATTERN_KEYS)
    if verb in ("search", "list"):
        place = _text(arguments, _PLACE_KEYS) or path
        wanted = pattern or _text(arguments, PATH_KEYS[3:6]) if verb == "search" else None
        if place is None or not _looks_like_path(place + "/") or (verb == "search" and wanted is None):
            return None
        return Action(kind=verb, named=(place,), patterns=(wanted,) if wanted else ())
    if verb is None or not _EDITOR_NAME.search(tool):
        return None
    if path is None:
        spot = _number(arguments, _FIRST_KEYS)
        bare = verb == "view" and set(arguments) <= {"line_number", "line"}
        if spot is None or not (bare or (verb == "edit" and _text(arguments, _NEW_KEYS) is not None)):
            return None
        path = ""
    elif not _looks_like_path(path):
        return None
    first, last = _number(arguments, _FIRST_KEYS), _number(arguments, _LAST_KEYS)
    if verb == "view":
        return Action(kind="view", looks=((path, *_window(arguments, first, last)),), named=(path,))
    added, removed = _text(arguments, _NEW_KEYS), _text(arguments, _OLD_KEYS)
    pairs = arguments.get("edits")
    more = [pair for pair in pairs[:50] if isinstance(pair, dict)] if isinstance(pairs, list) else []
    news = tuple(text for text in (added, *(_text(pair, _NEW_KEYS) for pair in more)) if text)
    olds = tuple(text for text in (removed, *(_text(pair, _OLD_KEYS) for pair in more)) if text)
    if verb == "delete":
        return Action(kind="edit", named=(path,), deletes=(path,), writes=(path,))
    if verb == "undo":
        return Action(kind="edit", named=(path,), writes=(path,), restores=(path,))
    if verb == "create":
        return Action(kind="create", named=(path,), writes=(path,), creates=(path,), added=news, script="\n".join(news))
    spots = ((first, first if last is None else last),) if first is not None else ()
    return Action(kind="edit", named=(path,), writes=(path,), spots=spots, added=news, removed=olds)


def _window(arguments: Mapping[str, Any], first: int | None, last: int | None) -> tuple[int, int]:
    """Return the first and last line that an editor's view shows."""
    span = arguments.get("view_range")
    if isinstance(span, str):
        span = [int(number) for number in _NUMBER.findall(span[:40])][:2]
    if isinstance(span, list) and len(span) == 2 and all(isinstance(number, int) for number in span):
        return max(span[0], 1), END if span[1] < 0 else span[1]
    if first is None:
        return 1, END
    if last is not None:
        return first, END if last < 0 else last
    limit = _number(arguments, ("limit", "num_lines", "window", "length"))
    return max(first, 1), END if limit is None else max(first, 1) + limit - 1


def _patch_action(text: str) -> Action:
    writes, creates, deletes = [], [], []
    for verb, path, plain in _PATCH_FILE.findall(text):
        path = (path or plain).strip()
        writes.append(path)
        if verb == "Add":
            creates.append(path)
        elif verb == "Delete":
            deletes.append(path)
    lines = text.split("\n")
    added = "\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++"))
    removed = "\n".join(line[1:] for line in lines if line.startswith("-") and not line.startswith("---"))
    return Action(
        kind="create" if creates and len(creates) == len(writes) else "edit",
        named=tuple(writes),
        writes=tuple(writes),
        creates=tuple(creates),
        deletes=tuple(deletes),
        added=(added,) if added else (),
        removed=(removed,) if removed else (),
    )


# ---- shells -------------------------------------------------------------------------------------


def _unquote(word: str) -> str:
    return _QUOTES.sub(lambda match: next((part for part in match.groups() if part is not None), ""), word)


def _segments(outline: str) -> list[tuple[list[str], list[str], bool]]:
    """Return, for each simple command: its words, the files it writes its output to, and whether input is piped in."""
    found: list[tuple[list[str], list[str], bool]] = []
    words: list[str] = []
    outs: list[str] = []
    piped = to_file = False
    for match in _TOKEN.finditer(outline):
        if match.lastgroup == "op":
            if words:
                found.append((words, outs, piped))
            words, outs, piped, to_file = [], [], match.group() == "|", False
        elif match.lastgroup == "out":
            to_file = not match.group().endswith("&")
        elif to_file:
            outs.append(_unquote(match.group()))
            to_file = False
        else:
            words.append(_unquote(match.group()))
    if words:
        found.append((words, outs, piped))
    return found


@lru_cache(maxsize=4096)
def shell_action(text: str) -> Action:
    """Return what a shell command does to files."""
    text = text[:MAX_TEXT]
    command = parse_command(text)
    scripts: list[str] = []

    def keep(match: re.Match[str]) -> str:
        head, _, body = match.group(3).partition("\n")
        scripts.append(body)
        return f" {head}\n"

    outline = HEREDOC.sub(keep, text)
    looks: list[tuple[str, int, int]] = []
    named: list[str] = []
    writes: list[str] = []
    creates: list[str] = []
    deletes: list[str] = []
    restores: list[str] = []
    runs: list[str] = []
    patterns: list[str] = []
    spots: list[tuple[int, int]] = []
    added: list[str] = []
    removed: list[str] = []
    last_file = ""
    for words, outs, piped in _segments(outline):
        while words and (words[0] in ("sudo", "time", "timeout", "env", "xargs") or re.match(r"\w+=", words[0])):
            words = words[2:] if words[0] == "timeout" else words[1:]
        outs = [path for path in outs if path not in ("/dev/null", "")]
        writes += outs
        if not words:
            continue
        verb, rest = words[0].rsplit("/", 1)[-1], words[1:]
        scripted = verb in ("sed", "awk") and "-e" not in rest and "-f" not in rest
        program = next((word for word in rest if not word.startswith("-")), None) if scripted else None
        files = [
            word
            for word in rest
            if word is not program and not word.startswith("-") and len(word) < 400 and PATH.fullmatch(word)
        ]
        named += files
        if outs and verb in ("cat", "echo", "printf", "tee"):
            creates += outs
            if verb in ("echo", "printf"):
                added.append(" ".join(rest))
        elif verb == "sed" and any(word.startswith("-i") or word == "--in-place" for word in rest):
            writes += files
            for word in rest:
                if word.startswith("-") or word in files:
                    continue
                spots += [(int(a), int(b or a)) for a, b in _SED_LINES.findall(word[:2_000])]
                swaps = _SED_SWAP.findall(word)
                removed += [old for _, old, _ in swaps]
                added += [new for _, _, new in swaps] or [found.group(1) for found in [_SED_TEXT.search(word)] if found]
        elif verb == "sed":
            prints = [spot for word in rest if not word.startswith("-") for spot in _SED_PRINT.findall(word[:500])]
            path = files[-1] if files else last_file
            for first, plus, last in prints:
                start = int(first[:9])
                end = start if not last else END if last == "$" else int(last[:9]) + (start if plus else 0)
                looks.append((path, start, end))
            if files and not prints:
                patterns += [word for word in rest if not word.startswith("-") and word not in files]
            if piped and looks and prints:
                looks = [look for look in looks if look[0] != path or look[2] != END] or looks
        elif verb in ("head", "tail"):
            count = next((int(word.lstrip("-n")) for word in rest if re.fullmatch(r"-n?\d{1,8}", word)), None)
            if count is None:
                count = next((int(word) for word in rest if re.fullmatch(r"\d{1,8}", word)), 10)
            if files and verb == "head":
                looks += [(path, 1, count) for path in files]
            elif piped and verb == "head" and looks and looks[-1][2] == END:
                looks[-1] = (looks[-1][0], looks[-1][1], looks[-1][1] + count - 1)
        elif verb == "open" and files:
            start = next((int(word) for word in rest if re.fullmatch(r"\d{1,8}", word)), 1)
            looks.append((files[0], start, END))
        elif verb in ("cat", "nl", "less", "more", "bat"):
            looks += [(path, 1, END) for path in files]
        elif verb in _SEARCHES:
            patterns += _grep_patterns(rest)
            if piped and looks and not files:
                looks.pop()
        elif verb in _FINDS:
            at = next((place for place, word in enumerate(rest) if word in ("-name", "-iname", "-path")), None)
            patterns += rest[at + 1 : at + 2] if at is not None else []
            named += [word for word in rest[:1] if not word.startswith("-")]
        elif verb == "ls":
            named += [word for word in rest if not word.startswith("-")]
        elif verb == "rm":
            deletes += [word for word in rest if not word.startswith("-")]
        elif verb == "git" and rest and rest[0] in ("checkout", "restore", "stash", "reset"):
            restores += files or (["*"] if rest[0] in ("stash", "reset") or "." in rest else [])
        elif verb in ("mv", "cp", "touch", "patch"):
            writes += files[-1:]
            creates += files[-1:]
            deletes += files[:-1] if verb == "mv" else []
        elif verb in _SHELLS:
            runs += files[:3]
            scripts += [rest[at + 1] for at, word in enumerate(rest[:-1]) if word in ("-c", "-e")]
        elif words[0].startswith(("./", "bin/", "tests/")):
            runs.append(words[0])
            runs += files[:3]
        if files and verb in _PRINTS:
            last_file = files[-1]
    code = "\n".join(scripts)
    if creates and scripts:
        added.append(code)
    elif command.kind in ("run", "edit", "test") and _CODE_WRITES.search(code):
        writes += paths_in(code)[:20]
        added.append(code)
    return Action(
        kind=command.kind,
        looks=tuple(looks[:20]),
        named=tuple(dict.fromkeys((*named, *writes)))[:60],
        writes=tuple(dict.fromkeys(writes))[:40],
        creates=tuple(dict.fromkeys(creates))[:40],
        deletes=tuple(dict.fromkeys(deletes))[:40],
        restores=tuple(dict.fromkeys(restores))[:40],
        runs=tuple(dict.fromkeys(runs))[:10],
        patterns=tuple(dict.fromkeys(patterns))[:10],
        spots=tuple(spots[:20]),
        added=tuple(text for text in added if text),
        removed=tuple(text for text in removed if text),
        script=code,
    )


def _grep_patterns(words: list[str]) -> list[str]:
    for place, word in enumerate(words[:-1]):
        if word in ("-e", "--regexp"):
            return [words[place + 1]]
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in _VALUED:
            skip = word not in ("-n", "-c", "-f")
        elif not word.startswith("-"):
            return [word]
    return []


def writes_files(script: str) -> tuple[str, ...]:
    """Return the paths that a script names, where it looks as if it wrote files."""
    return tuple(paths_in(script)[:20]) if _CODE_WRITES.search(script) else ()
