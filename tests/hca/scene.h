// Two connected queue pairs on two nodes, as most tests of the HCA need them. One at a time.
#pragma once

#include "rig.h"
#include "sim/adversary/adversary.h"

struct scene {
    struct rig rig;
    struct rig_process *near, *far;
    struct rig_qp a, b;
    hca_srq_t *srq;         // a test's own
    adversary_t *adversary; // NULL: none
};
extern struct scene scene;

void scene_init(enum hca_qp_type type);
// The same under an adversary that has one purpose, so often; to be ended by scene_fini.
void scene_init_adversarial(enum adversary_purpose purpose, uint32_t permille);
void scene_fini(void);
// Runs a program on each node to the end; far may be NULL.
void scene_run(void (*near)(void *), void (*far)(void *));
void scene_expect_event(struct rig_process *process, enum hca_event_type type);
