// Neighbour exchange on a ring: every rank sends to the next and to the previous one at once, and waits for the
// messages of both. The ranks are the nodes in their order.
#include "scenarios/workloads/group.h"

enum message { FROM_LEFT, FROM_RIGHT, MESSAGES };

static uint32_t right_of(const struct group *group)
{
    return (group->workload->rank + 1) % group->workload->ranks;
}

static uint32_t left_of(const struct group *group)
{
    return (group->workload->rank + group->workload->ranks - 1) % group->workload->ranks;
}

static uint32_t messages(const struct workload *workload)
{
    (void)workload;
    return MESSAGES;
}

// The message to the right is message FROM_LEFT there, and has the same slot here. With two ranks both messages have
// the same pattern.
static int prepare(struct group *group)
{
    group_fill(group, FROM_LEFT, right_of(group), 0);
    group_fill(group, FROM_RIGHT, left_of(group), 0);
    group_expect(group, FROM_LEFT, left_of(group));
    group_expect(group, FROM_RIGHT, right_of(group));
    int error = group_send_add(group, 0, FROM_LEFT, right_of(group), FROM_LEFT);
    return error == 0 ? group_send_add(group, 1, FROM_RIGHT, left_of(group), FROM_RIGHT) : error;
}

static int run(struct group *group, uint32_t stamp, uint64_t *sent_ps_out)
{
    group_stamp(group, FROM_LEFT, right_of(group), stamp);
    group_stamp(group, FROM_RIGHT, left_of(group), stamp);
    uint64_t start_ps = group_now_ps(group);
    int error = group_start(group);
    if (error == 0) {
        error = group_wait_sent(group);
    }
    *sent_ps_out = group_now_ps(group) - start_ps;
    if (error == 0) {
        error = group_wait_received(group, FROM_LEFT, left_of(group));
    }
    if (error == 0) {
        error = group_wait_received(group, FROM_RIGHT, right_of(group));
    }
    if (error == 0) {
        error = group_check_stamp(group, FROM_LEFT, left_of(group), stamp);
    }
    return error == 0 ? group_check_stamp(group, FROM_RIGHT, right_of(group), stamp) : error;
}

static int check(struct group *group)
{
    int error = group_check_all(group, FROM_LEFT, left_of(group));
    return error == 0 ? group_check_all(group, FROM_RIGHT, right_of(group)) : error;
}

static uint64_t moved(const struct group *group)
{
    return MESSAGES * group->bytes;
}

int workload_ring_exchange(struct workload *workload)
{
    static const struct group_program program = {"ring-exchange", messages, prepare, run, check, moved};
    return group_program_run(workload, &program);
}
