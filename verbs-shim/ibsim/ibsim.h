// The device `ibsim0`: libibverbs on the InfiniBand HCA of the node.
//
// A thin translation between the face (verbs-shim/ibverbs/device.h) and the HCA's user-space driver
// (verbs-shim/hca/hca_driver.h), which has the semantics and pays the time.
//
// Leaves out: source path bits, static rates (the port sends at its own). Memory of the program is what its backend has
// pinned, named by its own address. The GUIDs of the node and the system are neighbours of the port's.
#pragma once

#include "verbs-shim/ibverbs/device.h"

extern const struct ibverbs_device_ops ibsim_device_ops; // device: const struct backend * of the process

// Gives the process its HCA as "ibsim0", before its first instruction. -ENODEV: the node has none. -ENOMEM, -ENOSPC.
int ibsim_device_add(struct backend_process *process);

// Bytes of a queue pair (RC, without an SRQ), beside the program's own memory: what `tcasim bench` prints.
size_t ibsim_qp_bytes(const struct ibv_qp_cap *cap);
