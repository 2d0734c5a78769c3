// A run of attached programs on the two nodes of pair.yaml.
#pragma once

#include "sim/attach/attach_run.h"
#include "tests/shim/test.h"

struct stage {
    struct scn_scenario *scenario;
    struct attach_program programs[8];
    char *argv[8][8];
    char stdout_path[8][128];
    uint32_t count;
    struct attach_run_options options;
    struct attach_run_result result;
};

// Programs load libtcasim-attach.so alone: these attach themselves, and wait for each other by its calls.
void stage_init(struct stage *stage);
void stage_fini(struct stage *stage);
// Up to seven arguments, ended by NULL; the first is a program of tests/attach ("pair") or a path.
void stage_add(struct stage *stage, uint32_t node, const char *program, ...);
void stage_run(struct stage *stage);
// The same, and it was not the wall limit that ended it.
void stage_run_before_limit(struct stage *stage);
// What the program wrote; to be freed.
char *stage_output(const struct stage *stage, uint32_t program);
