// Devices, ports and their tables (IBA 11.2.1.2), as libibverbs presents them.
#include <cuda_runtime.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "pair.h"

TEST(Device, IsListedWithItsNamesAndItsGuid)
{
    struct pair pair;
    int count = -1;
    pair_init(&pair);
    struct ibv_device **list = ibv_get_device_list(&count);
    EXPECT_EQ(count, 1);
    EXPECT_NULL(list[1]);
    EXPECT_STREQ(ibv_get_device_name(list[0]), "memory0");
    EXPECT_STREQ(list[0]->dev_name, "uverbs0");
    EXPECT_STREQ(list[0]->dev_path, "/sys/class/infiniband_verbs/uverbs0");
    EXPECT_STREQ(list[0]->ibdev_path, "/sys/class/infiniband/memory0");
    EXPECT_EQ(list[0]->node_type, IBV_NODE_CA);
    EXPECT_EQ(list[0]->transport_type, IBV_TRANSPORT_IB);
    EXPECT_EQ(ibv_get_device_index(list[0]), 0);
    EXPECT_EQ(be64toh(ibv_get_device_guid(list[0])), 0x0002c90300000100);
    ibv_free_device_list(list);
    pair_fini(&pair);
}

TEST(Device, IsNotFoundOutsideAProcess)
{
    struct pair pair;
    pair_init(&pair);
    int count = -1;
    pair.fixture->current = NULL;
    EXPECT_NULL(ibv_get_device_list(&count));
    EXPECT_EQ(errno, ENOSYS);
    EXPECT_EQ(count, 0);
    pair_fini(&pair);
}

TEST(Device, ListIsEmptyWhereTheProcessHasNone)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    int count = -1;
    struct ibv_device **list = ibv_get_device_list(&count);
    EXPECT_EQ(count, 0);
    ASSERT_NOT_NULL(list);
    EXPECT_NULL(list[0]);
    ibv_free_device_list(list);
    cuda_fixture_close(fixture);
}

// The device is not queried earlier.
TEST(Device, IsAskedWhatItIsWhenItIsListed)
{
    struct cuda_fixture *fixture = cuda_fixture_open();
    struct memory_world *world = memory_world_create();
    memory_world_exhaust(world);
    memory_world_join(world, fixture->current);
    EXPECT_NULL(ibv_get_device_list(NULL));
    EXPECT_EQ(errno, ENOMEM);
    struct ibv_device **list = ibv_get_device_list(NULL);
    EXPECT_EQ(be64toh(ibv_get_device_guid(list[0])), 0x0002c90300000100);
    ibv_free_device_list(list);
    cuda_fixture_close(fixture);
    memory_world_destroy(world);
}

TEST(Device, ProcessesHaveTheirOwn)
{
    struct pair pair;
    struct ibv_device_attr attr[2];
    pair_init(&pair);
    EXPECT_EQ(ibv_query_device(pair.side[0].context, &attr[0]), 0);
    EXPECT_EQ(ibv_query_device(pair.side[1].context, &attr[1]), 0);
    EXPECT_NE(attr[0].node_guid, attr[1].node_guid);
    EXPECT_EQ(ibverbs_live(&pair.fixture->processes[1], IBVERBS_CQ), 1);
    pair_fini(&pair);
}

TEST(Device, TellsItsLimits)
{
    struct pair pair;
    struct ibv_device_attr_ex attr;
    const struct ibv_query_device_ex_input wrong = {.comp_mask = 1};
    pair_init(&pair);
    EXPECT_EQ(ibv_query_device_ex(pair.side[0].context, NULL, &attr), 0);
    EXPECT_EQ(attr.orig_attr.max_qp_wr, MEMORY_WR_MAX);
    EXPECT_EQ(attr.orig_attr.max_cqe, MEMORY_CQE_MAX);
    EXPECT_EQ(attr.phys_port_cnt_ex, 1);
    EXPECT_EQ(attr.odp_caps.general_caps, 0);
    EXPECT_EQ(attr.tm_caps.max_num_tags, 0);
    EXPECT_EQ(ibv_query_device_ex(pair.side[0].context, &wrong, &attr), EINVAL);
    pair_fini(&pair);
}

static unsigned descriptors_open(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder != NULL) {
        while (readdir(folder) != NULL) {
            count++;
        }
        (void)closedir(folder);
    }
    return count;
}

// A program may try again and again.
TEST(Device, OpenThatFailsLeavesNoDescriptor)
{
    struct pair pair;
    pair_init(&pair);
    unsigned before = descriptors_open();
    memory_world_exhaust(pair.world);
    EXPECT_NULL(ibv_open_device(pair.side[0].context->device));
    EXPECT_GT(before, 0);
    EXPECT_EQ(descriptors_open(), before);
    pair_fini(&pair);
}

TEST(Device, OpenFailsWhenItHasNoRoom)
{
    struct pair pair;
    pair_init(&pair);
    memory_world_exhaust(pair.world);
    EXPECT_NULL(ibv_open_device(pair.side[0].context->device));
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_EQ(ibverbs_live(&pair.fixture->processes[0], IBVERBS_CONTEXT), 1);
    pair_fini(&pair);
}

TEST(Device, CloseTakesWhatTheProgramLeft)
{
    struct pair pair;
    struct ibv_device *device;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    device = pair.side[0].context->device;
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, ibv_create_comp_channel(context), 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
    EXPECT_NOT_NULL(ibv_create_qp(pd, &init));
    struct ibv_ah_attr path = {.dlid = 2, .port_num = 1};
    EXPECT_NOT_NULL(ibv_reg_mr(pd, pair.side[0].buffer, 8, 0));
    EXPECT_NOT_NULL(ibv_create_ah(pd, &path));
    EXPECT_EQ(ibv_close_device(context), 0);
    EXPECT_EQ(ibverbs_live(&pair.fixture->processes[0], IBVERBS_QP), 1);
    pair_fini(&pair);
}

// A process may end at any point.
TEST(Device, EndOfAProcessFreesEverything)
{
    struct pair pair;
    uint8_t *device;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_RC);
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 64);
    struct ibv_send_wr wr = pair_wr(&pair, IBV_WR_RDMA_WRITE, &sge);
    EXPECT_EQ(pair_send(&pair, &wr), 0);
    EXPECT_EQ(ibv_req_notify_cq(pair.side[0].cq, 0), 0);
    EXPECT_EQ(cudaMalloc((void **)&device, 4096), cudaSuccess);
    EXPECT_NOT_NULL(ibv_reg_mr(pair.side[0].pd, device, 4096, IBV_ACCESS_LOCAL_WRITE));
    EXPECT_EQ(memory_world_abandoned(pair.world), 0);
    cuda_fixture_close(pair.fixture);
    EXPECT_EQ(memory_world_abandoned(pair.world), 2);
    EXPECT_EQ(memory_world_live(pair.world), 0);
    memory_world_destroy(pair.world);
    pair_free(&pair);
}

// --- ports ----------------------------------------------------------------------------------------------------------

TEST(Port, TellsItsAttributes)
{
    struct pair pair;
    struct ibv_port_attr attr;
    pair_init(&pair);
    EXPECT_EQ(ibv_query_port(pair.side[1].context, 1, &attr), 0);
    EXPECT_EQ(attr.lid, 2);
    EXPECT_EQ(attr.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(attr.max_msg_sz, MEMORY_MESSAGE_MAX);
    EXPECT_EQ(attr.link_layer, IBV_LINK_LAYER_INFINIBAND);
    EXPECT_EQ(attr.port_cap_flags2, IBV_PORT_INFO_EXT_SUP);
    memory_world_cable(pair.world, 2, false);
    EXPECT_EQ(ibv_query_port(pair.side[1].context, 1, &attr), 0);
    EXPECT_EQ(attr.state, IBV_PORT_DOWN);
    pair_fini(&pair);
}

TEST(Port, NumbersCountFromOne)
{
    struct pair pair;
    struct ibv_port_attr attr;
    union ibv_gid gid;
    pair_init(&pair);
    EXPECT_EQ(ibv_query_port(pair.side[0].context, 0, &attr), EINVAL);
    EXPECT_EQ(ibv_query_port(pair.side[0].context, 2, &attr), EINVAL);
    EXPECT_EQ(ibv_query_gid(pair.side[0].context, 2, 0, &gid), -1);
    EXPECT_EQ(errno, EINVAL);
    pair_fini(&pair);
}

// Programs built before port_cap_flags2 existed call the function itself, with the shorter struct.
#undef ibv_query_port
TEST(Port, WritesNoFurtherThanOldProgramsExpect)
{
    struct pair pair;
    struct ibv_port_attr attr;
    pair_init(&pair);
    memset(&attr, 0x5a, sizeof attr);
    EXPECT_EQ(ibv_query_port(pair.side[0].context, 1, (struct _compat_ibv_port_attr *)(void *)&attr), 0);
    EXPECT_EQ(attr.lid, 1);
    EXPECT_EQ(attr.port_cap_flags2, 0x5a5a);
    pair_fini(&pair);
}

TEST(Port, HasOneGid)
{
    struct pair pair;
    union ibv_gid gid;
    struct ibv_gid_entry entry, table[2];
    pair_init(&pair);
    struct ibv_context *context = pair.side[0].context;
    EXPECT_EQ(ibv_query_gid(context, 1, 0, &gid), 0);
    EXPECT_EQ(be64toh(gid.global.subnet_prefix), 0xfe80000000000000);
    EXPECT_EQ(be64toh(gid.global.interface_id), 0x0002c90300000101);
    EXPECT_EQ(ibv_query_gid(context, 1, 1, &gid), -1);
    EXPECT_EQ(ibv_query_gid(context, 1, -1, &gid), -1);
    EXPECT_EQ(ibv_query_gid_ex(context, 1, 0, &entry, 0), 0);
    EXPECT_EQ(entry.gid_type, IBV_GID_TYPE_IB);
    EXPECT_EQ(entry.port_num, 1);
    EXPECT_MEMEQ(&entry.gid, &gid, sizeof gid);
    EXPECT_EQ(ibv_query_gid_ex(context, 1, 1, &entry, 0), EINVAL);
    EXPECT_EQ(ibv_query_gid_ex(context, 1, 0, &entry, 1), EOPNOTSUPP);
    EXPECT_EQ(ibv_query_gid_table(context, table, 2, 0), 1);
    EXPECT_EQ(ibv_query_gid_table(context, table, 0, 0), -EINVAL);
    EXPECT_EQ(ibv_query_gid_table(context, table, 2, 1), -EOPNOTSUPP);
    pair_fini(&pair);
}

TEST(Port, HasTheDefaultPartitionKey)
{
    struct pair pair;
    __be16 pkey;
    pair_init(&pair);
    EXPECT_EQ(ibv_query_pkey(pair.side[0].context, 1, 0, &pkey), 0);
    EXPECT_EQ(be16toh(pkey), 0xffff);
    EXPECT_EQ(ibv_query_pkey(pair.side[0].context, 1, 1, &pkey), -1);
    EXPECT_EQ(ibv_get_pkey_index(pair.side[0].context, 1, htobe16(0xffff)), 0);
    EXPECT_EQ(ibv_get_pkey_index(pair.side[0].context, 1, htobe16(0x7fff)), -1);
    pair_fini(&pair);
}
