// The arithmetic of the wire.
#include "models/pcie/wire.h"

#include <stddef.h>

#include "models/pcie/link.h"

enum { TICKS_PER_PS = 512 };              // a byte on any number of lanes up to 16 is whole ticks, up to 32 GT/s
#define ORIGIN_AGE_PS (UINT64_C(1) << 40) // a second
enum { SKP_SYMBOLS = 4, SKP_INTERVAL_SYMBOLS = 1538 }; // clause 4.2.7, the longest interval allowed
enum { GENERATIONS = 3, WIDTHS = 5, SMALLEST_MPS = 128, MPS_SIZES = 6 };

// A byte on one lane: 10 bits of 400 ps, of 200 ps, and 8 x 130/128 bits of 125 ps (clauses 4.2.1, 4.2.2).
static const uint64_t SYMBOL_TICKS[GENERATIONS] = {
    4000 * TICKS_PER_PS,
    2000 * TICKS_PER_PS,
    8 * 125 * 130 * (TICKS_PER_PS / 128),
};

// ACK and UpdateFC intervals in symbol times by generation, width and Max_Payload_Size (clauses 2.6.1.2 and 3.5.3.1:
// tables 2-46 to 2-48 and 3-7 to 3-9 have the same values).
static const uint16_t INTERVALS[GENERATIONS][WIDTHS][MPS_SIZES] = {
    {
        {237, 416, 559, 1071, 2095, 4143},
        {128, 217, 289, 545, 1057, 2081},
        {73, 118, 154, 282, 538, 1050},
        {67, 107, 86, 150, 278, 534},
        {48, 72, 86, 150, 278, 534},
    },
    {
        {288, 467, 610, 1122, 2146, 4194},
        {179, 268, 340, 596, 1108, 2132},
        {124, 169, 205, 333, 589, 1101},
        {118, 158, 137, 201, 329, 585},
        {99, 123, 137, 201, 329, 585},
    },
    {
        {333, 512, 655, 1167, 2191, 4239},
        {224, 313, 385, 641, 1153, 2177},
        {169, 214, 250, 378, 634, 1146},
        {163, 203, 182, 246, 374, 630},
        {144, 168, 182, 246, 374, 630},
    },
};

bool pcie_wire_valid(uint32_t generation, uint32_t lanes)
{
    return generation >= 1 && generation <= GENERATIONS && lanes >= 1 && lanes <= 16 && (lanes & (lanes - 1)) == 0;
}

static uint64_t ps_round_up(uint64_t ticks)
{
    return (ticks + TICKS_PER_PS - 1) / TICKS_PER_PS;
}

uint64_t pcie_wire_ps(uint32_t generation, uint32_t lanes, uint64_t bytes)
{
    if (!pcie_wire_valid(generation, lanes)) {
        sim_panic("pcie", "no link has generation %u and %u lanes", generation, lanes);
    }
    return ps_round_up(SYMBOL_TICKS[generation - 1] / lanes * bytes);
}

uint32_t pcie_ack_interval_symbols(uint32_t generation, uint32_t lanes, uint32_t mps_bytes)
{
    unsigned mps = 0;
    while (mps < MPS_SIZES && (uint32_t)SMALLEST_MPS << mps != mps_bytes) {
        mps++;
    }
    if (!pcie_wire_valid(generation, lanes) || mps == MPS_SIZES) {
        sim_panic("pcie", "no link has generation %u, %u lanes and a maximum payload of %u bytes", generation, lanes,
                  mps_bytes);
    }
    return INTERVALS[generation - 1][__builtin_ctz(lanes)][mps];
}

void pcie_wire_init(struct pcie_wire *wire, uint32_t generation, uint32_t lanes, uint64_t now_ps)
{
    uint64_t symbol_ticks = SYMBOL_TICKS[generation - 1];
    *wire = (struct pcie_wire){
        .byte_ticks = symbol_ticks / lanes,
        .symbol_ticks = symbol_ticks,
        .origin_ps = now_ps,
        .skp_ticks = SKP_INTERVAL_SYMBOLS * symbol_ticks,
    };
}

uint64_t pcie_wire_free_ps(const struct pcie_wire *wire)
{
    return wire->origin_ps + ps_round_up(wire->free_ticks);
}

// Of the ordered sets that became due by now, only the last one matters.
static void origin_follow(struct pcie_wire *wire, uint64_t now_ps)
{
    const uint64_t interval = SKP_INTERVAL_SYMBOLS * wire->symbol_ticks;
    unsigned __int128 now = (unsigned __int128)(now_ps - wire->origin_ps) * TICKS_PER_PS, skp = wire->skp_ticks;
    if (skp < now) {
        skp += (now - skp) / interval * interval;
    }
    uint64_t moved_ps = (uint64_t)((skp < now ? skp : now) / TICKS_PER_PS);
    unsigned __int128 moved = (unsigned __int128)moved_ps * TICKS_PER_PS;
    wire->origin_ps += moved_ps;
    wire->skp_ticks = (uint64_t)(skp - moved);
    wire->free_ticks = wire->free_ticks > moved ? (uint64_t)(wire->free_ticks - moved) : 0;
}

// SKP ordered sets take wire time without events: those that became due while packets were sent delay the next packet;
// those in idle time matter only if the last of them is not over yet.
static uint64_t skp_advance(struct pcie_wire *wire, uint64_t start)
{
    const uint64_t length = SKP_SYMBOLS * wire->symbol_ticks;
    const uint64_t interval = SKP_INTERVAL_SYMBOLS * wire->symbol_ticks;
    uint64_t free = wire->free_ticks;
    while (wire->skp_ticks <= free) {
        free += length;
        wire->skp_ticks += interval;
    }
    if (wire->skp_ticks <= start) {
        uint64_t last = wire->skp_ticks + (start - wire->skp_ticks) / interval * interval;
        free = last + length;
        wire->skp_ticks = last + interval;
    }
    return free > start ? free : start;
}

uint64_t pcie_wire_send(struct pcie_wire *wire, uint64_t now_ps, uint64_t bytes)
{
    if (now_ps - wire->origin_ps >= ORIGIN_AGE_PS) {
        origin_follow(wire, now_ps);
    }
    uint64_t start = (now_ps - wire->origin_ps) * TICKS_PER_PS;
    // Within the picosecond in which the wire becomes free, packets follow without a gap.
    if (wire->free_ticks + TICKS_PER_PS > start) {
        start = wire->free_ticks;
    }
    if (wire->skp_ticks <= start) {
        start = skp_advance(wire, start);
    }
    wire->free_ticks = start + bytes * wire->byte_ticks;
    return pcie_wire_free_ps(wire);
}
