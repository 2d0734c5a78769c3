// The Verilated chip, and what becomes of its complaints.
#include "sim/cosim/model.hpp"

#include "sim/kernel/status.h"

namespace
{

constexpr unsigned reset_cycles = 4;
constexpr uint8_t all_ports = (1u << COSIM_PORTS) - 1;

bool is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

} // namespace

sim_status cosim_model::check(const cosim_peach2_config *config)
{
    bool good = is_power_of_two(config->mps_bytes) && config->mps_bytes >= 128 && config->mps_bytes <= 4096 &&
                config->start_cycles <= UINT16_MAX && config->finish_cycles <= UINT16_MAX &&
                is_power_of_two(config->read_bytes) && config->read_bytes >= 64 && config->read_bytes <= 512 &&
                config->read_tags >= 1 && config->read_tags <= 32 && config->prefetch >= 1 && config->prefetch <= 4;
    return good ? SIM_OK : SIM_ERR_RANGE;
}

cosim_model::cosim_model(const char *name, const cosim_peach2_config *config, const char *trace_path)
    : context_(), chip_(&context_, name)
{
    context_.name = name;
    if (trace_path != nullptr) {
        context_.traceEverOn(true);
        trace_ = std::make_unique<VerilatedFstC>();
        trace_->set_time_unit("1ps");
        trace_->set_time_resolution("1ps");
        chip_.trace(trace_.get(), 99);
        trace_->open(trace_path);
    }
    chip_.cfg_requester_i = config->requester;
    chip_.cfg_mps_log2_i = static_cast<uint8_t>(__builtin_ctz(config->mps_bytes));
    chip_.cfg_start_cycles_i = static_cast<uint16_t>(config->start_cycles);
    chip_.cfg_finish_cycles_i = static_cast<uint16_t>(config->finish_cycles);
    chip_.cfg_read_bytes_i = static_cast<uint16_t>(config->read_bytes);
    chip_.cfg_read_tags_i = static_cast<uint8_t>(config->read_tags);
    chip_.cfg_prefetch_i = static_cast<uint8_t>(config->prefetch);
    chip_.tx_ready_i = all_ports;
    std::unique_ptr<VerilatedFstC> later = std::move(trace_); // the reset has no place in simulated time
    chip_.rst_i = 1;
    for (unsigned i = 0; i < reset_cycles; i++) {
        tick(0, 0);
    }
    chip_.rst_i = 0;
    tick(0, 0);
    trace_ = std::move(later);
}

cosim_model::~cosim_model()
{
    chip_.final();
    if (trace_ != nullptr) {
        trace_->close();
    }
}

void cosim_model::dump(uint64_t time_ps)
{
    trace_->dump(time_ps);
}

void cosim_model::fail(const char *file, int line, const char *what)
{
    // tick() made it so, and nothing else here evaluates anything.
    const auto *context = static_cast<named_context *>(Verilated::threadContextp());
    sim_panic(context->name.c_str(), "%s:%d: %s", file, line, what);
}

// --- Verilator's complaints (VL_USER_STOP, VL_USER_FATAL, VL_USER_FINISH) --------------------------------------------

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
