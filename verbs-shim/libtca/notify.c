// Notifications: their slots, and the wait for one.
//
// Each node has tcaSlots words for every sender, in pinned host memory, whose address is in the node's handles, and in
// the board's memory, at the same offset on every node. A sender writes only its own slots, so different senders never
// share one.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "verbs-shim/libtca/internal.h"
#include "verbs-shim/libtca/note.h"

// How long only host memory is polled for a notification before the board's memory is polled once.
#define WAIT_SLICE_NS 100000ull

// How long the board's memory is polled without a pause, and the share of a longer wait by which a poll may be late.
#define BUSY_NS      1000000ull
#define LATE_DIVISOR 128u
#define LATE_MAX_NS  10000000ull

struct wait {
    struct tca_context *context;
    uint32_t sender, slot;
    uint64_t word;
};

static uint32_t slot_offset(uint32_t sender, uint32_t slot)
{
    return sender * TCA_SLOTS_BYTES + slot * TCA_SLOT_BYTES;
}

static uint32_t board_offset(uint32_t sender, uint32_t slot)
{
    return TCA_BOARD_SLOTS * TCA_BOARD_UNIT_BYTES + slot_offset(sender, slot);
}

static volatile uint64_t *host_slot(const struct tca_context *context, uint32_t sender, uint32_t slot)
{
    return (volatile uint64_t *)(void *)((char *)context->inbox.slots.address + slot_offset(sender, slot));
}

// Notifications that were sent to an earlier process and not taken must not reach this one.
int tca_inbox_make(struct tca_context *context)
{
    static const char empty[PEACH2_NODES_MAX * TCA_SLOTS_BYTES];
    const struct backend *backend = &context->backend;
    if (backend->ops->alloc_pinned(backend->ctx, sizeof empty, &context->inbox.slots) != 0) {
        return tcaErrorNoMemory;
    }
    uint64_t board = peach2_board_memory_address(context->board, peach2_node(context->board), board_offset(0, 0));
    return peach2_pio_write(context->board, board, empty, sizeof empty) == 0 ? tcaSuccess : tcaErrorIO;
}

uint64_t tca_slot_address(const struct tca_context *context, const tcaHandle *handle, uint32_t slot, bool board)
{
    uint32_t sender = peach2_node(context->board);
    if (board) {
        return peach2_board_memory_address(context->board, handle->node, board_offset(sender, slot));
    }
    uint64_t address = handle->slotsAddress + slot_offset(sender, slot);
    return handle->node == sender ? address : peach2_window_address(context->board, handle->node, address);
}

// --- the wait ------------------------------------------------------------------------------------------------------

// timeout_ns 0: polls once.
static bool host_take(const struct wait *wait, uint64_t timeout_ns)
{
    const struct backend *backend = &wait->context->backend;
    volatile uint64_t *slot = host_slot(wait->context, wait->sender, wait->slot);
    bool there = *slot == wait->word;
    backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, 1);
    if (!there && timeout_ns != 0) {
        there = backend->ops->wait_word(backend->ctx, slot, UINT64_MAX, wait->word, timeout_ns) == 0;
    }
    if (there) {
        *slot = 0;
        backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, 1);
    }
    return there;
}

static int board_take(const struct wait *wait, bool *there_out)
{
    uint32_t offset = board_offset(wait->sender, wait->slot);
    uint64_t word;
    int error = peach2_board_memory_read(wait->context->board, offset, &word);
    *there_out = error == 0 && word == wait->word;
    return *there_out ? peach2_board_memory_write(wait->context->board, offset, 0) : error;
}

static bool expects_board(const struct wait *wait)
{
    const struct tca_inbox *inbox = &wait->context->inbox;
    uint32_t bit = 1u << wait->slot;
    if ((inbox->learned[wait->sender] & bit) != 0) {
        return (inbox->internal[wait->sender] & bit) != 0;
    }
    return wait->context->notify_internal;
}

static void arrival_learn(const struct wait *wait, bool board)
{
    struct tca_inbox *inbox = &wait->context->inbox;
    uint32_t bit = 1u << wait->slot, *internal = &inbox->internal[wait->sender];
    wait->context->notify_internal = board;
    inbox->learned[wait->sender] |= bit;
    *internal = board ? *internal | bit : *internal & ~bit;
}

// How long the next poll of host memory lasts. A wait that also polls the board's memory first polls it continuously;
// in a long wait a poll is late by 1/128 of the wait, so that it does not keep the bus busy.
static uint64_t host_wait_ns(const struct wait *wait, uint64_t waited_ns)
{
    uint64_t timeout_ns = wait->context->timeout_ns, left_ns = timeout_ns - waited_ns, wait_ns = WAIT_SLICE_NS;
    if (expects_board(wait)) {
        wait_ns = waited_ns < BUSY_NS ? 0 : waited_ns / LATE_DIVISOR;
        wait_ns = wait_ns < LATE_MAX_NS ? wait_ns : LATE_MAX_NS;
    }
    return timeout_ns != 0 && left_ns < wait_ns ? left_ns : wait_ns;
}

// false: the wait is over. *waited_ns_out: its duration so far.
static bool may_wait(const struct wait *wait, struct peach2_poll_timer *timer, uint64_t polled_ns,
                     uint64_t *waited_ns_out)
{
    if (polled_ns == 0) {
        bool ends = peach2_poll_timer_ends(&wait->context->backend, timer);
        *waited_ns_out = timer->waited_ns;
        return !ends;
    }
    *waited_ns_out += polled_ns;
    return timer->timeout_ns == 0 || *waited_ns_out < timer->timeout_ns;
}

static int notification_take(const struct wait *wait)
{
    struct peach2_poll_timer timer = {.timeout_ns = wait->context->timeout_ns};
    uint64_t waited_ns = 0, polled_ns;
    do {
        bool there;
        polled_ns = host_wait_ns(wait, waited_ns);
        if (host_take(wait, polled_ns)) {
            arrival_learn(wait, false);
            return 0;
        }
        int error = board_take(wait, &there);
        if (error != 0) {
            return error;
        }
        if (there) {
            arrival_learn(wait, true);
            return 0;
        }
    } while (may_wait(wait, &timer, polled_ns, &waited_ns));
    return -ETIMEDOUT;
}

// What the slots hold after a wait timed out: the tag from another node, or another tag from the node. Reading the
// board's memory takes a microsecond a word, so after short waits only host memory is checked.
static bool found_instead(const struct wait *wait, uint32_t sender, uint64_t *word_out)
{
    *word_out = *host_slot(wait->context, sender, wait->slot);
    if (*word_out == 0 && wait->context->timeout_ns >= BUSY_NS) {
        (void)peach2_board_memory_read(wait->context->board, board_offset(sender, wait->slot), word_out);
    }
    return *word_out != 0;
}

static void hint_make(const struct wait *wait, char *hint, size_t bytes)
{
    uint32_t own = peach2_node(wait->context->board);
    uint64_t word;
    if (found_instead(wait, wait->sender, &word)) {
        snprintf(hint, bytes, "; tag %" PRIu32 " of that node lies in the slot", (uint32_t)word);
        return;
    }
    for (uint32_t node = 0; node < peach2_node_count(wait->context->board); node++) {
        if (node != own && node != wait->sender && found_instead(wait, node, &word) && word == wait->word) {
            snprintf(hint, bytes, "; the same tag has come there from node %" PRIu32, node);
            return;
        }
    }
    if (wait->sender == own) {
        snprintf(hint, bytes,
                 "; the handle is of this node itself: for messages of another, pass a handle of that node");
    }
}

static int timeout_refuse(const struct wait *wait, uint32_t tag)
{
    char text[TCA_DURATION_MAX], hint[128] = "";
    hint_make(wait, hint, sizeof hint);
    return tca_refuse(wait->context, tcaErrorTimeout,
                      "tcaWaitDMARecvDesc: tag %" PRIu32 " did not come to slot %" PRIu32 " from node %" PRIu32
                      " within %s: check the sender and the cables in between%s",
                      tag, wait->slot, wait->sender, tca_duration_text(wait->context->timeout_ns, text), hint);
}

int tcaWaitDMARecvDesc(const tcaHandle *handle, int wait_slot, uint32_t wait_tag)
{
    static const char call[] = "tcaWaitDMARecvDesc", role[] = "node that sends";
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    uint64_t began_ps = tca_note_begin(context);
    int error = tca_handle_check_any(context, call, role, handle);
    if (error != tcaSuccess) {
        return error;
    }
    if (wait_slot < 0 || wait_slot >= tcaSlots) {
        return tca_refuse(context, tcaErrorSlot, "%s: slot %d: they are 0 to %d", call, wait_slot, tcaSlots - 1);
    }
    const struct wait wait = {context, handle->node, (uint32_t)wait_slot, tca_notification(wait_tag)};
    switch (notification_take(&wait)) {
    case 0:
        tca_note_dma(context, began_ps, JOURNAL_TCA_WAIT_RECEIVE,
                     &(struct journal_dma){.sender = handle->node, .slot = (uint32_t)wait_slot, .tag = wait_tag});
        return tcaSuccess;
    case -ETIMEDOUT:
        return timeout_refuse(&wait, wait_tag);
    default:
        return tca_refuse(context, tcaErrorIO, "%s: the board does not answer", call);
    }
}
