// Trace points.
#include "sim/kernel/trace.h"

#include "sim/kernel/cause.h"
#include "helpers.h"

static const struct sim_trace_field fields[] = {{"address", SIM_TRACE_HEX, NULL}, {"bytes", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_point tlp_sent = {"tlp_sent", fields, 2, "The last symbol left."};

struct seen {
    unsigned count;
    uint64_t time_ps, a, b;
    const char *component;
    const struct sim_trace_point *point;
};

static void see(void *ctx, const struct sim_trace_record *record)
{
    struct seen *seen = ctx;
    *seen = (struct seen){seen->count + 1,   record->time_ps,   record->values[0],
                          record->values[1], record->component, record->point};
}

static void trace_once(void *ctx)
{
    const uint64_t values[] = {0x1000, 3};
    sim_trace(ctx, "link", &tlp_sent, values);
}

TEST(Trace, ReachesTheSinkWithTimeAndNumbers)
{
    struct seen seen = {0};
    sim_event_t event;
    sim_t *sim = helper_sim_create();
    sim_trace_set_sink(sim, see, &seen);
    sim_event_init(&event, trace_once, sim);
    sim_event_schedule(sim, &event, 250);
    EXPECT_EQ(sim_run(sim), SIM_RUN_DONE);
    EXPECT_EQ(seen.count, 1);
    EXPECT_EQ(seen.time_ps, 250);
    EXPECT_STREQ(seen.component, "link");
    EXPECT_EQ(seen.point, &tlp_sent);
    EXPECT_EQ(seen.a, 0x1000);
    EXPECT_EQ(seen.b, 3);
    sim_destroy(sim);
}

TEST(Trace, IsSilentOnceTheSinkIsRemoved)
{
    struct seen seen = {0};
    sim_t *sim = helper_sim_create();
    sim_trace_set_sink(sim, see, &seen);
    EXPECT_TRUE(sim_trace_wanted(sim));
    sim_trace_set_sink(sim, NULL, NULL);
    EXPECT_FALSE(sim_trace_wanted(sim));
    trace_once(sim);
    EXPECT_EQ(seen.count, 0);
    sim_destroy(sim);
}

// --- numbers --------------------------------------------------------------------------------------------------------

enum { NUMBERS = 8 };

// A simulation whose records are noted by their order.
struct numbered {
    sim_t *sim;
    sim_event_t asked, answered;
    unsigned count;
    uint32_t numbers[NUMBERS], causes[NUMBERS];
};

static void note(void *ctx, const struct sim_trace_record *record)
{
    struct numbered *n = ctx;
    if (n->count < NUMBERS) {
        n->numbers[n->count] = record->number;
        n->causes[n->count++] = record->cause;
    }
}

static void numbered_run(struct numbered *n, void (*asked)(void *ctx), void (*answered)(void *ctx), bool record)
{
    *n = (struct numbered){.sim = helper_sim_create()};
    sim_trace_set_sink(n->sim, note, n);
    if (record) {
        sim_causes_record_last(n->sim, 64);
    }
    sim_event_init(&n->asked, asked, n);
    sim_event_init(&n->answered, answered, n);
    sim_event_schedule(n->sim, &n->asked, 10);
    EXPECT_EQ(sim_run(n->sim), SIM_RUN_DONE);
    sim_destroy(n->sim);
}

static void trace_and_schedule(void *ctx)
{
    struct numbered *n = ctx;
    trace_once(n->sim);
    sim_event_schedule(n->sim, &n->answered, 20);
}

static void trace_now(void *ctx)
{
    trace_once(((struct numbered *)ctx)->sim);
}

TEST(Trace, NamesTheCauseOfARecord)
{
    struct numbered n;
    numbered_run(&n, trace_and_schedule, trace_now, true);
    EXPECT_EQ(n.count, 2);
    EXPECT_EQ(n.numbers[0], 1);
    EXPECT_EQ(n.causes[0], 0);
    EXPECT_EQ(n.numbers[1], 2);
    EXPECT_EQ(n.causes[1], 1);
}

TEST(Trace, HasNoNumbersUnlessCausesAreRecorded)
{
    struct numbered n;
    numbered_run(&n, trace_and_schedule, trace_now, false);
    EXPECT_EQ(n.count, 2);
    EXPECT_EQ(n.numbers[1], 0);
    EXPECT_EQ(n.causes[1], 0);
}

static void schedule_only(void *ctx)
{
    struct numbered *n = ctx;
    sim_event_schedule(n->sim, &n->answered, 20);
}

// Two packets of one cause: the second one does not follow from the first.
static void send_two(void *ctx)
{
    static const struct sim_work flying = {"wire", "flying", false};
    struct numbered *n = ctx;
    const uint64_t values[] = {0, 0};
    trace_once(n->sim);
    sim_cause_t from = sim_cause_now(n->sim);
    sim_cause_t first = sim_cause_extend(n->sim, from, 50, "wire", &flying);
    sim_cause_t second = sim_cause_extend(n->sim, from, 60, "wire", &flying);
    sim_trace_between(n->sim, "link", &tlp_sent, values, from, first);
    sim_trace_between(n->sim, "link", &tlp_sent, values, from, second);
    sim_cause_follow(n->sim, from, "wire", &flying);
    sim_event_schedule(n->sim, &n->answered, 20);
}

TEST(Trace, DoesNotTakeSiblingsForCauses)
{
    struct numbered n;
    numbered_run(&n, send_two, trace_now, true);
    EXPECT_EQ(n.count, 4);
    EXPECT_EQ(n.causes[1], 1);
    EXPECT_EQ(n.causes[2], 1);
    EXPECT_EQ(n.causes[3], 1);
}

static void reserve(void *ctx)
{
    struct numbered *n = ctx;
    trace_once(n->sim);
    EXPECT_EQ(sim_trace_cause(n->sim), 1);
    EXPECT_EQ(sim_trace_reserve(n->sim), 2);
    schedule_only(n);
}

TEST(Trace, LetsWhatFollowsNameARecordThatIsWrittenLater)
{
    struct numbered n;
    numbered_run(&n, reserve, trace_now, true);
    EXPECT_EQ(n.count, 2);
    EXPECT_EQ(n.numbers[1], 3);
    EXPECT_EQ(n.causes[1], 2);
}

static void fill_the_ring(void *ctx)
{
    struct numbered *n = ctx;
    trace_once(n->sim);
    static const struct sim_work working = {"work", "working", false};
    for (unsigned i = 0; i < 100; i++) {
        sim_cause_mark(n->sim, "core", &working);
    }
    schedule_only(n);
}

TEST(Trace, NamesNoCauseWhoseEventIsForgotten)
{
    struct numbered n;
    numbered_run(&n, fill_the_ring, trace_now, true);
    EXPECT_EQ(n.count, 2);
    EXPECT_EQ(n.causes[1], 0);
}
