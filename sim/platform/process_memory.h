// Memory of a program that runs inside the simulator's process: addresses are the simulator's own.
#pragma once

#include <sys/types.h>

#include "models/host/memory.h"

// The owner of such memory; needs no context. It never says that memory is gone: a program that unmaps or frees what is
// registered has the use after free that it would have without the device.
extern const struct host_owner_ops plat_process_memory_ops;

// Of any process of the machine: are all bytes mapped, readable, and writable where that is asked for? Touches none of
// them.
bool plat_process_memory_exists(pid_t process, uint64_t address, uint64_t bytes, bool writable);
