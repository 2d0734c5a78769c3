// The write data mover: on-chip memory as memory writes.
#include "models/fpga/internal.h"

pcie_tlp_t *fpga_write_mover_take(fpga_t *fpga, uint64_t *due_ps_out)
{
    struct fpga_controller *controller = &fpga->controllers[FPGA_WRITE];
    struct fpga_entry *entry = fpga_controller_front(controller, due_ps_out);
    if (entry == NULL) {
        return NULL;
    }
    uint64_t remote = entry->remote + entry->issued;
    uint32_t bytes = entry->bytes - entry->issued;
    uint32_t to_page = FPGA_PAGE_BYTES - (uint32_t)(remote % FPGA_PAGE_BYTES);
    bytes = bytes < fpga->config.mps_bytes ? bytes : fpga->config.mps_bytes;
    bytes = bytes < to_page ? bytes : to_page;
    pcie_tlp_t *tlp =
        pcie_tlp_write(fpga->pool, fpga->config.requester, remote, bytes, fpga->memory + entry->local + entry->issued);
    entry->issued += bytes;
    fpga->counters[FPGA_WRITE_PACKETS]++;
    fpga->counters[FPGA_WRITE_BYTES] += bytes;
    if (entry->issued == entry->bytes) {
        fpga_controller_front_issued(controller);
        fpga->transmit.write_last = entry;
    }
    return tlp;
}

void fpga_write_mover_sent(fpga_t *fpga)
{
    struct fpga_entry *entry = fpga->transmit.write_last;
    fpga->transmit.write_last = NULL;
    if (entry != NULL) {
        fpga_controller_end(&fpga->controllers[FPGA_WRITE], entry);
    }
}
