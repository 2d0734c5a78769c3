// The operations of models/hca/abi/opcodes.def as libibverbs names them.
#pragma once

#include <infiniband/verbs.h>

#include "models/hca/abi/hca_abi.h"

struct ibverbs_opcode {
    const char *name;              // "RDMA_WRITE"
    uint32_t operation;            // IBV_QP_EX_WITH_*
    enum ibv_wc_opcode completion; // of the requester
    enum hca_opcode device;        // as an HCA calls it
    unsigned traits;               // enum hca_opcode_trait
};

// NULL: no device has it.
const struct ibverbs_opcode *ibverbs_opcode(enum ibv_wr_opcode opcode);
// Does a device have it, with any of these traits?
bool ibverbs_opcode_has(enum ibv_wr_opcode opcode, unsigned traits);
// The bits of IBV_QP_EX_WITH_* of all operations with any of these traits.
uint32_t ibverbs_opcode_operations(unsigned traits);
