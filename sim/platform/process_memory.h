// Memory of a program that runs inside the simulator's process: addresses are the simulator's own.
#pragma once

#include "models/host/memory.h"

// The owner of such memory; needs no context. It never says that memory is gone: a program that unmaps or frees what is
// registered has the use after free that it would have without the device.
extern const struct host_owner_ops plat_process_memory_ops;

// Are all bytes mapped, readable, and writable where that is asked for? Touches none of them. ctx: NULL, or the process
// (a pid_t) that is asked about in place of the simulator's own.
bool plat_process_memory_exists(void *ctx, uint64_t address, uint64_t bytes, bool writable);
