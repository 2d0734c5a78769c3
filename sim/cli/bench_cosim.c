// The cost of the co-simulation relative to the model alone: the same packets, once through the kernel, the packet
// queues and the beat adaptor, once from prepared beats in a bare loop of clock and eval.
#include "sim/cli/bench_cosim.h"

#include <string.h>
#include <time.h>

#include "models/pcie/tlp.h"
#include "rtl/peach2_regs.h"
#include "sim/cosim/cosim.h"
#include "sim/kernel/sim.h"

#define PACKETS        200000u
#define QUEUED_PACKETS 8u // waiting for the chip, as a link's receive buffer would hold them
#define PERIOD_PS      4000u
#define RATIO_LIMIT    0.6
#define WINDOW_BASE    (1ull << 40)
#define WINDOW_BYTES   (1ull << PEACH2_WINDOW_BITS)
#define ROUTE_E        (PEACH2_ROUTE_BASE + 1u * PEACH2_ROUTE_STRIDE)

static const struct cosim_peach2_config CONFIG = {.mps_bytes = 256, .read_bytes = 512, .read_tags = 16, .prefetch = 4};

// Streams memory writes from N to E. The chip gets the next packet whenever it has taken one.
struct stream {
    pcie_pool_t *pool;
    cosim_peach2_t *board;
    uint64_t left;
    uint8_t data[256];
};

static void packet_give(struct stream *stream)
{
    if (stream->left > 0) {
        stream->left--;
        cosim_peach2_rx(stream->board, 0, 2,
                        pcie_tlp_write(stream->pool, 0, WINDOW_BASE, sizeof stream->data, stream->data));
    }
}

static void packet_taken(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    (void)port;
    pcie_tlp_unref(tlp);
    packet_give(ctx);
}

static void packet_left(void *ctx, unsigned port, pcie_tlp_t *tlp)
{
    (void)ctx;
    (void)port;
    pcie_tlp_unref(tlp);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void register_write(struct stream *stream, uint64_t offset, uint64_t value)
{
    cosim_peach2_rx(stream->board, 0, 0, pcie_tlp_write(stream->pool, 0, offset, sizeof value, &value));
}

static double stream_run(sim_t *sim, struct stream *stream)
{
    register_write(stream, PEACH2_CHIP_BASE + PEACH2_CHIP_WINDOW_BASE, WINDOW_BASE);
    register_write(stream, ROUTE_E + PEACH2_ROUTE_UPPER, WINDOW_BYTES - 1);
    register_write(stream, ROUTE_E + PEACH2_ROUTE_CONTROL, PEACH2_ROUTE_CONTROL_ENABLE_MASK);
    (void)sim_run(sim);
    stream->left = PACKETS;
    for (unsigned i = 0; i < QUEUED_PACKETS; i++) {
        packet_give(stream);
    }
    double begin = seconds_now();
    (void)sim_run(sim);
    return seconds_now() - begin;
}

// Nanoseconds of wall time per evaluated cycle; 0 if the co-simulation could not be built.
static double cosimulated_ns(void)
{
    static const struct cosim_peach2_ops OPS = {.tx = packet_left, .rx_taken = packet_taken};
    struct stream stream = {0};
    sim_t *sim = NULL;
    cosim_clock_t *clock = NULL;
    double ns = 0.0;
    if (sim_create(&(struct sim_config){.seed = 1}, &sim) != SIM_OK) {
        return 0.0;
    }
    if (pcie_pool_create(&stream.pool) != SIM_OK) {
        goto destroy_sim;
    }
    if (cosim_clock_create(sim, PERIOD_PS, &clock) != SIM_OK) {
        goto destroy_pool;
    }
    if (cosim_peach2_create(clock, stream.pool, "bench", &CONFIG, &OPS, &stream, NULL, &stream.board) == SIM_OK) {
        double seconds = stream_run(sim, &stream);
        ns = seconds * 1e9 / (double)cosim_peach2_cycles(stream.board);
        cosim_peach2_destroy(stream.board);
    }
    cosim_clock_destroy(clock);
destroy_pool:
    pcie_pool_destroy(stream.pool);
destroy_sim:
    sim_destroy(sim);
    return ns;
}

static double bare_ns(void)
{
    uint64_t cycles = 0;
    double begin = seconds_now();
    if (cosim_bench_bare(&CONFIG, PACKETS, &cycles) != SIM_OK || cycles == 0) {
        return 0.0;
    }
    return (seconds_now() - begin) * 1e9 / (double)cycles;
}

bool cli_bench_cosim(const struct cli_paths *paths, struct cli_bench_result *result)
{
    (void)paths;
    double bare = bare_ns(), cosimulated = cosimulated_ns();
    if (bare <= 0.0 || cosimulated <= 0.0) {
        cli_error("the co-simulation could not be built");
        return false;
    }
    cli_measure_add(result, "bare loop", "ns/cycle", bare, 0.0, false);
    cli_measure_add(result, "co-simulation", "ns/cycle", cosimulated, 0.0, false);
    cli_measure_add(result, "rate against the bare loop", "ratio", bare / cosimulated, RATIO_LIMIT, true);
    return true;
}
