// The Verilated chip with the context its messages refer to.
//
// There are two translations of the RTL, one without and one with waveforms, because the second is slower even while it
// writes none; the pins hide which of them a model has. Each model has a context of its own, so that a failing
// assertion can name its board.
#pragma once

#include <memory>
#include <string>

#include <Vpeach2.h>
#include <Vpeach2_traced.h>
#include <verilated.h>
#include <verilated_fst_c.h>

#include "sim/cosim/cosim.h"

// rx_mark_i and tx_mark_o: four bits for each port.
constexpr unsigned mark_bits = 4, mark_sop = 8, mark_eop = 4, mark_empty = 3;

// The chip's ports, by reference. See rtl/peach2.sv and cosim_chip.sv.
struct cosim_pins {
    template <class Chip>
    explicit cosim_pins(Chip &chip)
        : clk_i(chip.clk_i), rst_i(chip.rst_i), rx_valid_i(chip.rx_valid_i), rx_ready_o(chip.rx_ready_o),
          rx_mark_i(chip.rx_mark_i), rx_data_i(chip.rx_data_i), rx_bar_i(chip.rx_bar_i), tx_valid_o(chip.tx_valid_o),
          tx_ready_i(chip.tx_ready_i), tx_room_i(chip.tx_room_i),
          tx_room_changed_i(chip.tx_room_changed_i), tx_mark_o(chip.tx_mark_o), tx_data_o(chip.tx_data_o),
          cfg_requester_i(chip.cfg_requester_i), cfg_mps_log2_i(chip.cfg_mps_log2_i),
          cfg_start_cycles_i(chip.cfg_start_cycles_i), cfg_fetch_cycles_i(chip.cfg_fetch_cycles_i),
          cfg_finish_cycles_i(chip.cfg_finish_cycles_i), cfg_read_bytes_i(chip.cfg_read_bytes_i),
          cfg_read_tags_i(chip.cfg_read_tags_i), cfg_prefetch_i(chip.cfg_prefetch_i), idle_o(chip.idle_o),
          still_o(chip.still_o)
    {
    }

    CData &clk_i, &rst_i;
    CData &rx_valid_i;
    const CData &rx_ready_o;
    SData &rx_mark_i;
    VlWide<16> &rx_data_i;
    CData &rx_bar_i;
    const CData &tx_valid_o;
    CData &tx_ready_i, &tx_room_i, &tx_room_changed_i;
    const SData &tx_mark_o;
    const VlWide<16> &tx_data_o;
    SData &cfg_requester_i;
    CData &cfg_mps_log2_i;
    SData &cfg_start_cycles_i, &cfg_fetch_cycles_i, &cfg_finish_cycles_i, &cfg_read_bytes_i;
    CData &cfg_read_tags_i, &cfg_prefetch_i;
    const CData &idle_o, &still_o;
};

class cosim_model
{
  public:
    // The chip after a reset, with every tx_ready set. trace_path: NULL for none.
    cosim_model(const char *name, const cosim_peach2_config *config, const char *trace_path);
    ~cosim_model();

    // Runs one cycle with the current inputs; edge_ps and half_ps are for the waveform.
    void tick(uint64_t edge_ps, uint64_t half_ps)
    {
        cycle(trace_ != nullptr, edge_ps, half_ps);
    }

    // As after construction; takes no simulated time, so a waveform shows it at the next edge.
    void reset();

    void counters(uint32_t values[PEACH2_COUNTER_REGISTERS]) const;

    const cosim_pins &pins() const
    {
        return pins_;
    }

    // Ends the program with the name of the chip evaluated last.
    [[noreturn]] static void fail(const char *file, int line, const char *what);

    // SIM_ERR_RANGE if the chip does not support the configuration.
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
        explicit named_context(const char *chip_name) : name(chip_name)
        {
        }
        std::string name;
    };

    void cycle(bool traced, uint64_t edge_ps, uint64_t half_ps)
    {
        Verilated::threadContextp(&context_);
        if (__builtin_expect(pins_.tx_room_i != tx_room_, 0)) {
            change_room();
        }
        if (assertions) {
            // Assertions sample before inputs that change with the clock have propagated.
            eval();
        }
        pins_.clk_i = 1;
        eval();
        if (__builtin_expect(traced, 0)) {
            trace_->dump(edge_ps);
        }
        pins_.clk_i = 0;
        eval();
        if (__builtin_expect(traced, 0)) {
            trace_->dump(edge_ps + half_ps);
        }
    }

    // The chip follows tx_room_i when tx_room_changed_i rises.
    void change_room();

    void eval()
    {
        if (__builtin_expect(plain_ != nullptr, 1)) {
            plain_->eval();
        } else {
            traced_->eval();
        }
    }

    named_context context_;
    std::unique_ptr<Vpeach2> plain_; // one of the two is used
    std::unique_ptr<Vpeach2_traced> traced_;
    cosim_pins pins_;
    CData tx_room_ = 0; // the value that the chip follows
    std::unique_ptr<VerilatedFstC> trace_;
};
