// Features that no device has are refused; names and rates.
#include <errno.h>

#include "pair.h"

// Calls that return NULL and set errno.
#define EXPECT_NULL_UNSUPPORTED(call)                                                                                  \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        EXPECT_NULL(call);                                                                                             \
        EXPECT_EQ(errno, EOPNOTSUPP);                                                                                  \
    } while (0)

TEST(Unsupported, ObjectsAreNotCreated)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_context *context = pair.side[0].context;
    struct ibv_pd *pd = pair.side[0].pd;
    struct ibv_alloc_dm_attr dm = {.length = 64};
    struct ibv_td_init_attr td = {0};
    struct ibv_parent_domain_init_attr parent = {.pd = pd};
    struct ibv_xrcd_init_attr xrcd = {.comp_mask = 3, .fd = -1};
    struct ibv_qp_open_attr open = {0};
    struct ibv_srq_init_attr_ex srq = {
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD, .srq_type = IBV_SRQT_TM, .pd = pd};
    EXPECT_NULL_UNSUPPORTED(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
    EXPECT_NULL_UNSUPPORTED(ibv_alloc_dm(context, &dm));
    EXPECT_NULL_UNSUPPORTED(ibv_alloc_null_mr(pd));
    EXPECT_NULL_UNSUPPORTED(ibv_alloc_td(context, &td));
    EXPECT_NULL_UNSUPPORTED(ibv_alloc_parent_domain(context, &parent));
    EXPECT_NULL_UNSUPPORTED(ibv_open_xrcd(context, &xrcd));
    EXPECT_NULL_UNSUPPORTED(ibv_open_qp(context, &open));
    EXPECT_NULL_UNSUPPORTED(ibv_create_srq_ex(context, &srq));
    EXPECT_NULL_UNSUPPORTED(ibv_create_flow_action_esp(context, NULL));
    pair_fini(&pair);
}

TEST(Unsupported, WorkQueuesAndCountersAreNotCreated)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_context *context = pair.side[0].context;
    struct ibv_wq_init_attr wq = {.pd = pair.side[0].pd, .cq = pair.side[0].cq};
    struct ibv_rwq_ind_table_init_attr table = {0};
    struct ibv_counters_init_attr counters = {0};
    EXPECT_NULL_UNSUPPORTED(ibv_create_wq(context, &wq));
    EXPECT_NULL_UNSUPPORTED(ibv_create_rwq_ind_table(context, &table));
    EXPECT_NULL_UNSUPPORTED(ibv_create_counters(context, &counters));
    pair_fini(&pair);
}

TEST(Unsupported, NothingIsImported)
{
    struct pair pair;
    pair_init(&pair);
    EXPECT_NULL_UNSUPPORTED(ibv_import_device(3));
    EXPECT_NULL_UNSUPPORTED(ibv_import_pd(pair.side[0].context, 1));
    EXPECT_NULL_UNSUPPORTED(ibv_import_mr(pair.side[0].pd, 1));
    EXPECT_NULL_UNSUPPORTED(ibv_import_dm(pair.side[0].context, 1));
    EXPECT_NULL_UNSUPPORTED(ibv_reg_dmabuf_mr(pair.side[0].pd, 0, 64, 0, 3, IBV_ACCESS_LOCAL_WRITE));
    pair_fini(&pair);
}

TEST(Unsupported, CallsAreRefused)
{
    struct pair pair;
    pair_init(&pair);
    pair_connect(&pair, IBV_QPT_UD);
    struct ibv_qp *qp = pair.side[0].qp;
    union ibv_gid gid = {.raw = {0xff, 0x12}};
    struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE};
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    struct ibv_qp_rate_limit_attr rate = {0};
    struct ibv_ece ece = {.vendor_id = 1};
    struct ibv_sge sge = pair_sge(&pair.side[0], 0, 8);
    EXPECT_EQ(ibv_attach_mcast(qp, &gid, 0xc001), EOPNOTSUPP);
    EXPECT_EQ(ibv_detach_mcast(qp, &gid, 0xc001), EOPNOTSUPP);
    EXPECT_EQ(ibv_modify_cq(pair.side[0].cq, &moderation), EOPNOTSUPP);
    EXPECT_EQ(ibv_query_rt_values_ex(pair.side[0].context, &values), EOPNOTSUPP);
    EXPECT_EQ(ibv_modify_qp_rate_limit(qp, &rate), EOPNOTSUPP);
    EXPECT_EQ(ibv_advise_mr(pair.side[0].pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
    EXPECT_EQ(ibv_set_ece(qp, &ece), EOPNOTSUPP);
    EXPECT_EQ(ibv_query_ece(qp, &ece), EOPNOTSUPP);
    EXPECT_EQ(ece.vendor_id, 0);
    EXPECT_EQ(ibv_resolve_eth_l2_from_gid(pair.side[0].context, NULL, NULL, NULL), EOPNOTSUPP);
    EXPECT_EQ(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
    EXPECT_NULL_UNSUPPORTED(ibv_create_flow(qp, NULL));
    pair_fini(&pair);
}

// The region is unchanged.
TEST(Unsupported, RegionsAreNotRegisteredAgain)
{
    struct pair pair;
    pair_init(&pair);
    struct ibv_mr *mr = pair.side[0].mr;
    const int access = IBV_REREG_MR_CHANGE_ACCESS, translation = IBV_REREG_MR_CHANGE_TRANSLATION;
    EXPECT_EQ(ibv_rereg_mr(mr, access, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EOPNOTSUPP);
    EXPECT_EQ(ibv_rereg_mr(mr, translation, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_rereg_mr(mr, 1 << 9, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(ibv_rereg_mr(mr, translation, NULL, pair.side[0].buffer, 8, 1), IBV_REREG_MR_ERR_INPUT);
    EXPECT_EQ(errno, EINVAL);
    pair_fini(&pair);
}

TEST(Unsupported, ForkIsNoConcern)
{
    EXPECT_EQ(ibv_fork_init(), 0);
    EXPECT_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

// --- names and rates ------------------------------------------------------------------------------------------------

TEST(Names, AreThoseOfLibibverbs)
{
    EXPECT_STREQ(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR), "transport retry counter exceeded");
    EXPECT_STREQ(ibv_wc_status_str(IBV_WC_TM_RNDV_INCOMPLETE), "TM software rendezvous");
    EXPECT_STREQ(ibv_wc_status_str((enum ibv_wc_status)99), "unknown");
    EXPECT_STREQ(ibv_event_type_str(IBV_EVENT_CQ_ERR), "CQ error");
    EXPECT_STREQ(ibv_event_type_str((enum ibv_event_type) - 1), "unknown");
    EXPECT_STREQ(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
    EXPECT_STREQ(ibv_port_state_str((enum ibv_port_state)6), "unknown");
    EXPECT_STREQ(ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter");
    EXPECT_STREQ(ibv_node_type_str((enum ibv_node_type)0), "unknown");
}

// Each code of IBA's static rates and of newer ones, with its lanes.
TEST(Rates, AreMultiplesAndMegabits)
{
    static const struct {
        enum ibv_rate rate;
        int multiple, mbps;
    } known[] = {{IBV_RATE_2_5_GBPS, 1, 2500},  {IBV_RATE_10_GBPS, 4, 10000},  {IBV_RATE_30_GBPS, 12, 30000},
                 {IBV_RATE_5_GBPS, 2, 5000},    {IBV_RATE_20_GBPS, 8, 20000},  {IBV_RATE_40_GBPS, 16, 40000},
                 {IBV_RATE_60_GBPS, 24, 60000}, {IBV_RATE_80_GBPS, 32, 80000}, {IBV_RATE_120_GBPS, 48, 120000}};
    for (unsigned i = 0; i < sizeof known / sizeof known[0]; i++) {
        EXPECT_EQ(ibv_rate_to_mult(known[i].rate), known[i].multiple);
        EXPECT_EQ(ibv_rate_to_mbps(known[i].rate), known[i].mbps);
        EXPECT_EQ(mult_to_ibv_rate(known[i].multiple), known[i].rate);
        EXPECT_EQ(mbps_to_ibv_rate(known[i].mbps), known[i].rate);
    }
    EXPECT_EQ(ibv_rate_to_mbps(IBV_RATE_56_GBPS), 56250);
    EXPECT_EQ(ibv_rate_to_mult(IBV_RATE_56_GBPS), -1);
    EXPECT_EQ(ibv_rate_to_mbps((enum ibv_rate)1), -1);
    EXPECT_EQ(mult_to_ibv_rate(0), IBV_RATE_MAX);
    EXPECT_EQ(mult_to_ibv_rate(3), IBV_RATE_MAX);
    EXPECT_EQ(mbps_to_ibv_rate(1), IBV_RATE_MAX);
}
