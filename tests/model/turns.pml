/* The turns of one key as a model: never more jobs of it have a turn than it may have, and no turn is lost.
 *
 * Jobs of one key, of which PER_KEY may be under way; the relay, which gives turns, sleeps and is woken; or two relays while
 * one takes over from the other. An end is a transaction of two steps: it reads whether the relay sleeps, and commits later.
 * docs/model.md says what is claimed, and what the switches do. */

#define JOBS 3
#ifndef PER_KEY
#define PER_KEY 1
#endif
#ifndef KILLS
#define KILLS 2
#endif
#ifndef RELAYS
#define RELAYS 1
#endif

/* A job's row in the outbox: only TURN and RUNS have a turn. */
#define WAITS 0
#define TURN 1
#define RUNS 2
#define BACKS_OFF 3
#define ENDED 4
byte state[JOBS];
bool committing[JOBS]; /* its end has read whether the relay sleeps, and has not committed */
#define under_way ((state[0] == TURN || state[0] == RUNS) + (state[1] == TURN || state[1] == RUNS) + (state[2] == TURN || state[2] == RUNS))

#define NOBODY 9
byte lock = NOBODY; /* the workflow's row of pipeline.turns */
bool asleep, notified;
byte kills = KILLS, retries = 1;

/* pipeline.give_turns: what it counted may be old when it gives, unless it has the row. */
inline look(me) {
    gave = false;
#ifdef NO_LOCK
    d_step { counted = under_way };
    give(me)
#else
#ifdef COUNT_BEFORE_LOCK
    d_step { counted = under_way };
    if
    :: d_step { lock == NOBODY -> lock = me }; give(me)
    :: d_step { lock != NOBODY -> skip }
    fi
#else
    if
    :: d_step { lock == NOBODY -> lock = me }; d_step { counted = under_way }; give(me)
    :: d_step { lock != NOBODY -> skip }
    fi
#endif
#endif
}

inline give(me) {
    if
    :: d_step {
            n = 0;
            do
            :: n < JOBS && state[n] == WAITS && counted < PER_KEY -> state[n] = TURN; counted++; gave = true; n++
            :: n < JOBS && !(state[n] == WAITS && counted < PER_KEY) -> n++
            :: n == JOBS -> break
            od;
            n = 0;
            assert(under_way <= PER_KEY);
            if
            :: lock == me -> lock = NOBODY
            :: else
            fi }
    :: d_step { kills > 0 -> kills--; /* the next leader begins with a look */
            gave = true;
            if
            :: lock == me -> lock = NOBODY
            :: else
            fi }
    fi
}

active [RELAYS] proctype relay() {
    byte me = _pid, counted, n;
    bool gave, old[JOBS];
end:
    do
    :: d_step { asleep = false };
        look(me);
        if
        :: gave
        :: !gave ->
#ifdef LOOK_BEFORE_SLEEP
            d_step { asleep = true };
#else
            d_step { asleep = true; old[0] = committing[0]; old[1] = committing[1]; old[2] = committing[2] };
            look(me);
#ifndef NO_SECOND_LOOK
            if
            :: gave
            :: !gave && (old[0] || old[1] || old[2]) ->
                /* They may have taken it for awake. */
                (!(old[0] && committing[0]) && !(old[1] && committing[1]) && !(old[2] && committing[2]));
                look(me)
            :: !gave && !(old[0] || old[1] || old[2])
            fi;
#endif
#endif
end_asleep:
            if
            :: gave
            :: d_step { !gave && notified -> notified = false }
            fi
        fi;
        d_step { gave = false; old[0] = false; old[1] = false; old[2] = false; counted = 0 }
    od
}

/* The end of the attempt, or of its try: the key has one job less under way. */
inline begin_end() { d_step { committing[me] = true; wakes = asleep } }
inline commit(into) {
    committing[me] = false; state[me] = into;
#ifndef NO_WAKE
    if
    :: wakes -> notified = true
    :: else
    fi;
#endif
    wakes = false
}

active [JOBS] proctype job() {
    byte me = _pid - RELAYS;
    bool wakes;
end_waiting:
    do
    :: d_step { state[me] == TURN -> state[me] = RUNS }
    :: state[me] == RUNS && !committing[me] -> begin_end();
        if
        :: d_step { commit(ENDED) }; break
        :: d_step { retries > 0 -> retries--; commit(BACKS_OFF) }
        :: d_step { kills > 0 -> kills--; committing[me] = false; wakes = false;
                state[me] = TURN /* its message comes again */
            }
        fi
    :: d_step { state[me] == BACKS_OFF -> state[me] = WAITS;
#ifndef UNTOLD_TIME
            notified = true
#endif
        }
    od
}

/* Where a run ends, every job has had its turn. Two relays: the one that skipped a locked row looks again after a while. */
#if RELAYS == 1
active proctype end_of_run() {
end:
    d_step { timeout -> assert(state[0] == ENDED && state[1] == ENDED && state[2] == ENDED && lock == NOBODY) }
}
#endif
