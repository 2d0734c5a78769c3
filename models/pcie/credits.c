// The return of credits (clause 2.6.1.2): when buffer space that the owner released is reported to the peer.
//
// An owner may announce in advance when a TLP will leave the receive buffer. Such a release has an event of its own
// only if it may have to be reported at once; otherwise it is counted when something depends on it.
#include "models/pcie/link_internal.h"

enum { UNREPORTED_DIVISOR = 4 }; // a quarter of the buffer is reported at once (docs/component-facts.md)
enum { DATA_CREDIT_BYTES = 16 };

static void free_event_run(void *ctx);
static void update_event_run(void *ctx);
static unsigned credits_take(pcie_end_t *end, uint64_t before_ps);

void pcie_credits_init(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        rx->classes[class].granted.headers = end->config.headers[class];
        rx->classes[class].granted.data = end->config.data[class];
        rx->classes[class].freed = rx->classes[class].granted;
    }
    rx->unreported_since_ps = SIM_NEVER_PS;
    pcie_ring_init(&rx->freeing, sizeof(struct pcie_freeing));
    pcie_update_init(end, PCIE_UPDATE_FREE, free_event_run);
    pcie_update_init(end, PCIE_UPDATE_FC, update_event_run);
}

void pcie_credits_clear(pcie_end_t *end)
{
    (void)credits_take(end, SIM_NEVER_PS);
    pcie_update_cancel(end, PCIE_UPDATE_FREE);
    pcie_update_cancel(end, PCIE_UPDATE_FC);
}

void pcie_credits_restart(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
        rx->classes[class].granted = rx->classes[class].freed;
    }
    rx->unreported_since_ps = SIM_NEVER_PS;
}

// The credits that a TLP occupied. Infinite credits are never returned.
static struct pcie_credits credits_of(const pcie_end_t *end, enum pcie_class class, const pcie_tlp_t *tlp)
{
    bool headers = end->config.headers[class] != PCIE_CREDITS_INFINITE;
    bool data = end->config.data[class] != PCIE_CREDITS_INFINITE;
    return (struct pcie_credits){headers ? 1 : 0, data ? pcie_tlp_data_credits(tlp) : 0};
}

// --- what is urgent ------------------------------------------------------------------------------------------------

// The peer cannot send another TLP of the largest size.
static bool peer_lacks_headers(const struct pcie_receiver *rx, enum pcie_class class)
{
    return rx->classes[class].granted.headers == rx->classes[class].received.headers;
}

static bool peer_lacks_data(const pcie_end_t *end, enum pcie_class class)
{
    const struct pcie_receiver *rx = &end->rx;
    uint64_t left = rx->classes[class].granted.data - rx->classes[class].received.data;
    return left * DATA_CREDIT_BYTES < end->link->config.mps_bytes;
}

// Must the freed credits be reported at once?
static bool update_urgent(const pcie_end_t *end, enum pcie_class class, const struct pcie_credits *freed)
{
    const struct pcie_receiver *rx = &end->rx;
    uint64_t headers = freed->headers - rx->classes[class].granted.headers,
             data = freed->data - rx->classes[class].granted.data;
    return (headers > 0 &&
            (peer_lacks_headers(rx, class) || headers * UNREPORTED_DIVISOR >= end->config.headers[class])) ||
           (data > 0 && (peer_lacks_data(end, class) || data * UNREPORTED_DIVISOR >= end->config.data[class]));
}

// Will known future releases have to be reported at once, when the last one has happened at the latest?
static bool urgency_ahead(const pcie_end_t *end, enum pcie_class class)
{
    const struct pcie_receiver *rx = &end->rx;
    const struct pcie_credits freed = {rx->classes[class].freed.headers + rx->classes[class].to_free.headers,
                                       rx->classes[class].freed.data + rx->classes[class].to_free.data};
    return (rx->classes[class].to_free.headers > 0 || rx->classes[class].to_free.data > 0) &&
           update_urgent(end, class, &freed);
}

// --- releases ------------------------------------------------------------------------------------------------------

static void credits_free(struct pcie_receiver *rx, enum pcie_class class, const struct pcie_credits *credits,
                         uint64_t at_ps)
{
    rx->classes[class].freed.headers += credits->headers;
    rx->classes[class].freed.data += credits->data;
    if (rx->unreported_since_ps == SIM_NEVER_PS) {
        rx->unreported_since_ps = at_ps;
    }
}

// Counts the releases before that time. Returns their classes, one bit each.
static unsigned credits_take(pcie_end_t *end, uint64_t before_ps)
{
    struct pcie_receiver *rx = &end->rx;
    unsigned classes = 0;
    while (rx->freeing.count > 0) {
        const struct pcie_freeing *front = pcie_ring_front(&rx->freeing);
        if (front->at_ps >= before_ps) {
            break;
        }
        rx->classes[front->class].to_free.headers -= front->credits.headers;
        rx->classes[front->class].to_free.data -= front->credits.data;
        credits_free(rx, front->class, &front->credits, front->at_ps);
        classes |= 1u << front->class;
        pcie_ring_pop(&rx->freeing);
    }
    return classes;
}

void pcie_credits_take(pcie_end_t *end)
{
    (void)credits_take(end, sim_now_ps(end->sim) + 1);
}

// Sets the event for releases of the class that may be urgent, from index on.
static void free_event_set(pcie_end_t *end, enum pcie_class class, uint32_t index)
{
    struct pcie_receiver *rx = &end->rx;
    if (!rx->update_due[class] && urgency_ahead(end, class)) {
        const struct pcie_freeing *freeing = pcie_ring_at(&rx->freeing, index);
        pcie_update_by(end, PCIE_UPDATE_FREE, freeing->at_ps);
    }
}

static void update_arm(pcie_end_t *end, uint64_t released_ps)
{
    pcie_update_by(end, PCIE_UPDATE_FC, released_ps + end->link->interval_ps);
}

// Adds to the ring in order of time; returns the index. A release of now may come before known future ones.
static uint32_t freeing_add(struct pcie_ring *ring, const struct pcie_freeing *freeing)
{
    (void)pcie_ring_push(ring);
    uint32_t index = ring->count - 1;
    for (; index > 0; index--) {
        const struct pcie_freeing *before = pcie_ring_at(ring, index - 1);
        if (before->at_ps <= freeing->at_ps) {
            break;
        }
        *(struct pcie_freeing *)pcie_ring_at(ring, index) = *before;
    }
    *(struct pcie_freeing *)pcie_ring_at(ring, index) = *freeing;
    return index;
}

void pcie_end_release(pcie_end_t *end, const pcie_tlp_t *tlp)
{
    pcie_end_release_at(end, tlp, sim_now_ps(end->sim));
}

void pcie_end_release_at(pcie_end_t *end, const pcie_tlp_t *tlp, uint64_t at_ps)
{
    struct pcie_receiver *rx = &end->rx;
    enum pcie_class class = pcie_tlp_class(tlp);
    const struct pcie_credits credits = credits_of(end, class, tlp);
    uint64_t now_ps = sim_now_ps(end->sim);
    if (credits.headers == 0 && credits.data == 0) {
        return;
    }
    if (!end->link->up) {
        credits_free(rx, class, &credits, now_ps);
        return;
    }
    const struct pcie_freeing freeing = {at_ps > now_ps ? at_ps : now_ps, credits, class};
    (void)credits_take(end, now_ps);
    uint32_t index = freeing_add(&rx->freeing, &freeing);
    rx->classes[class].to_free.headers += credits.headers;
    rx->classes[class].to_free.data += credits.data;
    update_arm(end, freeing.at_ps);
    // This release is urgent if enough space becomes free; if the peer lacks credits, any release is.
    bool any = index + 1 < rx->freeing.count || peer_lacks_headers(rx, class) || peer_lacks_data(end, class);
    free_event_set(end, class, any ? 0 : index);
}

void pcie_credits_watch(pcie_end_t *end, enum pcie_class class)
{
    if (end->rx.freeing.count > 0) {
        (void)credits_take(end, sim_now_ps(end->sim));
        free_event_set(end, class, 0);
    }
}

void pcie_credits_granted(pcie_end_t *end, enum pcie_class class)
{
    free_event_set(end, class, 0);
}

// Update phase. Marks urgent releases to be reported.
static void releases_judge(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    unsigned classes = credits_take(end, sim_now_ps(end->sim) + 1);
    for (enum pcie_class class = PCIE_POSTED; class < PCIE_CLASS_COUNT; class ++) {
        if ((classes >> class & 1) != 0 && update_urgent(end, class, &rx->classes[class].freed)) {
            rx->update_due[class] = true;
        }
    }
}

void pcie_credits_free_mark(pcie_end_t *end)
{
    releases_judge(end);
    for (enum pcie_class class = PCIE_POSTED; class < PCIE_CLASS_COUNT; class ++) {
        free_event_set(end, class, 0);
    }
}

static void free_event_run(void *ctx)
{
    pcie_end_t *end = ctx;
    pcie_update_begun(end, PCIE_UPDATE_FREE);
    pcie_credits_free_mark(end);
    pcie_end_settle(end);
    pcie_dllps_flush(end);
}

// --- the interval --------------------------------------------------------------------------------------------------

void pcie_credits_update_mark(pcie_end_t *end)
{
    struct pcie_receiver *rx = &end->rx;
    releases_judge(end);
    if (rx->unreported_since_ps != SIM_NEVER_PS) {
        // Credits that were reported early moved the beginning of the interval.
        uint64_t due_ps = rx->unreported_since_ps + end->link->interval_ps;
        if (due_ps > sim_now_ps(end->sim)) {
            pcie_update_at(end, PCIE_UPDATE_FC, due_ps);
            return;
        }
        for (unsigned class = 0; class < PCIE_CLASS_COUNT; class ++) {
            rx->update_due[class] = rx->classes[class].freed.headers != rx->classes[class].granted.headers ||
                                    rx->classes[class].freed.data != rx->classes[class].granted.data;
        }
    }
    if (rx->freeing.count > 0) {
        update_arm(end, ((const struct pcie_freeing *)pcie_ring_front(&rx->freeing))->at_ps);
    }
}

static void update_event_run(void *ctx)
{
    pcie_end_t *end = ctx;
    pcie_update_begun(end, PCIE_UPDATE_FC);
    pcie_credits_update_mark(end);
    pcie_end_settle(end);
    pcie_dllps_flush(end);
}
