// The state of queues, as lines for a run that is stuck.
#include <infiniband/verbs.h>
#include <stdio.h>

#include "fixture.h"
#include "tests/shim/test.h"

static struct fixture fixture;

// The lines about a completion queue that the program polls, where so many completions wait.
static const char *lines_of_polled(uint32_t waiting)
{
    static char text[1024];
    const struct journal_state state = {
        .is_cq = true, .number = 2, .cq = {.waiting = waiting, .is_polled = true, .first = {.qp = 1}}};
    FILE *out = fmemopen(text, sizeof text, "w");
    fixture_open(&fixture, &(struct observe_options){0});
    fixture_connect(fixture.node0, 1, 2, 0x100);
    observe_states_print(fixture.node0, &state, 1, out);
    fclose(out);
    fixture_close(&fixture);
    return text;
}

TEST(States, NameTheEmptyQueueThatTheProgramPolls)
{
    EXPECT_CONTAINS(lines_of_polled(0), "node0 polls cq 2, where nothing came");
}

// The completion came after the program's last poll.
TEST(States, CallNoQueueEmptyWhereACompletionWaits)
{
    const char *lines = lines_of_polled(1);
    EXPECT_CONTAINS(lines, "node0 cq 2: 1 completion not polled");
    EXPECT_LACKS(lines, "nothing came");
}
