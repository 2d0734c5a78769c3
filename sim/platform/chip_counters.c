// The chip's performance counters as counters of a component, for both fidelities. They are read out when a series has
// ended, without a packet: what reads them through the board would count itself.
#include "sim/kernel/counter.h"
#include "sim/platform/internal.h"

#include "rtl/peach2_regs.h"

#define AT(register) [PEACH2_COUNTER_##register / 4]

static const struct sim_counter_desc descs[PLAT_CHIP_COUNTERS] = {
    AT(TLPS_IN_N) = {"tlps_in_n", "TLPs", "TLPs taken from N"},
    AT(TLPS_IN_E) = {"tlps_in_e", "TLPs", "TLPs taken from E"},
    AT(TLPS_IN_W) = {"tlps_in_w", "TLPs", "TLPs taken from W"},
    AT(TLPS_IN_S) = {"tlps_in_s", "TLPs", "TLPs taken from S"},
    AT(TLPS_OUT_N) = {"tlps_out_n", "TLPs", "TLPs sent to N"},
    AT(TLPS_OUT_E) = {"tlps_out_e", "TLPs", "TLPs sent to E"},
    AT(TLPS_OUT_W) = {"tlps_out_w", "TLPs", "TLPs sent to W"},
    AT(TLPS_OUT_S) = {"tlps_out_s", "TLPs", "TLPs sent to S"},
    AT(UNROUTABLE_WRITES) = {"unroutable_writes", "TLPs", "memory writes that no route took, discarded"},
    AT(UNSUPPORTED_READS) = {"unsupported_reads", "TLPs", "reads answered Unsupported Request"},
    AT(UNEXPECTED_COMPLETIONS) = {"unexpected_completions", "TLPs", "completions for no outstanding read, discarded"},
    AT(REFUSED_WRITES) = {"refused_writes", "writes", "writes to registers from other boards or beyond the map"},
    AT(RING_HOLDS_E) = {"ring_holds_e", "holds", "packets of the ring held back at E for one that enters it"},
    AT(RING_HOLDS_W) = {"ring_holds_w", "holds", "the same at W"},
};
_Static_assert(PLAT_CHIP_COUNTERS == COSIM_COUNTERS && PLAT_CHIP_COUNTERS == PEACH2_TWIN_COUNTERS, "one map");

enum sim_status plat_chip_counters_register(struct plat_node *node, const char *name)
{
    return sim_counters_register(node->machine->sim, name, descs, node->chip_counters, PLAT_CHIP_COUNTERS);
}

void plat_chip_counters_read(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        struct plat_node *node = &machine->nodes[i];
        uint32_t values[PLAT_CHIP_COUNTERS] = {0};
        if (node->chip != NULL) {
            cosim_peach2_counters(node->chip, values);
        } else if (node->twin != NULL) {
            peach2_twin_counters(node->twin, values);
        }
        for (unsigned k = 0; k < PLAT_CHIP_COUNTERS; k++) {
            node->chip_counters[k] = values[k];
        }
    }
}
