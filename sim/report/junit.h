// What was tested, as JUnit XML: a testsuite for each scenario, a testcase for each expectation and each program.
//
// Of what readers of the format know (Jenkins, GitLab, GitHub's actions) this is the common part. Nothing of the real
// machine is in it: every time is 0, as it would be the machine's, and there is no host name. What XML does not allow
// in a text (control characters, bytes that are no UTF-8) stands there as \x1b.
#pragma once

#include <stdio.h>

#include "sim/kernel/status.h"

enum junit_state { JUNIT_PASSED, JUNIT_FAILED, JUNIT_ERROR, JUNIT_SKIPPED };

typedef struct junit junit_t;

junit_t *junit_create(void);
void junit_destroy(junit_t *junit);

// A scenario begins. file: its path, for readers that lead there. Texts are copied.
void junit_suite_begin(junit_t *junit, const char *name, const char *file);

// A testcase of the last suite. message (one line) and detail (lines) may be NULL; line 0: of the file as a whole.
void junit_case_add(junit_t *junit, const char *name, unsigned line, enum junit_state state, const char *message,
                    const char *detail);

// The suites alone, to be joined with those of other processes; the frame around them.
void junit_suites_write(const junit_t *junit, FILE *out);
void junit_head_write(FILE *out);
void junit_foot_write(FILE *out);
