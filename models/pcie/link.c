// Creation of a link, owners, fault injection, and destruction.
#include "models/pcie/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/pcie/link_internal.h"
#include "sim/kernel/counter.h"

enum { SMALLEST_MPS = 128, DATA_CREDIT_BYTES = 16 };

// The timer of clause 3.5.2.1 is three intervals; the round-trip flight time, which that table leaves out, is added.
enum { REPLAY_INTERVALS = 3 };

static const struct sim_counter_desc COUNTERS[PCIE_LINK_COUNTERS] = {
    [PCIE_COUNT_TLPS_SENT] = {"tlps_sent", "TLPs", "TLPs put on the wire for the first time"},
    [PCIE_COUNT_PAYLOAD_BYTES] = {"payload_bytes_sent", "bytes", "data of the TLPs of tlps_sent, whole DWs"},
    [PCIE_COUNT_WIRE_BYTES] = {"wire_bytes_sent", "bytes", "TLPs with framing, replays and DLLPs; SKP left out"},
    [PCIE_COUNT_DLLPS_SENT] = {"dllps_sent", "DLLPs", "ACKs, NAKs and UpdateFCs sent"},
    [PCIE_COUNT_TLPS_RECEIVED] = {"tlps_received", "TLPs", "TLPs handed to the owner"},
    [PCIE_COUNT_ACKS] = {"acks", "DLLPs", "ACKs sent"},
    [PCIE_COUNT_NAKS] = {"naks", "DLLPs", "NAKs sent"},
    [PCIE_COUNT_UPDATE_FCS] = {"update_fcs", "DLLPs", "UpdateFCs sent"},
    [PCIE_COUNT_REPLAYS] = {"replays", "TLPs", "TLPs sent again after a NAK or a time-out"},
    [PCIE_COUNT_REPLAY_TIMEOUTS] = {"replay_timeouts", "events", "expirations of the replay timer"},
    [PCIE_COUNT_REPLAY_ROUNDS] = {"replay_rounds", "events", "times a NAK or a time-out began a replay"},
    [PCIE_COUNT_TLPS_DISCARDED] = {"tlps_discarded", "TLPs", "arrived corrupt, out of sequence or a second time"},
    [PCIE_COUNT_TLPS_DROPPED] = {"tlps_dropped", "TLPs", "taken by offer and lost because the link went down"},
    [PCIE_COUNT_TLPS_LOST] = {"tlps_lost", "TLPs", "of tlps_dropped: were queued or under way when the link went down"},
    [PCIE_COUNT_DOWN_AT] = {"down_at", "ps", "when the link went down last; 0: never"},
    [PCIE_COUNT_UP_AT] = {"up_at", "ps", "when the link came up again last; 0: never"},
    [PCIE_COUNT_TLPS_FLUSHED] = {"tlps_flushed", "TLPs", "accepted, and lost because the owner of this end was reset"},
    [PCIE_COUNT_TLPS_CORRUPTED] = {"tlps_corrupted", "TLPs", "sent with a wrong LCRC by fault injection"},
    [PCIE_COUNT_ACKS_LOST] = {"acks_lost", "DLLPs", "of acks: lost on the way by fault injection"},
    [PCIE_COUNT_NAKS_LOST] = {"naks_lost", "DLLPs", "of naks: lost on the way by fault injection"},
    [PCIE_COUNT_STALL_POSTED] = {"stall_posted", "ps", "the first posted TLP lacked credits"},
    [PCIE_COUNT_STALL_NONPOSTED] = {"stall_nonposted", "ps", "the first non-posted TLP lacked credits"},
    [PCIE_COUNT_STALL_COMPLETION] = {"stall_completion", "ps", "the first completion lacked credits"},
};

static const struct sim_trace_field down_fields[] = {{"lost_tlps", SIM_TRACE_DECIMAL, NULL},
                                                     {"sent_tlps", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_point link_up = {"link_up", NULL, 0, "the link of this end came up again"};
static const struct sim_trace_point link_down = {"link_down", down_fields, 2,
                                                 "the link of this end went down; what the end lost, and had sent"};

static bool end_config_valid(const struct pcie_end_config *config, uint32_t mps_bytes)
{
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        // Clause 2.6.1, table 2-36: at least one TLP of the largest size. Non-posted requests carry no data here.
        bool takes_data = class != PCIE_NONPOSTED;
        if (config->headers[class] == 0 || (takes_data && config->data[class] < mps_bytes / DATA_CREDIT_BYTES)) {
            return false;
        }
    }
    return config->tx_queue_tlps > 0;
}

static bool config_valid(const struct pcie_link_config *config)
{
    uint32_t mps = config->mps_bytes;
    return pcie_wire_valid(config->generation, config->lanes) && mps >= SMALLEST_MPS && mps <= PCIE_PAYLOAD_MAX &&
           (mps & (mps - 1)) == 0 && end_config_valid(&config->ends[0], mps) && end_config_valid(&config->ends[1], mps);
}

static void end_init(pcie_link_t *link, unsigned side, const char *name)
{
    pcie_end_t *end = &link->ends[side];
    end->link = link;
    end->sim = link->sim;
    end->side = side;
    end->peer = &link->ends[!side];
    end->config = link->config.ends[side];
    snprintf(end->name, sizeof end->name, "%s.%u", name, side);
    pcie_transmitter_init(end);
    pcie_receiver_init(end);
}

static void end_fini(pcie_end_t *end)
{
    pcie_transmitter_fini(end);
    pcie_receiver_fini(end);
}

static enum sim_status counters_register(pcie_link_t *link)
{
    for (unsigned side = 0; side < 2; side++) {
        pcie_end_t *end = &link->ends[side];
        enum sim_status status =
            sim_counters_register(link->sim, end->name, COUNTERS, end->counters, PCIE_LINK_COUNTERS);
        if (status != SIM_OK) {
            if (side == 1) {
                sim_counters_unregister(link->sim, link->ends[0].counters);
            }
            return status;
        }
    }
    return SIM_OK;
}

static void up_event_run(void *ctx);
static void down_event_run(void *ctx)
{
    pcie_link_set_down(ctx);
}

enum sim_status pcie_link_create(sim_t *sim, pcie_pool_t *pool, const char *name, const struct pcie_link_config *config,
                                 pcie_link_t **link_out)
{
    (void)pool; // a link makes no TLPs
    if (!config_valid(config) || strlen(name) + sizeof ".0" > PCIE_NAME_MAX) {
        return SIM_ERR_INVALID;
    }
    pcie_link_t *link = aligned_alloc(_Alignof(pcie_link_t), sizeof *link);
    if (link == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    memset(link, 0, sizeof *link);
    link->sim = sim;
    link->up = true;
    link->down_ps = link->up_ps = link->outage_ps = SIM_NEVER_PS;
    sim_event_init(&link->down_event, down_event_run, link);
    sim_event_init(&link->up_event, up_event_run, link);
    link->config = *config;
    uint64_t symbols = pcie_ack_interval_symbols(config->generation, config->lanes, config->mps_bytes);
    link->interval_ps = pcie_wire_ps(config->generation, 1, symbols);
    link->replay_timeout_ps = REPLAY_INTERVALS * link->interval_ps + 2 * config->flight_ps;
    end_init(link, 0, name);
    end_init(link, 1, name);
    enum sim_status status = counters_register(link);
    if (status != SIM_OK) {
        end_fini(&link->ends[1]);
        end_fini(&link->ends[0]);
        free(link);
        return status;
    }
    *link_out = link;
    return SIM_OK;
}

void pcie_link_destroy(pcie_link_t *link)
{
    if (link == NULL) {
        return;
    }
    sim_event_cancel(link->sim, &link->down_event);
    sim_event_cancel(link->sim, &link->up_event);
    for (unsigned side = 2; side > 0; side--) {
        sim_counters_unregister(link->sim, link->ends[side - 1].counters);
        end_fini(&link->ends[side - 1]);
    }
    free(link);
}

pcie_end_t *pcie_link_end(pcie_link_t *link, unsigned side)
{
    return &link->ends[side];
}

void pcie_end_attach(pcie_end_t *end, const struct pcie_end_ops *ops, void *ctx)
{
    end->ops = ops;
    end->ctx = ctx;
}

const char *pcie_end_name(const pcie_end_t *end)
{
    return end->name;
}

bool pcie_end_is_up(const pcie_end_t *end)
{
    return end->link->up;
}

void pcie_link_corrupt_next(pcie_link_t *link, unsigned side)
{
    pcie_link_streams_interrupt(link);
    link->ends[side].tx.corrupt_next = true;
}

void pcie_link_drop_next(pcie_link_t *link, unsigned side)
{
    pcie_link_streams_interrupt(link);
    link->ends[side].tx.drop_next = true;
}

bool pcie_link_is_up(const pcie_link_t *link)
{
    return link->up;
}

uint64_t pcie_link_down_ps(const pcie_link_t *link)
{
    return link->down_ps;
}

uint64_t pcie_link_up_ps(const pcie_link_t *link)
{
    return link->up_ps;
}

// Counts the TLPs that this end took and its peer has not accepted by now.
static uint64_t undelivered_tlps(const pcie_end_t *end)
{
    uint64_t count = end->tx.next_sequence - end->peer->rx.expected;
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        count += end->tx.classes[class].queue.count;
    }
    return count;
}

// Notifies owners that were refused, so that they offer and lose what they hold: nothing waits for a link that is down.
static void down_notify(pcie_end_t *end, uint64_t lost_tlps)
{
    bool refused = false;
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        refused = refused || end->tx.refused[class];
        end->tx.refused[class] = false;
    }
    if (end->ops != NULL && end->ops->down != NULL) {
        end->ops->down(end->ctx, end, (unsigned)lost_tlps);
    }
    pcie_transmitter_room_notify(end);
    if (refused && end->ops != NULL && end->ops->ready != NULL) {
        end->ops->ready(end->ctx, end);
    }
}

void pcie_link_set_down(pcie_link_t *link)
{
    if (!link->up) {
        return;
    }
    uint64_t lost_tlps[2];
    pcie_link_streams_interrupt(link);
    link->up = false;
    link->down_ps = sim_now_ps(link->sim);
    link->offered_ps = link->down_ps;
    sim_event_cancel(link->sim, &link->down_event);
    pcie_receiver_check(&link->ends[0]);
    pcie_receiver_check(&link->ends[1]);
    for (unsigned side = 0; side < 2; side++) {
        lost_tlps[side] = undelivered_tlps(&link->ends[side]);
        link->ends[side].counters[PCIE_COUNT_TLPS_DROPPED] += lost_tlps[side];
        link->ends[side].counters[PCIE_COUNT_TLPS_LOST] += lost_tlps[side];
        link->ends[side].counters[PCIE_COUNT_DOWN_AT] = link->down_ps;
        sim_trace(link->sim, link->ends[side].name, &link_down,
                  (const uint64_t[]){lost_tlps[side], link->ends[side].counters[PCIE_COUNT_TLPS_SENT]});
    }
    for (unsigned side = 0; side < 2; side++) {
        pcie_transmitter_clear(&link->ends[side]);
        pcie_receiver_cut(&link->ends[side]);
    }
    for (unsigned side = 0; side < 2; side++) {
        down_notify(&link->ends[side], lost_tlps[side]);
    }
    if (link->outage_ps != SIM_NEVER_PS) {
        sim_event_schedule(link->sim, &link->up_event, link->outage_ps);
    }
}

// The link is up as soon as it has been quiet for long enough.
static void up_event_run(void *ctx)
{
    pcie_link_t *link = ctx;
    uint64_t now_ps = sim_now_ps(link->sim), quiet_ps = link->offered_ps + PCIE_QUIET_PS;
    if (now_ps < quiet_ps) {
        sim_event_schedule_at(link->sim, &link->up_event, quiet_ps);
        return;
    }
    link->up = true;
    link->up_ps = now_ps;
    for (unsigned side = 0; side < 2; side++) {
        pcie_receiver_restart(&link->ends[side]);
        pcie_credits_restart(&link->ends[side]);
    }
    for (unsigned side = 0; side < 2; side++) {
        pcie_transmitter_restart(&link->ends[side]);
        link->ends[side].counters[PCIE_COUNT_UP_AT] = now_ps;
        sim_trace(link->sim, link->ends[side].name, &link_up, NULL);
    }
    if (link->up_hook != NULL) {
        link->up_hook(link->up_ctx);
    }
}

void pcie_link_set_up_hook(pcie_link_t *link, pcie_link_up_fn fn, void *ctx)
{
    link->up_hook = fn;
    link->up_ctx = ctx;
}

void pcie_end_flush(pcie_end_t *end)
{
    if (end->link->up) {
        sim_panic(end->name, "flushed while the link is up");
    }
    end->counters[PCIE_COUNT_TLPS_FLUSHED] += pcie_receiver_flush(end);
}

void pcie_link_set_up(pcie_link_t *link)
{
    if (!link->up && !sim_event_pending(&link->up_event)) {
        sim_event_schedule(link->sim, &link->up_event, 0);
    }
}

void pcie_link_set_outage(pcie_link_t *link, uint64_t outage_ps)
{
    link->outage_ps = outage_ps;
    if (outage_ps == SIM_NEVER_PS) {
        sim_event_cancel(link->sim, &link->up_event);
    }
}

void pcie_link_set_down_after(pcie_link_t *link, uint64_t tlps)
{
    pcie_link_streams_interrupt(link);
    link->tlps_before_down = tlps;
    if (tlps == 0) {
        pcie_link_set_down(link);
    }
}
