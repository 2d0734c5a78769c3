// Every constant of the real clock that attached runs use, on both sides. Simulated time stands still while somebody
// waits in real time, so none of them may decide a result. There are four kinds:
//
// - How often somebody looks, and how long he busy-waits before he sleeps. What is waited for ends the wait by itself,
//   or is found at the next look, at the same simulated time.
// - How long something may keep silent that shows no sign of life. Whoever runs, waits for a disk or is traced is
//   waited for, however slow the machine is. If such a limit passes, the run says so (ATTACH_RUN_OUTSIDE_CLOCK).
// - How long real time passes before simulated time goes on to a deadline. Whatever comes later, and is not the work of
//   a program that has run since, is noted when it comes (ATTACH_RUN_OUTSIDE_EVENT).
// - After how much of its processor time a thread without attach calls is examined. It takes no simulated time.
//
// Leaves out: limits that the user sets (--wall-limit; a run that they end says so), and whatever depends on simulated
// time, or on a number of calls.
//
// A test multiplies all of them: TCASIM_REAL_TIME_PERCENT in the environment of the simulator, which hands it to
// programs (attach_greeting) without that variable. 100 is usual.
#pragma once

#include <stdint.h>

// --- how often somebody looks; how long he busy-waits ---------------------------------------------------------------

enum {
    // For the run token of a thread that runs: its end, children of it that sleep, Ctrl-C.
    ATTACH_REAL_TOKEN_LOOK_NS = 1000000,
    ATTACH_REAL_EXIT_LOOK_MS = 1,           // the same for a program that has announced its end or an exec
    ATTACH_REAL_START_LOOK_MS = 2,          // for a program or child that attaches itself
    ATTACH_REAL_THREAD_END_LOOK_NS = 20000, // for the end of a thread that has requested it
    ATTACH_REAL_PROCESS_END_LOOK_NS = 2000000,
    ATTACH_REAL_IDLE_LOOK_MAX_MS = 20, // nothing is due: for whatever the kernel does not report by itself
    ATTACH_REAL_IDLE_SHORT_MS = 100,   // before this time it looks after ATTACH_REAL_DEADLINE_MS
    ATTACH_REAL_SIGNALS_LOOK_MS = 100, // for signals from outside of the run; one that is found is noted
    // A side busy-waits for the run token before it sleeps: about as long as it takes to wake a thread on another
    // processor (60 us on a virtual machine).
    ATTACH_REAL_BUSY_WAIT_NS = 300000,
    // Without simulated time: the simulator sleeps, while devices are active and otherwise; a program's library.
    ATTACH_REAL_FUNCTIONAL_BUSY_NS = 20000,
    ATTACH_REAL_FUNCTIONAL_QUIET_NS = 1000000,
    ATTACH_REAL_FUNCTIONAL_CALL_NS = 50000,
    ATTACH_REAL_FUNCTIONAL_WORD_NS = 20000,
    // In a program: until another thread has made an object that both need; it has the run token.
    ATTACH_REAL_MAKING_NS = 10000,
    ATTACH_REAL_SIMULATOR_LOOK_S = 1,  // in a program: is the simulator still there?
    ATTACH_REAL_WATCHDOG_LOOK_MS = 200 // is the simulator in a call that a program makes last? --wall-limit decides
};

// --- how long something may keep silent -----------------------------------------------------------------------------

enum {
    // Between two looks at most so much counts: a machine that stood still for a minute kept everybody silent.
    ATTACH_REAL_STEP_MS = 20,
    ATTACH_REAL_CALLS_STEP_MS = 1000, // the same between two readings of the clock while programs call without end
    ATTACH_REAL_CHILD_SLEEPS_MS = 500,   // an announced child that sleeps will not attach itself
    ATTACH_REAL_CHILD_COMPUTES_S = 2,    // nor one that has computed for so long, in its processor time
    ATTACH_REAL_PARENT_SLEEPS_MS = 500,  // a parent that sleeps in the kernel may wait for its child, which begins now
    ATTACH_REAL_THREAD_STARTS_MS = 1000, // an announced thread has not attached itself
    ATTACH_REAL_END_SLEEPS_MS = 100,     // a thread that ends sleeps
    ATTACH_REAL_STALLED_MS = 2000,       // all wait for each other, and nothing is due: the run ends
    ATTACH_REAL_LOOPBACK_MS = 100        // a datagram to oneself is lost: it is sent again
};

// --- before simulated time goes on ----------------------------------------------------------------------------------

enum {
    ATTACH_REAL_SETTLE_YIELDS = 4, // calls of sched_yield after something that may have woken others
    ATTACH_REAL_DEADLINE_MS = 1    // each of two looks, when nothing is due but a deadline
};

// --- threads that make no attach call -------------------------------------------------------------------------------

// A thread is examined after so much of its processor time; the second one after an examination that found no loop.
enum { ATTACH_REAL_SPIN_LOOK_US = 100, ATTACH_REAL_SPIN_LOOK_RARELY_US = 10000 };

// --------------------------------------------------------------------------------------------------------------------

#define ATTACH_REAL_PERCENT_NAME "TCASIM_REAL_TIME_PERCENT"
enum { ATTACH_REAL_PERCENT_USUAL = 100, ATTACH_REAL_PERCENT_MAX = 1000 };

// A constant of this header as it counts in a run. percent 0: the usual one.
static inline uint64_t attach_real_time(uint32_t percent, uint64_t constant)
{
    uint64_t scaled =
        constant * (percent != 0 ? percent : (uint32_t)ATTACH_REAL_PERCENT_USUAL) / ATTACH_REAL_PERCENT_USUAL;
    return scaled != 0 ? scaled : 1;
}
