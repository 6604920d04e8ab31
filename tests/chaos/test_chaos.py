"""The checker of script/chaos finds what it is there to find, and one fault is really made, on real parts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from chaos.hooked import Hooked
from chaos.reconcile import (
    Absence,
    Attempt,
    Effect,
    Evidence,
    JobRow,
    Scheduled,
    StepCall,
    Waited,
    reconcile,
)
from tests.chaos.moments import JOB, NOON, OTHER, at

PHASES = ("first", "second")


def honest() -> Evidence:
    """Two jobs of two phases; the first one's second phase was cut off once by a kill."""
    attempts = [
        Attempt(JOB, 1, "first", "succeeded"),
        Attempt(JOB, 2, "second", "crashed", "victim-7", at(-1), at(0.5)),
        Attempt(JOB, 3, "second", "succeeded"),
        Attempt(OTHER, 1, "first", "succeeded"),
        Attempt(OTHER, 2, "second", "succeeded"),
    ]
    effects = [Effect(a.job, a.phase, a.fence) for a in attempts if a.outcome == "succeeded"]
    jobs = [JobRow(JOB, "succeeded", 3), JobRow(OTHER, "succeeded", 2)]
    return Evidence([JOB, OTHER], PHASES, jobs, attempts, effects, absences=[Absence("killed", "victim-7", NOON)])


def test_honest_books_add_up() -> None:
    """A kill explains an attempt that was cut off."""
    assert not reconcile(honest(), [])


def test_a_lost_job_is_found_whether_it_is_gone_or_not_succeeded() -> None:
    """Each way of not having succeeded."""
    books = honest()
    for jobs in (
        [books.jobs[0]],
        [books.jobs[0], JobRow(OTHER, "running", 2)],
        [books.jobs[0], JobRow(OTHER, "failed", 2)],
    ):
        found = reconcile(replace(books, jobs=jobs), [])
        assert len(found.lost) == 1 and str(OTHER) in found.lost[0] and OTHER in found.about


def test_a_lost_effect_of_a_job_that_succeeded_is_found() -> None:
    """The status alone proves nothing."""
    books = honest()
    assert books.effects is not None
    [sentence] = reconcile(replace(books, effects=books.effects[:-1]), []).lost
    assert "without the effect of second" in sentence


def test_a_doubled_effect_is_found() -> None:
    """Even when both rows carry the fence of the attempt that succeeded."""
    books = honest()
    assert books.effects is not None
    found = reconcile(replace(books, effects=[*books.effects, books.effects[0]]), [])
    assert found.duplicated == [f"job {JOB} wrote 2 rows in first"] and not found.lost


def test_a_phase_that_succeeded_twice_is_found_without_a_ledger() -> None:
    """So that a user's own workflow is checked for it, too."""
    books = honest()
    twice = [*books.attempts[:-1], Attempt(OTHER, 2, "first", "succeeded")]
    assert reconcile(replace(books, attempts=twice, effects=None), []).duplicated


def test_a_crash_is_explained_only_by_the_absence_of_that_very_worker() -> None:
    """Not by the name of a fault, not by another worker's death, not by a kill that came later."""
    books = honest()
    for absences in (
        [],
        [Absence("killed", "other-7", NOON)],
        [Absence("killed", "victim-7", at(1))],
        [Absence("frozen", "victim-7", at(-1), at(1))],
        [Absence("cut off", "victim-7", at(0), at(0.4))],
    ):
        [sentence] = reconcile(replace(books, absences=absences), ["crashed", "stale"]).unexplained
        assert "was crashed in second under fence 2" in sentence
    assert not reconcile(replace(books, absences=[Absence("cut off", "victim-", at(-5), at(1))]), [])


def test_a_crash_that_was_refunded_is_judged_as_one() -> None:
    """It costs nothing, and a worker that was never away must not lose a job all the same."""
    books = honest()
    said = "worker victim-7 died while it ran this job (it came back: not charged)"
    refunded = [replace(a, outcome="released", error=said) if a.outcome == "crashed" else a for a in books.attempts]
    assert reconcile(replace(books, attempts=refunded, absences=[]), ["released"]).unexplained
    absence = Absence("cut off", "victim-", at(-5), at(1))
    assert not reconcile(replace(books, attempts=refunded, absences=[absence]), [])


def test_a_stale_lease_is_explained_only_by_a_freeze_that_outlasted_it() -> None:
    """A worker that was cut off keeps its lease as long as one that was not."""
    books = honest()
    stale = [replace(a, outcome="stale", finished=at(70)) if a.outcome == "crashed" else a for a in books.attempts]
    for kind, until, fine in (
        ("frozen", 75, True),
        ("frozen", 50, False),
        ("cut off", 50, False),
        ("cut off", 75, True),
    ):
        absence = Absence(kind, "victim-7", NOON, at(until))  # type: ignore[arg-type]
        found = reconcile(replace(books, attempts=stale, absences=[absence], lease=timedelta(seconds=60)), [])
        assert bool(found.unexplained) is not fine, (kind, until)


def test_an_attempt_that_no_fault_explains_is_found() -> None:
    """A budget that was spent under a kill."""
    books = honest()
    spent = [replace(a, outcome="retried") if a.outcome == "crashed" else a for a in books.attempts]
    assert reconcile(replace(books, attempts=spent), []).unexplained
    assert not reconcile(replace(books, attempts=spent), ["retried"])


def test_a_job_that_was_to_be_cancelled_must_be() -> None:
    """And nobody else's is."""
    books = honest()
    jobs = [books.jobs[0], JobRow(OTHER, "cancelled", 2)]
    attempts = [*books.attempts[:-1], Attempt(OTHER, 2, "second", "cancelled")]
    effects = [effect for effect in books.effects or [] if (effect.job, effect.phase) != (OTHER, "second")]
    stopped = replace(books, jobs=jobs, attempts=attempts, effects=effects)
    assert not reconcile(replace(stopped, cancelled=[OTHER]), [])
    assert reconcile(stopped, []).lost and reconcile(stopped, []).unexplained
    [sentence] = reconcile(replace(books, cancelled=[OTHER]), []).lost
    assert "is succeeded, not cancelled" in sentence


def test_a_job_of_another_workflow_is_judged_by_its_own_phases() -> None:
    """Faults bring jobs of their own."""
    books = honest()
    jobs = [books.jobs[0], replace(books.jobs[1], phases=["first", "second", "third"])]
    [sentence] = reconcile(replace(books, jobs=jobs), []).lost
    assert "without the effect of third" in sentence


def test_an_effect_of_a_superseded_attempt_is_found() -> None:
    """What a fence is there to prevent."""
    books = honest()
    assert books.effects is not None
    late = [replace(e, fence=2) if (e.job, e.phase) == (JOB, "second") else e for e in books.effects]
    assert "fence 2, which did not succeed" in reconcile(replace(books, effects=late), []).unexplained[0]


def test_a_gap_in_the_history_is_found() -> None:
    """An attempt that left no row ended in a way nobody knows."""
    books = honest()
    assert reconcile(replace(books, attempts=[a for a in books.attempts if a.outcome != "crashed"]), []).unexplained


def test_what_is_left_in_queues_and_outbox_is_found() -> None:
    """Nothing may wait for jobs that have ended."""
    found = reconcile(replace(honest(), outbox=2, messages={"chaos.first": 1, "chaos.second": 0}), [])
    assert found.unexplained == [
        "2 rows of ended jobs are left in the outbox",
        "1 messages are left in queue chaos.first",
    ]


def test_a_step_that_is_called_after_its_result_was_kept_is_found() -> None:
    """Also twice in one attempt, or kept without a call; once more after a kill is as promised."""
    kept = [StepCall(JOB, "first", "look", 2)]
    fine = reconcile(replace(honest(), called=[StepCall(JOB, "first", "look", n) for n in (1, 2)], kept=kept), ())
    assert not fine
    late = reconcile(replace(honest(), called=[StepCall(JOB, "first", "look", n) for n in (2, 3)], kept=kept), ())
    assert [sentence for sentence in late.duplicated if "under fence 3, after 2 had kept it" in sentence]
    twice = reconcile(replace(honest(), called=[StepCall(JOB, "first", "look", 2)] * 2, kept=kept), ())
    assert [sentence for sentence in twice.duplicated if "called step look 2 times in one attempt" in sentence]
    uncalled = reconcile(replace(honest(), kept=kept), ())
    assert [sentence for sentence in uncalled.unexplained if "which nobody called" in sentence]


def test_two_jobs_of_one_key_and_a_waiter_that_nobody_tells_are_found() -> None:
    """What unique="open" and result() promise."""
    found = reconcile(replace(honest(), unique_twice=[(JOB, OTHER)], unanswered=[JOB]), ())
    assert [sentence for sentence in found.duplicated if f"had its key while job {JOB} had it" in sentence]
    assert [sentence for sentence in found.lost if "nobody told those who wait" in sentence]


def waited(**other: object) -> Evidence:
    """One job that waited as it should, with something else about it."""
    job = replace(Waited(JOB, "go", told_of=3, answered=1, children=3, taken=1), **other)  # type: ignore[arg-type]  # its own
    attempts = [
        Attempt(JOB, 1, "spawn", "succeeded"),
        Attempt(JOB, 2, "rest", "snoozed", error="Snooze: waits 0.2 s: sleep (steps.py:73)"),
        Attempt(JOB, 3, "rest", "succeeded"),
    ]
    jobs, effects = [JobRow(JOB, "succeeded", 3, ("spawn", "rest"))], [Effect(JOB, "rest", 3)]
    return Evidence([JOB], PHASES, jobs, attempts, effects, waited=[job], delivered=frozenset({JOB}))


def test_waits_that_end_twice_or_in_vain_are_found() -> None:
    """Children, words and sleeps."""
    assert not reconcile(waited(), [])
    assert not reconcile(replace(waited(answer="nobody said a word", taken=0), delivered=frozenset()), [])
    for wrong in (
        waited(children=4),
        waited(children=2, told_of=2),
        waited(answered=2),
        waited(taken=2),
        waited(taken=0),
        waited(answer="nobody said a word", taken=0),
        replace(waited(), attempts=[*waited().attempts, waited().attempts[1]]),
        replace(waited(), attempts=[one for one in waited().attempts if one.outcome == "succeeded"]),
    ):
        assert reconcile(wrong, [])


def test_a_job_that_was_to_fail_must_and_its_attempt_is_explained() -> None:
    books = honest()
    jobs = [books.jobs[0], JobRow(OTHER, "failed", 2)]
    attempts = [*books.attempts[:-1], Attempt(OTHER, 2, "second", "failed")]
    effects = [effect for effect in books.effects or [] if (effect.job, effect.phase) != (OTHER, "second")]
    failed = replace(books, jobs=jobs, attempts=attempts, effects=effects)
    assert not reconcile(replace(failed, failing=[OTHER]), [])
    assert reconcile(failed, []).lost and reconcile(failed, []).unexplained
    assert "is succeeded, not failed" in reconcile(replace(books, failing=[OTHER]), []).lost[0]


def test_hooks_that_come_twice_or_not_at_all_or_for_another_end_are_found() -> None:
    """One job for each hook of the end, and none for an end that was none; unless crashes were refunded since."""

    def books(*told: str, wanted: int = 1) -> Evidence:
        return replace(honest(), hooked=[Hooked(JOB, "succeeded", wanted, told)])

    assert not reconcile(books("succeeded"), [])
    assert not reconcile(books("succeeded", "succeeded", wanted=2), [])
    assert not reconcile(books(wanted=0), [])
    assert "0 jobs were told so by 1 hooks" in reconcile(books(), []).lost[0]
    assert "2 jobs were told so by 1 hooks" in reconcile(books("succeeded", "succeeded"), []).duplicated[0]
    early = books("failed", "succeeded")
    assert "told that it is failed" in reconcile(early, []).unexplained[0]
    back = Attempt(JOB, 2, "second", "released", "victim-7", at(-1), at(0.5), "it came back: not charged")
    assert not reconcile(replace(early, attempts=[early.attempts[0], back, *early.attempts[2:]]), [])


def test_a_moment_of_a_schedule_without_a_job_is_lost_and_one_with_two_is_doubled() -> None:
    fine = Scheduled("often", due=9, moments=9, jobs=9)
    assert not reconcile(replace(honest(), scheduled=[fine]), [])
    assert reconcile(replace(honest(), scheduled=[replace(fine, moments=8, jobs=8)]), []).lost
    for wrong in (replace(fine, jobs=10), replace(fine, moments=10, jobs=10)):
        assert reconcile(replace(honest(), scheduled=[wrong]), []).duplicated


def test_more_jobs_of_a_key_than_may_be_are_found() -> None:
    assert "of its key" in reconcile(replace(honest(), crowded=[JOB]), []).duplicated[0]
