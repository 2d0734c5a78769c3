// What the C++ files of this room share: the clock and a board. No other room includes this.
//
// clock.cpp decides which edges are evaluated, board.cpp what a board does at an edge; model.hpp is the Verilated chip.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/cosim/adaptor.h"
#include "sim/cosim/cosim.h"
#include "sim/cosim/model.hpp"
#include "sim/kernel/cause.h"

struct cosim_clock {
    sim_t *sim;
    uint64_t period_ps;
    sim_event_t edge_event;
    std::vector<cosim_peach2 *> boards; // in the order of creation
    uint64_t edge;                      // number of the current or last evaluated edge
    bool running;                       // inside the loop over edges

    // Number of the first edge strictly after now. The next edge sees what arrives at the time of an edge, whether or
    // not the clock was running, so the order of events at that time does not matter.
    uint64_t next_edge() const
    {
        return sim_now_ps(sim) / period_ps + 1;
    }
    // A board has work from the next edge on.
    void wake();
};

// A packet on the input side of the chip.
struct cosim_arrival {
    pcie_tlp_t *tlp;
    uint64_t edge; // first edge that may see it
    uint32_t beats;
    uint8_t bar;
};

struct cosim_rx_port {
    std::deque<cosim_arrival> queue;
    uint32_t beat; // of the first packet: the beat on the wires
};

struct cosim_peach2 {
    cosim_clock *clock;
    pcie_pool_t *pool;
    std::string name;
    cosim_peach2_ops ops;
    void *ctx;
    std::unique_ptr<cosim_model> model;

    cosim_rx_port rx[COSIM_PORTS];
    cosim_assembly tx[COSIM_PORTS];
    uint8_t rx_waiting;      // ports with packets of which no beat is offered yet
    uint8_t tx_ready;        // inputs from the hard IPs, in force
    uint8_t tx_ready_wanted; // and their last values
    uint8_t tx_room_wanted;  // the same for tx_room_i
    bool tx_changed;         // some of them are not in force yet
    uint64_t tx_edge;        // first edge at which they are
    uint8_t tx_open;         // ports with an unfinished packet
    sim_cause_t cause;       // of the last input (sim/kernel/cause.h)
    bool awake;
    uint64_t wake_edge; // first edge to be evaluated
    uint64_t cycles;

    void evaluate(uint64_t edge);
    void take_tx();
    void explain_rx(const pcie_tlp_t *tlp);
    void explain_tx(const pcie_tlp_t *tlp);

  private:
    void offer(unsigned port);
    void offer_arrivals(uint64_t edge);
    void take_beat(unsigned port);
    void advance(unsigned port);
};
