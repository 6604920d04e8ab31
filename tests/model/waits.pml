/* What a job waits for beside time, as a model: who wakes it, and that nobody does so twice or too early to be heard.
 *
 * One job: it spawns two children and waits for their ends, then it waits for an event, perhaps with a time limit. Here a
 * transaction is more than one step, because what it has read may be old when it commits. docs/model.md says what is
 * claimed, and what the switches do. */

/* Who has a row locked. */
#define NOBODY 0
#define JOB 1
#define APP 2
#define CLIENT 3
#define UPKEEP 4
#define CHILD 5 /* and the other one, 6 */

/* The job's row and its outbox row. */
#define RUNS 0
#define WAITS_FOR_CHILDREN 1
#define RUNS_AGAIN 2
#define WAITS_FOR_EVENT 3
#define CONTINUES 4
#define CANCELLED 5
byte state = RUNS, row = NOBODY;
bool limited; /* whether the wait for the event has a time limit */

/* The batch, the ends that nobody has counted, and whether maintenance was told. */
bool spawned, sealed, answered, told;
byte batch = NOBODY, remaining = 2, ends;

/* The event: told, and not taken yet. */
bool kept;

byte aborts = 2; /* so many transactions are rolled back, because their process is killed */
byte locks = 2;  /* so often an application has the job's row for a while */

/* ---- Ghosts ---- */
byte woken[2];
bool delivered, out_of_time, silent;

inline wake_from_children() { woken[0]++; assert(woken[0] == 1); state = RUNS_AGAIN }
inline wake_from_event() { woken[1]++; assert(woken[1] == 1); state = CONTINUES }

/* pipeline.finish_batch, by whoever has the batch: with the ends that it saw, and its own. */
#ifdef NO_ANSWER_KEPT
#define unanswered true
#define still_waits true
#else
#define unanswered (!answered)
#define still_waits (state == WAITS_FOR_CHILDREN)
#endif

inline look_at_parent(me, own) {
    d_step {
        if
        :: sealed && remaining - seen - own == 0 && unanswered ->
            if
            :: row == NOBODY -> row = me; wakes = true
            :: row != NOBODY -> parent_held = true
            fi
        :: else
        fi }
}

inline let_go(me) {
    batch = NOBODY;
    if
    :: row == me -> row = NOBODY
    :: else
    fi
}

inline commit(me, own) {
    ends = ends - seen; remaining = remaining - seen - own;
    if
    :: wakes ->
        answered = true;
        if
        :: still_waits -> wake_from_children()
        :: else
        fi
    :: parent_held -> told = true
    :: else
    fi;
    let_go(me); over = true
}

active [2] proctype child() {
    byte me = CHILD + _pid, seen;
    bool wakes, parent_held, over;
    spawned;
    do
    :: over -> break
    :: d_step { !over && batch != NOBODY -> ends++; told = true; over = true } /* it waits for nobody: counted later */
    :: d_step { !over && batch == NOBODY -> batch = me; seen = ends; wakes = false; parent_held = false };
        look_at_parent(me, 1);
        if
        :: d_step { commit(me, 1) }
        :: d_step { aborts > 0 -> aborts--; let_go(me) } /* its message comes again, and it ends anew */
        fi
    od
}

#ifndef NO_MAINTENANCE
active proctype maintenance() {
    byte seen;
    bool wakes, parent_held, over;
end:
    do
#ifdef ONLY_UNCOUNTED
    :: d_step { told && batch == NOBODY && ends == 0 -> told = false }
    :: d_step { told && batch == NOBODY && ends > 0 ->
#else
    :: d_step { told && batch == NOBODY ->
#endif
            told = false; batch = UPKEEP; seen = ends; wakes = false; parent_held = false };
        look_at_parent(UPKEEP, 0);
        if
        :: d_step { commit(UPKEEP, 0) }
        :: d_step { aborts > 0 -> aborts--; let_go(UPKEEP); told = true } /* the next leader looks */
        fi
    od
}
#endif

active proctype job() {
    bool seen;
    if
    :: limited = true
    :: limited = false
    fi;
#ifdef CHILDREN_FIRST
    d_step { spawned = true; sealed = true };
    d_step { row == NOBODY -> state = WAITS_FOR_CHILDREN };
#else
    d_step { row == NOBODY -> spawned = true; sealed = true; state = WAITS_FOR_CHILDREN };
#endif
    state == RUNS_AGAIN;
#ifdef LOOK_BEFORE_LOCK
    d_step { seen = kept };
    d_step { row == NOBODY -> row = JOB };
#else
    d_step { row == NOBODY -> row = JOB };
    d_step { seen = kept };
#endif
#ifdef NO_LOOK
    d_step { seen = false };
#endif
    d_step {
        row = NOBODY; state = WAITS_FOR_EVENT;
        if
        :: seen -> kept = false; delivered = true; wake_from_event()
        :: else
        fi };
    state == CONTINUES
}

/* pipeline.signal, once, at any moment; again if the job was cancelled just then. Or never, where the wait ends by itself. */
active proctype client() {
    bool waits;
    if
    :: state != RUNS || true
    :: state == WAITS_FOR_EVENT && limited -> silent = true; goto over
    fi;
again:
    skip;
#ifndef SIGNAL_WITHOUT_LOCK
    d_step { row == NOBODY -> row = CLIENT };
#endif
    d_step { waits = (state == WAITS_FOR_EVENT) };
    if
    :: d_step { state == CANCELLED && row == CLIENT -> row = NOBODY }; state != CANCELLED; goto again
    :: else
    fi;
    d_step {
        if
#ifdef NO_SECOND_LOOK
        :: waits -> delivered = true; wake_from_event()
        :: !waits -> kept = true
#else
        :: waits && state == WAITS_FOR_EVENT -> delivered = true; wake_from_event()
        :: else -> kept = true
#endif
        fi;
        if
        :: row == CLIENT -> row = NOBODY
        :: else
        fi };
over:
    skip
}

/* pipeline.admit: the time of the wait is over. It needs the outbox row alone. */
active proctype relay() {
#ifdef STALE_TIME
    if
    :: limited && state == WAITS_FOR_EVENT -> d_step { out_of_time = true; wake_from_event() }
    :: state == CONTINUES
    fi
#else
    if
#ifndef NO_TIME
    :: d_step { limited && state == WAITS_FOR_EVENT -> out_of_time = true; wake_from_event() }
#endif
    :: state == CONTINUES
    fi
#endif
}

/* Somebody cancels the job while it waits for the event, and replays it. */
active proctype operator() {
    if
    :: d_step { row == NOBODY && state == WAITS_FOR_EVENT -> state = CANCELLED };
#ifdef NO_WAIT_AGAIN
        d_step { row == NOBODY -> state = CONTINUES }
#else
        d_step { row == NOBODY -> state = WAITS_FOR_EVENT }
#endif
    :: state == CONTINUES
    fi
}

active proctype application() {
    do
    :: d_step { locks > 0 && row == NOBODY -> locks--; row = APP }; d_step { row = NOBODY }
    :: d_step { locks = 0 }; break
    od
}

/* Where a run ends, the job continues: woken once from each wait, and the result is that of one who woke it. */
active proctype end_of_run() {
end:
    d_step { timeout ->
        assert(state == CONTINUES);
        assert(woken[0] == 1 && woken[1] == 1 && remaining == 0 && ends == 0);
        assert(delivered != out_of_time && (out_of_time -> kept != silent : !kept));
        assert(row == NOBODY && batch == NOBODY && !told) }
}
