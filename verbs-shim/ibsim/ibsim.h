// The device `ibsim0`: libibverbs on the InfiniBand HCA of the node.
//
// A thin translation between libibverbs (verbs-shim/ibverbs/device.h) and the HCA's user-space driver
// (verbs-shim/hca/hca_driver.h), which has the semantics and pays the time.
//
// Not modelled: source path bits, static rates (the port sends at its own rate). A region is memory that the backend
// has pinned, named by its own address. The GUIDs of the node and the system are next to the port's.
#pragma once

#include "verbs-shim/ibverbs/device.h"

extern const struct ibverbs_device_ops ibsim_device_ops; // device: const struct backend * of the process

// Gives the process its HCA as "ibsim0", before its first instruction. -ENODEV: the node has no HCA. -ENOMEM, -ENOSPC.
int ibsim_device_add(struct backend_process *process);

// Bytes of a queue pair (RC, without an SRQ), in addition to the program's own memory, for `tcasim bench`.
size_t ibsim_qp_bytes(const struct ibv_qp_cap *cap);
