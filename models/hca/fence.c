// Fences: everything accepted or written before a fence is in host memory when the fence ends.
//
// A fence waits for the order of accesses, then reads host memory; the read pushes the posted writes before it (PCI
// Express, clause 2.4.1).
#include "models/hca/internal.h"

static void pushed(hca_t *hca, struct hca_dma_read *read)
{
    struct hca_fence *fence = read->owner;
    (void)hca;
    fence->done(fence->ctx); // if it failed: nothing reaches the host any more
}

void hca_fences_check(hca_t *hca)
{
    while (hca->fences != NULL && (int32_t)(hca->orders_done - hca->fences->mark) >= 0) {
        struct hca_fence *fence = hca->fences;
        hca->fences = fence->next;
        (void)hca_dma_read(hca, HCA_DMA_RESPONSE, hca->fence_address, sizeof(uint64_t), NULL, pushed, fence);
    }
}

bool hca_fw_fence(hca_t *hca, struct hca_fence *fence)
{
    if (!hca->fence_possible) {
        return false;
    }
    struct hca_fence **link = &hca->fences;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    fence->next = NULL;
    fence->mark = hca->orders_issued;
    *link = fence;
    hca_fences_check(hca);
    return true;
}
