// Ping-pong between two nodes on libtca, as sato2015 2.6 measures it: the descriptor is set once; a turn is one start
// and one wait for the notification. A block of round trips is timed as a whole; an operation is half a round trip.
#include "scenarios/workloads/group.h"

// The own message before has been read by then: its answer has come.
static int turn_send(struct group *group, uint32_t turn)
{
    group_stamp(group, 0, 1 - group->workload->rank, turn);
    return group_start(group);
}

static int turn_receive(struct group *group, uint32_t turn)
{
    int error = group_wait_received(group, 0);
    return error == 0 ? group_check_stamp(group, 0, 1 - group->workload->rank, turn) : error;
}

static int turns_run(struct group *group, uint32_t first, uint32_t count)
{
    bool starts = group->workload->rank == 0;
    int error = 0;
    for (uint32_t turn = first; error == 0 && turn < first + count; turn++) {
        error = starts ? turn_send(group, turn) : turn_receive(group, turn);
        if (error == 0) {
            error = starts ? turn_receive(group, turn) : turn_send(group, turn);
        }
    }
    return error;
}

static int point_measure(struct group *group)
{
    const struct workload *w = group->workload;
    group_barrier(group);
    int error = turns_run(group, 0, w->warmup);
    uint64_t start_ps = group_now_ps(group);
    if (error == 0) {
        error = turns_run(group, w->warmup, w->iterations);
    }
    uint64_t end_ps = group_now_ps(group);
    if (error == 0) {
        error = group_wait_sent(group);
    }
    if (error != 0) {
        return error;
    }
    group_barrier(group);
    error = group_check_all(group, 0, 1 - w->rank);
    if (error == 0) {
        error = group_check_guards(group);
    }
    if (error == 0 && w->rank == 0) {
        uint64_t operations = 2 * (uint64_t)w->iterations, mean_ps = (end_ps - start_ps) / operations;
        const struct workload_point point = {group->bytes, 1, operations, end_ps - start_ps, mean_ps, mean_ps};
        w->report(w->ctx, &point);
    }
    return error;
}

static int point_run(struct group *group)
{
    uint32_t other = 1 - group->workload->rank;
    int error = group_reset(group);
    group_fill(group, 0, other, 0);
    group_expect(group, 0, other);
    if (error == 0) {
        error = group_send_add(group, 0, 0, other, 0);
    }
    if (error == 0) {
        error = group_set(group);
    }
    return error == 0 ? point_measure(group) : error;
}

int workload_tca_pingpong(struct workload *workload)
{
    struct group group;
    int error = group_init(&group, workload, "tca-pingpong", 1);
    for (uint32_t i = 0; error == 0 && i < workload->bytes_count; i++) {
        group.bytes = workload->bytes[i];
        error = point_run(&group);
        group.point++;
    }
    if (error == 0) {
        group_fini(&group);
    }
    return error;
}
