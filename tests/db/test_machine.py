"""Any order of steps, by right and by stale holders: PostgreSQL and the model agree after each one."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.db.dice import roll
from tests.db.life import Life
from tests.db.steps import Db

# The same examples in every run. No database of failures: what fails here fails again.
STEADY = settings(
    max_examples=20,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


class Machine(RuleBasedStateMachine):
    """Hypothesis chooses, Life takes the step in both worlds."""

    db: Db

    @initialize()
    def begin(self) -> None:
        self.life = Life(self.db)
        self.count = 0

    @rule(chance=st.integers(min_value=0, max_value=2**30))
    def step(self, chance: int) -> None:
        self.count += 1
        step, dice = roll(Random(chance * 1000 + self.count))
        note(f"{self.count}: {step} {dice}")
        getattr(self.life, step)(dice)

    @invariant()
    def nothing_is_broken(self) -> None:
        self.life.check()


def test_any_order_of_steps_keeps_the_rules(database: Db) -> None:
    """Rows, fences, send numbers, budgets, pools, history and batches, after every single step."""
    run_state_machine_as_test(type("Here", (Machine,), {"db": database}), settings=STEADY)
