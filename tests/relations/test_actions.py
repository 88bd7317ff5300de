from __future__ import annotations

import pytest

from redclf.relations.actions import END, NO_ACTION, action_of, editor_command


def shell(command):
    return action_of("bash", {"command": command})


@pytest.mark.parametrize(
    ("command", "looks"),
    [
        ("cat src/app.py", (("src/app.py", 1, END),)),
        ("sed -n '10,20p' src/app.py", (("src/app.py", 10, 20),)),
        ("sed -n '10,+5p' src/app.py", (("src/app.py", 10, 15),)),
        ("sed -n '10,$p' src/app.py", (("src/app.py", 10, END),)),
        ("nl -ba src/app.py | sed -n '10,20p;30,40p'", (("src/app.py", 10, 20), ("src/app.py", 30, 40))),
        ("head -n 20 src/app.py", (("src/app.py", 1, 20),)),
        ("cat src/app.py | head -5", (("src/app.py", 1, 5),)),
        ("cat src/app.py | grep needle", ()),
    ],
)
def test_lines_that_a_shell_shows(command, looks):
    assert shell(command).looks == looks


def test_here_document_creates_and_runs():
    found = shell("cat > try.py <<'EOF'\nimport app\nEOF\npython try.py")
    assert found.creates == found.writes == found.runs == ("try.py",)
    assert found.script == "import app\n" and found.added == ("import app\n",)


def test_stream_edit():
    found = shell("sed -i '12,14s/old/new/' src/app.py")
    assert found.writes == ("src/app.py",) and found.spots == ((12, 14),)
    assert found.removed == ("old",) and found.added == ("new",)


def test_script_that_writes():
    assert shell("python - <<'EOF'\nopen('src/app.py', 'w').write('x')\nEOF").writes == ("src/app.py",)


def test_patterns_deletes_and_restores():
    assert shell("grep -rn -A 5 'def go' src | head").patterns == ("def go",)
    assert shell("find . -name '*.py' 2>/dev/null").patterns == ("*.py",)
    assert shell("rm try.py try2.py").deletes == ("try.py", "try2.py")
    assert shell("git checkout src/app.py").restores == ("src/app.py",)
    assert shell("git stash").restores == ("*",)


@pytest.mark.parametrize(
    ("tool", "arguments", "look"),
    [
        ("str_replace_editor", {"command": "view", "path": "/r/a.py", "view_range": [3, 9]}, ("/r/a.py", 3, 9)),
        ("str_replace_editor", {"command": "view", "path": "/r/a.py", "view_range": [3, -1]}, ("/r/a.py", 3, END)),
        ("str_replace_editor", {"command": "view", "path": "/r/a.py"}, ("/r/a.py", 1, END)),
        ("Read", {"file_path": "/r/a.py", "offset": 10, "limit": 5}, ("/r/a.py", 10, 14)),
        ("read_file", {"absolute_path": "/r/a.py"}, ("/r/a.py", 1, END)),
        ("open", {"path": "a.py", "line_number": 40}, ("a.py", 40, END)),
        ("goto", {"line_number": 40}, ("", 40, END)),
        ("view_file", {"path": "a.py", "start_line": 4, "end_line": 8}, ("a.py", 4, 8)),
    ],
)
def test_lines_that_an_editor_shows(tool, arguments, look):
    found = action_of(tool, arguments)
    assert found.kind == "view" and found.looks == (look,) and not found.writes


def test_edits_of_editors():
    found = action_of("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": "y"})
    assert (found.kind, found.writes, found.removed, found.added) == ("edit", ("a.py",), ("x",), ("y",))
    found = action_of("edit", {"start_line": 3, "end_line": 4, "replacement_text": "y"})
    assert (found.kind, found.writes, found.spots) == ("edit", ("",), ((3, 4),))
    found = action_of("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "y"}]})
    assert (found.removed, found.added) == (("x",), ("y",))
    found = action_of("write_file", {"path": "a.py", "content": "y"})
    assert (found.kind, found.creates, found.added) == ("create", ("a.py",), ("y",))


def test_patch():
    text = "*** Begin Patch\n*** Update File: a/b.py\n@@\n-x\n+y\n*** Add File: c.py\n+z\n*** End Patch"
    found = action_of("apply_patch", {"input": text})
    assert found.writes == ("a/b.py", "c.py") and found.creates == ("c.py",)
    assert found.removed == ("x",) and found.added == ("y\nz",)


def test_searches_of_editors():
    assert action_of("Grep", {"pattern": "go", "path": "src"}).patterns == ("go",)
    assert action_of("find_file", {"file_name": "a.py", "dir": "src"}).patterns == ("a.py",)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_book", {"title": "a.py"}), ("read_book", {"path": 7}), ("view_account", {"account": "x/y"}),
        ("edit_order", {"order": "a", "text": "b"}), ("search_beds", {"query": "a"}), ("x", None), ("view", []),
        ("device", {"command": "on", "room": 1, "level": 2}),
    ],
)  # fmt: skip
def test_other_tools_are_left_alone(tool, arguments):
    assert action_of(tool, arguments) == NO_ACTION
    assert editor_command(tool, arguments) is None


def test_editor_command():
    found = editor_command("str_replace_editor", {"command": "view", "path": "/r/A.py", "view_range": [3, 9]})
    assert found.kind == "view" and found.reads == {"a.py"} and found.lines == (3, 9) and not found.writes
    assert editor_command("bash", {"command": "cat a.py"}) is None


@pytest.mark.parametrize(
    "text",
    ["'" * 20_000, '"' * 19_999, "\\" * 20_000, "sed -i 's/" + "a" * 19_000, "<<E\n" * 200 + "\n" * 15_000,
     "a/" * 9_000, "| " * 9_000, "> " * 9_000, "sed -i '" + "s/" * 9_000 + "' a.py",
     "sed -i '" + "1s" * 9_000 + "' a.py"],
    ids=range(10),
)  # fmt: skip
def test_hostile_text_ends(text):
    shell(text)
    action_of("apply_patch", {"input": "*** Begin Patch\n" + text})
