// The PCI Express endpoint: TLPs from the host, and TLPs to it, in the order that clause 2.4 allows.
#include <string.h>

#include "models/hca/internal.h"
#include "models/pcie/completer.h"

enum { READ_COMPLETION_BOUNDARY = 128 }; // of an endpoint (clause 2.3.1.1)

uint64_t hca_uar_bytes(void)
{
    return (uint64_t)HCA_UAR_PAGES * HCA_UAR_BYTES;
}

struct pcie_end_config hca_slot_end(const struct hca_config *config)
{
    // The read tags of the HCA bound the number of completions, so it advertises no limit for them.
    return (struct pcie_end_config){
        .tx_ps = config->pcie_tx_ps,
        .rx_ps = config->pcie_rx_ps,
        .headers = {32, 8, PCIE_CREDITS_INFINITE},
        .data = {256, 8, PCIE_CREDITS_INFINITE},
        .tx_queue_tlps = 32,
    };
}

// --- leaving -------------------------------------------------------------------------------------------------------

static const struct pcie_egress_ops EGRESS_OPS = {0};

void hca_endpoint_init(hca_t *hca)
{
    pcie_egress_init(&hca->egress, hca->sim, hca->name, sizeof(struct pcie_leaving), &EGRESS_OPS, NULL);
}

void hca_endpoint_send(hca_t *hca, pcie_tlp_t *tlp)
{
    (void)pcie_egress_send(&hca->egress, &(struct pcie_leaving){.tlp = tlp});
}

void hca_endpoint_send_free_read(hca_t *hca, pcie_tlp_t *tlp)
{
    (void)pcie_egress_send_unordered(&hca->egress, &(struct pcie_leaving){.tlp = tlp});
}

bool hca_endpoint_has_room(const hca_t *hca)
{
    return pcie_egress_count(&hca->egress, PCIE_POSTED) < hca->config.write_tlps;
}

static void endpoint_ready(void *ctx, pcie_end_t *end)
{
    hca_t *hca = ctx;
    (void)end;
    (void)pcie_egress_pump(&hca->egress);
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
        pcie_tlp_t *answer = pcie_unsupported(tlp, hca->config.requester_id);
        if (answer != NULL) {
            hca_endpoint_send(hca, answer);
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
    struct pcie_completions answers = pcie_completions_of(tlp, hca->config.mps_bytes, READ_COMPLETION_BOUNDARY);
    uint32_t offset, bytes;
    while (pcie_completions_next(&answers, &offset, &bytes)) {
        pcie_tlp_t *answer = pcie_tlp_completion(tlp, hca->config.requester_id, offset, bytes, NULL);
        memset(pcie_tlp_data(answer), 0, pcie_tlp_payload_bytes(answer));
        hca_endpoint_send(hca, answer);
    }
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
    (void)pcie_egress_pump(&hca->egress);
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
    hca->egress.end = end;
    hca->uar_base = uar_base;
    pcie_end_attach(end, &END_OPS, hca);
}

void hca_endpoint_fini(hca_t *hca)
{
    pcie_egress_fini(&hca->egress);
}
