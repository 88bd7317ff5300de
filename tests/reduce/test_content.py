from __future__ import annotations

import pytest

from redclf.reduce.content import Shown, shorten

FILE = [f"    value_{n} = compute(value_{n - 1}, {n})" for n in range(1, 12)]


def test_what_was_shown_becomes_a_pointer():
    shown = Shown({2: "\n".join(["header", *FILE])})
    text = "\n".join(["first line is new", *FILE, "last line is new"])
    assert shorten(text, shown).split("\n") == ["first line is new", "[11 lines as in message 2]", "last line is new"]


def test_few_or_short_lines_stay():
    shown = Shown({2: "\n".join([*FILE, "}", "a", "b"])})
    for text in ("\n".join(FILE[:2]), "}\na\nb\n}\na", "nothing of it"):
        assert shorten(text, shown) == text


def test_spans_of_two_messages_are_pointed_to_apart():
    shown = Shown({2: "\n".join(FILE[:5]), 4: "\n".join(FILE[5:])})
    assert shorten("\n".join(FILE), shown) == "[5 lines as in message 2]\n[6 lines as in message 4]"


@pytest.mark.parametrize("line", ["tests/test_a.py::test_{} PASSED", "test_{} ... ok", "ok {} - works", "✓ does {}"])
def test_passed_tests_become_a_count(line):
    lines = [line.format(n) for n in range(9)]
    assert shorten("\n".join(lines)) == "[9 lines of passed tests]"
    assert shorten("\n".join(lines[:3])) == "\n".join(lines[:3])


@pytest.mark.parametrize(
    "failure",
    ["tests/test_a.py::test_7 FAILED", "E   AssertionError: PASSED was wrong", "Traceback (most recent call last):",
     "ok 7 - but permission denied", "ERROR in node_modules/x/index.js", "✗ does 7", "2024-05-05 12:00:00 fatal: lost"],
)  # fmt: skip
def test_failures_always_stay(failure):
    for like in ("test_{} PASSED", "node_modules/a/{}.js", "2024-05-05 12:00:{} done", " {}% |#####     |"):
        lines = [like.format(n) for n in range(10, 20)]
        found = shorten("\n".join([*lines, failure, *lines])).split("\n")
        assert failure in found and len(found) < 21


def test_paths_of_dependencies():
    text = "\n".join(["src/a.py", *(f"./node_modules/p{n}/i.js" for n in range(6)), "src/b.py"])
    assert shorten(text) == "src/a.py\n[6 paths of dependencies or caches]\nsrc/b.py"


def test_progress_keeps_its_end():
    assert shorten("\n".join(f" {n}%|####      | {n}/100" for n in range(0, 101, 5))) == " 100%|####      | 100/100"
    assert shorten("loading 1\rloading 2\rloaded") == "loaded"


def test_a_log_keeps_its_first_line():
    lines = [f"2024-05-05 12:00:{n} INFO polled queue" for n in range(10, 20)]
    assert shorten("\n".join(lines)) == f"{lines[0]}\n[9 more lines like it]"


def test_data_that_differs_in_numbers_is_no_log():
    text = "\n".join(f"row {n}: {n * n}" for n in range(20))
    assert shorten(text) == text


def test_an_argument_that_the_result_repeats():
    argument = "def f():\n    return 1\n" * 20
    assert (
        shorten(f"wrote:\n{argument}\ndone", arguments=[argument])
        == "wrote:\n[the 440 characters of the call's argument]\ndone"
    )
    assert shorten("wrote: abc", arguments=["abc"]) == "wrote: abc"


@pytest.mark.parametrize("text", ["", "\n", "\n\n\n\n\n\n", "x", "\r", "a\r\nb\r\nc", "\ud800\n" * 5])
def test_odd_texts(text):
    assert len(shorten(text, Shown({0: text}), [text])) <= len(text) + 40
