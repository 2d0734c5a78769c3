// Memory that processes share. A store to it is no event. So the simulator compares the pages that a polling thread
// reads there (verbs-shim/attach/window.c) after each scheduling slot of a process that may have written to them: the
// effects of a slot are known at its end, at its time. Pages, not words: a store beside the word makes the thread poll
// once more by itself, which costs only real time.
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "sim/attach/internal.h"
#include "sim/attach/mapping.h"

// Reads the pages as they are now. false: one of them no longer exists, so the pages are unknown.
static bool pages_read(const struct attach_thread *thread, unsigned char *to)
{
    const struct attach_shared *shared = &thread->shared;
    struct iovec pages[ATTACH_PAGES_MAX];
    struct iovec copy = {to, (size_t)shared->count * ATTACH_PAGE_BYTES};
    for (unsigned i = 0; i < shared->count; i++) {
        pages[i] =
            (struct iovec){(void *)(uintptr_t)shared->pages[i], ATTACH_PAGE_BYTES}; // NOLINT(performance-no-int-to-ptr)
    }
    return attach_reach_read(thread->process, &copy, pages, shared->count) == (ssize_t)copy.iov_len;
}

bool attach_shared_changed(struct attach_thread *thread)
{
    struct attach_shared *shared = &thread->shared;
    static unsigned char now[ATTACH_PAGES_MAX * ATTACH_PAGE_BYTES];
    shared->seen_scheduled = thread->process->scheduled;
    unsigned changed = 0;
    if (!pages_read(thread, now)) {
        shared->count = 0;
        shared->known = false;
        changed = 1u << ATTACH_POLLS_MAX;
    }
    for (unsigned i = 0; i < shared->count; i++) {
        unsigned char *copy = shared->copies + (size_t)i * ATTACH_PAGE_BYTES, *page = now + (copy - shared->copies);
        if (memcmp(copy, page, ATTACH_PAGE_BYTES) != 0) {
            memcpy(copy, page, ATTACH_PAGE_BYTES);
            changed |= 1u << shared->polls[i];
        }
    }
    thread->loop.stored |= changed;
    return changed != 0;
}

void attach_shared_check(struct attach_thread *thread)
{
    struct attach_shared *shared = &thread->shared;
    if (shared->count != 0 && shared->seen_scheduled != thread->process->scheduled) {
        thread->loop.stored = 0; // the previous wait has reported it
        (void)attach_shared_changed(thread);
        shared->pending |= thread->loop.stored;
    }
}

// Takes the pages from the request. Are they the same pages in the same order?
static bool pages_take(struct attach_shared *shared, const uint64_t *described, unsigned count)
{
    bool same = count == shared->count;
    for (unsigned i = 0; i < count; i++) {
        uint64_t page = described[i] & ~(uint64_t)(ATTACH_PAGE_BYTES - 1), poll = described[i] % ATTACH_PAGE_BYTES;
        same = same && shared->pages[i] == page;
        shared->pages[i] = page;
        shared->polls[i] = (uint8_t)(poll < ATTACH_POLLS_MAX ? poll : ATTACH_POLLS_MAX);
    }
    shared->count = count;
    return same;
}

enum attach_shared_change attach_shared_begin(struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_shared *shared = &thread->shared;
    const struct attach_polled *polled = &request->args.poll.polled;
    uint32_t given = polled->page_count;
    unsigned count = given <= ATTACH_PAGES_MAX ? given : 0;
    shared->known = polled->pages_known != 0 && count == given;
    if (shared->copies == NULL && count != 0) {
        shared->copies = calloc(ATTACH_PAGES_MAX, ATTACH_PAGE_BYTES);
        shared->known = shared->known && shared->copies != NULL;
        count = shared->copies != NULL ? count : 0;
    }
    bool same = pages_take(shared, polled->pages, count);
    unsigned pending = same && count != 0 ? shared->pending : 0;
    shared->pending = 0;
    shared->seen_scheduled = thread->process->scheduled + 1; // the thread's own slot is counted after this
    // Read again in any case: the thread's own writes are no stores of others.
    if (count != 0 && !pages_read(thread, shared->copies)) {
        shared->count = 0;
        shared->known = false;
        pending = 1u << ATTACH_POLLS_MAX; // the thread must learn its pages again
    }
    thread->loop.stored |= pending;
    return pending != 0 ? ATTACH_SHARED_STORED : same || count == 0 ? ATTACH_SHARED_SAME : ATTACH_SHARED_OTHER_PAGES;
}

// --- words ------------------------------------------------------------------------------------------------------------

enum { PIECES_MAX = 1024, PIECE_GAP_BYTES = 256 }; // pieces: the kernel takes as many (IOV_MAX)

// Reads the words of the loop into its own buffer: words that are near to each other in one piece. offsets_out: where
// each of them is there.
static const unsigned char *words_read(const struct attach_thread *thread, uint32_t *offsets_out)
{
    static unsigned char now[ATTACH_LOOP_WORDS * (PIECE_GAP_BYTES + 8)];
    static struct iovec pieces[PIECES_MAX];
    const struct known_loop *known = thread->known;
    unsigned count = 0;
    size_t bytes = 0;
    uint64_t end = 0;
    for (unsigned i = 0; i < known->word_count; i++) {
        uint64_t address = known->words[i].address, gap = address - end;
        if (count == 0 || address < end || gap > PIECE_GAP_BYTES ||
            address / ATTACH_PAGE_BYTES != end / ATTACH_PAGE_BYTES) {
            pieces[count++] = (struct iovec){(void *)(uintptr_t)address, 0}; // NOLINT(performance-no-int-to-ptr)
            gap = 0;
        }
        offsets_out[i] = (uint32_t)(bytes + gap);
        bytes += gap + sizeof known->words[i].value;
        pieces[count - 1].iov_len += gap + sizeof known->words[i].value;
        end = address + sizeof known->words[i].value;
    }
    struct iovec copy = {now, bytes};
    return attach_reach_read(thread->process, &copy, pieces, count) == (ssize_t)bytes ? now : NULL;
}

static bool words_changed(const struct attach_thread *thread)
{
    const struct known_loop *known = thread->known;
    uint32_t offsets[ATTACH_LOOP_WORDS];
    bool changed = false;
    const unsigned char *now = known->word_count != 0 ? words_read(thread, offsets) : NULL;
    for (unsigned i = 0; i < known->word_count; i++) {
        const struct attach_loop_word *word = &known->words[i];
        uint64_t value = ~word->value; // it no longer exists
        if (now != NULL) {
            memcpy(&value, now + offsets[i], sizeof value);
        }
        changed = changed || ((value ^ word->value) & word->mask) != 0;
    }
    return changed;
}

bool attach_known_changed(struct attach_thread *thread, bool same_process)
{
    bool changed = same_process ? atomic_load(&thread->slot->loop_changed) != 0 : words_changed(thread);
    if (changed) {
        known_loop_sees(thread->known, attach_known_now_ps(thread));
    }
    return changed;
}

void attach_shared_destroy(struct attach_thread *thread)
{
    free(thread->known);
    free(thread->shared.copies);
}
