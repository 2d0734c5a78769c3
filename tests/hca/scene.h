// Two connected queue pairs on two nodes, as most tests of the HCA need them. One at a time.
#pragma once

#include "rig.h"

struct scene {
    struct rig rig;
    struct rig_process *near, *far;
    struct rig_qp a, b;
    hca_srq_t *srq; // a test's own
};
extern struct scene scene;

void scene_init(enum hca_qp_type type);
// Runs a program on each node to the end; far may be NULL.
void scene_run(void (*near)(void *), void (*far)(void *));
void scene_expect_event(struct rig_process *process, enum hca_event_type type);
