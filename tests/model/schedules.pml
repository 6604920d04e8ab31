/* Schedules, as a model: each moment gets one job, whoever leads and whoever dies.
 *
 * Two processes of which each believes that it leads (one was frozen, and continues); somebody makes the schedule at any
 * moment; time passes. A transaction is more than one step. The key of a moment's job, which would refuse a second one, is
 * left out: the row alone must suffice. docs/model.md says what is claimed, and what the switches do. */

#define NOBODY 0
#define MOMENTS 3

bool there;         /* somebody has made the schedule */
byte now_;          /* so many moments have come */
byte next = 1;      /* the schedule's row: its next moment, and how often it was changed */
byte revision;
byte row = NOBODY;  /* who has it locked */
byte kills = 2;     /* so many transactions are rolled back, because their process dies */
byte jobs[4];       /* of each moment */
bool told[3];       /* a notification for the leader of this number */
byte timer[3];      /* the moment at which it wakes by itself; 0: none */

inline submit(moment) { jobs[moment]++; assert(jobs[moment] == 1) }

active [2] proctype leader() {
    byte me = _pid + 1, seen, read;
    bool due;
    told[me] = true; /* whoever begins to lead looks first */
end:
    do
    :: told[me] || (timer[me] > 0 && timer[me] <= now_) ->
#ifndef LOOK_BEFORE_HEARING
        told[me] = false; timer[me] = 0;
#endif
look:
        skip;
        d_step { due = (there && next <= now_); seen = next; read = revision;
            if
            :: there && next > now_ && next <= MOMENTS -> timer[me] = next
            :: else
            fi };
#ifdef LOOK_BEFORE_HEARING
        told[me] = false;
#endif
        if
        :: due ->
            /* The jobs and the step, worked out from what was read. */
            d_step {
                if
#ifdef NO_REVISION
                :: row == NOBODY -> row = me
#else
                :: row == NOBODY && revision == read && next == seen -> row = me
#endif
                :: else /* changed, or locked: passed by */
                fi };
            if
            :: d_step { row == me && kills > 0 -> kills--; row = NOBODY }
#ifdef JOB_FIRST
            :: row == me -> submit(seen); if
                :: d_step { kills > 0 -> kills--; row = NOBODY }
                :: d_step { next = seen + 1; revision++; row = NOBODY }
                fi
#else
#ifdef STEP_FIRST
            :: d_step { row == me -> next = seen + 1; revision++ }; if
                :: d_step { kills > 0 -> kills--; row = NOBODY }
                :: d_step { submit(seen); row = NOBODY }
                fi
#else
            :: d_step { row == me -> submit(seen); next = seen + 1; revision++; row = NOBODY }
#endif
#endif
            :: row != me
            fi;
            goto look
        :: else
        fi
    od
}

active proctype somebody() {
    d_step { there = true;
#ifndef UNTOLD
        told[1] = true; told[2] = true
#endif
    }
}

active proctype time() {
    do
    :: now_ < MOMENTS -> now_++
    :: now_ == MOMENTS -> break
    od
}

active proctype end_of_run() {
end:
    d_step { timeout -> assert(jobs[1] == 1 && jobs[2] == 1 && jobs[3] == 1 && row == NOBODY) }
}
