// Pages of programs that the simulator caches: no access may see a difference.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "neighbour.h"
#include "tests/shim/test.h"

#define PAGE 4096u
#define TLP  256u
// More than are cached at once.
#define PAGES 600u

static unsigned char *memory_make(unsigned pages, int sharing)
{
    unsigned char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
        memset(memory, 1, pages * PAGE);
    }
    return memory;
}

// Private memory of a file. The kernel reports its pages, but not that all of it is writable.
static unsigned char *memory_of_file(unsigned pages)
{
    int fd = memfd_create("memory", MFD_CLOEXEC);
    void *memory = ftruncate(fd, pages * PAGE) == 0
                       ? mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0)
                       : MAP_FAILED;
    close(fd);
    if (memory != MAP_FAILED) {
        memset(memory, 1, pages * PAGE);
    }
    return memory;
}

static unsigned stream_write(struct neighbour *neighbour, unsigned char *at, const unsigned char *data, unsigned bytes)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < bytes; i += TLP) {
        refused += !neighbour_write(neighbour, at + i, data + i, TLP);
    }
    return refused;
}

static unsigned stream_read(struct neighbour *neighbour, const unsigned char *at, unsigned char *data, unsigned bytes)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < bytes; i += TLP) {
        refused += !neighbour_read(neighbour, at + i, data + i, TLP);
    }
    return refused;
}

// Accesses of all sizes, at random addresses near each other: each read sees the last write.
static unsigned random_accesses(struct neighbour *neighbour, unsigned char *memory, unsigned char *expected)
{
    unsigned wrong = 0, page = 0;
    unsigned char data[PAGE];
    for (unsigned i = 0; i < 20000; i++) {
        page = rand() % 4 != 0 ? page : (unsigned)rand() % PAGES;
        unsigned from = (unsigned)rand() % PAGE, bytes = 1 + (unsigned)rand() % (rand() % 2 != 0 ? TLP : 8);
        bytes = bytes < PAGE - from ? bytes : PAGE - from;
        size_t at = (size_t)page * PAGE + from;
        if (rand() % 2 != 0) {
            memset(data, rand(), bytes);
            memcpy(expected + at, data, bytes);
            wrong += !neighbour_write(neighbour, memory + at, data, bytes);
        } else {
            wrong += !neighbour_read(neighbour, memory + at, data, bytes) || memcmp(expected + at, data, bytes) != 0;
        }
        page += rand() % 8 == 0 && page + 1 < PAGES;
    }
    return wrong;
}

static void expect_held(unsigned char *memory)
{
    struct attach_server server = {0};
    struct neighbour neighbour;
    unsigned char *expected = malloc(PAGES * PAGE);
    memset(expected, 1, PAGES * PAGE);
    ASSERT_TRUE(neighbour_start(&neighbour, &server));
    srand(1);
    for (unsigned turn = 0; turn < 10; turn++) {
        EXPECT_EQ(random_accesses(&neighbour, memory, expected), 0);
        attach_memory_settle(&server, 0);
        EXPECT_TRUE(neighbour_holds(&neighbour, memory, expected, PAGES * PAGE));
    }
    neighbour_end(&neighbour);
    munmap(memory, PAGES * PAGE);
    free(expected);
}

TEST(AttachedMemory, HoldsWhatDevicesWroteWhenTheProgramHasItsTurn)
{
    expect_held(memory_make(PAGES, MAP_PRIVATE));
}

TEST(AttachedMemory, HoldsWhatDevicesWroteInPrivateMemoryOfAFile)
{
    expect_held(memory_of_file(PAGES));
}

TEST(AttachedMemory, HoldsWhatDevicesWroteInSharedMemory)
{
    expect_held(memory_make(PAGES, MAP_SHARED));
}

TEST(AttachedMemory, GivesDevicesWhatTheProgramWroteInItsTurn)
{
    struct attach_server server = {0};
    struct neighbour neighbour;
    unsigned char *memory = memory_make(8, MAP_PRIVATE), data[8 * PAGE];
    ASSERT_TRUE(neighbour_start(&neighbour, &server));
    for (unsigned i = 0; i < 8; i++) {
        EXPECT_EQ(stream_read(&neighbour, memory, data, 8 * PAGE), 0);
        EXPECT_EQ(data[i * PAGE + 7], 1);
        attach_memory_settle(&server, 0);
        neighbour_set(&neighbour, memory + i * PAGE + 7, 2);
        EXPECT_EQ(stream_read(&neighbour, memory, data, 8 * PAGE), 0);
        EXPECT_EQ(data[i * PAGE + 7], 2);
    }
    neighbour_end(&neighbour);
    munmap(memory, 8 * PAGE);
}

// Two processes map it; what one HCA writes, another one may read before any program is scheduled.
TEST(AttachedMemory, IsTheSameForAllProcessesThatShareIt)
{
    struct attach_server server = {0};
    struct neighbour one, other;
    unsigned char *memory = memory_make(4, MAP_SHARED), data[4 * PAGE], written[4 * PAGE];
    ASSERT_TRUE(neighbour_start(&one, &server));
    ASSERT_TRUE(neighbour_start(&other, &server));
    for (unsigned i = 0; i < 4; i++) {
        EXPECT_EQ(stream_read(&other, memory, data, 4 * PAGE), 0);
        memset(written, (int)i + 2, sizeof written);
        EXPECT_EQ(stream_write(&one, memory, written, 4 * PAGE), 0);
        EXPECT_EQ(stream_read(&other, memory, data, 4 * PAGE), 0);
        EXPECT_MEMEQ(data, written, sizeof data);
        EXPECT_TRUE(neighbour_holds(&other, memory, written, sizeof written));
    }
    neighbour_end(&one);
    neighbour_end(&other);
    munmap(memory, 4 * PAGE);
}

TEST(AttachedMemory, IsItsOwnForEachAfterFork)
{
    struct attach_server server = {0};
    struct neighbour one, other;
    unsigned char *memory = memory_make(4, MAP_PRIVATE), data[4 * PAGE], written[4 * PAGE], before[4 * PAGE];
    ASSERT_TRUE(neighbour_start(&one, &server));
    ASSERT_TRUE(neighbour_start(&other, &server));
    memset(written, 2, sizeof written);
    memset(before, 1, sizeof before);
    EXPECT_EQ(stream_write(&one, memory, written, 4 * PAGE), 0);
    EXPECT_EQ(stream_read(&other, memory, data, 4 * PAGE), 0);
    EXPECT_MEMEQ(data, before, sizeof data);
    attach_memory_settle(&server, 0);
    EXPECT_TRUE(neighbour_holds(&one, memory, written, sizeof written));
    EXPECT_TRUE(neighbour_holds(&other, memory, before, sizeof before));
    neighbour_end(&one);
    neighbour_end(&other);
    munmap(memory, 4 * PAGE);
}

// Mapped in one scheduling slot, unmapped in the next: the first access to a page is refused already.
static void expect_refused(unsigned char *memory)
{
    struct attach_server server = {0};
    struct neighbour neighbour;
    unsigned char data[8 * PAGE] = {0};
    ASSERT_TRUE(neighbour_start(&neighbour, &server));
    EXPECT_EQ(stream_read(&neighbour, memory, data, 8 * PAGE), 0);
    EXPECT_EQ(stream_write(&neighbour, memory, data, 8 * PAGE), 0);
    attach_memory_settle(&server, 0);
    neighbour_protect(&neighbour, memory + 3 * PAGE, PAGE, -1);
    neighbour_protect(&neighbour, memory + 5 * PAGE, PAGE, PROT_READ);
    neighbour_protect(&neighbour, memory + 7 * PAGE, PAGE, PROT_NONE);
    EXPECT_EQ(stream_read(&neighbour, memory, data, 8 * PAGE), 2 * PAGE / TLP);
    EXPECT_EQ(stream_write(&neighbour, memory, data, 8 * PAGE), 3 * PAGE / TLP);
    EXPECT_EQ(stream_read(&neighbour, memory, data, 8 * PAGE), 2 * PAGE / TLP);
    neighbour_end(&neighbour);
    munmap(memory, 8 * PAGE);
}

TEST(AttachedMemory, IsRefusedWhereTheProgramHasNoneAnyMore)
{
    expect_refused(memory_make(8, MAP_PRIVATE));
}

TEST(AttachedMemory, IsRefusedWhereAFileIsNotMappedAnyMore)
{
    expect_refused(memory_of_file(8));
}

TEST(AttachedMemory, IsNotReadByDevicesWhereTheProgramMayOnlyWrite)
{
    struct attach_server server = {0};
    struct neighbour neighbour;
    unsigned char *memory = memory_make(1, MAP_PRIVATE), data[PAGE] = {0};
    ASSERT_TRUE(neighbour_start(&neighbour, &server));
    neighbour_protect(&neighbour, memory, PAGE, PROT_WRITE);
    EXPECT_EQ(stream_write(&neighbour, memory, data, PAGE), 0);
    EXPECT_EQ(stream_read(&neighbour, memory, data, PAGE), PAGE / TLP);
    neighbour_end(&neighbour);
    munmap(memory, PAGE);
}

// A thread that waits for its first scheduling slot runs beside the devices.
TEST(AttachedMemory, KeepsBytesThatNoDeviceWrote)
{
    struct attach_server server = {0};
    struct neighbour neighbour;
    unsigned char *memory = memory_make(1, MAP_PRIVATE), data[TLP] = {0};
    ASSERT_TRUE(neighbour_start(&neighbour, &server));
    for (unsigned i = 0; i < 5; i++) {
        EXPECT_TRUE(neighbour_write(&neighbour, memory + i * 2 * TLP, data, TLP));
        EXPECT_TRUE(neighbour_read(&neighbour, memory, data, 8));
    }
    neighbour_set(&neighbour, memory + 5 * TLP + 3, 2);
    attach_memory_settle(&server, 0);
    EXPECT_EQ(neighbour_get(&neighbour, memory + 5 * TLP + 3), 2);
    EXPECT_EQ(neighbour_get(&neighbour, memory + 6 * TLP), 0);
    neighbour_end(&neighbour);
    munmap(memory, PAGE);
}

TEST(AttachedMemory, LosesNoOtherPageWhereOneIsGone)
{
    struct attach_server server = {0};
    struct neighbour neighbour;
    unsigned char *memory = memory_make(8, MAP_PRIVATE), data[8 * PAGE] = {0};
    ASSERT_TRUE(neighbour_start(&neighbour, &server));
    EXPECT_EQ(stream_write(&neighbour, memory, data, 8 * PAGE), 0);
    neighbour_protect(&neighbour, memory + 2 * PAGE, PAGE, PROT_READ);
    attach_memory_settle(&server, 0);
    EXPECT_EQ(neighbour_get(&neighbour, memory + 2 * PAGE - 1), 0);
    EXPECT_TRUE(neighbour_holds(&neighbour, memory + 3 * PAGE, data, 5 * PAGE));
    neighbour_end(&neighbour);
    munmap(memory, 8 * PAGE);
}

// More pages than the simulator has room for at once, in one scheduling slot: from wherever the stream begins, it comes
// to the end of that room.
TEST(AttachedMemory, HoldsALongStreamWhereverItBegins)
{
    struct attach_server server = {0};
    struct neighbour neighbour;
    unsigned char *memory = memory_make(PAGES, MAP_PRIVATE), *data = malloc(PAGES * PAGE);
    memset(data, 1, PAGES * PAGE);
    ASSERT_TRUE(neighbour_start(&neighbour, &server));
    for (unsigned begin = 0; begin < 256; begin += 85) {
        TEST_TRACE("page %u", begin);
        memset(data + begin * PAGE, 2 + (int)begin / 85, 300 * PAGE);
        EXPECT_EQ(stream_write(&neighbour, memory + begin * PAGE, data + begin * PAGE, 300 * PAGE), 0);
        attach_memory_settle(&server, 0);
        EXPECT_TRUE(neighbour_holds(&neighbour, memory, data, PAGES * PAGE));
    }
    neighbour_end(&neighbour);
    munmap(memory, PAGES * PAGE);
    free(data);
}

// A program maps shared memory where it had private memory of a file; another one, whose device writes, has it as well.
TEST(AttachedMemory, IsSharedWhereTheProgramHasReplacedItsOwnByThat)
{
    struct attach_server server = {0};
    struct neighbour one, other;
    unsigned char *memory = memory_of_file(4), data[4 * PAGE], written[4 * PAGE];
    int fd = memfd_create("shared", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, 4 * PAGE), 0);
    unsigned char *shared = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(shared, 1, 4 * PAGE);
    ASSERT_TRUE(neighbour_start(&one, &server));
    ASSERT_TRUE(neighbour_start(&other, &server));
    EXPECT_EQ(stream_read(&one, memory, data, 4 * PAGE), 0);
    attach_memory_settle(&server, 0);
    neighbour_replace(&one, memory, 4 * PAGE, fd);
    EXPECT_EQ(neighbour_get(&one, memory), 1);
    EXPECT_EQ(stream_read(&one, memory, data, 4 * PAGE), 0);
    memset(written, 2, sizeof written);
    EXPECT_EQ(stream_write(&other, shared, written, 4 * PAGE), 0);
    EXPECT_EQ(stream_read(&one, memory, data, 4 * PAGE), 0);
    EXPECT_MEMEQ(data, written, sizeof data);
    neighbour_end(&one);
    neighbour_end(&other);
    munmap(memory, 4 * PAGE);
    munmap(shared, 4 * PAGE);
    close(fd);
}
