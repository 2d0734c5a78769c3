// An HCA's commands, work requests and doorbells, from a process that writes its rings itself. Whatever it does, its own
// requests end, the neighbour's queue pair works, and no packet or thread is left over. It sends to a queue pair that was
// meant for it, and not to the neighbours': InfiniBand's requests do not name their sender, so a port whose process
// knows the number and the PSN of a reliable connection can break it, on a real adapter as well.
#include <string.h>

#include "fuzz.h"
#include "tests/support/hca_fixture.h"

enum { RECORDS = 0, EVENTS = 4096, COMPLETIONS = 8192, SENDS = 16384, RECEIVES = 32768, BYTES = 65536 };
enum { STRIDE = 256, ENTRIES = 16, OPS_MAX = 100 };
#define IOVA 0x10000u

static struct raw {
    struct hca_fixture fixture;
    struct hca_fixture_process *far, *near, *process; // near and far: the neighbours, which behave
    struct hca_fixture_qp a, b, peer;                 // peer: of the hostile process's queue pair
    struct fuzz_input input;
    uint8_t *bytes;
    uint64_t bus;
    uint32_t pd, uar, eq, cq, mr, qp;
} raw;

static uint32_t commanded(struct hca_command command)
{
    const struct backend *backend = &raw.process->backend;
    return backend->ops->hca_command(backend->ctx, &command) == 0 ? command.number : 0;
}

static struct hca_qp_init qp_init(uint32_t type)
{
    return (struct hca_qp_init){.type = type,
                                .eqn = raw.eq,
                                .pdn = raw.pd,
                                .uar = raw.uar,
                                .send_cqn = raw.cq,
                                .receive_cqn = raw.cq,
                                .send_base = raw.bus + SENDS,
                                .send_entries = ENTRIES,
                                .send_stride_bytes = STRIDE,
                                .receive_base = raw.bus + RECEIVES,
                                .receive_record = raw.bus + RECORDS + 16,
                                .receive_entries = ENTRIES,
                                .receive_stride_bytes = 64};
}

static void qp_ready(uint32_t qpn)
{
    static const uint32_t masks[] = {HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS,
                                     HCA_QP_STATE | HCA_QP_PATH | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
                                         HCA_QP_RECEIVE_PSN | HCA_QP_MAX_DEST_RD | HCA_QP_MIN_RNR_TIMER,
                                     HCA_QP_STATE | HCA_QP_TIMEOUT | HCA_QP_RETRY_COUNT | HCA_QP_RNR_RETRY |
                                         HCA_QP_SEND_PSN | HCA_QP_MAX_RD_ATOMIC};
    struct hca_qp_attr attr = hca_fixture_attr(&raw.peer);
    attr.port = 1;
    attr.timeout = 1;
    attr.retry_count = 1;
    attr.rnr_retry = 1;
    for (unsigned i = 0; i < 3; i++) {
        attr.state = (enum hca_qp_state)(HCA_INIT + i);
        (void)commanded((struct hca_command){
            .id = HCA_CMD_QP_MODIFY, .number = qpn, .qp_modify = {.mask = masks[i], .attr = attr}});
    }
}

static void objects_make(void)
{
    const struct backend *backend = &raw.process->backend;
    struct backend_buffer memory;
    EXPECT_EQ(backend->ops->alloc_pinned(backend->ctx, BYTES, &memory), 0);
    raw.bytes = memory.address;
    raw.bus = memory.bus_address;
    raw.pd = commanded((struct hca_command){.id = HCA_CMD_PD_CREATE});
    raw.uar = commanded((struct hca_command){.id = HCA_CMD_UAR_ALLOC});
    raw.eq = commanded((struct hca_command){
        .id = HCA_CMD_EQ_CREATE, .eq_create = {.base = raw.bus + EVENTS, .record = raw.bus + RECORDS, .entries = 64}});
    raw.cq = commanded((struct hca_command){.id = HCA_CMD_CQ_CREATE,
                                            .cq_create = {.eqn = raw.eq,
                                                          .uar = raw.uar,
                                                          .base = raw.bus + COMPLETIONS,
                                                          .record = raw.bus + RECORDS + 8,
                                                          .entries = 64}});
    raw.mr = commanded((struct hca_command){
        .id = HCA_CMD_MR_REGISTER,
        .mr_register = {.pdn = raw.pd, .iova = IOVA, .bytes = BYTES, .access = EVERY_ACCESS, .bus_address = raw.bus}});
    raw.qp = commanded((struct hca_command){.id = HCA_CMD_QP_CREATE, .qp_create = qp_init(HCA_RC)});
    qp_ready(raw.qp);
    struct hca_qp_attr to_hostile = hca_fixture_attr(&raw.a);
    to_hostile.dest_qpn = raw.qp;
    hca_fixture_connect_with(&raw.peer, &to_hostile);
}

static void doorbell_ring(uint64_t offset, uint64_t value)
{
    const struct backend *backend = &raw.process->backend;
    backend->ops->write(backend->ctx, BACKEND_BAR_HCA_UAR, offset, value, 8);
}

// A request of any bytes whose first fields are likely ones.
static void request_write(void)
{
    uint8_t *to = raw.bytes + SENDS + fuzz_below(&raw.input, ENTRIES) * STRIDE;
    struct hca_wqe_control control = {.opcode = (uint8_t)fuzz_below(&raw.input, HCA_OPCODES + 1), .qpn = raw.qp};
    control.units = (uint8_t)fuzz_below(&raw.input, 18);
    control.flags = (uint8_t)fuzz_take(&raw.input, 1);
    memcpy(to, &control, sizeof control);
    for (uint32_t at = sizeof control; at + sizeof(struct hca_wqe_data) <= (uint32_t)control.units * 16 && at < STRIDE;
         at += sizeof(struct hca_wqe_data)) {
        struct hca_wqe_data data = {.bytes = fuzz_below(&raw.input, 5000),
                                    .lkey =
                                        fuzz_below(&raw.input, 4) != 0 ? raw.mr : (uint32_t)fuzz_take(&raw.input, 4),
                                    .address = IOVA + fuzz_below(&raw.input, 65536)};
        memcpy(to + at, &data, sizeof data);
    }
}

static void memory_write(void)
{
    uint32_t at = fuzz_below(&raw.input, BYTES - 32);
    fuzz_fill(&raw.input, raw.bytes + at, 1 + fuzz_below(&raw.input, 32));
}

// Commands that name objects of others do not come this far (sim/attach/request_hca.c).
static uint32_t own_number(enum hca_object object)
{
    switch (object) {
    case HCA_OBJECT_PD:
        return raw.pd;
    case HCA_OBJECT_UAR:
        return raw.uar;
    case HCA_OBJECT_EQ:
        return raw.eq;
    case HCA_OBJECT_CQ:
        return raw.cq;
    case HCA_OBJECT_MR:
        return raw.mr;
    case HCA_OBJECT_QP:
        return raw.qp;
    default:
        return UINT32_MAX;
    }
}

static void command_make(void)
{
    struct hca_command command;
    memset(&command, 0, sizeof command);
    uint32_t what = fuzz_below(&raw.input, 8);
    command.id = fuzz_below(&raw.input, HCA_COMMANDS + 1);
    if (what == 0) {
        command.id = HCA_CMD_QP_CREATE;
        command.qp_create = qp_init(fuzz_below(&raw.input, 8));
    } else if (what == 1) {
        command.id = HCA_CMD_QP_MODIFY;
        command.qp_modify.mask = (uint32_t)fuzz_take(&raw.input, 4);
        fuzz_fill(&raw.input, &command.qp_modify.attr, sizeof command.qp_modify.attr);
        uint32_t *dest = &command.qp_modify.attr.dest_qpn;
        bool is_neighbour = *dest == hca_qp_number(raw.a.qp) || *dest == hca_qp_number(raw.b.qp);
        *dest = is_neighbour ? hca_qp_number(raw.peer.qp) : *dest;
    } else if (what < 5) {
        fuzz_fill(&raw.input, (uint8_t *)&command + offsetof(struct hca_command, qp_create), 24);
    }
    const struct hca_command_info *info = hca_command_info(command.id);
    command.number = info != NULL ? own_number(info->object) : 0;
    (void)commanded(command);
}

static void op_run(void)
{
    switch (fuzz_below(&raw.input, 8)) {
    case 0:
        memory_write();
        return;
    case 1:
    case 2:
        request_write();
        return;
    case 3:
    case 4:
        doorbell_ring((uint64_t)raw.uar * HCA_UAR_BYTES + HCA_UAR_SEND_DOORBELL,
                      hca_doorbell_send(raw.qp, fuzz_below(&raw.input, 65536)));
        return;
    case 5:
        doorbell_ring(raw.uar * (uint64_t)HCA_UAR_BYTES + (fuzz_below(&raw.input, HCA_UAR_BYTES) & ~7u),
                      fuzz_take(&raw.input, 8));
        return;
    case 6:
        command_make();
        return;
    }
    sim_thread_sleep(raw.fixture.sim, fuzz_below(&raw.input, 65536) * NS);
}

static void hostile_run(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < OPS_MAX && raw.input.size > 0; i++) {
        op_run();
    }
}

// After all that, the neighbours' queue pairs move their bytes.
static void neighbour_run(void *unused)
{
    (void)unused;
    sim_thread_sleep(raw.fixture.sim, 20000 * US);
    memset(raw.near->memory, 0x5a, 4096);
    EXPECT_EQ(hca_fixture_send(&raw.a, HCA_OP_WRITE, 0, 4096, raw.far, 0), 0);
    EXPECT_EQ(hca_fixture_completion(&raw.a).status, HCA_OK);
    sim_thread_sleep(raw.fixture.sim, 10 * US); // the acknowledgement comes before the bytes are in memory
    EXPECT_MEMEQ(raw.far->memory, raw.near->memory, 4096);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memset(&raw, 0, sizeof raw);
    raw.input = (struct fuzz_input){data, size};
    hca_fixture_init(&raw.fixture, "connectx-qdr");
    raw.near = hca_fixture_process(&raw.fixture, 0);
    raw.far = hca_fixture_process(&raw.fixture, 1);
    raw.process = hca_fixture_process_bare(&raw.fixture, 0);
    raw.a = hca_fixture_qp(raw.near, HCA_RC);
    raw.b = hca_fixture_qp(raw.far, HCA_RC);
    raw.peer = hca_fixture_qp(raw.far, HCA_RC);
    hca_fixture_connect(&raw.a, &raw.b);
    objects_make();
    hca_fixture_spawn(&raw.fixture, "hostile", hostile_run, NULL);
    hca_fixture_spawn(&raw.fixture, "neighbour", neighbour_run, NULL);
    hca_fixture_run(&raw.fixture);
    hca_fixture_fini(&raw.fixture);
    return 0;
}
