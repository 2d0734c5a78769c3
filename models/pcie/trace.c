// The trace fields of a TLP.
#include "models/pcie/link_internal.h"

static const char *const kinds[] = {
    [PCIE_TLP_MRD] = "MRd", [PCIE_TLP_MWR] = "MWr", [PCIE_TLP_CPL] = "Cpl", [PCIE_TLP_CPLD] = "CplD"};
static const char *const statuses[] = {[PCIE_CPL_SC] = "SC", [PCIE_CPL_UR] = "UR", [PCIE_CPL_CA] = "CA"};

// A completion has no address, a posted write no tag, and only completions have a status.
const struct sim_trace_field pcie_trace_fields[PCIE_TRACE_FIELD_COUNT] = {
    {"kind", SIM_TRACE_NAME, kinds},    {"address", SIM_TRACE_HEX, NULL}, {"length_bytes", SIM_TRACE_DECIMAL, NULL},
    {"requester", SIM_TRACE_HEX, NULL}, {"tag", SIM_TRACE_DECIMAL, NULL}, {"status", SIM_TRACE_NAME, statuses},
};

void pcie_trace_emit(const pcie_end_t *end, const struct sim_trace_point *point, const pcie_tlp_t *tlp,
                     sim_cause_t from, sim_cause_t to)
{
    bool request = tlp->kind == PCIE_TLP_MRD || tlp->kind == PCIE_TLP_MWR;
    const uint64_t values[PCIE_TRACE_FIELD_COUNT] = {
        tlp->kind,
        request ? tlp->address : SIM_TRACE_ABSENT,
        tlp->kind == PCIE_TLP_CPL ? 0 : tlp->dwords * 4u,
        tlp->requester,
        tlp->kind == PCIE_TLP_MWR ? SIM_TRACE_ABSENT : tlp->tag,
        request ? SIM_TRACE_ABSENT : tlp->cpl_status,
    };
    sim_trace_between(end->sim, end->name, point, values, from, to);
}
