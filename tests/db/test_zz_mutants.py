from collections import Counter
import pytest
from hypothesis.stateful import run_state_machine_as_test
from hypothesis import Phase
from tests.db import test_machine as tm, steps
tm.Phase = Phase
SEEN = Counter()
MUTANTS = {
 "retry-fence": ("pipeline_retry", "AND fence = p_fence", ""),
 "fail-status": ("pipeline_fail", "AND status = 'running'", ""),
 "cancel-outbox": ("pipeline_cancel", "DELETE FROM outbox WHERE job_id = p_id;", ""),
 "unsend-send": ("pipeline_unsend", "a.send = j.send", "true"),
 "counted": ("pipeline_count_children", "AND counted IS NULL", ""),
 "pool": ("pipeline_claim", "n.pool IS NULL OR free.slot IS NOT NULL AS fits", "true AS fits"),
 "superseded": ("pipeline_claim", "WHEN ask.send <> s.send THEN 'superseded'", ""),
 "replay-send": ("pipeline_replay", "(p_send IS NULL OR send = p_send)", "true"),
 "takeover-alive": ("pipeline_take_over", "pipeline_alive(p_holder) AND", "false AND"),
 "takeover-isolated": ("pipeline_take_over", "CASE WHEN v_job.isolated THEN 0 ELSE 1 END", "1"),
 "handover-crashes": ("pipeline_complete", "crashes = CASE WHEN r.next_id IS NULL THEN j.crashes ELSE 0 END,", ""),
 "undeliv-send": ("pipeline_undeliverable", "AND send = p_send", ""),
 "wait-sent": ("pipeline_admit", "o.sent_at IS NULL AND o.due_at IS NULL\n            ORDER", "o.due_at IS NULL\n            ORDER"),
}
def test_seen(database, capsys):
    real = tm.Life._call
    def call(self, may, step, *v):
        a = real(self, may, step, *v)
        SEEN[(step.__name__, str(a["verdict"] if isinstance(a, dict) else a[0]["verdict"] if isinstance(a, list) else a))] += 1
        return a
    tm.Life._call = call
    try: run_state_machine_as_test(type("L", (tm.Life,), {"db": database}), settings=tm.STEADY)
    finally: tm.Life._call = real
    with capsys.disabled(): print(); [print(k, n) for k, n in sorted(SEEN.items())]
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant(database, name):
    f, a, b = MUTANTS[name]
    d = steps.one(database, "SELECT pg_get_functiondef(%s::regproc)", f)
    assert a in d, name
    database.execute(d.replace(a, b).replace("%", "%%") if False else d.replace(a, b))
    with pytest.raises(BaseException):
        run_state_machine_as_test(type("L", (tm.Life,), {"db": database}), settings=tm.settings(tm.STEADY, phases=[tm.Phase.generate]) if hasattr(tm,'Phase') else tm.STEADY)
