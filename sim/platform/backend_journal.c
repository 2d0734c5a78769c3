// The journal of programs inside the simulator (verbs-shim/backend/journal.h): their calls become lines of the trace
// (sim/observe). Kept only if there is an observer. Every cost of a program takes its simulated time at once, so its own
// time is that of the simulation.
//
// Pointers of this process differ from run to run. The trace has the bus address that devices use instead, or 0 for memory
// that no device reaches; likewise for a wr_id that is a pointer.
#include "sim/platform/backend_inproc.h"

static bool all(void *ctx)
{
    (void)ctx;
    return true;
}

static bool checks(void *ctx)
{
    (void)ctx;
    return false;
}

static struct observe_upcoming *upcoming_of_the_thread(struct plat_backend_inproc *b)
{
    const struct plat_helper *helper = plat_backend_helper(b);
    return &b->upcoming[helper != NULL ? 1 + (helper - b->helpers) : 0];
}

static uint64_t now_ps(void *ctx)
{
    struct plat_backend_inproc *b = ctx;
    observe_call_begins(b->observed, upcoming_of_the_thread(b));
    return sim_now_ps(b->sim);
}

static void nothing(void *ctx)
{
    struct plat_backend_inproc *b = ctx;
    observe_call_found_nothing(b->observed, sim_thread_name(b->sim), upcoming_of_the_thread(b));
}

// Only diagnoses of stuck programs need it.
static const _Atomic uint64_t *slot_ps(void *ctx)
{
    static const _Atomic uint64_t never;
    (void)ctx;
    return &never;
}

static void describe_by(void *ctx, unsigned (*describe)(void *arg, struct journal_state *states, unsigned room),
                        void *arg)
{
    (void)ctx;
    (void)describe;
    (void)arg;
}

// Bus addresses and addresses of GPU memory are below.
static bool is_pointer(uint64_t value)
{
    return value >= UINT64_C(1) << 40 && value < UINT64_C(1) << 47;
}

static void address_translate(const struct plat_backend_inproc *b, uint64_t *address)
{
    if (is_pointer(*address) && !plat_backend_bus_address(b, *address, address)) {
        *address = 0;
    }
}

static void id_translate(uint64_t *wr_id)
{
    *wr_id = is_pointer(*wr_id) ? 0 : *wr_id;
}

static void completion_translate(const struct plat_backend_inproc *b, struct journal_completion *completion)
{
    address_translate(b, &completion->address);
    address_translate(b, &completion->remote_address);
    id_translate(&completion->wr_id);
}

static void pointers_translate(const struct plat_backend_inproc *b, struct journal_record *record)
{
    address_translate(b, &record->a); // of a refusal
    switch (record->call) {
    case JOURNAL_REG_MR:
    case JOURNAL_DEREG_MR:
        address_translate(b, &record->mr.address);
        address_translate(b, &record->mr.iova);
        break;
    case JOURNAL_POST_SEND:
        address_translate(b, &record->send.address);
        address_translate(b, &record->send.remote_address);
        id_translate(&record->send.wr_id);
        break;
    case JOURNAL_POST_RECV:
    case JOURNAL_POST_SRQ_RECV:
        address_translate(b, &record->receive.address);
        id_translate(&record->receive.wr_id);
        break;
    case JOURNAL_POLL_CQ:
        completion_translate(b, &record->completion);
        break;
    default:
        break;
    }
}

static void note(void *ctx, const struct journal_record *reported)
{
    struct plat_backend_inproc *b = ctx;
    struct journal_record translated = *reported, *record = &translated;
    pointers_translate(b, record);
    uint64_t at_ps = sim_now_ps(b->sim);
    struct observe_call call = {.thread = sim_thread_name(b->sim),
                                .at_ps = at_ps,
                                .took_ps =
                                    record->began_ps != 0 && record->began_ps < at_ps ? at_ps - record->began_ps : 0,
                                .upcoming = upcoming_of_the_thread(b)};
    observe_note(b->observed, &call, record);
}

const struct backend_journal_ops plat_backend_journal_ops = {.all = all,
                                                             .checks = checks,
                                                             .now_ps = now_ps,
                                                             .slot_ps = slot_ps,
                                                             .note = note,
                                                             .nothing = nothing,
                                                             .describe_by = describe_by};
