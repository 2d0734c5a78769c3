// Which pages of shared memory a thread reads between its polls. While a loop is learned (loop.h), the world shim makes
// the process's shared memory inaccessible from one poll to the next crossing, and notes the pages at which the thread
// faults. The pages of all loops of the thread are one list: one too many costs the simulator a comparison.
#include <string.h>

#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"

#define API __attribute__((visibility("default")))

static const struct attach_window *window;

API void attach_window_by(const struct attach_window *how)
{
    window = how;
}

API void attach_shares(void)
{
    attach_client.shares = 1;
    if (attach_client.segment != NULL) {
        atomic_store(&attach_client.segment->shares, 1);
    }
}

// Some libraries map memory past the C library, so a thread that polls asks now and then.
bool attach_window_possible(void)
{
    if (window == NULL) {
        return false;
    }
    if (attach_client.shares == 0) {
        unsigned polls = ++attach_own.polls_alone;
        if ((polls & (polls - 1)) == 0 && window->any()) {
            attach_shares();
        }
    }
    return attach_client.shares != 0;
}

API bool attach_window_open(void)
{
    attach_own.window = attach_window_possible() && window->open();
    return attach_own.window;
}

void attach_pages_add(struct attach_pages *pages, uint64_t page)
{
    unsigned i = 0;
    while (i < pages->count && pages->list[i] != page) {
        i++;
    }
    if (i < pages->count) {
        return;
    }
    if (pages->count < ATTACH_PAGES_MAX) {
        pages->list[pages->count++] = page;
    } else { // the one that was found longest ago makes room
        pages->list[pages->next++ % ATTACH_PAGES_MAX] = page;
    }
}

API void attach_window_close(void)
{
    uint64_t pages[ATTACH_PAGES_MAX];
    if (attach_own.window) {
        attach_own.window = false;
        unsigned count = window->close(pages, ATTACH_PAGES_MAX);
        for (unsigned i = 0; i < count; i++) {
            attach_pages_add(&attach_own.pages, pages[i]);
        }
    }
}

void attach_window_forget(void)
{
    attach_own.pages.count = attach_own.pages.next = 0;
}

void attach_pages_describe(struct attach_slot *slot, const struct attach_pages *pages)
{
    slot->arguments[7] = pages->count;
    memcpy(slot->structure + ATTACH_PAGES_AT, pages->list, pages->count * sizeof pages->list[0]);
}

void attach_window_describe(struct attach_slot *slot)
{
    attach_pages_describe(slot, &attach_own.pages);
}
