// Sets up a run of attached programs on the two nodes of pair.yaml.
#pragma once

#include "sim/attach/attach_run.h"
#include "tests/shim/test.h"

struct attach_fixture {
    struct scn_scenario *scenario;
    struct attach_program programs[8];
    char *argv[8][8];
    char stdout_path[8][128];
    uint32_t count;
    struct attach_run_options options;
    struct attach_run_result result;
};

// Programs load only libtcasim-attach.so: these attach themselves, and wait for each other with its calls.
void attach_fixture_init(struct attach_fixture *fixture);
void attach_fixture_fini(struct attach_fixture *fixture);
// Up to seven arguments, ended by NULL; the first is a program of tests/attach ("pair") or a path.
void attach_fixture_add(struct attach_fixture *fixture, uint32_t node, const char *program, ...);
void attach_fixture_run(struct attach_fixture *fixture);
// The same, and checks that the wall limit did not end it.
void attach_fixture_run_before_limit(struct attach_fixture *fixture);
// The program's output, which the caller frees.
char *attach_fixture_output(const struct attach_fixture *fixture, uint32_t program);
