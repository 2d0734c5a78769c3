// Expectations about one program, "client", and about counters, and their outcomes.
#pragma once

#include "fixture.h"
#include "sim/report/expect.h"

// An expectation without bounds; program or counter may be NULL. Its name is "it".
struct scn_check *observe_add(struct fixture *fixture, const char *program, const char *match, const char *counter);

// The program ran and printed this text.
void observe_printed(struct fixture *fixture, const char *text);

// The only outcome's message, "" if it holds; its details follow after a newline.
void observe_is(const struct fixture *fixture, const char *expected);
