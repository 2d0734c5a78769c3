// PENDING, and when the message that reports it is sent: once, until a CLEAR.
//
// The RTL sets and clears bits at edges, and here both are known some edges ahead. A CLEAR waits until its edge, so
// that it meets the bits that are set by then, and a bit that is set ahead is not seen before its edge.
#include "models/peach2/twin_internal.h"

// In the RTL a write is seen in the next cycle; as a pulse, which changes PENDING, it is in force another one later.
enum { WRITE_CYCLES = 1, CLEAR_CYCLES = 2 };

// The CLEAR takes the bits that were not set at the edge of its pulse or later.
static bool is_taken(const struct twin_interrupt *interrupt, unsigned bit)
{
    return (interrupt->cleared >> bit & 1) != 0 && interrupt->last_from[bit] < interrupt->clear_from;
}

static void clear_settle(struct twin_interrupt *interrupt, uint64_t edge)
{
    if (!interrupt->clear_due || interrupt->clear_from > edge) {
        return;
    }
    for (uint32_t left = interrupt->pending & interrupt->cleared; left != 0; left &= left - 1) {
        unsigned bit = (unsigned)__builtin_ctz(left);
        interrupt->pending &= is_taken(interrupt, bit) ? ~(1u << bit) : UINT32_MAX;
        interrupt->from[bit] = interrupt->last_from[bit];
    }
    // One that is sent at the edge of the pulse stays outstanding.
    interrupt->sent = interrupt->sent && interrupt->sent_edge + 1 >= interrupt->clear_from;
    interrupt->message_from = twin_later(interrupt->message_from, interrupt->clear_from);
    interrupt->clear_due = false;
}

uint32_t twin_interrupt_raise(peach2_twin_t *twin, uint32_t bits, uint64_t edge)
{
    struct twin_interrupt *interrupt = &twin->interrupt;
    uint32_t new = bits & ~interrupt->pending;
    interrupt->pending |= bits;
    for (uint32_t left = bits; left != 0; left &= left - 1) {
        unsigned bit = (unsigned)__builtin_ctz(left);
        interrupt->from[bit] = (new >> bit & 1) != 0 ? edge + 1 : interrupt->from[bit];
        interrupt->last_from[bit] = edge + 1;
    }
    twin_writer_plan(twin);
    return new;
}

void twin_interrupt_withdraw(peach2_twin_t *twin, uint32_t bits)
{
    twin->interrupt.pending &= ~bits;
}

void twin_interrupt_clear(peach2_twin_t *twin, uint32_t bits, uint64_t edge)
{
    struct twin_interrupt *interrupt = &twin->interrupt;
    clear_settle(interrupt, edge);
    interrupt->clear_due = true;
    interrupt->cleared = bits;
    interrupt->clear_from = edge + CLEAR_CYCLES;
    twin_writer_plan(twin);
}

static struct twin_message registers_read(const peach2_twin_t *twin)
{
    return (struct twin_message){
        .address = twin_register64(twin, PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ADDRESS) & ~3ull,
        .enable = twin->registers[(PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_ENABLE) / 4],
        .value = twin->registers[(PEACH2_INTERRUPT_BASE + PEACH2_INTERRUPT_VALUE) / 4],
    };
}

void twin_interrupt_changes(peach2_twin_t *twin, uint64_t edge)
{
    twin->interrupt.before = registers_read(twin);
    twin->interrupt.before_from = twin->interrupt.written_from;
    twin->interrupt.written_from = edge + WRITE_CYCLES;
}

uint32_t twin_interrupt_pending(peach2_twin_t *twin, uint64_t edge)
{
    struct twin_interrupt *interrupt = &twin->interrupt;
    clear_settle(interrupt, edge);
    uint32_t pending = 0;
    for (uint32_t left = interrupt->pending; left != 0; left &= left - 1) {
        unsigned bit = (unsigned)__builtin_ctz(left);
        pending |= interrupt->from[bit] <= edge ? 1u << bit : 0;
    }
    return pending;
}

// The edge from which one of the bits is pending: before the CLEAR, or with what it leaves.
static uint64_t first_from(const struct twin_interrupt *interrupt, uint32_t bits, bool cleared)
{
    uint64_t first = TWIN_NEVER;
    for (uint32_t left = bits; left != 0; left &= left - 1) {
        unsigned bit = (unsigned)__builtin_ctz(left);
        uint64_t from =
            cleared && (interrupt->cleared >> bit & 1) != 0 ? interrupt->last_from[bit] : interrupt->from[bit];
        if (from < first && !(cleared && is_taken(interrupt, bit))) {
            first = from;
        }
    }
    return first;
}

static uint64_t due_of(const struct twin_interrupt *interrupt, uint32_t enable)
{
    uint32_t bits = interrupt->pending & enable;
    uint64_t due = twin_later(first_from(interrupt, interrupt->sent ? 0 : bits, false), interrupt->message_from);
    if (interrupt->clear_due && due >= interrupt->clear_from) {
        due = twin_later(first_from(interrupt, bits, true), interrupt->clear_from);
    }
    return due;
}

uint64_t twin_interrupt_due(const peach2_twin_t *twin)
{
    const struct twin_interrupt *interrupt = &twin->interrupt;
    uint64_t before = twin_later(due_of(interrupt, interrupt->before.enable), interrupt->before_from);
    if (before < interrupt->written_from) {
        return before;
    }
    return twin_later(due_of(interrupt, registers_read(twin).enable), interrupt->written_from);
}

bool twin_interrupt_send(peach2_twin_t *twin, uint64_t edge, struct twin_message *message_out)
{
    struct twin_interrupt *interrupt = &twin->interrupt;
    clear_settle(interrupt, edge);
    if (twin_interrupt_due(twin) > edge) {
        return false;
    }
    interrupt->sent = true;
    interrupt->sent_edge = edge;
    *message_out = edge < interrupt->written_from ? interrupt->before : registers_read(twin);
    return true;
}
