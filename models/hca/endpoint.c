// The PCI Express endpoint: what the host sends, and what leaves for it, in the order that clause 2.4 allows.
#include <string.h>

#include "models/hca/internal.h"

uint64_t hca_uar_bytes(void)
{
    return (uint64_t)HCA_UAR_PAGES * HCA_UAR_BYTES;
}

struct pcie_end_config hca_slot_end(const struct hca_config *config)
{
    // The read tags of the HCA bound its completions, so it advertises no limit for them.
    return (struct pcie_end_config){
        .tx_ps = config->pcie_tx_ps,
        .rx_ps = config->pcie_rx_ps,
        .headers = {32, 8, PCIE_CREDITS_INFINITE},
        .data = {256, 8, PCIE_CREDITS_INFINITE},
        .tx_queue_tlps = 32,
    };
}

// --- leaving -------------------------------------------------------------------------------------------------------

struct leaving {
    pcie_tlp_t *tlp;
    uint64_t order;
};

void hca_endpoint_init(hca_t *hca)
{
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        pcie_ring_init(&hca->leaving[class], sizeof(struct leaving));
    }
    pcie_ring_init(&hca->free_reads, sizeof(struct leaving));
}

static bool offer_first(hca_t *hca, struct pcie_ring *ring)
{
    if (ring->count == 0 || !pcie_end_offer(hca->end, ((const struct leaving *)pcie_ring_front(ring))->tlp)) {
        return false;
    }
    pcie_ring_pop(ring);
    return true;
}

// Nothing passes a posted write that came before it; the other two pass each other.
static bool offer_in_order(hca_t *hca)
{
    uint64_t barrier = UINT64_MAX;
    for (enum pcie_class class = PCIE_POSTED; class < PCIE_CLASS_COUNT; class ++) {
        struct pcie_ring *ring = &hca->leaving[class];
        const struct leaving *first = ring->count > 0 ? pcie_ring_front(ring) : NULL;
        if (first != NULL && first->order < barrier && offer_first(hca, ring)) {
            return true;
        }
        barrier = class == PCIE_POSTED && first != NULL ? first->order : barrier;
    }
    return false;
}

// Reads that nothing before them has to do with take turns with everything else: data to send does not wait for the
// data that arrives.
static void pump(hca_t *hca)
{
    bool moved = hca->end != NULL;
    while (moved) {
        moved = offer_first(hca, &hca->free_reads);
        moved = offer_in_order(hca) || moved;
    }
}

static void put(hca_t *hca, struct pcie_ring *ring, pcie_tlp_t *tlp)
{
    *(struct leaving *)pcie_ring_push(ring) = (struct leaving){tlp, hca->leaving_order++};
    pump(hca);
}

void hca_endpoint_send(hca_t *hca, pcie_tlp_t *tlp)
{
    put(hca, &hca->leaving[pcie_tlp_class(tlp)], tlp);
}

void hca_endpoint_send_free_read(hca_t *hca, pcie_tlp_t *tlp)
{
    put(hca, &hca->free_reads, tlp);
}

bool hca_endpoint_has_room(const hca_t *hca)
{
    return hca->leaving[PCIE_POSTED].count < hca->config.write_tlps;
}

static void endpoint_ready(void *ctx, pcie_end_t *end)
{
    hca_t *hca = ctx;
    (void)end;
    pump(hca);
    hca_dma_pump(hca);
    if (hca_endpoint_has_room(hca)) {
        hca_order_pump(hca);
        hca_receiver_resume(hca);
    }
}

// --- arriving ------------------------------------------------------------------------------------------------------

static bool in_uar(const hca_t *hca, const pcie_tlp_t *tlp)
{
    uint64_t offset = pcie_tlp_first_byte(tlp) - hca->uar_base;
    return offset < hca_uar_bytes() && pcie_tlp_byte_count(tlp) <= hca_uar_bytes() - offset;
}

static void request_arrived(hca_t *hca, pcie_tlp_t *tlp)
{
    if (!in_uar(hca, tlp)) {
        hca->counters[HCA_UNSUPPORTED]++;
        if (tlp->kind == PCIE_TLP_MRD) {
            hca_endpoint_send(hca, pcie_tlp_error(tlp, hca->config.requester_id, PCIE_CPL_UR));
        }
        return;
    }
    if (tlp->kind == PCIE_TLP_MWR) {
        uint64_t first = pcie_tlp_first_byte(tlp);
        hca_doorbell_write(hca, first - hca->uar_base, pcie_tlp_data(tlp) + (first - tlp->address),
                           pcie_tlp_byte_count(tlp));
        return;
    }
    // Doorbells read as zero.
    uint32_t bytes = pcie_tlp_byte_count(tlp);
    pcie_tlp_t *answer = pcie_tlp_completion(tlp, hca->config.requester_id, 0, bytes, NULL);
    memset(pcie_tlp_data(answer), 0, pcie_tlp_payload_bytes(answer));
    hca_endpoint_send(hca, answer);
}

static void endpoint_receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    hca_t *hca = ctx;
    pcie_end_release(end, tlp);
    switch (tlp->kind) {
    case PCIE_TLP_MRD:
    case PCIE_TLP_MWR:
        request_arrived(hca, tlp);
        break;
    case PCIE_TLP_CPL:
    case PCIE_TLP_CPLD:
        hca_dma_complete(hca, tlp);
        break;
    }
    pcie_tlp_unref(tlp);
}

static void endpoint_down(void *ctx, pcie_end_t *end, unsigned lost_tlps)
{
    hca_t *hca = ctx;
    (void)end;
    (void)lost_tlps; // the link counts them
    hca->host_down = true;
    hca_dma_host_down(hca);
    pump(hca);
    if (hca->gone != NULL) {
        hca->gone(hca->gone_ctx, hca);
    }
}

void hca_set_gone(hca_t *hca, hca_gone_fn gone, void *ctx)
{
    hca->gone = gone;
    hca->gone_ctx = ctx;
}

bool hca_is_gone(const hca_t *hca)
{
    return hca->host_down;
}

static const struct pcie_end_ops END_OPS = {
    .receive = endpoint_receive, .ready = endpoint_ready, .down = endpoint_down};

void hca_connect_host(hca_t *hca, pcie_end_t *end, uint64_t uar_base)
{
    hca->end = end;
    hca->uar_base = uar_base;
    pcie_end_attach(end, &END_OPS, hca);
}

static void ring_drop(struct pcie_ring *ring)
{
    for (; ring->count > 0; pcie_ring_pop(ring)) {
        pcie_tlp_unref(((const struct leaving *)pcie_ring_front(ring))->tlp);
    }
    pcie_ring_fini(ring);
}

void hca_endpoint_fini(hca_t *hca)
{
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        ring_drop(&hca->leaving[class]);
    }
    ring_drop(&hca->free_reads);
}
