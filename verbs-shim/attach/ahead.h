// What a program does next if its poll finds nothing: the world shim interprets it (verbs-shim/world/lookahead.c), on a
// copy of its state, from the return of the poll on. An empty poll may stand for further polls only if the program would
// make them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Where a poll was called: the registers that functions preserve (System V ABI for x86-64, 3.2.1), and those of its
// return.
struct attach_caller {
    uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
};

// Defines the function `name`, which calls carry_out with its own arguments and, in the register `last`, a struct
// attach_caller of where it was called.
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
            "    add $72, %rsp\n"                                                                                      \
            "    .cfi_adjust_cfa_offset -72\n"                                                                         \
            "    ret\n"                                                                                                \
            "    .cfi_endproc\n"                                                                                       \
            ".size " #name ", .-" #name "\n")

#define ATTACH_AHEAD_POLLS 32u

// A poll that the program makes next.
struct attach_ahead_poll {
    uint64_t key, word; // as of attach_poll
    uint64_t own_ps;    // time that the thread spends from the poll before it to its end
};

enum attach_ahead_kind {
    // `polls`, the last of which is the poll itself again, and so on until a device writes what it reads. All of them are
    // polls of memory (attach_poll): who polls by calls may wait for anything.
    ATTACH_AHEAD_REPEATS,
    ATTACH_AHEAD_ENDS,    // `count` polls, and then it does something else
    ATTACH_AHEAD_UNKNOWN  // at least `count` polls
};

struct attach_ahead {
    enum attach_ahead_kind kind;
    unsigned count;
    struct attach_ahead_poll polls[ATTACH_AHEAD_POLLS];
    const char *reason; // of UNKNOWN
};

// A function of a library that polls, with the arguments of its caller. It would find nothing now, do nothing else and
// return 0: IDLE, with its poll's key, word and cost, in calls and loads (BACKEND_COST_*). So its instructions are not
// interpreted.
enum attach_idle { ATTACH_IDLE, ATTACH_FINDS, ATTACH_IDLE_UNKNOWN };
typedef enum attach_idle (*attach_is_idle_t)(const uint64_t arguments[3], const struct attach_caller *caller,
                                 struct attach_ahead_poll *poll_out, unsigned *calls, unsigned *loads);
#define ATTACH_POLL_FUNCTIONS 4u
struct attach_poll_function {
    uintptr_t entry;
    attach_is_idle_t is_idle;
};
void attach_poll_function_add(uintptr_t entry, attach_is_idle_t is_idle);
// Polls of the calling thread belong to such a function, which was called there; NULL: no longer. Returns what was set
// before.
const struct attach_caller *attach_poll_within(const struct attach_caller *caller);

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
    uint64_t call_ps, load_ps;
    uint64_t poll_call_ps; // what a call that polls costs
};

// Sets how to look ahead. NULL: not possible.
typedef void (*attach_look_ahead_t)(const struct attach_caller *caller, uint64_t key,
                                    const struct attach_borders *borders, struct attach_ahead *ahead_out);
void attach_ahead_by(attach_look_ahead_t look);
