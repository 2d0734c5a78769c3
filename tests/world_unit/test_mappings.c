// Shared memory of this process, as the kernel has it mapped.
#include <sys/mman.h>
#include <unistd.h>

#include "tests/shim/test.h"
#include "verbs-shim/world/mappings.h"

enum { PAGE_BYTES = 4096 };

static unsigned char *map(int protection, int kind, int fd, size_t pages)
{
    void *at = mmap(NULL, pages * PAGE_BYTES, protection, kind | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    EXPECT_NE(at, MAP_FAILED);
    return at;
}

static unsigned char *file_map(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, PAGE_BYTES), 0);
    unsigned char *at = map(PROT_READ | PROT_WRITE, MAP_SHARED, fd, 1);
    close(fd);
    return at;
}

static const struct world_mapping *at(const struct world_mappings *mappings, const unsigned char *address)
{
    for (unsigned i = 0; i < mappings->count; i++) {
        if ((uintptr_t)address >= mappings->list[i].begin && (uintptr_t)address < mappings->list[i].end) {
            return &mappings->list[i];
        }
    }
    return NULL;
}

TEST(Mappings, AreSharedReadableAndNotTheSimulators)
{
    struct world_mappings found;
    unsigned char *both = map(PROT_READ | PROT_WRITE, MAP_SHARED, -1, 4), *file = file_map("of-a-program");
    unsigned char *own = file_map("tcasim-pinned"), *private = map(PROT_READ | PROT_WRITE, MAP_PRIVATE, -1, 1);
    unsigned char *hidden = map(PROT_NONE, MAP_SHARED, -1, 1);
    ASSERT_EQ(mprotect(both + 2 * PAGE_BYTES, 2 * PAGE_BYTES, PROT_READ), 0);
    ASSERT_TRUE(world_mappings_find(&found));
    EXPECT_TRUE(found.writable);
    ASSERT_NOT_NULL(at(&found, both));
    EXPECT_EQ(at(&found, both)->protection, PROT_READ | PROT_WRITE);
    ASSERT_NOT_NULL(at(&found, both + 2 * PAGE_BYTES));
    EXPECT_EQ(at(&found, both + 2 * PAGE_BYTES)->protection, PROT_READ);
    EXPECT_NOT_NULL(at(&found, file));
    EXPECT_NULL(at(&found, own));
    EXPECT_NULL(at(&found, private));
    EXPECT_NULL(at(&found, hidden));
    munmap(both, 4 * PAGE_BYTES);
    munmap(file, PAGE_BYTES);
    munmap(own, PAGE_BYTES);
    munmap(private, PAGE_BYTES);
    munmap(hidden, PAGE_BYTES);
}

TEST(Mappings, AreTheSameByQuestionAndAsText)
{
    struct world_mappings found, read;
    unsigned char *many[40];
    for (unsigned i = 0; i < 40; i++) {
        many[i] =
            map(i % 3 == 0 ? PROT_READ : PROT_READ | PROT_WRITE, i % 4 == 0 ? MAP_PRIVATE : MAP_SHARED, -1, 1 + i % 2);
    }
    ASSERT_TRUE(world_mappings_find(&found));
    ASSERT_TRUE(world_mappings_read(&read));
    EXPECT_EQ(found.count, read.count);
    EXPECT_EQ(found.pieces, read.pieces);
    EXPECT_EQ(found.bytes, read.bytes);
    EXPECT_EQ(found.writable, read.writable);
    for (unsigned i = 0; i < read.count; i++) {
        EXPECT_EQ(found.list[i].begin, read.list[i].begin);
        EXPECT_EQ(found.list[i].end, read.list[i].end);
        EXPECT_EQ(found.list[i].protection, read.list[i].protection);
    }
    for (unsigned i = 0; i < 40; i++) {
        munmap(many[i], (1 + i % 2) * PAGE_BYTES);
    }
}

TEST(Mappings, GetTheirRightsBackAlsoWhereAPartIsGone)
{
    struct world_mappings found;
    unsigned char *there = map(PROT_READ | PROT_WRITE, MAP_SHARED, -1, 5);
    ASSERT_TRUE(world_mappings_find(&found));
    ASSERT_NOT_NULL(at(&found, there));
    ASSERT_TRUE(world_mapping_rights_set(at(&found, there), PROT_NONE));
    munmap(there + 2 * PAGE_BYTES, PAGE_BYTES);
    world_mappings_rights_restore(&found);
    there[0] = there[PAGE_BYTES] = there[3 * PAGE_BYTES] = there[4 * PAGE_BYTES] = 1; // no fault
    EXPECT_EQ(there[3 * PAGE_BYTES], 1);
    munmap(there, 5 * PAGE_BYTES);
}
