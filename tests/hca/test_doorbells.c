// The UAR pages of the BAR: doorbells of other processes, and requests that come line by line (BlueFlame).
#include "fixture.h"
#include "models/hca/hca.h"

// --- doorbells -------------------------------------------------------------------------------------------------------

static void ring_for_others(void *arg)
{
    (void)arg;
    struct hca_fixture_process *other = fixture.base.processes[2];
    const struct backend *backend = &other->backend;
    // The second process of the node has the second page.
    backend->ops->write(backend->ctx, BACKEND_BAR_HCA_UAR, HCA_UAR_BYTES,
                        hca_doorbell_send(hca_qp_number(fixture.a.qp), 1), 8);
    backend->ops->write(backend->ctx, BACKEND_BAR_HCA_UAR, HCA_UAR_BYTES + 0x100, 1, 8);
    sim_thread_sleep(fixture.base.sim, 10 * US);
}

TEST(Doorbells, ADoorbellFromAnotherProcessIsRefused)
{
    fixture_init(HCA_RC);
    (void)hca_fixture_process(&fixture.base, 0);
    fixture_run(ring_for_others, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "doorbells_refused"), 2);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "packets_sent"), 0);
    hca_fixture_fini(&fixture.base);
}

static void read_the_last(void *arg)
{
    const struct backend *backend = &fixture.near->backend;
    uint64_t value = 1;
    (void)arg;
    EXPECT_EQ(backend->ops->read(backend->ctx, BACKEND_BAR_HCA_UAR, hca_uar_bytes() - sizeof value, 8, &value), 0);
    EXPECT_EQ(value, 0);
}

TEST(Doorbells, TheLastBytesOfTheBarAreReadAsZeroLikeTheOthers)
{
    fixture_init(HCA_RC);
    fixture_run(read_the_last, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "unsupported_tlps"), 0);
    hca_fixture_fini(&fixture.base);
}

// --- BlueFlame -------------------------------------------------------------------------------------------------------

enum { LINE_BYTES = 64, FLAME_LINES = 2, FLAME_DATA = 96, FLAME_UNITS = FLAME_LINES * LINE_BYTES / HCA_WQE_UNIT_BYTES };

struct flame_request {
    struct hca_wqe_control control;
    struct hca_wqe_remote remote;
    uint8_t data[FLAME_DATA];
};
_Static_assert(sizeof(struct flame_request) == FLAME_LINES * LINE_BYTES, "whole lines");

static struct hca_fixture_qp flame_qp;
static struct flame_request flames[2];

static void request_fill(struct flame_request *request, const struct hca_fixture_qp *qp, uint32_t offset)
{
    request->control = (struct hca_wqe_control){.qpn = hca_qp_number(qp->qp),
                                                .opcode = HCA_OP_WRITE,
                                                .flags = HCA_WQE_INLINE,
                                                .inline_bytes = FLAME_DATA,
                                                .units = FLAME_UNITS};
    request->remote = (struct hca_wqe_remote){.address = (uint64_t)(uintptr_t)fixture.far->memory + offset,
                                              .rkey = hca_mr_rkey(fixture.far->mr)};
    for (unsigned i = 0; i < FLAME_DATA; i++) {
        request->data[i] = (uint8_t)(offset + 3 * i);
    }
}

// Writes a line of the request to the position `at` of the buffer, both counted in lines.
static void line_write(uint32_t page, unsigned buffer, unsigned at, const struct flame_request *request, unsigned line)
{
    const struct backend *backend = &fixture.near->backend;
    uint64_t offset = page * HCA_UAR_BYTES + HCA_UAR_BLUEFLAME + buffer * HCA_BLUEFLAME_BYTES + at * LINE_BYTES;
    backend->ops->write_combined(backend->ctx, BACKEND_BAR_HCA_UAR, offset,
                                 (const uint8_t *)request + line * LINE_BYTES, LINE_BYTES);
    backend->ops->fence(backend->ctx);
}

static void interleaved_write(void *arg)
{
    (void)arg;
    request_fill(&flames[0], &fixture.a, 0);
    request_fill(&flames[1], &flame_qp, 1000);
    for (unsigned line = 0; line < FLAME_LINES; line++) {
        for (unsigned i = 0; i < 2; i++) {
            line_write(0, 2 + i, line, &flames[i], line);
        }
    }
    sim_thread_sleep(fixture.base.sim, 20 * US);
}

// Like two threads of a process, each with its own buffer.
TEST(BlueFlame, RequestsThatComeLineByLineIntoTwoBuffersStayApart)
{
    fixture_init(HCA_RC);
    flame_qp = hca_fixture_qp(fixture.near, HCA_RC);
    struct hca_fixture_qp peer = hca_fixture_qp(fixture.far, HCA_RC);
    hca_fixture_connect(&flame_qp, &peer);
    fixture_run(interleaved_write, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "blueflames"), 2);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "blueflames_dropped"), 0);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_MEMEQ(fixture.far->memory + i * 1000, flames[i].data, FLAME_DATA);
    }
    hca_fixture_fini(&fixture.base);
}

static void gap_write(void *arg)
{
    (void)arg;
    request_fill(&flames[0], &fixture.a, 0);
    line_write(0, 0, 0, &flames[0], 0);
    line_write(0, 0, 2, &flames[0], 1);
    line_write(0, 0, 1, &flames[0], 1);
    sim_thread_sleep(fixture.base.sim, 20 * US);
}

// The line in the wrong position ends the request; the one after it continues nothing.
TEST(BlueFlame, ALineInTheWrongPositionEndsTheRequest)
{
    fixture_init(HCA_RC);
    fixture_run(gap_write, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "blueflames"), 0);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "blueflames_dropped"), 2);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "packets_sent"), 0);
    hca_fixture_fini(&fixture.base);
}

// --- states ----------------------------------------------------------------------------------------------------------

// The states that a queue pair went through before a whole request arrives, and whether it is flushed (IBA 10.3.1).
static const struct visit {
    enum hca_qp_state states[4];
    bool flushed;
} visits[] = {
    {{HCA_RESET}, false},
    {{HCA_RESET, HCA_INIT}, false},
    {{HCA_RESET, HCA_INIT, HCA_ERROR}, true}, // it has no path, so no MTU
    {{HCA_RESET, HCA_INIT, HCA_RTR, HCA_ERROR}, true},
};

static void states_visit(const struct hca_fixture_qp *qp, const enum hca_qp_state states[4])
{
    struct hca_qp_attr attr = hca_fixture_attr(qp);
    for (unsigned i = 0; i < 4 && (i == 0 || states[i] != HCA_RESET); i++) {
        uint32_t required = 0, optional;
        enum hca_qp_state from = i == 0 ? HCA_RESET : states[i - 1];
        attr.state = states[i];
        EXPECT_TRUE(hca_qp_transition(hca_qp_type(qp->qp), from, states[i], &required, &optional));
        EXPECT_EQ(hca_qp_modify(qp->qp, HCA_QP_STATE | required, &attr), 0);
    }
}

static uint64_t completions(const struct hca_fixture_process *process)
{
    return hca_fixture_counter(process->fixture, process->node, "completions");
}

static void request_in_each_state(void *arg)
{
    const struct hca_fixture_qp *qp = arg;
    for (unsigned i = 0; i < sizeof visits / sizeof *visits; i++) {
        for (unsigned units = 0; units <= FLAME_UNITS; units += FLAME_UNITS) {
            TEST_TRACE("visit %u, %u units", i, units);
            states_visit(qp, visits[i].states);
            request_fill(&flames[0], qp, 0);
            flames[0].control.units = (uint8_t)units; // 0: less than its header
            uint64_t before = completions(fixture.near);
            for (unsigned line = 0; line < FLAME_LINES; line++) {
                line_write(0, 0, line, &flames[0], line);
            }
            sim_thread_sleep(fixture.base.sim, 20 * US);
            EXPECT_EQ(completions(fixture.near), before + visits[i].flushed);
        }
    }
}

static void expect_states_hold(enum hca_qp_type type)
{
    fixture_init(type);
    flame_qp = hca_fixture_qp(fixture.near, type);
    hca_fixture_spawn(&fixture.base, "near", request_in_each_state, &flame_qp);
    hca_fixture_run(&fixture.base);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "packets_sent"), 0);
    hca_fixture_fini(&fixture.base);
}

TEST(BlueFlame, ARequestOfAQueuePairThatCannotSendIsRefusedOrFlushedUnread)
{
    expect_states_hold(HCA_RC);
    expect_states_hold(HCA_UC);
    expect_states_hold(HCA_UD);
}

// --- pages -----------------------------------------------------------------------------------------------------------

static uint32_t page_command(enum hca_command_id id, uint32_t number)
{
    const struct backend *backend = &fixture.near->backend;
    struct hca_command command = {.id = id, .number = number};
    EXPECT_EQ(backend->ops->hca_command(backend->ctx, &command), 0);
    return command.number;
}

static void half_and_whole(void *arg)
{
    (void)arg;
    request_fill(&flames[0], &fixture.a, 0);
    uint32_t page = page_command(HCA_CMD_UAR_ALLOC, 0);
    line_write(page, 0, 0, &flames[0], 0);
    sim_thread_sleep(fixture.base.sim, 10 * US);
    (void)page_command(HCA_CMD_UAR_FREE, page);
    EXPECT_EQ(page_command(HCA_CMD_UAR_ALLOC, 0), page);
    for (unsigned line = 0; line < FLAME_LINES; line++) {
        line_write(page, 0, line, &flames[0], line);
    }
    sim_thread_sleep(fixture.base.sim, 10 * US);
    (void)page_command(HCA_CMD_UAR_FREE, page);
}

// Half a request of the page's first owner, then a whole one of the second.
TEST(BlueFlame, TheNextOwnerOfAPageFindsItsBuffersEmpty)
{
    fixture_init(HCA_RC);
    fixture_run(half_and_whole, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "blueflames"), 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "blueflames_dropped"), 0);
    hca_fixture_fini(&fixture.base);
}

// The page goes to another process while a doorbell for that one's first queue pair waits for its turn.
static void ring_and_free(void *arg)
{
    const uint32_t page = page_command(HCA_CMD_UAR_ALLOC, 0);
    const struct backend *backend = &fixture.near->backend;
    (void)arg;
    backend->ops->write(backend->ctx, BACKEND_BAR_HCA_UAR, page * HCA_UAR_BYTES + HCA_UAR_SEND_DOORBELL,
                        hca_doorbell_send(hca_qp_number(fixture.a.qp) + 1, 1), 8);
    sim_thread_sleep(fixture.base.sim, US);
    (void)page_command(HCA_CMD_UAR_FREE, page);
    struct hca_fixture_qp next = hca_fixture_qp(hca_fixture_process(&fixture.base, 0), HCA_RC);
    EXPECT_EQ(hca_qp_number(next.qp), hca_qp_number(fixture.a.qp) + 1);
    states_visit(&next, (const enum hca_qp_state[4]){HCA_RESET, HCA_INIT, HCA_ERROR});
    sim_thread_sleep(fixture.base.sim, 200 * US);
}

TEST(Doorbells, ADoorbellOfAPageThatWasFreedRingsNothing)
{
    struct hca_config config = preset_hca("connectx-qdr");
    config.doorbell_ps = 100 * US;
    fixture_init_with(&config, HCA_RC);
    fixture_run(ring_and_free, NULL);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "doorbells_refused"), 1);
    EXPECT_EQ(hca_fixture_counter(&fixture.base, 0, "completions"), 0);
    hca_fixture_fini(&fixture.base);
}
