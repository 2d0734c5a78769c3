// The same C code, attached from outside and as threads of the simulation, measures the same.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "sim/platform/machine.h"
#include "tests/support/attach_fixture.h"

#define ROUNDS      20
#define ROUNDS_TEXT "20"

struct inside {
    unsigned side;
    struct pair pair;
};

static void inside_main(void *arg, peach2_handle_t *board)
{
    struct inside *inside = arg;
    (void)board;
    pair_run(backend_current(), inside->side, ROUNDS, &inside->pair);
}

static void run_inside(const struct scn_scenario *scenario, struct inside sides[2])
{
    char error[256];
    plat_machine_t *machine;
    if (plat_machine_create(scenario, NULL, error, sizeof error, &machine) != SIM_OK) {
        FAIL("%s", error);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        sides[i].side = i;
        plat_machine_set_program(machine, i, inside_main, &sides[i]);
    }
    EXPECT_EQ(plat_machine_run(machine), SIM_RUN_DONE);
    plat_machine_destroy(machine);
}

static char *stamps_text(const struct pair *pair)
{
    char *text = calloc(pair->count + 1, 24), *at = text;
    for (unsigned i = 0; i < pair->count; i++) {
        at += sprintf(at, "%llu\n", (unsigned long long)pair->stamps[i]);
    }
    return text;
}

static void pairs_run(struct attach_fixture *fixture)
{
    attach_fixture_init(fixture);
    attach_fixture_add(fixture, 0, "pair", ROUNDS_TEXT, NULL);
    attach_fixture_add(fixture, 1, "pair", ROUNDS_TEXT, NULL);
    attach_fixture_run(fixture);
    EXPECT_STREQ(fixture->result.text, "");
    EXPECT_EQ(fixture->result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(fixture->result.statuses[0], 0);
    EXPECT_EQ(fixture->result.statuses[1], 0);
}

TEST(AttachedPair, MeasuresToThePicosecondWhatTheSameProgramInsideMeasures)
{
    static struct inside sides[2];
    struct attach_fixture fixture;
    pairs_run(&fixture);
    run_inside(fixture.scenario, sides);
    for (unsigned i = 0; i < 2; i++) {
        char *outside = attach_fixture_output(&fixture, i), *inside = stamps_text(&sides[i].pair);
        EXPECT_EQ(sides[i].pair.error, 0);
        EXPECT_GT(sides[i].pair.count, 3 * ROUNDS);
        EXPECT_STREQ(outside, inside);
        free(outside);
        free(inside);
    }
    attach_fixture_fini(&fixture);
}

TEST(AttachedPair, HasTheSameHashInTenOfTenRuns)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < 10; i++) {
        struct attach_fixture fixture;
        pairs_run(&fixture);
        hash = i == 0 ? fixture.result.hash : hash;
        EXPECT_EQ(fixture.result.hash, hash);
        attach_fixture_fini(&fixture);
    }
}
