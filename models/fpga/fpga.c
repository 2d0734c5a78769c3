// Creation, destruction, and packets from the hard IP.
#include "models/fpga/fpga.h"

#include <stdlib.h>
#include <string.h>

#include "models/fpga/internal.h"
#include "sim/kernel/counter.h"

enum { SMALLEST_PACKET = 128 }; // Max_Payload_Size and Max_Read_Request_Size (clause 7.8.4)

static const struct sim_counter_desc COUNTERS[FPGA_COUNTERS] = {
    [FPGA_READS_DONE] = {"reads_done", "descriptors", "completion signals of the read controller, errors included"},
    [FPGA_WRITES_DONE] = {"writes_done", "descriptors", "completion signals of the write controller, errors included"},
    [FPGA_READ_BYTES] = {"read_bytes", "bytes", "that the read mover put into the on-chip memory"},
    [FPGA_WRITE_BYTES] = {"write_bytes", "bytes", "that the write mover took from the on-chip memory"},
    [FPGA_READ_REQUESTS] = {"read_requests", "TLPs", "memory reads of the read mover"},
    [FPGA_WRITE_PACKETS] = {"write_packets", "TLPs", "memory writes of the write mover"},
    [FPGA_TAGS_PEAK] = {"read_tags_peak", "tags", "most reads outstanding at once"},
    [FPGA_QUEUE_PEAK] = {"queue_peak", "descriptors", "most descriptors in one controller at once"},
    [FPGA_REFUSED_DESCRIPTORS] = {"refused_descriptors", "descriptors", "came to a full controller"},
    [FPGA_BAD_DESCRIPTORS] = {"bad_descriptors", "descriptors", "length, alignment or range that cannot be"},
    [FPGA_FAILED_READS] = {"failed_reads", "TLPs", "reads answered Unsupported Request or Completer Abort"},
    [FPGA_TIMEOUTS] = {"read_timeouts", "TLPs", "reads not answered in time"},
    [FPGA_UNEXPECTED_COMPLETIONS] = {"unexpected_completions", "TLPs", "that no read waits for, dropped"},
    [FPGA_UNCLAIMED_WRITES] = {"unclaimed_writes", "TLPs", "writes that hit no BAR, dropped"},
    [FPGA_UNCLAIMED_READS] = {"unclaimed_reads", "TLPs", "reads that hit no BAR, answered Unsupported Request"},
    [FPGA_CONTROL_IGNORED] =
        {"control_ignored", "TLPs",
         "accesses to the control BAR that are not 32 bits wide, or writes where nothing takes them"},
    [FPGA_STALLS] = {"transmit_stalls", "stalls", "times the hard IP had no room"},
    [FPGA_LOST_TLPS] = {"lost_tlps", "TLPs", "lost because the link went down"},
};

static bool is_packet_size(uint32_t bytes)
{
    return bytes >= SMALLEST_PACKET && bytes <= PCIE_PAYLOAD_MAX && (bytes & (bytes - 1)) == 0;
}

static bool config_valid(const struct fpga_config *config)
{
    return config->clock_ps > 0 && config->memory_bytes > 0 && config->memory_bytes % FPGA_PAGE_BYTES == 0 &&
           is_packet_size(config->mps_bytes) && is_packet_size(config->mrrs_bytes) && config->read_tags > 0 &&
           config->read_tags <= FPGA_TAGS_MAX && config->completion_timeout_ps > 0;
}

static void receive_event_run(void *ctx);

enum sim_status fpga_create(sim_t *sim, pcie_pool_t *pool, const char *name, const struct fpga_config *config,
                            fpga_t **fpga_out)
{
    if (!config_valid(config)) {
        return SIM_ERR_INVALID;
    }
    fpga_t *fpga = calloc(1, sizeof *fpga);
    if (fpga == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    fpga->sim = sim;
    fpga->pool = pool;
    fpga->config = *config;
    fpga->name = strdup(name);
    fpga->memory = calloc(1, config->memory_bytes);
    enum sim_status status = SIM_ERR_NO_MEMORY;
    if (fpga->name != NULL && fpga->memory != NULL) {
        status = sim_counters_register(sim, name, COUNTERS, fpga->counters, FPGA_COUNTERS);
    }
    if (status != SIM_OK) {
        free(fpga->memory);
        free(fpga->name);
        free(fpga);
        return status;
    }
    fpga->arrived_end = &fpga->arrived;
    sim_event_init(&fpga->receive_event, receive_event_run, fpga);
    fpga_bar_init(fpga);
    fpga_transmit_init(fpga);
    fpga_read_mover_init(fpga);
    fpga_controller_init(fpga, FPGA_READ);
    fpga_controller_init(fpga, FPGA_WRITE);
    *fpga_out = fpga;
    return SIM_OK;
}

static pcie_tlp_t *arrived_take(fpga_t *fpga)
{
    pcie_tlp_t *tlp = fpga->arrived;
    fpga->arrived = tlp->next;
    if (fpga->arrived == NULL) {
        fpga->arrived_end = &fpga->arrived;
    }
    tlp->next = NULL;
    return tlp;
}

void fpga_destroy(fpga_t *fpga)
{
    if (fpga == NULL) {
        return;
    }
    fpga_controller_fini(&fpga->controllers[FPGA_WRITE]);
    fpga_controller_fini(&fpga->controllers[FPGA_READ]);
    fpga_read_mover_fini(fpga);
    fpga_transmit_fini(fpga);
    fpga_bar_fini(fpga);
    sim_event_cancel(fpga->sim, &fpga->receive_event);
    while (fpga->arrived != NULL) {
        pcie_tlp_unref(arrived_take(fpga));
    }
    sim_counters_unregister(fpga->sim, fpga->counters);
    free(fpga->memory);
    free(fpga->name);
    free(fpga);
}

uint8_t *fpga_memory(fpga_t *fpga)
{
    return fpga->memory;
}

// --- from the hard IP ------------------------------------------------------------------------------------------------

// Beats of 32 B; the header takes the first half of the first one (256-bit Avalon-ST interface of the hard IP).
uint64_t fpga_tlp_path_ps(const fpga_t *fpga, const pcie_tlp_t *tlp)
{
    uint32_t bytes = FPGA_HEADER_BYTES + pcie_tlp_payload_bytes(tlp);
    return fpga_cycles_ps(fpga, (bytes + FPGA_BEAT_BYTES - 1) / FPGA_BEAT_BYTES);
}

static void receive_begin(fpga_t *fpga)
{
    uint64_t begin_ps = fpga_edge_ps(fpga);
    if (begin_ps < fpga->receive_free_ps) {
        begin_ps = fpga->receive_free_ps;
    }
    fpga->receive_free_ps = begin_ps + fpga_tlp_path_ps(fpga, fpga->arrived);
    sim_event_schedule_at(fpga->sim, &fpga->receive_event, fpga->receive_free_ps);
}

static void receive_event_run(void *ctx)
{
    static const struct sim_work receiving = {"FPGA", "receiving", false};
    fpga_t *fpga = ctx;
    sim_cause_label(fpga->sim, fpga->name, &receiving);
    pcie_tlp_t *tlp = arrived_take(fpga);
    if (fpga->arrived != NULL) {
        receive_begin(fpga);
    }
    switch (tlp->kind) {
    case PCIE_TLP_MRD:
    case PCIE_TLP_MWR:
        fpga_bar_request(fpga, tlp);
        return;
    case PCIE_TLP_CPL:
    case PCIE_TLP_CPLD:
        break;
    }
    pcie_end_release(fpga->end, tlp);
    fpga_read_mover_complete(fpga, tlp);
    pcie_tlp_unref(tlp);
}

static void receive(void *ctx, pcie_end_t *end, pcie_tlp_t *tlp)
{
    fpga_t *fpga = ctx;
    (void)end;
    bool idle = fpga->arrived == NULL;
    tlp->next = NULL;
    *fpga->arrived_end = tlp;
    fpga->arrived_end = &tlp->next;
    if (idle) {
        receive_begin(fpga);
    }
}

static void down(void *ctx, pcie_end_t *end, unsigned lost_tlps)
{
    fpga_t *fpga = ctx;
    (void)end;
    fpga->counters[FPGA_LOST_TLPS] += lost_tlps;
}

static const struct pcie_end_ops END_OPS = {.receive = receive, .ready = fpga_transmit_ready, .down = down};

void fpga_connect(fpga_t *fpga, pcie_end_t *end, uint64_t memory_base, uint64_t control_base)
{
    fpga->end = end;
    fpga->transmit.egress.end = end;
    fpga->memory_base = memory_base;
    fpga->control_base = control_base;
    pcie_end_attach(end, &END_OPS, fpga);
}
