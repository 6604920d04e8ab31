"""Types of values that travel: how each goes into JSON and back, and which ones a function takes and returns."""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import Parameter, isasyncgenfunction, isgeneratorfunction, signature, unwrap
from types import SimpleNamespace, UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints

from typing_extensions import TypeVar, is_typeddict

from pipeline.declare import lossless
from pipeline.declare.errors import Misuse
from pipeline.declare.job import PLAIN, Done, Job
from pipeline.declare.waits.next import Children

# So many of a value's mistakes are named.
MOST = 5
ANY_NUMBER = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
BY_NAME_ALONE = (Parameter.KEYWORD_ONLY, Parameter.VAR_KEYWORD)


class DoesNotFit(ValueError):
    """The value is not of the type. ``mistakes``: by field, what is wrong with it."""

    def __init__(self, mistakes: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {said}" if field else said for field, said in mistakes))
        self.mistakes = mistakes


class Codec(Protocol):
    """How values of one type travel."""

    @property
    def annotation(self) -> Any:
        """The type."""

    def encode(self, value: object) -> bytes:
        """Its JSON. ValueError, with a sentence, if it is not of the type or cannot travel."""

    def decode(self, text: bytes | str) -> Any:
        """The value. DoesNotFit if the JSON is not one of the type."""

    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of what it reads; None if that is anything, or if JSON Schema has no words for it."""


class Typed:
    """Values of an annotation: a pydantic model, a dataclass, a TypedDict, list[str], Decimal, datetime, …"""

    def __init__(self, annotation: Any) -> None:
        # Loaded by those who name types: it is a third of a client's start.
        from pydantic import TypeAdapter

        self.annotation = annotation
        self._adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    def encode(self, value: object) -> bytes:
        encoded, made = self._dump(value)
        lossless.check(encoded, lambda: self._adapter.dump_python(made, warnings="none"))
        # What nobody could read is refused where it is written: a model may have been changed since it was made.
        self.decode(encoded)
        return encoded

    def _dump(self, value: object) -> tuple[bytes, object]:
        """Its JSON, and what that was made of."""
        from pydantic import ValidationError
        from pydantic_core import PydanticSerializationError

        try:
            return self._adapter.dump_json(value, by_alias=True, round_trip=True, warnings="error"), value
        except PydanticSerializationError:
            # Not an instance of the type; perhaps what one is made of, such as a dictionary.
            pass
        try:
            made = self._adapter.validate_python(value)
            return self._adapter.dump_json(made, by_alias=True, round_trip=True), made
        except ValidationError as error:
            raise _does_not_fit(error) from None
        except PydanticSerializationError as error:
            raise ValueError(str(error)) from None

    def decode(self, text: bytes | str) -> Any:
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            raise _does_not_fit(error) from None

    def schema(self) -> dict[str, Any] | None:
        from pydantic.errors import PydanticInvalidForJsonSchema

        try:
            return self._adapter.json_schema()
        except PydanticInvalidForJsonSchema:
            return None


def _does_not_fit(error: Any) -> DoesNotFit:
    mistakes = error.errors(include_url=False, include_input=False, include_context=False)
    named = [(".".join(str(part) for part in one["loc"]), one["msg"]) for one in mistakes[:MOST]]
    return DoesNotFit(named)


ANYTHING = (Any, object, dict, list, dict[str, Any], Mapping[str, Any], list[Any])


def codec_of(annotation: Any) -> Codec:
    """How values of the annotation travel. TypeError if it is none whose values can."""
    if annotation in ANYTHING:
        return PLAIN
    return _typed(annotation)


@lru_cache(maxsize=4096)
def _typed(annotation: Any) -> Codec:
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

    name = getattr(annotation, "__name__", annotation)
    try:
        return Typed(annotation)
    except PydanticSchemaGenerationError:
        raise TypeError(
            f"values of {name} cannot travel as JSON: use a pydantic model, a dataclass, a TypedDict or plain values"
        ) from None
    except PydanticUserError as error:
        raise TypeError(f"values of {name} cannot travel as JSON: {error.message}") from None


@dataclass(frozen=True)
class Earlier:
    """The result of an earlier phase, as a phase function takes it: as an argument of the phase's name."""

    argument: str
    phase: str
    codec: Codec
    default: object = Parameter.empty

    def value(self, job: Job[Any]) -> Any:
        """Misuse if the phase has returned nothing, and the function does not say what to do then."""
        if self.phase in job.results:
            return self._read(job, PLAIN.encode(job.results[self.phase]))
        return self._read(job, b"null") if self.default is Parameter.empty else self.default

    def _read(self, job: Job[Any], text: bytes) -> Any:
        try:
            return self.codec.decode(text)
        except DoesNotFit as error:
            said = "has returned nothing" if text == b"null" else f"returned what does not fit: {error}"
            raise Misuse(f"phase {job.phase} takes the result of {self.phase}, which {said}") from None


def returned(function: Callable[..., Any], *args: Any, local: Mapping[str, Any] | None = None) -> Any:
    """What the function says it returns, as far as that travels; Any if it says nothing.

    Of ``asyncio.to_thread`` it is what the function says that it calls. ``local``: where its annotation may look.
    """
    if function is to_thread and args:
        return returned(args[0], local=local)
    hint = annotation_of(function, "return", local)
    members = [_result(one) for one in (get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,))]
    kept = tuple(one for one in members if one is not Nothing)
    if not kept:
        return Any
    return kept[0] if len(kept) == 1 else Union[kept]  # noqa: UP007  made of a tuple


class Nothing:
    """Stands for a part of an annotation that is no result: a function that writes."""


def _result(hint: Any) -> Any:
    origin = get_origin(hint) or hint
    if origin is Done:
        result = get_args(hint)[0] if get_args(hint) else Any
        return Any if isinstance(result, TypeVar) else result
    if origin is Children:
        # How they ended is the engine's to say.
        return Any
    return Nothing if origin is Callable else hint


def annotation_of(function: Callable[..., Any], name: str, local: Mapping[str, Any] | None = None) -> Any:
    """The annotation of a parameter, or of what it returns; Any without one. TypeError if it cannot be read."""
    while isinstance(function, partial):
        function = function.func
    target: Any = unwrap(function if hasattr(function, "__annotations__") else type(function).__call__)
    said = getattr(target, "__annotations__", {}).get(name, Any)
    holder = SimpleNamespace(__annotations__={name: said})
    try:
        return get_type_hints(holder, getattr(target, "__globals__", {}), dict(local or {}))[name]
    except (NameError, AttributeError, TypeError, SyntaxError) as error:
        raise TypeError(
            f"the annotation {said!r} of {getattr(target, '__qualname__', target)} cannot be read ({error}): "
            "import what it names where it also runs, not only for type checkers"
        ) from None


def parameters_of(phase: str, work: Callable[..., Any]) -> list[Parameter]:
    """The job, and the results that it takes by name; nothing if nobody knows, as of some functions in C."""
    if isgeneratorfunction(work) or isasyncgenfunction(work):
        raise TypeError(f"phase {phase} is a generator, whose code would never run: return a list instead of yielding")
    try:
        taken = list(signature(work).parameters.values())
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
    # Any is a class, too, and nobody is one of it.
    classes = all(isinstance(one, type) and one is not Any and not is_typeddict(one) for one in (asked, body))
    return classes and not getattr(asked, "_is_protocol", False) and not issubclass(body, asked)
