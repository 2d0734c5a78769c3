// A link does the same whether its owners announce when a TLP will leave their receive buffer, or release it then: random
// traffic in both directions, with buffers for a few TLPs of each class.
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "tests/shim/test.h"

enum { LINKS = 300, OFFERS = 120, TLPS_MAX = OFFERS };

enum manner { AT_ITS_TIME, ANNOUNCED, BOTH, MANNERS };

struct offer {
    uint64_t at_ps;
    unsigned side;
    enum pcie_tlp_kind kind;
    uint32_t bytes;
};

// What happens, drawn before the link is made.
struct draw {
    struct pcie_link_config config;
    struct offer offers[OFFERS];
    uint64_t delays_ps[2][TLPS_MAX]; // from the arrival of a TLP to its release, unless an earlier one leaves later
    bool announces[2][TLPS_MAX];
};

struct traffic;

struct release {
    struct traffic *traffic;
    pcie_end_t *end;
    pcie_tlp_t *tlp;
    sim_event_t event;
};

struct traffic {
    struct pair *pair;
    const struct draw *draw;
    enum manner manner;
    sim_event_t event;
    unsigned offered;
    uint64_t refused;
    uint64_t free_ps[2]; // when the last TLP of that side leaves
    struct release releases[2][TLPS_MAX];
};

static uint64_t drawn(uint64_t *state, uint64_t limit)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (*state >> 33) % limit;
}

static struct draw *draw_make(uint64_t seed)
{
    static const uint64_t PAUSES_PS[] = {1, 20000, 200000, 3000000}, DELAYS_PS[] = {1, 60000, 400000, 5000000};
    struct draw *draw = calloc(1, sizeof *draw);
    uint64_t state = seed, at_ps = 0;
    uint64_t pause_ps = PAUSES_PS[drawn(&state, 4)], delay_ps = DELAYS_PS[drawn(&state, 4)];
    draw->config = pair_config();
    draw->config.ack_every_tlps = (uint32_t)drawn(&state, 4);
    draw->config.flight_ps = 1000 * drawn(&state, 40);
    for (unsigned side = 0; side < 2; side++) {
        draw->config.ends[side].tx_ps = 1000 * drawn(&state, 300);
        draw->config.ends[side].rx_ps = 1000 * drawn(&state, 300);
        for (enum pcie_class class = PCIE_POSTED; class < PCIE_CLASS_COUNT; class ++) {
            pair_set_credits(&draw->config, side, class, 1 + (uint32_t)drawn(&state, 12),
                             16 + (uint32_t)drawn(&state, 50));
        }
        for (unsigned i = 0; i < TLPS_MAX; i++) {
            draw->delays_ps[side][i] = drawn(&state, 4) == 0 ? 0 : drawn(&state, delay_ps);
            draw->announces[side][i] = drawn(&state, 2) == 0;
        }
    }
    for (unsigned i = 0; i < OFFERS; i++) {
        static const enum pcie_tlp_kind KINDS[] = {PCIE_TLP_MRD, PCIE_TLP_MWR, PCIE_TLP_CPL, PCIE_TLP_CPLD,
                                                   PCIE_TLP_MWR};
        at_ps += drawn(&state, pause_ps);
        draw->offers[i] = (struct offer){at_ps, (unsigned)drawn(&state, 2), KINDS[drawn(&state, 5)],
                                         4 * (1 + (uint32_t)drawn(&state, 64))};
    }
    return draw;
}

static void release_run(void *ctx)
{
    struct release *release = ctx;
    pcie_end_release(release->end, release->tlp);
    pcie_tlp_unref(release->tlp);
}

static struct traffic *running; // owners of a pair have no context of their own

static void take(struct pair_owner *owner, pcie_tlp_t *tlp)
{
    struct traffic *traffic = running;
    sim_t *sim = traffic->pair->sim;
    unsigned side = (unsigned)(owner - traffic->pair->owners), index = (unsigned)owner->received - 1;
    uint64_t at_ps = sim_now_ps(sim) + traffic->draw->delays_ps[side][index];
    if (at_ps < traffic->free_ps[side]) {
        at_ps = traffic->free_ps[side];
    }
    traffic->free_ps[side] = at_ps;
    bool announces = traffic->manner == ANNOUNCED || (traffic->manner == BOTH && traffic->draw->announces[side][index]);
    if (announces) {
        pcie_end_release_at(owner->end, tlp, at_ps);
        pcie_tlp_unref(tlp);
        return;
    }
    struct release *release = &traffic->releases[side][index];
    *release = (struct release){traffic, owner->end, tlp, {0}};
    sim_event_init(&release->event, release_run, release);
    sim_event_schedule_at(sim, &release->event, at_ps);
}

static void offer_next(void *ctx)
{
    struct traffic *traffic = ctx;
    const struct offer *offer = &traffic->draw->offers[traffic->offered];
    uint8_t tag = (uint8_t)traffic->offered++;
    traffic->refused += !pair_offer(traffic->pair, offer->side, offer->kind, tag, offer->bytes);
    if (traffic->offered < OFFERS) {
        sim_event_schedule_at(traffic->pair->sim, &traffic->event, traffic->draw->offers[traffic->offered].at_ps);
    }
}

// --- what came of it ------------------------------------------------------------------------------------------------

static const char *const COUNTERS[] = {
    "update_fcs", "acks", "dllps_sent", "wire_bytes_sent", "stall_posted", "stall_nonposted", "stall_completion"};
enum { COUNTER_COUNT = sizeof COUNTERS / sizeof COUNTERS[0], STALL_POSTED = 4 };

struct outcome {
    uint64_t refused, received[2], counters[2][COUNTER_COUNT];
    struct pair_entry log[2][TLPS_MAX];
};

static void outcome_take(const struct traffic *traffic, struct outcome *outcome)
{
    outcome->refused = traffic->refused;
    for (unsigned side = 0; side < 2; side++) {
        const struct pair_owner *owner = &traffic->pair->owners[side];
        outcome->received[side] = owner->received;
        memcpy(outcome->log[side], owner->log, sizeof outcome->log[side]);
        for (unsigned i = 0; i < COUNTER_COUNT; i++) {
            outcome->counters[side][i] = pair_counter(traffic->pair, side, COUNTERS[i]);
        }
    }
}

static void traffic_run(const struct draw *draw, enum manner manner, struct outcome *outcome)
{
    struct traffic *traffic = running = calloc(1, sizeof *traffic);
    traffic->pair = pair_create(&draw->config);
    traffic->draw = draw;
    traffic->manner = manner;
    traffic->pair->owners[0].takes = traffic->pair->owners[1].takes = take;
    sim_event_init(&traffic->event, offer_next, traffic);
    sim_event_schedule_at(traffic->pair->sim, &traffic->event, draw->offers[0].at_ps);
    (void)sim_run(traffic->pair->sim);
    outcome_take(traffic, outcome);
    pair_destroy(traffic->pair);
    free(traffic);
}

static void outcomes_compare(const struct outcome *first, const struct outcome *other)
{
    EXPECT_EQ(other->refused, first->refused);
    for (unsigned side = 0; side < 2; side++) {
        EXPECT_EQ(other->received[side], first->received[side]);
        EXPECT_MEMEQ(other->log[side], first->log[side], sizeof first->log[side]);
        for (unsigned i = 0; i < COUNTER_COUNT; i++) {
            TEST_TRACE("%s of side %u", COUNTERS[i], side);
            EXPECT_EQ(other->counters[side][i], first->counters[side][i]);
        }
    }
}

TEST(Releases, AreTheSameAnnouncedAndWhenTheyHappen)
{
    static struct outcome first, other;
    uint64_t received = 0, stalled_ps = 0;
    for (uint64_t seed = 1; seed <= LINKS; seed++) {
        struct draw *draw = draw_make(seed);
        traffic_run(draw, AT_ITS_TIME, &first);
        for (enum manner manner = ANNOUNCED; manner < MANNERS; manner++) {
            TEST_TRACE("link %lu, manner %d", (unsigned long)seed, (int)manner);
            traffic_run(draw, manner, &other);
            outcomes_compare(&first, &other);
        }
        received += first.received[0] + first.received[1];
        stalled_ps += first.counters[0][STALL_POSTED];
        free(draw);
    }
    EXPECT_GT(received, LINKS * OFFERS / 2); // else it compares little
    EXPECT_GT(stalled_ps, LINKS * UINT64_C(100000));
}
