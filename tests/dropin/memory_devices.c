// The devices of the test build: one in memory, on which a process communicates with itself.
#include <stddef.h>

#include "tests/support/memory_device.h"
#include "verbs-shim/dropin/dropin.h"

void dropin_devices_add(struct backend_process *process, uint32_t verbs_chain, uint32_t verbs_completion)
{
    (void)verbs_chain;
    (void)verbs_completion;
    struct memory_world *world = memory_world_create();
    if (world != NULL) {
        memory_world_join(world, process);
    }
}
