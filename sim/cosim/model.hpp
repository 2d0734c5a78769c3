// The Verilated chip with the context its messages refer to.
//
// One context for each chip: a failing assertion then knows which board it belongs to.
#pragma once

#include <memory>
#include <string>

#include <Vpeach2.h>
#include <verilated.h>
#include <verilated_fst_c.h>

#include "sim/cosim/cosim.h"

// rx_mark_i and tx_mark_o: four bits for each port.
constexpr unsigned mark_bits = 4, mark_sop = 8, mark_eop = 4, mark_empty = 3;

class cosim_model
{
public:
    // The chip after a reset of four cycles, with every tx_ready set. trace_path: NULL for none.
    cosim_model(const char *name, const cosim_peach2_config *config, const char *trace_path);
    ~cosim_model();

    // One cycle with the inputs as they are set; edge_ps and half_ps are for the waveform.
    void tick(uint64_t edge_ps, uint64_t half_ps)
    {
        Verilated::threadContextp(&context_);
        if (assertions) {
            // They sample before inputs that change with the clock have gone through the wires.
            chip_.eval();
        }
        chip_.clk_i = 1;
        chip_.eval();
        if (__builtin_expect(trace_ != nullptr, 0)) {
            dump(edge_ps);
        }
        chip_.clk_i = 0;
        chip_.eval();
        if (__builtin_expect(trace_ != nullptr, 0)) {
            dump(edge_ps + half_ps);
        }
    }

    Vpeach2 &chip()
    {
        return chip_;
    }

    // Ends the program in the name of the chip that was evaluated last.
    [[noreturn]] static void fail(const char *file, int line, const char *what);

    // SIM_ERR_RANGE if the chip cannot be told so.
    static sim_status check(const cosim_peach2_config *config);

private:
#ifdef TCASIM_RTL_ASSERTIONS
    static constexpr bool assertions = true;
#else
    static constexpr bool assertions = false;
#endif

    class named_context : public VerilatedContext
    {
    public:
        std::string name;
    };

    void dump(uint64_t time_ps);

    named_context context_;
    Vpeach2 chip_;
    std::unique_ptr<VerilatedFstC> trace_;
};
