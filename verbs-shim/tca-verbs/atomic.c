// Atomics: the processor of the node that owns the memory executes them one after the other. They are atomic among all
// nodes that use this device (IBV_ATOMIC_HCA), not against other accesses to the memory.
#include <errno.h>

#include "verbs-shim/tca-verbs/internal.h"

int tcav_atomic_execute(struct tcav_qp *qp, const struct tcav_mr *mr, const struct tcav_header *header,
                        const struct tcav_operands *operands, uint64_t *value_out)
{
    struct tcav_context *context = qp->pd->context;
    uint64_t value;
    if (tcav_mr_load(context, mr, header->address, &value, sizeof value) != 0) {
        return -EFAULT;
    }
    uint64_t result = header->kind == TCAV_ADD     ? value + operands->swap_add
                      : value == operands->compare ? operands->swap_add
                                                   : value;
    *value_out = value;
    return tcav_mr_store(context, mr, header->address, &result, sizeof result);
}
