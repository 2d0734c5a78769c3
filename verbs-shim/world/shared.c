// Memory that processes share: whether the process has some, and at which of its pages a thread faults while a window
// is open (verbs-shim/attach/window.c). No event shows that another process writes there; the simulator compares the
// pages that a polling thread reads.
//
// In a window all of this memory is inaccessible; the first access to a page makes that page accessible again. A window
// ends at the next attach call, and before the calls of calls.def, reads and writes of files, and forks. Leaves out:
// other system calls that get shared memory within a window (they fail with EFAULT). A window is opened for one
// iteration of a loop of polls before the loop is fast-forwarded, and after 100 us of computing without an attach call.
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "verbs-shim/world/mappings.h"
#include "verbs-shim/world/world.h"

enum { PAGES_MAX = 32, PAGE_BYTES = 4096 };

static struct {
    struct world_mappings mapped; // at the time when the window was opened
    bool open, busy;
    bool looked, some; // `mapped` is of world_shared_has; some: too many to know which
    bool overflown; // there were more pages
    uint64_t pages[PAGES_MAX];
    unsigned page_count;
    uintptr_t stepped; // the page of an access that is made by a single step
} shared;

// --- the window -----------------------------------------------------------------------------------------------------

static void accessible_again(void)
{
    world_mappings_rights_restore(&shared.mapped);
    shared.open = false;
}

static bool any(void)
{
    shared.busy = true;
    bool is = !shared.open && world_mappings_find(&shared.mapped) && shared.mapped.writable;
    shared.busy = false;
    return is;
}

static bool is_mapped(uint64_t address)
{
    bool is = false;
    for (unsigned i = 0; i < shared.mapped.count; i++) {
        is = is || (address >= shared.mapped.list[i].begin && address < shared.mapped.list[i].end);
    }
    return is;
}

static bool has(uint64_t address)
{
    shared.busy = true;
    bool is = !shared.open && world_mappings_find(&shared.mapped) && is_mapped(address);
    shared.busy = false;
    return is;
}

// In a look ahead, in which no window opens. Programs share memory by functions that are seen (`note`), or rarely by a system
// call of their own.
bool world_shared_has(uint64_t address)
{
    enum { ANEW = 1 << 16 };
    static unsigned questions;
    if (!shared.looked || ++questions % ANEW == 0) {
        shared.some = !world_mappings_find(&shared.mapped) && shared.mapped.count != 0;
        shared.looked = true;
    }
    return shared.some || is_mapped(address);
}

bool world_shared_busy(void)
{
    return shared.busy;
}

static bool window_open(void)
{
    shared.busy = true;
    bool possible = !shared.open && world_mappings_find(&shared.mapped);
    if (possible) {
        shared.open = true;
        shared.overflown = false;
        shared.page_count = 0;
        for (unsigned i = 0; i < shared.mapped.count && possible; i++) {
            possible = world_mapping_rights_set(&shared.mapped.list[i], PROT_NONE);
        }
        if (!possible) {
            accessible_again();
        }
    }
    shared.busy = false;
    return possible;
}

static unsigned window_close(uint64_t *pages_out, unsigned most)
{
    unsigned count = shared.page_count < most ? shared.page_count : most;
    shared.busy = true;
    if (shared.open) {
        accessible_again();
    }
    shared.busy = false;
    memcpy(pages_out, shared.pages, count * sizeof *pages_out);
    return shared.overflown ? most + 1 : shared.page_count;
}

void world_shared_pages_restart(void)
{
    shared.page_count = 0;
}

static bool page_note(uintptr_t page)
{
    for (unsigned i = 0; i < shared.page_count; i++) {
        if (shared.pages[i] == page) {
            return true;
        }
    }
    bool room = shared.page_count < PAGES_MAX;
    if (room) {
        shared.pages[shared.page_count++] = page;
    }
    return room;
}

bool world_shared_fault(uintptr_t address, greg_t *registers)
{
    unsigned i = 0;
    const struct world_mapping *list = shared.mapped.list;
    while (i < shared.mapped.count && (address < list[i].begin || address >= list[i].end)) {
        i++;
    }
    if (!shared.open || i == shared.mapped.count) {
        return false;
    }
    uintptr_t page = address & ~(uintptr_t)(PAGE_BYTES - 1);
    const struct world_mapping one = {.begin = page, .end = page + PAGE_BYTES};
    if (!page_note(page) || !world_mapping_rights_set(&one, list[i].protection)) {
        shared.overflown = true; // too many, or pages of another size
        accessible_again();
    } else if (world_spin_shared_access(registers, shared.pages, shared.page_count)) {
        shared.stepped = page;
    }
    return true;
}

void world_shared_page_close(void)
{
    const struct world_mapping one = {.begin = shared.stepped, .end = shared.stepped + PAGE_BYTES};
    if (shared.open) {
        (void)world_mapping_rights_set(&one, PROT_NONE);
    }
}

// --- whether there is shared memory ---------------------------------------------------------------------------------

void world_shared_start(void)
{
    static const struct attach_window window = {any, window_open, window_close, has};
    attach_window_by(&window);
}

static void note(const void *address, int flags)
{
    if (address != MAP_FAILED && (flags & MAP_TYPE) != MAP_PRIVATE) {
        shared.looked = false;
        attach_shares();
    }
}

void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    void *at = WORLD_REAL(mmap)(address, bytes, protection, flags, fd, offset);
    note(at, flags);
    return at;
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int fd, off64_t offset)
{
    void *at = WORLD_REAL(mmap64)(address, bytes, protection, flags, fd, offset);
    note(at, flags);
    return at;
}

// Protection that the program sets must not be undone.
int mprotect(void *address, size_t bytes, int protection)
{
    attach_window_close();
    return WORLD_REAL(mprotect)(address, bytes, protection);
}

void *shmat(int id, const void *address, int flags)
{
    void *at = WORLD_REAL(shmat)(id, address, flags);
    note(at, MAP_SHARED);
    return at;
}
