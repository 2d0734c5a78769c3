// What a program does next if its poll finds nothing: the world shim interprets it (verbs-shim/world/lookahead.c), on a
// copy of its state, from the return of the poll on. An empty poll may stand for further polls only if the program would
// make them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Where a poll was called: the registers that functions preserve (System V ABI for x86-64, 3.2.1), and those of its
// return.
struct attach_caller {
    uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
};

// Defines the function `name`, which calls carry_out with its own arguments and, in the register `last`, a struct
// attach_caller of where it was called. Then the program goes on, there with the registers of that structure, or at a later
// poll of its loop (attach_resume).
#define ATTACH_CALLER_ENTRY(name, last, carry_out)                                                                     \
    __asm__(".text\n"                                                                                                  \
            ".globl " #name "\n"                                                                                       \
            ".type " #name ", @function\n" #name ":\n"                                                                 \
            "    .cfi_startproc\n"                                                                                     \
            "    sub $72, %rsp\n"                                                                                      \
            "    .cfi_adjust_cfa_offset 72\n"                                                                          \
            "    mov %rbx, (%rsp)\n"                                                                                   \
            "    mov %rbp, 8(%rsp)\n"                                                                                  \
            "    mov %r12, 16(%rsp)\n"                                                                                 \
            "    mov %r13, 24(%rsp)\n"                                                                                 \
            "    mov %r14, 32(%rsp)\n"                                                                                 \
            "    mov %r15, 40(%rsp)\n"                                                                                 \
            "    lea 80(%rsp), %rax\n"                                                                                 \
            "    mov %rax, 48(%rsp)\n"                                                                                 \
            "    mov 72(%rsp), %rax\n"                                                                                 \
            "    mov %rax, 56(%rsp)\n"                                                                                 \
            "    mov %rsp, %" last "\n"                                                                                \
            "    call " #carry_out "\n"                                                                                \
            "    mov %rax, 64(%rsp)\n"                                                                                 \
            "    mov %rsp, %rdi\n"                                                                                     \
            "    call attach_resume@PLT\n"                                                                             \
            "    mov (%rsp), %rbx\n"                                                                                   \
            "    mov 8(%rsp), %rbp\n"                                                                                  \
            "    mov 16(%rsp), %r12\n"                                                                                 \
            "    mov 24(%rsp), %r13\n"                                                                                 \
            "    mov 32(%rsp), %r14\n"                                                                                 \
            "    mov 40(%rsp), %r15\n"                                                                                 \
            "    mov 64(%rsp), %rax\n"                                                                                 \
            "    add $72, %rsp\n"                                                                                      \
            "    .cfi_adjust_cfa_offset -72\n"                                                                         \
            "    ret\n"                                                                                                \
            "    .cfi_endproc\n"                                                                                       \
            ".size " #name ", .-" #name "\n")

#define ATTACH_AHEAD_POLLS    64u
#define ATTACH_POLL_FUNCTIONS 4u

// A poll that the program makes next.
struct attach_ahead_poll {
    uint64_t key, word; // as of attach_poll
    uint64_t own_ps;    // time that the thread spends from the poll before it to its end
    bool plain;         // an attach_poll or a poll of a function, not a call or a clock
    // Of attach_borders.functions, with its arguments and its part of the time; ATTACH_POLL_FUNCTIONS: none.
    uint32_t function;
    uint64_t arguments[3], function_ps;
    uint64_t state; // address of 8 bytes that change if the poll may do something else; 0: it depends on nothing else
    uint64_t until_ps; // then it does something; UINT64_MAX: never
};

enum attach_ahead_kind {
    // `polls`, the last of which is the poll itself again, and so on for `iterations`, until something changes that it reads.
    ATTACH_AHEAD_REPEATS,
    ATTACH_AHEAD_ENDS,   // `count` polls, and then something else, or what is not known: each stands for itself
    ATTACH_AHEAD_UNKNOWN // at least `count` polls
};

// A word of memory that a known loop reads.
struct attach_loop_word {
    uint64_t address, bus_address; // in the program; on the bus, if the memory is pinned, or 0
    uint64_t value, mask;          // what is read there, in the bits of the mask
};
#define ATTACH_LOOP_WORDS 768u

// Words of private memory that a known loop changes at some of its polls: counters, and what it sets back.
// Another thread of the process may look at them.
#define ATTACH_LOOP_CHANGES 16u
struct attach_loop_changes {
    uint64_t count;                          // more than ATTACH_LOOP_CHANGES: not all are listed
    uint64_t addresses[ATTACH_LOOP_CHANGES]; // of 8 bytes
};

struct attach_known; // a loop that was found
struct attach_ahead {
    enum attach_ahead_kind kind;
    unsigned count;      // of `polls`
    const char *reason;  // of UNKNOWN
    uint64_t unknown_at; // of UNKNOWN: the instruction behind which nothing is known; 0: it was not looked for
    unsigned effort;     // polls that were interpreted to know this
    bool outside; // some polls are calls (attach_poll_call): what they find may change by whatever another program does
    // Of REPEATS; kept until `left` of attach_look_ahead_ops. The words that it reads have no bus_address.
    struct attach_known *known;
    const struct attach_loop_word *words;
    unsigned word_count;
    uint64_t iterations; // of REPEATS: so many are known
    // What it writes for other processes is the same at each of its polls. Not known if it was alone.
    bool steady;
    struct attach_loop_changes changes;
    struct attach_ahead_poll polls[ATTACH_AHEAD_POLLS]; // the last member: most of them are rarely used
};

static inline void attach_ahead_begin(struct attach_ahead *ahead, enum attach_ahead_kind kind)
{
    memset(ahead, 0, offsetof(struct attach_ahead, polls));
    ahead->kind = kind;
    ahead->reason = "";
}

static inline void attach_ahead_copy(struct attach_ahead *to, const struct attach_ahead *from)
{
    memcpy(to, from, offsetof(struct attach_ahead, polls) + from->count * sizeof from->polls[0]);
}

// Where a program goes on, and what it has written until then.
#define ATTACH_RESUME_WORDS 4096u // no fewer than an interpretation has (INTERPRET_WORDS_MAX)
struct attach_resume {
    uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip, rdi, rsi, rdx, rax;
    uint64_t count;
    struct {
        uint64_t address, value;
    } words[ATTACH_RESUME_WORDS];
};
// If the calling thread is to go on elsewhere than where this caller was, it does so. At a reading of a clock, if a device has
// written, its library looks first.
void attach_resume(struct attach_caller *caller);
uint64_t attach_resumed_ps(void); // the thread's time when it went on at another reading of a clock the last time
// For a library's function that polls: has the program gone on here, with this poll carried out already? *again_out: it
// is worth repeating.
bool attach_resumed(bool *again_out);

// A function of a library that polls, with the arguments of its caller. It would find nothing now, do nothing else and
// return 0: IDLE, with its poll's key, word, state, end and time (function_ps). So its instructions are not interpreted.
enum attach_idle { ATTACH_IDLE, ATTACH_FINDS, ATTACH_IDLE_UNKNOWN };
struct attach_costs {
    uint64_t call_ps, lock_ps, load_ps; // BACKEND_COST_*
};
typedef enum attach_idle (*attach_is_idle_t)(const uint64_t arguments[3], const struct attach_caller *caller,
                                             const struct attach_costs *costs, struct attach_ahead_poll *poll_out);
struct attach_poll_function {
    uintptr_t entry;
    attach_is_idle_t is_idle;
};
void attach_poll_function_add(uintptr_t entry, attach_is_idle_t is_idle);
// Polls of the calling thread belong to such a function, which was called there; NULL: no longer. Returns what was set
// before.
struct attach_caller *attach_poll_within(struct attach_caller *caller);

// A reading of a clock, as the world shim describes it to itself: what is written where. form 0: none.
struct attach_clock {
    uint32_t form;
    int32_t clock;
    uint64_t to;
};

// What the interpretation needs to know of the functions and variables of this library.
struct attach_borders {
    uintptr_t poll, poll_call; // empty polls
    uintptr_t others[2];       // whatever else the simulator would notice
    uintptr_t kernel_gate;
    uint64_t *tail_ps, *now_ps; // the thread's time
    bool *found;
    _Atomic uint32_t *entry_count; // of the list that the poll sends
    const struct attach_poll_function *functions;
    unsigned function_count;
    bool alone;                // no other thread or process sees what the program writes
    bool clocks_poll;          // of a run of readings of clocks the later ones are polls (attach_poll_clock)
    bool clocks_serve;         // and the first of these does a library's work
    struct attach_clock clock; // the poll is this one; form 0: another poll
    struct attach_costs costs;
    uint64_t poll_call_ps; // what a call that polls costs
    uint64_t waited;       // polls that this wait has had
};

// Where a thread has left a known loop.
struct attach_left_at {
    uint64_t iterations; // that it has made
    unsigned poll;       // of the next one; 0: that from which it looked
    uint64_t at_ps;      // the end of this poll
};

// At what the thread has left it: attach_poll, whose result says whether a device has written; a function of a library; a
// call; a reading of a clock.
enum attach_left_by { ATTACH_LEFT_POLL, ATTACH_LEFT_FUNCTION, ATTACH_LEFT_CALL, ATTACH_LEFT_CLOCK };

// How a thread that has left a known loop comes to the poll at which it left it: it is there; or it is put there; or it
// makes the loop's last polls once more, at their times and with memory as it was then, which costs a tenth.
enum attach_left_how { ATTACH_LEFT_HERE, ATTACH_LEFT_ELSEWHERE, ATTACH_LEFT_MAKES };
struct attach_left_makes {
    unsigned polls;
    const struct attach_ahead_poll *list; // `count` polls, which repeat; until the next look
    unsigned count;
    uint64_t from_ps; // the end of the poll before them
};

// How to look ahead.
struct attach_look_ahead_ops {
    void (*look)(const struct attach_caller *caller, uint64_t key, const struct attach_borders *borders,
                 struct attach_ahead *ahead_out);
    // The thread has left the loop. The counters of the loop are advanced, in memory and in the registers of the caller.
    // ELSEWHERE: at *resume_out, but for the result of a poll. MAKES: *makes_out, until `made`.
    enum attach_left_how (*left)(struct attach_known *known, struct attach_caller *caller,
                                 const struct attach_borders *borders, const struct attach_left_at *at,
                                 struct attach_resume *resume_out, enum attach_left_by *by_out,
                                 struct attach_left_makes *makes_out);
    void (*made)(void);                                                   // memory is as it is now
    bool (*differ)(const struct attach_loop_word *words, unsigned count); // is one of them another one now?
};
void attach_ahead_by(const struct attach_look_ahead_ops *ops);
