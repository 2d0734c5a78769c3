// System calls in a look ahead (lookahead_internal.h). A call of this shim by which a program polls descriptors finds nothing
// as long as nobody has done anything since the kernel was asked: the questions are asked, with copies of what they write,
// and nothing is taken away. What is ready, and any other call, ends the look ahead.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/lookahead_internal.h"

enum { SYSCALL_BYTES = 2, DESCRIPTORS_MAX = 16, SET_WORDS_MAX = FD_SETSIZE / 64 };

// A call and its arguments, all of which are known.
struct question {
    struct lookahead_run *run;
    uint64_t number, arguments[6];
    bool steady; // what it reads is the same in each iteration
};

// --- the program's memory ---------------------------------------------------------------------------------------------------

static uint64_t word_of(struct question *question, uint64_t address)
{
    question->steady = question->steady && interpret_vary_is_steady(address, 8);
    return interpret_load(address, 8);
}

static bool is_now(struct question *question, uint64_t timeout)
{
    return timeout != 0 && word_of(question, timeout) == 0 && word_of(question, timeout + 8) == 0;
}

// --- questions --------------------------------------------------------------------------------------------------------------
// Each returns what the call returns, or -ENOSYS if it does more than to find nothing, or if this is not known. What it writes is
// where it has read before: none of it varies.

static const struct timespec at_once;

static bool is_ready(const struct question *question, uint64_t fd)
{
    struct pollfd one = {.fd = (int)fd, .events = POLLIN};
    return !question->run->replays &&
           kernel_call(SYS_ppoll, (long)(uintptr_t)&one, 1, (long)(uintptr_t)&at_once, 0, 0, 0) != 0;
}

static long ppoll_ask(struct question *question)
{
    const uint64_t *a = question->arguments;
    struct pollfd copy[DESCRIPTORS_MAX];
    if (a[1] > DESCRIPTORS_MAX || !is_now(question, a[2])) {
        return -ENOSYS;
    }
    for (uint64_t i = 0; i < a[1]; i++) {
        uint64_t entry = word_of(question, a[0] + i * sizeof copy[0]);
        copy[i] = (struct pollfd){.fd = (int)(uint32_t)entry, .events = (short)(entry >> 32 & UINT16_MAX)};
    }
    if (!question->run->replays &&
        kernel_call(SYS_ppoll, (long)(uintptr_t)copy, (long)a[1], (long)(uintptr_t)&at_once, 0, 0, 0) != 0) {
        return -ENOSYS;
    }
    for (uint64_t i = 0; i < a[1]; i++) {
        interpret_store(a[0] + i * sizeof copy[0] + offsetof(struct pollfd, revents), sizeof copy[0].revents, 0);
    }
    return 0;
}

static long pselect_ask(struct question *question)
{
    const uint64_t *a = question->arguments;
    uint64_t words = (a[0] + 63) / 64;
    uint64_t copy[3][SET_WORDS_MAX] = {0};
    if (a[0] > FD_SETSIZE || !is_now(question, a[4]) || a[5] != 0) {
        return -ENOSYS;
    }
    for (unsigned set = 0; set < 3; set++) {
        for (uint64_t i = 0; a[1 + set] != 0 && i < words; i++) {
            copy[set][i] = word_of(question, a[1 + set] + 8 * i);
        }
    }
    if (!question->run->replays &&
        kernel_call(SYS_pselect6, (long)a[0], a[1] != 0 ? (long)(uintptr_t)copy[0] : 0,
                    a[2] != 0 ? (long)(uintptr_t)copy[1] : 0, a[3] != 0 ? (long)(uintptr_t)copy[2] : 0,
                    (long)(uintptr_t)&at_once, 0) != 0) {
        return -ENOSYS;
    }
    for (unsigned set = 0; set < 3; set++) {
        for (uint64_t i = 0; a[1 + set] != 0 && i < words; i++) {
            interpret_store(a[1 + set] + 8 * i, 8, 0);
        }
    }
    return 0;
}

// A set is ready if one of its descriptors is.
static long epoll_ask(struct question *question)
{
    const uint64_t *a = question->arguments;
    return a[3] == 0 && !is_ready(question, a[0]) ? 0 : -ENOSYS;
}

static long receive_ask(struct question *question)
{
    const uint64_t *a = question->arguments;
    uint64_t flags = question->number == SYS_recvfrom ? a[3] : question->number == SYS_recvmsg ? a[2] : 0;
    long status = kernel_call(SYS_fcntl, (long)a[0], F_GETFL, 0, 0, 0, 0);
    bool waits = status < 0 || ((status & O_NONBLOCK) == 0 && (flags & MSG_DONTWAIT) == 0);
    return waits || (flags & (MSG_OOB | MSG_ERRQUEUE)) != 0 || is_ready(question, a[0]) ? -ENOSYS : -EAGAIN;
}

static long flags_ask(struct question *question)
{
    const uint64_t *a = question->arguments;
    return a[1] == F_GETFL ? kernel_call(SYS_fcntl, (long)a[0], F_GETFL, 0, 0, 0, 0) : -ENOSYS;
}

static const struct {
    uint64_t number;
    unsigned arguments; // that are needed
    long (*ask)(struct question *question);
} questions[] = {
    {SYS_ppoll, 3, ppoll_ask},     {SYS_pselect6, 6, pselect_ask}, {SYS_epoll_pwait, 4, epoll_ask},
    {SYS_read, 1, receive_ask},    {SYS_readv, 1, receive_ask},    {SYS_recvfrom, 4, receive_ask},
    {SYS_recvmsg, 3, receive_ask}, {SYS_accept, 1, receive_ask},   {SYS_accept4, 1, receive_ask},
    {SYS_fcntl, 2, flags_ask},
};

// --- at a system call -------------------------------------------------------------------------------------------------------

static const unsigned argument_registers[] = {INTERPRET_RDI, INTERPRET_RSI, INTERPRET_RDX,
                                              INTERPRET_R10, INTERPRET_R8,  INTERPRET_R9};

bool lookahead_ask(struct lookahead_run *run)
{
    struct interpret_state *state = &run->state;
    struct question question = {.run = run, .number = state->registers[INTERPRET_RAX], .steady = true};
    run->asked = true;
    if (state->rip != run->borders->kernel_gate || !lookahead_register_is_steady(state, INTERPRET_RAX)) {
        return false;
    }
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        if (questions[i].number != question.number) {
            continue;
        }
        for (unsigned a = 0; a < questions[i].arguments; a++) {
            question.steady = question.steady && lookahead_register_is_steady(state, argument_registers[a]);
            question.arguments[a] = state->registers[argument_registers[a]];
        }
        long result = question.steady ? questions[i].ask(&question) : -ENOSYS;
        state->registers[INTERPRET_RAX] = (uint64_t)result;
        state->known &= (uint16_t) ~(1u << INTERPRET_RCX | 1u << INTERPRET_R11);
        if (interpret_vary_is_on()) {
            interpret_vary_register(INTERPRET_RAX, (struct interpret_vary){0});
        }
        state->rip += SYSCALL_BYTES;
        return result != -ENOSYS && question.steady;
    }
    return false;
}

bool lookahead_call_may_poll(uint64_t number)
{
    static const short others[] = {SYS_poll,         SYS_select, SYS_epoll_wait, SYS_ioctl,  SYS_getsockopt,
                                   SYS_sched_yield,  SYS_wait4,  SYS_semop,      SYS_msgrcv, SYS_clock_gettime,
                                   SYS_gettimeofday, SYS_getpid, SYS_gettid};
    bool may = false;
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        may = may || number == questions[i].number;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        may = may || number == (uint64_t)others[i];
    }
    return may;
}
