// The bare loop as a reference for the speed of co-simulation: clock, eval, and the same beats, nothing else.
#include <cstring>
#include <vector>

#include "sim/cosim/adaptor.h"
#include "sim/cosim/cosim.h"
#include "sim/cosim/model.hpp"

#include "rtl/peach2_regs.h"

namespace
{

constexpr uint64_t window_base = UINT64_C(1) << 40;
constexpr uint64_t window_bytes = UINT64_C(1) << 39;
constexpr unsigned route_e = 1;

class bare_loop
{
public:
    explicit bare_loop(const cosim_peach2_config *config) : model_("bench", config, nullptr), cycles_(0)
    {
    }

    // Streams the beats into N as fast as they are taken.
    void stream(const std::vector<cosim_beat> &beats, unsigned bar)
    {
        const cosim_pins &chip = model_.pins();
        chip.rx_bar_i = static_cast<uint8_t>(bar);
        for (const cosim_beat &beat : beats) {
            chip.rx_valid_i = 1;
            chip.rx_mark_i = static_cast<uint16_t>(beat.sop * mark_sop | beat.eop * mark_eop | beat.empty);
            memcpy(&chip.rx_data_i[0], beat.words, sizeof beat.words);
            bool taken = false;
            while (!taken) {
                taken = (chip.rx_ready_o & 1) != 0;
                tick();
            }
            chip.rx_valid_i = 0;
        }
    }

    void drain()
    {
        while (!model_.pins().idle_o) {
            tick();
        }
    }

    uint64_t cycles() const
    {
        return cycles_;
    }

private:
    void tick()
    {
        model_.tick(0, 0);
        cycles_++;
    }

    cosim_model model_;
    uint64_t cycles_;
};

// Consumes the TLP.
std::vector<cosim_beat> beats_of(pcie_tlp_t *tlp)
{
    std::vector<cosim_beat> beats(cosim_beat_count(tlp));
    for (uint32_t i = 0; i < beats.size(); i++) {
        cosim_beat_get(tlp, i, &beats[i]);
    }
    pcie_tlp_unref(tlp);
    return beats;
}

void write_register(bare_loop &loop, pcie_pool_t *pool, uint64_t offset, uint64_t value)
{
    loop.stream(beats_of(pcie_tlp_write(pool, 0, offset, sizeof value, &value)), 0);
}

} // namespace

sim_status cosim_bench_bare(const cosim_peach2_config *config, uint64_t packets, uint64_t *cycles_out)
{
    sim_status status = cosim_model::check(config);
    if (status != SIM_OK) {
        return status;
    }
    pcie_pool_t *pool = nullptr;
    status = pcie_pool_create(&pool);
    if (status != SIM_OK) {
        return status;
    }
    bare_loop loop(config);
    const uint64_t route = PEACH2_ROUTE_BASE + route_e * PEACH2_ROUTE_STRIDE;
    write_register(loop, pool, PEACH2_CHIP_BASE + PEACH2_CHIP_WINDOW_BASE, window_base);
    write_register(loop, pool, route + PEACH2_ROUTE_UPPER, window_bytes - 1);
    write_register(loop, pool, route + PEACH2_ROUTE_CONTROL, PEACH2_ROUTE_CONTROL_ENABLE_MASK);
    loop.drain();
    std::vector<uint8_t> data(config->mps_bytes);
    for (size_t i = 0; i < data.size(); i++) {
        data[i] = static_cast<uint8_t>(i * 31 + (i >> 8));
    }
    std::vector<cosim_beat> beats =
        beats_of(pcie_tlp_write(pool, 0, window_base, config->mps_bytes, data.data()));
    for (uint64_t i = 0; i < packets; i++) {
        loop.stream(beats, 2);
    }
    loop.drain();
    *cycles_out = loop.cycles();
    pcie_pool_destroy(pool);
    return SIM_OK;
}
