// The transmitting half of a link's end: which TLP goes next, and what is kept until its ACK.
#include "models/pcie/link_internal.h"

static const struct sim_trace_point tlp_sent = {"tlp_sent", PCIE_TRACE_FIELDS,
                                                "the first symbol of a TLP goes on the wire (replays included)"};

enum { REPLAY_SLACK = 8 }; // of the replay timer while nothing was lost, in time-outs

static void send_event_run(void *ctx);
static void replay_event_run(void *ctx);

static struct pcie_credits credits_advertised(const struct pcie_end_config *config, enum pcie_class class)
{
    return (struct pcie_credits){
        .headers = config->headers[class] == PCIE_CREDITS_INFINITE ? UINT64_MAX : config->headers[class],
        .data = config->data[class] == PCIE_CREDITS_INFINITE ? UINT64_MAX : config->data[class],
    };
}

void pcie_transmitter_init(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    const struct pcie_link_config *config = &end->link->config;
    pcie_wire_init(&tx->wire, config->generation, config->lanes, sim_now_ps(end->sim));
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        pcie_ring_init(&tx->classes[class].queue, sizeof(struct pcie_queued));
        tx->classes[class].limit = credits_advertised(&config->ends[!end->side], class);
        tx->classes[class].stalled_since_ps = SIM_NEVER_PS;
    }
    pcie_ring_init(&tx->replay, sizeof(pcie_tlp_t *));
    tx->next = PCIE_CLASS_COUNT;
    tx->until_corrupt = config->corrupt_every_tlps;
    tx->until_lost = config->lose_every_acks;
    sim_event_init_update(end->sim, &tx->send_event, send_event_run, end);
    sim_event_init_update(end->sim, &tx->replay_event, replay_event_run, end);
}

void pcie_transmitter_clear(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        while (tx->classes[class].queue.count > 0) {
            pcie_tlp_unref(((struct pcie_queued *)pcie_ring_front(&tx->classes[class].queue))->tlp);
            pcie_ring_pop(&tx->classes[class].queue);
        }
    }
    while (tx->replay.count > 0) {
        pcie_tlp_unref(*(pcie_tlp_t **)pcie_ring_front(&tx->replay));
        pcie_ring_pop(&tx->replay);
    }
    tx->next = PCIE_CLASS_COUNT;
    tx->waiting = 0;
    tx->resending = false;
    sim_event_cancel(end->sim, &tx->send_event);
    sim_event_cancel(end->sim, &tx->replay_event);
    tx->replay_armed = false;
}

// What the peer has not delivered to its owner yet occupies its buffer as well.
void pcie_transmitter_restart(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    const struct pcie_receiver *peer = &end->peer->rx;
    tx->next_sequence = 0;
    tx->gap = false;
    tx->resend_begins = false;
    tx->resend_index = 0;
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        const struct pcie_end_config *config = &end->peer->config;
        struct pcie_outbound *out = &tx->classes[class];
        out->limit.headers =
            config->headers[class] == PCIE_CREDITS_INFINITE ? UINT64_MAX : peer->classes[class].granted.headers;
        out->limit.data = config->data[class] == PCIE_CREDITS_INFINITE ? UINT64_MAX : peer->classes[class].granted.data;
        out->consumed = peer->classes[class].received;
        out->stalled_since_ps = SIM_NEVER_PS;
    }
    tx->stalled = 0;
    for (uint32_t i = 0; i < peer->arriving.count; i++) {
        const struct pcie_arriving *arriving = pcie_ring_at(&peer->arriving, i);
        if (arriving->tlp != NULL) {
            tx->classes[pcie_tlp_class(arriving->tlp)].consumed.headers++;
            tx->classes[pcie_tlp_class(arriving->tlp)].consumed.data += pcie_tlp_data_credits(arriving->tlp);
        }
    }
}

void pcie_transmitter_fini(pcie_end_t *end)
{
    pcie_transmitter_clear(end);
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        pcie_ring_fini(&end->tx.classes[class].queue);
    }
    pcie_ring_fini(&end->tx.replay);
}

// Notifies an owner that asks for it when the queue of posted writes becomes crowded, and when it no longer is.
void pcie_transmitter_room_notify(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    bool crowded = end->link->up && tx->classes[PCIE_POSTED].queue.count + PCIE_ROOM_TLPS > end->config.tx_queue_tlps;
    if (crowded != tx->crowded) {
        tx->crowded = crowded;
        if (end->ops != NULL && end->ops->room != NULL) {
            end->ops->room(end->ctx, end, !crowded);
        }
    }
}

// --- from the owner ------------------------------------------------------------------------------------------------

bool pcie_end_has_room(const pcie_end_t *end, enum pcie_class class)
{
    return !end->link->up || end->tx.classes[class].queue.count < end->config.tx_queue_tlps;
}

bool pcie_end_offer(pcie_end_t *end, pcie_tlp_t *tlp)
{
    return pcie_end_offer_begun(end, tlp, sim_now_ps(end->sim));
}

bool pcie_end_offer_begun(pcie_end_t *end, pcie_tlp_t *tlp, uint64_t begun_ps)
{
    struct pcie_transmitter *tx = &end->tx;
    enum pcie_class class = pcie_tlp_class(tlp);
    if (pcie_tlp_payload_bytes(tlp) > end->link->config.mps_bytes) {
        sim_panic(end->name, "%s with a payload of %u bytes on a link of %u", pcie_tlp_kind_name(tlp->kind),
                  pcie_tlp_payload_bytes(tlp), end->link->config.mps_bytes);
    }
    if (!end->link->up) {
        end->counters[PCIE_COUNT_TLPS_DROPPED]++;
        end->link->offered_ps = sim_now_ps(end->sim);
        pcie_tlp_unref(tlp);
        return true;
    }
    if (tx->classes[class].queue.count >= end->config.tx_queue_tlps) {
        tx->refused[class] = true;
        return false;
    }
    *(struct pcie_queued *)pcie_ring_push(&tx->classes[class].queue) = (struct pcie_queued){
        .tlp = tlp,
        .ready_ps = begun_ps + end->config.tx_ps,
        .order = tx->offers++,
        .payload_bytes = pcie_tlp_payload_bytes(tlp),
        .data_credits = pcie_tlp_data_credits(tlp),
    };
    tlp->cause = sim_cause_now(end->sim);
    pcie_transmitter_room_notify(end);
    // Behind another TLP of its class, it changes nothing yet.
    if (tx->classes[class].queue.count == 1) {
        tx->waiting |= (uint8_t)(1u << class);
        tx->next = PCIE_CLASS_COUNT;
        pcie_transmitter_wake(end);
    }
    return true;
}

// --- what goes next ------------------------------------------------------------------------------------------------

static bool credits_suffice(const struct pcie_transmitter *tx, enum pcie_class class, uint32_t data_credits)
{
    const struct pcie_credits *limit = &tx->classes[class].limit, *consumed = &tx->classes[class].consumed;
    return consumed->headers < limit->headers && limit->data - consumed->data >= data_credits;
}

// Which class goes next, by the ordering rules of clause 2.4.1 (table 2-34, without Relaxed and ID-based Ordering):
//
//                        passes a posted write | passes a non-posted read | passes a completion
//     posted write       no                    | yes                      | yes
//     non-posted read    no                    | no                       | yes
//     completion         no                    | yes                      | no
//
// "Yes" applies when the TLP in front lacks credits; otherwise TLPs leave in the order in which they were offered.
// PCIE_CLASS_COUNT: no TLP can go.
static enum pcie_class class_choose(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    enum pcie_class best = PCIE_CLASS_COUNT;
    uint64_t best_order = UINT64_MAX, barrier = UINT64_MAX;
    if (tx->replay.count >= PCIE_REPLAY_TLPS) {
        pcie_dllps_await(end);
        return PCIE_CLASS_COUNT;
    }
    for (unsigned left = tx->waiting; left != 0; left &= left - 1) {
        enum pcie_class class = (enum pcie_class)__builtin_ctz(left);
        const struct pcie_queued *head = pcie_ring_front(&tx->classes[class].queue);
        if (class == PCIE_POSTED) {
            barrier = head->order;
        }
        if (head->order > barrier || head->order > best_order) {
            continue;
        }
        if (credits_suffice(tx, class, head->data_credits)) {
            best = class;
            best_order = head->order;
        } else if (tx->classes[class].stalled_since_ps == SIM_NEVER_PS) {
            uint64_t now_ps = sim_now_ps(end->sim);
            tx->classes[class].stalled_since_ps = head->ready_ps > now_ps ? head->ready_ps : now_ps;
            tx->stalled |= (uint8_t)(1u << class);
            pcie_dllps_await(end);
        }
    }
    return best;
}

// The choice stays valid until a DLLP arrives or another queue is no longer empty.
static enum pcie_class class_next(pcie_end_t *end)
{
    if (end->tx.next == PCIE_CLASS_COUNT) {
        end->tx.next = (uint8_t)class_choose(end);
    }
    return (enum pcie_class)end->tx.next;
}

void pcie_transmitter_wake(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    if (!end->link->up) {
        return;
    }
    pcie_dllps_take(end);
    uint64_t due_ps = sim_now_ps(end->sim);
    uint64_t free_ps = pcie_wire_free_ps(&tx->wire);
    if (free_ps > due_ps) {
        due_ps = free_ps;
    }
    if (!tx->resending && !pcie_dllps_waiting(end)) {
        enum pcie_class class = class_next(end);
        if (class == PCIE_CLASS_COUNT) {
            return;
        }
        const struct pcie_queued *head = pcie_ring_front(&tx->classes[class].queue);
        if (head->ready_ps > due_ps) {
            due_ps = head->ready_ps;
        }
    }
    pcie_event_by(end->sim, &tx->send_event, due_ps);
}

// --- on the wire ---------------------------------------------------------------------------------------------------

// corrupt_every_tlps spares the first TLP of a replay: otherwise a pattern in step with the replay buffer would never
// let a TLP through; the next one is hit instead.
static bool corruption_due(struct pcie_transmitter *tx, uint32_t every, bool spare)
{
    bool corrupt = tx->corrupt_next;
    tx->corrupt_next = false;
    if (every > 0) {
        if (tx->until_corrupt > 1) {
            tx->until_corrupt--;
        } else if (!spare) {
            tx->until_corrupt = every;
            corrupt = true;
        }
    }
    return corrupt;
}

// An interval and one TLP are shorter than the time-out, so the timer expires only after something was lost or corrupted.
// Before that, it may expire late, when nothing is left to acknowledge.
static void replay_event_set(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    tx->replay_armed = true;
    uint64_t slack_ps =
        pcie_transmitter_is_prompt(end) || tx->resending ? 0 : REPLAY_SLACK * end->link->replay_timeout_ps;
    pcie_event_by(end->sim, &tx->replay_event, tx->replay_deadline_ps + slack_ps);
}

// The cause of a TLP's arrival: `cause` offered it or sends it again, it came through the pipeline at ready_ps, and
// begins now.
static sim_cause_t flight_explain(const pcie_end_t *end, sim_cause_t cause, uint64_t ready_ps, uint64_t sent_ps)
{
    static const struct sim_work pipeline = {"PCIe", "transmitting port's pipeline", false};
    static const struct sim_work waits = {"PCIe", "wait for wire or credits", false};
    static const struct sim_work serialised[] = {{"PCIe", "serialisation", false}, {"cable", "serialisation", false}};
    static const struct sim_work flight[] = {{"PCIe", "flight", false}, {"cable", "flight", false}};
    static const struct sim_work received = {"PCIe", "receiving port's pipeline", false};
    bool is_cable = end->link->config.is_cable;
    uint64_t arrive_ps = sent_ps + end->link->config.flight_ps;
    cause = sim_cause_extend(end->sim, cause, ready_ps, end->name, &pipeline);
    cause = sim_cause_extend(end->sim, cause, sim_now_ps(end->sim), end->name, &waits);
    cause = sim_cause_extend(end->sim, cause, sent_ps, end->name, &serialised[is_cable]);
    cause = sim_cause_extend(end->sim, cause, arrive_ps, end->name, &flight[is_cable]);
    return sim_cause_extend(end->sim, cause, arrive_ps + end->peer->config.rx_ps, end->peer->name, &received);
}

static void tlp_transmit(pcie_end_t *end, pcie_tlp_t *tlp, uint64_t sequence, bool spare, sim_cause_t cause,
                         uint64_t ready_ps)
{
    struct pcie_transmitter *tx = &end->tx;
    uint32_t bytes = pcie_tlp_wire_bytes(tlp);
    uint64_t sent_ps = pcie_wire_send(&tx->wire, sim_now_ps(end->sim), bytes);
    end->counters[PCIE_COUNT_WIRE_BYTES] += bytes;
    sim_cause_t arrives = sim_causes_recorded(end->sim) ? flight_explain(end, cause, ready_ps, sent_ps) : 0;
    pcie_trace_tlp(end, &tlp_sent, tlp, cause, arrives);
    bool corrupt = corruption_due(tx, end->link->config.corrupt_every_tlps, spare);
    end->counters[PCIE_COUNT_TLPS_CORRUPTED] += corrupt;
    if (tx->replay.count == 1 || tx->resend_begins) {
        tx->replay_deadline_ps = sent_ps + end->link->replay_timeout_ps;
    }
    tx->gap = tx->gap || corrupt || tx->drop_next;
    if (pcie_transmitter_is_prompt(end) || !tx->replay_armed) {
        replay_event_set(end);
    }
    if (tx->drop_next) {
        tx->drop_next = false;
        return;
    }
    pcie_tlp_ref(tlp);
    const struct pcie_arriving arriving = {tlp, sent_ps + end->link->config.flight_ps, sequence, corrupt, arrives};
    pcie_receiver_send_towards(end->peer, &arriving, pcie_transmitter_is_prompt(end));
}

static void send_first(pcie_end_t *end, enum pcie_class class)
{
    struct pcie_transmitter *tx = &end->tx;
    const struct pcie_queued head = *(const struct pcie_queued *)pcie_ring_front(&tx->classes[class].queue);
    uint64_t now_ps = sim_now_ps(end->sim);
    pcie_ring_pop(&tx->classes[class].queue);
    tx->next = PCIE_CLASS_COUNT;
    if (tx->classes[class].queue.count == 0) {
        tx->waiting &= (uint8_t) ~(1u << class);
    }
    if (tx->classes[class].stalled_since_ps != SIM_NEVER_PS) {
        end->counters[PCIE_COUNT_STALL_POSTED + class] += now_ps - tx->classes[class].stalled_since_ps;
        tx->classes[class].stalled_since_ps = SIM_NEVER_PS;
        tx->stalled &= (uint8_t) ~(1u << class);
    }
    tx->classes[class].consumed.headers++;
    tx->classes[class].consumed.data += head.data_credits;
    end->counters[PCIE_COUNT_TLPS_SENT]++;
    end->counters[PCIE_COUNT_PAYLOAD_BYTES] += head.payload_bytes;
    *(pcie_tlp_t **)pcie_ring_push(&tx->replay) = head.tlp;
    tlp_transmit(end, head.tlp, tx->next_sequence++, false, head.tlp->cause, head.ready_ps);
    if (end->link->tlps_before_down > 0 && --end->link->tlps_before_down == 0) {
        sim_event_schedule_at(end->sim, &end->link->down_event, pcie_wire_free_ps(&tx->wire));
    }
}

static void send_again(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    uint32_t index = tx->resend_index++;
    uint64_t sequence = tx->next_sequence - tx->replay.count + index;
    end->counters[PCIE_COUNT_REPLAYS]++;
    pcie_tlp_t *tlp = *(pcie_tlp_t **)pcie_ring_at(&tx->replay, index);
    tlp_transmit(end, tlp, sequence, tx->resend_begins, sim_cause_now(end->sim), 0);
    tx->resend_begins = false;
    tx->resending = tx->resend_index < tx->replay.count;
}

static void ready_notify(pcie_end_t *end, enum pcie_class class)
{
    if (end->tx.refused[class] && pcie_end_has_room(end, class)) {
        end->tx.refused[class] = false;
        if (end->ops != NULL && end->ops->ready != NULL) {
            end->ops->ready(end->ctx, end);
        }
    }
}

void pcie_end_settle(pcie_end_t *end)
{
    pcie_dllps_take(end);
    if (pcie_update_claim(end, PCIE_UPDATE_DLLP)) {
        pcie_dllps_await(end);
        pcie_transmitter_wake(end);
    }
    if (pcie_update_claim(end, PCIE_UPDATE_ACK)) {
        pcie_receiver_ack_mark(end);
    }
    if (pcie_update_claim(end, PCIE_UPDATE_FREE)) {
        pcie_credits_free_mark(end);
    }
    if (pcie_update_claim(end, PCIE_UPDATE_FC)) {
        pcie_credits_update_mark(end);
    }
}

// The wire is free, or a TLP came through the pipeline: one packet goes.
static void send_event_run(void *ctx)
{
    pcie_end_t *end = ctx;
    struct pcie_transmitter *tx = &end->tx;
    uint64_t now_ps = sim_now_ps(end->sim);
    enum pcie_class sent = PCIE_CLASS_COUNT;
    pcie_end_settle(end);
    if (pcie_wire_free_ps(&tx->wire) <= now_ps) {
        if (pcie_dllps_waiting(end)) {
            pcie_dllps_send_one(end);
        } else if (tx->resending) {
            send_again(end);
        } else {
            enum pcie_class class = class_next(end);
            if (class != PCIE_CLASS_COUNT &&
                ((const struct pcie_queued *)pcie_ring_front(&tx->classes[class].queue))->ready_ps <= now_ps) {
                send_first(end, class);
                sent = class;
            }
        }
    }
    pcie_transmitter_wake(end);
    if (sent != PCIE_CLASS_COUNT) {
        pcie_transmitter_room_notify(end);
        ready_notify(end, sent);
    }
}

// --- replay --------------------------------------------------------------------------------------------------------

bool pcie_transmitter_waits(const pcie_end_t *end)
{
    return end->tx.stalled != 0 || end->tx.replay.count >= PCIE_REPLAY_TLPS;
}

void pcie_transmitter_acknowledge(pcie_end_t *end, uint64_t expected, uint64_t arrive_ps)
{
    struct pcie_transmitter *tx = &end->tx;
    uint64_t oldest = tx->next_sequence - tx->replay.count;
    if (expected <= oldest) {
        return;
    }
    for (uint64_t i = oldest; i < expected; i++) {
        pcie_tlp_unref(*(pcie_tlp_t **)pcie_ring_front(&tx->replay));
        pcie_ring_pop(&tx->replay);
    }
    uint64_t purged = expected - oldest;
    tx->resend_index = tx->resend_index > purged ? tx->resend_index - (uint32_t)purged : 0;
    tx->resending = tx->resending && tx->resend_index < tx->replay.count;
    tx->replay_deadline_ps = arrive_ps + end->link->replay_timeout_ps;
}

void pcie_transmitter_replay(pcie_end_t *end)
{
    struct pcie_transmitter *tx = &end->tx;
    tx->gap = false;
    tx->resend_index = 0;
    tx->resending = tx->replay.count > 0;
    tx->resend_begins = tx->resending;
    end->counters[PCIE_COUNT_REPLAY_ROUNDS] += tx->resending;
}

// The timer is not moved with every ACK: it expires, finds a later deadline, and is set again.
static void replay_event_run(void *ctx)
{
    pcie_end_t *end = ctx;
    struct pcie_transmitter *tx = &end->tx;
    tx->replay_armed = false;
    pcie_dllps_take(end);
    if (tx->replay.count == 0) {
        return;
    }
    uint64_t now_ps = sim_now_ps(end->sim);
    if (tx->replay_deadline_ps > now_ps) {
        replay_event_set(end);
        return;
    }
    if (tx->resending) {
        // The replay is already in progress; the deadline counts from here.
        tx->replay_deadline_ps = now_ps + end->link->replay_timeout_ps;
        replay_event_set(end);
        return;
    }
    end->counters[PCIE_COUNT_REPLAY_TIMEOUTS]++;
    pcie_transmitter_replay(end);
    pcie_transmitter_wake(end);
}
