#include <string.h>

#include "models/pcie/wire.h"
#include "pair.h"
#include "sim/kernel/random.h"
#include "tests/shim/test.h"

enum { STREAM_TLPS = 5000 };

// Each write has its number as address; the numbers must arrive without a gap and without repetition.
static void offer_numbered(struct pair *pair, unsigned side, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        EXPECT_TRUE(pair_write(pair, side, 0x1000000000 + 4 * i, 4));
    }
}

static void expect_numbered(const struct pair_owner *owner, unsigned count)
{
    ASSERT_EQ(owner->received, count);
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(owner->log[i].address, 0x1000000000 + 4 * i);
        EXPECT_EQ(owner->log[i].first_data, (uint8_t)(4 * i));
    }
}

TEST(Replay, SendsACorruptedTlpAndThoseBehindItAgainInOrder)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    pcie_link_corrupt_next(pair->link, 0);
    offer_numbered(pair, 0, 8);
    (void)sim_run(pair->sim);
    expect_numbered(&pair->owners[1], 8);
    EXPECT_EQ(pair_counter(pair, 1, "naks"), 1);
    EXPECT_EQ(pair_counter(pair, 0, "replay_timeouts"), 0);
    EXPECT_EQ(pair_counter(pair, 0, "tlps_sent"), 8);
    EXPECT_EQ(pair_counter(pair, 0, "replays"), pair_counter(pair, 1, "tlps_discarded"));
    pair_destroy(pair);
}

static void run_clean(uint32_t generation, uint32_t lanes, uint32_t mps_bytes)
{
    struct pcie_link_config config = pair_config();
    config.generation = generation;
    config.lanes = lanes;
    config.mps_bytes = mps_bytes;
    config.flight_ps = 50000;
    struct pair *pair = pair_create(&config);
    pair_saturate(pair, 0, 300, mps_bytes);
    pair_saturate(pair, 1, 600, 64);
    (void)sim_run(pair->sim);
    for (unsigned side = 0; side < 2; side++) {
        EXPECT_EQ(pair_counter(pair, side, "naks"), 0);
        EXPECT_EQ(pair_counter(pair, side, "replays"), 0);
        EXPECT_EQ(pair_counter(pair, side, "tlps_discarded"), 0);
        EXPECT_EQ(pair->owners[side].received, side == 0 ? 600 : 300);
    }
    pair_destroy(pair);
}

TEST(Replay, IsNotUsedOnACleanLinkOfAnyGenerationWidthAndPayload)
{
    for (uint32_t generation = 1; pcie_wire_valid(generation, 1); generation++) {
        for (uint32_t lanes = 1; lanes <= 16; lanes *= 2) {
            for (uint32_t mps_bytes = 128; mps_bytes <= 4096; mps_bytes *= 2) {
                run_clean(generation, lanes, mps_bytes);
            }
        }
    }
}

TEST(Replay, RecoversALostTlpByNakWhenAnotherFollows)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    pcie_link_drop_next(pair->link, 0);
    offer_numbered(pair, 0, 3);
    (void)sim_run(pair->sim);
    expect_numbered(&pair->owners[1], 3);
    EXPECT_EQ(pair_counter(pair, 1, "naks"), 1);
    EXPECT_EQ(pair_counter(pair, 0, "replay_timeouts"), 0);
    pair_destroy(pair);
}

TEST(Replay, RecoversTheLastTlpByTheTimer)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    pcie_link_drop_next(pair->link, 0);
    offer_numbered(pair, 0, 1);
    (void)sim_run(pair->sim);
    expect_numbered(&pair->owners[1], 1);
    EXPECT_EQ(pair_counter(pair, 0, "replay_timeouts"), 1);
    // 28 B at 250 ps, three intervals of 158 symbol times of 2 ns, and the 28 B again.
    EXPECT_EQ(pair->owners[1].log[0].time_ps, 7000 + 3 * 316000 + 7000);
    pair_destroy(pair);
}

TEST(Replay, TimerAllowsForTheFlightOfATlpAndOfItsAck)
{
    enum { FLIGHT_PS = 400000 };
    struct pcie_link_config config = pair_config();
    config.flight_ps = FLIGHT_PS;
    struct pair *pair = pair_create(&config);
    pcie_link_drop_next(pair->link, 0);
    offer_numbered(pair, 0, 1);
    (void)sim_run(pair->sim);
    expect_numbered(&pair->owners[1], 1);
    // 28 B at 250 ps, three intervals of 158 symbol times of 2 ns and two flights; then the 28 B again and their flight.
    EXPECT_EQ(pair->owners[1].log[0].time_ps, 7000 + 3 * 316000 + 2 * FLIGHT_PS + 7000 + FLIGHT_PS);
    pair_destroy(pair);
}

TEST(Replay, RecoversWhenTheReplayIsLostToo)
{
    const struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    pcie_link_drop_next(pair->link, 0);
    offer_numbered(pair, 0, 3);
    while (pair_counter(pair, 1, "naks") == 0) {
        // One TLP of 28 B takes 7 ns: stop and check from time to time.
        sim_event_t nothing;
        sim_event_init(&nothing, (sim_event_fn)sim_stop, pair->sim);
        sim_event_schedule(pair->sim, &nothing, 1000);
        (void)sim_run(pair->sim);
    }
    pcie_link_drop_next(pair->link, 0);
    (void)sim_run(pair->sim);
    expect_numbered(&pair->owners[1], 3);
    EXPECT_EQ(pair_counter(pair, 0, "replay_timeouts"), 1);
    pair_destroy(pair);
}

TEST(Replay, StallsTheTransmitterWhenItsBufferIsFull)
{
    struct pcie_link_config config = pair_config();
    config.flight_ps = 20 * SIM_PS_PER_US;
    pair_set_credits(&config, 1, PCIE_POSTED, PCIE_CREDITS_INFINITE, PCIE_CREDITS_INFINITE);
    struct pair *pair = pair_create(&config);
    pair_saturate(pair, 0, 1500, 8);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 1500);
    EXPECT_EQ(pair_counter(pair, 0, "replays"), 0);
    // 1024 TLPs of 8 ns leave at once; the next one waits for an ACK that arrives 40 us after the first.
    EXPECT_BETWEEN(pair->owners[1].log[1023].time_ps, 28000000, 28400000);
    EXPECT_BETWEEN(pair->owners[1].log[1024].time_ps, 60000000, 61000000);
    pair_destroy(pair);
}

TEST(Acknowledge, ComesAfterTheIntervalAndCoversAllThatArrived)
{
    struct pcie_link_config config = pair_config();
    struct pair *pair = pair_create(&config);
    pair_saturate(pair, 0, 1000, 256);
    (void)sim_run(pair->sim);
    // One ACK each 316 ns plus one TLP, of 70 ns each: every fifth TLP.
    EXPECT_BETWEEN(pair_counter(pair, 1, "acks"), 195, 205);
    pair_destroy(pair);
}

TEST(Acknowledge, ComesEarlierWhenSoManyTlpsArrived)
{
    struct pcie_link_config config = pair_config();
    config.ack_every_tlps = 2;
    struct pair *pair = pair_create(&config);
    pair_saturate(pair, 0, 1000, 256);
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair_counter(pair, 1, "acks"), 500);
    pair_destroy(pair);
}

// A stream of random sizes; each byte is a function of its offset in the stream.
struct stream {
    struct pair *pair;
    unsigned side;
    uint64_t sent_bytes, checked_bytes;
    unsigned sent, bad;
    struct sim_random random;
};

static struct stream streams[2];

static uint8_t stream_byte(unsigned side, uint64_t offset)
{
    return (uint8_t)(offset * 7 + offset / 251 + side);
}

static void stream_fill(struct stream *stream)
{
    while (stream->sent < STREAM_TLPS) {
        uint8_t data[256];
        uint32_t bytes = 1 + (uint32_t)sim_random_below(&stream->random, 64) * 4;
        for (uint32_t i = 0; i < bytes; i++) {
            data[i] = stream_byte(stream->side, stream->sent_bytes + i);
        }
        pcie_tlp_t *tlp = pcie_tlp_write(stream->pair->pool, 0, 0x1000000000, bytes > 256 ? 256 : bytes, data);
        if (!pcie_end_offer(stream->pair->owners[stream->side].end, tlp)) {
            pcie_tlp_unref(tlp);
            return;
        }
        stream->sent++;
        stream->sent_bytes += bytes;
    }
}

static void stream_check(struct pair_owner *owner, pcie_tlp_t *tlp)
{
    struct stream *stream = &streams[owner == &owner->pair->owners[0] ? 1 : 0];
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    for (uint32_t i = 0; i < bytes; i++) {
        stream->bad += pcie_tlp_data(tlp)[i] != stream_byte(stream->side, stream->checked_bytes + i);
    }
    stream->checked_bytes += bytes;
    stream_fill(&streams[0]);
    stream_fill(&streams[1]);
}

// Every transmission arrived, was found to be wrong or came a second time; every replay had a NAK or the timer as its
// reason.
static void expect_accounted(const struct pair *pair, unsigned side)
{
    EXPECT_EQ(pair_counter(pair, side, "tlps_sent") + pair_counter(pair, side, "replays"),
              pair_counter(pair, !side, "tlps_received") + pair_counter(pair, !side, "tlps_discarded"));
    EXPECT_EQ(pair_counter(pair, side, "replay_rounds"), pair_counter(pair, !side, "naks") -
                                                             pair_counter(pair, !side, "naks_lost") +
                                                             pair_counter(pair, side, "replay_timeouts"));
}

static void run_streams(uint32_t corrupt_every, uint32_t lose_every)
{
    TEST_TRACE("every %u. TLP corrupted, every %u. ACK or NAK lost", corrupt_every, lose_every);
    struct pcie_link_config config = pair_config();
    config.corrupt_every_tlps = corrupt_every;
    config.lose_every_acks = lose_every;
    config.flight_ps = 20000;
    struct pair *pair = pair_create(&config);
    memset(streams, 0, sizeof streams);
    for (unsigned side = 0; side < 2; side++) {
        streams[side].pair = pair;
        streams[side].side = side;
        sim_random_init(&streams[side].random, corrupt_every + side, "stream");
        pair->owners[side].on_receive = stream_check;
        stream_fill(&streams[side]);
    }
    EXPECT_EQ(sim_run(pair->sim), SIM_RUN_DONE);
    for (unsigned side = 0; side < 2; side++) {
        EXPECT_EQ(pair->owners[side].received, STREAM_TLPS);
        EXPECT_EQ(streams[side].checked_bytes, streams[side].sent_bytes);
        EXPECT_EQ(streams[side].bad, 0);
        EXPECT_EQ(pair_counter(pair, side, "tlps_corrupted") > 0, corrupt_every > 0);
        EXPECT_GE(pair_counter(pair, side, "replays"), pair_counter(pair, side, "tlps_corrupted"));
        EXPECT_EQ(pair_counter(pair, side, "acks_lost") + pair_counter(pair, side, "naks_lost") > 0, lose_every > 0);
        expect_accounted(pair, side);
    }
    pair_destroy(pair);
}

TEST(Replay, DeliversEveryByteOnceAndInOrderHoweverOftenTlpsAreCorrupted)
{
    static const uint32_t EVERY[] = {1, 2, 3, 4, 7, 16, 64, 257, 1000};
    for (unsigned i = 0; i < sizeof EVERY / sizeof EVERY[0]; i++) {
        run_streams(EVERY[i], 0);
    }
}

TEST(Replay, DeliversEveryByteOnceAndInOrderHoweverOftenAcksAndNaksAreLost)
{
    static const uint32_t CORRUPT[] = {0, 3, 64}, LOSE[] = {2, 7, 50};
    for (unsigned i = 0; i < 9; i++) {
        run_streams(CORRUPT[i / 3], LOSE[i % 3]);
    }
}

// The TLP arrived, and its sender is not told: it sends again after its time-out, and gets another ACK for that.
TEST(Replay, SendsAgainWhatHasArrivedIfTheAckIsLost)
{
    struct pcie_link_config config = pair_config();
    config.lose_every_acks = 2;
    struct pair *pair = pair_create(&config);
    offer_numbered(pair, 0, 1); // its ACK arrives
    (void)sim_run(pair->sim);
    offer_numbered(pair, 0, 1); // that of this one does not
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 2);
    EXPECT_EQ(pair_counter(pair, 1, "acks"), 3);
    EXPECT_EQ(pair_counter(pair, 1, "acks_lost"), 1);
    EXPECT_EQ(pair_counter(pair, 0, "replay_timeouts"), 1);
    EXPECT_EQ(pair_counter(pair, 0, "replays"), 1);
    EXPECT_EQ(pair_counter(pair, 1, "tlps_discarded"), 1);
    expect_accounted(pair, 0);
    pair_destroy(pair);
}

static void digest_add(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    uint64_t *digest = ctx;
    (void)component;
    *digest = (*digest ^ value ^ (uint64_t)desc->name[0]) * 0x100000001b3;
}

TEST(Replay, CountsTheSameInEveryRun)
{
    uint64_t digests[2] = {0, 0};
    for (unsigned run = 0; run < 2; run++) {
        struct pcie_link_config config = pair_config();
        config.corrupt_every_tlps = 13;
        struct pair *pair = pair_create(&config);
        pair_saturate(pair, 0, 3000, 100);
        pair_saturate(pair, 1, 3000, 256);
        (void)sim_run(pair->sim);
        sim_counters_visit(pair->sim, digest_add, &digests[run]);
        digests[run] = digests[run] * 31 + sim_now_ps(pair->sim) + sim_events_run(pair->sim);
        pair_destroy(pair);
    }
    EXPECT_EQ(digests[0], digests[1]);
}

// An ACK that arrives during a replay takes TLPs from the replay buffer, and the replay goes on with the one that it would
// have sent next: a TLP that it left out costs another NAK, though every byte still arrives.
TEST(Replay, GoesOnWhereItWasWhenAnAckArrivesMeanwhile)
{
    enum { CORRUPT_EVERY = 101 };
    static const uint32_t TLPS[] = {30000, 3000};
    static const uint64_t FLIGHTS_PS[] = {0, 20000, 100000, 400000};
    for (unsigned i = 0; i < 16; i++) {
        struct pcie_link_config config = pair_config();
        config.corrupt_every_tlps = CORRUPT_EVERY;
        config.ack_every_tlps = 1 + i / 4;
        config.flight_ps = FLIGHTS_PS[i % 4];
        struct pair *pair = pair_create(&config);
        pair_saturate(pair, 0, TLPS[0], 4);
        pair_saturate(pair, 1, TLPS[1], 256);
        (void)sim_run(pair->sim);
        for (unsigned side = 0; side < 2; side++) {
            uint64_t sent = TLPS[side] + pair_counter(pair, side, "replays");
            EXPECT_BETWEEN(pair_counter(pair, !side, "naks"), 1, sent / CORRUPT_EVERY);
            EXPECT_EQ(pair_counter(pair, side, "replay_timeouts"), 0);
        }
        pair_destroy(pair);
    }
}
