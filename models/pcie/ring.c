#include "models/pcie/ring.h"

#include <stdlib.h>
#include <string.h>

#include "sim/kernel/status.h"

enum { FIRST_CAPACITY = 16 };

void pcie_ring_init(struct pcie_ring *ring, uint32_t slot_bytes)
{
    *ring = (struct pcie_ring){.slot_bytes = slot_bytes};
}

void pcie_ring_fini(struct pcie_ring *ring)
{
    free(ring->slots);
    *ring = (struct pcie_ring){.slot_bytes = ring->slot_bytes};
}

void pcie_ring_grow(struct pcie_ring *ring)
{
    uint32_t capacity = ring->capacity == 0 ? FIRST_CAPACITY : ring->capacity * 2;
    uint8_t *slots = malloc((size_t)capacity * ring->slot_bytes);
    if (slots == NULL) {
        sim_panic("pcie", "no memory for a queue of %u slots", capacity);
    }
    for (uint32_t i = 0; i < ring->count; i++) {
        memcpy(slots + (size_t)i * ring->slot_bytes, pcie_ring_at(ring, i), ring->slot_bytes);
    }
    free(ring->slots);
    ring->slots = slots;
    ring->capacity = capacity;
    ring->head = 0;
}
