// The pool of TLPs and payloads. Both come in slabs that live as long as the pool, so that a simulation in its steady
// state allocates nothing and a leak can be counted and freed.
#include "models/pcie/pool.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST_PAYLOAD = 64,
    SIZE_CLASSES = 7, // 64 B doubled six times is PCIE_PAYLOAD_MAX
    TLPS_PER_SLAB = 128,
    PAYLOAD_SLAB_BYTES = 16384,
    LINE_BYTES = 64
};

_Static_assert(SMALLEST_PAYLOAD << (SIZE_CLASSES - 1) == PCIE_PAYLOAD_MAX, "the largest class holds any payload");

_Static_assert(sizeof(pcie_tlp_t) <= LINE_BYTES, "a TLP lies in one cache line");

struct slab {
    struct slab *next;
    _Alignas(LINE_BYTES) uint8_t bytes[];
};

struct pcie_pool {
    pcie_tlp_t *free_tlps;
    pcie_payload_t *free_payloads[SIZE_CLASSES];
    struct slab *slabs;
    unsigned live;
};

static uint8_t *slab_add(pcie_pool_t *pool, size_t bytes)
{
    size_t size = (sizeof(struct slab) + bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    struct slab *slab = aligned_alloc(LINE_BYTES, size);
    if (slab == NULL) {
        sim_panic("pcie", "no memory for another %zu bytes of TLPs", bytes);
    }
    slab->next = pool->slabs;
    pool->slabs = slab;
    return slab->bytes;
}

enum sim_status pcie_pool_create(pcie_pool_t **pool_out)
{
    pcie_pool_t *pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    *pool_out = pool;
    return SIM_OK;
}

unsigned pcie_pool_destroy(pcie_pool_t *pool)
{
    if (pool == NULL) {
        return 0;
    }
    unsigned live = pool->live;
    while (pool->slabs != NULL) {
        struct slab *slab = pool->slabs;
        pool->slabs = slab->next;
        free(slab);
    }
    free(pool);
    return live;
}

unsigned pcie_pool_live(const pcie_pool_t *pool)
{
    return pool->live;
}

static void tlps_add(pcie_pool_t *pool)
{
    pcie_tlp_t *tlps = (pcie_tlp_t *)slab_add(pool, TLPS_PER_SLAB * sizeof *tlps);
    for (unsigned i = TLPS_PER_SLAB; i > 0; i--) {
        tlps[i - 1].next = pool->free_tlps;
        pool->free_tlps = &tlps[i - 1];
    }
}

pcie_tlp_t *pcie_pool_take_tlp(pcie_pool_t *pool)
{
    if (pool->free_tlps == NULL) {
        tlps_add(pool);
    }
    pcie_tlp_t *tlp = pool->free_tlps;
    pool->free_tlps = tlp->next;
    pool->live++;
    memset(tlp, 0, sizeof *tlp);
    tlp->pool = pool;
    tlp->references = 1;
    return tlp;
}

void pcie_pool_give_tlp(pcie_tlp_t *tlp)
{
    pcie_pool_t *pool = tlp->pool;
    tlp->next = pool->free_tlps;
    pool->free_tlps = tlp;
    pool->live--;
}

static unsigned size_class(uint32_t bytes)
{
    unsigned class = 0;
    while (((uint32_t)SMALLEST_PAYLOAD << class) < bytes) {
        class ++;
    }
    return class;
}

static void payloads_add(pcie_pool_t *pool, unsigned class)
{
    size_t each = sizeof(pcie_payload_t) + ((size_t)SMALLEST_PAYLOAD << class);
    unsigned count = (unsigned)(PAYLOAD_SLAB_BYTES / each);
    uint8_t *bytes = slab_add(pool, count * each);
    for (unsigned i = count; i > 0; i--) {
        pcie_payload_t *payload = (pcie_payload_t *)(bytes + (i - 1) * each);
        payload->size_class = class;
        payload->next = pool->free_payloads[class];
        pool->free_payloads[class] = payload;
    }
}

pcie_payload_t *pcie_pool_take_payload(pcie_pool_t *pool, uint32_t bytes)
{
    if (bytes > PCIE_PAYLOAD_MAX) {
        sim_panic("pcie", "a payload of %u bytes", bytes);
    }
    unsigned class = size_class(bytes);
    if (pool->free_payloads[class] == NULL) {
        payloads_add(pool, class);
    }
    pcie_payload_t *payload = pool->free_payloads[class];
    pool->free_payloads[class] = payload->next;
    payload->references = 1;
    return payload;
}

void pcie_pool_give_payload(pcie_pool_t *pool, pcie_payload_t *payload)
{
    payload->next = pool->free_payloads[payload->size_class];
    pool->free_payloads[payload->size_class] = payload;
}
