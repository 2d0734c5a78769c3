// Long messages by stream: the same data, counters and errors as by packets, in nearly the same time.
#include <string.h>

#include "fixture.h"

enum { FROM = 101, TO = 302, LONG_BYTES = 300001, PACKETS = 147, MIDDLE_US = 40 };

static struct {
    enum hca_opcode opcode;
    uint32_t bytes;
    uint64_t took_ps;
    struct hca_wc wc;
} message;

static void init(bool flow, enum hca_qp_type type)
{
    const struct hca_config config = preset_hca("connectx-qdr");
    memset(&fixture, 0, sizeof fixture);
    (flow ? hca_fixture_init_flow : hca_fixture_init_with)(&fixture.base, &config, "core-i7-2600k");
    fixture.near = hca_fixture_process(&fixture.base, 0);
    fixture.far = hca_fixture_process(&fixture.base, 1);
    fixture.a = hca_fixture_qp(fixture.near, type);
    fixture.b = hca_fixture_qp(fixture.far, type);
    hca_fixture_connect(&fixture.a, &fixture.b);
    for (uint32_t i = 0; i < REGION_BYTES / 2; i++) {
        fixture.near->memory[i] = (uint8_t)(i * 7 + (i >> 8));
        fixture.far->memory[REGION_BYTES / 2 + i] = (uint8_t)(i * 5 + (i >> 9));
    }
}

static bool is_read(void)
{
    return message.opcode == HCA_OP_READ;
}

static bool is_received(void)
{
    return message.opcode == HCA_OP_SEND || message.opcode == HCA_OP_SEND_IMM || message.opcode == HCA_OP_WRITE_IMM;
}

static void send(void *arg)
{
    uint64_t begin_ps = sim_now_ps(fixture.base.sim);
    uint32_t here = is_read() ? REGION_BYTES / 2 + FROM : FROM, there = is_read() ? REGION_BYTES / 2 + TO : TO;
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, message.opcode, here, message.bytes, fixture.far, there), 0);
    message.wc = hca_fixture_completion(&fixture.a);
    message.took_ps = sim_now_ps(fixture.base.sim) - begin_ps;
}

static void receive(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 9, TO, 400000), 0);
    const struct hca_wc wc = hca_fixture_completion(&fixture.b);
    EXPECT_EQ(wc.status, HCA_OK);
    EXPECT_EQ(wc.bytes, message.bytes);
}

static void expect_arrived(void)
{
    uint32_t half = REGION_BYTES / 2;
    EXPECT_EQ(message.wc.status, HCA_OK);
    if (is_read()) {
        EXPECT_MEMEQ(fixture.near->memory + half + FROM, fixture.far->memory + half + TO, message.bytes);
        EXPECT_EQ(fixture.near->memory[half + FROM + message.bytes], 0);
    } else {
        EXPECT_MEMEQ(fixture.far->memory + TO, fixture.near->memory + FROM, message.bytes);
        EXPECT_EQ(fixture.far->memory[TO + message.bytes], 0);
    }
}

static uint64_t counter(unsigned node, const char *name)
{
    return hca_fixture_counter(&fixture.base, node, name);
}

// Packets that an engine has made one by one: of requests at the near side, of responses at the far side.
static uint64_t packets_made(void)
{
    return is_read() ? counter(1, "responder_waits") : counter(0, "send_engine_waits");
}

// --- the same as by packets -----------------------------------------------------------------------------------------

struct outcome {
    uint64_t took_ps, made, sent_bytes, read_bytes, written_bytes, received, answers;
};

static struct outcome transfer(bool flow, enum hca_qp_type type, enum hca_opcode opcode, uint32_t bytes)
{
    message.opcode = opcode;
    message.bytes = bytes;
    init(flow, type);
    fixture_run(send, is_received() ? receive : NULL);
    expect_arrived();
    unsigned from = is_read() ? 1 : 0;
    const struct outcome outcome = {message.took_ps,
                                    packets_made(),
                                    counter(from, "port_xmit_data"),
                                    counter(from, "dma_read_bytes"),
                                    counter(1 - from, "dma_write_bytes"),
                                    counter(1 - from, "port_rcv_packets"),
                                    counter(1 - from, "port_xmit_packets")};
    EXPECT_EQ(counter(0, "retries"), 0); // longer than the timeout
    fixture_fini();
    return outcome;
}

// Ranges that begin at no boundary need more TLPs, which streams do not count.
static void expect_near(uint64_t flow_ps, uint64_t packets_ps, unsigned percent)
{
    EXPECT_LT(flow_ps * 100, packets_ps * (100 + percent));
    EXPECT_GT(flow_ps * 100, packets_ps * (100 - percent));
}

static void expect_equal(enum hca_qp_type type, enum hca_opcode opcode, uint32_t bytes)
{
    TEST_TRACE("type %u, opcode %u, %u bytes", type, opcode, bytes);
    const struct outcome packets = transfer(false, type, opcode, bytes), flow = transfer(true, type, opcode, bytes);
    EXPECT_EQ(flow.made, 2); // the first and the last packet
    EXPECT_EQ(flow.sent_bytes, packets.sent_bytes);
    EXPECT_EQ(flow.read_bytes, packets.read_bytes);
    EXPECT_EQ(flow.written_bytes, packets.written_bytes);
    EXPECT_EQ(flow.received, packets.received);
    EXPECT_EQ(flow.answers, packets.answers);
    expect_near(flow.took_ps, packets.took_ps, 3);
}

TEST(Flow, AMessageIsThatOfItsPackets)
{
    static const enum hca_opcode OPCODES[] = {HCA_OP_WRITE, HCA_OP_WRITE_IMM, HCA_OP_SEND, HCA_OP_SEND_IMM,
                                              HCA_OP_READ};
    for (unsigned i = 0; i < sizeof OPCODES / sizeof *OPCODES; i++) {
        expect_equal(HCA_RC, OPCODES[i], 65536);
        expect_equal(HCA_RC, OPCODES[i], LONG_BYTES);
    }
    expect_equal(HCA_UC, HCA_OP_WRITE, LONG_BYTES);
}

TEST(Flow, AShortMessageGoesAsPackets)
{
    EXPECT_EQ(transfer(true, HCA_RC, HCA_OP_WRITE, 16384).made, 8);
}

// --- more than one --------------------------------------------------------------------------------------------------

enum { MANY = 20 };

static void send_many(void *arg)
{
    uint64_t begin_ps = sim_now_ps(fixture.base.sim);
    (void)arg;
    for (unsigned i = 0; i < MANY; i++) {
        EXPECT_EQ(hca_fixture_send(&fixture.a, message.opcode, FROM, message.bytes, fixture.far, TO), 0);
    }
    for (unsigned i = 0; i < MANY; i++) {
        EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_OK);
    }
    message.took_ps = sim_now_ps(fixture.base.sim) - begin_ps;
}

static uint64_t many_ps(bool flow, enum hca_opcode opcode, uint32_t bytes)
{
    message.opcode = opcode;
    message.bytes = bytes;
    init(flow, HCA_RC);
    fixture_run(send_many, NULL);
    fixture_fini();
    return message.took_ps;
}

TEST(Flow, MessagesFollowEachOtherAsFastAsTheirPackets)
{
    static const uint32_t SIZES[] = {32768, 65536, LONG_BYTES};
    for (unsigned i = 0; i < 2 * sizeof SIZES / sizeof *SIZES; i++) {
        enum hca_opcode opcode = i % 2 == 0 ? HCA_OP_WRITE : HCA_OP_READ;
        TEST_TRACE("opcode %u, %u bytes", opcode, SIZES[i / 2]);
        uint64_t packets_ps = many_ps(false, opcode, SIZES[i / 2]), flow_ps = many_ps(true, opcode, SIZES[i / 2]);
        expect_near(flow_ps, packets_ps, 3);
    }
}

static void send_each(void *arg)
{
    uint64_t begin_ps = sim_now_ps(fixture.base.sim);
    (void)arg;
    for (unsigned i = 0; i < MANY; i++) {
        send(NULL);
        EXPECT_EQ(message.wc.status, HCA_OK);
    }
    message.took_ps = sim_now_ps(fixture.base.sim) - begin_ps;
}

static void send_beside(void *arg)
{
    struct hca_fixture_qp *qp = arg;
    for (unsigned i = 0; i < 3 * MANY; i++) {
        EXPECT_EQ(hca_fixture_send(qp, HCA_OP_WRITE, FROM, 65536, fixture.far, TO), 0);
    }
}

static uint64_t beside_ps(bool flow)
{
    message.opcode = HCA_OP_WRITE;
    message.bytes = 65536;
    init(flow, HCA_RC);
    struct hca_fixture_qp near = hca_fixture_qp(fixture.near, HCA_RC), far = hca_fixture_qp(fixture.far, HCA_RC);
    hca_fixture_connect(&near, &far);
    hca_fixture_spawn(&fixture.base, "beside", send_beside, &near);
    fixture_run(send_each, NULL);
    fixture_fini();
    return message.took_ps;
}

TEST(Flow, AMessageWaitsForThoseOfAnotherQueuePair)
{
    expect_near(beside_ps(true), beside_ps(false), 6);
}

static void send_short(void *arg)
{
    struct hca_fixture_qp *qp = arg;
    for (unsigned i = 0; i < MANY; i++) {
        EXPECT_EQ(hca_fixture_send(qp, HCA_OP_WRITE, 0, 8, fixture.far, REGION_BYTES / 2), 0);
        EXPECT_EQ(hca_fixture_completion(qp).status, HCA_OK);
    }
}

TEST(Flow, ShortMessagesOfAnotherQueuePairEndAStream)
{
    message.opcode = HCA_OP_WRITE;
    message.bytes = LONG_BYTES;
    init(true, HCA_RC);
    struct hca_fixture_qp near = hca_fixture_qp(fixture.near, HCA_RC), far = hca_fixture_qp(fixture.far, HCA_RC);
    hca_fixture_connect(&near, &far);
    hca_fixture_spawn(&fixture.base, "short", send_short, &near);
    fixture_run(send, NULL);
    expect_arrived();
    EXPECT_GT(packets_made(), MANY + PACKETS / 2);
    fixture_fini();
}

// --- errors ---------------------------------------------------------------------------------------------------------

static void receive_late(void *arg)
{
    sim_thread_sleep(fixture.base.sim, MIDDLE_US * US);
    receive(arg);
}

TEST(Flow, WaitsForAReceiveAsPacketsDo)
{
    message.opcode = HCA_OP_SEND;
    message.bytes = LONG_BYTES;
    init(true, HCA_RC);
    fixture_run(send, receive_late);
    expect_arrived();
    EXPECT_GT(counter(1, "rnr_naks_sent"), 0);
    fixture_fini();
}

static void receive_too_little(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_receive(&fixture.b, 9, TO, LONG_BYTES / 2), 0);
    EXPECT_EQ(hca_fixture_completion(&fixture.b).status, HCA_LOCAL_LENGTH);
}

TEST(Flow, AMessageLongerThanItsReceiveIsAnError)
{
    message.opcode = HCA_OP_SEND;
    message.bytes = LONG_BYTES;
    init(true, HCA_RC);
    fixture_run(send, receive_too_little);
    EXPECT_EQ(message.wc.status, HCA_REMOTE_INVALID_REQUEST);
    fixture_fini();
}

static void send_beyond(void *arg)
{
    uint8_t before = fixture.far->memory[REGION_BYTES - 1];
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, FROM, LONG_BYTES, fixture.far, REGION_BYTES - LONG_BYTES + 1),
              0);
    EXPECT_EQ(hca_fixture_completion(&fixture.a).status, HCA_REMOTE_ACCESS);
    EXPECT_EQ(fixture.far->memory[REGION_BYTES - 1], before);
}

TEST(Flow, ARangeOutsideTheRegionIsAnError)
{
    init(true, HCA_RC);
    fixture_run(send_beyond, NULL);
    fixture_fini();
}

static void region_end(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, MIDDLE_US * US);
    EXPECT_EQ(hca_mr_deregister(fixture.far->mr), 0);
    fixture.far->mr = NULL;
}

TEST(Flow, ARegionThatEndsInTheMiddleIsAnError)
{
    static const enum hca_opcode OPCODES[] = {HCA_OP_WRITE, HCA_OP_READ};
    for (unsigned i = 0; i < 2; i++) {
        TEST_TRACE("opcode %u", OPCODES[i]);
        message.opcode = OPCODES[i];
        message.bytes = LONG_BYTES;
        init(true, HCA_RC);
        fixture_run(send, region_end);
        EXPECT_EQ(message.wc.status, HCA_REMOTE_ACCESS);
        fixture_fini();
    }
}

// --- faults ---------------------------------------------------------------------------------------------------------

static void link_down(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, MIDDLE_US * US);
    ib_link_set_up(fixture.base.cable, false);
    sim_thread_sleep(fixture.base.sim, 5 * US);
    ib_link_set_up(fixture.base.cable, true);
}

// In the middle of the last packet: a drop is for the packets that follow.
static void last_lost(void *arg)
{
    (void)arg;
    unsigned from = is_read() ? 1 : 0;
    while (counter(from, "port_xmit_packets") < PACKETS - 1) {
        sim_thread_sleep(fixture.base.sim, 10 * NS);
    }
    ib_link_drop_next(fixture.base.cable, from, 1);
}

static void expect_retried(void (*fault)(void *))
{
    static const enum hca_opcode OPCODES[] = {HCA_OP_WRITE, HCA_OP_SEND, HCA_OP_READ};
    for (unsigned i = 0; i < 3; i++) {
        TEST_TRACE("opcode %u", OPCODES[i]);
        message.opcode = OPCODES[i];
        message.bytes = LONG_BYTES;
        init(true, HCA_RC);
        hca_fixture_spawn(&fixture.base, "fault", fault, NULL);
        fixture_run(send, is_received() ? receive : NULL);
        expect_arrived();
        EXPECT_GT(counter(0, "retries"), 0);
        fixture_fini();
    }
}

TEST(Flow, ALinkThatGoesDownCostsARetry)
{
    expect_retried(link_down);
}

TEST(Flow, ALostLastPacketIsSentAgain)
{
    expect_retried(last_lost);
}

static void far_reset(void *arg)
{
    (void)arg;
    sim_thread_sleep(fixture.base.sim, MIDDLE_US * US);
    hca_reset(fixture.base.nodes[1].hca);
}

TEST(Flow, AResetOfThePeerEndsTheMessage)
{
    static const enum hca_opcode OPCODES[] = {HCA_OP_WRITE, HCA_OP_READ};
    for (unsigned i = 0; i < 2; i++) {
        TEST_TRACE("opcode %u", OPCODES[i]);
        message.opcode = OPCODES[i];
        message.bytes = LONG_BYTES;
        init(true, HCA_RC);
        fixture_run(send, far_reset);
        EXPECT_EQ(message.wc.status, HCA_RETRY_EXCEEDED);
        fixture_fini();
    }
}

static void own_end(void *arg)
{
    (void)arg;
    EXPECT_EQ(hca_fixture_send(&fixture.a, HCA_OP_WRITE, FROM, LONG_BYTES, fixture.far, TO), 0);
    sim_thread_sleep(fixture.base.sim, MIDDLE_US * US);
    hca_fixture_qp_close(&fixture.a);
}

TEST(Flow, AQueuePairMayBeDestroyedInTheMiddle)
{
    init(true, HCA_RC);
    fixture_run(own_end, NULL);
    EXPECT_EQ(fixture.far->memory[TO + LONG_BYTES - 1], 0);
    fixture_fini();
}
