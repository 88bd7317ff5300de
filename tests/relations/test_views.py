from __future__ import annotations

import json
import random
import re

import pytest
from traces import chain, parallel, said, step, trace, user
from work import work

from redclf.relations.views import STOPWORDS, TrajectoryView, atoms_of, is_identifier, verb_kind


def views(*parts):
    return TrajectoryView(trace(*parts)).steps


class TestAtoms:
    def test_lower_case_without_stop_words(self):
        assert (
            atoms_of("The Bed #A12 is at desk@library.org, please.")
            == {"bed", "#a12", "desk@library.org", "at"} - STOPWORDS
        )

    def test_trailing_punctuation_and_whole_floats(self):
        assert atoms_of("weight: 12.0 (kg). path/to/x.") == {"weight", "12", "kg", "path/to/x"}

    def test_same_as_the_pattern_that_goes_back_for_the_last_letter(self):
        old = re.compile(r"[A-Za-z0-9#][\w\-./@#:%$+]*[\w]|[A-Za-z0-9]")

        def slow(text):
            found = set()
            for token in old.findall(text):
                token = token.lower().strip("./:-")
                if token and token not in STOPWORDS:
                    found.add(token[:-2] if token.endswith(".0") else token)
            return frozenset(found)

        rng = random.Random(0)
        for _ in range(3000):
            text = "".join(rng.choice("aB0é漢_#.-/:@%$+ \n,0.") for _ in range(rng.randrange(30)))
            assert atoms_of(text) == slow(text), text

    @pytest.mark.parametrize("text", ["#" * 30_000, "a" + "." * 30_000, "#." * 15_000])
    def test_long_runs_of_punctuation(self, text):
        atoms_of(text)

    def test_identifier(self):
        assert is_identifier("a12") and is_identifier("snake_case") and is_identifier("x@y")
        assert not is_identifier("word") and not is_identifier("7")


@pytest.mark.parametrize(
    ("tool", "kind"),
    [("get_bed", -1), ("water_bed", 0), ("updateBed", 1), ("bed.delete", 1), ("admin-list-users", -1), ("", 0)],
)
def test_verb_kind(tool, kind):
    assert verb_kind(tool) == kind


class TestSteps:
    def test_json_result(self):
        (view,) = views(user("look"), step("get_bed", '{"id": "bed-1", "wet": true, "none": null}', {"bed": "bed-1"}))
        assert view.structured == 1 and view.items == 3
        assert view.arg_ids == {"bed-1"} and "bed-1" in view.ids
        assert len(view.facts) == 2

    def test_list_and_text_results(self):
        listed, text = views(
            user("go"), step("list_beds", '[{"id": 1}, {"id": 2}]'), step("read_note", "one\ntwo\n1: one")
        )
        assert (listed.structured, listed.items) == (2, 2)
        assert text.structured == 0 and len(text.facts) == 2

    @pytest.mark.parametrize("result", ["", "[]", "{}", "null", " [ ] ", "None"])
    def test_empty(self, result):
        assert views(user("go"), step("find", result))[0].empty

    def test_write_needs_success(self):
        done, failed = views(user("go"), step("update_bed", '{"ok": 1}'), step("update_bed", "Error: not found"))
        assert done.write and not failed.write and failed.failure == "rejected"

    def test_write_of_a_shell_is_what_it_changes(self):
        change, look = views(
            user("go"), step("bash", "", {"command": "echo x > a.txt"}), step("bash", "x", {"command": "cat a.txt"})
        )
        assert change.write and not look.write

    def test_new_atoms_are_those_never_seen(self):
        first, second = views(user("see bed-1"), step("get", "bed-1 wet-2"), step("get", "wet-2 dry-3"))
        assert first.new_atoms == {"wet-2"} and second.new_atoms == {"dry-3"}

    def test_groups_and_turns(self):
        steps = views(user("a"), parallel(("x", {}, "1"), ("y", {}, "2")), said("so"), user("b"), step("z", "3"))
        assert [(s.place, s.group, s.turn) for s in steps] == [(0, 2, 1), (1, 2, 1), (0, 1, 2)]

    def test_keys_of_arguments_in_any_order_are_the_same_call(self):
        a, b = views(user("go"), step("f", "1", {"x": 1, "y": 2}), step("f", "1", {"y": 2, "x": 1}))
        assert a.call_key == b.call_key


class TestIndex:
    def test_where_atoms_occur(self):
        view = TrajectoryView(
            trace(user("bed-1"), step("get", "wet-2", {"b": "bed-1"}), said("wet-2"), user("wet-2 ok"))
        )
        assert view.first_seen["bed-1"] == 0 and view.first_seen["wet-2"] == 2
        assert view.in_args["bed-1"] == [0] and view.in_text["wet-2"] == [3] and view.in_user["wet-2"] == [4]
        assert view.later([1, 3, 5], 3) == 1 and view.later(None, 0) == 0

    def test_one_call_rule(self):
        assert TrajectoryView(trace(user("a"), policy="You may only make one tool call at a time.")).one_call_rule
        assert not TrajectoryView(trace(user("a"), policy="Make many calls.")).one_call_rule


def nested(depth):
    value = {"leaf": 1}
    for _ in range(depth):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    "arguments",
    [None, "raw text", "{broken", 7, 1.5, True, [], ["a", {"b": [1]}], {1: "one", "two": 2}, {"x": float("nan")},
     {"x": float("inf")}, {"bad": "\ud800x"}, {"s": {1, 2}}, nested(200), nested(50_000)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_any_arguments(arguments):
    (view,) = views(user("go"), step("get", "x1", arguments))
    assert isinstance(view.arguments, str)


@pytest.mark.parametrize(
    "result",
    ["\ud800 half a pair", "[" * 50_000, "{" * 50_000, '{"a": NaN}', "\x00\x01", json.dumps(nested(300)),
     "#" * 100_000, "word " * 1_000_000, json.dumps([{"id": n} for n in range(100_000)]),
     "x" * 5_000_000, "\n" * 5_000_000],
    ids=range(11),
)  # fmt: skip
def test_any_result(result):
    (view,) = views(user("go"), step("get", result))
    assert view.length == len(result)


def test_no_interactions():
    assert TrajectoryView(trace()).steps == []
    assert TrajectoryView(trace(user("hello"), said("hello"))).steps == []


def test_work_grows_with_the_length_and_no_faster():
    counts = [work(lambda n=n: TrajectoryView(chain(n)).steps) for n in (400, 1600)]
    assert counts[1] < 4.5 * counts[0]
