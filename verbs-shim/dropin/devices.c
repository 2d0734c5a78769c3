// The devices of a node: tca0 if it has a board, ibsim0 if it has an HCA.
#include <stddef.h>

#include "verbs-shim/dropin/dropin.h"
#include "verbs-shim/ibsim/ibsim.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

void dropin_devices_add(struct backend_process *process, uint32_t verbs_chain, uint32_t verbs_completion)
{
    static struct tca_verbs_device tca;
    if (process->board != NULL) {
        tca = (struct tca_verbs_device){.board = process->board, .form = {verbs_chain, verbs_completion}};
        (void)ibverbs_device_add(process, "tca0", &tca_verbs_ops, &tca);
    }
    if (process->backend.ops->hca_command != NULL) {
        (void)ibsim_device_add(process);
    }
}
