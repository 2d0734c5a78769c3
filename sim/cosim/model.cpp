// The Verilated chip, and the handling of its failures.
#include "sim/cosim/model.hpp"

#include "sim/cosim/counters.hpp"
#include "sim/kernel/status.h"

namespace
{

constexpr unsigned reset_cycles = 4;
constexpr int trace_levels = 99; // of hierarchy: all
constexpr uint8_t all_ports = (1u << COSIM_PORTS) - 1;

bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

} // namespace

sim_status cosim_model::check(const cosim_peach2_config *config)
{
    bool good = is_power_of_two(config->mps_bytes) && config->mps_bytes >= 128 && config->mps_bytes <= 4096 &&
                config->start_cycles <= UINT16_MAX && config->fetch_cycles <= UINT16_MAX &&
                config->finish_cycles <= UINT16_MAX && is_power_of_two(config->read_bytes) &&
                config->read_bytes >= 64 && config->read_bytes <= 512 && config->read_tags >= 1 &&
                config->read_tags <= 32 && config->prefetch >= 1 && config->prefetch <= 4;
    return good ? SIM_OK : SIM_ERR_RANGE;
}

cosim_model::cosim_model(const char *name, const cosim_peach2_config *config, const char *trace_path)
    : context_(name), plain_(trace_path == nullptr ? new Vpeach2(&context_, name) : nullptr),
      traced_(trace_path != nullptr ? new Vpeach2_traced(&context_, name) : nullptr),
      pins_(plain_ != nullptr ? cosim_pins(*plain_) : cosim_pins(*traced_))
{
    pins_.cfg_requester_i = config->requester;
    pins_.cfg_mps_log2_i = static_cast<CData>(__builtin_ctz(config->mps_bytes));
    pins_.cfg_start_cycles_i = static_cast<SData>(config->start_cycles);
    pins_.cfg_fetch_cycles_i = static_cast<SData>(config->fetch_cycles);
    pins_.cfg_finish_cycles_i = static_cast<SData>(config->finish_cycles);
    pins_.cfg_read_bytes_i = static_cast<SData>(config->read_bytes);
    pins_.cfg_read_tags_i = static_cast<CData>(config->read_tags);
    pins_.cfg_prefetch_i = static_cast<CData>(config->prefetch);
    Verilated::threadContextp(&context_);
    eval(); // pins rise only after a first evaluation
    reset();
    // The reset takes no simulated time, so the waveform begins after it.
    if (traced_ != nullptr) {
        context_.traceEverOn(true);
        trace_ = std::make_unique<VerilatedFstC>();
        trace_->set_time_unit("1ps");
        trace_->set_time_resolution("1ps");
        traced_->trace(trace_.get(), trace_levels);
        trace_->open(trace_path);
    }
}

void cosim_model::reset()
{
    pins_.rx_valid_i = 0;
    pins_.tx_ready_i = all_ports;
    pins_.tx_room_i = all_ports;
    pins_.rst_i = 1;
    for (unsigned i = 0; i < reset_cycles; i++) {
        cycle(false, 0, 0);
    }
    pins_.rst_i = 0;
    cycle(false, 0, 0);
}

void cosim_model::change_room()
{
    tx_room_ = pins_.tx_room_i;
    pins_.tx_room_changed_i = 1;
    eval();
    pins_.tx_room_changed_i = 0;
}

cosim_model::~cosim_model()
{
    // The scopes of the model are removed through the thread's current context, which must not be that of a destroyed
    // board.
    Verilated::threadContextp(&context_);
    if (trace_ != nullptr) {
        trace_->close();
    }
}

void cosim_model::counters(uint32_t values[PEACH2_COUNTER_REGISTERS]) const
{
    if (plain_ != nullptr) {
        cosim_counters_read(*plain_->rootp, values);
    } else {
        cosim_counters_read(*traced_->rootp, values);
    }
}

void cosim_model::fail(const char *file, int line, const char *what)
{
    // tick() set this context, and nothing else here evaluates a model.
    const auto *context = static_cast<named_context *>(Verilated::threadContextp());
    sim_panic(context->name.c_str(), "%s:%d: %s", file, line, what);
}

// --- failures reported by Verilator (VL_USER_STOP, VL_USER_FATAL, VL_USER_FINISH) ------------------------------------

void vl_stop(const char *file, int line, const char *)
{
    cosim_model::fail(file, line, "an assertion of the RTL does not hold");
}

void vl_fatal(const char *file, int line, const char *, const char *message)
{
    cosim_model::fail(file, line, message);
}

void vl_finish(const char *file, int line, const char *)
{
    cosim_model::fail(file, line, "$finish");
}
