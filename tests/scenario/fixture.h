// Loads scenarios from text for the tests.
#pragma once

#include "sim/scenario/scenario.h"
#include "tests/shim/test.h"

#define FIXTURE_TEXT_MAX 65536

// A load and its result. scenario is NULL if it failed.
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

// Two nodes joined by a cable, one ping-pong; each part may be replaced (NULL: unchanged).
struct fixture_parts {
    const char *top, *nodes, *cables, *run, *rest;
};
void fixture_load_parts(struct fixture *fixture, const struct fixture_parts *parts);

void fixture_fini(struct fixture *fixture);

// The first message without file and location; "" if there is none.
const char *fixture_message(const struct fixture *fixture);

// Loads, expects exactly this message, and frees the fixture.
void fixture_expect_refused(const struct fixture_parts *parts, const char *message);
void fixture_expect_accepted(const struct fixture_parts *parts);

// All lines, each ended by a newline; the caller frees.
char *fixture_lines(const struct fixture *fixture);

// The resolved scenario as text; the caller frees.
char *fixture_resolved(const struct scn_scenario *scenario);

// The contents of a file; the caller frees. NULL: it cannot be read.
char *fixture_read(const char *path);

void fixture_write(const char *path, const char *text, size_t length);

// Creates a folder under /tmp and stores its name in path. fixture_folder_remove empties and removes it.
void fixture_folder_create(char path[64]);
void fixture_folder_remove(const char *path);
