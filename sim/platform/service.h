// The driver's service for remote reads on one node: a thread with a core of its own, in addition to the node's
// program, like the kernel's interrupt thread on the real machine. Private to the room.
#pragma once

#include "sim/platform/backend_inproc.h"
#include "sim/platform/machine.h"
#include "verbs-shim/peach2/peach2_proxy.h"

// The DMA channel of the service; programs do not use it.
#define PLAT_SERVICE_CHANNEL 3u

struct plat_service {
    plat_machine_t *machine; // NULL: never started
    uint32_t node;
    host_core_t *core;
    struct plat_backend_inproc backend;
    peach2_handle_t *handle;
    peach2_proxy_t *proxy;
};

// Call from the node's program, with its handle. Returns 0 or a negative errno; fini also frees what a failed start
// left.
int plat_service_start(struct plat_service *service, plat_machine_t *machine, uint32_t node, peach2_handle_t *board,
                       struct peach2_proxy_address *address_out);
// Call from outside threads.
void plat_service_fini(struct plat_service *service);
