// Pages of shared memory that a loop of polls reads, and what a request tells of them (verbs-shim/attach/window.c).
#include <string.h>

#include "tests/shim/test.h"
#include "verbs-shim/attach/client_internal.h"

enum { PAGE = 4096, SHARED = 16 * PAGE, SHARED_PAGES = 4 };

struct attach_client attach_client;
_Thread_local struct attach_own attach_own;

static bool any(void)
{
    return true;
}

static bool open_window(void)
{
    return true;
}

static unsigned close_window(uint64_t *pages_out, unsigned most)
{
    (void)pages_out;
    (void)most;
    return 0;
}

static bool has(uint64_t address)
{
    return address >= SHARED && address < SHARED + SHARED_PAGES * PAGE;
}

static void begin(void)
{
    static const struct attach_window window = {any, open_window, close_window, has};
    memset(&attach_client, 0, sizeof attach_client);
    memset(&attach_own, 0, sizeof attach_own);
    attach_window_by(&window);
    attach_shares();
}

TEST(AttachedWindow, AWordIsOnEachPageThatHasAByteOfIt)
{
    static const struct {
        uint64_t address;
        unsigned bytes, pages;
        uint64_t first;
    } cases[] = {
        {SHARED, 8, 1, SHARED},
        {SHARED + PAGE - 8, 8, 1, SHARED},
        {SHARED + PAGE - 4, 8, 2, SHARED},
        {SHARED + PAGE - 1, 2, 2, SHARED},
        {SHARED - 4, 8, 1, SHARED}, // the page before is not shared
        {SHARED + SHARED_PAGES * PAGE - 4, 8, 1, SHARED + (SHARED_PAGES - 1) * PAGE},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TEST_TRACE("%u B at 0x%llx", cases[i].bytes, (unsigned long long)cases[i].address);
        struct loop_pages pages = {0};
        begin();
        attach_window_pages(&pages, cases[i].address, cases[i].bytes);
        EXPECT_EQ(pages.count, cases[i].pages);
        EXPECT_EQ(pages.list[0], cases[i].first);
        EXPECT_EQ(pages.list[1], cases[i].pages == 2 ? SHARED + PAGE : 0);
    }
}

TEST(AttachedWindow, ARequestNamesAsManyPagesAsItHoldsAndSaysWhenThereAreMore)
{
    struct loop_pages pages = {0};
    struct attach_polled polled;
    begin();
    for (uint64_t i = 0; i < ATTACH_PAGES_MAX; i++) {
        attach_pages_add(&pages, i * PAGE, 0);
    }
    attach_pages_describe(&polled, &pages, NULL, 0);
    EXPECT_EQ(polled.pages_known, 1);
    EXPECT_EQ(polled.page_count, ATTACH_PAGES_MAX);
    attach_pages_add(&pages, ATTACH_PAGES_MAX * PAGE, 0);
    attach_pages_describe(&polled, &pages, NULL, 0);
    EXPECT_EQ(polled.pages_known, 0); // any page counts
}
