// Does each interposed call return at the right simulated time? The tables of this folder have a row for each call of
// verbs-shim/world/calls.def: what it is called for, what it returns, and when. The program world_timely plays the rows
// of a theme and prints what it sees; test_timely.c compares that with the tables, and the tables with calls.def.
//
// A row with a stage waits for something. A waker (a thread of the process, or another process) lets it go on at a
// known time. The same waiter waits once for each episode, on the same objects. A row without a stage is played twice.
//
// Times are in microseconds of simulated time since an episode began; what the reads of the clock cost is subtracted. A
// call returns at its time exactly, but for a loop of polls, whose last iteration may end later by late_ns.
#pragma once

#include <mqueue.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum timely_kind {
    TIMELY_FUNCTION, // of calls.def
    TIMELY_CALL,     // of calls.def: by syscall(2), and by an instruction of the program's own
    TIMELY_LIBRARY   // no row of calls.def: a function of the C library that waits by a CALL, or an instruction
};
enum timely_way { TIMELY_BY_NAME, TIMELY_BY_SYSCALL, TIMELY_BY_INSTRUCTION, TIMELY_WAYS };
enum timely_waker { TIMELY_THREAD, TIMELY_PROCESS, TIMELY_WAKERS };
enum timely_episode {
    TIMELY_WOKEN, // while it waits
    TIMELY_AGAIN, // the same, for longer
    TIMELY_EARLY, // the waker was first: it does not wait
    TIMELY_LIMIT, // nobody wakes it: its time-out ends the wait
    // A signal is handled while it waits (signal(7)); it is woken after that.
    TIMELY_RESTARTED, // the handler has SA_RESTART
    TIMELY_ENDED,     // it has not
    TIMELY_TIMED,     // it has, and the wait has a time-out
    TIMELY_EPISODES
};
#define TIMELY_EPISODE_NAMES                                                                                           \
    {                                                                                                                  \
        "woken", "again", "early", "limit", "restarted", "ended", "timed"                                              \
    }
#define TIMELY_WAY_NAMES                                                                                               \
    {                                                                                                                  \
        "name", "syscall", "instruction"                                                                               \
    }
#define TIMELY_WAKER_NAMES                                                                                             \
    {                                                                                                                  \
        "thread", "process"                                                                                            \
    }

enum {
    TIMELY_BEGIN_US = 10, // the waiter calls this long after the episode began
    TIMELY_WOKEN_US = 100,
    TIMELY_AGAIN_US = 250,
    TIMELY_EARLY_US = 50,
    TIMELY_SIGNAL_US = 50,
    TIMELY_LIMIT_US = 20000, // some ticks of the kernel, which rounds the time-outs of sockets to these
    TIMELY_END_US = 10,      // from the end of a process until others see it
    TIMELY_EXIT_US = 100,    // how long exit(3) takes
    TIMELY_LIST_FDS = 3
};

// What an episode works on.
struct timely_scene {
    int fds[TIMELY_LIST_FDS]; // the waiter's, the waker's, one more of the waiter's
    int id;                   // of System V
    mqd_t queue;
    pid_t process, thread; // the waiter's, as the run numbers them
    long limit_us;         // 0: the wait has no time-out
    long began_ns;         // the time of CLOCK_MONOTONIC when the episode began
    long realtime_ns;      // CLOCK_REALTIME shows so much more
    struct timely_shared *shared;
    long (*call)(long number, ...); // how a CALL is made: its result is the kernel's
};

// In memory that the waker shares.
struct timely_shared {
    volatile uint32_t word;
    pthread_spinlock_t spin_lock;
};

struct timely_stage {
    const char *name;
    void (*open)(struct timely_scene *scene);
    void (*arm)(struct timely_scene *scene);  // before each episode
    void (*hold)(struct timely_scene *scene); // by the waker, when the episode begins
    void (*wake)(struct timely_scene *scene); // by the waker
    void (*close)(struct timely_scene *scene);
    bool never_early; // what is waited for does not remain
    bool never_woken; // nothing but a time-out ends the wait
    bool of_process;  // no thread of the process can wake it
    bool never_ended; // no signal ends the wait, or what was moved before
    long after_us;    // the wait ends so long after the waker's action
};

struct timely_row {
    enum timely_kind kind;
    const char *name;
    // Returns what the call returned, with -errno for -1; the row of a call that does not wait may return something
    // else that it has found out.
    long (*play)(struct timely_scene *scene);
    long result;
    const struct timely_stage *stage; // NULL: play does everything itself
    long at_us;                       // without a stage: when it returns
    bool has_limit;
    long limit_result;
    long late_ns;
};

struct timely_theme {
    const char *name;
    const struct timely_row *rows;
    unsigned count;
};

enum { TIMELY_THEMES = 17 };
extern const struct timely_theme *const timely_themes[TIMELY_THEMES];
extern const struct timely_theme timely_reads, timely_writes, timely_calls, timely_library, timely_clocks,
    timely_timers, timely_signals, timely_descriptors, timely_life, timely_ids, timely_hosts, timely_machine,
    timely_paths, timely_streams, timely_futexes, timely_loops, timely_asynchronous;

// One way in which a row is played.
struct timely_case {
    enum timely_way way;
    enum timely_waker waker;
    enum timely_episode episode;
};

struct timely_expected {
    long at_us, late_ns, result;
};

// false: the row is not played in this way.
bool timely_expect(const struct timely_row *row, struct timely_case one, struct timely_expected *out);

// The line of the output that tells about this case begins so.
enum { TIMELY_LINE_BYTES = 128 };
void timely_line_begin(char line[TIMELY_LINE_BYTES], const struct timely_theme *theme, unsigned row,
                       struct timely_case one);

// For the rows. -1 becomes -errno.
long timely_result(long result);
long timely_now_ns(void);
// In another thread, so long after the episode began; timely_later_end waits for its end.
void timely_later(const struct timely_scene *scene, long us, void (*action)(void *), void *arg);
void timely_later_end(void);
// In a child: its exit status.
int timely_in_child(int (*run)(void *), void *arg);

// TIMELY_ROW(FUNCTION, "read", by_read, 1, .stage = &timely_socket)
#define TIMELY_ROW(kind_, name_, play_, result_, ...)                                                                  \
    {                                                                                                                  \
        .kind = TIMELY_##kind_, .name = (name_), .play = (play_), .result = (result_), ##__VA_ARGS__                   \
    }
#define TIMELY_THEME(theme, rows)                                                                                      \
    const struct timely_theme timely_##theme = {#theme, (rows), sizeof(rows) / sizeof((rows)[0])}
