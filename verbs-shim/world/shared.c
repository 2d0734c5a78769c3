// Memory that processes share: that the process has some, and at which pages of it a thread faults while a window is
// open (verbs-shim/attach/window.c). Nothing tells when another process writes there; the simulator compares the pages
// that a polling thread reads.
//
// In a window all of this memory is inaccessible; the first access to a page makes that page accessible again. A window
// is over at the next crossing, and before any call that this library carries out itself. Leaves out: calls of the
// kernel that are none of calls.h and are given shared memory within a window (they fail with EFAULT).
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

enum { MAPPINGS_MAX = 128, PAGES_MAX = 32, PAGE_BYTES = 4096, MAPS_BYTES = 16384, SIZE_BYTES = 24, PIECES_MAX = 4096 };
#define MAPPED_BYTES_MAX (UINT64_C(1) << 30) // changing the rights of more takes too long

struct mapping {
    uintptr_t begin, end;
    int protection;
};

static struct {
    struct mapping mappings[MAPPINGS_MAX]; // when the window was opened
    unsigned count, pieces;
    bool writable;
    uint64_t bytes;
    bool known;            // the mappings are
    char size[SIZE_BYTES]; // of all the process's memory then
    bool open;
    uint64_t pages[PAGES_MAX];
    unsigned page_count;
    uintptr_t stepped; // the page of an access that is made by a step
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

// A line of /proc/self/maps: proc(5). The simulator writes to its own and to pinned memory itself. What a window has
// cut into pieces is one again; the kernel does not join pieces of System V segments.
static void line_take(const char *line)
{
    struct mapping mapping = {.begin = hexadecimal(&line)};
    line++;
    mapping.end = hexadecimal(&line);
    if (line[0] != ' ' || line[4] != 's' || line[1] != 'r' || strstr(line, "memfd:tcasim") != NULL) {
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

static bool mappings_read(void)
{
    static char text[MAPS_BYTES + 1];
    size_t kept = 0;
    long fd = kernel_call(SYS_open, (long)(uintptr_t) "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0, 0), got;
    shared.count = shared.pieces = 0;
    shared.writable = false;
    shared.bytes = 0;
    if (fd < 0) {
        return false;
    }
    while ((got = kernel_call(SYS_read, fd, (long)(uintptr_t)(text + kept), (long)(MAPS_BYTES - kept), 0, 0, 0)) > 0) {
        char *line = text, *end;
        text[kept + (size_t)got] = '\0';
        while ((end = strchr(line, '\n')) != NULL) {
            *end = '\0';
            line_take(line);
            line = end + 1;
        }
        kept = strlen(line);
        memmove(text, line, kept);
    }
    (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return true;
}

// How much is mapped in all, as text: proc(5), the first number of statm.
static void size_read(char size_out[SIZE_BYTES])
{
    long fd = kernel_call(SYS_open, (long)(uintptr_t) "/proc/self/statm", O_RDONLY | O_CLOEXEC, 0, 0, 0, 0);
    memset(size_out, 0, SIZE_BYTES);
    if (fd >= 0) {
        (void)kernel_call(SYS_read, fd, (long)(uintptr_t)size_out, SIZE_BYTES - 1, 0, 0, 0);
        (void)kernel_call(SYS_close, fd, 0, 0, 0, 0, 0);
    }
    char *end = strchr(size_out, ' ');
    memset(end != NULL ? end : size_out, 0, (size_t)(size_out + SIZE_BYTES - (end != NULL ? end : size_out)));
}

// Some libraries map memory past the C library (UCX), so the kernel is asked whether there is more or less than before.
static bool mappings_find(void)
{
    char size[SIZE_BYTES];
    size_read(size);
    if (!shared.known || memcmp(size, shared.size, sizeof size) != 0) {
        memcpy(shared.size, size, sizeof size);
        shared.known = mappings_read();
    }
    return shared.known && shared.count > 0 && shared.pieces < PIECES_MAX && shared.bytes <= MAPPED_BYTES_MAX;
}

// --- the window -----------------------------------------------------------------------------------------------------

static bool rights_set(const struct mapping *mapping, int protection)
{
    return kernel_call(SYS_mprotect, (long)mapping->begin, (long)(mapping->end - mapping->begin), protection, 0, 0,
                       0) == 0;
}

static void accessible_again(void)
{
    for (unsigned i = 0; i < shared.count; i++) {
        (void)rights_set(&shared.mappings[i], shared.mappings[i].protection);
    }
    shared.open = false;
}

static bool any(void)
{
    return !shared.open && mappings_find() && shared.writable;
}

static bool window_open(void)
{
    if (shared.open || !mappings_find()) {
        return false;
    }
    shared.open = true;
    shared.page_count = 0;
    for (unsigned i = 0; i < shared.count; i++) {
        if (!rights_set(&shared.mappings[i], PROT_NONE)) {
            accessible_again();
            shared.known = false;
            return false;
        }
    }
    return true;
}

static unsigned window_close(uint64_t *pages_out, unsigned most)
{
    unsigned count = shared.page_count < most ? shared.page_count : most;
    if (shared.open) {
        accessible_again();
    }
    memcpy(pages_out, shared.pages, count * sizeof *pages_out);
    return count;
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
        accessible_again(); // too many, or pages of another size
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

// --- that there is some ---------------------------------------------------------------------------------------------

void world_shared_start(void)
{
    static const struct attach_window window = {any, window_open, window_close};
    attach_window_by(&window);
}

static void note(const void *address, int flags)
{
    shared.known = shared.known && (flags & (MAP_FIXED | MAP_SHARED)) == 0;
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

// What is there from now on is asked when one wants to know.
static void changes(void)
{
    attach_window_close();
    shared.known = false;
}

int munmap(void *address, size_t bytes)
{
    changes();
    return WORLD_REAL(munmap)(address, bytes);
}

int mprotect(void *address, size_t bytes, int protection)
{
    changes();
    return WORLD_REAL(mprotect)(address, bytes, protection);
}

void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void *) : NULL;
    va_end(rest);
    changes();
    return WORLD_REAL(mremap)(address, bytes, new_bytes, flags, to);
}

int shmdt(const void *address)
{
    changes();
    return WORLD_REAL(shmdt)(address);
}

void *shmat(int id, const void *address, int flags)
{
    void *at = WORLD_REAL(shmat)(id, address, flags);
    note(at, MAP_SHARED);
    return at;
}
