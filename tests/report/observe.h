// Expectations about one program, "client", and about counters, and what becomes of them.
#pragma once

#include "fixture.h"
#include "sim/report/expect.h"

// An expectation without bounds; program or counter may be NULL. Its name is "it".
struct scn_check *observe_add(struct fixture *fixture, const char *program, const char *match, const char *counter);

// The program ran, and printed that.
void observe_printed(struct fixture *fixture, const char *text);

// The one outcome's message, "" where it holds, and behind a newline its details.
void observe_is(const struct fixture *fixture, const char *expected);
