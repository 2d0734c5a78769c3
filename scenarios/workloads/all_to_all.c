// All-to-all: every rank sends a message to every other one, the nearest in rank order first, over all four channels.
//
// The row's bytes are those that one rank sends.
#include "scenarios/workloads/group.h"

static uint32_t messages(const struct workload *workload)
{
    return workload->ranks;
}

// A message's slot has the number of the other rank: of the receiver at the sender, of the sender at the receiver.
static int prepare(struct group *group)
{
    const struct workload *w = group->workload;
    int error = 0;
    for (uint32_t step = 1; error == 0 && step < w->ranks; step++) {
        uint32_t to = (w->rank + step) % w->ranks;
        group_fill(group, to, to, 0);
        group_expect(group, to, to);
        error = group_send_add(group, (step - 1) % tcaChannels, to, to, w->rank);
    }
    return error;
}

static int run(struct group *group, uint32_t stamp, uint64_t *sent_ps_out)
{
    const struct workload *w = group->workload;
    for (uint32_t rank = 0; rank < w->ranks; rank++) {
        if (rank != w->rank) {
            group_stamp(group, rank, rank, stamp);
        }
    }
    uint64_t start_ps = group_now_ps(group);
    int error = group_start(group);
    if (error == 0) {
        error = group_wait_sent(group);
    }
    *sent_ps_out = group_now_ps(group) - start_ps;
    for (uint32_t rank = 0; error == 0 && rank < w->ranks; rank++) {
        if (rank == w->rank) {
            continue;
        }
        error = group_wait_received(group, rank, rank);
        if (error == 0) {
            error = group_check_stamp(group, rank, rank, stamp);
        }
    }
    return error;
}

static int check(struct group *group)
{
    int error = 0;
    for (uint32_t rank = 0; error == 0 && rank < group->workload->ranks; rank++) {
        error = rank != group->workload->rank ? group_check_all(group, rank, rank) : 0;
    }
    return error;
}

static uint64_t moved(const struct group *group)
{
    return (group->workload->ranks - 1) * group->bytes;
}

int workload_all_to_all(struct workload *workload)
{
    static const struct group_program program = {"all-to-all", messages, prepare, run, check, moved};
    return group_program_run(workload, &program);
}
