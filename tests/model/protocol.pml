/* The protocol of docs/architecture.md as a model: who may do what to a job's row, its outbox row and its messages.
 *
 * One job of two phases, two workers. Each option of a process (one d_step) is one transaction, or one message sent
 * or acknowledged; anything may happen between two of them. docs/model.md says what is claimed, what the switches do
 * and what is left out. */

/* How many faults one run may have, each at any step. */
#ifndef CRASHES
#define CRASHES 2 /* a worker or the relay is killed */
#endif
#ifndef OTHERS
#define OTHERS 1 /* a worker falls silent, a connection is lost, RabbitMQ loses everything, or an attempt fails */
#endif

/* ---- PostgreSQL ---- */

#define PENDING 0
#define RUNNING 1
#define SUCCEEDED 2
#define FAILED 3
#define CANCELLED 4
#define final (status >= SUCCEEDED)

#define RELAY 2 /* workers are 0 and 1 */
#define DEAD 3  /* whoever it was: a restarted process has a new identity */
#define DEAD_AND_CONFIRMED 4
#define NOBODY 5

byte status, phase, send, fence, holder = NOBODY;
bool sent;            /* the outbox row is marked as sent … */
byte sender = NOBODY; /* … by this process */
bool deserted;        /* the holder lives, but no thread of it knows: only the job's heartbeat can tell */

/* ---- RabbitMQ: where the message of each send is. Numbers below SENDS are sends to the first phase's queue. ---- */

#define SENDS 6
#define NONE 255
#define NOWHERE 0
#define QUEUE 1
#define UNACKED 2 /* + the worker that has it */
#define queue_of(m) ((m) / SENDS)

byte place[2 * SENDS];
byte in_broker[2]; /* messages of each queue, ready or unacknowledged: what the management API counts */

inline publish(m) { place[m] = QUEUE; in_broker[queue_of(m)]++ }
inline forget(m) { place[m] = NOWHERE; in_broker[queue_of(m)]-- }

/* ---- Processes: where each is, and what it remembers ---- */

#define IDLE 0
#define CLAIM 1
#define MEET 2
#define WORK 3
#define ACK 4
byte step[2], my_fence[2], met_fence[2];
byte at[2]; /* the phase of the attempt; a carried job is one ahead of its message's queue */
byte message[2] = NONE, outgoing = NONE; /* what the relay has marked and not published yet */
byte late = NONE;                           /* what a frozen, replaced relay will publish when it wakes */

#define WELL 0
#define FROZEN 1   /* heartbeat stale, lock held */
#define UNLOCKED 2 /* lock free */
byte silence[2];
#define seems_alive(p) (p < 2 && silence[p] == WELL)
#define lock_free(p) (p == DEAD || (p < 2 && silence[p] == UNLOCKED))

#ifdef LOSSY
byte claimed;  /* the fence that the last claim gave out: of that commit alone a failover can be the end */
#ifdef NO_EPOCH
byte reissued; /* the fence that the row will give out once more */
#endif
#endif

byte crashes = CRASHES, others = OTHERS;
byte n; /* a counter within one step */

/* ---- Ghosts: what really happened, known to no process ---- */

byte rightful = NOBODY; /* the worker that got the job last and has not lost it since */
byte kept[2];           /* effects kept, of each phase */
bool cancel_committed;

/* The checks of one claim can be compiled alone; without a switch all are on. */
#if !defined(G1) && !defined(G2) && !defined(G3) && !defined(G5) && !defined(TOKEN)
#define G2
#define G3
#define G5
#define TOKEN
#define REST
#endif
#ifdef G2
#define CHECK_G2(fact) assert(fact)
#else
#define CHECK_G2(fact) skip
#endif
#ifdef G3
#define CHECK_G3(fact) assert(fact)
#else
#define CHECK_G3(fact) skip
#endif
#ifdef G5
#define CHECK_G5(fact) assert(fact)
#else
#define CHECK_G5(fact) skip
#endif
#ifdef TOKEN
#define CHECK_TOKEN(fact) assert(fact)
#else
#define CHECK_TOKEN(fact) skip
#endif

/* ---- Transactions, named after the files in db/ ---- */

/* Numbers are only ever compared for equality, so that one which nothing remembers is as good as a new one. */
#define remembered(m) (place[m] != NOWHERE || message[0] == m || message[1] == m || outgoing == m || late == m)
#define known_fence(f) (my_fence[0] == f || my_fence[1] == f || met_fence[0] == f || met_fence[1] == f)

inline new_number() { /* the row waits unsent; whatever message is still on its way is void */
    send = phase * SENDS;
    do
    :: remembered(send) -> send++; assert(queue_of(send) == phase)
    :: else -> break
    od;
    sent = false; sender = NOBODY
}

inline lose_holder() { holder = NOBODY; rightful = NOBODY; deserted = false }
inline mark_sent(by) { sent = true; sender = by }

inline give_to(w) {
#ifndef SAME_FENCE
    fence = 1;
    do
    :: known_fence(fence) -> fence++
    :: else -> break
    od;
#endif
#ifdef NO_EPOCH
    if
    :: reissued != 0 -> fence = reissued; reissued = 0
    :: else
    fi;
#endif
    CHECK_G2(my_fence[1 - w] != fence);
    holder = w; rightful = w; deserted = false; my_fence[w] = fence; at[w] = phase; step[w] = WORK;
    silence[w] = (silence[w] == FROZEN -> WELL : silence[w]) /* the job's heartbeat is fresh */
}

/* What the broker took back or lost can no longer be acknowledged. */
inline acknowledge(w) {
    if
    :: place[message[w]] == UNACKED + w -> forget(message[w])
    :: else
    fi;
    message[w] = NONE; my_fence[w] = 0; at[w] = 0; step[w] = IDLE
}

#ifdef NO_SEND_NUMBER
#define right_number(w) true
#else
#define right_number(w) (message[w] == send)
#endif

#ifdef NO_MESSAGE_PHASE
#define continued false
#else
#define continued (status == RUNNING && phase != queue_of(send))
#endif

/* The servers' last commit, a claim, is lost: whoever made it works on, and the row is what it was before. */
#ifdef LOSSY
inline note_claim() { claimed = fence }
inline lose_commit() {
    lose_holder(); status = PENDING; sent = true;
#ifdef NO_EPOCH
    reissued = fence;
#endif
    claimed = 0
}
#else
inline note_claim() { skip }
#endif

inline claim(w) {
    if
    :: final || (phase != queue_of(message[w]) && !continued) || !right_number(w) -> acknowledge(w)
    :: else ->
        if
        :: status == RUNNING && holder == w -> acknowledge(w)
        :: status == RUNNING && holder != w -> met_fence[w] = fence; step[w] = MEET
        :: status == PENDING ->
            CHECK_TOKEN(sent && message[w] == send);
            status = RUNNING; sender = NOBODY; give_to(w); /* the row stays; while the job runs nobody asks who sent it */
            note_claim()
        fi
    fi
}

inline reclaim() { lose_holder(); status = PENDING; new_number() }

inline take_over(w) {
    if
    :: status != RUNNING || !right_number(w) || fence != met_fence[w] -> step[w] = CLAIM
    :: else ->
        if
        :: seems_alive(holder) -> acknowledge(w)
        :: !seems_alive(holder) && continued -> reclaim(); step[w] = ACK
        :: !seems_alive(holder) && !continued -> CHECK_TOKEN(message[w] == send); give_to(w)
        fi
    fi;
    met_fence[w] = 0
}

#if defined(NO_FENCE)
#define holds(w) (status == RUNNING)
#elif defined(NO_STATUS)
#define holds(w) (fence == my_fence[w])
#else
#define holds(w) (status == RUNNING && fence == my_fence[w])
#endif
inline check_write(w) { CHECK_G2(rightful == w); CHECK_G5(!cancel_committed) }

inline keep(w) { check_write(w); kept[at[w]]++; CHECK_G3(kept[at[w]] == 1) }

/* The next phase is claimed where this one ends. Asked again for want of an answer, it is answered the same. */
inline continue(w) {
    if
    :: holds(w) -> keep(w); phase = 1; give_to(w)
    :: else -> acknowledge(w)
    fi
}

inline complete(w) {
    if
    :: holds(w) ->
        keep(w);
        lose_holder(); my_fence[w] = 0; at[w] = 0; step[w] = ACK;
        if
        :: phase == 0 ->
            phase = 1; status = PENDING; new_number()
        :: else ->
            status = SUCCEEDED; new_number();
            CHECK_G3(kept[0] == 1 && kept[1] == 1)
        fi
    :: else -> acknowledge(w)
    fi
}

inline retry(w) {
    if
    :: holds(w) -> check_write(w); lose_holder(); status = PENDING; new_number(); my_fence[w] = 0; at[w] = 0; step[w] = ACK
    :: else -> acknowledge(w)
    fi
}

inline fail(w) {
    if
    :: holds(w) -> check_write(w); lose_holder(); status = FAILED; my_fence[w] = 0; at[w] = 0; step[w] = ACK
    :: else -> acknowledge(w)
    fi
}

inline unsend(m) {
    if
    :: status == PENDING && sent && send == m -> new_number()
    :: else
    fi
}

inline cancel() { lose_holder(); status = CANCELLED; sent = false; sender = NOBODY; cancel_committed = true }
inline replay() { status = PENDING; new_number() }

/* ---- What each process does ---- */

inline redeliver(w) { /* the connection is gone; the worker may not have noticed */
    if
    :: message[w] != NONE && place[message[w]] == UNACKED + w -> place[message[w]] = QUEUE
    :: else
    fi
}

inline take(m, w) {
#ifdef ACK_FIRST
    forget(m);
#else
    place[m] = UNACKED + w;
#endif
    message[w] = m; step[w] = CLAIM
}
/* Two idle workers are alike: the first one takes the message. */
#define ready(w) (step[w] == IDLE && silence[w] == WELL)
#define TAKE(m) \
    :: d_step { place[m] == QUEUE && ready(w) && (w == 0 || !ready(0)) -> take(m, w) }

active [2] proctype worker() {
    byte w = _pid;
end:
    do
    TAKE(0) TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6) TAKE(7) TAKE(8) TAKE(9)
    TAKE(10) TAKE(11)
    :: d_step { step[w] == CLAIM -> claim(w) }
    :: d_step { step[w] == MEET -> take_over(w) }
    :: d_step { step[w] == MEET && others > 0 -> /* no answer: the message goes back, whatever was committed */
        others--; take_over(w);
        if
        :: step[w] == WORK ->
            deserted = true; redeliver(w); message[w] = NONE; my_fence[w] = 0; at[w] = 0; step[w] = IDLE
        :: else
        fi }
    :: d_step { step[w] == WORK -> complete(w) }
    :: d_step { step[w] == WORK && at[w] == 0 -> continue(w) }
    :: d_step { step[w] == WORK && at[w] == 0 && others > 0 -> /* no answer, and its thread is given up: nobody continues */
        others--; continue(w);
        if
        :: step[w] == WORK -> deserted = true; my_fence[w] = 0; at[w] = 0; step[w] = ACK
        :: else
        fi }
    :: d_step { step[w] == WORK && others > 0 -> others--; retry(w) }
    :: d_step { step[w] == WORK -> fail(w) }
    :: d_step { step[w] == ACK -> acknowledge(w) }
    :: d_step { silence[w] != WELL -> silence[w] = WELL } /* heartbeat, lock taken again */
    od
}

active proctype relay() {
end:
    do
    :: d_step { outgoing == NONE && status == PENDING && !sent -> mark_sent(RELAY); outgoing = send }
    :: d_step { outgoing != NONE -> publish(outgoing); outgoing = NONE }
    :: d_step { outgoing != NONE && others > 0 -> others--; unsend(outgoing); outgoing = NONE }
    :: d_step { outgoing != NONE && others > 0 ->
        others--; publish(outgoing); unsend(outgoing); outgoing = NONE }
    :: d_step { outgoing != NONE && others > 0 -> /* it freezes; the next leader goes on without it */
        others--; late = outgoing; outgoing = NONE }
    :: d_step { late != NONE -> publish(late); late = NONE }
    od
}

/* A leader publishes within the seconds that the ledger waits before it judges a row. */
#define settled (outgoing != send)

active proctype sweep() {
end:
    do
#if !defined(NO_RECLAIM) && !defined(REDELIVERY_ONLY)
    :: d_step { status == RUNNING && (!seems_alive(holder) || deserted) -> reclaim() }
    :: d_step { status == PENDING && sent && lock_free(sender) -> unsend(send) }
#endif
#if !defined(NO_RECONCILIATION) && !defined(REDELIVERY_ONLY)
    :: d_step { status == PENDING && sent && settled && in_broker[phase] == 0 -> unsend(send) }
#endif
    :: false
    od
}

/* A person cancels the job at any moment, or starts it again after it failed, or does neither. */
active proctype person() {
end:
    if
    :: d_step { !final -> cancel() }
    :: d_step { status == FAILED -> replay() }
    :: true
    fi
}

inline kill(w) {
    redeliver(w);
    holder = (holder == w -> DEAD : holder);
    rightful = (rightful == w -> DEAD : rightful);
    message[w] = NONE; my_fence[w] = 0; met_fence[w] = 0; at[w] = 0; silence[w] = WELL;
    step[w] = IDLE
}

inline wipe() {
    n = 0;
    do
    :: n < 2 * SENDS -> place[n] = NOWHERE; n++
    :: else -> break
    od;
    n = 0; in_broker[0] = 0; in_broker[1] = 0
}

#define mortal(w) (step[w] != IDLE)
#define FAULTS(w) \
    :: d_step { crashes > 0 && mortal(w) -> crashes--; kill(w) } \
    :: d_step { others > 0 && step[w] != IDLE && step[w] != ACK -> others--; silence[w] = FROZEN } \
    :: d_step { others > 0 && step[w] != IDLE && step[w] != ACK -> others--; silence[w] = FROZEN; redeliver(w) } \
    :: d_step { others > 0 && step[w] != IDLE && step[w] != ACK -> others--; silence[w] = UNLOCKED } \
    :: d_step { others > 0 && step[w] != IDLE && step[w] != ACK -> others--; silence[w] = UNLOCKED; redeliver(w) } \
    :: d_step { others > 0 && message[w] != NONE && place[message[w]] == UNACKED + w -> others--; redeliver(w) }

active proctype fate() {
end:
    do
    FAULTS(0)
    FAULTS(1)
#ifndef REDELIVERY_ONLY
    /* A heartbeat between the mark and the publish takes the send for confirmed: reclaim will not look at it then. */
    :: d_step { crashes > 0 && sender == RELAY -> crashes--; sender = DEAD; outgoing = NONE }
    :: d_step { crashes > 0 && sender == RELAY -> crashes--; sender = DEAD_AND_CONFIRMED; outgoing = NONE }
#endif
#ifdef LOSSY
    :: d_step { others > 0 && status == RUNNING && holder < 2 && fence == claimed && my_fence[holder] == fence ->
        others--; lose_commit() }
#endif
    :: d_step { others > 0 && in_broker[0] + in_broker[1] > 0 -> others--; wipe() }
    :: d_step { crashes + others > 0 -> crashes = 0; others = 0 } /* no further fault: none may be needed for rescue */
    od
}

/* Where a run ends, nothing is left: no message, no busy worker, no job that is not final. */
#ifdef REST
active proctype end_of_run() {
end:
    d_step { timeout -> assert(final && in_broker[0] + in_broker[1] == 0 && step[0] == IDLE && step[1] == IDLE) }
}
#endif

ltl g1 { <> final }

/* Must be refuted, or the model cannot do what it is to be checked for. */
ltl never_two_attempts_at_once { [] !(step[0] == WORK && step[1] == WORK) }
