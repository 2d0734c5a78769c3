// Protection domains and memory regions (IBA 10.2.3, 10.6).
#include <cuda_runtime.h>
#include <errno.h>
#include <string.h>

#include "pair.h"

enum {
    LW = IBV_ACCESS_LOCAL_WRITE,
    RW = IBV_ACCESS_REMOTE_WRITE,
    RR = IBV_ACCESS_REMOTE_READ,
    RA = IBV_ACCESS_REMOTE_ATOMIC
};

// 11.2.1.6
TEST(ProtectionDomain, IsBusyWhileSomethingUsesIt)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_pd *pd = ibv_alloc_pd(pair.side[0].context);
    struct ibv_mr *mr = ibv_reg_mr(pd, pair.side[0].buffer, 8, 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
    struct ibv_ah_attr attr = {.dlid = 2, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_destroy_ah(ah), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    pair_fini(&pair);
}

TEST(ProtectionDomain, IsBusyWithAQueuePair)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_pd *pd = ibv_alloc_pd(pair.side[0].context);
    struct ibv_qp_init_attr init = pair_qp_attr(&pair.side[0], IBV_QPT_RC);
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
    pair_fini(&pair);
}

TEST(ProtectionDomain, IsRefusedWhenTheDeviceHasNoRoom)
{
    struct pair pair;
    pair_init(&pair);
    memory_world_exhaust(pair.world);
    EXPECT_NULL(ibv_alloc_pd(pair.side[0].context));
    EXPECT_EQ(errno, ENOMEM);
    pair_fini(&pair);
}

// --- regions --------------------------------------------------------------------------------------------------------

static int register_errno(struct pair *pair, void *address, size_t bytes, int access)
{
    errno = 0;
    struct ibv_mr *mr = ibv_reg_mr(pair->side[0].pd, address, bytes, access);
    if (mr != NULL) {
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
    }
    return mr != NULL ? 0 : errno;
}

// 10.6.3: remote write and atomic rights require the local write right.
TEST(Region, WhoLetsOthersWriteLetsItselfWrite)
{
    struct pair pair;
    pair_init(&pair);
    void *buffer = pair.side[0].buffer;
    for (int access = 0; access < 16; access++) {
        bool legal = (access & (RW | RA)) == 0 || (access & LW) != 0;
        EXPECT_EQ(register_errno(&pair, buffer, 64, access), legal ? 0 : EINVAL);
    }
    pair_fini(&pair);
}

TEST(Region, HasOnlyRightsThatExist)
{
    struct pair pair;
    pair_init(&pair);
    void *buffer = pair.side[0].buffer;
    EXPECT_EQ(register_errno(&pair, buffer, 64, 1 << 15), EINVAL);
    EXPECT_EQ(register_errno(&pair, buffer, 64, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
    EXPECT_EQ(register_errno(&pair, buffer, 64, IBV_ACCESS_ZERO_BASED), EOPNOTSUPP);
    EXPECT_EQ(register_errno(&pair, buffer, 64, IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB), 0);
    EXPECT_EQ(register_errno(&pair, buffer, 64, LW | IBV_ACCESS_RELAXED_ORDERING), 0);
    pair_fini(&pair);
}

TEST(Region, HasBytesAndDoesNotWrap)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_EQ(register_errno(&pair, pair.side[0].buffer, 0, LW), EINVAL);
    EXPECT_EQ(register_errno(&pair, (void *)(UINTPTR_MAX - 63), 64, LW), EINVAL);
    EXPECT_EQ(register_errno(&pair, pair.side[0].buffer, 1, LW), 0);
    memory_world_exhaust(pair.world);
    EXPECT_EQ(register_errno(&pair, pair.side[0].buffer, 1, LW), ENOMEM);
    pair_fini(&pair);
}

TEST(Region, TellsWhereItIsAndHasKeysOfItsOwn)
{
    struct pair pair;
    pair_init(&pair);
    uint8_t *buffer = pair.side[0].buffer;
    struct ibv_mr *mr = ibv_reg_mr(pair.side[0].pd, buffer + 100, 200, LW | RR);
    EXPECT_EQ(mr->addr, buffer + 100);
    EXPECT_EQ(mr->pd, pair.side[0].pd);
    EXPECT_EQ(mr->context, pair.side[0].context);
    EXPECT_EQ(mr->length, 200);
    EXPECT_NE(mr->lkey, pair.side[0].mr->lkey);
    EXPECT_NE(mr->rkey, pair.side[0].mr->rkey);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    pair_fini(&pair);
}

// 10.6.3: the same memory may be in many regions, each with its own rights.
TEST(Region, MayOverlapAnother)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_mr *narrow = ibv_reg_mr(pair.side[1].pd, pair.side[1].buffer, PAIR_BYTES, LW | RR);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    wr.wr.rdma.rkey = narrow->rkey;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(ibv_dereg_mr(narrow), 0);
    pair_fini(&pair);
}

TEST(Region, MayHaveAnAddressOfItsOwn)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    uint8_t *target = pair.side[1].buffer;
    struct ibv_mr *moved = ibv_reg_mr_iova(pair.side[1].pd, target, 64, 0x7000, LW | RW);
    EXPECT_NULL(ibv_reg_mr_iova(pair.side[1].pd, target, 64, 0x7008, LW | RW));
    EXPECT_EQ(errno, EINVAL);
    memset(pair.side[0].buffer, 0xab, 8);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma.rkey = moved->rkey;
    wr.wr.rdma.remote_addr = 0x7010;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_EQ(target[0x10], 0xab);
    EXPECT_EQ(ibv_dereg_mr(moved), 0);
    pair_fini(&pair);
}

// An address that peers name is one of 64 bits, so that the last byte of a region is not before its first.
TEST(Region, AddressOfItsOwnDoesNotWrap)
{
    struct pair pair;
    pair_init(&pair);
    uint8_t *target = pair.side[0].buffer; // at the start of a page, as the addresses below
    struct ibv_mr *last = ibv_reg_mr_iova(pair.side[0].pd, target, 2048, UINT64_MAX - 4095, LW);
    EXPECT_NOT_NULL(last);
    EXPECT_EQ(last != NULL ? ibv_dereg_mr(last) : 0, 0);
    errno = 0;
    EXPECT_NULL(ibv_reg_mr_iova(pair.side[0].pd, target, 8192, UINT64_MAX - 4095, LW));
    EXPECT_EQ(errno, EINVAL);
    pair_fini(&pair);
}

// Requests that name a deregistered region fail when its key is looked up (11.6.2).
TEST(Region, MayGoWhileRequestsNameIt)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_mr *mr = ibv_reg_mr(pair.side[1].pd, pair.side[1].buffer, 64, LW);
    struct ibv_sge sge = {(uintptr_t)pair.side[1].buffer, 64, mr->lkey};
    struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;
    EXPECT_EQ(ibv_post_recv(pair.side[1].qp, &receive, &bad), 0);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    struct ibv_sge from = pair_sge(&pair.side[0], 0, 8);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_SEND, &from);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_REM_OP_ERR);
    (void)pair_expect_wc(&pair.side[1], 9, IBV_WC_LOC_PROT_ERR);
    pair_fini(&pair);
}

// --- memory of GPUs -------------------------------------------------------------------------------------------------

TEST(GpuRegion, IsReachedThroughItsWindow)
{
    struct pair pair;
    uint8_t *device;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    cuda_fixture_process(pair.fixture, 1);
    EXPECT_EQ(cudaMalloc((void **)&device, 200000), cudaSuccess);
    struct ibv_mr *mr = ibv_reg_mr(pair.side[1].pd, device + 70000, 100000, LW | RW);
    ASSERT_NOT_NULL(mr);
    cuda_fixture_fill(pair.side[0].buffer, 1000, 3);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 1000);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    wr.wr.rdma.remote_addr = (uintptr_t)device + 130000;
    wr.wr.rdma.rkey = mr->rkey;
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    (void)pair_expect_wc(&pair.side[0], 1, IBV_WC_SUCCESS);
    EXPECT_MEMEQ(cuda_fixture_device(pair.fixture, device) + 130000, pair.side[0].buffer, 1000);
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    pair_fini(&pair);
}

TEST(GpuRegion, LiesInOneAllocation)
{
    struct pair pair;
    uint8_t *device;
    pair_init(&pair);
    EXPECT_EQ(cudaMalloc((void **)&device, 65536), cudaSuccess);
    EXPECT_EQ(register_errno(&pair, device, 65537, LW), EFAULT);
    EXPECT_EQ(register_errno(&pair, device, 65536, LW), 0);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    pair_fini(&pair);
}

TEST(GpuRegion, IsRefusedWhenTheWindowIsFull)
{
    struct pair pair;
    uint8_t *device;
    pair_init(&pair);
    EXPECT_EQ(cudaMalloc((void **)&device, (CUDA_FIXTURE_BAR_PAGES + 1) * 65536), cudaSuccess);
    EXPECT_EQ(register_errno(&pair, device, (CUDA_FIXTURE_BAR_PAGES + 1) * 65536, LW), ENOMEM);
    EXPECT_EQ(register_errno(&pair, device, CUDA_FIXTURE_BAR_PAGES * 65536, LW), 0);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    pair_fini(&pair);
}

TEST(GpuRegion, GivesItsPartOfTheWindowBack)
{
    struct pair pair;
    uint8_t *device;
    pair_init(&pair);
    EXPECT_EQ(cudaMalloc((void **)&device, CUDA_FIXTURE_BAR_PAGES * 65536), cudaSuccess);
    EXPECT_EQ(register_errno(&pair, device, CUDA_FIXTURE_BAR_PAGES * 65536, LW), 0);
    EXPECT_EQ(register_errno(&pair, device, CUDA_FIXTURE_BAR_PAGES * 65536, RW), EINVAL);
    memory_world_exhaust(pair.world);
    EXPECT_EQ(register_errno(&pair, device, CUDA_FIXTURE_BAR_PAGES * 65536, LW), ENOMEM);
    EXPECT_EQ(register_errno(&pair, device, CUDA_FIXTURE_BAR_PAGES * 65536, LW), 0);
    EXPECT_EQ(cudaFree(device), cudaSuccess);
    pair_fini(&pair);
}
