from __future__ import annotations

import numpy as np
import pytest
from traces import chain, parallel, said, step, trace, user

from redclf.relations.features import PAIR_NAMES, TARGET_NAMES, Relations
from redclf.relations.views import TrajectoryView


def relate(*parts, policy=""):
    from dataclasses import replace

    return Relations(TrajectoryView(replace(trace(*parts), policy=policy)))


def target(relations, place):
    return dict(zip(TARGET_NAMES, relations.target_features[place], strict=True))


def pair(relations, place, evidence):
    at = [c.evidence for c in relations.candidates[place]].index(evidence)
    return dict(zip(PAIR_NAMES, relations.pair_features[place][at], strict=True))


def look(bed, **more):
    return step("get_bed", f'{{"bed": "{bed}", "soil": "s-{bed}"}}', {"bed": bed}, **more)


@pytest.fixture
def search():
    """Three look-ups of which the second one's bed is then watered."""
    return relate(
        user("water the bed with the tomatoes"),
        look("bed-1"),
        look("bed-2"),
        look("bed-3"),
        step("update_bed", "done", {"bed": "bed-2", "litres": 4}),
        said("bed-2 is watered"),
    )


def test_the_look_up_whose_object_is_written_is_the_hit(search):
    places = [target(search, place) for place in range(3)]
    assert [place["hit_position"] for place in places] == [4, 5, 1]
    assert [place["hits_later_n"] for place in places] == [1, 0, 0]
    assert [place["hits_known_n"] for place in places] == [0, 0, 1]
    assert all(place["siblings_n"] == 3 and place["hits_n"] == 1 and place["first_hit_place"] == 1 for place in places)
    assert [place["last_hit_gap"] for place in places] == [-1, 0, 1] and places[0]["after_last_hit_n"] == 1


def test_candidates_that_are_hits_are_marked(search):
    assert pair(search, 0, (3, 4))["next_hit_is"] == 1 and pair(search, 0, (5, 6))["next_hit_is"] == 0
    assert pair(search, 2, (3, 4))["previous_hit_is"] == 1 and pair(search, 2, (1, 2))["previous_hit_is"] == 0
    assert pair(search, 0, (3, 4))["sibling_is"] == 1 and pair(search, 0, (7, 8))["sibling_is"] == 0
    assert pair(search, 0, (9,))["message_names_hit_is"] == 1 and pair(search, 0, (9,))["message_names_target_is"] == 0
    assert pair(search, 1, (9,))["message_names_target_is"] == 1


def test_without_a_choice_nothing_is_a_hit():
    found = relate(user("go"), look("bed-1"), look("bed-2"), said("none of them"))
    assert [target(found, place)["hit_position"] for place in (0, 1)] == [0, 0]
    assert np.isnan(target(found, 0)["first_hit_place"])
    every = relate(user("go"), look("bed-1"), look("bed-2"), said("bed-1 and bed-2 are dry"))
    assert [target(every, place)["hits_n"] for place in (0, 1)] == [0, 0]


def test_a_hit_beside_in_the_same_message():
    found = relate(
        user("go"),
        parallel(*(("get_bed", {"bed": bed}, f"soil of {bed}") for bed in ("bed-1", "bed-2"))),
        step("update_bed", "done", {"bed": "bed-2"}),
    )
    assert target(found, 0)["hits_same_message_n"] == 1 and target(found, 0)["hit_position"] == 3
    assert target(found, 0)["hits_known_n"] == 0 and target(found, 0)["group_taken_f"] == 0.5


def test_exact_repeat_ends_with_a_write():
    water = step("update_bed", "done", {"bed": "bed-9"})
    found = relate(user("go"), look("bed-1"), look("bed-1"), water, look("bed-1"))
    assert [target(found, place)["exact_repeat_is"] for place in range(4)] == [0, 1, 0, 0]


def test_a_refused_call_with_the_users_own_values():
    refused = "Error: bed not found"
    own = relate(user("look at bed-7"), step("get_bed", refused, {"bed": "bed-7"}))
    other = relate(user("look at my bed"), step("get_bed", refused, {"bed": "bed-7"}))
    fine = relate(user("look at bed-7"), look("bed-7"))
    assert target(own, 0)["refused_all_from_user_is"] == 1 and target(other, 0)["refused_all_from_user_is"] == 0
    assert np.isnan(target(fine, 0)["refused_all_from_user_is"])


def test_what_the_user_says_next():
    found = relate(user("which beds are there?"), look("bed-1"), look("bed-2"), user("take bed-2"))
    assert [target(found, place)["named_by_next_user_is"] for place in (0, 1)] == [0, 1]


def test_dates_against_the_policys_today():
    plan = step("plan", "ok", {"day": "2031-03-02"})
    assert target(relate(user("go"), plan, policy="The current date is 2031-03-05."), 0)["date_past_is"] == 1
    assert target(relate(user("go"), plan, policy="Today is 2031-03-01."), 0)["date_past_is"] == 0
    assert np.isnan(target(relate(user("go"), plan), 0)["date_past_is"])


def test_wants_all():
    assert target(relate(user("show me every bed"), look("bed-1")), 0)["wants_all_is"] == 1
    assert target(relate(user("show me the bed"), look("bed-1")), 0)["wants_all_is"] == 0


def test_other_messages_steps_are_counted_without_ones_own():
    refused = step("get_bed", "Error: bed not found", {"bed": "bed-0"})
    found = relate(user("go"), refused, look("bed-1"), look("bed-1"))
    assert [target(found, place)["others_failed_n"] for place in range(3)] == [0, 1, 1]
    assert [target(found, place)["others_repeated_n"] for place in range(3)] == [1, 1, 0]


def test_many_like_look_ups_in_one_message():
    found = Relations(TrajectoryView(chain(300, 300)))
    assert np.isfinite(target(found, 150)["group_used_f"])
