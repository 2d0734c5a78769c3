// Shared by programs on several sub-clusters: messages within a sub-cluster go by the boards (group.h), those to other
// sub-clusters by InfiniBand (far.h). Private to the room.
#pragma once

#include "scenarios/workloads/far.h"
#include "scenarios/workloads/group.h"

struct hybrid {
    struct workload *workload;
    const struct backend *backend;
    const char *program;
    struct workload near_workload; // whose ranks are those of the sub-cluster, by their numbers
    struct group near;             // if near_workload.ranks > 1
    struct far far;                // if there are several sub-clusters
    uint64_t bytes;                // of a message of the point
    uint32_t point;
};

// Collective. Memory for near_messages and far_slots messages of the largest size. Returns 0, or a negative errno after
// fail().
int hybrid_open(struct hybrid *hybrid, struct workload *workload, const char *program, uint32_t near_messages,
                uint32_t far_links, uint32_t far_slots);
void hybrid_close(struct hybrid *hybrid);
bool hybrid_has_near(const struct workload *workload);
bool hybrid_has_far(const struct workload *workload);
// Is the rank in the own sub-cluster? Its number there.
bool hybrid_is_near(const struct workload *workload, uint32_t rank);
uint32_t hybrid_number(const struct workload *workload, uint32_t rank);

// Begins a point with messages of this size.
int hybrid_point_begin(struct hybrid *hybrid, uint64_t bytes);
// Starts what group_send_add added; and waits until everything was sent.
int hybrid_start(struct hybrid *hybrid);
int hybrid_wait_sent(struct hybrid *hybrid);

// A message over InfiniBand, as the functions of group.h with the same names.
void hybrid_far_fill(struct hybrid *hybrid, uint32_t slot, uint32_t to);
void hybrid_far_expect(struct hybrid *hybrid, uint32_t slot, uint32_t from);
int hybrid_far_send(struct hybrid *hybrid, uint32_t link, uint32_t from_slot, uint32_t to, uint32_t to_slot,
                    uint32_t stamp);
int hybrid_far_receive(struct hybrid *hybrid, uint32_t slot, uint32_t from, uint32_t stamp);
int hybrid_far_check_all(struct hybrid *hybrid, uint32_t slot, uint32_t from);
// Guards around all messages.
int hybrid_check_guards(struct hybrid *hybrid);

// Between all ranks, outside the networks.
void hybrid_barrier(const struct workload *workload);
uint64_t hybrid_now_ps(const struct backend *backend);
// From the first rank's start to the last one's end, at rank 0.
uint64_t hybrid_span_ps(const struct workload *workload, uint64_t start_ps, uint64_t end_ps);
// Reports a block of iterations that took span_ps.
void hybrid_report(const struct workload *workload, uint64_t bytes, uint64_t span_ps);
