// Memory that processes share: whether the process has some, and at which of its pages a thread faults while a window
// is open (verbs-shim/attach/window.c). No event shows that another process writes there; the simulator compares the
// pages that a polling thread reads.
//
// In a window all of this memory is inaccessible; the first access to a page makes that page accessible again. A window
// ends at the next attach call, and before the calls of calls.def, reads and writes of files, and forks. Leaves out:
// other system calls that get shared memory within a window (they fail with EFAULT). A window is opened for one
// iteration of a loop of polls before the loop is fast-forwarded, and after 100 us of computing without an attach call.
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

enum { MAPPINGS_MAX = 128, PAGES_MAX = 32, PAGE_BYTES = 4096, MAPS_BYTES = 16384, PIECES_MAX = 4096 };
#define MAPPED_BYTES_MAX (UINT64_C(1) << 30) // changing the protection of more takes too long

struct mapping {
    uintptr_t begin, end;
    int protection;
};

static struct {
    struct mapping mappings[MAPPINGS_MAX]; // at the time when the window was opened
    unsigned count, pieces;
    bool writable;
    uint64_t bytes;
    bool open, busy;
    bool overflown; // there were more pages
    uint64_t pages[PAGES_MAX];
    unsigned page_count;
    uintptr_t stepped; // the page of an access that is made by a single step
} shared;

// --- what is mapped -------------------------------------------------------------------------------------------------

static uintptr_t hexadecimal(const char **at)
{
    uintptr_t value = 0;
    for (;; ++*at) {
        char digit = **at;
        if (digit >= '0' && digit <= '9') {
            value = value * 16 + (uintptr_t)(digit - '0');
        } else if (digit >= 'a' && digit <= 'f') {
            value = value * 16 + (uintptr_t)(digit - 'a' + 10);
        } else {
            return value;
        }
    }
}

// A line of /proc/self/maps: proc(5). Skips the simulator's own and pinned memory, which the simulator writes itself.
// Pieces into which a window has cut a mapping are joined again; the kernel does not join pieces of System V segments.
static void line_take(const char *line)
{
    struct mapping mapping = {.begin = hexadecimal(&line)};
    line++;
    mapping.end = hexadecimal(&line);
    bool own = strstr(line, "memfd:tcasim") != NULL || strstr(line, "[perf_event]") != NULL; // breakpoints of --check
    if (line[0] != ' ' || line[4] != 's' || line[1] != 'r' || own) {
        return;
    }
    mapping.protection = PROT_READ | (line[2] == 'w' ? PROT_WRITE : 0) | (line[3] == 'x' ? PROT_EXEC : 0);
    struct mapping *last = shared.count > 0 ? &shared.mappings[shared.count - 1] : NULL;
    shared.writable = shared.writable || line[2] == 'w';
    shared.bytes += mapping.end - mapping.begin;
    shared.pieces++;
    if (last != NULL && last->end == mapping.begin && last->protection == mapping.protection) {
        last->end = mapping.end;
    } else if (shared.count < MAPPINGS_MAX) {
        shared.mappings[shared.count++] = mapping;
    } else {
        shared.pieces = PIECES_MAX;
    }
}

// Passes each line to the function. If spin.c interrupted this (world_shared_busy), its own check would start it again.
static bool lines_read(void (*take)(const char *line))
{
    static char text[MAPS_BYTES + 1];
    size_t kept = 0;
    long fd = kernel_call(SYS_open, (long)(uintptr_t) "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0, 0), got;
    if (fd < 0) {
        return false;
    }
    while ((got = kernel_call(SYS_read, fd, (long)(uintptr_t)(text + kept), (long)(MAPS_BYTES - kept), 0, 0, 0)) > 0) {
        char *line = text, *end;
        text[kept + (size_t)got] = '\0';
        while ((end = strchr(line, '\n')) != NULL) {
            *end = '\0';
            take(line);
            line = end + 1;
        }
        kept = strlen(line);
        memmove(text, line, kept);
    }
    (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return true;
}

static bool rights_set(const struct mapping *mapping, int protection)
{
    return kernel_call(SYS_mprotect, (long)mapping->begin, (long)(mapping->end - mapping->begin), protection, 0, 0,
                       0) == 0;
}

static void line_give_back(const char *line)
{
    struct mapping piece = {.begin = hexadecimal(&line)};
    line++;
    piece.end = hexadecimal(&line);
    for (unsigned i = 0; i < shared.count && strncmp(line, " ---s", 5) == 0; i++) {
        const struct mapping *mapping = &shared.mappings[i];
        if (piece.begin >= mapping->begin && piece.end <= mapping->end) {
            (void)rights_set(&piece, mapping->protection);
        }
    }
}

// Read each time, because some libraries map memory without the C library (UCX).
static bool mappings_find(void)
{
    shared.count = shared.pieces = 0;
    shared.writable = false;
    shared.bytes = 0;
    return lines_read(line_take) && shared.count > 0 && shared.pieces < PIECES_MAX && shared.bytes <= MAPPED_BYTES_MAX;
}

// --- the window -----------------------------------------------------------------------------------------------------

static void accessible_again(void)
{
    bool all = true;
    for (unsigned i = 0; i < shared.count; i++) {
        all = rights_set(&shared.mappings[i], shared.mappings[i].protection) && all;
    }
    if (!all) { // a part was unmapped meanwhile: piece by piece
        (void)lines_read(line_give_back);
    }
    shared.open = false;
}

static bool any(void)
{
    shared.busy = true;
    bool is = !shared.open && mappings_find() && shared.writable;
    shared.busy = false;
    return is;
}

static bool has(uint64_t address)
{
    bool is = false;
    shared.busy = true;
    if (!shared.open && mappings_find()) {
        for (unsigned i = 0; i < shared.count; i++) {
            is = is || (address >= shared.mappings[i].begin && address < shared.mappings[i].end);
        }
    }
    shared.busy = false;
    return is;
}

bool world_shared_busy(void)
{
    return shared.busy;
}

static bool window_open(void)
{
    shared.busy = true;
    bool possible = !shared.open && mappings_find();
    if (possible) {
        shared.open = true;
        shared.overflown = false;
        shared.page_count = 0;
        for (unsigned i = 0; i < shared.count && possible; i++) {
            possible = rights_set(&shared.mappings[i], PROT_NONE);
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
    while (i < shared.count && (address < shared.mappings[i].begin || address >= shared.mappings[i].end)) {
        i++;
    }
    if (!shared.open || i == shared.count) {
        return false;
    }
    uintptr_t page = address & ~(uintptr_t)(PAGE_BYTES - 1);
    const struct mapping one = {.begin = page, .end = page + PAGE_BYTES};
    if (!page_note(page) || !rights_set(&one, shared.mappings[i].protection)) {
        shared.overflown = true; // too many, or pages of another size
        accessible_again();
    } else if (world_spin_shared_access(registers, shared.pages, shared.page_count)) {
        shared.stepped = page;
    }
    return true;
}

void world_shared_page_close(void)
{
    const struct mapping one = {.begin = shared.stepped, .end = shared.stepped + PAGE_BYTES};
    if (shared.open) {
        (void)rights_set(&one, PROT_NONE);
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
