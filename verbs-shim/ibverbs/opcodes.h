// The operations of models/hca/abi/opcodes.def with libibverbs' names.
#pragma once

#include <infiniband/verbs.h>

#include "models/hca/abi/hca_abi.h"

struct ibverbs_opcode {
    const char *name;              // "RDMA_WRITE"
    uint32_t operation;            // IBV_QP_EX_WITH_*
    enum ibv_wc_opcode completion; // at the requester
    enum hca_opcode device;        // the HCA's opcode
    unsigned traits;               // enum hca_opcode_trait
};

// NULL: no device has it.
const struct ibverbs_opcode *ibverbs_opcode(enum ibv_wr_opcode opcode);
// true: a device has it, and it has any of these traits.
bool ibverbs_opcode_has(enum ibv_wr_opcode opcode, unsigned traits);
// The bits of IBV_QP_EX_WITH_* of all operations with any of these traits.
uint32_t ibverbs_opcode_operations(unsigned traits);
