// Sets up two connected queue pairs on two nodes, as most tests of the HCA need them. There is one at a time.
#pragma once

#include "sim/adversary/adversary.h"
#include "tests/support/hca_fixture.h"

struct fixture {
    struct hca_fixture base;
    struct hca_fixture_process *near, *far;
    struct hca_fixture_qp a, b;
    hca_srq_t *srq;         // a test's own
    adversary_t *adversary; // NULL: none
};
extern struct fixture fixture;

void fixture_init(enum hca_qp_type type);
// The same under an adversary that has one purpose, so often; to be ended by fixture_fini.
void fixture_init_adversarial(enum adversary_purpose purpose, uint32_t permille);
void fixture_fini(void);
// Runs a program on each node to the end; far may be NULL.
void fixture_run(void (*near)(void *), void (*far)(void *));
void fixture_expect_event(struct hca_fixture_process *process, enum hca_event_type type);
