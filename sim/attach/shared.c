// Memory that processes share. A store to it is no event, so where a polling thread has said which pages it reads
// there (verbs-shim/attach/window.c), these are compared after each turn of a process that may have written to them:
// what the turn did is known at its end, at its time. Pages, not words: a store beside the word lets the thread poll
// once more by itself, which changes nothing but real time.
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "sim/attach/internal.h"
#include "sim/attach/mapping.h"

// The pages as they are. What cannot be read any more keeps its last contents.
static void pages_read(const struct attach_thread *thread, unsigned char *to)
{
    const struct attach_shared *shared = &thread->shared;
    struct iovec pages[ATTACH_PAGES_MAX];
    struct iovec copy = {to, (size_t)shared->count * ATTACH_PAGE_BYTES};
    for (unsigned i = 0; i < shared->count; i++) {
        pages[i] =
            (struct iovec){(void *)(uintptr_t)shared->pages[i], ATTACH_PAGE_BYTES}; // NOLINT(performance-no-int-to-ptr)
    }
    (void)process_vm_readv(thread->process->pid, &copy, 1, pages, shared->count, 0);
}

bool attach_shared_changed(struct attach_thread *thread)
{
    struct attach_shared *shared = &thread->shared;
    static unsigned char now[ATTACH_PAGES_MAX * ATTACH_PAGE_BYTES];
    size_t bytes = (size_t)shared->count * ATTACH_PAGE_BYTES;
    shared->seen_turns = thread->process->turns_of_others;
    memcpy(now, shared->copies, bytes);
    pages_read(thread, now);
    bool changed = memcmp(now, shared->copies, bytes) != 0;
    if (changed) {
        memcpy(shared->copies, now, bytes);
    }
    return changed;
}

enum attach_shared_news attach_shared_begin(struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_shared *shared = &thread->shared;
    unsigned count = request->arguments[7] <= ATTACH_PAGES_MAX ? (unsigned)request->arguments[7] : 0;
    const unsigned char *pages = request->structure + ATTACH_PAGES_AT;
    if (count == shared->count && memcmp(pages, shared->pages, count * sizeof shared->pages[0]) == 0) {
        bool turns = count != 0 && shared->seen_turns != thread->process->turns_of_others;
        return turns && attach_shared_changed(thread) ? ATTACH_SHARED_STORED : ATTACH_SHARED_SAME;
    }
    if (shared->copies == NULL) {
        shared->copies = calloc(ATTACH_PAGES_MAX, ATTACH_PAGE_BYTES);
    }
    shared->count = shared->copies != NULL ? count : 0;
    memcpy(shared->pages, pages, count * sizeof shared->pages[0]);
    shared->seen_turns = thread->process->turns_of_others;
    pages_read(thread, shared->copies);
    return count != 0 ? ATTACH_SHARED_OTHER_PAGES : ATTACH_SHARED_SAME;
}

void attach_shared_destroy(struct attach_thread *thread)
{
    free(thread->shared.copies);
}
