#include "perf.h"

#include <stdio.h>

enum { TX_DEPTH = 100, WARM_UP = 20 };

struct flow {
    struct hca_fixture_qp qp;
    struct hca_fixture_process *peer;
    struct perf perf;
    bool latency;
    const bool *stop; // of the other flow
    bool *done;
    sim_t *sim;
    uint64_t begin_ps, end_ps;
};

static void flow_latency(void *arg)
{
    struct flow *flow = arg;
    for (unsigned i = 0; i < flow->perf.iterations + WARM_UP; i++) {
        flow->begin_ps = i == WARM_UP ? sim_now_ps(flow->sim) : flow->begin_ps;
        EXPECT_EQ(hca_fixture_send(&flow->qp, flow->perf.opcode, 0, flow->perf.bytes, flow->peer, 0), 0);
        EXPECT_EQ(hca_fixture_completion(&flow->qp).status, HCA_OK);
    }
    flow->end_ps = sim_now_ps(flow->sim);
    *flow->done = true;
}

// Posts while the queue has room, otherwise polls one or more completions.
static void flow_bandwidth(void *arg)
{
    struct flow *flow = arg;
    struct hca_wc wc[16];
    unsigned posted = 0, completed = 0;
    while (flow->stop == NULL ? completed < flow->perf.iterations + WARM_UP : !*flow->stop) {
        while (posted - completed < TX_DEPTH && (flow->stop != NULL || posted < flow->perf.iterations + WARM_UP)) {
            EXPECT_EQ(hca_fixture_send(&flow->qp, flow->perf.opcode, 0, flow->perf.bytes, flow->peer, 0), 0);
            posted++;
            if (posted - completed > TX_DEPTH / 2) {
                completed += (unsigned)hca_cq_poll(flow->qp.cq, 16, wc);
            }
        }
        EXPECT_EQ(hca_cq_wait(flow->qp.cq, 0), 0);
        unsigned before = completed;
        completed += (unsigned)hca_cq_poll(flow->qp.cq, 16, wc);
        flow->begin_ps = before < WARM_UP ? sim_now_ps(flow->sim) : flow->begin_ps;
    }
    flow->end_ps = sim_now_ps(flow->sim);
    if (flow->done != NULL) {
        *flow->done = true;
    }
}

static void flow_init(struct flow *flow, struct hca_fixture *fixture, const struct perf_setup *setup,
                      const struct perf *perf)
{
    flow->sim = fixture->sim;
    flow->perf = *perf;
    struct hca_fixture_process *process = hca_fixture_process(fixture, 0);
    flow->peer = hca_fixture_process(fixture, setup->loopback ? 0 : 1);
    flow->qp = hca_fixture_qp(process, HCA_RC);
    const struct hca_fixture_qp far = hca_fixture_qp(flow->peer, HCA_RC);
    struct hca_qp_attr to_far = hca_fixture_attr(&far), to_near = hca_fixture_attr(&flow->qp);
    to_far.timeout = to_near.timeout = 14; // perftest's value
    hca_fixture_connect_with(&flow->qp, &to_far);
    hca_fixture_connect_with(&far, &to_near);
}

static uint64_t run(const struct perf_setup *setup, bool latency)
{
    static struct hca_fixture fixture;
    static struct flow measured, beside;
    static bool done;
    hca_fixture_init(&fixture, setup->preset);
    measured = (struct flow){.done = &done};
    beside = (struct flow){.stop = &done};
    done = false;
    flow_init(&measured, &fixture, setup, &setup->measured);
    if (setup->beside.iterations > 0) {
        flow_init(&beside, &fixture, setup, &setup->beside);
        hca_fixture_spawn(&fixture, "beside", flow_bandwidth, &beside);
    }
    hca_fixture_spawn(&fixture, "measured", latency ? flow_latency : flow_bandwidth, &measured);
    hca_fixture_run(&fixture);
    uint64_t took_ps = measured.end_ps - measured.begin_ps;
    if (setup->wait != NULL) {
        char sum[64], count[64];
        snprintf(sum, sizeof sum, "%s_wait_ps", setup->wait);
        snprintf(count, sizeof count, "%s_waits", setup->wait);
        *setup->mean_wait_ps_out = hca_fixture_counter(&fixture, 1, sum) / hca_fixture_counter(&fixture, 1, count);
    }
    hca_fixture_fini(&fixture);
    return took_ps;
}

uint64_t perf_latency_ps(const struct perf_setup *setup)
{
    return run(setup, true) / setup->measured.iterations;
}

uint64_t perf_kib_per_second(const struct perf_setup *setup)
{
    uint64_t bytes = (uint64_t)setup->measured.bytes * setup->measured.iterations;
    return bytes * 1000000 / (run(setup, false) / 1000) * 1000 / 1024;
}

// --- ping-pong -------------------------------------------------------------------------------------------------------

struct side {
    struct hca_fixture_qp qp;
    struct hca_fixture_process *peer;
    bool first;
    unsigned iterations;
    uint64_t begin_ps, end_ps;
};

static void side_send(struct side *side)
{
    struct hca_sge sge;
    struct hca_send_wr wr = hca_fixture_wr(&side->qp, HCA_OP_SEND, 0, 8, &sge);
    wr.flags = HCA_WQE_INLINE;
    EXPECT_EQ(hca_post_send(side->qp.qp, &wr, NULL), 0);
}

static void side_receive(struct side *side)
{
    struct hca_wc wc;
    do {
        wc = hca_fixture_completion(&side->qp);
        EXPECT_EQ(wc.status, HCA_OK);
    } while (wc.kind == HCA_CQE_SEND);
    EXPECT_EQ(hca_fixture_receive(&side->qp, 0, 64, 8), 0);
}

static void side_run(void *arg)
{
    struct side *side = arg;
    sim_t *sim = side->qp.process->fixture->sim;
    side->begin_ps = sim_now_ps(sim);
    for (unsigned i = 0; i < side->iterations; i++) {
        if (side->first) {
            side_send(side);
        }
        side_receive(side);
        if (!side->first) {
            side_send(side);
        }
    }
    side->end_ps = sim_now_ps(sim);
}

static void receives_post(void *arg)
{
    struct side *sides = arg;
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned n = 0; n < 256; n++) {
            EXPECT_EQ(hca_fixture_receive(&sides[i].qp, 0, 64, 8), 0);
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        hca_fixture_spawn(sides[i].qp.process->fixture, i == 0 ? "ping" : "pong", side_run, &sides[i]);
    }
}

uint64_t perf_send_latency_ps(const char *preset, unsigned iterations)
{
    static struct hca_fixture fixture;
    static struct side sides[2];
    hca_fixture_init(&fixture, preset);
    for (unsigned i = 0; i < 2; i++) {
        sides[i] = (struct side){
            .qp = hca_fixture_qp(hca_fixture_process(&fixture, i), HCA_RC), .first = i == 0, .iterations = iterations};
    }
    hca_fixture_connect(&sides[0].qp, &sides[1].qp);
    hca_fixture_spawn(&fixture, "receives", receives_post, sides);
    hca_fixture_run(&fixture);
    uint64_t took_ps = sides[0].end_ps - sides[0].begin_ps;
    hca_fixture_fini(&fixture);
    return took_ps / iterations / 2;
}

// --- ping-pong of writes ---------------------------------------------------------------------------------------------

enum { LANDING = 1 << 18, INLINE_BYTES = 220 }; // inline: the size that the measured program requests

struct writer {
    struct hca_fixture_qp qp;
    const struct hca_fixture_process *peer;
    bool first;
    uint32_t bytes;
    unsigned iterations;
    uint64_t end_ps;
};

// The last byte shows that a message has arrived, as in ib_write_lat.
static void writer_send(const struct writer *writer, uint8_t stamp)
{
    struct hca_sge sge;
    struct hca_send_wr wr = hca_fixture_wr(&writer->qp, HCA_OP_WRITE, 0, writer->bytes, &sge);
    writer->qp.process->memory[writer->bytes - 1] = stamp;
    wr.remote_address = (uint64_t)(uintptr_t)(writer->peer->memory + LANDING);
    wr.rkey = hca_mr_rkey(writer->peer->mr);
    wr.flags = writer->bytes <= INLINE_BYTES ? HCA_WQE_INLINE : 0;
    EXPECT_EQ(hca_post_send(writer->qp.qp, &wr, NULL), 0);
}

static void writer_await(const struct writer *writer, uint8_t stamp)
{
    const struct backend *backend = &writer->qp.process->backend;
    uintptr_t last = (uintptr_t)writer->qp.process->memory + LANDING + writer->bytes - 1;
    const volatile uint64_t *word = (const volatile uint64_t *)(last & ~(uintptr_t)7);
    unsigned shift = 8 * (last & 7);
    EXPECT_EQ(backend->ops->wait_word(backend->ctx, word, 0xffull << shift, (uint64_t)stamp << shift, 100000000), 0);
}

static void writer_run(void *arg)
{
    struct writer *writer = arg;
    struct hca_wc wc;
    for (unsigned i = 1; i <= writer->iterations; i++) {
        if (writer->first) {
            writer_send(writer, (uint8_t)i);
        }
        writer_await(writer, (uint8_t)i);
        if (!writer->first) {
            writer_send(writer, (uint8_t)i);
        }
        while (hca_cq_poll(writer->qp.cq, 1, &wc) > 0) {
            EXPECT_EQ(wc.status, HCA_OK);
        }
    }
    writer->end_ps = sim_now_ps(writer->qp.process->fixture->sim);
}

uint64_t perf_write_latency_ps(const char *preset, bool blueflame_all, uint32_t bytes, unsigned iterations)
{
    static struct hca_fixture fixture;
    static struct writer writers[2];
    struct hca_config config = preset_hca(preset);
    config.blueflame_all = blueflame_all;
    hca_fixture_init_with(&fixture, &config, "xeon-e5-2680v2");
    for (unsigned i = 0; i < 2; i++) {
        struct hca_qp_create create = hca_fixture_qp_create(HCA_RC);
        create.inline_bytes = INLINE_BYTES;
        writers[i] = (struct writer){.qp = hca_fixture_qp_with(hca_fixture_process(&fixture, i), create),
                                     .first = i == 0,
                                     .bytes = bytes,
                                     .iterations = iterations};
    }
    for (unsigned i = 0; i < 2; i++) {
        writers[i].peer = writers[1 - i].qp.process;
        hca_fixture_spawn(&fixture, i == 0 ? "ping" : "pong", writer_run, &writers[i]);
    }
    hca_fixture_connect(&writers[0].qp, &writers[1].qp);
    hca_fixture_run(&fixture);
    hca_fixture_fini(&fixture);
    return writers[0].end_ps / iterations / 2;
}
