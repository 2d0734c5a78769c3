#include "models/host/pages.h"
#include "tests/shim/test.h"

#define PAGE HOST_PAGE_BYTES

TEST(Pages, HandsOutTheLowestGapThatIsLargeEnough)
{
    struct host_pages pages;
    uint64_t a, b, c, d;
    host_pages_init(&pages, 16 * PAGE, 32 * PAGE);
    EXPECT_TRUE(host_pages_take(&pages, 1, &a));
    EXPECT_TRUE(host_pages_take(&pages, 2 * PAGE, &b));
    EXPECT_TRUE(host_pages_take(&pages, PAGE, &c));
    EXPECT_EQ(a, 16 * PAGE);
    EXPECT_EQ(b, 17 * PAGE);
    EXPECT_EQ(c, 19 * PAGE);
    EXPECT_TRUE(host_pages_give(&pages, a));
    EXPECT_TRUE(host_pages_take(&pages, 2 * PAGE, &d)); // does not fit into the gap that a left
    EXPECT_EQ(d, 20 * PAGE);
    EXPECT_TRUE(host_pages_take(&pages, PAGE, &a));
    EXPECT_EQ(a, 16 * PAGE);
    host_pages_fini(&pages);
}

TEST(Pages, RefusesWhenNoGapIsLargeEnough)
{
    struct host_pages pages;
    uint64_t base;
    host_pages_init(&pages, 16 * PAGE, 20 * PAGE);
    EXPECT_FALSE(host_pages_take(&pages, 4 * PAGE + 1, &base));
    EXPECT_TRUE(host_pages_take(&pages, 4 * PAGE, &base));
    EXPECT_FALSE(host_pages_take(&pages, 1, &base));
    host_pages_fini(&pages);
}

TEST(Pages, RefusesNothingAndMoreThanThereIsOfAnything)
{
    struct host_pages pages;
    uint64_t base;
    host_pages_init(&pages, 0, 4 * PAGE);
    EXPECT_FALSE(host_pages_take(&pages, 0, &base));
    EXPECT_FALSE(host_pages_take(&pages, UINT64_MAX, &base));
    host_pages_fini(&pages);
}

TEST(Pages, RefusesToTakeBackWhatWasNotGiven)
{
    struct host_pages pages;
    uint64_t base;
    host_pages_init(&pages, 16 * PAGE, 32 * PAGE);
    EXPECT_TRUE(host_pages_take(&pages, 2 * PAGE, &base));
    EXPECT_FALSE(host_pages_give(&pages, base + PAGE));
    EXPECT_TRUE(host_pages_give(&pages, base));
    EXPECT_FALSE(host_pages_give(&pages, base));
    host_pages_fini(&pages);
}
