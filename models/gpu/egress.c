// What leaves through the GPU's link: completions of reads, and the requests of the copy engines.
#include "models/gpu/internal.h"

struct leaving {
    struct pcie_leaving base;
    bool ends_read; // the last completion of a read
};

static void sent(void *gpu, const void *slot)
{
    if (((const struct leaving *)slot)->ends_read) {
        gpu_target_read_left(gpu);
    }
}

static const struct pcie_egress_ops OPS = {.sent = sent};

void gpu_egress_init(gpu_t *gpu)
{
    pcie_egress_init(&gpu->egress, gpu->sim, gpu->name, sizeof(struct leaving), &OPS, gpu);
}

void gpu_egress_push(gpu_t *gpu, pcie_tlp_t *tlp, bool ends_read)
{
    (void)pcie_egress_send(&gpu->egress, &(struct leaving){{.tlp = tlp}, ends_read});
}

bool gpu_egress_has_room(const gpu_t *gpu, enum pcie_class class)
{
    return pcie_egress_count(&gpu->egress, class) == 0;
}
