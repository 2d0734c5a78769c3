// Calls that the program waits for: regions, barriers.
#include <errno.h>

#include "verbs-shim/acp/internal.h"

static bool own_task_runs(const struct acpb_process *process)
{
    enum acpb_step step = process->tasks[ACPB_TASK_OWN].step;
    return step != ACPB_STEP_IDLE && step != ACPB_STEP_DONE;
}

// --- regions --------------------------------------------------------------------------------------------------------

// Prefers a number that was never used: then no rank can have an old region with it in its cache.
static int tag_find(const struct acpb_process *process)
{
    int found = -ENOMEM;
    for (int tag = ACPB_REGIONS - 1; tag >= 0; tag--) {
        const struct acpb_region *region = &process->regions[tag];
        bool better = found < 0 || region->used <= process->regions[found].used;
        if (region->bytes == 0 && better) {
            found = tag;
        }
    }
    return found;
}

static int region_register(struct acpb_process *process)
{
    struct acpb_request *request = &process->request;
    int tag = tag_find(process);
    if (tag < 0) {
        return tag;
    }
    struct ibv_mr *mr = ibv_reg_mr(process->pd, request->address, request->bytes, ACPB_ACCESS);
    if (mr == NULL) {
        return -errno;
    }
    struct acpb_region *region = &process->regions[tag];
    uint32_t used = region->used + 1;
    process->mrs[tag] = mr;
    *region = (struct acpb_region){.address = (uintptr_t)request->address,
                                   .bytes = request->bytes,
                                   .rkey = mr->rkey,
                                   .lkey = mr->lkey,
                                   .color = request->color,
                                   .used = used};
    region->check = acpb_region_check(region);
    process->control->regions[tag] = *region;
    request->tag = (uint32_t)tag;
    request->peer = NULL;
    if (used > 1) { // ranks that have cached the table must read it again
        process->generation++;
        request->peer = process->peers_first;
    }
    return 0;
}

// Every rank that may have cached the table is connected to this one, and is notified before the number is returned.
static bool register_advance(struct acpb_process *process)
{
    struct acpb_request *request = &process->request;
    if (!request->began) {
        request->began = true;
        request->error = region_register(process);
        if (request->error != 0) {
            return true;
        }
    }
    if (own_task_runs(process)) {
        return false;
    }
    while (request->peer != NULL && request->peer->link < ACPB_LINK_CAN_GET) {
        request->peer = request->peer->next;
    }
    if (request->peer == NULL) {
        return true;
    }
    struct acpb_peer *peer = request->peer;
    request->peer = peer->next;
    acpb_word_write(process, peer, acpb_generations_offset(process) + process->rank * sizeof(uint32_t),
                    process->generation, sizeof(uint32_t));
    return false;
}

static bool unregister_advance(struct acpb_process *process)
{
    struct acpb_request *request = &process->request;
    struct acpb_region *region = &process->regions[request->tag];
    request->error = -ibv_dereg_mr(process->mrs[request->tag]);
    if (request->error == 0) {
        *region = (struct acpb_region){.used = region->used};
        process->control->regions[request->tag] = *region;
    }
    return true;
}

// --- barriers: by dissemination -------------------------------------------------------------------------------------

// In round k a rank signals the rank 2^k after it, and waits for the rank 2^k before it.
static bool sync_advance(struct acpb_process *process)
{
    struct acpb_request *request = &process->request;
    if (!request->began) {
        request->began = true;
        request->round = 0;
        process->barriers++;
    } else if (own_task_runs(process) ||
               __atomic_load_n(&process->control->signals[request->round], __ATOMIC_ACQUIRE) < process->barriers) {
        return false;
    } else {
        acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1);
        request->round++;
    }
    uint64_t distance = UINT64_C(1) << request->round;
    if (distance >= process->ranks) {
        return true;
    }
    uint32_t to = (uint32_t)((process->rank + distance) % process->ranks);
    acpb_word_write(process, acpb_peer_get(process, to),
                    offsetof(struct acpb_control, signals) + request->round * sizeof(uint64_t), process->barriers,
                    sizeof(uint64_t));
    return false;
}

// --- connections at the start ---------------------------------------------------------------------------------------

static bool connect_advance(struct acpb_process *process)
{
    struct acpb_request *request = &process->request;
    if (!request->began) {
        request->began = true;
        request->rank = 0;
    }
    while (request->rank < process->ranks) {
        if (request->rank != process->rank) {
            struct acpb_peer *peer = acpb_peer_get(process, request->rank);
            if (peer == NULL || peer->link != ACPB_LINK_USABLE) {
                if (peer != NULL) {
                    acpb_peer_ask(process, peer);
                }
                return false;
            }
        }
        request->rank++;
    }
    return true;
}

bool acpb_request_advance(struct acpb_process *process)
{
    switch ((enum acpb_call)process->request.call) {
    case ACPB_CALL_REGISTER:
        return register_advance(process);
    case ACPB_CALL_UNREGISTER:
        return unregister_advance(process);
    case ACPB_CALL_SYNC:
        return sync_advance(process);
    case ACPB_CALL_CONNECT:
        return connect_advance(process);
    case ACPB_CALL_NONE:
        break;
    }
    return true;
}
