// RDMA writes that the other side finds by polling its memory: which of them have arrived, and which have been found.
//
// A word of memory does not show who wrote it. If a device's write covers the last byte of the remote buffer of several
// requests that have not arrived, it counts as the arrival of the oldest of them.
#include <infiniband/verbs.h>

#include "sim/observe/internal.h"

void observe_arrivals_post(struct observe_object *qp, const struct observe_request *request, uint64_t remote_address)
{
    const struct observe_object *peer = observe_peer(qp);
    if (peer == NULL || request->bytes == 0) {
        return;
    }
    struct observe_arrivals *arrivals = &peer->process->arrivals;
    struct observe_arrival *arrival = &arrivals->list[arrivals->posted++ % OBSERVE_ARRIVALS];
    *arrival = (struct observe_arrival){
        .from = qp->process, .qp = qp->number, .request = *request, .address = remote_address, .under_way = true};
    arrival->request.opcode = OBSERVE_OPCODE_FOUND;
}

// The next arrival in the ring, from the oldest on. NULL: no further one.
static struct observe_arrival *next_of(struct observe_arrivals *arrivals, uint64_t *at)
{
    uint64_t oldest = arrivals->posted > OBSERVE_ARRIVALS ? arrivals->posted - OBSERVE_ARRIVALS : 0;
    *at = *at < oldest ? oldest : *at;
    return *at < arrivals->posted ? &arrivals->list[(*at)++ % OBSERVE_ARRIVALS] : NULL;
}

void observe_written(observe_process_t *process, uint64_t address, uint32_t bytes)
{
    struct observe_arrival *arrival;
    uint64_t at = 0;
    if (process == NULL || process->arrivals.posted == 0) {
        return;
    }
    while ((arrival = next_of(&process->arrivals, &at)) != NULL) {
        uint64_t last = arrival->address + arrival->request.bytes - 1;
        if (arrival->under_way && last - address < bytes) {
            arrival->under_way = false;
            arrival->arrived = true;
            return;
        }
    }
}

// Of several arrivals at the same address, the program sees the last.
void observe_found(observe_process_t *process, uint64_t address, uint32_t bytes, uint64_t at_ps)
{
    struct observe_arrival *arrival, *found = NULL;
    uint64_t at = 0;
    if (process == NULL) {
        return;
    }
    while ((arrival = next_of(&process->arrivals, &at)) != NULL) {
        bool covers = arrival->address - address < bytes || address - arrival->address < arrival->request.bytes;
        if (arrival->arrived && covers) {
            arrival->arrived = false;
            found = arrival;
        }
    }
    if (found != NULL) {
        observe_explain(found->from, found->qp, process, &found->request, at_ps);
    }
}
