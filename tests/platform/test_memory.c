// Memory of processes: what the simulator counts and pins of it, and where it ends.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/platform/internal.h"
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
