// The InfiniBand link and the switch without an adapter.
#include <string.h>

#include "models/hca/ib_switch.h"
#include "sim/kernel/counter.h"
#include "tests/shim/test.h"

enum { LINKS = 3, LOG_MAX = 512, BLOCKS = 80 };

struct host {
    struct net *net;
    ib_end_t *end;
    struct ib_queue waiting, held;
    bool holds;
    unsigned received, order[LOG_MAX];
    uint64_t first_ps, last_ps;
};
struct net {
    sim_t *sim;
    ib_pool_t *pool;
    ib_link_t *links[LINKS];
    ib_switch_t *ib_switch;
    struct host hosts[LINKS];
};
static struct net net;

static void host_ready(void *ctx, ib_end_t *end)
{
    struct host *host = ctx;
    while (host->waiting.count > 0) {
        ib_packet_t *packet = host->waiting.first, *next = packet->next;
        if (!ib_end_offer(end, packet)) {
            return;
        }
        host->waiting.first = next;
        host->waiting.count--;
    }
}

static void host_receive(void *ctx, ib_end_t *end, ib_packet_t *packet)
{
    struct host *host = ctx;
    host->last_ps = sim_now_ps(host->net->sim);
    host->first_ps = host->received == 0 ? host->last_ps : host->first_ps;
    host->order[host->received++ % LOG_MAX] = packet->slid << 16 | packet->psn;
    if (host->holds) {
        ib_queue_push(&host->held, packet);
        return;
    }
    ib_end_release(end, packet);
    ib_packet_give(host->net->pool, packet);
}

static void host_state(void *ctx, ib_end_t *end, bool up)
{
    (void)ctx;
    (void)end;
    (void)up;
}

static const struct ib_end_ops HOST_OPS = {
    .receive = host_receive, .ready = host_ready, .state = host_state};

static void host_release(struct host *host)
{
    host->holds = false;
    while (host->held.count > 0) {
        ib_packet_t *packet = ib_queue_pop(&host->held);
        ib_end_release(host->end, packet);
        ib_packet_give(net.pool, packet);
    }
}

static void send(unsigned from, unsigned to, unsigned count, uint32_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        ib_packet_t *packet = ib_packet_take(net.pool);
        packet->opcode = IB_SEND_ONLY;
        packet->slid = (uint16_t)from;
        packet->dlid = (uint16_t)to;
        packet->psn = i;
        packet->bytes = bytes;
        ib_queue_push(&net.hosts[from].waiting, packet);
    }
    host_ready(&net.hosts[from], net.hosts[from].end);
}

// direct: hosts 0 and 1 on one cable; else all hosts on a switch of 100 ns.
static void net_init(bool direct)
{
    static const char *const NAMES[LINKS] = {"link0", "link1", "link2"};
    const struct sim_config config = {.seed = 1};
    const struct ib_link_config link = {
        .ps_per_byte = 250, .flight_ps = 50000, .buffer_blocks = {BLOCKS, BLOCKS}, .mtu_bytes = 2048};
    memset(&net, 0, sizeof net);
    ASSERT_EQ(sim_create(&config, &net.sim), SIM_OK);
    net.pool = ib_pool_create();
    ASSERT_EQ(ib_switch_create(net.sim, net.pool, "switch", 100000, &net.ib_switch), SIM_OK);
    for (unsigned i = 0; i < LINKS; i++) {
        struct host *host = &net.hosts[i];
        ASSERT_EQ(ib_link_create(net.sim, net.pool, NAMES[i], &link, &net.links[i]), SIM_OK);
        host->net = &net;
        host->end = direct && i == 1 ? ib_link_end(net.links[0], 1) : ib_link_end(net.links[i], 0);
        ib_end_attach(host->end, &HOST_OPS, host);
        if (!direct) {
            unsigned port = ib_switch_add_port(net.ib_switch, ib_link_end(net.links[i], 1));
            ASSERT_EQ(ib_switch_set_route(net.ib_switch, (uint16_t)i, port), SIM_OK);
        }
    }
}

static void net_fini(void)
{
    ib_switch_destroy(net.ib_switch);
    for (unsigned i = 0; i < LINKS; i++) {
        ib_link_destroy(net.links[i]);
    }
    EXPECT_EQ(ib_pool_destroy(net.pool), 0);
    sim_destroy(net.sim);
}

TEST(IbLink, TakesTheTimeOfItsBytesAndItsFlight)
{
    net_init(true);
    send(0, 1, 1, 8);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].last_ps, (8 + 12 + 8 + 4 + 2 + 2) * 250 + 50000); // LRH BTH payload ICRC VCRC delimiters
    net_fini();
}

TEST(IbLink, TakesTheTimeOfAGlobalRouteHeaderAsWell)
{
    net_init(true);
    ib_packet_t *packet = ib_packet_take(net.pool);
    packet->opcode = IB_SEND_ONLY;
    packet->dlid = 1;
    packet->bytes = 8;
    packet->global = true;
    ib_queue_push(&net.hosts[0].waiting, packet);
    host_ready(&net.hosts[0], net.hosts[0].end);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].last_ps, (8 + 40 + 12 + 8 + 4 + 2 + 2) * 250 + 50000); // LRH GRH BTH payload and the rest
    net_fini();
}

TEST(IbLink, CarriesItsRateLessTheHeaders)
{
    net_init(true);
    send(0, 1, 400, 2048);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, 400);
    uint64_t took_ps = net.hosts[1].last_ps - net.hosts[1].first_ps;
    EXPECT_BETWEEN(took_ps, 399ull * 2076 * 250, 399ull * 2076 * 250 * 101 / 100);
    net_fini();
}

TEST(IbLink, StopsWhenTheReceiverHasNoRoomAndLosesNothing)
{
    net_init(true);
    net.hosts[1].holds = true;
    send(0, 1, 10, 2048);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, BLOCKS / 33); // 2074 bytes are 33 blocks
    host_release(&net.hosts[1]);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, 10);
    net_fini();
}

TEST(IbLink, KeepsItsCreditsOverLossesAndAPulledCable)
{
    net_init(true);
    ib_link_drop_next(net.links[0], 0, 100);
    send(0, 1, 100, 2048);
    (void)sim_run(net.sim);
    ib_link_set_up(net.links[0], false);
    send(0, 1, 5, 2048);
    (void)sim_run(net.sim);
    ib_link_set_up(net.links[0], true);
    net.hosts[1].holds = true;
    send(0, 1, 10, 2048);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, BLOCKS / 33);
    host_release(&net.hosts[1]);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, 10);
    net_fini();
}

// A quarter of the buffer, 20 blocks, would be reported at once; the 15 of this packet are not yet.
TEST(IbLink, KeepsTheRoomThatWasFreedBeforeTheCableWasPulled)
{
    net_init(true);
    send(0, 1, 1, 900);
    (void)sim_run(net.sim);
    ib_link_set_up(net.links[0], false);
    ib_link_set_up(net.links[0], true);
    net.hosts[1].holds = true;
    send(0, 1, 10, 2048);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, 1 + BLOCKS / 33);
    host_release(&net.hosts[1]);
    (void)sim_run(net.sim);
    net_fini();
}

TEST(IbSwitch, AddsItsLatencyAndASecondSerialisation)
{
    net_init(false);
    send(0, 1, 1, 8);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].last_ps, 2 * (36 * 250 + 50000) + 100000);
    net_fini();
}

TEST(IbSwitch, ServesTwoInputsInTurn)
{
    net_init(false);
    send(0, 2, 50, 2048);
    send(1, 2, 50, 2048);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[2].received, 100);
    unsigned from[2] = {0, 0};
    for (unsigned i = 0; i < 100; i++) {
        unsigned slid = net.hosts[2].order[i] >> 16;
        EXPECT_EQ(net.hosts[2].order[i] & 0xffff, from[slid]++); // each in its own order
        EXPECT_BETWEEN((int)from[0] - (int)from[1], -2, 2);
    }
    net_fini();
}

TEST(IbSwitch, LetsABusyOutputStallNobodyElse)
{
    net_init(false);
    net.hosts[1].holds = true;
    send(0, 1, 3, 2048); // one more than host 1 has room for
    send(0, 2, 1, 64);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[2].received, 1);
    host_release(&net.hosts[1]);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, 3);
    net_fini();
}

TEST(IbSwitch, DropsWhatItHasNoRouteFor)
{
    net_init(false);
    send(0, 99, 1, 64);
    (void)sim_run(net.sim);
    bool found;
    EXPECT_EQ(sim_counter_value(net.sim, "switch", "unroutable_packets", &found), 1);
    net_fini();
}

static void group_change(uint16_t lid, bool joins)
{
    EXPECT_EQ(ib_switch_group_change(net.ib_switch, IB_MULTICAST_LID, lid, joins), SIM_OK);
}

TEST(IbSwitch, CopiesWhatGoesToAGroupToEachMemberButTheSender)
{
    net_init(false);
    for (uint16_t lid = 0; lid < LINKS; lid++) {
        group_change(lid, true);
    }
    group_change(2, true); // two members there
    send(0, IB_MULTICAST_LID, 3, 64);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[0].received, 0);
    EXPECT_EQ(net.hosts[1].received, 3);
    EXPECT_EQ(net.hosts[2].received, 3);
    group_change(2, false);
    group_change(1, false);
    send(0, IB_MULTICAST_LID, 1, 64);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, 3);
    EXPECT_EQ(net.hosts[2].received, 4);
    group_change(2, false);
    EXPECT_EQ(ib_switch_group_change(net.ib_switch, IB_MULTICAST_LID, 2, false), SIM_ERR_INVALID);
    net_fini();
}

// One group more than the switch has places for, but one after the other.
TEST(IbSwitch, FreesThePlaceOfAGroupWithTheLastMember)
{
    net_init(false);
    for (uint16_t i = 0; i <= IB_SWITCH_GROUPS; i++) {
        TEST_TRACE("group %u", i);
        ASSERT_EQ(ib_switch_group_change(net.ib_switch, (uint16_t)(IB_MULTICAST_LID + i), 1, true), SIM_OK);
        ASSERT_EQ(ib_switch_group_change(net.ib_switch, (uint16_t)(IB_MULTICAST_LID + i), 1, false), SIM_OK);
    }
    net_fini();
}

TEST(IbSwitch, KeepsAPacketsPlaceUntilTheLastCopyHasLeft)
{
    net_init(false);
    net.hosts[1].holds = true;
    group_change(1, true);
    group_change(2, true);
    send(0, IB_MULTICAST_LID, 10, 2048);
    (void)sim_run(net.sim);
    unsigned taken = net.hosts[2].received;
    EXPECT_BETWEEN(taken, 3, 6); // as many as host 1 and the switch have room for
    host_release(&net.hosts[1]);
    (void)sim_run(net.sim);
    EXPECT_EQ(net.hosts[1].received, 10);
    EXPECT_EQ(net.hosts[2].received, 10);
    net_fini();
}

// IBA 5.2.1, and annex A14: only requests have the header that names a shared receive queue.
TEST(IbPackets, OfXrcAreLongerByTheirHeaderInRequests)
{
    ib_pool_t *pool = ib_pool_create();
    ib_packet_t *packet = ib_packet_take(pool);
    packet->opcode = IB_SEND_ONLY;
    packet->bytes = 8;
    uint32_t plain = ib_packet_wire_bytes(packet);
    packet->service = IB_XRC;
    EXPECT_EQ(ib_packet_wire_bytes(packet), plain + 4);
    packet->opcode = IB_ACKNOWLEDGE;
    packet->bytes = 0;
    uint32_t acknowledge = ib_packet_wire_bytes(packet);
    packet->service = IB_RC;
    EXPECT_EQ(ib_packet_wire_bytes(packet), acknowledge);
    ib_packet_give(pool, packet);
    (void)ib_pool_destroy(pool);
}

// IBA 9.2.1, table 35: the headers behind the BTH; their sizes are those of 9.3 (RETH 16, AtomicETH 28, AETH 4,
// AtomicAckETH 8, immediate data 4).
TEST(IbPackets, HaveTheHeadersOfTheirOpcode)
{
    enum { RETH = 16, ATOMIC_ETH = 28, AETH = 4, ATOMIC_ACK = 8, IMMEDIATE = 4, PAYLOAD = 64 };
    enum { OTHER = 8 + 12 + 4 + 2 + 2 }; // LRH, BTH, ICRC, VCRC, delimiters
    static const struct {
        const char *name;
        enum ib_opcode opcode;
        uint32_t headers, payload;
    } packets[] = {{"send only", IB_SEND_ONLY, 0, PAYLOAD},
                   {"send only with immediate", IB_SEND_ONLY_IMM, IMMEDIATE, PAYLOAD},
                   {"send last with immediate", IB_SEND_LAST_IMM, IMMEDIATE, PAYLOAD},
                   {"write first", IB_WRITE_FIRST, RETH, PAYLOAD},
                   {"write middle", IB_WRITE_MIDDLE, 0, PAYLOAD},
                   {"write last with immediate", IB_WRITE_LAST_IMM, IMMEDIATE, PAYLOAD},
                   {"write only with immediate", IB_WRITE_ONLY_IMM, RETH + IMMEDIATE, PAYLOAD},
                   {"read request", IB_READ_REQUEST, RETH, 0},
                   {"read response first", IB_READ_FIRST, AETH, PAYLOAD},
                   {"read response middle", IB_READ_MIDDLE, 0, PAYLOAD},
                   {"acknowledge", IB_ACKNOWLEDGE, AETH, 0},
                   {"atomic acknowledge", IB_ATOMIC_ACKNOWLEDGE, AETH + ATOMIC_ACK, 0},
                   {"compare and swap", IB_COMPARE_SWAP, ATOMIC_ETH, 0},
                   {"fetch and add", IB_FETCH_ADD, ATOMIC_ETH, 0}};
    ib_pool_t *pool = ib_pool_create();
    ib_packet_t *packet = ib_packet_take(pool);
    for (unsigned i = 0; i < sizeof packets / sizeof *packets; i++) {
        TEST_TRACE("%s", packets[i].name);
        packet->opcode = (uint8_t)packets[i].opcode;
        packet->bytes = packets[i].payload;
        EXPECT_EQ(ib_packet_wire_bytes(packet), OTHER + packets[i].headers + packets[i].payload);
    }
    ib_packet_give(pool, packet);
    (void)ib_pool_destroy(pool);
}
