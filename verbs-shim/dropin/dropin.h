// What libibverbs.so.1 needs from the devices with which it is built. Private to the folder, and to tests, which build
// it with a device of their own.
#pragma once

#include "verbs-shim/backend/backend.h"

// Gives the process its devices (ibverbs_device_add). A device that is not available is omitted. The numbers are of
// struct tca_verbs_form.
void dropin_devices_add(struct backend_process *process, uint32_t verbs_chain, uint32_t verbs_completion);
