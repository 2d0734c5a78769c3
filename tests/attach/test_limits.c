// When a run whose programs only wait and poll is ended, and when it goes on.
#include <fcntl.h>
#include <unistd.h>

#include "sim/attach/internal.h"
#include "tests/support/attach_fixture.h"

#define KILLED (128 + 9)

// How a run of "gone" alone ends, whose real time decides nothing.
static struct attach_run_result result_with(const char *what, const char *const *sets, size_t set_count)
{
    struct attach_fixture fixture;
    attach_fixture_init(&fixture);
    const struct scn_load_options load = {
        .configs_dir = TCASIM_SOURCE_DIR "/configs", .sets = sets, .set_count = set_count};
    struct scn_messages messages = {0};
    scn_free(fixture.scenario);
    EXPECT_EQ(scn_load(TCASIM_SOURCE_DIR "/tests/support/pair.yaml", &load, &fixture.scenario, &messages), SIM_OK);
    scn_messages_free(&messages);
    attach_fixture_add(&fixture, 0, "gone", what, NULL);
    attach_fixture_run(&fixture);
    EXPECT_EQ(fixture.result.outside, 0);
    attach_fixture_fini(&fixture);
    return fixture.result;
}

static struct attach_run_result result_of(const char *what)
{
    return result_with(what, NULL, 0);
}

static void expect_goes_on(const struct attach_run_result *result)
{
    EXPECT_STREQ(result->text, "");
    EXPECT_EQ(result->outcome, SIM_RUN_DONE);
    EXPECT_EQ(result->statuses[0], 0);
    EXPECT_GE(result->simulated_ps, 1100000 * SIM_PS_PER_MS);
}

TEST(AttachedLimits, AProgramThatPollsIsNotEndedBeforeItsAlarm)
{
    const struct attach_run_result result = result_of("alarm");
    expect_goes_on(&result);
}

// The test's own input is that of the simulator.
TEST(AttachedLimits, AProgramThatPollsIsNotEndedWhileSomebodyMayWriteToTheInputOfTheRun)
{
    int ends[2], before = dup(STDIN_FILENO);
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    const struct attach_run_result result = result_of("input");
    EXPECT_EQ(dup2(before, STDIN_FILENO), STDIN_FILENO);
    close(before);
    close(ends[0]);
    close(ends[1]);
    expect_goes_on(&result);
}

// Only its parent knows what the status means.
TEST(AttachedLimits, AChildThatEndedWithAnotherStatusThanZeroIsNotNamedAsTheReason)
{
    const struct attach_run_result result = result_of("parent");
    EXPECT_TRUE(result.failed);
    EXPECT_CONTAINS(result.text, "no program has made progress for ");
    EXPECT_STREQ(result.ends, "");
    EXPECT_EQ(result.statuses[0], KILLED);
}

// A program may sleep for as long as it likes, unless the scenario sets a limit; whatever else it sets.
TEST(AttachedLimits, ALimitOfSilenceHoldsWhereItIsSet)
{
    static const char *const sets[] = {"silence_limit=1 s", "time_limit=3600 s"};
    const struct attach_run_result unlimited = result_of("sleep"), limited = result_with("sleep", sets, 1),
                                   limited_twice = result_with("sleep", sets, 2);
    EXPECT_EQ(unlimited.outcome, SIM_RUN_DONE);
    EXPECT_EQ(unlimited.statuses[0], 0);
    EXPECT_EQ(limited.outcome, SIM_RUN_STUCK);
    EXPECT_BETWEEN(limited.simulated_ps, 1000 * SIM_PS_PER_MS, 1001 * SIM_PS_PER_MS);
    EXPECT_EQ(limited_twice.outcome, SIM_RUN_STUCK);
    EXPECT_EQ(limited_twice.simulated_ps, limited.simulated_ps);
}

TEST(AttachedLimits, AMachineThatStandsStillKeepsNobodySilent)
{
    struct attach_silence patient = {0}, usual = {0};
    uint64_t began = attach_silence_of(&patient, 20), usual_began = attach_silence_of(&usual, 1000);
    usleep(150000); // as long as a machine that is suspended
    EXPECT_EQ(attach_silence_of(&patient, 20) - began, 20);
    EXPECT_GE(attach_silence_of(&usual, 1000) - usual_began, 149); // what is seen counts
}
