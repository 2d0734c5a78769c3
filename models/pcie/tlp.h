// Transaction layer packets.
//
// A TLP is a struct from a pool, reference counted and immutable once offered to a link; it refers to its payload, so
// that forwarding with another header copies no data. Sizes are bytes; `dwords` has the meaning of the Length field
// (1..1024). Memory requests always carry 64-bit addresses (4-DW headers), because every address of the TCA window lies
// above 4 GiB.
//
// Source: PCI Express Base Specification 3.0, clause 2.2. Leaves out: I/O, configuration and message requests, TLP
// prefixes, digests (ECRC), poisoning.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/kernel/status.h"

#define PCIE_PAYLOAD_MAX 4096

enum pcie_tlp_kind { PCIE_TLP_MRD, PCIE_TLP_MWR, PCIE_TLP_CPL, PCIE_TLP_CPLD };

// The three traffic classes of flow control (clause 2.6.1).
enum pcie_class { PCIE_POSTED, PCIE_NONPOSTED, PCIE_COMPLETION, PCIE_CLASS_COUNT };

// Completion Status (clause 2.2.9, table 2-29).
enum pcie_cpl_status { PCIE_CPL_SC = 0, PCIE_CPL_UR = 1, PCIE_CPL_CA = 4 };

typedef struct pcie_pool pcie_pool_t;
typedef struct pcie_payload pcie_payload_t;

// Its fields fill one cache line.
typedef struct pcie_tlp {
    uint64_t address;        // of the first DW, 4 B aligned; requests
    pcie_payload_t *payload; // NULL without data; dwords * 4 bytes
    enum pcie_tlp_kind kind;
    uint16_t requester; // requester ID (bus 8, device 5, function 3)
    uint16_t dwords;    // Length: DWs of payload, or DWs requested
    uint8_t tag;
    uint8_t first_be, last_be; // requests
    // completions
    uint8_t lower_address; // low 7 bits of the first enabled byte's address
    enum pcie_cpl_status cpl_status;
    uint16_t completer;
    uint16_t byte_count; // bytes left including this completion (4096 as 4096, not 0)
    // the pool's
    uint32_t references;
    pcie_pool_t *pool;
    struct pcie_tlp *next; // for the queue the TLP is in; one at a time
    uint32_t cause;        // of its last offer to a link (sim/kernel/cause.h)
} pcie_tlp_t;

// --- pool --------------------------------------------------------------------------------------------------------

// One pool for each simulation. pcie_pool_destroy: every TLP must have been returned; frees those that were not and
// returns their number, so that tests and the platform can report leaks.
enum sim_status pcie_pool_create(pcie_pool_t **pool_out);
unsigned pcie_pool_destroy(pcie_pool_t *pool);
unsigned pcie_pool_live(const pcie_pool_t *pool);

// --- making TLPs (never fail: running out of host memory ends the process with a message) ---------------------------

// bytes: from address (any alignment) on; byte enables are derived. data may be NULL to fill the payload later through
// pcie_tlp_data (still before the TLP is offered). At most PCIE_PAYLOAD_MAX bytes and not across 4 KiB.
pcie_tlp_t *pcie_tlp_write(pcie_pool_t *pool, uint16_t requester, uint64_t address, uint32_t bytes, const void *data);
// The same with the whole payload of `data`, which it shares: whole DWs at an address that is a multiple of 4.
pcie_tlp_t *pcie_tlp_write_shared(uint16_t requester, uint64_t address, const pcie_tlp_t *data);
pcie_tlp_t *pcie_tlp_read(pcie_pool_t *pool, uint16_t requester, uint8_t tag, uint64_t address, uint32_t bytes);
// One completion for `request` that carries bytes [offset, offset + bytes) of the requested range. data NULL: the
// caller fills in all of them.
pcie_tlp_t *pcie_tlp_completion(const pcie_tlp_t *request, uint16_t completer, uint32_t offset, uint32_t bytes,
                                const void *data);
// A completion without data: UR or CA.
pcie_tlp_t *pcie_tlp_error(const pcie_tlp_t *request, uint16_t completer, enum pcie_cpl_status status);
// The same TLP with a header of its own, which may be changed; shares the payload.
pcie_tlp_t *pcie_tlp_copy(const pcie_tlp_t *tlp);
// An empty TLP with room for payload_dwords, for callers that fill in the fields themselves (the beat adaptor).
pcie_tlp_t *pcie_tlp_blank(pcie_pool_t *pool, enum pcie_tlp_kind kind, uint16_t payload_dwords);

static inline void pcie_tlp_ref(pcie_tlp_t *tlp)
{
    tlp->references++;
}
void pcie_tlp_free(pcie_tlp_t *tlp); // called when the last reference is dropped
static inline void pcie_tlp_unref(pcie_tlp_t *tlp)
{
    if (--tlp->references == 0) {
        pcie_tlp_free(tlp);
    }
}

// --- reading TLPs --------------------------------------------------------------------------------------------------

uint8_t *pcie_tlp_data(pcie_tlp_t *tlp); // payload, dwords * 4 bytes, first byte belongs to the DW at address
const char *pcie_tlp_kind_name(enum pcie_tlp_kind kind);
static inline enum pcie_class pcie_tlp_class(const pcie_tlp_t *tlp)
{
    return tlp->kind == PCIE_TLP_MWR ? PCIE_POSTED : tlp->kind == PCIE_TLP_MRD ? PCIE_NONPOSTED : PCIE_COMPLETION;
}
static inline uint32_t pcie_tlp_payload_bytes(const pcie_tlp_t *tlp) // 0 without data
{
    return tlp->kind == PCIE_TLP_MWR || tlp->kind == PCIE_TLP_CPLD ? tlp->dwords * 4u : 0;
}
// With framing, sequence number, header and LCRC: requests 24 + data, completions 20 + data.
uint32_t pcie_tlp_wire_bytes(const pcie_tlp_t *tlp);
static inline uint32_t pcie_tlp_data_credits(const pcie_tlp_t *tlp) // units of 16 B (clause 2.6.1)
{
    return (pcie_tlp_payload_bytes(tlp) + 15) / 16;
}
// Of a request: the address of the first enabled byte, and the count from the first to the last one (table 2-38); a
// read of no bytes counts 1 and a write of no bytes 0. Of a completion: Lower Address, and the requested bytes that it
// carries.
uint64_t pcie_tlp_first_byte(const pcie_tlp_t *tlp);
uint32_t pcie_tlp_byte_count(const pcie_tlp_t *tlp);
// Of a write: one call for each contiguous run of enabled bytes; enables may have holes (clause 2.2.5).
typedef void (*pcie_tlp_run_fn)(void *ctx, uint64_t address, const void *data, uint32_t bytes);
void pcie_tlp_for_runs(pcie_tlp_t *tlp, pcie_tlp_run_fn run, void *ctx);
