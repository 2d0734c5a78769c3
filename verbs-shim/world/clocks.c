// Clocks show simulated time. The functions of the vdso are overwritten, which also covers calls from within the C
// library. Processor time is simulated time since the process began: a simulated thread is always on its core.
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <unistd.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/calls.h"
#include "verbs-shim/world/clock_calls.h"
#include "verbs-shim/world/code_jump.h"
#include "verbs-shim/world/world.h"

#define NS_PER_S 1000000000ull

static uint64_t process_began_ps;

// --- reading --------------------------------------------------------------------------------------------------------

// In a run of nothing but clock readings the thread waits for a time, or for somebody's store. The later ones are polls of which
// is told what the program does next (attach_poll_clock). Of readings of the time stamp counter by an instruction that is
// not told: such a run (perftest calibrates for 219 ms) is fast-forwarded in steps that grow with the
// time that it has waited already, so that it is late by less than 1 %. A step comes before the read that began the run. The
// later reads of an iteration (fio compares two clocks) then differ only by their costs, as always.
enum { RUN_READS = 256, RUN_SHARE = 128, OTHERS_READS_MAX = 64, OTHERS_EVERY_US = 16 };

// Lets other threads run from time to time, and does the library's progress for them. Returns the time after that.
static uint64_t step(uint64_t now_ps, uint64_t step_ps)
{
    static __thread uint64_t others_ps;
    if (now_ps + step_ps - others_ps < OTHERS_EVERY_US * WORLD_PS_PER_US) {
        attach_spend_ps(step_ps);
        return now_ps + step_ps;
    }
    others_ps = now_ps + step_ps;
    (void)attach_wait(ATTACH_WAIT_OTHERS | ATTACH_WAIT_EVENTS, now_ps + step_ps);
    attach_progress();
    return attach_now_ps();
}

// Readings one after another, without anything that takes time or makes an attach call between them.
static __thread struct {
    uint64_t last_ps, began_ps; // when the last reading ended, and the first one began
    uintptr_t first_site;
    unsigned reads, since_first, calls;
} run;

// Another site is that of a later loop, or the same one after tsc_jump.c moved it.
static void run_note(uintptr_t site, uint64_t now_ps)
{
    bool continues = now_ps == run.last_ps && attach_calls() == run.calls;
    bool resumed = now_ps != 0 && now_ps == attach_resumed_ps(); // at a later reading, which was a poll
    if (resumed) {
        run.reads = run.reads > WORLD_CLOCK_READS + 1 ? run.reads : WORLD_CLOCK_READS + 2;
    } else if (!continues) {
        run.reads = 0;
        run.began_ps = now_ps;
        run.since_first = OTHERS_READS_MAX;
    }
    if (++run.since_first > OTHERS_READS_MAX) {
        run.first_site = site;
    }
    run.since_first = site == run.first_site ? 0 : run.since_first;
    run.reads++;
}

// A reading that is no poll. Returns the time after it.
static uint64_t read_once(uintptr_t site, uint64_t now_ps)
{
    const struct attach_environment *environment = attach_environment();
    uint64_t cost_ps = environment->clock_read_ps;
    bool waits = run.reads > RUN_READS && site == run.first_site && !environment->every_poll;
    uint64_t step_ps = waits ? (now_ps - run.began_ps) / RUN_SHARE : 0;
    if (environment->computes && now_ps != run.last_ps) { // not in a run; others are scheduled nevertheless
        return step(now_ps, cost_ps);
    }
    if (step_ps > cost_ps) {
        attach_late(step_ps);
        return step(now_ps, step_ps);
    }
    attach_spend_ps(cost_ps);
    return now_ps + cost_ps;
}

uint64_t world_clock_read_ps(uintptr_t site, const struct attach_clock *clock, struct attach_caller *caller)
{
    static const struct attach_clock unknown;
    uint64_t now_ps = attach_now_ps(), cost_ps = attach_environment()->clock_read_ps;
    run_note(site, now_ps);
    if (run.reads == WORLD_CLOCK_READS + 2 && attach_progress_on_writes()) {
        attach_progress(); // what came before the first poll
        now_ps = attach_now_ps();
    }
    if (run.reads <= WORLD_CLOCK_READS + 1 ||
        !attach_poll_clock(site, cost_ps, clock != NULL ? clock : &unknown, caller, &run.last_ps)) {
        run.last_ps = read_once(site, now_ps);
    } else { // a poll: of those before it nothing is to be learned
        run.reads = WORLD_CLOCK_READS + 2;
        run.began_ps = run.last_ps;
    }
    run.calls = attach_calls();
    return run.last_ps;
}

static uint64_t epoch_ns(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return attach_environment()->epoch_realtime_ns;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        return attach_environment()->epoch_monotonic_ns;
    default:
        return 0; // of the process or a thread
    }
}

static bool is_cpu_clock(clockid_t clock)
{
    return clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
}

struct timespec world_clock_at(clockid_t clock, uint64_t now_ps)
{
    uint64_t since_ps = is_cpu_clock(clock) ? now_ps - process_began_ps : now_ps;
    uint64_t ns = epoch_ns(clock) + since_ps / WORLD_PS_PER_NS;
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

// More than about 200 days count as never.
static uint64_t ps_of(uint64_t ns)
{
    return ns > UINT64_MAX / WORLD_PS_PER_NS ? ATTACH_NEVER_PS : ns * WORLD_PS_PER_NS;
}

uint64_t world_clock_deadline(clockid_t clock, const struct timespec *when)
{
    if (when == NULL) {
        return ATTACH_NEVER_PS;
    }
    uint64_t epoch = epoch_ns(clock);
    if (when->tv_sec < 0) {
        return 0;
    }
    if ((uint64_t)when->tv_sec > UINT64_MAX / NS_PER_S - 1) {
        return ATTACH_NEVER_PS;
    }
    uint64_t ns = (uint64_t)when->tv_sec * NS_PER_S + (uint64_t)when->tv_nsec;
    return ns <= epoch ? 0 : ps_of(ns - epoch);
}

bool world_time_valid(const struct timespec *time)
{
    return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)WORLD_NS_PER_S;
}

uint64_t world_deadline_after(const struct timespec *delay)
{
    if (delay == NULL || (uint64_t)delay->tv_sec > UINT64_MAX / NS_PER_S - 1) {
        return ATTACH_NEVER_PS;
    }
    uint64_t delay_ps = ps_of((uint64_t)delay->tv_sec * NS_PER_S + (uint64_t)delay->tv_nsec);
    uint64_t now_ps = attach_now_ps();
    return delay_ps >= ATTACH_NEVER_PS - now_ps ? ATTACH_NEVER_PS : now_ps + delay_ps;
}

uint64_t world_deadline_after_ms(int milliseconds)
{
    if (milliseconds < 0) {
        return ATTACH_NEVER_PS;
    }
    const struct timespec delay = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
    return world_deadline_after(&delay);
}

// The C library asks the kernel itself for these.
clock_t clock(void)
{
    const struct timespec now =
        world_timed() ? world_clock_at(CLOCK_PROCESS_CPUTIME_ID, world_clock_read_ps(WORLD_SITE, NULL, NULL))
                      : (struct timespec){0};
    return world_timed() ? now.tv_sec * CLOCKS_PER_SEC + now.tv_nsec / (1000000000 / CLOCKS_PER_SEC)
                         : WORLD_REAL(clock)();
}

static clock_t times_simulated(struct tms *buffer, uintptr_t site)
{
    uint64_t per_tick_ps = NS_PER_S * WORLD_PS_PER_NS / (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t now_ps = world_clock_read_ps(site, NULL, NULL);
    if (buffer != NULL) {
        *buffer = (struct tms){.tms_utime = (clock_t)((now_ps - process_began_ps) / per_tick_ps)};
    }
    return (clock_t)((attach_environment()->epoch_monotonic_ns * WORLD_PS_PER_NS + now_ps) / per_tick_ps);
}

clock_t times(struct tms *buffer)
{
    return world_timed() ? times_simulated(buffer, WORLD_SITE) : WORLD_REAL(times)(buffer);
}

static long getrusage_simulated(int who, struct rusage *usage, uintptr_t site)
{
    long status = kernel_call(SYS_getrusage, who, (long)(uintptr_t)usage, 0, 0, 0, 0);
    if (status == 0) {
        clockid_t clock = who == RUSAGE_THREAD ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
        const struct timespec now = world_clock_at(clock, world_clock_read_ps(site, NULL, NULL));
        usage->ru_utime = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
        usage->ru_stime = (struct timeval){0};
        usage->ru_nvcsw = usage->ru_nivcsw = 0; // counts of the machine, which differ in each run
        usage->ru_minflt = usage->ru_majflt = 0;
    }
    return status;
}

int getrusage(__rusage_who_t who, struct rusage *usage)
{
    return world_timed() ? (int)world_result(getrusage_simulated((int)who, usage, WORLD_SITE))
                         : WORLD_REAL(getrusage)(who, usage);
}

// --- by system call number ------------------------------------------------------------------------------------------

#define A(i) ((void *)a[i]) // NOLINT(performance-no-int-to-ptr)

long world_call_times(const long *a)
{
    return times_simulated(A(0), (uintptr_t)a[WORLD_CALLER]);
}

long world_call_getrusage(const long *a)
{
    return getrusage_simulated((int)a[0], A(1), (uintptr_t)a[WORLD_CALLER]);
}

// --- overwriting ----------------------------------------------------------------------------------------------------

static const struct {
    const char *name;
    void (*target)(void);
} replaced[] = {
    {"__vdso_clock_gettime", world_vdso_clock_gettime},
    {"__vdso_gettimeofday", world_vdso_gettimeofday},
    {"__vdso_time", world_vdso_time},
};

static void symbols_replace(uintptr_t base, const ElfW(Sym) * symbols, const char *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < sizeof replaced / sizeof replaced[0]; j++) {
            if (strcmp(names + symbols[i].st_name, replaced[j].name) == 0 &&
                symbols[i].st_size >= WORLD_CODE_JUMP_BYTES) {
                world_code_jump((void *)(base + symbols[i].st_value), replaced[j].target);
            }
        }
    }
}

// The classic hash table has as many chains as there are symbols.
static void vdso_patch(uintptr_t base)
{
    const ElfW(Ehdr) *header = (const void *)base;
    const ElfW(Phdr) *segments = (const void *)(base + header->e_phoff);
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const uint32_t *hash = NULL;
    size_t bytes = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD) {
            bytes = segments[i].p_vaddr + segments[i].p_memsz;
        }
        const ElfW(Dyn) *entry = (const void *)(base + segments[i].p_offset);
        for (; segments[i].p_type == PT_DYNAMIC && entry->d_tag != DT_NULL; entry++) {
            symbols = entry->d_tag == DT_SYMTAB ? (const void *)(base + entry->d_un.d_ptr) : symbols;
            names = entry->d_tag == DT_STRTAB ? (const void *)(base + entry->d_un.d_ptr) : names;
            hash = entry->d_tag == DT_HASH ? (const void *)(base + entry->d_un.d_ptr) : hash;
        }
    }
    if (symbols == NULL || names == NULL || hash == NULL ||
        mprotect((void *)base, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        return;
    }
    symbols_replace(base, symbols, names, hash[1]);
    (void)mprotect((void *)base, bytes, PROT_READ | PROT_EXEC);
}

void world_clocks_forked(void)
{
    process_began_ps = attach_now_ps();
}

void world_clocks_start(void)
{
    process_began_ps = attach_now_ps();
    uintptr_t base = getauxval(AT_SYSINFO_EHDR);
    if (base != 0) {
        vdso_patch(base);
    }
}
