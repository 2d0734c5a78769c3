// Memory of a program that runs inside the simulator's process: addresses are the simulator's own.
#pragma once

#include <sys/types.h>

#include "models/host/memory.h"

// The owner of such memory; needs no context. It never reports that memory is gone: a program that unmaps or frees
// registered memory has a use after free, as without the device.
extern const struct host_owner_ops plat_process_memory_ops;

// For any process of this machine: whether all bytes are mapped, readable, and, if requested, writable. Accesses none
// of them.
bool plat_process_memory_exists(pid_t process, uint64_t address, uint64_t bytes, bool writable);
