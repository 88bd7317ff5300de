"""Jev, on the official `typesafe-sdk`: typed questions over a shared state."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from redclf.benchmark.predictions import as_probability
from redclf.errors import RedclfError
from redclf.llm.config import JevConfig
from redclf.llm.http import token_count, unanswered
from redclf.llm.keys import Secret
from redclf.llm.prompts import definitions, quote
from redclf.llm.runner import Answer, Request, Unanswered
from redclf.relations.candidates import Candidate, CandidateIndex
from redclf.relations.views import TrajectoryView
from redclf.taxonomy import CATEGORIES, DEFINITIONS
from redclf.trajectory import Trajectory

KEY = "TYPESAFE_API_KEY"

#: Choices of one question at most.
MAX_CHOICES = 255
NECESSARY = "Necessary Step"
_NECESSARY = (
    "The run needed it: it changed what the task asks to be changed, brought information that a later step or reply "
    "uses, or made a check that the policy demands."
)

#: A question of Jev's, as its wire format has it.
Question = dict[str, Any]


class JevClient:
    """Sends System One requests.

    Parameters
    ----------
    config : JevConfig
    secret : Secret

    Raises
    ------
    RedclfError
        If the SDK is not installed, or refuses the key.
    """

    def __init__(self, config: JevConfig, secret: Secret) -> None:
        try:
            from typesafe_sdk import RetryPolicy, TypeSafeClient, TypeSafeError
        except ImportError:
            raise RedclfError(
                "jev: expected the llm extra, typesafe-sdk missing; run: pip install 'redclf[llm]'"
            ) from None
        self._secret = secret
        try:
            # The runner repeats: one rule for all endpoints, and every attempt counted.
            self._client = TypeSafeClient(
                api_key=secret.reveal(),
                base_url=config.base_url,
                model=config.model,
                timeout=config.timeout,
                retry=RetryPolicy(max_retries=0),
            )
        except TypeSafeError as error:
            raise RedclfError(f"jev: {secret.variable}: {secret.redact(str(error))}") from None

    def ask(self, request: Request) -> Answer:
        """Send one request, once.

        Raises
        ------
        Unanswered
        """
        import typesafe_sdk as sdk

        body = request.body
        try:
            response = self._client.system_one(
                state=body["state"],
                questions=body["questions"],
                model=body["model"],
                extra_headers={"Idempotency-Key": request.key},
            )
        except sdk.TypeSafeAPIResponseValidationError as error:
            used = error.body.get("usage") if isinstance(error.body, dict) else None
            note = self._secret.redact(f"the response lacks {error.field_path or 'an object'}")
            return Answer(None, note, *_tokens(used if isinstance(used, dict) else {}))
        except sdk.TypeSafeAPIError as error:
            raise unanswered(error.status, error.headers, str(error), self._secret) from None
        except sdk.TypeSafeAPIConnectionError as error:
            raise Unanswered(self._secret.redact(str(error)), retry=True) from None
        except Exception as error:
            # Whatever a library raises may quote headers.
            reason = self._secret.redact(f"{type(error).__name__}: {error}")
            raise Unanswered(reason, retry=False) from None
        choices = {
            name: {"choice": answer.choice, "probabilities": dict(answer.probabilities)}
            for name, answer in response.choices.items()
        }
        return Answer(self._secret.redact(choices), "", *_tokens(response.usage.model_dump()))


def _tokens(usage: Mapping[str, Any]) -> tuple[int | None, int | None]:
    return token_count(usage.get("input_tokens")), token_count(usage.get("output_tokens"))


def state_of(trajectory: Trajectory) -> dict[str, Any]:
    """Return the shared state of all questions about a trajectory: trajectory, policy and definitions."""
    return {
        "definitions": definitions(),
        "policy": trajectory.policy.encode("utf-8", "replace").decode(),
        "trajectory": [json.loads(line) for line in quote(trajectory).splitlines()],
    }


def category_question(step: Sequence[int], evidence: Sequence[int] | None = None) -> Question:
    """Return a Choice among the four categories; the evidence is given in StepCls."""
    given = "" if evidence is None else f" Its evidence is {json.dumps(list(evidence))}."
    return _choice(
        f"The agent's step {json.dumps(list(step))} is redundant.{given} Which category does it belong to?",
        {name: DEFINITIONS[name] for name in CATEGORIES},
    )


def step_question(step: Sequence[int]) -> Question:
    """Return a Choice among necessary and the four categories, for one interaction."""
    return _choice(
        f"Is the agent's step {json.dumps(list(step))} necessary or redundant, and if redundant, of which category?",
        {NECESSARY: _NECESSARY, **{name: DEFINITIONS[name] for name in CATEGORIES}},
    )


def evidence_question(trajectory: Trajectory, step: Sequence[int], category: str | None = None) -> Question:
    """Return a Choice among the evidence candidates of a redundant step, at most `MAX_CHOICES`."""
    view = TrajectoryView(trajectory)
    target = view.steps[trajectory.interaction_at(step).ordinal]
    candidates = CandidateIndex(view).all(target)
    # The last one is the policy.
    kept = candidates if len(candidates) <= MAX_CHOICES else [*candidates[: MAX_CHOICES - 1], candidates[-1]]
    kind = "redundant" if category is None else f"redundant ({category})"
    return _choice(
        f"The agent's step {json.dumps(list(step))} is {kind}. Which evidence shows it?",
        {evidence_label(c.evidence): _description(c, trajectory, view) for c in kept},
    )


def evidence_label(evidence: Sequence[int]) -> str:
    """Return the name of a choice that stands for an evidence."""
    return json.dumps(list(evidence))


def read_label(label: str) -> tuple[int, ...]:
    """Return the evidence that a choice stands for."""
    return tuple(json.loads(label))


def _description(candidate: Candidate, trajectory: Trajectory, view: TrajectoryView) -> str:
    if candidate.kind == "policy":
        return "a rule of the policy or a fixed constraint of the tools"
    if candidate.kind == "message":
        return f"the single message {candidate.evidence[0]} ({trajectory.messages[candidate.evidence[0]].role})"
    tools = [view.steps[place].tool for place in candidate.members]
    return f"the step {tools[0]}" if len(tools) == 1 else f"only together: {', '.join(tools)}"


def _choice(instructions: str, criteria: Mapping[str, str]) -> Question:
    return {"type": "choice", "instructions": instructions, "criteria": dict(criteria)}


def pack(
    model: str, state: Mapping[str, Any], questions: Iterable[Question], max_questions: int, max_bytes: int
) -> Iterator[dict[str, Any]]:
    """Yield request bodies: as many questions in each as both limits allow, named `q0`, `q1`, ...

    Nothing is cut: a question that alone exceeds `max_bytes` with the state goes alone.
    """
    empty = _size({"model": model, "state": state, "questions": {}})
    held: dict[str, Question] = {}
    size = empty
    for question in questions:
        more = _size({f"q{len(held)}": question}) + 1
        if held and (len(held) == max_questions or size + more > max_bytes):
            yield {"model": model, "state": state, "questions": held}
            held, size = {}, empty
        held[f"q{len(held)}"] = question
        size += more
    if held:
        yield {"model": model, "state": state, "questions": held}


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def read_choice(reply: Any, name: str, question: Question) -> tuple[str, dict[str, float]] | None:
    """Return the choice and the probabilities of one question; None where the reply has none of its choices."""
    answer = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(answer, dict):
        return None
    choice, given = answer.get("choice"), answer.get("probabilities")
    if not isinstance(choice, str) or choice not in question["criteria"]:
        return None
    known = {
        label: p
        for label in question["criteria"]
        if isinstance(given, dict) and (p := as_probability(given.get(label))) is not None
    }
    # The prediction is the choice that came back, whatever the probabilities say.
    return choice, known if known and max(known, key=lambda label: known[label]) == choice else {choice: 1.0}
