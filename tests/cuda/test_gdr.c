// gdrcopy: windows and copies through them.
#include <cuda.h>
#include <cuda_runtime.h>
#include <errno.h>
#include <gdrapi.h>
#include <string.h>

#include "tests/support/cuda_fixture.h"

enum { BYTES = 3 * 65536 };

struct setup {
    struct cuda_fixture *fixture;
    gdr_t gdr;
    uint8_t *device;
    gdr_mh_t handle;
    uint8_t *mapped;
};

static void setup_init(struct setup *s)
{
    s->fixture = cuda_fixture_open();
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&s->device, BYTES), cudaSuccess);
    s->gdr = gdr_open();
    EXPECT_NOT_NULL(s->gdr);
    EXPECT_EQ(gdr_pin_buffer(s->gdr, (unsigned long)s->device, BYTES, 0, 0, &s->handle), 0);
    EXPECT_EQ(gdr_map(s->gdr, s->handle, (void **)&s->mapped, BYTES), 0);
}

TEST(Gdr, CopiesEveryByteAtAnyAlignment)
{
    struct setup s;
    static uint8_t sent[BYTES], received[BYTES];
    static const unsigned ranges[][2] = {{0, 8}, {1, 3}, {65530, 13}, {63, 130000}, {BYTES - 1, 1}};
    setup_init(&s);
    for (unsigned i = 0; i < 5; i++) {
        unsigned at = ranges[i][0], bytes = ranges[i][1];
        cuda_fixture_fill(sent, bytes, i);
        EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped + at, sent, bytes), 0);
        EXPECT_MEMEQ(cuda_fixture_device(s.fixture, s.device) + at, sent, bytes);
        EXPECT_EQ(gdr_copy_from_mapping(s.handle, received, s.mapped + at, bytes), 0);
        EXPECT_MEMEQ(received, sent, bytes);
    }
    EXPECT_EQ(s.fixture->unsupported, 0);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, MapsWholePagesAroundTheMemory)
{
    struct setup s;
    uint8_t *small, *mapped, word[4];
    gdr_mh_t handle;
    gdr_info_t info;
    setup_init(&s);
    EXPECT_EQ(cudaMalloc((void **)&small, 1000), cudaSuccess);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)small + 100, 100, 0, 0, &handle), 0);
    EXPECT_EQ(gdr_get_info(s.gdr, handle, &info), 0);
    EXPECT_EQ(info.va, (uintptr_t)small & GPU_PAGE_MASK);
    EXPECT_EQ(info.mapped_size, GPU_PAGE_SIZE);
    EXPECT_EQ(info.mapped, 0);
    EXPECT_EQ(gdr_map(s.gdr, handle, (void **)&mapped, GPU_PAGE_SIZE), 0);
    EXPECT_EQ(gdr_get_info(s.gdr, handle, &info), 0);
    EXPECT_TRUE(info.mapped);
    EXPECT_TRUE(info.wc_mapping);
    EXPECT_EQ(info.mapping_type, GDR_MAPPING_TYPE_WC);
    memcpy(cuda_fixture_device(s.fixture, small) + 100, "abcd", 4);
    EXPECT_EQ(gdr_copy_from_mapping(handle, word, mapped + ((uintptr_t)small + 100 - info.va), 4), 0);
    EXPECT_MEMEQ(word, "abcd", 4);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, TakesTheTokensOfThisMemoryAlone)
{
    struct setup s;
    void *other;
    gdr_mh_t handle;
    CUDA_POINTER_ATTRIBUTE_P2P_TOKENS own, elsewhere, theirs;
    setup_init(&s);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&other, BYTES), cudaSuccess);
    EXPECT_EQ(cuPointerGetAttribute(&own, CU_POINTER_ATTRIBUTE_P2P_TOKENS, (uintptr_t)s.device), CUDA_SUCCESS);
    EXPECT_EQ(cuPointerGetAttribute(&elsewhere, CU_POINTER_ATTRIBUTE_P2P_TOKENS, (uintptr_t)other), CUDA_SUCCESS);
    cuda_fixture_process(s.fixture, 1);
    EXPECT_EQ(cudaMalloc(&other, BYTES), cudaSuccess);
    EXPECT_EQ(cuPointerGetAttribute(&theirs, CU_POINTER_ATTRIBUTE_P2P_TOKENS, (uintptr_t)other), CUDA_SUCCESS);
    cuda_fixture_process(s.fixture, 0);
    unsigned long at = (unsigned long)s.device;
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, BYTES, own.p2pToken, own.vaSpaceToken, &handle), 0);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, BYTES, own.p2pToken, own.vaSpaceToken + 1, &handle), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, BYTES, own.p2pToken, 0, &handle), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, BYTES, 0, own.vaSpaceToken + 1, &handle), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, BYTES, elsewhere.p2pToken, elsewhere.vaSpaceToken, &handle), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, BYTES, theirs.p2pToken, theirs.vaSpaceToken, &handle), EINVAL);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, PinsAllocatedDeviceMemoryAlone)
{
    struct setup s;
    gdr_mh_t handle;
    void *large;
    int host;
    setup_init(&s);
    unsigned long at = (unsigned long)s.device;
    EXPECT_EQ(gdr_pin_buffer(NULL, at, BYTES, 0, 0, &handle), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, BYTES, 0, 0, NULL), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, 0, 0, 0, &handle), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at, BYTES + 1, 0, 0, &handle), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at + BYTES, 1, 0, 0, &handle), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)&host, 4, 0, 0, &handle), EINVAL);
    EXPECT_EQ(cudaMalloc(&large, (size_t)CUDA_FIXTURE_BAR_PAGES * 65536), cudaSuccess);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)large, (size_t)CUDA_FIXTURE_BAR_PAGES * 65536, 0, 0, &handle),
              ENOMEM);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, PinsToTheEndOfTheLastPageOfAnAllocation)
{
    struct setup s;
    gdr_mh_t handle;
    char *small;
    setup_init(&s);
    unsigned long at = (unsigned long)s.device;
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at + 65536, BYTES - 65536, 0, 0, &handle), 0);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, at + 65536, BYTES, 0, 0, &handle), EINVAL);
    EXPECT_EQ(cudaMalloc((void **)&small, 1000), cudaSuccess); // at the start of a page
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)small + 256, 65536 - 256, 0, 0, &handle), 0);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)small + 256, 65536, 0, 0, &handle), EINVAL);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, PinsNoPageBehindThoseOfAnAllocation)
{
    struct setup s;
    gdr_mh_t handle;
    char *first, *second;
    setup_init(&s);
    EXPECT_EQ(cudaMalloc((void **)&first, 1000), cudaSuccess);
    EXPECT_EQ(cudaMalloc((void **)&second, 1000), cudaSuccess); // in the same page
    uint64_t in_page = (uintptr_t)second & GPU_PAGE_OFFSET;
    EXPECT_EQ(in_page, 1024);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)second, GPU_PAGE_SIZE - in_page, 0, 0, &handle), 0);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)second, GPU_PAGE_SIZE - in_page + 1, 0, 0, &handle), EINVAL);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, MapsOnceAndWithinThePages)
{
    struct setup s;
    void *again;
    const gdr_mh_t unknown = {999};
    setup_init(&s);
    EXPECT_EQ(gdr_map(s.gdr, s.handle, &again, BYTES), EAGAIN);
    EXPECT_EQ(gdr_unmap(s.gdr, s.handle, s.mapped + 1, BYTES), EINVAL);
    EXPECT_EQ(gdr_unmap(s.gdr, s.handle, s.mapped, BYTES - 1), EINVAL);
    EXPECT_EQ(gdr_unmap(s.gdr, unknown, s.mapped, BYTES), EINVAL);
    EXPECT_EQ(gdr_unmap(s.gdr, s.handle, s.mapped, BYTES), 0);
    EXPECT_EQ(gdr_unmap(s.gdr, s.handle, s.mapped, BYTES), EINVAL);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped, &s, 8), EINVAL);
    EXPECT_EQ(gdr_map(s.gdr, s.handle, &again, BYTES + 1), EINVAL);
    EXPECT_EQ(gdr_map(s.gdr, s.handle, &again, 0), EINVAL);
    EXPECT_EQ(gdr_map(s.gdr, s.handle, NULL, BYTES), EINVAL);
    EXPECT_EQ(gdr_map(NULL, s.handle, &again, BYTES), EINVAL);
    EXPECT_EQ(gdr_map(s.gdr, unknown, &again, BYTES), EINVAL);
    EXPECT_EQ(gdr_map(s.gdr, s.handle, &again, 4096), 0);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped + 4089, &s, 8), EINVAL);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped + 4088, &s, 8), 0);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, MapsTheMemoryOfEachGpuElsewhere)
{
    struct setup s;
    void *device;
    uint8_t *mapped;
    gdr_mh_t handle;
    setup_init(&s); // device 1
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&device, BYTES), cudaSuccess);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)device, BYTES, 0, 0, &handle), 0);
    EXPECT_EQ(gdr_map(s.gdr, handle, (void **)&mapped, BYTES), 0);
    uintptr_t low = (uintptr_t)(mapped < s.mapped ? mapped : s.mapped);
    uintptr_t high = (uintptr_t)(mapped < s.mapped ? s.mapped : mapped);
    EXPECT_GE(high, low + BYTES);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, CopiesWithinTheMappingAlone)
{
    struct setup s;
    static uint8_t host[64];
    setup_init(&s);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped + BYTES - 8, host, 9), EINVAL);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped - 1, host, 1), EINVAL);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped, NULL, 1), EINVAL);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped, NULL, 0), 0);
    EXPECT_EQ(gdr_copy_from_mapping(s.handle, host, s.mapped + BYTES, 1), EINVAL);
    EXPECT_EQ(gdr_copy_from_mapping(s.handle, NULL, s.mapped, 1), EINVAL);
    EXPECT_EQ(gdr_copy_from_mapping((gdr_mh_t){7}, host, s.mapped, 1), EINVAL);
    s.fixture->gpu[1].pages[0] = CUDA_FIXTURE_PAGE_FREE; // the GPU does not answer
    EXPECT_EQ(gdr_copy_from_mapping(s.handle, host, s.mapped, 1), EIO);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, ClosesTheWindowWhenTheMemoryIsFreed)
{
    struct setup s;
    int flag = 7;
    setup_init(&s);
    EXPECT_EQ(gdr_get_callback_flag(s.gdr, s.handle, &flag), 0);
    EXPECT_EQ(flag, 0);
    EXPECT_EQ(cudaFree(s.device), cudaSuccess);
    EXPECT_EQ(gdr_get_callback_flag(s.gdr, s.handle, &flag), 0);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped, &s, 8), EINVAL);
    EXPECT_EQ(s.fixture->gpu[1].pages[0], CUDA_FIXTURE_PAGE_FREE);
    EXPECT_EQ(gdr_unmap(s.gdr, s.handle, s.mapped, BYTES), 0);
    EXPECT_EQ(gdr_unpin_buffer(s.gdr, s.handle), 0);
    EXPECT_EQ(gdr_get_callback_flag(s.gdr, s.handle, &flag), EINVAL);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, MapsNoMemoryThatWasFreed)
{
    struct setup s;
    void *mapped;
    setup_init(&s);
    EXPECT_EQ(gdr_unmap(s.gdr, s.handle, s.mapped, BYTES), 0);
    EXPECT_EQ(cudaFree(s.device), cudaSuccess);
    EXPECT_EQ(gdr_map(s.gdr, s.handle, &mapped, BYTES), EINVAL);
    cuda_fixture_close(s.fixture);
}

// Small allocations share a page of 64 KB.
TEST(Gdr, LeavesANeighboursWindowOpen)
{
    struct setup s;
    void *first, *second;
    gdr_mh_t one, two;
    int flag = 7;
    setup_init(&s);
    EXPECT_EQ(cudaMalloc(&first, 256), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&second, 256), cudaSuccess);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)first, 256, 0, 0, &one), 0);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)second, 256, 0, 0, &two), 0);
    EXPECT_EQ(cudaFree(first), cudaSuccess);
    EXPECT_EQ(gdr_get_callback_flag(s.gdr, one, &flag), 0);
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(gdr_get_callback_flag(s.gdr, two, &flag), 0);
    EXPECT_EQ(flag, 0);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, EndsWhatIsPinnedWhenItCloses)
{
    struct setup s;
    setup_init(&s);
    gdr_t other = gdr_open();
    EXPECT_EQ(gdr_unpin_buffer(other, s.handle), EINVAL); // belongs to another gdr
    EXPECT_EQ(gdr_close(other), 0);
    EXPECT_EQ(gdr_close(s.gdr), 0);
    EXPECT_EQ(s.fixture->gpu[1].pages[0], CUDA_FIXTURE_PAGE_FREE);
    EXPECT_EQ(gdr_close(s.gdr), EINVAL);
    EXPECT_EQ(gdr_close(NULL), EINVAL);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)s.device, BYTES, 0, 0, &s.handle), EINVAL);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped, &s, 8), EINVAL);
    EXPECT_EQ(cudaFree(s.device), cudaSuccess);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, LeavesTheWindowsOfOthersOpenWhenItCloses)
{
    struct setup s;
    uint64_t word = 0x1122334455667788, back = 0;
    gdr_mh_t others;
    setup_init(&s);
    gdr_t other = gdr_open();
    EXPECT_EQ(gdr_pin_buffer(other, (unsigned long)s.device, 65536, 0, 0, &others), 0);
    EXPECT_EQ(gdr_close(other), 0);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped, &word, sizeof word), 0);
    EXPECT_EQ(gdr_copy_from_mapping(s.handle, &back, s.mapped, sizeof back), 0);
    EXPECT_EQ(back, word);
    EXPECT_EQ(gdr_unpin_buffer(s.gdr, s.handle), 0);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, NamesNoLaterWindowByAHandleThatWasUnpinned)
{
    struct setup s;
    gdr_mh_t later;
    gdr_info_t info;
    setup_init(&s);
    EXPECT_EQ(gdr_unpin_buffer(s.gdr, s.handle), 0);
    EXPECT_EQ(gdr_pin_buffer(s.gdr, (unsigned long)s.device, BYTES, 0, 0, &later), 0);
    EXPECT_EQ(gdr_get_info(s.gdr, s.handle, &info), EINVAL);
    EXPECT_EQ(gdr_unpin_buffer(s.gdr, s.handle), EINVAL);
    EXPECT_EQ(gdr_unpin_buffer(s.gdr, later), 0);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, KeepsProcessesApart)
{
    struct setup s;
    int major = 0, minor = 0;
    setup_init(&s);
    cuda_fixture_process(s.fixture, 1);
    EXPECT_EQ(gdr_copy_to_mapping(s.handle, s.mapped, &s, 8), EINVAL);
    EXPECT_EQ(gdr_close(s.gdr), EINVAL);
    gdr_t mine = gdr_open();
    EXPECT_EQ(gdr_pin_buffer(mine, (unsigned long)s.device, BYTES, 0, 0, &s.handle), EINVAL);
    EXPECT_EQ(gdr_driver_get_version(mine, &major, &minor), 0);
    EXPECT_EQ(major, 2);
    EXPECT_EQ(gdr_driver_get_version(s.gdr, &major, &minor), EINVAL);
    cuda_fixture_close(s.fixture);
}

TEST(Gdr, NeedsAGpu)
{
    EXPECT_NULL(gdr_open());
    struct cuda_fixture *fixture = cuda_fixture_open();
    fixture->gpus = 0;
    EXPECT_NULL(gdr_open());
    cuda_fixture_close(fixture);
}

TEST(Gdr, OpensInTheTimeOfACall)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    uint64_t start_ps = fixture->now_ps;
    EXPECT_NOT_NULL(gdr_open());
    EXPECT_EQ(fixture->now_ps - start_ps, 100000);
    cuda_fixture_close(fixture);
}
