"""What a phase function takes. What would fail every job is refused where the phase is declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any, get_args, get_origin

from typing_extensions import is_typeddict

from pipeline.declare.codec import annotation_of
from pipeline.declare.job import Job

ANY_NUMBER = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
BY_NAME_ALONE = (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)


def parameters(phase: str, work: Callable[..., Any]) -> list[Parameter]:
    """The job, and the results that it takes by name; nothing if nobody knows, as of some functions in C."""
    if inspect.isgeneratorfunction(work) or inspect.isasyncgenfunction(work):
        raise TypeError(f"phase {phase} is a generator, whose code would never run: return a list instead of yielding")
    try:
        taken = list(inspect.signature(work).parameters.values())
    except (TypeError, ValueError):
        return []
    if not taken or taken[0].kind in BY_NAME_ALONE:
        name = getattr(work, "__name__", phase)
        raise TypeError(f"phase {phase} does not take the job as its first argument: write def {name}(job: Job)")
    results = [one for one in taken[1:] if one.kind not in ANY_NUMBER]
    for one in results:
        if one.kind is Parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"phase {phase} takes {one.name!r} by position alone: results of earlier phases come by name"
            )
    return [taken[0], *results]


def check_body(phase: str, work: Callable[..., Any], job: str, body: Any, local: Mapping[str, Any] | None) -> None:
    """TypeError if the phase surely takes jobs of another workflow's body. ``job``: the name of its first argument."""
    try:
        hint = annotation_of(work, job, local)
    except TypeError:
        # Nothing else needs it: it may be imported for type checkers only.
        return
    if get_origin(hint) is Job and _are_apart(asked := get_args(hint)[0], body):
        workflow = phase.partition(".")[0]
        raise TypeError(
            f"phase {phase} takes Job[{asked.__name__}], and the body of workflow {workflow} is "
            f'{body.__name__}: write Workflow("{workflow}", body={asked.__name__}), or another Job[…]'
        )


def _are_apart(asked: Any, body: Any) -> bool:
    """Whether a body is certainly no instance of what is asked for; everything else is for type checkers."""
    classes = all(isinstance(one, type) and not is_typeddict(one) for one in (asked, body))
    return classes and not getattr(asked, "_is_protocol", False) and not issubclass(body, asked)
