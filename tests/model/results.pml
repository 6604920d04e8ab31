/* Waiting for a job's result, as a model: whoever waits is answered once, and no end is missed.
 *
 * One waiter, whose connection breaks now and then; one transaction that ends the job, and is rolled back now and then. A
 * transaction is more than one step, because what it has read may be old when it commits. docs/model.md says what is
 * claimed, and what the switches do. */

/* Who has the outbox row locked. */
#define NOBODY 0
#define END 1
#define MARK 2
byte row = NOBODY;
bool there = true; /* the outbox row, which goes when the job ends */
bool marked;       /* somebody wants to be told */
bool ended;        /* as everybody sees it */

bool listening;
byte notices; /* on their way to the waiter */

byte breaks = 2; /* so often the waiter's connection is lost, and what was on its way with it */
byte aborts = 1; /* so often the end is rolled back */

byte told; /* ghost: how many answers the waiter has */

/* pipeline.leave_outbox, or the same in pipeline.complete. */
active proctype last_phase() {
    bool tell;
    do
    :: ended -> break
    :: d_step { !ended && row == NOBODY -> row = END; tell = marked };
        if
        :: d_step { there = false; ended = true; row = NOBODY;
            if
            :: tell && listening -> notices++
            :: else
            fi }
        :: d_step { aborts > 0 -> aborts--; row = NOBODY }
        fi
    od
}

inline answer() {
#ifdef NO_FORGET
    told++; assert(told == 1)
#else
    if
    :: told == 0 -> told = 1
    :: else
    fi
#endif
}

/* pipeline.journey.ends, with pipeline.await_ends. */
active proctype waiter() {
    bool got, seen;
connect:
#ifndef LISTEN_LATE
    listening = true;
#endif
ask:
    skip;
    d_step {
        got = false;
        if
        :: there && row == NOBODY -> row = MARK; got = true
        :: else /* locked, or gone: passed by */
        fi };
#ifdef NO_LOOK
    seen = false;
#else
    seen = ended; /* a statement of its own: it sees what has committed since */
#endif
    d_step {
        if
        :: got -> marked = true; row = NOBODY
        :: else
        fi };
#ifdef LISTEN_LATE
    listening = true;
#endif
    if
    :: seen -> answer()
#if !defined(LOCKED_IS_NOTED) && !defined(NO_LOOK)
    :: !seen && !got -> goto ask /* locked: asked again soon */
#endif
    :: else
    fi;
end:
    do
    :: d_step { notices > 0 -> notices--; seen = ended };
        if
        :: seen -> answer()
        :: else
        fi
    :: d_step { breaks > 0 -> breaks--; listening = false; notices = 0 };
#ifdef NO_LOOK_AFTER_A_BREAK
        listening = true
#else
        if
        :: told == 0 -> goto connect
        :: else -> listening = true
        fi
#endif
    od
}

/* Where a run ends, the job has ended and whoever waited knows. */
active proctype end_of_run() {
end:
    d_step { timeout -> assert(ended && told == 1 && row == NOBODY) }
}
