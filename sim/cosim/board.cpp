// A board: packets become beats of the chip, and beats become packets.
//
// At an edge, the chip's outputs are those since the previous edge, as a flip-flop would see them; all of its ready and
// valid outputs come from registers, so they do not depend on the inputs set for this edge.
#include "sim/cosim/internal.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/stat.h>

// --- into the chip --------------------------------------------------------------------------------------------------

// Puts the current beat of the port's first packet on its wires.
void cosim_peach2::offer(unsigned port)
{
    const cosim_arrival &arrival = rx[port].queue.front();
    const cosim_pins &chip = model->pins();
    cosim_beat beat;
    cosim_beat_get(arrival.tlp, rx[port].beat, &beat);
    uint8_t bit = static_cast<uint8_t>(1u << port);
    chip.rx_valid_i |= bit;
    unsigned mark = beat.sop * mark_sop | beat.eop * mark_eop | beat.empty;
    chip.rx_mark_i = static_cast<uint16_t>((chip.rx_mark_i & ~(0xfu << mark_bits * port)) | mark << mark_bits * port);
    memcpy(&chip.rx_data_i[COSIM_BEAT_WORDS * port], beat.words, sizeof beat.words);
    if (port == 0) {
        chip.rx_bar_i = arrival.bar;
    }
}

// Ports without an offer take the packets that have arrived.
void cosim_peach2::offer_arrivals(uint64_t edge)
{
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        if ((rx_waiting >> port & 1) != 0 && rx[port].queue.front().edge <= edge) {
            rx_waiting &= static_cast<uint8_t>(~(1u << port));
            rx[port].beat = 0;
            offer(port);
        }
    }
}

// The beat on the port's wires was taken at this edge.
void cosim_peach2::advance(unsigned port)
{
    cosim_rx_port &in = rx[port];
    if (++in.beat < in.queue.front().beats) {
        offer(port);
        return;
    }
    pcie_tlp_t *tlp = in.queue.front().tlp;
    in.queue.pop_front();
    in.beat = 0;
    if (!in.queue.empty() && in.queue.front().edge <= clock->edge + 1) {
        offer(port);
    } else {
        model->pins().rx_valid_i &= static_cast<uint8_t>(~(1u << port));
        rx_waiting |= static_cast<uint8_t>(in.queue.empty() ? 0 : 1u << port);
    }
    ops.rx_taken(ctx, port, tlp);
}

// --- out of the chip ------------------------------------------------------------------------------------------------

// The inside of the chip is not visible here: a packet that leaves is attributed to the last input. Tags with this bit
// belong to the descriptor fetch (rtl/).
static constexpr uint8_t descriptor_tag = 0x80;

void cosim_peach2::explain_tx(const pcie_tlp_t *tlp)
{
    static const sim_work through = {"board", "chip", false};
    static const sim_work fetch_begins = {"descriptor", "fetch", true};
    if (sim_causes_recorded(clock->sim)) {
        sim_cause_follow(clock->sim, cause, name.c_str(), &through);
        if (tlp->kind == PCIE_TLP_MRD && (tlp->tag & descriptor_tag) != 0) {
            sim_cause_mark(clock->sim, name.c_str(), &fetch_begins);
        }
    }
}

void cosim_peach2::explain_rx(const pcie_tlp_t *tlp)
{
    static const sim_work fetch_ends = {nullptr, "fetch", true};
    if (pcie_tlp_class(tlp) == PCIE_COMPLETION && (tlp->tag & descriptor_tag) != 0) {
        sim_cause_mark(clock->sim, name.c_str(), &fetch_ends);
    }
    cause = sim_cause_now(clock->sim);
}

// The beat that the port offers is taken at this edge.
void cosim_peach2::take_beat(unsigned port)
{
    const cosim_pins &chip = model->pins();
    cosim_beat beat;
    uint8_t bit = static_cast<uint8_t>(1u << port);
    unsigned mark = chip.tx_mark_o >> mark_bits * port;
    beat.sop = (mark & mark_sop) != 0;
    beat.eop = (mark & mark_eop) != 0;
    beat.empty = mark & mark_empty;
    memcpy(beat.words, &chip.tx_data_o[COSIM_BEAT_WORDS * port], sizeof beat.words);
    tx_open = static_cast<uint8_t>(beat.eop ? tx_open & ~bit : tx_open | bit);
    pcie_tlp_t *tlp = cosim_assembly_add(&tx[port], pool, name.c_str(), &beat);
    if (tlp != nullptr) {
        explain_tx(tlp);
        ops.tx(ctx, port, tlp);
    }
}

// The last values from the hard IPs are in force from now on.
void cosim_peach2::take_tx()
{
    tx_ready = tx_ready_wanted;
    model->pins().tx_room_i = tx_room_wanted;
    tx_changed = false;
}

// --- an edge --------------------------------------------------------------------------------------------------------

void cosim_peach2::evaluate(uint64_t edge)
{
    const cosim_pins &chip = model->pins();
    if (rx_waiting != 0) {
        offer_arrivals(edge);
    }
    if (tx_changed && edge >= tx_edge) {
        take_tx();
    }
    chip.tx_ready_i = tx_ready | tx_open;
    unsigned leaving = chip.tx_valid_o & chip.tx_ready_i;
    unsigned entering = chip.rx_valid_i & chip.rx_ready_o;
    for (unsigned ports = leaving; ports != 0; ports &= ports - 1) {
        take_beat(static_cast<unsigned>(__builtin_ctz(ports)));
    }
    model->tick(edge * clock->period_ps, clock->period_ps / 2);
    cycles++;
    for (unsigned ports = entering; ports != 0; ports &= ports - 1) {
        advance(static_cast<unsigned>(__builtin_ctz(ports)));
    }
    // No change at the next edge: no beat moves inside, enters or leaves, and no other input changes.
    unsigned moving = (chip.rx_valid_i & chip.rx_ready_o) | (chip.tx_valid_o & (tx_ready | tx_open));
    awake = !(chip.still_o && (moving | leaving | entering | rx_waiting) == 0 && !tx_changed);
}

// The waveform writer replaces what it finds at its path, even a device.
static bool may_be_written(const char *path)
{
    struct stat status;
    return stat(path, &status) != 0 || S_ISREG(status.st_mode);
}

// --- the C interface ------------------------------------------------------------------------------------------------

sim_status cosim_peach2_create(cosim_clock_t *clock, pcie_pool_t *pool, const char *name,
                               const cosim_peach2_config *config, const cosim_peach2_ops *ops, void *ctx,
                               const char *trace_path, cosim_peach2_t **board_out)
{
    sim_status status = cosim_model::check(config);
    if (status != SIM_OK) {
        return status;
    }
    if (trace_path != nullptr && !may_be_written(trace_path)) {
        return SIM_ERR_IO;
    }
    auto *board = new (std::nothrow) cosim_peach2{};
    if (board == nullptr) {
        return SIM_ERR_NO_MEMORY;
    }
    board->clock = clock;
    board->pool = pool;
    board->name = name;
    board->ops = *ops;
    board->ctx = ctx;
    board->model = std::make_unique<cosim_model>(name, config, trace_path);
    board->tx_ready = board->tx_ready_wanted = board->tx_room_wanted = (1u << COSIM_PORTS) - 1;
    clock->boards.push_back(board);
    *board_out = board;
    return SIM_OK;
}

void cosim_peach2_destroy(cosim_peach2_t *board)
{
    for (cosim_rx_port &port : board->rx) {
        for (const cosim_arrival &arrival : port.queue) {
            pcie_tlp_unref(arrival.tlp);
        }
    }
    for (cosim_assembly &assembly : board->tx) {
        cosim_assembly_fini(&assembly);
    }
    auto &boards = board->clock->boards;
    boards.erase(std::remove(boards.begin(), boards.end(), board), boards.end());
    delete board;
}

static void wake(cosim_peach2 *board)
{
    if (!board->awake) {
        board->awake = true;
        board->wake_edge = board->clock->next_edge();
        board->clock->wake();
    }
}

void cosim_peach2_rx(cosim_peach2_t *board, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    cosim_rx_port &in = board->rx[port];
    board->explain_rx(tlp);
    if (in.queue.empty()) {
        board->rx_waiting |= static_cast<uint8_t>(1u << port);
    }
    in.queue.push_back({tlp, board->clock->next_edge(), cosim_beat_count(tlp), static_cast<uint8_t>(bar)});
    wake(board);
}

// Inputs from the hard IPs are in force from the next edge on.
static bool tx_change(cosim_peach2 *board, uint8_t &wanted, unsigned port, bool set)
{
    uint8_t bit = static_cast<uint8_t>(1u << port);
    uint8_t value = static_cast<uint8_t>(set ? wanted | bit : wanted & ~bit);
    if (value == wanted) {
        return false;
    }
    if (board->tx_changed && board->tx_edge < board->clock->next_edge()) {
        board->take_tx(); // in force at an edge that may be in the future
    }
    wanted = value;
    board->tx_changed = true;
    board->tx_edge = board->clock->next_edge();
    return true;
}

void cosim_peach2_set_tx_ready(cosim_peach2_t *board, unsigned port, bool ready)
{
    if (tx_change(board, board->tx_ready_wanted, port, ready) && ready &&
        (board->model->pins().tx_valid_o >> port & 1) != 0) {
        wake(board);
    }
}

void cosim_peach2_set_tx_room(cosim_peach2_t *board, unsigned port, bool room)
{
    // Packets that wait for room are before the output, where they are not visible from here.
    if (tx_change(board, board->tx_room_wanted, port, room) && room && !board->model->pins().idle_o) {
        wake(board);
    }
}

void cosim_peach2_reset(cosim_peach2_t *board)
{
    for (unsigned port = 0; port < COSIM_PORTS; port++) {
        cosim_rx_port &in = board->rx[port];
        while (!in.queue.empty()) {
            pcie_tlp_t *tlp = in.queue.front().tlp;
            in.queue.pop_front();
            board->ops.rx_taken(board->ctx, port, tlp);
        }
        in.beat = 0;
        cosim_assembly_fini(&board->tx[port]);
        board->tx[port] = {};
    }
    board->model->reset();
    board->tx_ready = board->tx_ready_wanted = board->tx_room_wanted = (1u << COSIM_PORTS) - 1;
    board->rx_waiting = board->tx_open = 0;
    board->tx_changed = board->awake = false;
}

uint64_t cosim_peach2_cycles(const cosim_peach2_t *board)
{
    return board->cycles;
}

void cosim_peach2_counters(const cosim_peach2_t *board, uint32_t values[PEACH2_COUNTER_REGISTERS])
{
    board->model->counters(values);
}
