// Which operations are explained, and when they begin and end.
#include <infiniband/verbs.h>
#include <string.h>

#include "fixture.h"
#include "sim/kernel/sim.h"
#include "tests/shim/test.h"

#define OTHER_QP 5u

static struct fixture fixture;

struct seen {
    unsigned kinds;
    struct observe_operation last; // without its name
    size_t pieces;                 // of its path
    uint64_t end_ps;               // of the last of them
};

static void operation_take(void *ctx, const struct observe_operation *operation, const struct sim_piece *pieces,
                           size_t count)
{
    struct seen *seen = ctx;
    seen->kinds++;
    seen->pieces = count;
    seen->end_ps = count > 0 ? pieces[count - 1].end_ps : 0;
    seen->last = *operation;
    seen->last.name = NULL;
}

// Both nodes are connected; node0 also by another queue pair.
static void explained(uint32_t qp)
{
    const struct journal_record records[] = {
        {.call = JOURNAL_CREATE_QP,
         .qp = {.number = OTHER_QP, .type = IBV_QPT_RC, .send_cq = 2, .receive_cq = 3, .max_send = 16}},
        {.call = JOURNAL_MODIFY_QP,
         .modify = {.number = OTHER_QP,
                    .mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN,
                    .to = IBV_QPS_RTS,
                    .dest = 1,
                    .dlid = 2}}};
    fixture_open(&fixture, &(struct observe_options){.explain = true,
                                                     .select = {.opcodes = ~0u, .bytes = OBSERVE_ANY, .qp = qp}});
    fixture_connect_both(&fixture);
    fixture_note(fixture.node0, 1000, &records[0]);
    fixture_note(fixture.node0, 1000, &records[1]);
}

// A read whose post ended at 5000 after that time, and whose completion was polled at 9000.
static void read_do(uint32_t qp, uint64_t took_ps)
{
    const struct observe_call call = {.thread = "t", .at_ps = 5000, .took_ps = took_ps};
    const struct journal_record post = {.call = JOURNAL_POST_SEND,
                                        .send = {.qp = qp, .opcode = IBV_WR_RDMA_READ, .bytes = 64, .signaled = true}};
    const struct journal_record done = {.call = JOURNAL_POLL_CQ,
                                        .completion = {.cq = 2, .qp = qp, .opcode = IBV_WC_RDMA_READ}};
    observe_note(fixture.node0, &call, &post);
    fixture_note(fixture.node0, 9000, &done);
}

static struct seen visited(void)
{
    struct seen seen = {0};
    observe_explained_visit(fixture.observe, operation_take, &seen);
    return seen;
}

TEST(Explained, OperationsBeginWithTheCallThatPostsThem)
{
    explained(0);
    read_do(1, 1000);
    const struct seen seen = visited();
    EXPECT_EQ(seen.kinds, 1);
    EXPECT_EQ(seen.last.posted_ps, 4000);
    EXPECT_EQ(seen.last.total_ps, 5000);
    fixture_close(&fixture);
}

TEST(Explained, OperationsAreThoseOfTheSelectedQueuePair)
{
    static const struct {
        uint32_t qp;
        uint64_t count;
    } selections[] = {{0, 5}, {1, 2}, {OTHER_QP, 3}, {OTHER_QP + 1, 0}};
    for (unsigned i = 0; i < sizeof selections / sizeof selections[0]; i++) {
        TEST_TRACE("queue pair %u", selections[i].qp);
        explained(selections[i].qp);
        for (unsigned k = 0; k < 5; k++) {
            read_do(k < 2 ? 1 : OTHER_QP, 100);
        }
        EXPECT_EQ(visited().last.count, selections[i].count);
        fixture_close(&fixture);
    }
}

static void number_take(void *ctx, const struct observe_operation *operation, const struct sim_piece *pieces,
                        size_t count)
{
    char *numbers = ctx;
    const char *number = strchr(operation->name, '#');
    (void)pieces;
    (void)count;
    strcat(numbers, number != NULL ? number : "?");
}

TEST(Explained, OperationsAreEachOfTheSelectedNumbers)
{
    static const struct {
        uint64_t number, last;
        const char *explained;
    } selections[] = {{2, 4, "#2#3#4"}, {5, 9, "#5"}, {3, 0, "#3"}, {6, 9, ""}};
    for (unsigned i = 0; i < sizeof selections / sizeof selections[0]; i++) {
        char numbers[64] = "";
        TEST_TRACE("from %llu", (unsigned long long)selections[i].number);
        fixture_open(&fixture, &(struct observe_options){.explain = true,
                                                         .select = {.opcodes = ~0u,
                                                                    .bytes = OBSERVE_ANY,
                                                                    .number = selections[i].number,
                                                                    .last = selections[i].last}});
        fixture_connect_both(&fixture);
        for (unsigned k = 0; k < 5; k++) {
            read_do(1, 100);
        }
        observe_explained_visit(fixture.observe, number_take, numbers);
        EXPECT_STREQ(numbers, selections[i].explained);
        fixture_close(&fixture);
    }
}

static void device_write(void *ctx)
{
    static const struct sim_work work = {.part = "adapter", .what = "writes the completion"};
    (void)ctx;
    sim_cause_label(fixture.sim, "node0.hca", &work);
    read_do(1, 1000);
}

// A poll becomes known some time after its end. What the adapter did since then is no part of the operation.
TEST(Explained, PathsEndWithTheOperation)
{
    sim_event_t later;
    explained(0);
    sim_event_init(&later, device_write, NULL);
    sim_event_schedule_at(fixture.sim, &later, 12000);
    EXPECT_EQ(sim_run(fixture.sim), SIM_RUN_DONE);
    const struct seen seen = visited();
    EXPECT_EQ(seen.pieces, 1);
    EXPECT_EQ(seen.end_ps, 9000);
    EXPECT_EQ(seen.last.posted_ps + seen.last.total_ps, 9000);
    fixture_close(&fixture);
}
