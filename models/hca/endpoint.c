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

static bool leave(hca_t *hca, enum pcie_class class)
{
    while (hca->out_first[class] != NULL) {
        pcie_tlp_t *tlp = hca->out_first[class], *next = tlp->next;
        if (!pcie_end_offer(hca->end, tlp)) {
            return false;
        }
        hca->out_first[class] = next;
        hca->out_count[class]--;
    }
    return true;
}

// Nothing passes a posted write; the other two pass each other.
static void pump(hca_t *hca)
{
    if (hca->end != NULL && leave(hca, PCIE_POSTED)) {
        (void)leave(hca, PCIE_COMPLETION);
        (void)leave(hca, PCIE_NONPOSTED);
    }
}

void hca_endpoint_send(hca_t *hca, pcie_tlp_t *tlp)
{
    enum pcie_class class = pcie_tlp_class(tlp);
    tlp->next = NULL;
    if (hca->out_first[class] == NULL) {
        hca->out_first[class] = tlp;
    } else {
        hca->out_last[class]->next = tlp;
    }
    hca->out_last[class] = tlp;
    hca->out_count[class]++;
    pump(hca);
}

bool hca_endpoint_has_room(const hca_t *hca)
{
    return hca->out_count[PCIE_POSTED] < hca->config.write_tlps;
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

void hca_endpoint_fini(hca_t *hca)
{
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        while (hca->out_first[class] != NULL) {
            pcie_tlp_t *tlp = hca->out_first[class];
            hca->out_first[class] = tlp->next;
            pcie_tlp_unref(tlp);
        }
    }
}
