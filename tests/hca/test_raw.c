// Commands and requests that no driver makes: objects of a program that writes rings by itself.
#include <errno.h>
#include <string.h>

#include "fixture.h"

enum { STRIDE = 1024, RECORDS = 0, EVENTS = 4096, COMPLETIONS = 8192, SENDS = 16384, RECEIVES = 32768, BYTES = 65536 };
#define IOVA 0x10000u

// Objects of the near process with all their memory in one buffer; its region has every access.
static struct raw {
    const struct backend *backend;
    uint8_t *bytes;
    uint64_t bus;
    uint32_t pd, uar, eq;
} raw;

static uint32_t created(struct hca_command command)
{
    EXPECT_EQ(raw.backend->ops->hca_command(raw.backend->ctx, &command), 0);
    return command.number;
}

static int destroyed(enum hca_command_id id, uint32_t number)
{
    return raw.backend->ops->hca_command(raw.backend->ctx, &(struct hca_command){.id = id, .number = number});
}

static uint32_t eq_created(uint64_t base, uint64_t record)
{
    return created((struct hca_command){
        .id = HCA_CMD_EQ_CREATE, .eq_create = {.base = raw.bus + base, .record = raw.bus + record, .entries = 64}});
}

static uint32_t cq_created(uint32_t eq, uint32_t uar)
{
    return created((struct hca_command){
        .id = HCA_CMD_CQ_CREATE,
        .cq_create = {
            .eqn = eq, .uar = uar, .base = raw.bus + COMPLETIONS, .record = raw.bus + RECORDS + 8, .entries = 64}});
}

static struct hca_qp_init qp_init(uint32_t cq)
{
    return (struct hca_qp_init){.type = HCA_RC,
                                .eqn = raw.eq,
                                .pdn = raw.pd,
                                .uar = raw.uar,
                                .send_cqn = cq,
                                .receive_cqn = cq,
                                .send_base = raw.bus + SENDS,
                                .send_entries = 4,
                                .send_stride_bytes = STRIDE,
                                .receive_base = raw.bus + RECEIVES,
                                .receive_record = raw.bus + RECORDS + 16,
                                .receive_entries = 4,
                                .receive_stride_bytes = 64};
}

static void raw_init(void)
{
    struct backend_buffer memory;
    raw = (struct raw){.backend = &fixture.near->backend};
    EXPECT_EQ(raw.backend->ops->alloc_pinned(raw.backend->ctx, BYTES, &memory), 0);
    raw.bytes = memory.address;
    raw.bus = memory.bus_address;
    raw.pd = created((struct hca_command){.id = HCA_CMD_PD_CREATE});
    raw.uar = created((struct hca_command){.id = HCA_CMD_UAR_ALLOC});
    raw.eq = eq_created(EVENTS, RECORDS);
}

// --- objects that name each other ------------------------------------------------------------------------------------

static void name_and_end(void *arg)
{
    (void)arg;
    raw_init();
    uint32_t cq_eq = eq_created(EVENTS + 2048, RECORDS + 32); // the completions have event queue and page of their own
    uint32_t cq_uar = created((struct hca_command){.id = HCA_CMD_UAR_ALLOC});
    uint32_t cq = cq_created(cq_eq, cq_uar);
    uint32_t srq = created((struct hca_command){.id = HCA_CMD_SRQ_CREATE,
                                                .srq_create = {.eqn = raw.eq,
                                                               .pdn = raw.pd,
                                                               .base = raw.bus + RECEIVES,
                                                               .record = raw.bus + RECORDS + 24,
                                                               .entries = 16,
                                                               .stride_bytes = 64}});
    EXPECT_EQ(destroyed(HCA_CMD_EQ_DESTROY, raw.eq), -EBUSY); // the shared receive queue's
    struct hca_qp_init init = qp_init(cq);
    init.srqn = srq;
    uint32_t qp = created((struct hca_command){.id = HCA_CMD_QP_CREATE, .qp_create = init});
    EXPECT_EQ(destroyed(HCA_CMD_SRQ_DESTROY, srq), -EBUSY);
    EXPECT_EQ(destroyed(HCA_CMD_UAR_FREE, raw.uar), -EBUSY);
    EXPECT_EQ(destroyed(HCA_CMD_UAR_FREE, cq_uar), -EBUSY);
    EXPECT_EQ(destroyed(HCA_CMD_EQ_DESTROY, cq_eq), -EBUSY);
    EXPECT_EQ(destroyed(HCA_CMD_QP_DESTROY, qp), 0);
    EXPECT_EQ(destroyed(HCA_CMD_UAR_FREE, raw.uar), 0);
    EXPECT_EQ(destroyed(HCA_CMD_EQ_DESTROY, raw.eq), -EBUSY);
    EXPECT_EQ(destroyed(HCA_CMD_SRQ_DESTROY, srq), 0);
    EXPECT_EQ(destroyed(HCA_CMD_EQ_DESTROY, raw.eq), 0);
    EXPECT_EQ(destroyed(HCA_CMD_CQ_DESTROY, cq), 0);
    EXPECT_EQ(destroyed(HCA_CMD_UAR_FREE, cq_uar), 0);
    EXPECT_EQ(destroyed(HCA_CMD_EQ_DESTROY, cq_eq), 0);
    EXPECT_EQ(destroyed(HCA_CMD_PD_DESTROY, raw.pd), 0);
}

TEST(Raw, AnObjectThatAnotherOneNamesIsBusy)
{
    fixture_init(HCA_RC);
    fixture_run(name_and_end, NULL);
    hca_fixture_fini(&fixture.base);
}

static void domain_with_a_queue(void *arg)
{
    (void)arg;
    raw_init();
    uint32_t cq = cq_created(raw.eq, raw.uar), xrcd = created((struct hca_command){.id = HCA_CMD_XRCD_CREATE});
    uint32_t srq = created((struct hca_command){.id = HCA_CMD_SRQ_CREATE,
                                                .srq_create = {.eqn = raw.eq,
                                                               .pdn = raw.pd,
                                                               .xrcdn = xrcd,
                                                               .cqn = cq,
                                                               .base = raw.bus + RECEIVES,
                                                               .record = raw.bus + RECORDS + 24,
                                                               .entries = 16,
                                                               .stride_bytes = 64}});
    EXPECT_EQ(destroyed(HCA_CMD_XRCD_DESTROY, xrcd), -EBUSY);
    EXPECT_EQ(destroyed(HCA_CMD_SRQ_DESTROY, srq), 0);
    EXPECT_EQ(destroyed(HCA_CMD_XRCD_DESTROY, xrcd), 0);
}

TEST(Raw, AnXrcDomainWithAReceiveQueueIsBusy)
{
    fixture_init(HCA_RC);
    fixture_run(domain_with_a_queue, NULL);
    hca_fixture_fini(&fixture.base);
}

// --- requests --------------------------------------------------------------------------------------------------------

static void qp_ready(uint32_t qpn, const struct hca_fixture_qp *peer)
{
    static const uint32_t masks[] = {HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS,
                                     HCA_QP_STATE | HCA_QP_PATH | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
                                         HCA_QP_RECEIVE_PSN | HCA_QP_MAX_DEST_RD | HCA_QP_MIN_RNR_TIMER,
                                     HCA_QP_STATE | HCA_QP_TIMEOUT | HCA_QP_RETRY_COUNT | HCA_QP_RNR_RETRY |
                                         HCA_QP_SEND_PSN | HCA_QP_MAX_RD_ATOMIC};
    struct hca_qp_attr attr = hca_fixture_attr(peer);
    for (unsigned i = 0; i < 3; i++) {
        attr.state = (enum hca_qp_state)(HCA_INIT + i);
        (void)created((struct hca_command){
            .id = HCA_CMD_QP_MODIFY, .number = qpn, .qp_modify = {.mask = masks[i], .attr = attr}});
    }
}

static uint32_t region_created(void)
{
    return created((struct hca_command){
        .id = HCA_CMD_MR_REGISTER,
        .mr_register = {.pdn = raw.pd, .iova = IOVA, .bytes = BYTES, .access = EVERY_ACCESS, .bus_address = raw.bus}});
}

// More segments than the HCA declares.
static void too_many_segments(void *arg)
{
    enum { SEGMENTS = 60 };
    struct hca_wqe_control control = {.opcode = HCA_OP_SEND};
    struct hca_wqe_data data = {.bytes = 8};
    struct hca_cqe cqe;
    (void)arg;
    raw_init();
    data.lkey = region_created();
    control.qpn =
        created((struct hca_command){.id = HCA_CMD_QP_CREATE, .qp_create = qp_init(cq_created(raw.eq, raw.uar))});
    control.units = (uint8_t)((sizeof control + SEGMENTS * sizeof data) / HCA_WQE_UNIT_BYTES);
    qp_ready(control.qpn, &fixture.b);
    memcpy(raw.bytes + SENDS, &control, sizeof control);
    for (unsigned i = 0; i < SEGMENTS; i++) {
        data.address = IOVA + RECEIVES + i;
        memcpy(raw.bytes + SENDS + sizeof control + i * sizeof data, &data, sizeof data);
    }
    raw.backend->ops->write(raw.backend->ctx, BACKEND_BAR_HCA_UAR, raw.uar * HCA_UAR_BYTES + HCA_UAR_SEND_DOORBELL,
                            hca_doorbell_send(control.qpn, 1), 8);
    sim_thread_sleep(fixture.base.sim, 50 * US);
    memcpy(&cqe, raw.bytes + COMPLETIONS, sizeof cqe);
    EXPECT_EQ(cqe.qpn, control.qpn);
    EXPECT_EQ(cqe.status, HCA_LOCAL_OPERATION);
}

TEST(Raw, ARequestOfTooManySegmentsIsRefusedAsAWhole)
{
    fixture_init(HCA_RC);
    fixture_run(too_many_segments, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "port_xmit_packets"), 0);
    hca_fixture_fini(&fixture.base);
}

// --- receives --------------------------------------------------------------------------------------------------------

static struct hca_fixture_qp sender;

static enum hca_status send_to(uint32_t qpn, uint32_t producer)
{
    const struct hca_qp_attr reset = {.state = HCA_RESET};
    struct hca_qp_attr attr = hca_fixture_attr(&sender); // on the same node
    const uint64_t record = producer;
    attr.dest_qpn = qpn;
    memcpy(raw.bytes + RECORDS + 16, &record, sizeof record);
    (void)created((struct hca_command){
        .id = HCA_CMD_QP_MODIFY, .number = qpn, .qp_modify = {.mask = HCA_QP_STATE, .attr = reset}});
    EXPECT_EQ(hca_qp_modify(sender.qp, HCA_QP_STATE, &reset), 0);
    qp_ready(qpn, &sender);
    hca_fixture_connect_with(&sender, &attr);
    EXPECT_EQ(hca_fixture_send(&sender, HCA_OP_SEND, 0, 64, fixture.near, 0), 0);
    return hca_fixture_completion(&sender).status;
}

// The count in the record is wrong at first: more entries than the ring has.
static void count_and_reset(void *arg)
{
    const struct hca_wqe_receive head = {.segments = 1};
    struct hca_wqe_data data = {.address = IOVA + RECEIVES + 1024, .bytes = 64};
    (void)arg;
    raw_init();
    data.lkey = region_created();
    memcpy(raw.bytes + RECEIVES, &head, sizeof head);
    memcpy(raw.bytes + RECEIVES + sizeof head, &data, sizeof data);
    uint32_t qpn =
        created((struct hca_command){.id = HCA_CMD_QP_CREATE, .qp_create = qp_init(cq_created(raw.eq, raw.uar))});
    EXPECT_EQ(send_to(qpn, 5), HCA_REMOTE_OPERATION);
    EXPECT_EQ(send_to(qpn, 1), HCA_OK);
    EXPECT_MEMEQ(raw.bytes + RECEIVES + 1024, fixture.near->memory, 64);
}

TEST(Raw, AReceiveQueueThatFailedWorksAgainAfterAReset)
{
    fixture_init(HCA_RC);
    sender = hca_fixture_qp(fixture.near, HCA_RC);
    fixture_run(count_and_reset, NULL);
    hca_fixture_fini(&fixture.base);
}
