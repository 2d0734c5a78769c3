// Scenarios in text for the tests, and loading them.
#pragma once

#include "sim/scenario/scenario.h"
#include "tests/shim/test.h"

#define FIXTURE_TEXT_MAX 65536

// A load and what came of it. scenario is NULL where it failed.
struct fixture {
    enum sim_status status;
    struct scn_scenario *scenario;
    struct scn_messages messages;
};

// The presets of the project.
#define FIXTURE_CONFIGS TCASIM_SOURCE_DIR "/configs"
#define FIXTURE_FULL    TCASIM_SOURCE_DIR "/tests/scenario/full.yaml"

void fixture_load_file(struct fixture *fixture, const char *path, const char *configs_dir, const char *set);

// The text as a file "case.yaml" in a folder of its own. set: one --set, or NULL.
void fixture_load_text(struct fixture *fixture, const char *text, const char *set);

// Two nodes joined by a cable, one ping-pong; each part may be replaced (NULL: as is).
struct fixture_parts {
    const char *top, *nodes, *cables, *run, *rest;
};
void fixture_load_parts(struct fixture *fixture, const struct fixture_parts *parts);

void fixture_fini(struct fixture *fixture);

// One message, the first, without file and place; "" if there is none.
const char *fixture_message(const struct fixture *fixture);

// Loads, expects the one message, and ends the fixture.
void fixture_expect_refused(const struct fixture_parts *parts, const char *message);
void fixture_expect_accepted(const struct fixture_parts *parts);

// All lines, each ended by a newline; the caller frees.
char *fixture_lines(const struct fixture *fixture);

// The resolved text; the caller frees.
char *fixture_resolved(const struct scn_scenario *scenario);

// A whole file; the caller frees. NULL: cannot be read.
char *fixture_read(const char *path);

void fixture_write(const char *path, const char *text, size_t length);

// A new folder under /tmp; the caller gives room for the name. fixture_folder_remove empties and removes it.
void fixture_folder_create(char path[64]);
void fixture_folder_remove(const char *path);
