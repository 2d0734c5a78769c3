// What leaves through the GPU's link: completions of reads, and the requests of the copy engines. Nothing passes a
// posted write that came before it (clause 2.4.1).
#include "models/gpu/internal.h"

void gpu_egress_push(gpu_t *gpu, pcie_tlp_t *tlp, bool ends_read)
{
    gpu_fifo_push(&gpu->leaving[pcie_tlp_class(tlp)],
                  &(struct gpu_slot){.tlp = tlp, .order = gpu->leaving_order++, .ends_read = ends_read});
    gpu_egress_pump(gpu);
}

bool gpu_egress_has_room(const gpu_t *gpu, enum pcie_class class)
{
    return gpu->leaving[class].count == 0;
}

void gpu_egress_pump(gpu_t *gpu)
{
    uint64_t barrier = UINT64_MAX;
    for (enum pcie_class class = PCIE_POSTED; class < PCIE_CLASS_COUNT; class ++) {
        struct pcie_ring *fifo = &gpu->leaving[class];
        while (fifo->count > 0 && gpu_fifo_front(fifo)->order < barrier &&
               pcie_end_offer(gpu->end, gpu_fifo_front(fifo)->tlp)) {
            if (gpu_fifo_pop(fifo).ends_read) {
                gpu_target_read_left(gpu);
            }
        }
        if (class == PCIE_POSTED && fifo->count > 0) {
            barrier = gpu_fifo_front(fifo)->order;
        }
    }
}
