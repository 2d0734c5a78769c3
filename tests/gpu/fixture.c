#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "tests/shim/test.h"

enum { PROBE_ID = 0x300 };

// --- the probe -------------------------------------------------------------------------------------------------------

static void probe_ready(void *ctx, pcie_end_t *end)
{
    struct probe *probe = ctx;
    while (probe->out != NULL) {
        pcie_tlp_t *next = probe->out->next;
        if (!pcie_end_offer(end, probe->out)) {
            return;
        }
        probe->out = next;
    }
    probe->out_end = &probe->out;
}

static void probe_offer(struct probe *probe, pcie_tlp_t *tlp)
{
    tlp->next = NULL;
    *probe->out_end = tlp;
    probe->out_end = &tlp->next;
    if (probe->out == tlp) {
        probe_ready(probe, probe->end);
    }
}

void probe_write(struct fixture *fixture, uint64_t address, uint32_t bytes, const void *data)
{
    probe_offer(&fixture->probe, pcie_tlp_write(fixture->pool, PROBE_ID, address, bytes, data));
}

static void read_send(struct probe *probe, pcie_pool_t *pool, uint8_t tag, uint64_t address, uint32_t bytes)
{
    memset(&probe->reads[tag], 0, sizeof probe->reads[tag]);
    probe->reads[tag].address = address;
    probe->reads[tag].bytes = bytes;
    probe_offer(probe, pcie_tlp_read(pool, PROBE_ID, tag, address, bytes));
}

void probe_read(struct fixture *fixture, uint8_t tag, uint64_t address, uint32_t bytes)
{
    read_send(&fixture->probe, fixture->pool, tag, address, bytes);
}

static void stream_take(struct probe *probe, pcie_pool_t *pool, uint8_t tag)
{
    struct probe_stream *stream = &probe->stream;
    const struct probe_read *read = &probe->reads[tag];
    uint64_t now_ps = sim_now_ps(probe->sim);
    stream->first_ps = stream->received_bytes == 0 ? now_ps : stream->first_ps;
    stream->last_ps = now_ps;
    stream->received_bytes += read->bytes;
    memcpy(stream->data + (read->address - stream->base), read->data, read->bytes);
    if (stream->next < stream->end) {
        uint64_t address = stream->next;
        stream->next += stream->bytes;
        read_send(probe, pool, tag, address, stream->bytes);
    }
}

static void probe_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    struct probe *probe = ctx;
    struct probe_read *read = &probe->reads[tlp->tag];
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    if (tlp->kind != PCIE_TLP_CPL) {
        EXPECT_EQ(tlp->kind, PCIE_TLP_CPLD);
    }
    EXPECT_EQ(tlp->requester, PROBE_ID);
    EXPECT_EQ(tlp->byte_count, read->bytes - read->received_bytes);
    read->status = tlp->cpl_status;
    read->completion_bytes[read->completions++ % 64] = bytes;
    if (bytes > 0) {
        memcpy(read->data + read->received_bytes, pcie_tlp_data(tlp) + (tlp->lower_address & 3), bytes);
    }
    read->received_bytes += bytes;
    read->done_ps = sim_now_ps(probe->sim);
    pcie_end_release(end, tlp);
    bool done = read->received_bytes == read->bytes || read->status != PCIE_CPL_SC;
    if (done && probe->answered < PROBE_LOG_MAX) {
        probe->log[probe->answered++] = tlp->tag;
    }
    if (done && probe->stream.data != NULL) {
        stream_take(probe, tlp->pool, tlp->tag);
    }
    pcie_tlp_unref(tlp);
}

static const struct pcie_end_ops PROBE_OPS = {.receive = probe_receive, .ready = probe_ready};

uint64_t probe_read_rate(struct fixture *fixture, uint64_t address, uint32_t bytes, uint32_t tags,
                         uint32_t request_bytes, const void *expected)
{
    struct probe_stream *stream = &fixture->probe.stream;
    *stream = (struct probe_stream){.next = address + (uint64_t)tags * request_bytes,
                                    .end = address + bytes,
                                    .bytes = request_bytes,
                                    .data = malloc(bytes),
                                    .base = address};
    for (uint8_t tag = 0; tag < tags; tag++) {
        read_send(&fixture->probe, fixture->pool, tag, address + (uint64_t)tag * request_bytes, request_bytes);
    }
    fixture_run(fixture);
    EXPECT_EQ(stream->received_bytes, bytes);
    EXPECT_MEMEQ(stream->data, expected, bytes);
    free(stream->data);
    stream->data = NULL;
    return (bytes - request_bytes) * US / (stream->last_ps - stream->first_ps);
}

// --- configurations --------------------------------------------------------------------------------------------------

struct fixture_config fixture_config(void)
{
    return (struct fixture_config){
        .rc = {.memory_read_ps = 200 * NS,
               .memory_write_ps = 100 * NS,
               .memory_reads_max = 32,
               .rcb_bytes = 64,
               .mps_bytes = 256,
               .peer_ps = 50 * NS,
               .peer_reads_max = 64},
        .gpu = {.memory_bytes = 64 * MIB,
                .bar_bytes = 16 * MIB,
                .requester_id = 0x200,
                .write_ps = 100 * NS,
                .read_ps = 200 * NS,
                .reads_max = 32,
                .mps_bytes = 256,
                .completion_bytes = 64,
                .l2_bytes = 1 * MIB,
                .copy_engines = 2,
                .copy_setup_ps = 1 * US,
                .mrrs_bytes = 512,
                .copy_reads_max = 32,
                .launch_ps = 5 * US,
                .memory_bytes_per_us = 200000,
                .flops_per_us = 1000000},
        .gpu_link = {.generation = 2, .lanes = 16},
        .probe_link = {.generation = 2, .lanes = 8},
    };
}

// The root ports of configs/host/xeon-e5-2670.yaml, the hard IP of the board.
static struct fixture_config fixture_kepler(uint32_t peer_reads_max)
{
    struct fixture_config config = fixture_config();
    config.rc.memory_read_ps = 150 * NS;
    config.rc.memory_write_ps = 120 * NS;
    config.rc.peer_ps = 25 * NS;
    config.rc.peer_read_bytes = 64;
    config.rc.peer_reads_max = peer_reads_max;
    config.rc.qpi_ps = 57500;
    config.rc.qpi_peer_write_ps = 310 * NS;
    config.rc.qpi_peer_read_ps = 147 * NS;
    config.rc.qpi_peer_lines_max = 2;
    config.port_tx_ps = 60 * NS;
    config.port_rx_ps = 60 * NS;
    config.gpu.memory_bytes = 5120 * MIB;
    config.gpu.bar_bytes = 256 * MIB;
    config.gpu.memory_bytes_per_us = 208000;
    config.gpu.flops_per_us = 1170000;
    config.gpu.read_ps = 25 * NS;
    config.gpu.l2_bytes = 1280 << 10;
    config.gpu.l2_miss_ps = 27 * NS;
    config.gpu_link.tx_ps = 20 * NS;
    config.gpu_link.rx_ps = 20 * NS;
    config.probe_link.tx_ps = 60 * NS;
    config.probe_link.rx_ps = 60 * NS;
    return config;
}

struct fixture_config fixture_k20(void)
{
    return fixture_kepler(3);
}

struct fixture_config fixture_k20x(void)
{
    struct fixture_config config = fixture_kepler(10);
    config.gpu.memory_bytes = 6144 * MIB;
    config.gpu.l2_bytes = 1536 << 10;
    config.gpu.memory_bytes_per_us = 250000;
    config.gpu.flops_per_us = 1310000;
    return config;
}

struct fixture_config fixture_p100(void)
{
    struct fixture_config config = fixture_kepler(54);
    config.gpu.memory_bytes = 16384 * MIB;
    config.gpu.l2_bytes = 4 * MIB;
    config.gpu.memory_bytes_per_us = 732000;
    config.gpu.flops_per_us = 4700000;
    config.gpu.bar_bytes = 16384 * MIB;
    config.rc.peer_ps = 50 * NS;
    config.gpu_link.tx_ps = 30 * NS;
    config.gpu_link.rx_ps = 30 * NS;
    config.gpu.read_ps = 530 * NS;
    config.gpu.reads_max = 64;
    config.gpu_link.generation = 3;
    config.probe_link.generation = 3;
    return config;
}

// --- creation and destruction ----------------------------------------------------------------------------------------

static pcie_link_t *link_create(struct fixture *fixture, const char *name, const struct fixture_config *config,
                                const struct fixture_link *device, uint64_t base, uint64_t bytes, bool far)
{
    const struct pcie_end_config end = {
        .headers = {64, 64, PCIE_CREDITS_INFINITE}, .data = {1024, 64, PCIE_CREDITS_INFINITE}, .tx_queue_tlps = 16};
    struct pcie_link_config link_config = {.generation = device->generation,
                                           .lanes = device->lanes,
                                           .mps_bytes = 256,
                                           .flight_ps = 2 * NS,
                                           .ends = {end, end}};
    pcie_link_t *link = NULL;
    link_config.ends[0].tx_ps = config->port_tx_ps;
    link_config.ends[0].rx_ps = config->port_rx_ps;
    link_config.ends[1].tx_ps = device->tx_ps;
    link_config.ends[1].rx_ps = device->rx_ps;
    EXPECT_EQ(pcie_link_create(fixture->sim, fixture->pool, name, &link_config, &link), SIM_OK);
    unsigned port = pcie_rc_add_port(fixture->rc, pcie_link_end(link, 0));
    if (bytes > 0) {
        EXPECT_EQ(pcie_rc_add_window(fixture->rc, port, base, bytes), SIM_OK);
    }
    if (far) {
        EXPECT_EQ(pcie_rc_set_port_socket(fixture->rc, port, 1), SIM_OK);
    }
    return link;
}

void fixture_init(struct fixture *fixture, const struct fixture_config *config)
{
    static const char *const LINKS[FIXTURE_GPUS] = {"link0", "link1"}, *const GPUS[FIXTURE_GPUS] = {"gpu0", "gpu1"};
    memset(fixture, 0, sizeof *fixture);
    const struct sim_config sim_config = {.seed = 1};
    if (sim_create(&sim_config, &fixture->sim) != SIM_OK || pcie_pool_create(&fixture->pool) != SIM_OK ||
        host_memory_create(fixture->sim, "memory", 64 * MIB, &fixture->memory) != SIM_OK ||
        pcie_rc_create(fixture->sim, fixture->pool, "rc", &config->rc, &host_memory_pcie_ops, fixture->memory,
                       &fixture->rc) != SIM_OK) {
        sim_panic("fixture", "the host of a test cannot be created");
    }
    for (unsigned i = 0; i < FIXTURE_GPUS; i++) {
        if (gpu_create(fixture->sim, fixture->pool, GPUS[i], &config->gpu, &fixture->gpus[i]) != SIM_OK) {
            sim_panic("fixture", "a GPU of a test cannot be created");
        }
        fixture->links[i] = link_create(fixture, LINKS[i], config, &config->gpu_link, FIXTURE_BAR(i),
                                        config->gpu.bar_bytes, config->far && i == 0);
        gpu_connect(fixture->gpus[i], pcie_link_end(fixture->links[i], 1), FIXTURE_BAR(i));
    }
    struct probe *probe = &fixture->probe;
    probe->sim = fixture->sim;
    probe->out_end = &probe->out;
    probe->link = link_create(fixture, "link2", config, &config->probe_link, 0, 0, false);
    probe->end = pcie_link_end(probe->link, 1);
    pcie_end_attach(probe->end, &PROBE_OPS, probe);
    sim_event_init(&fixture->stop, (sim_event_fn)sim_stop, fixture->sim);
}

void fixture_fini(struct fixture *fixture)
{
    EXPECT_NULL(fixture->probe.out);
    for (unsigned i = 0; i < FIXTURE_GPUS; i++) {
        gpu_destroy(fixture->gpus[i]);
    }
    pcie_rc_destroy(fixture->rc);
    for (unsigned i = 0; i < FIXTURE_GPUS; i++) {
        pcie_link_destroy(fixture->links[i]);
    }
    pcie_link_destroy(fixture->probe.link);
    host_memory_destroy(fixture->memory);
    EXPECT_EQ(pcie_pool_destroy(fixture->pool), 0);
    sim_destroy(fixture->sim);
}

void fixture_run(struct fixture *fixture)
{
    EXPECT_EQ(sim_run(fixture->sim), SIM_RUN_DONE);
}

void fixture_run_for(struct fixture *fixture, uint64_t delay_ps)
{
    sim_event_schedule(fixture->sim, &fixture->stop, delay_ps);
    EXPECT_EQ(sim_run(fixture->sim), SIM_RUN_STOPPED);
}

uint64_t fixture_counter(const struct fixture *fixture, unsigned gpu, const char *name)
{
    bool found = false;
    uint64_t value = sim_counter_value(fixture->sim, gpu_name(fixture->gpus[gpu]), name, &found);
    EXPECT_TRUE(found);
    return value;
}

uint64_t fixture_pinned(struct fixture *fixture, unsigned gpu, uint64_t bytes, uint64_t *device_out)
{
    uint64_t device = 0, offset = 0;
    EXPECT_EQ(gpu_memory_alloc(fixture->gpus[gpu], bytes, &device), SIM_OK);
    EXPECT_EQ(gpu_pin(fixture->gpus[gpu], device, bytes, &offset), SIM_OK);
    if (device_out != NULL) {
        *device_out = device;
    }
    return gpu_bar_base(fixture->gpus[gpu]) + offset;
}

void fixture_pattern(void *data, uint64_t bytes, unsigned seed)
{
    uint8_t *out = data;
    for (uint64_t i = 0; i < bytes; i++) {
        out[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16 ^ seed);
    }
}
