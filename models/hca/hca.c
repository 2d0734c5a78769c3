#include "models/hca/hca.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/hca/internal.h"

#define TABLE_FIRST 16u

static const struct sim_counter_desc COUNTER_DESCS[HCA_COUNTERS] = {
    [HCA_DOORBELLS] = {"doorbells", "writes", "to doorbell registers"},
    [HCA_BLUEFLAMES] = {"blueflames", "requests", "that came whole through a BlueFlame buffer"},
    [HCA_BLUEFLAMES_DROPPED] = {"blueflames_dropped", "requests",
                                "through a BlueFlame buffer in pieces that do not fit"},
    [HCA_DOORBELLS_REFUSED] = {"doorbells_refused", "writes",
                               "to no register, or for an object that is not the page's"},
    [HCA_UNSUPPORTED] = {"unsupported_tlps", "TLPs", "that hit no BAR, or completions that answer nothing"},
    [HCA_DMA_READS] = {"dma_reads", "TLPs", "read requests sent to the host"},
    [HCA_DMA_READ_BYTES] = {"dma_read_bytes", "bytes", "requested by DMA reads"},
    [HCA_DMA_READ_ERRORS] = {"dma_read_errors", "reads", "answered with an error, at least in part"},
    [HCA_DMA_WRITES] = {"dma_writes", "TLPs", "writes sent to the host"},
    [HCA_DMA_WRITE_BYTES] = {"dma_write_bytes", "bytes", "in DMA writes"},
    [HCA_WQE_FETCHES] = {"request_fetches", "reads", "of send requests"},
    [HCA_PACKETS_SENT] = {"packets_sent", "packets", "given to the port or to loopback"},
    [HCA_PACKETS_RECEIVED] = {"packets_received", "packets", "taken by the receive engine"},
    [HCA_LOOPBACK_PACKETS] = {"loopback_packets", "packets", "of packets_sent, to the own port"},
    [HCA_PORT_XMIT_PACKETS] = {"port_xmit_packets", "packets", "put on the wire"},
    [HCA_PORT_XMIT_DATA] = {"port_xmit_data", "bytes",
                            "put on the wire, from LRH to ICRC (IBA 16.1.3.5 counts words of 4)"},
    [HCA_PORT_RCV_PACKETS] = {"port_rcv_packets", "packets", "that arrived undamaged over the wire"},
    [HCA_PORT_RCV_DATA] = {"port_rcv_data", "bytes", "in these packets, counted like port_xmit_data"},
    [HCA_PACKETS_DISCARDED] = {"packets_discarded", "packets", "for no queue pair, or not acceptable in its state"},
    [HCA_DUPLICATES] = {"duplicate_requests", "packets", "requests that came again"},
    [HCA_OUT_OF_SEQUENCE] = {"out_of_sequence", "packets", "requests after a gap"},
    [HCA_ACKS_SENT] = {"acks_sent", "packets", "acknowledges, those in responses not counted"},
    [HCA_NAKS_SENT] = {"naks_sent", "packets", "negative acknowledges"},
    [HCA_RNR_NAKS_SENT] = {"rnr_naks_sent", "packets", "receiver-not-ready"},
    [HCA_TIMEOUTS] = {"timeouts", "timeouts", "of the transport timer"},
    [HCA_RETRIES] = {"retries", "times", "a queue pair went back to its oldest unacknowledged packet"},
    [HCA_PACKETS_RESENT] = {"packets_resent", "packets", "sent again after a retry"},
    [HCA_OUT_OF_BUFFER] = {"out_of_buffer", "packets", "that found no receive entry"},
    [HCA_ATOMICS] = {"atomics", "operations", "of the atomics unit"},
    [HCA_ORDER_STALLS] = {"receive_stalls", "stalls", "times the receive engine waited for room behind it"},
    [HCA_COMPLETIONS] = {"completions", "entries", "written to completion queues"},
    [HCA_COMPLETION_ERRORS] = {"completion_errors", "entries", "of completions, with an error"},
    [HCA_EVENTS_RAISED] = {"events", "entries", "written to event queues"},
    [HCA_CQ_OVERRUNS] = {"cq_overruns", "queues", "that were full when a completion came"},
    [HCA_EQ_OVERFLOWS] = {"eq_overflows", "queues", "that were full when an event came"},
    [HCA_EVENTS_LOST] = {"events_lost", "events", "that found no free entry in an event queue"},
#define WAIT(wait, name, what)                                                                                         \
    [HCA_WAITS + 3 * (wait)] = {name "_waits", "times", what},                                                         \
                     [HCA_WAITS + 3 * (wait) + 1] = {name "_wait_ps", "ps", "sum of these waits"},                     \
                     [HCA_WAITS + 3 * (wait) + 2] = {name "_wait_max_ps", "ps", "the longest of these waits"}
    WAIT(HCA_WAIT_SENDER, "send_engine", "a queue pair with a packet to send had its turn at the send engine"),
    WAIT(HCA_WAIT_PORT, "request_port", "a complete request packet left through the port"),
    WAIT(HCA_WAIT_RESPONSE, "response_port", "a complete response packet left through the port"),
    WAIT(HCA_WAIT_RECEIVER, "receive_engine", "an arrived packet had its turn at the receive engine"),
    WAIT(HCA_WAIT_WRITE, "write", "a packet that writes memory had its turn at the responder"),
    WAIT(HCA_WAIT_ATOMIC, "atomic", "an atomic had its turn at the responder"),
    WAIT(HCA_WAIT_READER, "responder", "a queue pair with a response to make had its turn at the engine of responses"),
#undef WAIT
};

void hca_wait_add(hca_t *hca, enum hca_wait wait, uint64_t since_ps)
{
    uint64_t *counters = &hca->counters[HCA_WAITS + 3 * wait];
    uint64_t waited_ps = sim_now_ps(hca->sim) - since_ps;
    counters[0]++;
    counters[1] += waited_ps;
    counters[2] = waited_ps > counters[2] ? waited_ps : counters[2];
}

static const struct sim_trace_field qpn_producer_fields[] = {{"qpn", SIM_TRACE_DECIMAL, NULL},
                                                             {"producer", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_field qpn_count_fields[] = {{"qpn", SIM_TRACE_DECIMAL, NULL},
                                                          {"count", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_field opcode_psn_fields[] = {{"opcode", SIM_TRACE_HEX, NULL},
                                                           {"psn", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_field qpn_waited_ps_fields[] = {{"qpn", SIM_TRACE_DECIMAL, NULL},
                                                              {"waited_ps", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_field qpn_status_fields[] = {{"qpn", SIM_TRACE_DECIMAL, NULL},
                                                           {"status", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_field qpn_psn_fields[] = {{"qpn", SIM_TRACE_DECIMAL, NULL},
                                                        {"psn", SIM_TRACE_DECIMAL, NULL}};
const struct sim_trace_point hca_trace_doorbell = {"doorbell", qpn_producer_fields, 2, "requests were posted"};
const struct sim_trace_point hca_trace_fetched = {"requests_fetched", qpn_count_fields, 2, "read from host memory"};
const struct sim_trace_point hca_trace_sent = {"ib_sent", opcode_psn_fields, 2, "a packet left"};
const struct sim_trace_point hca_trace_received = {"ib_received", opcode_psn_fields, 2,
                                                   "the receive engine took a packet"};
const struct sim_trace_point hca_trace_atomic = {"atomic_begins", qpn_waited_ps_fields, 2, "the unit reads memory"};
const struct sim_trace_point hca_trace_completion = {"completion", qpn_status_fields, 2, "an entry is written"};
const struct sim_trace_point hca_trace_rnr = {"rnr_nak", qpn_psn_fields, 2,
                                               "a message came before a receive request was there"};
const struct sim_trace_point hca_trace_retry = {"retry", qpn_psn_fields, 2, "sending goes back"};

// --- creation and destruction --------------------------------------------------------------------------------------

static bool config_valid(const struct hca_config *config)
{
    return config->read_tags > 0 && config->read_tags <= PCIE_TAGS_MAX && config->write_tlps > 0 &&
           config->mps_bytes >= 128 && config->mps_bytes <= PCIE_PAYLOAD_MAX && config->mrrs_bytes >= 128 &&
           config->mrrs_bytes <= PCIE_PAYLOAD_MAX && config->port_ps_per_byte > 0 && config->prefetch_requests > 0 &&
           config->gather_packets > 0 && config->order_entries > 0 && config->window_packets > 0 &&
           config->ack_every_packets > 0 && config->max_mtu_bytes >= 256 && config->max_mtu_bytes <= IB_PAYLOAD_MAX &&
           config->active_mtu_bytes >= 256 && config->active_mtu_bytes <= config->max_mtu_bytes && config->max_qp > 0 &&
           config->max_cq > 0 && config->max_pd > 0 && config->max_mr > 0 &&
           config->max_mr <= 1u << HCA_KEY_INDEX_BITS && config->max_eq > 0 && config->max_srq > 0;
}

void *hca_table_grown(void *table, uint32_t *capacity, uint32_t index, size_t element_bytes)
{
    uint32_t wanted = *capacity == 0 ? TABLE_FIRST : *capacity;
    while (wanted <= index) {
        wanted *= 2;
    }
    if (wanted == *capacity) {
        return table;
    }
    uint8_t *grown = realloc(table, wanted * element_bytes);
    if (grown != NULL) {
        memset(grown + *capacity * element_bytes, 0, (wanted - *capacity) * element_bytes);
        *capacity = wanted;
    }
    return grown;
}

static void tables_free(hca_t *hca)
{
    free(hca->pds);
    free(hca->xrcds);
    free(hca->members);
    free(hca->mrs);
    free(hca->eqs);
    free(hca->cqs);
    free(hca->srqs);
    free(hca->qps);
}

enum sim_status hca_create(sim_t *sim, pcie_pool_t *pool, ib_pool_t *packets, const char *name,
                           const struct hca_config *config, hca_t **hca_out)
{
    if (!config_valid(config)) {
        return SIM_ERR_INVALID;
    }
    hca_t *hca = calloc(1, sizeof *hca);
    if (hca == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    hca->sim = sim;
    hca->pool = pool;
    hca->packets = packets;
    hca->config = *config;
    snprintf(hca->name, sizeof hca->name, "%s", name);
    hca->eqs = calloc(config->max_eq + 1, sizeof *hca->eqs);
    enum sim_status status = hca->eqs != NULL ? SIM_OK : SIM_ERR_NO_MEMORY;
    if (status == SIM_OK) {
        status = sim_counters_register(sim, hca->name, COUNTER_DESCS, hca->counters, HCA_COUNTERS);
    }
    if (status != SIM_OK) {
        tables_free(hca);
        free(hca);
        return status;
    }
    hca_endpoint_init(hca);
    hca_doorbell_init(hca);
    hca_dma_init(hca);
    hca_sender_init(hca);
    hca_port_init(hca);
    hca_receiver_init(hca);
    hca_order_init(hca);
    hca_reader_init(hca);
    *hca_out = hca;
    return SIM_OK;
}

static void queue_drop(hca_t *hca, struct ib_queue *queue)
{
    while (queue->count > 0) {
        ib_packet_give(hca->packets, ib_queue_pop(queue));
    }
}

void hca_destroy(hca_t *hca)
{
    if (hca == NULL) {
        return;
    }
    hca->ends = true;
    sim_event_cancel(hca->sim, &hca->send_event);
    sim_event_cancel(hca->sim, &hca->receive_event);
    sim_event_cancel(hca->sim, &hca->read_event);
    hca_objects_fini(hca);
    hca_events_fini(hca);
    hca_order_fini(hca);
    queue_drop(hca, &hca->requests);
    queue_drop(hca, &hca->responses);
    queue_drop(hca, &hca->arrived);
    hca_port_fini(hca);
    hca_doorbell_fini(hca);
    hca_dma_fini(hca);
    hca_endpoint_fini(hca);
    sim_counters_unregister(hca->sim, hca->counters);
    tables_free(hca);
    free(hca);
}

enum sim_status hca_cmd_query_device(hca_t *hca, struct hca_command *command)
{
    const struct hca_config *config = &hca->config;
    command->query_device = (struct hca_device_info){
        .max_qp = config->max_qp,
        .max_cq = config->max_cq,
        .max_srq = config->max_srq,
        .max_pd = config->max_pd,
        .max_mr = config->max_mr,
        .max_qp_entries = config->max_entries,
        .max_cq_entries = config->max_cq_entries - 1, // one entry is for the end of a ring that is resized
        .max_srq_entries = config->max_entries,
        .max_segments = HCA_SEGMENTS_MAX,
        .max_inline_bytes = config->max_inline_bytes,
        .part_id = config->part_id,
        .max_responder_reads = config->responder_reads,
        .max_initiator_reads = config->initiator_reads,
        .max_message_bytes = UINT64_C(1) << 31, // 9.7.8: messages have up to 2^31 bytes
        .uar_pages = HCA_UAR_PAGES,
        .blueflame_all = config->blueflame_all,
    };
    return SIM_OK;
}

bool hca_port_count(const hca_t *hca, struct hca_port_counts *counts_out)
{
    if (hca->port != NULL) {
        *counts_out = (struct hca_port_counts){.sent = ib_end_sent(hca->port), .received = ib_end_received(hca->port)};
        ib_end_troubles(hca->port, &counts_out->damaged, &counts_out->downs, &counts_out->stalls);
    }
    return hca->port != NULL;
}

enum sim_status hca_cmd_query_port(hca_t *hca, struct hca_command *command)
{
    command->query_port = (struct hca_port_info){
        .active = hca->port != NULL && ib_end_is_up(hca->port),
        .lid = hca->lid,
        .gid_prefix = hca_gid_prefix(),
        .guid = hca_port_guid(hca),
        .max_mtu_bytes = hca->config.max_mtu_bytes,
        .active_mtu_bytes = hca->config.active_mtu_bytes,
        .rate_mbps = UINT64_C(8000000) / hca->config.port_ps_per_byte,
    };
    return SIM_OK;
}
