// RDMA writes that the other side finds by polling its memory.
#include <infiniband/verbs.h>

#include "fixture.h"
#include "tests/shim/test.h"

#define TARGET 0x1000u
#define BYTES  64u
#define LAST   (TARGET + BYTES - 1)

static struct fixture fixture;

// node0 has posted a write to node1's memory.
static void written_to(void)
{
    const struct journal_record write = {
        .call = JOURNAL_POST_SEND,
        .send = {.qp = 1, .opcode = IBV_WR_RDMA_WRITE, .bytes = BYTES, .remote_address = TARGET}};
    fixture_open(&fixture,
                 &(struct observe_options){.explain = true, .select = {.opcodes = ~0u, .bytes = OBSERVE_ANY}});
    fixture_connect_both(&fixture);
    fixture_note(fixture.node0, 2000, &write);
}

static const char *kinds(void)
{
    static char text[256];
    observe_explained_kinds(fixture.observe, text, sizeof text);
    return text;
}

// A program goes on looking at a word that it has seen.
TEST(Arrivals, OfAWriteAreFoundOnce)
{
    written_to();
    observe_written(fixture.node1, TARGET, BYTES);
    observe_found(fixture.node1, LAST, 1, 3000);
    EXPECT_STREQ(kinds(), "RDMA_WRITE until found in memory, 64 B (1)");
    observe_found(fixture.node1, LAST, 1, 4000);
    EXPECT_STREQ(kinds(), "RDMA_WRITE until found in memory, 64 B (1)");
    fixture_close(&fixture);
}

TEST(Arrivals, NeedTheLastByteOfTheWrite)
{
    written_to();
    observe_written(fixture.node1, TARGET, BYTES - 1);
    observe_found(fixture.node1, TARGET, BYTES, 3000);
    EXPECT_STREQ(kinds(), "");
    observe_written(fixture.node1, LAST, 1);
    observe_found(fixture.node1, TARGET, BYTES, 4000);
    EXPECT_STREQ(kinds(), "RDMA_WRITE until found in memory, 64 B (1)");
    fixture_close(&fixture);
}
