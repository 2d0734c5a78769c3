// The same C code attached from outside and as threads of the simulation: what it measures is the same.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "sim/platform/machine.h"
#include "stage.h"

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

static void stage_pairs(struct stage *stage)
{
    stage_init(stage);
    stage_add(stage, 0, "pair", ROUNDS_TEXT, NULL);
    stage_add(stage, 1, "pair", ROUNDS_TEXT, NULL);
    stage_run(stage);
    EXPECT_STREQ(stage->result.text, "");
    EXPECT_EQ(stage->result.outcome, SIM_RUN_DONE);
    EXPECT_EQ(stage->result.statuses[0], 0);
    EXPECT_EQ(stage->result.statuses[1], 0);
}

TEST(AttachedPair, MeasuresToThePicosecondWhatTheSameProgramInsideMeasures)
{
    static struct inside sides[2];
    struct stage stage;
    stage_pairs(&stage);
    run_inside(stage.scenario, sides);
    for (unsigned i = 0; i < 2; i++) {
        char *outside = stage_output(&stage, i), *inside = stamps_text(&sides[i].pair);
        EXPECT_EQ(sides[i].pair.error, 0);
        EXPECT_TRUE(sides[i].pair.count > 3 * ROUNDS);
        EXPECT_STREQ(outside, inside);
        free(outside);
        free(inside);
    }
    stage_fini(&stage);
}

TEST(AttachedPair, HasTheSameHashInTenOfTenRuns)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < 10; i++) {
        struct stage stage;
        stage_pairs(&stage);
        hash = i == 0 ? stage.result.hash : hash;
        EXPECT_EQ(stage.result.hash, hash);
        stage_fini(&stage);
    }
}
