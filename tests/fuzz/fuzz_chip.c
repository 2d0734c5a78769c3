// PEACH2's registers, descriptors and packets, on the RTL and its twin at once: each packet that leaves, with its time,
// each buffer that becomes free and each counter must agree.
#include <string.h>

#include "fuzz.h"
#include "models/peach2/board.h"
#include "tests/peach2/chip_bench.h"

enum { OPS_MAX = 200, WORD_BYTES = 8 };

static struct fuzz_input whole, input; // of the case, and what is left of it in the chip that runs
static unsigned ops;

static uint64_t window_address(void)
{
    return WINDOW + ((uint64_t)fuzz_below(&input, 5) << 35) + ((uint64_t)fuzz_below(&input, 4) << 33);
}

// An address for so many bytes that stays within 4 KB.
static uint64_t address_of(uint32_t bytes)
{
    uint64_t within = fuzz_below(&input, 4096 - bytes + 1);
    switch (fuzz_below(&input, 5)) {
    case 0:
        return window_address() + within;
    case 1:
        return window_address() + PEACH2_MEMORY_BASE + 4096 * (uint64_t)fuzz_below(&input, 9) + within;
    case 2:
        return 4096 * (uint64_t)fuzz_below(&input, 40) + within;
    case 3:
        return fuzz_take(&input, 6) / 4096 * 4096 + within;
    }
    return PEACH2_MEMORY_BASE + within;
}

static void packet_send(struct bench *bench)
{
    uint32_t port = fuzz_below(&input, PEACH2_PORTS), bytes = 1 + fuzz_below(&input, 256);
    uint32_t kind = fuzz_below(&input, 3);
    uint64_t address = address_of(bytes);
    uint8_t data[256] = {0}, tag = (uint8_t)fuzz_take(&input, 1);
    uint16_t requester = fuzz_below(&input, 4) == 0 ? 0x100 : (uint16_t)(8 + port);
    pcie_tlp_t *tlp;
    fuzz_fill(&input, data, bytes < 16 ? bytes : 16);
    if (kind == 0) {
        bool registers = address % PEACH2_BAR0_BYTES < PEACH2_MEMORY_BASE; // read cycle by cycle (models/peach2/twin.h)
        tag = registers ? HIDDEN_TAG : tag;
        tlp = pcie_tlp_read(bench->pool, requester, tag, address, bytes);
    } else if (kind == 1) {
        tlp = pcie_tlp_write(bench->pool, requester, address, bytes, data);
    } else {
        pcie_tlp_t *read = pcie_tlp_read(bench->pool, 0x100, tag, address, bytes);
        uint32_t done = fuzz_below(&input, bytes), part = 1 + fuzz_below(&input, bytes - done);
        uint32_t status = fuzz_below(&input, 6);
        tlp = status == 0   ? pcie_tlp_error(read, 1, PCIE_CPL_UR)
              : status == 1 ? pcie_tlp_error(read, 1, PCIE_CPL_CA)
                            : pcie_tlp_completion(read, 1, done, part, data);
        pcie_tlp_unref(read);
    }
    bench->ops->rx(bench->core, port, address < WINDOW ? 0 : 2, tlp);
}

static void transfer_start(struct bench *bench)
{
    uint32_t base = fuzz_below(&input, 4) * PEACH2_DMAC_STRIDE;
    bench_write64(bench, base + DMAC(PEACH2_DMAC_SOURCE), HOST + fuzz_below(&input, 4096));
    bench_write64(bench, base + DMAC(PEACH2_DMAC_DESTINATION), window_address() + fuzz_below(&input, 65536));
    bench_write32(bench, base + DMAC(PEACH2_DMAC_LENGTH), fuzz_below(&input, 4096));
    bench_write64(bench, base + DMAC(PEACH2_DMAC_NOTIFY_LOCAL), HOST + 8 * (uint64_t)fuzz_below(&input, 8));
    bench_write64(bench, base + DMAC(PEACH2_DMAC_NOTIFY_REMOTE),
                  window_address() + 8 * (uint64_t)fuzz_below(&input, 8));
    bench_write64(bench, base + DMAC(PEACH2_DMAC_DESCRIPTOR), 32 * (uint64_t)fuzz_below(&input, 1024));
    bench_write32(bench, base + DMAC(PEACH2_DMAC_CONTROL), PEACH2_DMAC_CONTROL_START_MASK | fuzz_below(&input, 256));
}

// A descriptor of board memory whose next one comes behind it, so that no chain is endless.
static void descriptor_write(struct bench *bench)
{
    uint32_t slot = fuzz_below(&input, 1024), next = slot + 1 + fuzz_below(&input, 4);
    const uint64_t words[4] = {HOST + fuzz_below(&input, 4096), window_address() + fuzz_below(&input, 4096),
                               fuzz_below(&input, 2048) | (uint64_t)fuzz_below(&input, 256) << 24,
                               next < 1024 ? 32 * (uint64_t)next : 0};
    for (uint32_t i = 0; i < 4; i++) {
        bench_write64(bench, PEACH2_MEMORY_BASE + 32 * slot + 8 * i, words[i]);
    }
}

static void register_write(struct bench *bench)
{
    uint32_t offset = fuzz_below(&input, 0x1000);
    if (fuzz_below(&input, 2) == 0) {
        bench_write32(bench, offset & ~3u, (uint32_t)fuzz_take(&input, 4));
    } else {
        bench_write64(bench, offset & ~7u, fuzz_take(&input, WORD_BYTES));
    }
}

// The counters are compared at the end.
static void register_read(struct bench *bench)
{
    uint32_t offset = fuzz_below(&input, 0x1000) & ~3u;
    bool counts = offset - PEACH2_COUNTER_BASE < 4 * PEACH2_COUNTER_REGISTERS;
    bench->ops->rx(bench->core, PEACH2_PORT_N, 0,
                   pcie_tlp_read(bench->pool, 7, counts ? HIDDEN_TAG : STATUS_TAG, offset, 4));
}

static void op_run(struct bench *bench)
{
    uint32_t what = fuzz_below(&input, 16), port = fuzz_below(&input, PEACH2_PORTS);
    switch (what) {
    case 0:
        if (fuzz_below(&input, 2) != 0) {
            bench->fills &= (uint8_t) ~(1u << port);
            bench->ops->set_tx_ready(bench->core, port, true);
        } else {
            bench->fills |= (uint8_t)(1u << port);
        }
        return;
    case 1:
        bench->ops->set_tx_room(bench->core, port, fuzz_below(&input, 2) != 0);
        return;
    case 2:
    case 3:
        transfer_start(bench);
        return;
    case 4:
    case 5:
        register_write(bench);
        return;
    case 6:
        descriptor_write(bench);
        return;
    case 7:
        register_read(bench);
        return;
    }
    packet_send(bench);
}

// At the end all ports take packets, and the counters are read.
static void end_run(struct bench *bench)
{
    bench->fills = 0;
    for (unsigned port = 0; port < PEACH2_PORTS; port++) {
        bench->ops->set_tx_ready(bench->core, port, true);
        bench->ops->set_tx_room(bench->core, port, true);
    }
}

static void step_run(void *ctx)
{
    struct bench *bench = ctx;
    if (ops == OPS_MAX || input.size == 0) {
        end_run(bench);
        return;
    }
    ops++;
    op_run(bench);
    // Between two edges, so that nothing depends on the order of events at an edge.
    uint64_t edge = sim_now_ps(bench->sim) / PERIOD_PS + fuzz_below(&input, 30);
    sim_event_schedule_at(bench->sim, &bench->step_event,
                          edge * PERIOD_PS + PERIOD_PS + 100 + fuzz_below(&input, 3000));
}

static void program(struct bench *bench)
{
    input = whole;
    ops = 0;
    bench->may_be_endless = true;
    sim_event_init(&bench->step_event, step_run, bench);
    sim_event_schedule(bench->sim, &bench->step_event, 1000100); // when the routes are set
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    whole = (struct fuzz_input){data, size};
    bench_compare(1, program, NULL);
    return 0;
}
