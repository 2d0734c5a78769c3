// The answers of a completer: part of every endpoint and of the root complex.
//
// Clause 2.3.1.1 of the PCI Express Base Specification 3.0: a completion carries at most Max_Payload_Size and, except
// for the last of its request, ends at a read completion boundary. Clause 2.3.1: a completer that cannot answer a
// request returns Unsupported Request; a posted request has no answer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "models/pcie/tlp.h"

struct pcie_completions {
    uint64_t address; // of the first requested byte
    uint32_t total, done;
    uint32_t mps_bytes, boundary_bytes;
};

static inline struct pcie_completions pcie_completions_of(const pcie_tlp_t *request, uint32_t mps_bytes,
                                                          uint32_t boundary_bytes)
{
    return (struct pcie_completions){.address = pcie_tlp_first_byte(request),
                                     .total = pcie_tlp_byte_count(request),
                                     .mps_bytes = mps_bytes,
                                     .boundary_bytes = boundary_bytes};
}

// Gives the bytes [offset, offset + bytes) of the request that the next completion carries. false: none is left.
static inline bool pcie_completions_next(struct pcie_completions *completions, uint32_t *offset_out,
                                         uint32_t *bytes_out)
{
    uint64_t begin = completions->address + completions->done;
    uint64_t end = (begin + completions->mps_bytes) & ~(uint64_t)(completions->boundary_bytes - 1);
    uint32_t left = completions->total - completions->done;
    *offset_out = completions->done;
    *bytes_out = end - begin < left ? (uint32_t)(end - begin) : left;
    completions->done += *bytes_out;
    return *bytes_out != 0;
}
static inline bool pcie_completions_over(const struct pcie_completions *completions) // was that the last completion?
{
    return completions->done == completions->total;
}

// The Unsupported Request completion of a request; NULL for a posted request, which has no answer.
static inline pcie_tlp_t *pcie_unsupported(const pcie_tlp_t *request, uint16_t completer)
{
    return request->kind == PCIE_TLP_MRD ? pcie_tlp_error(request, completer, PCIE_CPL_UR) : NULL;
}
