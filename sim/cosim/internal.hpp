// What the C++ files of this room share: the clock and a board. No other room includes this.
//
// clock.cpp decides when an edge is, board.cpp what a board does at it, model.hpp is the Verilated chip.
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
    uint64_t edge;                      // number of the edge that is evaluated, or was last
    bool running;                       // inside the loop over edges

    // Number of the first edge strictly after now. What arrives at the time of an edge is seen by the next one, whether
    // or not the clock was running: so it does not matter which event of that time came first.
    uint64_t next_edge() const
    {
        return sim_now_ps(sim) / period_ps + 1;
    }
    // Some board has work from the next edge on.
    void wake();
};

// A packet on its way into the chip.
struct cosim_arrival {
    pcie_tlp_t *tlp;
    uint64_t edge; // first edge that may see it
    uint32_t beats;
    uint8_t bar;
};

struct cosim_rx_port {
    std::deque<cosim_arrival> queue;
    uint32_t beat; // of the first packet, the one that is offered
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
    uint8_t tx_ready;        // what the hard IPs said, in force
    uint8_t tx_ready_wanted; // and what they said last
    uint8_t tx_room_wanted;  // the same for tx_room_i
    bool tx_changed;         // something of it is not in force yet
    uint64_t tx_edge;        // first edge at which it is
    uint8_t tx_open;         // ports with a packet begun
    sim_cause_t cause;       // of what came in last (sim/kernel/cause.h)
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
