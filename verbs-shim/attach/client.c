// An attached process: how it connects, the attach call, its threads and its end.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/real_time.h"
#include "verbs-shim/attach/watchpoints.h"

struct attach_client attach_client = {.socket = -1};
_Thread_local struct attach_own attach_own;

// --- real time ------------------------------------------------------------------------------------------------------
// System calls go through the gate, because interposed functions of the C library call into this file.

void attach_sleep_really(uint64_t ns)
{
    uint32_t percent = attach_client.segment != NULL ? attach_client.segment->greeting.real_percent : 0;
    const struct timespec time = {.tv_nsec = (long)attach_real_time(percent, ns)};
    (void)kernel_call(SYS_nanosleep, (long)(uintptr_t)&time, 0, 0, 0, 0, 0);
}

// Takes the kernel's form of a signal set.
static uint64_t signals_change(int how, uint64_t set)
{
    uint64_t before = 0;
    (void)kernel_call(SYS_rt_sigprocmask, how, (long)(uintptr_t)&set, (long)(uintptr_t)&before, sizeof set, 0, 0);
    return before;
}

// Blocks all signals except those that a thread raises by its own actions.
static uint64_t signals_block(void)
{
    static const int own_faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    uint64_t set = UINT64_MAX;
    for (size_t i = 0; i < sizeof own_faults / sizeof own_faults[0]; i++) {
        set &= ~(UINT64_C(1) << (own_faults[i] - 1));
    }
    return signals_change(SIG_BLOCK, set);
}

// Counts signals for which the program has a handler. Others end it, or it never notices them.
static void interrupts_count(uint64_t signals)
{
    bool any = false, ending = false;
    for (int number = 1; signals != 0; number++, signals >>= 1) {
        struct {
            void (*handler)(int);
            unsigned long flags;
            void (*restorer)(void);
            uint64_t mask;
        } action;
        if ((signals & 1) != 0 &&
            kernel_call(SYS_rt_sigaction, number, 0, (long)(uintptr_t)&action, sizeof action.mask, 0, 0) == 0 &&
            action.handler != SIG_DFL && action.handler != SIG_IGN) {
            any = true;
            ending = ending || (action.flags & SA_RESTART) == 0;
        }
    }
    attach_own.interrupts += any;
    attach_own.interrupts_ending += ending;
}

static void signals_restore(uint64_t before, bool waited)
{
    uint64_t pending = 0;
    if (waited) {
        (void)kernel_call(SYS_rt_sigpending, (long)(uintptr_t)&pending, sizeof pending, 0, 0, 0, 0);
        interrupts_count(pending & ~before & ~attach_client.own_signals);
    }
    (void)signals_change(SIG_SETMASK, before);
}

// --- computing ------------------------------------------------------------------------------------------------------

#define COMPUTE_MAX_PS 5e14 // the simulator accepts at most twice as much

static uint64_t processor_ns(void)
{
    struct timespec now = {0};
    (void)kernel_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)(uintptr_t)&now, 0, 0, 0, 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool computes(void)
{
    return attach_client.segment != NULL && attach_client.segment->greeting.compute_scale > 0 &&
           attach_own.libraries == 0;
}

void attach_compute_pay(void)
{
    if (computes()) {
        uint64_t now_ns = processor_ns();
        double scale = attach_client.segment->greeting.compute_scale;
        uint64_t own_ns = now_ns > attach_own.computed_ns ? now_ns - attach_own.computed_ns : 0; // a signal handler may
                                                                                                 // have paid for it
        double own_ps = (double)own_ns * 1000 * scale;
        attach_own.tail_ps += own_ps < COMPUTE_MAX_PS ? (uint64_t)own_ps : (uint64_t)COMPUTE_MAX_PS;
        attach_own.computed_ns = now_ns;
    }
}

static void compute_begin(void)
{
    attach_own.computed_ns = computes() ? processor_ns() : 0;
}

__attribute__((visibility("default"))) void attach_library_enter(void)
{
    attach_compute_pay();
    if (attach_own.libraries++ == 0) {
        attach_watches_enable(false);
    }
}

__attribute__((visibility("default"))) void attach_library_leave(void)
{
    if (--attach_own.libraries == 0) {
        attach_watches_enable(true);
    }
    compute_begin();
}

// --- connecting -----------------------------------------------------------------------------------------------------

// The same file out of the way of programs that count on small numbers; -errno.
static int descriptor_high(int fd)
{
    return (int)kernel_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 900, 0, 0, 0);
}

static int socket_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        return -1;
    }
    strcpy(address.sun_path, path);
    int fd = (int)kernel_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0, 0, 0);
    if (fd >= 0 && kernel_call(SYS_connect, fd, (long)(uintptr_t)&address, sizeof address, 0, 0, 0) != 0) {
        (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
        fd = -1;
    }
    int high = fd >= 0 ? descriptor_high(fd) : -1;
    if (high >= 0) {
        (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
        fd = high;
    }
    return fd;
}

// Receives one message and the descriptor that comes with it; -1: none.
static int message_receive(int socket, void *message, size_t bytes)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec vector = {message, bytes};
    struct msghdr header = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t got;
    do {
        got = kernel_call(SYS_recvmsg, socket, (long)(uintptr_t)&header, MSG_CMSG_CLOEXEC, 0, 0, 0);
    } while (got == -EINTR);
    const struct cmsghdr *part = got == (ssize_t)bytes ? CMSG_FIRSTHDR(&header) : NULL;
    int fd = -1;
    if (part != NULL && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
        memcpy(&fd, CMSG_DATA(part), sizeof fd);
    }
    return fd;
}

__attribute__((visibility("default"))) int attach_descriptor(void)
{
    return attach_client.socket;
}

__attribute__((visibility("default"))) void attach_descriptor_move(void)
{
    int high = descriptor_high(attach_client.socket);
    if (high >= 0) {
        attach_client.socket = high;
    }
}

bool attach_descriptors_send(const int *fds, unsigned count)
{
    const uint32_t magic = ATTACH_MAGIC;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * ATTACH_WATCHES_MAX)];
    } control;
    struct iovec vector = {(void *)(uintptr_t)&magic, sizeof magic};
    struct msghdr header = {.msg_iov = &vector,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = CMSG_SPACE(sizeof *fds * count)};
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof *fds * count);
    memcpy(CMSG_DATA(part), fds, sizeof *fds * count);
    return kernel_call(SYS_sendmsg, attach_client.socket, (long)(uintptr_t)&header, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0,
                       0) == (long)sizeof magic;
}

int attach_descriptor_take(void)
{
    uint32_t magic;
    return message_receive(attach_client.socket, &magic, sizeof magic);
}

static void give_up(const char *reason)
{
    char text[ATTACH_TEXT_BYTES + 64];
    int length = snprintf(text, sizeof text, "tcasim: this program cannot be attached: %s\n", reason);
    (void)kernel_call(SYS_write, STDERR_FILENO, (long)(uintptr_t)text, length, 0, 0, 0);
    (void)kernel_call(SYS_exit_group, 2, 0, 0, 0, 0, 0);
}

static void *shared_map(int fd, size_t bytes)
{
    // By-passes the world shim, which would take it for memory that the program shares.
    long memory = kernel_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
    if (memory < 0 && memory > -4096) {
        give_up("no memory");
    }
    return (void *)memory;
}

static void segment_map(void)
{
    struct attach_hello hello = {
        .magic = ATTACH_MAGIC, .layout = ATTACH_LAYOUT, .tid = (uint32_t)kernel_call(SYS_gettid, 0, 0, 0, 0, 0, 0)};
    struct attach_welcome welcome = {0};
    const char *node = getenv("TCASIM_NODE"), *home = getenv("TCASIM_HOME");
    snprintf(hello.node, sizeof hello.node, "%s", node != NULL ? node : "");
    snprintf(hello.home, sizeof hello.home, "%s", home != NULL ? home : "");
    if (kernel_call(SYS_sendto, attach_client.socket, (long)(uintptr_t)&hello, sizeof hello, MSG_NOSIGNAL, 0, 0) !=
        (long)sizeof hello) {
        give_up("the simulator has ended");
    }
    int fd = message_receive(attach_client.socket, &welcome, sizeof welcome);
    if (welcome.magic == ATTACH_MAGIC && welcome.layout != ATTACH_LAYOUT) {
        give_up(ATTACH_OTHER_BUILD);
    }
    welcome.text[sizeof welcome.text - 1] = '\0';
    if (fd < 0 || welcome.magic != ATTACH_MAGIC) {
        give_up(welcome.text[0] != '\0' ? welcome.text : "the simulator has ended");
    }
    attach_client.segment = shared_map(fd, sizeof *attach_client.segment);
    attach_client.bells = shared_map(attach_descriptor_take(), sizeof *attach_client.bells);
}

// Destructors run in rounds: the destructors of other keys still have the run token.
static void thread_ended(void *slot)
{
    static _Thread_local unsigned rounds;
    if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        (void)pthread_setspecific(attach_client.thread_end, slot);
    } else {
        attach_thread_exit();
    }
}

// In a child: it is not attached until its first call.
void attach_link_forget(void)
{
    if (attach_client.segment != NULL) {
        attach_window_close();
        (void)kernel_call(SYS_close, attach_client.socket, 0, 0, 0, 0, 0);
        munmap(attach_client.segment, sizeof *attach_client.segment);
        munmap(attach_client.bells, sizeof *attach_client.bells);
        attach_client.segment = NULL;
        attach_client.socket = -1;
        attach_own = (struct attach_own){0};
        attach_backend_forked();
        attach_loops_forked();
        atomic_store(&attach_client.link, ATTACH_LINK_UNKNOWN);
    }
}

static void prepare(void)
{
    if (!attach_client.prepared) {
        attach_client.prepared = pthread_key_create(&attach_client.thread_end, thread_ended) == 0 &&
                                 pthread_atfork(NULL, NULL, attach_link_forget) == 0;
    }
}

static void slot_take(struct attach_slot *slot)
{
    attach_own = (struct attach_own){.slot = slot, .libraries = attach_own.libraries};
    slot->tid = (uint32_t)kernel_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    (void)pthread_setspecific(attach_client.thread_end, slot);
}

static enum attach_link link_make(void)
{
    const char *path = getenv("TCASIM_ATTACH");
    if (!kernel_gate_open()) {
        give_up("something lies at the address that tcasim needs (verbs-shim/attach/kernel_call.h)");
    }
    if (path == NULL || path[0] == '\0') {
        return ATTACH_LINK_NONE;
    }
    attach_client.socket = socket_connect(path);
    if (attach_client.socket < 0) {
        give_up("there is no simulator at TCASIM_ATTACH");
    }
    prepare();
    segment_map();
    const struct attach_greeting *greeting = &attach_client.segment->greeting;
    // Messages name the function that a thread is in: a child of the simulator looks (sim/attach/aside.h), which is no
    // ancestor of this process (Linux, Documentation/admin-guide/LSM/Yama.rst).
    (void)kernel_call(SYS_prctl, PR_SET_PTRACER, greeting->simulator, 0, 0, 0, 0);
    for (uint32_t i = 0; i < greeting->node_count && i < ATTACH_HOSTS; i++) {
        attach_client.hosts[i] = greeting->hosts[i];
    }
    attach_client.environment = (struct attach_environment){
        .hosts = attach_client.hosts,
        .address_base = greeting->address_base,
        .clock_read_ps = greeting->timestamp_ps,
        .interrupt_ps = greeting->interrupt_ps,
        .node = greeting->node,
        .node_index = greeting->node_index,
        .node_count = greeting->node_count,
        .process = greeting->process,
        .id = greeting->id,
        .random_seed = greeting->random_seed,
        .tsc_hz = greeting->tsc_hz,
        .verbs_chain = greeting->verbs_chain,
        .verbs_completion = greeting->verbs_completion,
        .memory_bytes = greeting->memory_bytes,
        .cache_bytes = greeting->cache_bytes,
        .memory_free_bytes = greeting->memory_free_bytes,
        .epoch_realtime_ns = greeting->epoch_realtime_ns,
        .epoch_monotonic_ns = greeting->epoch_monotonic_ns,
        .real_percent = greeting->real_percent,
    };
    attach_client.environment.every_poll = greeting->every_poll != 0;
    attach_client.environment.computes = greeting->compute_scale > 0;
    attach_client.environment.processor_signature = greeting->processor_signature;
    memcpy(attach_client.environment.processor, greeting->processor, sizeof greeting->processor);
    memcpy(attach_client.environment.standard_files, greeting->standard_files, sizeof greeting->standard_files);
    memcpy(attach_client.environment.processors, greeting->processors, sizeof greeting->processors);
    atomic_store(&attach_client.segment->shares, attach_client.shares);
    slot_take(&attach_client.segment->slots[0]);
    attach_token_await(attach_own.slot);
    compute_begin();
    return ATTACH_LINK_UP;
}

enum attach_link attach_link_of_process(void)
{
    for (;;) {
        uint32_t link = atomic_load_explicit(&attach_client.link, memory_order_acquire);
        if (link == ATTACH_LINK_UP || link == ATTACH_LINK_NONE) {
            return (enum attach_link)link;
        }
        if (link == ATTACH_LINK_BUSY) {
            attach_word_wait(&attach_client.link, ATTACH_LINK_BUSY);
        } else if (atomic_compare_exchange_strong(&attach_client.link, &link, ATTACH_LINK_BUSY)) {
            // A signal handler that calls in here would wait for the link that its own thread makes.
            uint64_t signals = signals_block();
            atomic_store_explicit(&attach_client.link, link_make(), memory_order_release);
            (void)signals_change(SIG_SETMASK, signals);
            attach_word_wake(&attach_client.link);
        }
    }
}

__attribute__((constructor)) static void connect_at_start(void)
{
    (void)attach_link_of_process();
}

// --- the attach call -------------------------------------------------------------------------------------------------

const struct attach_greeting *attach_greeting(void)
{
    return attach_link_of_process() == ATTACH_LINK_UP ? &attach_client.segment->greeting : NULL;
}

// The simulator searches up to there.
static void slot_end_set(uint32_t end)
{
    uint32_t before = atomic_load(&attach_client.segment->slot_end);
    while (before < end && !atomic_compare_exchange_weak(&attach_client.segment->slot_end, &before, end)) {
    }
}

// The simulator finds the slot when the thread's creator announces it, or at its next search.
static void slot_find(void)
{
    for (uint32_t i = 1; i < ATTACH_SLOTS; i++) {
        struct attach_slot *slot = &attach_client.segment->slots[i];
        uint32_t state = ATTACH_SLOT_FREE;
        slot_end_set(i + 1);
        if (atomic_compare_exchange_strong(&slot->state, &state, ATTACH_SLOT_NEW)) {
            slot_take(slot);
            uint64_t signals = signals_block();
            attach_token_await(slot);
            compute_begin();
            signals_restore(signals, true);
            return;
        }
    }
    give_up("it has too many threads");
}

struct attach_slot *attach_slot(void)
{
    if (attach_own.slot == NULL && !attach_own.ended && attach_link_of_process() == ATTACH_LINK_UP &&
        attach_own.slot == NULL) {
        slot_find();
    }
    return attach_own.slot;
}

struct attach_slot *attach_slot_to_call(void)
{
    struct attach_slot *slot = attach_slot();
    return attach_own.in_call ? NULL : slot;
}

static void alarm_check(const struct attach_slot *slot)
{
    uint64_t due_ps = atomic_load_explicit(&attach_client.segment->alarm_ps, memory_order_relaxed);
    if (slot->now_ps >= due_ps &&
        atomic_compare_exchange_strong(&attach_client.segment->alarm_ps, &due_ps, ATTACH_NEVER_PS)) {
        atomic_load (&attach_client.alarm)();
    }
}

int64_t attach_call(struct attach_slot *slot, enum attach_op op)
{
    if (attach_own.in_call) {
        return -EINTR;
    }
    attach_once_more_end();
    attach_window_close();
    attach_compute_pay();
    attach_own.in_call = true;
    attach_own.calls++;
    attach_own.did = attach_own.did || (op != ATTACH_OP_POLL && op != ATTACH_OP_NOTHING && op != ATTACH_OP_FLUSH);
    slot->op = op;
    slot->tail_ps = attach_own.tail_ps;
    // A poll for device writes is not interrupted: a call of the program that finds nothing returns anyway.
    bool interruptible = op == ATTACH_OP_WAIT || op == ATTACH_OP_WAIT_WORD || op == ATTACH_OP_FUTEX_WAIT ||
                         (op == ATTACH_OP_POLL && (slot->args.poll.flags & ATTACH_WAIT_OUTSIDE) != 0);
    uint64_t signals = signals_block();
    if (slot == &attach_client.segment->slots[0]) {
        attach_client.first_blocked = signals;
    }
    attach_loops_look(slot);
    attach_token_give(slot);
    if (attach_client.segment->greeting.mode == ATTACH_FUNCTIONAL) { // the simulator sleeps on all sockets
        (void)kernel_call(SYS_sendto, attach_client.socket, (long)(uintptr_t) "", 1, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
    }
    attach_token_await(slot);
    while (slot->effect != 0 || slot->ask != 0) {
        if (slot->ask != 0) {
            attach_journal_describe(slot);
        } else {
            attach_gpu_effect(slot->effect_gpu, slot->effect);
        }
        attach_token_give(slot);
        attach_token_await(slot);
    }
    attach_own.tail_ps = attach_own.listed_ps = 0;
    attach_own.data_bytes = 0;
    attach_own.in_call = false;
    int64_t result = slot->result;
    const union attach_reply reply = slot->reply; // a signal handler may make calls of its own
    if (op != ATTACH_OP_THREAD_EXIT) {
        atomic_store_explicit(&attach_client.scheduled_ps, slot->now_ps, memory_order_relaxed);
        alarm_check(slot);
    }
    compute_begin();
    if (op != ATTACH_OP_THREAD_EXIT) { // a handler would call in once more
        signals_restore(signals, interruptible);
        slot->reply = reply;
    }
    return result;
}

// A second wake at the same time changes nothing. How often a program reads and writes then depends on the machine: on a
// terminal it writes line by line.
static bool wakes_again(const struct attach_entry *last, const struct attach_entry *entry)
{
    return entry->kind == ATTACH_ENTRY_MAY_WAKE && last->kind == ATTACH_ENTRY_MAY_WAKE && entry->value <= last->value &&
           attach_own.tail_ps == 0;
}

void attach_append(const struct attach_entry *entry, const void *data)
{
    struct attach_slot *slot = attach_slot();
    uint32_t data_bytes = data != NULL ? entry->bytes : 0;
    if (slot == NULL || attach_own.in_call) {
        return;
    }
    uint32_t count = atomic_load_explicit(&slot->entry_count, memory_order_relaxed);
    if (count == ATTACH_ENTRIES || data_bytes > ATTACH_DATA_BYTES - attach_own.data_bytes) {
        (void)attach_call(slot, ATTACH_OP_FLUSH);
        count = 0;
    }
    attach_once_more_end();
    attach_own.did = true;
    attach_compute_pay();
    if (count > 0 && wakes_again(&slot->entries[count - 1], entry)) {
        return;
    }
    slot->entries[count] = *entry;
    slot->entries[count].after_ps = attach_own.tail_ps;
    if (data != NULL) {
        slot->entries[count].value = attach_own.data_bytes;
        memcpy(slot->data + attach_own.data_bytes, data, data_bytes);
    }
    attach_own.data_bytes += data_bytes;
    attach_own.listed_ps += attach_own.tail_ps;
    attach_own.tail_ps = 0;
    // The stores count as made even if the program is killed before its next attach call.
    atomic_store_explicit(&slot->entry_count, count + 1, memory_order_release);
    // Without simulated time polls make no attach calls, so nothing else would deliver the stores.
    if (attach_client.segment->greeting.mode == ATTACH_FUNCTIONAL && entry->kind != ATTACH_ENTRY_COMBINED) {
        (void)attach_call(slot, ATTACH_OP_NOTHING);
    }
}
