// Loops over shared memory that do more than read it (spin.c finds those that only read): progress engines that call
// functions and count their iterations, without any attach call (MPICH over shared memory only).
//
// A thread that has used processor time without an attach call runs on with shared memory inaccessible. Each access
// faults, is noted with all registers and made by a single step, and then its page is closed again. A loop over private
// memory changes some register from one access to the next. If the same instruction accesses the same word with the
// same registers again and again, the thread waits for the word to change. It sleeps until another process has changed
// one of the pages that it reads, or a device has written. Then its next accesses are followed, because it mostly
// returns to the same loop: some repetitions are then enough.
//
// Leaves out: loops that count in a register (they are never found, and the run's wall limit names them). A loop that
// keeps all its state in memory, and computes for long with one shared word, is taken for a wait.
#include <string.h>
#include <ucontext.h>

#include "verbs-shim/world/world.h"

enum {
    SITES = 16,
    REPEATS = 32,
    REPEATS_KNOWN = 3,
    ACCESSES_MAX = 1024,
    BACKOFF_MAX = 63,
    FOLLOWED_MAX = 256,      // accesses outside of the loop
    REGISTERS = REG_RIP + 1, // without the flags
    TRAP_FLAG = 0x100
};

// An access that may belong to a loop.
struct site {
    greg_t registers[REGISTERS];
    bool used, known; // known: of a loop that was a wait
    unsigned count;   // repetitions without any other access in between
};

static __thread struct {
    bool on;
    bool stepping; // over the access
    struct site sites[SITES];
    unsigned next;
    unsigned accesses; // accesses that are still to be checked
    unsigned looked;   // the same at the last look
    unsigned calls;
    unsigned backoff, skip; // backoff: checks without a window; skip: how many are left
} spin;

static bool begin(unsigned accesses)
{
    for (unsigned i = 0; i < SITES; i++) {
        spin.sites[i].count = 0;
    }
    spin.accesses = spin.looked = accesses;
    spin.on = attach_window_open();
    world_spin_check_later(); // whatever the result is
    spin.calls = attach_calls();
    return spin.on;
}

bool world_spin_shared_begin(void)
{
    if (spin.skip > 0) {
        spin.skip--;
        return false;
    }
    return begin(ACCESSES_MAX);
}

void world_spin_shared_end(void)
{
    // A thread that accesses no shared memory computes: it is checked more and more rarely (exponential backoff).
    bool idle = spin.on && spin.accesses == ACCESSES_MAX;
    spin.backoff = !idle ? 0 : spin.backoff < BACKOFF_MAX ? 2 * spin.backoff + 1 : spin.backoff;
    spin.skip = spin.on ? spin.backoff : spin.skip;
    spin.on = spin.stepping = false;
    attach_window_close();
}

// The entry of the access, or else the oldest one, which is replaced; then all counts begin again.
static struct site *site_take(const greg_t *registers)
{
    for (unsigned i = 0; i < SITES; i++) {
        struct site *site = &spin.sites[i];
        if (site->used && memcmp(site->registers, registers, sizeof site->registers) == 0) {
            return site;
        }
    }
    for (unsigned i = 0; i < SITES; i++) {
        spin.sites[i].count = 0;
    }
    world_shared_pages_restart();
    struct site *site = &spin.sites[spin.next++ % SITES];
    *site = (struct site){.used = true};
    memcpy(site->registers, registers, sizeof site->registers);
    return site;
}

// A repeated string instruction: each step of it is an iteration. It moves data, and polls nothing.
static bool moves_data(const unsigned char *code)
{
    bool repeats = false;
    for (; *code == 0xf2 || *code == 0xf3 || *code == 0x66 || (*code & 0xf0) == 0x40; code++) {
        repeats = repeats || *code == 0xf2 || *code == 0xf3;
    }
    return repeats && ((*code >= 0xa4 && *code <= 0xa7) || (*code >= 0xaa && *code <= 0xaf));
}

// On a slow machine the accesses of a check take longer than the time between two checks. Another check would begin with
// all accesses, again and again, and the thread would never run without being followed.
bool world_spin_shared_follows(void)
{
    bool follows = spin.on && spin.calls == attach_calls() && spin.accesses != spin.looked;
    spin.looked = spin.accesses;
    return follows;
}

bool world_spin_shared_access(greg_t *registers, const uint64_t *pages, unsigned page_count)
{
    if (!spin.on || spin.calls != attach_calls()) {
        spin.on = false;
        return false;
    }
    if (moves_data((const unsigned char *)registers[REG_RIP])) { // NOLINT(performance-no-int-to-ptr)
        return false;
    }
    struct site *site = site_take(registers);
    site->count++;
    if (site->count <= (site->known ? REPEATS_KNOWN : REPEATS)) {
        spin.accesses -= !site->known;
        spin.on = spin.accesses > 0;
        spin.stepping = spin.on;
        registers[REG_EFL] |= spin.on ? TRAP_FLAG : 0;
        if (!spin.on) {
            attach_window_close();
            world_spin_check_later(); // from here on it runs as fast as it can
        }
        return spin.on;
    }
    for (unsigned i = 0; i < SITES; i++) {
        spin.sites[i].known = spin.sites[i].count > 1;
    }
    if (attach_poll_pages(pages, page_count) != ATTACH_WOKEN_DEADLINE) {
        attach_progress();
    }
    (void)begin(FOLLOWED_MAX);
    return false;
}

bool world_spin_shared_stepped(greg_t *registers)
{
    if (!spin.stepping) {
        return false;
    }
    spin.stepping = false;
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    world_shared_page_close();
    return true;
}
