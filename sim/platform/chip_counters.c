// The chip's performance counters as counters of a component, for both fidelities. They are read when a series has
// ended, without a packet, because a read through the board would count itself.
#include "sim/kernel/counter.h"
#include "sim/platform/internal.h"

#include "rtl/peach2_regs.h"

static const struct sim_counter_desc descs[PEACH2_COUNTER_REGISTERS] = {
#define DESC(register, name, unit, doc) {name, unit, doc},
    PEACH2_COUNTERS(DESC)
#undef DESC
};

enum sim_status plat_chip_counters_register(struct plat_node *node, const char *name)
{
    return sim_counters_register(node->machine->sim, name, descs, node->chip_counters, PEACH2_COUNTER_REGISTERS);
}

void plat_chip_counters_read(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        struct plat_node *node = &machine->nodes[i];
        uint32_t values[PEACH2_COUNTER_REGISTERS] = {0};
        if (node->chip != NULL) {
            cosim_peach2_counters(node->chip, values);
        } else if (node->twin != NULL) {
            peach2_twin_counters(node->twin, values);
        }
        for (unsigned k = 0; k < PEACH2_COUNTER_REGISTERS; k++) {
            node->chip_counters[k] = values[k];
        }
    }
}
