// What the pool offers to the functions that make TLPs. Internal to models/pcie.
#pragma once

#include "models/pcie/tlp.h"

struct pcie_payload {
    struct pcie_payload *next; // in the free list
    uint32_t references;
    uint32_t size_class;
    uint8_t data[];
};

pcie_tlp_t *pcie_pool_take_tlp(pcie_pool_t *pool);                         // zeroed, one reference
void pcie_pool_give_tlp(pcie_tlp_t *tlp);                                  // without its payload
pcie_payload_t *pcie_pool_take_payload(pcie_pool_t *pool, uint32_t bytes); // one reference, not initialised
void pcie_pool_give_payload(pcie_pool_t *pool, pcie_payload_t *payload);
