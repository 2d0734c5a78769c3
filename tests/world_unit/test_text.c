// Code that may be overwritten: mapped from a file, and not writable by the program.
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/shim/test.h"
#include "verbs-shim/world/text.h"

enum { PAGE_BYTES = 4096 };

TEST(WorldText, OfAFunctionOfTheProgramIsFixed)
{
    EXPECT_TRUE(world_text_fixed((uintptr_t)world_text_fixed, 16));
}

TEST(WorldText, IsNoData)
{
    static int data = 1;
    int local;
    EXPECT_FALSE(world_text_fixed((uintptr_t)&data, sizeof data));
    EXPECT_FALSE(world_text_fixed((uintptr_t)&local, sizeof local));
    EXPECT_FALSE(world_text_fixed(0, 1));
    EXPECT_FALSE(world_text_fixed(UINTPTR_MAX - 8, 4));
}

TEST(WorldText, ThatTheProgramMadeItselfIsNotFixed)
{
    void *made = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(made, MAP_FAILED);
    EXPECT_FALSE(world_text_fixed((uintptr_t)made, 16));
    munmap(made, PAGE_BYTES);
}

// A page of this program's file, mapped executable, followed by an unmapped page.
TEST(WorldText, EndsWithItsMapping)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    ASSERT_GE(fd, 0);
    uint8_t *room = mmap(NULL, 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *page = mmap(room, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
    ASSERT_EQ(page, room);
    EXPECT_TRUE(world_text_fixed((uintptr_t)page, PAGE_BYTES));
    EXPECT_TRUE(world_text_fixed((uintptr_t)page + PAGE_BYTES - 5, 5));
    EXPECT_FALSE(world_text_fixed((uintptr_t)page + PAGE_BYTES - 5, 6));
    EXPECT_FALSE(world_text_fixed((uintptr_t)page + PAGE_BYTES, 1));
    (void)mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);
    EXPECT_FALSE(world_text_fixed((uintptr_t)page, 16));
    munmap(room, 2 * PAGE_BYTES);
    (void)close(fd);
}
