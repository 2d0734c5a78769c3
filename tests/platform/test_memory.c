// Memory of processes: what the simulator counts and pins of it, and where it ends.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/platform/internal.h"
#include "sim/platform/process_maps.h"
#include "tests/support/site.h"

enum { PAGE = 4096 };

// --- the range of a process -------------------------------------------------------------------------------------------

TEST(ProcessMemory, EndsWithItsLastByte)
{
    // Three pages, of which only the middle one is accessible.
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    ASSERT_EQ(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    uint64_t begin = (uintptr_t)pages + PAGE;
    EXPECT_TRUE(plat_process_memory_exists(getpid(), begin, PAGE, true));
    EXPECT_FALSE(plat_process_memory_exists(getpid(), begin, PAGE + 1, true));
    EXPECT_TRUE(plat_process_memory_exists(getpid(), begin + PAGE - 1, 1, true));
    EXPECT_FALSE(plat_process_memory_exists(getpid(), begin + PAGE, 1, true));
    EXPECT_FALSE(plat_process_memory_exists(getpid(), begin - 1, PAGE + 1, true));
    munmap(pages, 3 * PAGE);
}

// --- mappings ---------------------------------------------------------------------------------------------------------

struct taken {
    struct plat_map maps[8];
    unsigned count;
};

static bool map_take(void *ctx, const struct plat_map *map)
{
    struct taken *taken = ctx;
    taken->maps[taken->count++] = *map;
    return taken->count < 8;
}

// A file in two folders, whose own name looks like a mapping and is where a reader of 511 characters begins anew: names
// begin in column 73.
static int misleading_open(char path[PATH_MAX])
{
    enum { NAME = 511 - 73, FOLDER = NAME / 2 };
    memset(path, 'x', NAME);
    int begin = snprintf(path, PATH_MAX, "/tmp/tcasim-maps-%d", (int)getpid());
    path[begin] = 'x';
    path[FOLDER] = path[NAME - 1] = '\0';
    (void)mkdir(path, 0700);
    path[FOLDER] = '/';
    (void)mkdir(path, 0700);
    path[NAME - 1] = '/';
    snprintf(path + NAME, PATH_MAX - NAME, "0-ffffffffffff rw-s 0 0:0 1");
    return open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

static void misleading_remove(char path[PATH_MAX])
{
    unlink(path);
    for (unsigned i = 0; i < 2; i++) {
        *strrchr(path, '/') = '\0';
        rmdir(path);
    }
}

// Pages: readable; of a file, shared; a gap.
static void walk_three(bool by_text)
{
    char path[PATH_MAX];
    int fd = misleading_open(path);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, 2 * PAGE), 0);
    uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    ASSERT_EQ(mmap(pages + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, PAGE), pages + PAGE);
    ASSERT_EQ(munmap(pages + 2 * PAGE, PAGE), 0);
    struct stat about;
    ASSERT_EQ(fstat(fd, &about), 0);
    struct plat_maps maps;
    plat_maps_open(&maps, getpid());
    maps.answered = !by_text;
    const uint64_t begin = (uintptr_t)pages;
    for (unsigned round = 0; round < 2; round++) { // a second time from the beginning
        struct taken taken = {0};
        EXPECT_TRUE(plat_maps_walk(&maps, begin + 1, 2 * PAGE - 1, map_take, &taken));
        ASSERT_EQ(taken.count, 2u);
        EXPECT_TRUE(taken.maps[0].readable && !taken.maps[0].writable && !taken.maps[0].shared);
        EXPECT_EQ(taken.maps[0].inode, 0u);
        EXPECT_TRUE(taken.maps[1].readable && taken.maps[1].writable && taken.maps[1].shared);
        EXPECT_NE(taken.maps[1].inode, 0u); // on some file systems it is another one than stat has
        EXPECT_EQ(taken.maps[1].offset, (uint64_t)PAGE);
        EXPECT_EQ(taken.maps[1].begin, begin + PAGE);
        EXPECT_EQ(taken.maps[1].end, begin + 2 * PAGE);
    }
    struct taken taken = {0};
    EXPECT_FALSE(plat_maps_walk(&maps, begin + PAGE, PAGE + 1, map_take, &taken)); // the gap
    EXPECT_EQ(taken.count, 1u);
    EXPECT_FALSE(plat_maps_walk(&maps, begin, UINT64_MAX, map_take, &taken)); // around the end of addresses
    EXPECT_EQ(taken.count, 1u);
    plat_maps_close(&maps);
    munmap(pages, 2 * PAGE);
    close(fd);
    misleading_remove(path);
}

TEST(ProcessMaps, AreKnownByQuestions)
{
    struct plat_maps maps;
    plat_maps_open(&maps, getpid());
    bool answered = maps.answered;
    plat_maps_close(&maps);
    if (answered) {
        walk_three(false);
    } else {
        puts("not tested: this kernel takes no questions about mappings (before Linux 6.11)");
    }
}

TEST(ProcessMaps, AreKnownByTheirText)
{
    walk_three(true);
}

TEST(ProcessMaps, OfNoProcessAreNone)
{
    struct plat_maps maps;
    struct plat_map map;
    plat_maps_open(&maps, INT_MAX);
    EXPECT_FALSE(plat_maps_ask(&maps, 0x1000, &map));
    EXPECT_FALSE(plat_maps_walk(&maps, 0x1000, 1, map_take, NULL));
    plat_maps_close(&maps);
}

// --- pinned buffers ---------------------------------------------------------------------------------------------------

static uint64_t allocated_bytes(const struct backend *backend)
{
    return ((const struct plat_backend_inproc *)backend->ctx)->allocated_bytes;
}

// A buffer takes whole pages.
static void allocates_and_frees(void *arg, peach2_handle_t *board)
{
    const struct backend *backend = peach2_backend(board);
    struct backend_buffer one, two;
    (void)arg;
    uint64_t before = allocated_bytes(backend);
    EXPECT_EQ(backend->ops->alloc_pinned(backend->ctx, 5000, &one), 0);
    EXPECT_EQ(allocated_bytes(backend) - before, 2 * PAGE);
    EXPECT_EQ(backend->ops->alloc_pinned(backend->ctx, 1, &two), 0);
    EXPECT_EQ(allocated_bytes(backend) - before, 3 * PAGE);
    backend->ops->free_pinned(backend->ctx, &one);
    EXPECT_EQ(allocated_bytes(backend) - before, PAGE);
    backend->ops->free_pinned(backend->ctx, &two);
    EXPECT_EQ(allocated_bytes(backend), before);
}

TEST(ProcessMemory, OfFreedBuffersIsNotCountedAnyMore)
{
    struct site site;
    site_init(&site, 1);
    site_build(&site);
    site_run(&site, allocates_and_frees);
    site_fini(&site);
}

// --- regions of an HCA ------------------------------------------------------------------------------------------------

static int region_register(const struct backend *backend, const void *address, uint64_t bytes, uint32_t access)
{
    struct hca_command pd = {.id = HCA_CMD_PD_CREATE};
    EXPECT_EQ(backend->ops->hca_command(backend->ctx, &pd), 0);
    struct hca_command region = {
        .id = HCA_CMD_MR_REGISTER,
        .mr_register = {.pdn = pd.number, .access = access, .iova = (uintptr_t)address, .bytes = bytes}};
    return backend->ops->hca_command(backend->ctx, &region);
}

static bool is_pinned(const struct backend *backend, const void *address)
{
    const struct plat_backend_inproc *b = backend->ctx;
    uint64_t bus_address;
    return host_memory_pinned_address(b->memory, &b->owner, (uintptr_t)address, &bus_address);
}

_Alignas(PAGE) static uint8_t refused[3 * PAGE], taken[3 * PAGE];

// A region that peers may write must also be writable for its owner (IBA 10.6.6.3.1).
static void registers_without_the_right(void *arg, peach2_handle_t *board)
{
    const struct backend *backend = &backend_current()->backend;
    (void)arg;
    (void)board;
    EXPECT_EQ(region_register(backend, taken, sizeof taken, HCA_LOCAL_WRITE | HCA_REMOTE_WRITE), 0);
    EXPECT_TRUE(is_pinned(backend, taken));
    EXPECT_EQ(region_register(backend, refused, sizeof refused, HCA_REMOTE_WRITE), -EINVAL);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_FALSE(is_pinned(backend, refused + (size_t)i * PAGE));
    }
}

// A pinned buffer that ends with the node's memory, and what is behind it for a length that no process has whole.
static void registers_beyond_a_buffer(void *arg, peach2_handle_t *board)
{
    const struct backend *backend = &backend_current()->backend;
    const uint64_t first_page = MIB; // never allocated
    struct site *site = arg;
    struct backend_buffer buffer = {0};
    (void)board;
    uint64_t bytes = site->scenario->nodes[0].host.memory_bytes - first_page;
    EXPECT_EQ(backend->ops->alloc_pinned(backend->ctx, bytes, &buffer), 0);
    EXPECT_EQ(region_register(backend, buffer.address, bytes, HCA_LOCAL_WRITE), 0);
    EXPECT_EQ(region_register(backend, buffer.address, bytes + 4096 * MIB, HCA_LOCAL_WRITE), -EFAULT);
}

static void run_on_an_hca(plat_program_fn program)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_messages messages = {0};
    struct site site = {0};
    ASSERT_EQ(scn_load(TCASIM_SOURCE_DIR "/tests/support/hca-pair.yaml", &options, &site.scenario, &messages), SIM_OK);
    site.scenario->nodes[0].host.memory_bytes = site.scenario->nodes[1].host.memory_bytes = 16 * MIB;
    site_build(&site);
    site_run(&site, program);
    plat_machine_destroy(site.machine);
    scn_free(site.scenario);
}

TEST(HcaRegions, ThatTheAdapterRefusesPinNothing)
{
    run_on_an_hca(registers_without_the_right);
}

TEST(HcaRegions, EndWithThePinnedBufferInWhichTheyBegin)
{
    run_on_an_hca(registers_beyond_a_buffer);
}
