// The run token: giving it to a thread of a program, waiting until it comes back, and the choice of processors.
//
// With two processors or more, programs keep one and the simulator uses the others, and each side busy-waits for the
// token for some microseconds before it sleeps: then a hand-over takes a fraction of a microsecond. If busy-waiting
// does not pay (another program uses the processor, or threads keep the token for long), the simulator moves to the
// programs' processor for a while, and both sides sleep at once. Programs see no difference: only real time depends on
// it.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/attach/internal.h"

enum { POLLS_MEASURED = 2000 };
// While apart: of WINDOW_GRANTS grants of the token, WINDOW_LATE may be late. While together: for TOGETHER_MIN grants,
// and for four times as many if the simulator was apart only shortly before.
enum { WINDOW_GRANTS = 64, WINDOW_LATE = 16, TOGETHER_MIN = 256, TOGETHER_MAX = 1 << 16, GOOD_WINDOWS = 64 };

// --- processors -----------------------------------------------------------------------------------------------------

static uint64_t real_ns(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now); // not the C library's clock, see timestamps.c
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// As many polls as fit into busy_wait_ns. One takes 5 to 50 ns, depending on the processor.
static uint32_t polls_measure(uint64_t busy_wait_ns)
{
    uint64_t least_ns = UINT64_MAX;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t began_ns = real_ns();
        for (unsigned j = 0; j < POLLS_MEASURED; j++) {
            __builtin_ia32_pause();
        }
        uint64_t ns = real_ns() - began_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return (uint32_t)(POLLS_MEASURED * busy_wait_ns / (least_ns + 1)) + 1;
}

static void only(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

static void part(struct attach_processors *processors, struct attach_bells *bells)
{
    processors->apart = sched_setaffinity(0, sizeof processors->others, &processors->others) == 0;
    atomic_store(&bells->polls, processors->apart ? processors->polls : 0);
}

static void join(struct attach_processors *processors, struct attach_bells *bells)
{
    processors->apart = false;
    processors->good = 0;
    processors->together = processors->together * 4 < TOGETHER_MAX ? processors->together * 4 : (unsigned)TOGETHER_MAX;
    only(processors->of_programs);
    atomic_store(&bells->polls, 0);
}

// Counts a grant of the token. late: a side slept, or the simulator had to wake the thread.
static void processors_note(struct attach_server *server, bool late)
{
    struct attach_processors *processors = &server->tokens.processors;
    processors->given++;
    processors->late += late;
    bool tired = processors->apart && processors->late > WINDOW_LATE;
    bool rested = !processors->apart && processors->given >= processors->together;
    if (tired) {
        join(processors, server->tokens.bells);
    } else if (rested && processors->polls != 0) {
        part(processors, server->tokens.bells);
    } else if (processors->given < WINDOW_GRANTS) {
        return;
    } else if (processors->apart && ++processors->good == GOOD_WINDOWS) {
        processors->together = TOGETHER_MIN / 4;
    }
    if (processors->apart || tired) {
        processors->given = processors->late = 0;
    }
}

static void processors_init(struct attach_processors *processors, uint64_t busy_wait_ns)
{
    int cpu = sched_getcpu();
    *processors = (struct attach_processors){.of_programs = -1, .together = TOGETHER_MIN / 4};
    if (cpu < 0 || sched_getaffinity(0, sizeof processors->before, &processors->before) != 0) {
        return;
    }
    processors->of_programs = cpu;
    processors->others = processors->before;
    CPU_CLR((size_t)cpu, &processors->others);
    processors->polls = CPU_COUNT(&processors->others) > 0 ? polls_measure(busy_wait_ns) : 0;
    only(cpu);
}

void attach_processors_of_programs(const struct attach_server *server)
{
    if (server->tokens.processors.of_programs >= 0) {
        only(server->tokens.processors.of_programs);
    }
}

// --- life -----------------------------------------------------------------------------------------------------------

bool attach_tokens_init(struct attach_server *server)
{
    server->tokens.bells_fd = memfd_create("tcasim-bells", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (server->tokens.bells_fd < 0 || ftruncate(server->tokens.bells_fd, sizeof *server->tokens.bells) != 0 ||
        fcntl(server->tokens.bells_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return false;
    }
    void *bells =
        mmap(NULL, sizeof *server->tokens.bells, PROT_READ | PROT_WRITE, MAP_SHARED, server->tokens.bells_fd, 0);
    if (bells == MAP_FAILED) {
        return false;
    }
    server->tokens.bells = bells;
    atomic_store(&server->tokens.bells->awake, ATTACH_BELL_NONE);
    server->tokens.processors.of_programs = -1;
    if (!server->options->any_cpu && !server->options->functional) {
        processors_init(&server->tokens.processors, attach_real_time(server->real_percent, ATTACH_REAL_BUSY_WAIT_NS));
    }
    return true;
}

void attach_tokens_fini(struct attach_server *server)
{
    if (server->tokens.processors.of_programs >= 0) {
        (void)sched_setaffinity(0, sizeof server->tokens.processors.before, &server->tokens.processors.before);
    }
    if (server->tokens.bells != NULL) {
        munmap(server->tokens.bells, sizeof *server->tokens.bells);
    }
    if (server->tokens.bells_fd >= 0) {
        close(server->tokens.bells_fd);
    }
}

// --- giving the token and waiting for it ----------------------------------------------------------------------------

bool attach_token_is_program(const struct attach_thread *thread)
{
    return atomic_load_explicit(&thread->slot->holder, memory_order_acquire) != ATTACH_HOLDER_SIMULATOR;
}

static void ring(struct attach_server *server, const struct attach_thread *thread)
{
    _Atomic uint32_t *bell = &server->tokens.bells->rung[thread->token.bell];
    atomic_fetch_add(bell, 1);
    (void)syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// A thread that busy-waits sees the new holder. If the holder is another thread, it wakes that thread.
void attach_token_give(struct attach_thread *thread)
{
    struct attach_server *server = thread->process->server;
    server->settling.acts++;
    atomic_store(&thread->slot->holder, ATTACH_HOLDER_PROGRAM);
    atomic_store(&server->tokens.bells->next, thread->token.bell);
    thread->token.rung =
        !server->tokens.processors.apart || atomic_load(&server->tokens.bells->awake) == ATTACH_BELL_NONE;
    if (thread->token.rung) {
        ring(server, thread);
    }
}

void attach_token_release(struct attach_thread *thread)
{
    atomic_store(&thread->slot->holder, ATTACH_HOLDER_PROGRAM);
    ring(thread->process->server, thread);
}

void attach_token_gone(const struct attach_thread *thread)
{
    uint32_t bell = thread->token.bell;
    (void)atomic_compare_exchange_strong(&thread->process->server->tokens.bells->awake, &bell, ATTACH_BELL_NONE);
}

static bool busy_waited(const struct attach_thread *thread)
{
    for (uint32_t i = thread->process->server->tokens.processors.polls; i > 0; i--) {
        if (!attach_token_is_program(thread)) {
            return true;
        }
        __builtin_ia32_pause();
    }
    return false;
}

static void sleep_really(struct attach_thread *thread)
{
    _Atomic uint32_t *holder = &thread->slot->holder;
    const struct attach_server *server = thread->process->server;
    if (thread->process->leaving) {
        struct pollfd ends[] = {{.fd = thread->process->reach.pidfd, .events = POLLIN},
                                {.fd = server->listener.fd, .events = POLLIN}};
        (void)poll(ends, 2, (int)attach_real_time(server->real_percent, ATTACH_REAL_EXIT_LOOK_MS));
    } else {
        const struct timespec time = {.tv_nsec =
                                          (long)attach_real_time(server->real_percent, ATTACH_REAL_TOKEN_LOOK_NS)};
        uint32_t program = ATTACH_HOLDER_PROGRAM;
        (void)atomic_compare_exchange_strong(holder, &program, ATTACH_HOLDER_AWAITED);
        (void)syscall(SYS_futex, holder, FUTEX_WAIT, ATTACH_HOLDER_AWAITED, &time, NULL, 0);
    }
}

// If the program becomes another one, that one attaches now, also if it has not announced it. A child waits until its parent announces it, at the
// parent's time, however long the parent computes. But a parent that sleeps in the kernel may wait there for the child.
static void children_check(struct attach_thread *thread, uint64_t now_ms)
{
    struct attach_server *server = thread->process->server;
    uint32_t before = server->ids.taken;
    if (thread->process->leaving) {
        attach_accept(server);
        return;
    }
    attach_accept_again(server, thread->process->reach.pid);
    if (thread->token.awake_ms == 0 || attach_runs(thread->process->reach.pid, (pid_t)thread->slot->tid)) {
        thread->token.awake_ms = now_ms;
    }
    if (now_ms - thread->token.awake_ms > attach_real_time(server->real_percent, ATTACH_REAL_PARENT_SLEEPS_MS)) {
        attach_accept(server);
        attach_outside_note(server, server->ids.taken != before ? ATTACH_RUN_OUTSIDE_CLOCK : 0);
    }
}

// What a thread that does not call in does: the kernel's state of it, and the number and first argument of the system
// call in which it sleeps (proc_pid_syscall(5)).
static void doing_print(pid_t pid, pid_t tid, char *text, size_t room)
{
    char name[64], line[256], state = attach_state(pid, tid);
    snprintf(name, sizeof name, "task/%d/syscall", (int)tid);
    long long call; // -1: none
    unsigned long long argument;
    ssize_t bytes = attach_proc_read(pid, name, line, sizeof line);
    if (state == 'R') {
        snprintf(text, room, "computes");
    } else if (state == 'T') {
        snprintf(text, room, "is stopped");
    } else if (state == 'Z' || state == 'X') {
        snprintf(text, room, "has ended");
    } else if (bytes > 0 && sscanf(line, "%lld %llx", &call, &argument) == 2 && call >= 0) {
        snprintf(text, room, "sleeps in the kernel, in system call %lld with 0x%llx as its first argument", call,
                 argument);
    } else {
        snprintf(text, room, "sleeps in the kernel");
    }
}

// The thread has kept the token for too long.
static void overdue_report(const struct attach_thread *thread, uint64_t seconds)
{
    attach_outside_note(thread->process->server, ATTACH_RUN_OUTSIDE_CLOCK);
    struct attach_process *process = thread->process;
    pid_t tid = thread->slot->tid != 0 ? (pid_t)thread->slot->tid : process->reach.pid; // 0: it has not come in yet
    char title[256], where[512], does[128], since[48];
    doing_print(process->reach.pid, tid, does, sizeof does);
    bool known = attach_where(&process->reach, tid, where, sizeof where);
    attach_thread_title(thread, title, sizeof title);
    observe_time_print(sim_now_ps(process->server->sim), since, sizeof since);
    attach_fail(process->server, "%s has not called in for %llu s of real time: it %s%s%s, since %s", title,
                (unsigned long long)seconds, does, known ? " in " : "", known ? where : "", since);
}

// Checks for other events while the thread has the token. false: the program has ended.
static bool check_aside(struct attach_thread *thread, uint64_t *since_ms)
{
    struct attach_process *process = thread->process;
    struct attach_server *server = process->server;
    uint64_t now_ms = attach_silence_ms(server);
    *since_ms = *since_ms == 0 ? now_ms : *since_ms;
    children_check(thread, now_ms);
    (void)attach_process_check(process);
    if (process->ended || attach_stopped(server)) {
        return false;
    }
    if (now_ms - *since_ms > server->options->wall_limit_ms) {
        overdue_report(thread, (now_ms - *since_ms) / 1000);
        return false;
    }
    return true;
}

bool attach_token_await(struct attach_thread *thread)
{
    struct attach_server *server = thread->process->server;
    uint64_t since_ms = 0;
    thread->token.awake_ms = 0;
    bool apart = server->tokens.processors.apart;
    bool slept = !(apart && busy_waited(thread));
    if (apart && slept) { // the thread that busy-waits is not running
        ring(server, thread);
    }
    while (slept && attach_token_is_program(thread)) {
        sleep_really(thread);
        if (attach_token_is_program(thread) && !check_aside(thread, &since_ms)) {
            return false;
        }
    }
    processors_note(server, slept || thread->token.rung);
    return true;
}
