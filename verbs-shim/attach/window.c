// Finds the pages of shared memory that a thread reads between its polls. While a loop is learned (loop.h), the world
// shim makes the process's shared memory inaccessible from one poll to the next attach call, and notes the pages at
// which the thread faults. The pages of all loops of the thread form one list: a page too many only costs the simulator
// a comparison.
#include <string.h>

#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"

enum { PAGE_BYTES = 4096 };
_Static_assert(LOOP_PAGES_MAX == ATTACH_PAGES_MAX && LOOP_POLLS_MAX <= ATTACH_POLLS_MAX, "what a request holds");

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

void attach_window_shares(void)
{
    if (attach_client.shares == 0 && window != NULL && window->any()) {
        attach_shares();
    }
}

// Some libraries map memory without the C library, so a thread that polls checks now and then.
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

// Also called from the handler of a timer of processor time, so it does nothing but open the window.
API bool attach_window_open(void)
{
    if (!attach_own.window) {
        attach_own.window = window != NULL && window->open();
        attach_own.learns = false;
    }
    return attach_own.window;
}

API bool attach_window_learns(void)
{
    return attach_own.window && attach_own.learns;
}

void attach_window_learn(uint64_t poll)
{
    attach_window_close();
    attach_own.learns = attach_window_open();
    attach_own.poll = poll;
}

void attach_pages_add(struct loop_pages *pages, uint64_t page, uint64_t poll)
{
    unsigned i = 0;
    while (i < pages->count && pages->list[i] != page) {
        i++;
    }
    if (i < pages->count) {
        return;
    }
    if (pages->count == LOOP_PAGES_MAX) {
        pages->incomplete = true;
        return;
    }
    pages->list[pages->count] = page;
    pages->polls[pages->count++] = poll;
}

API void attach_window_close(void)
{
    uint64_t pages[LOOP_PAGES_MAX];
    if (attach_own.window) {
        attach_own.window = false;
        unsigned count = window->close(pages, LOOP_PAGES_MAX);
        attach_own.pages.incomplete = attach_own.pages.incomplete || (attach_own.learns && count > LOOP_PAGES_MAX);
        for (unsigned i = 0; i < count && i < LOOP_PAGES_MAX && attach_own.learns; i++) {
            attach_pages_add(&attach_own.pages, pages[i], attach_own.poll);
        }
    }
}

void attach_window_forget(void)
{
    attach_own.pages = (struct loop_pages){0};
}

// Adds those pages of the bytes that are shared.
void attach_window_pages(struct loop_pages *pages, uint64_t address, unsigned bytes)
{
    uint64_t first = address / PAGE_BYTES, last = (address + bytes - (bytes != 0)) / PAGE_BYTES;
    for (uint64_t page = first; attach_client.shares != 0 && window != NULL && page <= last; page++) {
        if (window->has(page * PAGE_BYTES)) {
            attach_pages_add(pages, page * PAGE_BYTES, 0);
        }
    }
}

// Describes each page with the number of the poll after which the iteration reads it; the number is in the low bits of
// the address.
void attach_pages_describe(struct attach_polled *polled, const struct loop_pages *pages,
                           const struct loop_poll *iteration, unsigned period)
{
    for (unsigned i = 0; pages != NULL && i < pages->count; i++) {
        unsigned poll = 0;
        while (poll < period && iteration[poll].key != pages->polls[i]) {
            poll++;
        }
        polled->pages[i] = pages->list[i] | (poll < period ? poll : ATTACH_POLLS_MAX);
    }
    polled->pages_known = pages != NULL && !pages->incomplete;
    polled->page_count = polled->pages_known ? pages->count : 0;
}
