// Sets up two connected queue pairs on two nodes, as most tests of the HCA need them. Only one fixture exists at a
// time.
#pragma once

#include "sim/adversary/adversary.h"
#include "tests/support/hca_fixture.h"

struct fixture {
    struct hca_fixture base;
    struct hca_fixture_process *near, *far;
    struct hca_fixture_qp a, b;
    hca_srq_t *srq;         // created by a test
    adversary_t *adversary; // NULL: none
};
extern struct fixture fixture;

void fixture_init(enum hca_qp_type type);
void fixture_init_with(const struct hca_config *config, enum hca_qp_type type);
// The same with an adversary that has one purpose at this rate; fixture_fini destroys it.
void fixture_init_adversarial(enum adversary_purpose purpose, uint32_t permille);
void fixture_fini(void);
// Connects the two queue pairs anew, with attributes that `change` has adapted.
void fixture_reconnect(void (*change)(struct hca_qp_attr *attr));
// Runs a program on each node until it ends; far may be NULL.
void fixture_run(void (*near)(void *), void (*far)(void *));
void fixture_expect_event(struct hca_fixture_process *process, enum hca_event_type type);
