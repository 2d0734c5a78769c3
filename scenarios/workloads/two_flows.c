// Two flows that share a link: rank 0 and rank 1, which is on the path from rank 0, both send to rank 2. The flow that
// passes through rank 1's board and the one that begins there compete for its output.
//
// The row's bytes are those of both flows, so that its bandwidth is the shared link's; smallest and largest latency are
// those of single flows and show how fairly it is shared.
#include "scenarios/workloads/group.h"

#define FLOWS    2u
#define RECEIVER 2u

static uint32_t messages(const struct workload *workload)
{
    (void)workload;
    return FLOWS;
}

static bool receives(const struct group *group)
{
    return group->workload->rank == RECEIVER;
}

static int prepare(struct group *group)
{
    if (receives(group)) {
        for (uint32_t flow = 0; flow < FLOWS; flow++) {
            group_expect(group, flow, flow);
        }
        return 0;
    }
    uint32_t flow = group->workload->rank;
    group_fill(group, flow, RECEIVER, 0);
    return group_send_add(group, 0, flow, RECEIVER, flow);
}

static int receive(struct group *group, uint32_t stamp)
{
    int error = 0;
    for (uint32_t flow = 0; error == 0 && flow < FLOWS; flow++) {
        error = group_wait_received(group, flow, flow);
        if (error == 0) {
            error = group_check_stamp(group, flow, flow, stamp);
        }
    }
    return error;
}

static int run(struct group *group, uint32_t stamp, uint64_t *sent_ps_out)
{
    if (receives(group)) {
        return receive(group, stamp);
    }
    group_stamp(group, group->workload->rank, RECEIVER, stamp);
    uint64_t start_ps = group_now_ps(group);
    int error = group_start(group);
    if (error == 0) {
        error = group_wait_sent(group);
    }
    *sent_ps_out = group_now_ps(group) - start_ps;
    return error;
}

static int check(struct group *group)
{
    int error = 0;
    for (uint32_t flow = 0; error == 0 && receives(group) && flow < FLOWS; flow++) {
        error = group_check_all(group, flow, flow);
    }
    return error;
}

static uint64_t moved(const struct group *group)
{
    return FLOWS * group->bytes;
}

int workload_two_flows(struct workload *workload)
{
    static const struct group_program program = {"two-flows", messages, prepare, run, check, moved};
    return group_program_run(workload, &program);
}
