// Counts accesses of a program to a few bytes with the processor: perf_event_open(2), data breakpoints.
//
// A watch has one breakpoint at the beginning of the memory and one at its end, each for up to 8 aligned bytes; a
// processor has four. Accesses of the kernel do not count, nor do those of libraries (attach_library_enter): the
// breakpoints are disabled meanwhile. If the machine allows no breakpoints (containers), this is reported once.
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/attach/watchpoints.h"

enum { WATCHES = 128, WATCHES_OF_THREAD = 2, ENDS = 2, RING_BYTES = 2 * 4096, PAGE_BYTES = 4096 };

struct breakpoint {
    int fd; // 0: none
    struct perf_event_mmap_page *ring;
};

// A watch is set and removed under the library's lock, perhaps by different threads; it counts accesses of its owner.
static struct {
    struct breakpoint ends[ENDS];
    const struct attach_own *owner; // NULL: free
} watches[WATCHES];
static _Atomic unsigned in_use;

// --- one breakpoint -------------------------------------------------------------------------------------------------

static bool breakpoint_set(struct breakpoint *breakpoint, uintptr_t address, unsigned bytes)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT,
                                   .size = sizeof attr,
                                   .bp_type = HW_BREAKPOINT_RW,
                                   .sample_period = 1,
                                   .sample_type = PERF_SAMPLE_IP,
                                   .disabled = 1, // enabled when the thread leaves the library
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    attr.bp_addr = address;
    attr.bp_len = bytes;
    long fd = kernel_call(SYS_perf_event_open, (long)(uintptr_t)&attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    fd = descriptor_hide((int)fd);
    long ring = kernel_call(SYS_mmap, 0, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    breakpoint->fd = (int)fd;
    breakpoint->ring = ring < 0 && ring > -4096 ? NULL : (struct perf_event_mmap_page *)ring;
    return true;
}

static void breakpoint_clear(struct breakpoint *breakpoint)
{
    if (breakpoint->ring != NULL) {
        (void)kernel_call(SYS_munmap, (long)(uintptr_t)breakpoint->ring, RING_BYTES, 0, 0, 0, 0);
    }
    if (breakpoint->fd != 0) {
        (void)kernel_call(SYS_close, breakpoint->fd, 0, 0, 0, 0, 0);
    }
    *breakpoint = (struct breakpoint){0};
}

// The instruction after the first access.
static uint64_t instruction_of(const struct breakpoint *breakpoint)
{
    struct {
        struct perf_event_header header;
        uint64_t ip;
    } sample;
    if (breakpoint->ring == NULL || breakpoint->ring->data_head < sizeof sample) {
        return 0;
    }
    memcpy(&sample, (const char *)breakpoint->ring + PAGE_BYTES, sizeof sample);
    return sample.header.type == PERF_RECORD_SAMPLE ? sample.ip : 0;
}

static bool was_hit(const struct breakpoint *breakpoint)
{
    uint64_t count = 0;
    return breakpoint->fd != 0 &&
           kernel_call(SYS_read, breakpoint->fd, (long)(uintptr_t)&count, sizeof count, 0, 0, 0) == sizeof count &&
           count != 0;
}

// --- watches --------------------------------------------------------------------------------------------------------

// The largest aligned piece that begins or ends at this address, at most 8 bytes.
static unsigned piece_bytes(uintptr_t address, size_t bytes)
{
    unsigned most = 8;
    while (most > 1 && (most > bytes || address % most != 0)) {
        most /= 2;
    }
    return most;
}

static void refused(void)
{
    static _Atomic bool said;
    if (!said) {
        static const char text[] =
            "tcasim: --check: accesses to receive buffers are not watched here: the machine does "
            "not let this user have breakpoints (perf_event_open)\n";
        said = true;
        (void)kernel_call(SYS_write, STDERR_FILENO, (long)(uintptr_t)text, sizeof text - 1, 0, 0, 0);
    }
}

// Does a breakpoint notice an access? Some hypervisors accept breakpoints and never report one.
static bool breakpoints_work(void)
{
    static _Atomic int known; // 1: they do, -1: they do not
    if (known == 0) {
        volatile uint64_t word = 0;
        struct breakpoint breakpoint = {0};
        bool set = breakpoint_set(&breakpoint, (uintptr_t)&word, sizeof word);
        if (set) {
            (void)kernel_call(SYS_ioctl, breakpoint.fd, PERF_EVENT_IOC_ENABLE, 0, 0, 0, 0);
            word = 1;
            (void)kernel_call(SYS_ioctl, breakpoint.fd, PERF_EVENT_IOC_DISABLE, 0, 0, 0, 0);
        }
        known = set && was_hit(&breakpoint) ? 1 : -1;
        breakpoint_clear(&breakpoint);
    }
    return known > 0;
}

int attach_watch(void *ctx, const void *memory, size_t bytes)
{
    uintptr_t first = (uintptr_t)memory, last = first + bytes - 1;
    (void)ctx;
    int watch = -1;
    unsigned own = 0;
    for (int i = WATCHES; i-- > 0;) {
        own += watches[i].owner == &attach_own;
        watch = watches[i].owner == NULL ? i : watch;
    }
    if (watch < 0 || own >= WATCHES_OF_THREAD || bytes == 0) {
        return -1;
    }
    unsigned first_bytes = piece_bytes(first, bytes);
    unsigned last_bytes = bytes > first_bytes ? piece_bytes(last + 1, bytes - first_bytes) : 0;
    struct breakpoint *ends = watches[watch].ends;
    if (!breakpoints_work() || !breakpoint_set(&ends[0], first, first_bytes)) {
        refused();
        return -1;
    }
    if (last_bytes != 0) {
        (void)breakpoint_set(&ends[1], last + 1 - last_bytes, last_bytes);
    }
    watches[watch].owner = &attach_own;
    in_use++;
    return watch;
}

bool attach_unwatch(void *ctx, int watch, uint64_t *instruction_out)
{
    (void)ctx;
    bool hit = false;
    for (unsigned i = 0; i < ENDS && watch >= 0 && watch < WATCHES; i++) {
        struct breakpoint *end = &watches[watch].ends[i];
        if (was_hit(end)) {
            *instruction_out = hit ? *instruction_out : instruction_of(end);
            hit = true;
        }
        breakpoint_clear(end);
    }
    if (watch >= 0 && watch < WATCHES && watches[watch].owner != NULL) {
        watches[watch].owner = NULL;
        in_use--;
    }
    return hit;
}

// The child has copies of the descriptors, which would switch the parent's breakpoints, but not of the rings.
void attach_watches_forget(void)
{
    for (unsigned i = 0; i < WATCHES; i++) {
        for (unsigned k = 0; k < ENDS; k++) {
            watches[i].ends[k].ring = NULL;
            breakpoint_clear(&watches[i].ends[k]);
        }
        watches[i].owner = NULL;
    }
    in_use = 0;
}

void attach_watches_enable(bool on)
{
    long what = on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
    for (unsigned i = 0; i < WATCHES && in_use > 0; i++) {
        for (unsigned k = 0; k < ENDS && watches[i].owner == &attach_own; k++) {
            if (watches[i].ends[k].fd != 0) {
                (void)kernel_call(SYS_ioctl, watches[i].ends[k].fd, what, 0, 0, 0, 0);
            }
        }
    }
}
