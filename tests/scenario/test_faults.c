// Faults: the cable that each one means, and its time. More refused ones are in scenarios/invalid/fault-*.yaml.
#include "fixture.h"

#define CABLE "cable: {from: a.E, to: b.W}"

static void refuse_rest(const char *rest, const char *message)
{
    const struct fixture_parts parts = {.rest = rest};
    fixture_expect_refused(&parts, message);
}

static void accept_rest(const char *rest)
{
    const struct fixture_parts parts = {.rest = rest};
    fixture_expect_accepted(&parts);
}

TEST(Faults, NameACableFromEitherEnd)
{
    struct fixture fixture;
    fixture_load_file(&fixture, FIXTURE_FULL, FIXTURE_CONFIGS, NULL);
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_fault *faults = fixture.scenario->faults;
    EXPECT_EQ(fixture.scenario->fault_count, 2);
    EXPECT_EQ(faults[0].cable, 0);
    EXPECT_EQ(faults[0].kind, SCN_FAULT_PULL);
    EXPECT_EQ(faults[0].at_ps, 12000000);
    EXPECT_EQ(faults[0].after_tlps, SCN_NOT_GIVEN);
    EXPECT_EQ(faults[1].cable, 1);
    EXPECT_EQ(faults[1].at_ps, SCN_NOT_GIVEN);
    EXPECT_EQ(faults[1].after_tlps, 0);
    fixture_fini(&fixture);
}

TEST(Faults, NameACableThatATopologyMade)
{
    static const char text[] = "title: t\n"
                               "topology: {kind: two_rings, nodes: 8, preset: ha-pacs-tca-2013, cable: pearl-gen2-x8}\n"
                               "faults: [{cable: {from: node6.S, to: node2.S}, after_tlps: 7}]\n"
                               "runs: [{series: s, workload: halo, method: chain-host, node: node0, bytes: 64 B}]\n";
    struct fixture fixture;
    fixture_load_text(&fixture, text, NULL);
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    const struct scn_cable *cable = &fixture.scenario->cables[fixture.scenario->faults[0].cable];
    EXPECT_EQ(cable->from_node, 2);
    EXPECT_EQ(cable->to_node, 6);
    EXPECT_EQ(cable->from_port, SCN_PORT_S);
    fixture_fini(&fixture);
}

TEST(Faults, AreMovedByTheCommandLine)
{
    struct fixture fixture;
    fixture_load_file(&fixture, FIXTURE_FULL, FIXTURE_CONFIGS, "faults.0.at=7 us");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->faults[0].at_ps, 7000000);
    EXPECT_STREQ(scn_source(fixture.scenario, &fixture.scenario->faults[0].at_ps), "--set faults.0.at=7 us");
    fixture_fini(&fixture);
}

TEST(Faults, GoToTheCableThatTheCommandLineNames)
{
    struct fixture fixture;
    fixture_load_file(&fixture, FIXTURE_FULL, FIXTURE_CONFIGS, "faults.1.cable={from: node1.E, to: ring0.W}");
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->faults[1].cable, 2);
    fixture_fini(&fixture);
}

TEST(Faults, ComeBeforeTheTimeLimit)
{
    accept_rest("time_limit: 1 ms\nfaults: [{" CABLE ", at: 999999999 ps}]");
    refuse_rest("time_limit: 1 ms\nfaults: [{" CABLE ", at: 1 ms}]",
                "at: 1 ms never comes, as a series ends at time_limit (1 ms)");
}

// Nodes a and b are joined by the cable; the resets are in line 5 of the text.
TEST(Faults, LeaveTheCablesOfABoardThatIsResetAlone)
{
    accept_rest("faults: [{kind: reset, node: b, device: board, at: 1 us}]");
    refuse_rest("faults: [{kind: reset, node: a, device: board, at: 1 us}, {" CABLE ", at: 2 us}]",
                "fault: the cable goes down and up with the board that is reset (line 5); it is not pulled");
    refuse_rest("faults: [{kind: reset, node: b, device: board, at: 1 us}, {" CABLE ", at: 2 us}]",
                "fault: the cable goes down and up with the board that is reset (line 5); it is not pulled");
}
