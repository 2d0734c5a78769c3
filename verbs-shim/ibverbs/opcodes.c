#include "verbs-shim/ibverbs/opcodes.h"

#include <stddef.h>

static const struct ibverbs_opcode opcodes[] = {
#define OPCODE(id, verb, completion, packet, transports, operands)                                                     \
    [IBV_WR_##verb] = {#verb, IBV_QP_EX_WITH_##verb, IBV_WC_##completion, HCA_OP_##id, (transports) | (operands)},
#include "models/hca/abi/opcodes.def"
#undef OPCODE
};
enum { OPCODES = sizeof opcodes / sizeof opcodes[0] };

const struct ibverbs_opcode *ibverbs_opcode(enum ibv_wr_opcode opcode)
{
    return (unsigned)opcode < OPCODES && opcodes[opcode].name != NULL ? &opcodes[opcode] : NULL;
}

bool ibverbs_opcode_has(enum ibv_wr_opcode opcode, unsigned traits)
{
    const struct ibverbs_opcode *found = ibverbs_opcode(opcode);
    return found != NULL && (found->traits & traits) != 0;
}

uint32_t ibverbs_opcode_operations(unsigned traits)
{
    uint32_t operations = 0;
    for (unsigned i = 0; i < OPCODES; i++) {
        operations |= (opcodes[i].traits & traits) != 0 ? opcodes[i].operation : 0;
    }
    return operations;
}
