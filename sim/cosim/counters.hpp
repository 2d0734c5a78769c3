// The chip's performance counters, read without a packet (counters.vlt), in the order of registers.def.
#pragma once

#include <Vpeach2___024root.h>
#include <Vpeach2_traced___024root.h>

#include "rtl/peach2_regs.h"
#include "sim/cosim/cosim.h"

template <class Root> void cosim_counters_read(const Root &root, uint32_t values[PEACH2_COUNTER_REGISTERS])
{
    for (unsigned i = 0; i < PEACH2_COUNTER_REGISTERS; i++) {
        values[i] = root.cosim_chip__DOT__i_peach2__DOT__counters[i];
    }
}
