// The chip's performance counters, read where they count (counters.vlt), in the order of registers.def.
#pragma once

#include <Vpeach2___024root.h>
#include <Vpeach2_traced___024root.h>

#include "rtl/peach2_regs.h"
#include "sim/cosim/cosim.h"

template <class Root> void cosim_counters_read(const Root &root, uint32_t values[COSIM_COUNTERS])
{
    auto at = [values](unsigned offset) -> uint32_t & { return values[offset / 4]; };
    at(PEACH2_COUNTER_TLPS_IN_N) = root.peach2__DOT__i_ingress_n__DOT__tlps_q;
    at(PEACH2_COUNTER_TLPS_IN_E) = root.peach2__DOT__i_ingress_e__DOT__tlps_q;
    at(PEACH2_COUNTER_TLPS_IN_W) = root.peach2__DOT__i_ingress_w__DOT__tlps_q;
    at(PEACH2_COUNTER_TLPS_IN_S) = root.peach2__DOT__i_ingress_s__DOT__tlps_q;
    at(PEACH2_COUNTER_TLPS_OUT_N) = root.peach2__DOT__i_egress_n__DOT__tlps_q;
    at(PEACH2_COUNTER_TLPS_OUT_E) = root.peach2__DOT__i_egress_e__DOT__tlps_q;
    at(PEACH2_COUNTER_TLPS_OUT_W) = root.peach2__DOT__i_egress_w__DOT__tlps_q;
    at(PEACH2_COUNTER_TLPS_OUT_S) = root.peach2__DOT__i_egress_s__DOT__tlps_q;
    at(PEACH2_COUNTER_UNROUTABLE_WRITES) =
        root.peach2__DOT__i_ingress_n__DOT__unroutable_q + root.peach2__DOT__i_ingress_e__DOT__unroutable_q +
        root.peach2__DOT__i_ingress_w__DOT__unroutable_q + root.peach2__DOT__i_ingress_s__DOT__unroutable_q;
    at(PEACH2_COUNTER_UNSUPPORTED_READS) = root.peach2__DOT__i_local__DOT__unsupported_count_q;
    // At N only the DMAC finds a completion unexpected.
    at(PEACH2_COUNTER_UNEXPECTED_COMPLETIONS) =
        root.peach2__DOT__unexpected_dmac_q + root.peach2__DOT__i_ingress_e__DOT__unexpected_q +
        root.peach2__DOT__i_ingress_w__DOT__unexpected_q + root.peach2__DOT__i_ingress_s__DOT__unexpected_q;
    at(PEACH2_COUNTER_REFUSED_WRITES) = root.peach2__DOT__i_local__DOT__refused_count_q;
    at(PEACH2_COUNTER_RING_HOLDS_E) = root.peach2__DOT__i_egress_e__DOT__holds_q;
    at(PEACH2_COUNTER_RING_HOLDS_W) = root.peach2__DOT__i_egress_w__DOT__holds_q;
}
static_assert(PEACH2_COUNTER_RING_HOLDS_W / 4 + 1 == COSIM_COUNTERS, "a counter is missing here");
