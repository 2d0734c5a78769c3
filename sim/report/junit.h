// Test results as JUnit XML: a testsuite for each scenario, a testcase for each expectation and each program.
//
// It uses the part of the format that its readers (Jenkins, GitLab, GitHub's actions) have in common. It contains
// nothing of the real machine: every time is 0, because it would be the machine's, and there is no host name. What XML
// does not allow in a text (control characters, bytes that are not UTF-8) is written as \x1b.
#pragma once

#include <stdio.h>

#include "sim/kernel/status.h"

enum junit_state { JUNIT_PASSED, JUNIT_FAILED, JUNIT_ERROR, JUNIT_SKIPPED };

typedef struct junit junit_t;

junit_t *junit_create(void);
void junit_destroy(junit_t *junit);

// Begins a scenario. file: its path, for readers that link to it. Texts are copied.
void junit_suite_begin(junit_t *junit, const char *name, const char *file);

// Adds a testcase to the last suite. message (one line) and detail (lines) may be NULL; line 0: the whole file.
void junit_case_add(junit_t *junit, const char *name, unsigned line, enum junit_state state, const char *message,
                    const char *detail);

// Writes only the suites, which may be joined with those of other processes; head and foot enclose them.
void junit_suites_write(const junit_t *junit, FILE *out);
void junit_head_write(FILE *out);
void junit_foot_write(FILE *out);
