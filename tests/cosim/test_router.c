// Destinations of packets, and delivery of all of them.
#include <stdlib.h>
#include <string.h>

#include "tests/cosim/chip.h"

static void expect_write(struct chip *chip, unsigned in, uint64_t address, unsigned out, uint64_t expected_address)
{
    const uint8_t data[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    chip_write(chip, in, BAR_WINDOW, address, sizeof data, data);
    pcie_tlp_t *tlp = chip_next(chip, out);
    ASSERT_NOT_NULL(tlp);
    EXPECT_EQ(tlp->kind, PCIE_TLP_MWR);
    EXPECT_EQ(pcie_tlp_first_byte(tlp), expected_address);
    EXPECT_EQ(pcie_tlp_byte_count(tlp), sizeof data);
    EXPECT_MEMEQ(pcie_tlp_data(tlp) + (expected_address & 3), data, sizeof data);
    EXPECT_EQ(chip_left(chip), 0);
}

TEST(Router, SendsWritesWhereTheRoutesSay)
{
    static const struct {
        unsigned node, port;
    } cases[] = {{0, PORT_W}, {1, PORT_W}, {3, PORT_E}, {7, PORT_E}, {8, PORT_S}, {15, PORT_S}};
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t address = chip_window(cases[i].node, i % 4, 0x123 + i * 0x1001);
        expect_write(chip, PORT_N, address, cases[i].port, address);
    }
    chip_destroy(chip);
}

// Routes 5, 6 and 7 are the second ones of E, W and S.
TEST(Router, GivesACablePortASecondRoute)
{
    static const unsigned nodes[] = {5, 0, 11};
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t node = (uint64_t)nodes[i] << PEACH2_NODE_BITS;
        uint32_t first = PEACH2_ROUTE_BASE + (PORT_E + i) * PEACH2_ROUTE_STRIDE,
                 second = first + 4 * PEACH2_ROUTE_STRIDE;
        chip_set32(chip, first + PEACH2_ROUTE_CONTROL, 0);
        chip_set64(chip, second + PEACH2_ROUTE_MASK, UINT64_C(0xf) << PEACH2_NODE_BITS);
        chip_set64(chip, second + PEACH2_ROUTE_LOWER, node);
        chip_set64(chip, second + PEACH2_ROUTE_UPPER, node);
        chip_set32(chip, second + PEACH2_ROUTE_CONTROL, PEACH2_ROUTE_CONTROL_ENABLE_MASK);
    }
    for (unsigned i = 0; i < 3; i++) {
        TEST_TRACE("node %u", nodes[i]);
        expect_write(chip, PORT_N, chip_window(nodes[i], 0, 0x40), PORT_E + i, chip_window(nodes[i], 0, 0x40));
    }
    chip_destroy(chip);
}

TEST(Router, PassesWritesOnBetweenOtherBoards)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    expect_write(chip, PORT_W, chip_window(3, 0, 16), PORT_E, chip_window(3, 0, 16));
    expect_write(chip, PORT_E, chip_window(1, 0, 4), PORT_W, chip_window(1, 0, 4));
    expect_write(chip, PORT_E, chip_window(9, 0, 8), PORT_S, chip_window(9, 0, 8));
    expect_write(chip, PORT_S, chip_window(0, 0, 12), PORT_W, chip_window(0, 0, 12));
    chip_destroy(chip);
}

TEST(Router, TranslatesWhatLeavesForTheOwnNode)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    for (unsigned port = PORT_N; port <= PORT_S; port++) {
        for (unsigned block = BLOCK_HOST; block <= BLOCK_GPU1; block++) {
            uint64_t offset = 0x1fedcba87 - port;
            expect_write(chip, port, chip_window(OWN_NODE, block, offset), PORT_N,
                         HOST_BASE + block * HOST_STRIDE + offset);
        }
    }
    chip_destroy(chip);
}

// Any value may be written: its bits below a page are ignored.
TEST(Router, TranslatesByWholePages)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    const uint64_t subtract = chip_window(OWN_NODE, BLOCK_HOST, 0) - HOST_BASE;
    chip_set64(chip, PEACH2_OFFSET_BASE + PEACH2_OFFSET_SUBTRACT, subtract + 4095);
    EXPECT_EQ(chip_get32(chip, PEACH2_OFFSET_BASE + PEACH2_OFFSET_SUBTRACT), (uint32_t)subtract);
    expect_write(chip, PORT_E, chip_window(OWN_NODE, BLOCK_HOST, 0x1234), PORT_N, HOST_BASE + 0x1234);
    chip_destroy(chip);
}

TEST(Router, LetsTheLowestMatchingRouteWin)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    // E now covers everything; N and its own node are excepted, because N comes first.
    chip_set64(chip, PEACH2_ROUTE_BASE + PORT_E * PEACH2_ROUTE_STRIDE + PEACH2_ROUTE_MASK, 0);
    chip_set64(chip, PEACH2_ROUTE_BASE + PORT_E * PEACH2_ROUTE_STRIDE + PEACH2_ROUTE_LOWER, 0);
    expect_write(chip, PORT_N, chip_window(9, 0, 0), PORT_E, chip_window(9, 0, 0));
    expect_write(chip, PORT_W, chip_window(OWN_NODE, 0, 0), PORT_N, HOST_BASE);
    chip_destroy(chip);
}

TEST(Router, ComparesAddressesInUnitsOf4KiB)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    uint32_t route = PEACH2_ROUTE_BASE + PORT_E * PEACH2_ROUTE_STRIDE;
    chip_set64(chip, route + PEACH2_ROUTE_MASK, UINT64_MAX);
    chip_set64(chip, route + PEACH2_ROUTE_LOWER, (UINT64_C(3) << 35) + 0x5000);
    chip_set64(chip, route + PEACH2_ROUTE_UPPER, (UINT64_C(3) << 35) + 0x6000);
    expect_write(chip, PORT_N, chip_window(3, 0, 0x5000), PORT_E, chip_window(3, 0, 0x5000));
    expect_write(chip, PORT_N, chip_window(3, 0, 0x6fe0), PORT_E, chip_window(3, 0, 0x6fe0));
    chip_write(chip, PORT_N, BAR_WINDOW, chip_window(3, 0, 0x4ffc), 4, "abc");
    chip_write(chip, PORT_N, BAR_WINDOW, chip_window(3, 0, 0x7000), 4, "abc");
    EXPECT_EQ(chip_left(chip), 0);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_UNROUTABLE_WRITES), 2);
    chip_destroy(chip);
}

TEST(Router, DiscardsAndCountsWritesThatNoRouteTakes)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    chip_set32(chip, PEACH2_ROUTE_BASE + PORT_S * PEACH2_ROUTE_STRIDE + PEACH2_ROUTE_CONTROL, 0);
    chip_write(chip, PORT_N, BAR_WINDOW, chip_window(8, 0, 0), 4, "abc");
    chip_write(chip, PORT_E, 0, WINDOW_BASE - 4, 4, "abc"); // outside the window
    EXPECT_EQ(chip_left(chip), 0);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_UNROUTABLE_WRITES), 2);
    chip_destroy(chip);
}

TEST(Router, DiscardsAndCountsWritesThatWouldGoBackToWhereTheyCameFrom)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    chip_write(chip, PORT_E, 0, chip_window(3, 0, 0), 4, "abc");
    EXPECT_EQ(chip_left(chip), 0);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_UNROUTABLE_WRITES), 1);
    chip_destroy(chip);
}

TEST(Router, DiscardsAndCountsUnexpectedCompletions)
{
    struct chip *chip = chip_create(NULL);
    uint8_t data[64] = {0};
    for (unsigned port = PORT_N; port <= PORT_S; port++) {
        pcie_tlp_t *read = pcie_tlp_read(chip->pool, REQUESTER_CHIP, 200, 0x1000, sizeof data);
        chip_send(chip, port, BAR_REGISTERS, pcie_tlp_completion(read, 1, 0, sizeof data, data));
        pcie_tlp_unref(read);
    }
    chip_run(chip);
    EXPECT_EQ(chip_left(chip), 0);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_UNEXPECTED_COMPLETIONS), 4);
    chip_destroy(chip);
}

TEST(Router, CountsTheTlpsOfEachPort)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    chip_write(chip, PORT_W, 0, chip_window(3, 0, 0), 4, "abc");
    chip_write(chip, PORT_W, 0, chip_window(9, 0, 0), 200, NULL);
    chip_write(chip, PORT_S, 0, chip_window(3, 0, 0), 4, "abc");
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_TLPS_IN_W), 2);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_TLPS_IN_S), 1);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_TLPS_IN_E), 0);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_TLPS_OUT_E), 2);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_TLPS_OUT_S), 1);
    EXPECT_EQ(chip_counter(chip, PEACH2_COUNTER_TLPS_OUT_N), 5); // the completions so far
    chip_destroy(chip);
}

// --- rate and fairness -----------------------------------------------------------------------------------------------

static void queue_writes(struct chip *chip, unsigned port, unsigned count, uint64_t address, uint32_t bytes)
{
    uint8_t data[PCIE_PAYLOAD_MAX];
    memset(data, (int)port + 1, sizeof data);
    for (unsigned i = 0; i < count; i++) {
        chip_send(chip, port, BAR_WINDOW,
                  pcie_tlp_write(chip->pool, (uint16_t)port, address + (uint64_t)i * bytes, bytes, data));
    }
}

TEST(Router, MovesABeatInEveryCycle)
{
    enum { PACKETS = 100, BEATS = 17 };
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    queue_writes(chip, PORT_N, PACKETS, chip_window(3, 0, 0), 256);
    chip_run(chip);
    const struct chip_port *out = &chip->ports[PORT_E];
    ASSERT_EQ(out->count, PACKETS);
    EXPECT_EQ(out->left[PACKETS - 1].time_ps - out->left[0].time_ps, (PACKETS - 1) * BEATS * CHIP_PERIOD_PS);
    chip_destroy(chip);
}

TEST(Router, MovesABeatInEveryCycleWhenSourcesTakeTurns)
{
    enum { PACKETS = 50 };
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    queue_writes(chip, PORT_W, PACKETS, chip_window(OWN_NODE, 0, 0), 256);
    queue_writes(chip, PORT_E, PACKETS, chip_window(OWN_NODE, 1, 0), 8);
    queue_writes(chip, PORT_S, PACKETS, chip_window(OWN_NODE, 2, 0), 8);
    chip->ports[PORT_N].next = chip->ports[PORT_N].count;
    chip_run(chip);
    const struct chip_port *out = &chip->ports[PORT_N];
    ASSERT_EQ(out->count, 3 * PACKETS);
    EXPECT_EQ(out->left[3 * PACKETS - 1].time_ps - out->left[2].time_ps, (PACKETS - 1) * (17 + 2 + 2) * CHIP_PERIOD_PS);
    chip_destroy(chip);
}

TEST(Router, SharesAnOutputFairly)
{
    enum { PACKETS = 60 };
    struct chip *chip = chip_create(NULL);
    unsigned counts[COSIM_PORTS] = {0};
    chip_join(chip);
    queue_writes(chip, PORT_N, PACKETS, chip_window(3, 0, 0), 256);
    queue_writes(chip, PORT_W, PACKETS, chip_window(3, 1, 0), 256);
    queue_writes(chip, PORT_S, PACKETS, chip_window(3, 2, 0), 256);
    chip_run(chip);
    ASSERT_EQ(chip->ports[PORT_E].count, 3 * PACKETS);
    for (unsigned i = 0; i < 90; i++) {
        counts[chip->ports[PORT_E].left[i].tlp->requester]++;
    }
    EXPECT_BETWEEN(counts[PORT_N], 29, 31);
    EXPECT_BETWEEN(counts[PORT_W], 29, 31);
    EXPECT_BETWEEN(counts[PORT_S], 29, 31);
    chip_destroy(chip);
}

// In round robin from N on: the last source has its turn last.
TEST(Router, GivesTheFirstTurnAfterAResetToN)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip); // no packet has left E
    queue_writes(chip, PORT_S, 1, chip_window(3, 0, 0), 256);
    queue_writes(chip, PORT_W, 1, chip_window(3, 1, 0), 256);
    queue_writes(chip, PORT_N, 1, chip_window(3, 2, 0), 256);
    chip_run(chip);
    const struct chip_port *out = &chip->ports[PORT_E];
    ASSERT_EQ(out->count, 3);
    EXPECT_EQ(out->left[0].tlp->requester, PORT_N);
    EXPECT_EQ(out->left[1].tlp->requester, PORT_W);
    EXPECT_EQ(out->left[2].tlp->requester, PORT_S);
    chip_destroy(chip);
}

// --- back-pressure --------------------------------------------------------------------------------------------------

TEST(Router, HoldsPacketsBackWhileThePortStalls)
{
    enum { PACKETS = 20 };
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    unsigned before = chip->ports[PORT_N].taken;
    cosim_peach2_set_tx_ready(chip->board, PORT_E, false);
    queue_writes(chip, PORT_N, PACKETS, chip_window(3, 0, 0), 256);
    chip_run(chip);
    EXPECT_EQ(chip->ports[PORT_E].count, 0);
    EXPECT_LT(chip->ports[PORT_N].taken - before, PACKETS);
    cosim_peach2_set_tx_ready(chip->board, PORT_E, true);
    chip_run(chip);
    ASSERT_EQ(chip->ports[PORT_E].count, PACKETS);
    for (unsigned i = 0; i < PACKETS; i++) {
        EXPECT_EQ(chip->ports[PORT_E].left[i].tlp->address, chip_window(3, 0, i * 256));
    }
    chip_destroy(chip);
}

TEST(Router, LetsOtherPortsPassAStalledOne)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    cosim_peach2_set_tx_ready(chip->board, PORT_E, false);
    queue_writes(chip, PORT_N, 3, chip_window(3, 0, 0), 256);
    chip_run(chip);
    expect_write(chip, PORT_W, chip_window(9, 0, 0), PORT_S, chip_window(9, 0, 0));
    EXPECT_EQ(chip->ports[PORT_E].count, 0);
    chip_destroy(chip);
}

// --- everything at once ---------------------------------------------------------------------------------------------

struct traffic {
    struct chip *chip;
    uint64_t state;
    unsigned left_to_send[COSIM_PORTS];
    unsigned sequence[COSIM_PORTS];
    uint64_t hash; // of all packets that left, in order
    sim_event_t send[COSIM_PORTS], stall;
    struct traffic_port {
        struct traffic *traffic;
        unsigned port;
    } ports[COSIM_PORTS];
};

enum { TRAFFIC_PACKETS = 400 };

// requester: the port of entry; tag: low byte of the packet's number there; the data begin with the number.
static void send_random(void *ctx)
{
    struct traffic_port *from = ctx;
    struct traffic *traffic = from->traffic;
    uint8_t data[256];
    static const unsigned nodes[COSIM_PORTS] = {OWN_NODE, 4, 0, 10};
    unsigned to = chip_random(&traffic->state) % COSIM_PORTS;
    to = to == from->port && to != PORT_N ? PORT_N : to;
    uint32_t bytes = 4 + chip_random(&traffic->state) % 253;
    uint32_t offset = (chip_random(&traffic->state) & 0xffffff) * 256 + chip_random(&traffic->state) % (257 - bytes);
    uint32_t number = traffic->sequence[from->port]++;
    memset(data, (int)(number * 7 + from->port), sizeof data);
    memcpy(data, &number, sizeof number);
    chip_send(
        traffic->chip, from->port, BAR_WINDOW,
        pcie_tlp_write(traffic->chip->pool, (uint16_t)from->port, chip_window(nodes[to], 0, offset), bytes, data));
    if (--traffic->left_to_send[from->port] > 0) {
        sim_event_schedule(traffic->chip->sim, &traffic->send[from->port], chip_random(&traffic->state) % 150000);
    }
}

static void stall_random(void *ctx)
{
    struct traffic *traffic = ctx;
    bool more = false;
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        more = more || traffic->left_to_send[port] > 0;
    }
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        cosim_peach2_set_tx_ready(traffic->chip->board, port, !more || chip_random(&traffic->state) % 3 != 0);
    }
    if (more) {
        sim_event_schedule(traffic->chip->sim, &traffic->stall, 1 + chip_random(&traffic->state) % 200000);
    }
}

static void check_packet(struct traffic *traffic, unsigned port, pcie_tlp_t *tlp,
                         int64_t last[COSIM_PORTS][COSIM_PORTS])
{
    uint32_t number = 0;
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    const uint8_t *data = pcie_tlp_data(tlp) + (pcie_tlp_first_byte(tlp) & 3);
    unsigned from = tlp->requester;
    memcpy(&number, data, sizeof number);
    EXPECT_GT((int64_t)number, last[from][port]); // in order between the same two ports
    last[from][port] = number;
    for (uint32_t i = sizeof number; i < bytes; i++) {
        if (data[i] != (uint8_t)(number * 7 + from)) {
            FAIL("byte %u of packet %u from port %u is wrong", i, number, from);
        }
    }
    traffic->hash = (traffic->hash ^ tlp->address ^ number) * UINT64_C(0x100000001b3);
}

static uint64_t run_traffic(uint64_t seed)
{
    struct traffic traffic = {.chip = chip_create(NULL), .state = seed};
    unsigned total = 0;
    int64_t last[COSIM_PORTS][COSIM_PORTS];
    memset(last, -1, sizeof last);
    chip_join(traffic.chip);
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        traffic.ports[port] = (struct traffic_port){&traffic, port};
        traffic.left_to_send[port] = TRAFFIC_PACKETS;
        sim_event_init(&traffic.send[port], send_random, &traffic.ports[port]);
        sim_event_schedule(traffic.chip->sim, &traffic.send[port], port);
    }
    sim_event_init(&traffic.stall, stall_random, &traffic);
    sim_event_schedule(traffic.chip->sim, &traffic.stall, 0);
    chip_run(traffic.chip);
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        for (unsigned i = 0; i < traffic.chip->ports[port].count; i++) {
            struct chip_leaving *leaving = &traffic.chip->ports[port].left[i];
            traffic.hash = (traffic.hash ^ leaving->time_ps) * UINT64_C(0x100000001b3);
            check_packet(&traffic, port, leaving->tlp, last);
            total++;
        }
    }
    EXPECT_EQ(total, COSIM_PORTS * TRAFFIC_PACKETS);
    traffic.hash ^= cosim_peach2_cycles(traffic.chip->board);
    chip_destroy(traffic.chip);
    return traffic.hash;
}

TEST(Router, LosesNothingUnderRandomTrafficAndStalls)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        run_traffic(seed * UINT64_C(0x9e3779b97f4a7c15));
    }
}

TEST(Router, DoesTheSameTwice)
{
    EXPECT_EQ(run_traffic(77), run_traffic(77));
}
