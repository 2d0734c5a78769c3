// Conversion of TLPs to the chip's 128-bit beats and back.
//
// Beat 0 is the header as printed in the PCI Express Base Specification, clause 2.2: DW 0 in word 0, its byte 0 in bits
// 31:24. Payload follows from beat 1 on, the DW for address A in word A[3:2], the byte for address A in bits 8*A[1:0]+7
// : 8*A[1:0]. Words outside the payload are 0. See rtl/peach2_pkg.sv.
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
    uint8_t empty; // unused words after the payload in its last beat
    uint32_t words[COSIM_BEAT_WORDS];
};

// Number of beats of the packet, including the header's.
uint32_t cosim_beat_count(const pcie_tlp_t *tlp);
// Beat `index` of them.
void cosim_beat_get(pcie_tlp_t *tlp, uint32_t index, struct cosim_beat *beat_out);

// A packet that is being assembled.
struct cosim_assembly {
    pcie_tlp_t *tlp;    // NULL between packets
    uint32_t dwords;    // of payload, assembled so far
    uint32_t lane;      // word of the first DW of the next beat
};

// Adds a beat. Returns the packet, which then belongs to the caller, when this was the last beat, else NULL. If the
// beats are not a packet that this project supports, an invariant is broken; the message names `component`.
pcie_tlp_t *cosim_assembly_add(struct cosim_assembly *assembly, pcie_pool_t *pool, const char *component,
                               const struct cosim_beat *beat);
// Releases an unfinished packet.
void cosim_assembly_fini(struct cosim_assembly *assembly);

#ifdef __cplusplus
}
#endif
