from __future__ import annotations

import pytest

from redclf.relations.commands import COMMAND_KINDS, parse_command, shell_text


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cat src/app.py", "view"),
        ("sed -n '10,20p' src/app.py", "view"),
        ("sed -i 's/a/b/' src/app.py", "edit"),
        ("grep -rn needle src", "search"),
        ("cd /repo && ls -la", "list"),
        ("python -m pytest tests/test_app.py -x", "test"),
        ("python run.py --fast", "run"),
        ("pip install requests", "install"),
        ("git log --oneline", "git"),
        ("git checkout -- src/app.py", "edit"),
        ("cat > notes.md <<'EOF'\nhello\nEOF", "create"),
        ("frobnicate now", "other"),
        ("", "other"),
    ],
)
def test_kind(command, kind):
    assert parse_command(command).kind == kind
    assert kind in COMMAND_KINDS


def test_reads_and_writes_are_base_names():
    found = parse_command("cat src/deep/App.py > out/copy.txt 2>/dev/null")
    assert {"app.py"} <= found.reads
    assert found.writes == {"copy.txt"}


def test_range_of_lines():
    assert parse_command("sed -n '10,42p' a.py").lines == (10, 42)
    assert parse_command("cat a.py").lines is None


def test_here_document_ends_before_blank_lines():
    found = parse_command("cat > a.md <<'EOF'\none\n\n  EOF  \n\nls")
    assert found.script == "\none\n" and found.kind == "create"


def test_here_document_is_the_script():
    found = parse_command("python - <<'PY'\nopen('made.txt', 'w').write('x')\nPY")
    assert "made.txt" in found.script
    assert "made.txt" in found.writes
    assert found.kind == "edit"


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("bash", {"command": "ls"}, "ls"),
        ("execute_bash", {"command": "ls", "timeout": 3, "cwd": "/"}, "ls"),
        ("bash", {"cmd": ["ls", "-l"]}, "ls -l"),
        ("bash", "ls", "ls"),
        ("get_book", "ls", None),
        ("get_book", {"title": "ls"}, None),
        ("device", {"command": "on", "room": 1, "level": 2}, None),
        ("bash", {"command": ["ls", 1]}, None),
        ("bash", None, None),
        ("bash", 7, None),
    ],
)
def test_shell_text(tool, arguments, text):
    assert shell_text(tool, arguments) == text


@pytest.mark.parametrize(
    "text",
    [
        "<<E " * 4000,
        "<<E\n" * 200 + "\n" * 15_000,
        ("<<" + "E" * 200) * 90,
        "/" * 20_000,
        "-./" * 6000,
        "-" * 18_000,
        "a/" * 9000,
        "a." * 9000,
        "(" * 20_000,
        "\ud800" * 100,
    ],
)
def test_hostile_text_ends(text):
    parse_command(text)
