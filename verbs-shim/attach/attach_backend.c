// The backend of an attached process: a store goes to the thread's list, and everything with an answer is an attach
// call.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "verbs-shim/attach/attach_ops.h"
#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/real_time.h"

#define API __attribute__((visibility("default")))

#define PAGE_BYTES 4096u
#define PS_PER_NS  1000u
#define PS_PER_US  1000000u
#define LINE_BYTES 64u
// Limits one combined store, so that it does not fill the data of the list.
#define STORE_BYTES_MAX (ATTACH_DATA_BYTES / 4)
// A library that waits for memory and reads the time sees the memory no older than this.
#define STALE_MAX_PS PS_PER_US

// Pinned memory, mapped here and in the simulated node.
struct pinned {
    unsigned char *address;
    uint64_t bus_address;
    size_t bytes;
    struct pinned *next;
};

// The state of this process.
static struct {
    _Atomic uint32_t state; // 0 not begun, 1 being made, 2 ready
    atomic_flag busy;       // lock of the list
    struct pinned *pinned;
    unsigned board_claims;
    struct backend_process process;
    struct backend_ops ops;
} backend;

static void list_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&backend.busy, memory_order_acquire)) {
        attach_sleep_really(ATTACH_REAL_MAKING_NS);
    }
}

static void list_unlock(void)
{
    atomic_flag_clear_explicit(&backend.busy, memory_order_release);
}

bool attach_pinned_find(const volatile void *address, size_t bytes, uint64_t *bus_address_out)
{
    uintptr_t wanted = (uintptr_t)address;
    bool found = false;
    list_lock();
    for (const struct pinned *p = backend.pinned; p != NULL && !found; p = p->next) {
        uintptr_t offset = wanted - (uintptr_t)p->address;
        found = offset < p->bytes && bytes <= p->bytes - offset;
        *bus_address_out = found ? p->bus_address + offset : 0;
    }
    list_unlock();
    return found;
}

void attach_pinned_words(struct attach_loop_word *words, unsigned count)
{
    list_lock();
    for (const struct pinned *p = backend.pinned; p != NULL; p = p->next) {
        uintptr_t from = (uintptr_t)p->address, end = from + p->bytes;
        unsigned first = 0, behind = count;
        while (first < behind) {
            unsigned middle = (first + behind) / 2;
            bool below = words[middle].address < from;
            first = below ? middle + 1 : first;
            behind = below ? behind : middle;
        }
        for (; first < count && words[first].address < end; first++) {
            words[first].bus_address = p->bus_address + (words[first].address - from);
        }
    }
    list_unlock();
}

// --- pinned memory --------------------------------------------------------------------------------------------------

static int alloc_pinned(void *ctx, size_t bytes, struct backend_buffer *buffer_out)
{
    (void)ctx;
    size_t whole = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    struct pinned *pinned = malloc(sizeof *pinned);
    if (pinned == NULL) {
        return -ENOMEM;
    }
    struct attach_reply_alloc reply;
    int status = whole < bytes ? -ENOMEM : (int)attach_request(alloc, &reply, .bytes = bytes);
    if (status != 0) {
        free(pinned);
        return status;
    }
    int fd = attach_descriptor_take();
    long mapped = kernel_call(SYS_mmap, 0, (long)whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *address = mapped < 0 && mapped > -4096 ? MAP_FAILED : (void *)mapped;
    if (fd >= 0) {
        (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
    }
    if (address == MAP_FAILED) {
        free(pinned);
        (void)attach_request(free, NULL, .bus_address = reply.bus_address);
        return -ENOMEM;
    }
    *pinned = (struct pinned){address, reply.bus_address, whole, NULL};
    list_lock();
    pinned->next = backend.pinned;
    backend.pinned = pinned;
    list_unlock();
    *buffer_out = (struct backend_buffer){address, reply.bus_address, bytes};
    return 0;
}

static void free_pinned(void *ctx, struct backend_buffer *buffer)
{
    (void)ctx;
    list_lock();
    struct pinned **link = &backend.pinned;
    while (*link != NULL && (*link)->address != buffer->address) {
        link = &(*link)->next;
    }
    struct pinned *pinned = *link;
    if (pinned != NULL) {
        *link = pinned->next;
    }
    list_unlock();
    if (pinned != NULL) {
        (void)attach_request(free, NULL, .bus_address = pinned->bus_address);
        munmap(pinned->address, pinned->bytes);
        free(pinned);
    }
    *buffer = (struct backend_buffer){0};
}

static void ignore_writes(void *ctx, const void *address, size_t bytes)
{
    uint64_t bus_address;
    (void)ctx;
    if (attach_pinned_find(address, bytes, &bus_address)) {
        (void)attach_request(ignore_writes, NULL, .bus_address = bus_address, .bytes = bytes);
    }
}

static void event_writes(void *ctx, const void *address, size_t bytes)
{
    uint64_t bus_address;
    (void)ctx;
    if (attach_pinned_find(address, bytes, &bus_address)) {
        (void)attach_request(event_writes, NULL, .bus_address = bus_address, .bytes = bytes);
    }
}

// --- the board ------------------------------------------------------------------------------------------------------

static int board_claim(void *ctx)
{
    (void)ctx;
    list_lock();
    bool first = backend.board_claims++ == 0;
    list_unlock();
    struct attach_reply_board_claim reply;
    int status = first ? (int)attach_request(board_claim, &reply, 0) : 0;
    if (status != 0) {
        char text[sizeof attach_greeting()->node + 128];
        int length = snprintf(text, sizeof text,
                              "tcasim: the board of %s is in use by process %u; one process at a time has it\n",
                              attach_greeting()->node, reply.owner);
        (void)kernel_call(SYS_write, STDERR_FILENO, (long)(uintptr_t)text, length, 0, 0, 0);
        list_lock();
        backend.board_claims--;
        list_unlock();
    }
    return status;
}

static void board_release(void *ctx)
{
    (void)ctx;
    list_lock();
    bool last = --backend.board_claims == 0;
    list_unlock();
    if (last) {
        (void)attach_request(board_release, NULL, 0);
    }
}

static int memory_check(void *ctx, const void *address, size_t bytes, bool writable)
{
    (void)ctx;
    return (int)attach_request(memory_check, NULL, .address = (uint64_t)(uintptr_t)address, .bytes = bytes,
                               .writable = writable);
}

// --- the HCA --------------------------------------------------------------------------------------------------------

// A region in pinned memory is named by its bus address; the simulator reaches other memory itself.
static int hca_command(void *ctx, struct hca_command *command)
{
    struct attach_reply_hca_command reply;
    struct hca_mr_init *region = command->id == HCA_CMD_MR_REGISTER ? &command->mr_register : NULL;
    (void)ctx;
    if (region != NULL && region->bus_address == 0 &&
        !attach_pinned_find((const void *)(uintptr_t)(region->iova + region->displacement), region->bytes,
                            &region->bus_address)) {
        region->bus_address = 0;
    }
    int status = (int)attach_request(hca_command, &reply, .command = *command);
    if (status == 0) {
        *command = reply.command;
    }
    return status;
}

// --- accesses -------------------------------------------------------------------------------------------------------

static uint64_t bar_bytes(void *ctx, enum backend_bar bar)
{
    (void)ctx;
    return attach_greeting()->bar_bytes[bar];
}

static uint64_t bar_bus_address(void *ctx, enum backend_bar bar)
{
    (void)ctx;
    return attach_greeting()->bar_base[bar];
}

// Cut at line boundaries, where write combining would end as well.
static void write_combined(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    (void)ctx;
    while (bytes != 0) {
        size_t most = STORE_BYTES_MAX - offset % LINE_BYTES, taken = bytes < most ? bytes : most;
        attach_append(
            &(struct attach_entry){
                .kind = ATTACH_ENTRY_COMBINED, .bar = (uint16_t)bar, .bytes = (uint32_t)taken, .offset = offset},
            from);
        offset += taken;
        from += taken;
        bytes -= taken;
    }
}

static void fence(void *ctx)
{
    (void)ctx;
    attach_append(&(struct attach_entry){.kind = ATTACH_ENTRY_FENCE}, NULL);
}

static void write_uncached(void *ctx, enum backend_bar bar, uint64_t offset, uint64_t value, unsigned bytes)
{
    (void)ctx;
    attach_append(
        &(struct attach_entry){
            .kind = ATTACH_ENTRY_WRITE, .bar = (uint16_t)bar, .bytes = bytes, .offset = offset, .value = value},
        NULL);
}

static int read_uncached(void *ctx, enum backend_bar bar, uint64_t offset, unsigned bytes, uint64_t *value_out)
{
    (void)ctx;
    struct attach_reply_read reply;
    int status = (int)attach_request(read, &reply, .bar = bar, .offset = offset, .bytes = bytes);
    *value_out = status == 0 ? reply.value : UINT64_MAX;
    return status;
}

static int read_combined(void *ctx, enum backend_bar bar, uint64_t offset, void *data, size_t bytes)
{
    (void)ctx;
    bool small = bytes <= ATTACH_DATA_BYTES;
    int status = (int)attach_request(read_combined, NULL, .bar = bar, .offset = offset, .bytes = bytes,
                                     .address = small ? 0 : (uint64_t)(uintptr_t)data);
    if (small) {
        memcpy(data, attach_slot()->data, bytes);
    }
    return status;
}

static bool word_matches(const volatile uint64_t *word, uint64_t mask, uint64_t value)
{
    return (*word & mask) == value;
}

static uint64_t real_ns(void)
{
    struct timespec now;
    (void)kernel_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)(uintptr_t)&now, 0, 0, 0, 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Without simulated time: devices work between the polls.
static int wait_word_really(const volatile uint64_t *word, uint64_t mask, uint64_t value, uint64_t timeout_ns)
{
    uint64_t start_ns = real_ns();
    while (!word_matches(word, mask, value)) {
        if (timeout_ns != 0 && real_ns() - start_ns >= timeout_ns) {
            return -ETIMEDOUT;
        }
        (void)attach_request(nothing, NULL, 0);
        attach_sleep_really(ATTACH_REAL_FUNCTIONAL_WORD_NS);
    }
    return 0;
}

// Interrupted by the process's alarm any number of times.
static int wait_word_timed(uint64_t bus_address, const volatile uint64_t *word, uint64_t mask, uint64_t value,
                           uint64_t timeout_ns)
{
    const struct attach_slot *slot = attach_slot();
    struct attach_reply_wait_word reply;
    int status;
    uint64_t end_ps = 0, left_ns = timeout_ns;
    do {
        status = (int)attach_request(wait_word, &reply, .bus_address = bus_address, .mask = mask, .value = value,
                                     .timeout_ns = left_ns, .address = (uint64_t)(uintptr_t)word);
        end_ps = end_ps != 0 ? end_ps : reply.deadline_ps;
        left_ns = timeout_ns == 0 ? 0 : end_ps > slot->now_ps + PS_PER_NS ? (end_ps - slot->now_ps) / PS_PER_NS : 1;
    } while (status == -EINTR);
    return status;
}

static int wait_word(void *ctx, const volatile uint64_t *word, uint64_t mask, uint64_t value, uint64_t timeout_ns)
{
    uint64_t bus_address;
    (void)ctx;
    if ((uintptr_t)word % sizeof *word != 0) {
        return -EINVAL;
    }
    if (!attach_pinned_find(word, sizeof *word, &bus_address)) {
        bus_address = 0; // perhaps of a registered region
    }
    if (attach_mode() == ATTACH_FUNCTIONAL) {
        return wait_word_really(word, mask, value, timeout_ns);
    }
    if (bus_address != 0 && attach_own.tail_ps <= STALE_MAX_PS && word_matches(word, mask, value)) {
        attach_spend_ps(attach_greeting()->poll_ps); // the first poll finds it
        return 0;
    }
    return wait_word_timed(bus_address, word, mask, value, timeout_ns);
}

bool attach_poll_from(uint64_t site, const volatile void *word, bool repeats, struct attach_caller *caller)
{
    struct loop_poll poll = {.key = site, .own_ps = attach_own.tail_ps};
    if (attach_own.once_more.polls > 0 && !attach_own.in_call) {
        return attach_poll_once_more() == ATTACH_WOKEN_MEMORY;
    }
    if (word == NULL || !attach_pinned_find(word, 1, &poll.bus_address)) {
        poll.bus_address = 0;
    }
    return attach_poll_again(&poll, ATTACH_WAIT_MEMORY, repeats, caller) == ATTACH_WOKEN_MEMORY;
}

// --- time -----------------------------------------------------------------------------------------------------------

static uint64_t time_ps(void *ctx)
{
    (void)ctx;
    if (attach_mode() == ATTACH_FUNCTIONAL) {
        return real_ns() * PS_PER_NS;
    }
    attach_spend_ps(attach_greeting()->timestamp_ps);
    struct attach_slot *slot = attach_slot();
    if (slot != NULL && !attach_own.in_call && attach_own.tail_ps > STALE_MAX_PS) {
        (void)attach_call(slot, ATTACH_OP_NOTHING);
    }
    return attach_now_ps();
}

static uint64_t deadline_ps(void *ctx)
{
    (void)ctx;
    return attach_mode() == ATTACH_FUNCTIONAL ? real_ns() * PS_PER_NS : attach_now_ps();
}

static void cost(void *ctx, enum backend_cost kind, uint64_t amount)
{
    const struct attach_greeting *greeting = attach_greeting();
    (void)ctx;
    switch (kind) {
    case BACKEND_COST_CALL:
        attach_spend_ps(amount * greeting->call_ps);
        break;
    case BACKEND_COST_LOAD_STORE:
        attach_spend_ps(amount * greeting->load_ps);
        break;
    case BACKEND_COST_DEVICE_LINE:
        attach_spend_ps(amount * greeting->device_line_ps);
        break;
    case BACKEND_COST_LOCK:
        attach_spend_ps(amount * greeting->lock_ps);
        break;
    case BACKEND_COST_COPY:
        attach_spend_ps(amount * PS_PER_US / greeting->copy_bytes_per_us);
        break;
    case BACKEND_COST_INTERRUPT:
        attach_spend_ps(amount * greeting->interrupt_ps);
        break;
    case BACKEND_COST_TIME:
        attach_spend_ps(amount * PS_PER_NS);
        break;
    }
}

// --- the process ----------------------------------------------------------------------------------------------------

static const struct backend_ops process_ops = {
    .thread = &attach_thread_ops,
    .gpu = &attach_gpu_ops,
    .hca_command = hca_command,
    .journal = &attach_journal_ops,
    .board_claim = board_claim,
    .board_release = board_release,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .ignore_writes = ignore_writes,
    .event_writes = event_writes,
    .event_writes_seen = attach_progress_seen,
    .memory_check = memory_check,
    .bar_bytes = bar_bytes,
    .bar_bus_address = bar_bus_address,
    .write_combined = write_combined,
    .fence = fence,
    .write = write_uncached,
    .read = read_uncached,
    .read_combined = read_combined,
    .wait_word = wait_word,
    .time_ps = time_ps,
    .deadline_ps = deadline_ps,
    .cost = cost,
};

static void process_make(const struct attach_greeting *greeting)
{
    backend.ops = process_ops;
    backend.ops.hca_command = greeting->has_hca ? hca_command : NULL;
    backend.ops.polled = greeting->journal_polls ? attach_journal_polled : NULL;
    backend.ops.left = greeting->journal_polls ? attach_journal_left : NULL;
    backend.process = (struct backend_process){.backend = {&backend.ops, NULL}, .number = greeting->process};
    if (greeting->has_board) {
        (void)peach2_open_booted(&backend.process.backend, &greeting->routing, &backend.process.board);
    }
}

API struct backend_process *backend_current(void)
{
    const struct attach_greeting *greeting = attach_greeting();
    if (greeting == NULL) {
        return NULL;
    }
    uint32_t state = atomic_load_explicit(&backend.state, memory_order_acquire);
    if (state == 0 && atomic_compare_exchange_strong(&backend.state, &state, 1)) {
        process_make(greeting);
        atomic_store_explicit(&backend.state, 2, memory_order_release);
    }
    while (atomic_load_explicit(&backend.state, memory_order_acquire) != 2) {
        attach_sleep_really(ATTACH_REAL_MAKING_NS);
    }
    return &backend.process;
}

// What libraries keep for the process belongs to the parent and is not freed here.
void attach_backend_forked(void)
{
    while (backend.pinned != NULL) {
        struct pinned *pinned = backend.pinned;
        backend.pinned = pinned->next;
        free(pinned);
    }
    backend.board_claims = 0;
    atomic_flag_clear(&backend.busy);
    atomic_store(&backend.state, 0);
    attach_gpu_forked();
    attach_journal_forked();
    attach_threads_forked();
}
