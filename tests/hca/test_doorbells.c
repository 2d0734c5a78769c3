// The UAR pages of the BAR: doorbells of other processes, and requests that come line by line (BlueFlame).
#include "fixture.h"

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
