// TLPs as the chip's 128-bit beats, and beats as TLPs.
//
// Beat 0 is the header as the PCI Express Base Specification, clause 2.2, prints it: DW 0 in word 0, its byte 0 in bits
// 31:24. Payload follows from beat 1 on, the DW for address A in word A[3:2], the byte for address A in bits
// 8*A[1:0]+7 : 8*A[1:0]. Words outside the payload are 0. See rtl/peach2_pkg.sv.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "models/pcie/tlp.h"

#define COSIM_BEAT_WORDS 4

struct cosim_beat {
    bool sop, eop;
    uint8_t empty; // unused words behind the payload in its last beat
    uint32_t words[COSIM_BEAT_WORDS];
};

// Beats of the packet, the header's included.
uint32_t cosim_beat_count(const pcie_tlp_t *tlp);
// Beat `index` of them.
void cosim_beat_get(pcie_tlp_t *tlp, uint32_t index, struct cosim_beat *beat_out);

// A packet that is being put together.
struct cosim_assembly {
    pcie_tlp_t *tlp;    // NULL between packets
    uint32_t dwords;    // of payload already here
    uint32_t lane;      // word of the first DW of the next beat
};

// Adds a beat. Returns the packet, the caller's from then on, when it was the last one, else NULL. `component` is named
// if the beats are no packet that this project knows: that is a broken invariant.
pcie_tlp_t *cosim_assembly_add(struct cosim_assembly *assembly, pcie_pool_t *pool, const char *component,
                               const struct cosim_beat *beat);
// Gives back what a packet that will not be finished holds.
void cosim_assembly_fini(struct cosim_assembly *assembly);

#ifdef __cplusplus
}
#endif
