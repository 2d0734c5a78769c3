// TLPs of any kind at each kind of endpoint, from a link partner that answers the endpoint's own reads well, wrongly or
// not at all: a root complex with two ports, a GPU that copies, an HCA with a queue pair. Whatever comes, every TLP is
// given back, and memory that an endpoint does not have is not touched.
#include <string.h>

#include "fuzz.h"
#include "models/gpu/gpu.h"
#include "models/hca/hca.h"
#include "models/pcie/root_complex.h"
#include "tests/support/preset.h"

enum { OPS_MAX = 100, MEMORY_BYTES = 65536, MPS = 256, ASKED_MAX = 16, PORTS = 2 };
#define WINDOW      UINT64_C(0x1000000000)
#define WINDOW_STEP UINT64_C(0x100000000)
#define UAR_BASE    UINT64_C(0x6000000000)
#define STEP_PS     (20 * SIM_PS_PER_NS)

// The hostile end of a link.
struct partner {
    pcie_link_t *link;
    pcie_end_t *end;
    pcie_tlp_t *out, **out_end; // what the link refused, in order
    pcie_tlp_t *asked[ASKED_MAX];
    unsigned asked_count;
};

static struct bench {
    sim_t *sim;
    pcie_pool_t *pool;
    struct partner partners[PORTS];
    unsigned partner_count;
    uint8_t memory[MEMORY_BYTES];
    struct fuzz_input input;
    unsigned ops;
    sim_event_t step;
} bench;

// --- the partner -----------------------------------------------------------------------------------------------------

static void partner_ready(void *ctx, pcie_end_t *end)
{
    struct partner *partner = ctx;
    while (partner->out != NULL) {
        pcie_tlp_t *next = partner->out->next;
        if (!pcie_end_offer(end, partner->out)) {
            return;
        }
        partner->out = next;
    }
    partner->out_end = &partner->out;
}

static void offer(struct partner *partner, pcie_tlp_t *tlp)
{
    tlp->next = NULL;
    *partner->out_end = tlp;
    partner->out_end = &tlp->next;
    if (partner->out == tlp) {
        partner_ready(partner, partner->end);
    }
}

static void partner_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct partner *partner = ctx;
    pcie_end_release(end, tlp);
    if (tlp->kind == PCIE_TLP_MRD && partner->asked_count < ASKED_MAX) {
        partner->asked[partner->asked_count++] = tlp;
    } else {
        pcie_tlp_unref(tlp);
    }
}

static const struct pcie_end_ops partner_ops = {.receive = partner_receive, .ready = partner_ready};

// A completion of a read that the endpoint has made; most often what it wants.
static void answer(struct partner *partner)
{
    if (partner->asked_count == 0) {
        return;
    }
    unsigned which = fuzz_below(&bench.input, partner->asked_count);
    pcie_tlp_t *request = partner->asked[which];
    uint32_t whole = pcie_tlp_byte_count(request), kind = fuzz_below(&bench.input, 8);
    uint8_t data[PCIE_PAYLOAD_MAX] = {0};
    if (kind == 0) {
        offer(partner, pcie_tlp_error(request, 1, fuzz_below(&bench.input, 2) == 0 ? PCIE_CPL_UR : PCIE_CPL_CA));
    } else {
        uint32_t offset = 0;
        while (offset < whole) {
            uint32_t room = MPS - (uint32_t)((pcie_tlp_first_byte(request) + offset) % MPS);
            uint32_t bytes = whole - offset < room ? whole - offset : room;
            fuzz_fill(&bench.input, data, bytes < 32 ? bytes : 32);
            offer(partner, pcie_tlp_completion(request, 1, offset, bytes, data));
            offset += kind == 1 && bytes > 4 ? bytes - 4 : bytes;
            if (kind == 2) {
                break;
            }
        }
    }
    if (kind != 3) { // else it is answered again later
        pcie_tlp_unref(request);
        partner->asked[which] = partner->asked[--partner->asked_count];
    }
}

static uint64_t target(void)
{
    static const uint64_t bases[] = {0, WINDOW, WINDOW + WINDOW_STEP, UAR_BASE, MEMORY_BYTES, WINDOW + MEMORY_BYTES};
    uint32_t which = fuzz_below(&bench.input, 8);
    uint64_t base = which < 6 ? bases[which] : fuzz_take(&bench.input, 8);
    return (base + fuzz_take(&bench.input, 2) - (fuzz_below(&bench.input, 4) == 0 ? 256u : 0)) & ~UINT64_C(3);
}

// Any TLP that a link carries: at most the maximum payload, and no request across 4 KiB (a link partner that breaks
// these is not modelled).
static void tlp_send(struct partner *partner)
{
    enum pcie_tlp_kind kind = (enum pcie_tlp_kind)fuzz_below(&bench.input, 4);
    bool data = kind == PCIE_TLP_MWR || kind == PCIE_TLP_CPLD;
    uint16_t dwords = (uint16_t)(1 + fuzz_below(&bench.input, data ? MPS / 4 : 128));
    pcie_tlp_t *tlp = pcie_tlp_blank(bench.pool, kind, data ? dwords : 0);
    tlp->dwords = kind == PCIE_TLP_CPL ? 0 : dwords;
    tlp->requester = fuzz_below(&bench.input, 2) == 0 ? 0x300 : (uint16_t)fuzz_take(&bench.input, 2);
    tlp->tag = (uint8_t)fuzz_below(&bench.input, 64);
    if (kind == PCIE_TLP_MRD || kind == PCIE_TLP_MWR) {
        tlp->address = target();
        if (tlp->address % 4096 + tlp->dwords * 4u > 4096) {
            tlp->address &= ~UINT64_C(4095);
        }
        bool enabled = fuzz_below(&bench.input, 4) != 0;
        tlp->first_be = enabled ? 0xf : (uint8_t)fuzz_below(&bench.input, 16);
        tlp->last_be = dwords == 1 ? 0 : enabled ? 0xf : (uint8_t)fuzz_below(&bench.input, 16);
    } else {
        tlp->cpl_status = kind == PCIE_TLP_CPLD ? PCIE_CPL_SC : PCIE_CPL_UR;
        tlp->lower_address = (uint8_t)fuzz_below(&bench.input, 128);
        tlp->byte_count = (uint16_t)(1 + fuzz_take(&bench.input, 2) % 4096);
    }
    if (data) {
        memset(pcie_tlp_data(tlp), 0, dwords * 4u);
        fuzz_fill(&bench.input, pcie_tlp_data(tlp), dwords * 4u < 16 ? dwords * 4u : 16);
    }
    offer(partner, tlp);
}

static void step_run(void *ctx)
{
    (void)ctx;
    struct partner *partner = &bench.partners[fuzz_below(&bench.input, bench.partner_count)];
    if (bench.input.size == 0 || bench.ops++ == OPS_MAX) {
        return;
    }
    if (fuzz_below(&bench.input, 2) == 0) {
        answer(partner);
    } else {
        tlp_send(partner);
    }
    sim_event_schedule(bench.sim, &bench.step, STEP_PS + fuzz_take(&bench.input, 2) * SIM_PS_PER_NS / 64);
}

// --- endpoints -------------------------------------------------------------------------------------------------------

static pcie_end_t *partner_add(const struct pcie_end_config *endpoint)
{
    static const struct pcie_end_config own = {
        .headers = {8, 8, 8}, .data = {128, 128, 128}, .tx_queue_tlps = 8, .tx_ps = 1000, .rx_ps = 1000};
    const struct pcie_link_config config = {.generation = 2,
                                            .lanes = 8,
                                            .mps_bytes = MPS,
                                            .flight_ps = 1000,
                                            .ends = {own, endpoint != NULL ? *endpoint : own}};
    static const char *const names[] = {"link0", "link1"};
    struct partner *partner = &bench.partners[bench.partner_count];
    FUZZ_HOLDS(pcie_link_create(bench.sim, bench.pool, names[bench.partner_count], &config, &partner->link) == SIM_OK,
               "no link");
    bench.partner_count++;
    partner->end = pcie_link_end(partner->link, 0);
    partner->out_end = &partner->out;
    pcie_end_attach(partner->end, &partner_ops, partner);
    return pcie_link_end(partner->link, 1);
}

static bool memory_claims(void *ctx, uint64_t address, uint64_t bytes)
{
    (void)ctx;
    return address < MEMORY_BYTES && bytes <= MEMORY_BYTES - address;
}

static bool memory_read(void *ctx, uint64_t address, void *data, uint32_t bytes)
{
    FUZZ_HOLDS(memory_claims(ctx, address, bytes), "read of %u bytes at 0x%llx", bytes, (unsigned long long)address);
    memcpy(data, bench.memory + address, bytes);
    return true;
}

static bool memory_write(void *ctx, uint64_t address, const void *data, uint32_t bytes)
{
    FUZZ_HOLDS(memory_claims(ctx, address, bytes), "write of %u bytes at 0x%llx", bytes, (unsigned long long)address);
    memcpy(bench.memory + address, data, bytes);
    return true;
}

static const struct pcie_memory_ops memory_ops = {.claims = memory_claims, .read = memory_read, .write = memory_write};

static void run(void)
{
    sim_event_init(&bench.step, step_run, NULL);
    sim_event_schedule(bench.sim, &bench.step, STEP_PS);
    (void)sim_run(bench.sim); // reads without an answer may be left
}

static void root_complex_run(bool two_sockets)
{
    struct pcie_rc_config config = preset_host("xeon-e5-2680v2").rc;
    pcie_rc_t *rc;
    config.mps_bytes = MPS;
    FUZZ_HOLDS(pcie_rc_create(bench.sim, bench.pool, "rc", &config, &memory_ops, NULL, &rc) == SIM_OK, "no rc");
    for (unsigned i = 0; i < PORTS; i++) {
        unsigned port = pcie_rc_add_port(rc, partner_add(NULL));
        FUZZ_HOLDS(pcie_rc_add_window(rc, port, WINDOW + i * WINDOW_STEP, MEMORY_BYTES) == SIM_OK, "no window");
        FUZZ_HOLDS(pcie_rc_set_port_socket(rc, port, two_sockets ? i : 0) == SIM_OK, "no socket");
    }
    run();
    pcie_rc_destroy(rc);
}

static void copied(void *ctx, enum sim_status status)
{
    (void)ctx, (void)status;
}

static void gpu_run(void)
{
    const struct gpu_config config = {.memory_bytes = 1 << 20,
                                      .bar_bytes = 1 << 20,
                                      .requester_id = 0x300,
                                      .write_ps = 1000,
                                      .read_ps = 1000,
                                      .reads_max = 4,
                                      .mps_bytes = MPS,
                                      .completion_bytes = 128,
                                      .l2_bytes = 1024,
                                      .l2_miss_ps = 5000,
                                      .copy_engines = 2,
                                      .mrrs_bytes = 512,
                                      .copy_reads_max = 4,
                                      .memory_bytes_per_us = 1000,
                                      .flops_per_us = 1000};
    uint64_t memory, offset;
    gpu_t *gpu;
    gpu_queue_t *queue;
    FUZZ_HOLDS(gpu_create(bench.sim, bench.pool, "gpu", &config, &gpu) == SIM_OK, "no GPU");
    gpu_connect(gpu, partner_add(NULL), WINDOW);
    FUZZ_HOLDS(gpu_memory_alloc(gpu, 2 * GPU_PAGE_BYTES, &memory) == SIM_OK, "no memory");
    FUZZ_HOLDS(gpu_pin(gpu, memory, GPU_PAGE_BYTES, &offset) == SIM_OK, "no pin");
    FUZZ_HOLDS(gpu_queue_create(gpu, &queue) == SIM_OK, "no queue");
    struct gpu_work work = {.kind = GPU_WORK_COPY_IN,
                            .bus_address = 0x1000,
                            .destination = memory,
                            .bytes = 3000,

                            .done = copied};
    (void)gpu_queue_submit(queue, &work, NULL);
    work.kind = GPU_WORK_COPY_OUT;
    work.source = memory;
    (void)gpu_queue_submit(queue, &work, NULL);
    run();
    gpu_destroy(gpu);
}

static uint32_t command(hca_t *hca, struct hca_command made)
{
    FUZZ_HOLDS(hca_fw_command(hca, &made) == SIM_OK, "command %u", made.id);
    return made.number;
}

static void hca_run(void)
{
    struct hca_config config = preset_hca("connectx3-qdr");
    hca_t *hca;
    config.mps_bytes = MPS;
    ib_pool_t *packets = ib_pool_create();
    const struct pcie_end_config slot = hca_slot_end(&config);
    FUZZ_HOLDS(hca_create(bench.sim, bench.pool, packets, "hca", &config, &hca) == SIM_OK, "no HCA");
    hca_connect_host(hca, partner_add(&slot), UAR_BASE);
    uint32_t pd = command(hca, (struct hca_command){.id = HCA_CMD_PD_CREATE});
    uint32_t uar = command(hca, (struct hca_command){.id = HCA_CMD_UAR_ALLOC});
    uint32_t eq = command(hca, (struct hca_command){.id = HCA_CMD_EQ_CREATE,
                                                    .eq_create = {.base = 0x1000, .record = 0x100, .entries = 16}});
    uint32_t cq = command(
        hca,
        (struct hca_command){.id = HCA_CMD_CQ_CREATE,
                             .cq_create = {.eqn = eq, .uar = uar, .base = 0x2000, .record = 0x108, .entries = 16}});
    (void)command(hca, (struct hca_command){.id = HCA_CMD_QP_CREATE,
                                            .qp_create = {.type = HCA_RC,
                                                          .eqn = eq,
                                                          .pdn = pd,
                                                          .uar = uar,
                                                          .send_cqn = cq,
                                                          .receive_cqn = cq,
                                                          .send_base = 0x4000,
                                                          .send_entries = 16,
                                                          .send_stride_bytes = 64,
                                                          .receive_base = 0x8000,
                                                          .receive_record = 0x110,
                                                          .receive_entries = 16,
                                                          .receive_stride_bytes = 64}});
    run();
    hca_destroy(hca);
    FUZZ_HOLDS(ib_pool_destroy(packets) == 0, "packets are left");
}

// --- a case ----------------------------------------------------------------------------------------------------------

static void partner_end(struct partner *partner)
{
    while (partner->out != NULL) {
        pcie_tlp_t *tlp = partner->out;
        partner->out = tlp->next;
        pcie_tlp_unref(tlp);
    }
    while (partner->asked_count > 0) {
        pcie_tlp_unref(partner->asked[--partner->asked_count]);
    }
    pcie_link_destroy(partner->link);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct sim_config config = {.seed = 1};
    memset(&bench, 0, sizeof bench);
    bench.input = (struct fuzz_input){data, size};
    uint32_t endpoint = fuzz_below(&bench.input, 4);
    FUZZ_HOLDS(sim_create(&config, &bench.sim) == SIM_OK && pcie_pool_create(&bench.pool) == SIM_OK, "no simulation");
    if (endpoint < 2) {
        root_complex_run(endpoint == 1);
    } else if (endpoint == 2) {
        gpu_run();
    } else {
        hca_run();
    }
    for (unsigned i = 0; i < bench.partner_count; i++) {
        partner_end(&bench.partners[i]);
    }
    unsigned left = pcie_pool_destroy(bench.pool);
    FUZZ_HOLDS(left == 0, "%u TLPs are left", left);
    sim_destroy(bench.sim);
    return 0;
}
