// What libibverbs.so.1 takes from the devices that it is built with. Private to the folder, and to tests, which build
// it with a device of their own.
#pragma once

#include "verbs-shim/backend/backend.h"

// Gives the process its devices (ibverbs_device_add). What cannot be had is left out.
void dropin_devices_add(struct backend_process *process);
