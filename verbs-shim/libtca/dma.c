// Channels: setting, starting and waiting; and waiting for notifications.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "verbs-shim/libtca/internal.h"

// How long a notification is looked for in host memory alone before the board's memory is looked at once.
#define PATIENCE_NS 100000ull

// How long the board's memory is looked at without a pause, and the part of a longer wait that a look may be late.
#define BUSY_NS      1000000ull
#define LATE_DIVISOR 128u

#define DURATION_MAX 32

static volatile uint64_t *status_word(const struct tca_context *context, unsigned channel)
{
    return (volatile uint64_t *)context->status.address + channel;
}

// --- channels ------------------------------------------------------------------------------------------------------

static void channel_ended(struct tca_channel *channel, int error, unsigned dma_error)
{
    channel->running = false;
    channel->failed = error == -EREMOTEIO;
    channel->dma_error = dma_error;
}

bool tca_channel_is_running(struct tca_context *context, unsigned channel)
{
    struct tca_channel *state = &context->channels[channel];
    if (state->running && *status_word(context, channel) != 0) {
        unsigned dma_error = PEACH2_DMA_OK;
        int error = peach2_wait_status(context->board, status_word(context, channel), 0, NULL, &dma_error);
        channel_ended(state, error, dma_error);
    }
    return state->running;
}

// Tells of a DMA that failed, once.
static int failure_take(struct tca_context *context, const char *call, unsigned channel)
{
    struct tca_channel *state = &context->channels[channel];
    if (!state->failed) {
        return tcaSuccess;
    }
    state->failed = false;
    return tca_refuse(context, tcaErrorDMA, "%s: the DMA of channel %u failed: %s", call, channel,
                      peach2_dma_error_name(state->dma_error));
}

static int channel_check(struct tca_context *context, const char *call, int channel)
{
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    if (channel < 0 || channel >= tcaChannels) {
        return tca_refuse(context, tcaErrorChannel, "%s: channel %d: they are 0 to %d", call, channel, tcaChannels - 1);
    }
    return tcaSuccess;
}

static int channel_check_idle(struct tca_context *context, const char *call, int channel)
{
    int error = channel_check(context, call, channel);
    if (error == tcaSuccess && tca_channel_is_running(context, (unsigned)channel)) {
        return tca_refuse(context, tcaErrorBusy, "%s: the DMA of channel %d runs: call tcaWaitDMAC first", call,
                          channel);
    }
    return error;
}

// Memory may have been freed since the copies were added.
static int copies_check(struct tca_context *context, const char *call, const tcaDesc *desc)
{
    for (const struct tca_copy *copy = desc->copies; copy != NULL; copy = copy->next) {
        int error = tca_handle_check_local(context, call, "source", &copy->from);
        if (error == tcaSuccess && copy->to.node == peach2_node(context->board)) {
            error = tca_handle_check_local(context, call, "destination", &copy->to);
        }
        if (error != tcaSuccess) {
            return error;
        }
    }
    return tcaSuccess;
}

static bool is_known(const struct tca_context *context, const tcaDesc *desc)
{
    const tcaDesc *known = context->descs;
    while (known != NULL && known != desc) {
        known = known->next;
    }
    return known != NULL;
}

static int desc_check(struct tca_context *context, const tcaDesc *desc)
{
    if (!is_known(context, desc)) {
        return tca_refuse(context, tcaErrorArgument, "tcaDescSet: not a descriptor of tcaDescNew, or freed before");
    }
    if (tca_desc_is_running(desc)) {
        return tca_refuse(context, tcaErrorBusy, "tcaDescSet: the descriptor's DMA runs: call tcaWaitDMAC first");
    }
    if (desc->copies == NULL) {
        return tca_refuse(context, tcaErrorNotSet, "tcaDescSet: no copies: add them with tcaDescSetMemcpy");
    }
    return copies_check(context, "tcaDescSet", desc);
}

int tcaDescSet(tcaDesc *desc, int channel)
{
    struct tca_context *context = tca_context_current();
    int error = channel_check_idle(context, "tcaDescSet", channel);
    if (error == tcaSuccess) {
        error = desc_check(context, desc);
    }
    if (error == tcaSuccess && desc->chain == NULL) {
        error = tca_desc_build(desc);
    }
    if (error != tcaSuccess) {
        return error;
    }
    const struct peach2_notify notify = {
        .local_address = context->status.bus_address + (uint64_t)channel * sizeof(uint64_t), .value = 1};
    if (peach2_chain_prepare(context->board, (unsigned)channel, desc->chain, &notify) != 0) {
        return tca_refuse(context, tcaErrorIO, "tcaDescSet: the driver refuses the descriptor");
    }
    context->channels[channel].desc = desc;
    return tcaSuccess;
}

int tcaStartDMADesc(int channel)
{
    struct tca_context *context = tca_context_current();
    int error = channel_check_idle(context, "tcaStartDMADesc", channel);
    if (error == tcaSuccess) {
        error = failure_take(context, "tcaStartDMADesc", (unsigned)channel);
    }
    if (error != tcaSuccess) {
        return error;
    }
    struct tca_channel *state = &context->channels[channel];
    if (state->desc == NULL) {
        return tca_refuse(context, tcaErrorNotSet, "tcaStartDMADesc: nothing is set on channel %d: call tcaDescSet",
                          channel);
    }
    error = copies_check(context, "tcaStartDMADesc", state->desc);
    if (error != tcaSuccess) {
        return error;
    }
    *status_word(context, (unsigned)channel) = 0;
    if (peach2_dma_start(context->board, (unsigned)channel) != 0) {
        return tca_refuse(context, tcaErrorIO, "tcaStartDMADesc: the driver refuses to start");
    }
    state->running = true;
    return tcaSuccess;
}

// "1 s", "1500 us": in the largest unit in which it is whole.
static const char *duration_text(uint64_t ns, char text[DURATION_MAX])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    unsigned unit = 0;
    while (unit < 3 && ns % 1000 == 0) {
        ns /= 1000;
        unit++;
    }
    snprintf(text, DURATION_MAX, "%" PRIu64 " %s", ns, units[unit]);
    return text;
}

int tcaWaitDMAC(int channel)
{
    char text[DURATION_MAX];
    struct tca_context *context = tca_context_current();
    int error = channel_check(context, "tcaWaitDMAC", channel);
    if (error != tcaSuccess) {
        return error;
    }
    struct tca_channel *state = &context->channels[channel];
    if (state->running) {
        unsigned dma_error = PEACH2_DMA_OK;
        int status = peach2_wait_status(context->board, status_word(context, (unsigned)channel), context->timeout_ns,
                                        NULL, &dma_error);
        if (status == -ETIMEDOUT) {
            return tca_refuse(context, tcaErrorTimeout,
                              "tcaWaitDMAC: the DMA of channel %d still runs after %s: wait again, or longer with "
                              "tcaSetTimeout",
                              channel, duration_text(context->timeout_ns, text));
        }
        channel_ended(state, status, dma_error);
    }
    return failure_take(context, "tcaWaitDMAC", (unsigned)channel);
}

// --- notifications -------------------------------------------------------------------------------------------------

struct wait {
    struct tca_context *context;
    struct tca_allocation *allocation;
    uint32_t slot;
    uint64_t word;
};

static volatile uint64_t *host_slot(const struct wait *wait)
{
    return (volatile uint64_t *)(void *)((char *)wait->allocation->buffer.address + wait->allocation->slots) +
           wait->slot;
}

// timeout_ns 0: looks once.
static bool host_take(const struct wait *wait, uint64_t timeout_ns)
{
    const struct backend *backend = &wait->context->backend;
    bool there = *host_slot(wait) == wait->word;
    backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, 1);
    if (!there && timeout_ns != 0) {
        there = backend->ops->wait_word(backend->ctx, host_slot(wait), UINT64_MAX, wait->word, timeout_ns) == 0;
    }
    if (there) {
        *host_slot(wait) = 0;
        backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, 1);
    }
    return there;
}

static int board_take(const struct wait *wait, bool *there_out)
{
    *there_out = false;
    if (wait->allocation->slots_board == TCA_BOARD_NONE) {
        return 0;
    }
    uint32_t offset = wait->allocation->slots_board + wait->slot * TCA_SLOT_BYTES;
    uint64_t word;
    int error = peach2_board_memory_read(wait->context->board, offset, &word);
    if (error == 0 && word == wait->word) {
        *there_out = true;
        error = peach2_board_memory_write(wait->context->board, offset, 0);
    }
    return error;
}

static bool expects_board(const struct wait *wait)
{
    uint32_t bit = 1u << wait->slot;
    if ((wait->allocation->learned & bit) != 0) {
        return (wait->allocation->internal & bit) != 0;
    }
    return wait->context->notify_internal;
}

static void place_learn(const struct wait *wait, bool board)
{
    uint32_t bit = 1u << wait->slot;
    wait->allocation->learned |= bit;
    wait->allocation->internal = board ? wait->allocation->internal | bit : wait->allocation->internal & ~bit;
}

// How long the next look into host memory lasts. A wait that looks into the board's memory in between does so all the
// time at first; in a long one a look comes late by 1/128 of it, so that it does not keep the bus busy.
static uint64_t look_ns(const struct wait *wait, uint64_t waited_ns)
{
    uint64_t timeout_ns = wait->context->timeout_ns, left_ns = timeout_ns - waited_ns, look = PATIENCE_NS;
    if (expects_board(wait)) {
        look = waited_ns < BUSY_NS ? 0 : waited_ns / LATE_DIVISOR;
    }
    return timeout_ns != 0 && left_ns < look ? left_ns : look;
}

// false: the wait is over. *waited_ns_out: how long it lasted so far.
static bool may_wait(const struct wait *wait, struct peach2_patience *patience, uint64_t looked_ns,
                     uint64_t *waited_ns_out)
{
    if (looked_ns == 0) {
        bool ends = peach2_patience_ends(&wait->context->backend, patience);
        *waited_ns_out = patience->waited_ns;
        return !ends;
    }
    *waited_ns_out += looked_ns;
    return patience->timeout_ns == 0 || *waited_ns_out < patience->timeout_ns;
}

static int notification_take(const struct wait *wait)
{
    struct peach2_patience patience = {.timeout_ns = wait->context->timeout_ns};
    uint64_t waited_ns = 0, looked_ns;
    do {
        bool there;
        looked_ns = look_ns(wait, waited_ns);
        if (host_take(wait, looked_ns)) {
            place_learn(wait, false);
            return 0;
        }
        int error = board_take(wait, &there);
        if (error != 0) {
            return error;
        }
        if (there) {
            place_learn(wait, true);
            return 0;
        }
    } while (may_wait(wait, &patience, looked_ns, &waited_ns));
    return -ETIMEDOUT;
}

int tcaWaitDMARecvDesc(const tcaHandle *handle, int wait_slot, uint32_t wait_tag)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    int error = tca_handle_check_local(context, "tcaWaitDMARecvDesc", "memory that is written", handle);
    if (error != tcaSuccess) {
        return error;
    }
    if (wait_slot < 0 || wait_slot >= tcaSlots) {
        return tca_refuse(context, tcaErrorSlot, "tcaWaitDMARecvDesc: slot %d: they are 0 to %d", wait_slot,
                          tcaSlots - 1);
    }
    const struct wait wait = {context, tca_allocation_find(context, handle->allocation), (uint32_t)wait_slot,
                              tca_notification(wait_tag)};
    char text[DURATION_MAX];
    error = notification_take(&wait);
    if (error == -ETIMEDOUT) {
        return tca_refuse(context, tcaErrorTimeout,
                          "tcaWaitDMARecvDesc: tag %" PRIu32
                          " did not come to slot %d within %s: look at the sender and at the cables between",
                          wait_tag, wait_slot, duration_text(context->timeout_ns, text));
    }
    if (error != 0) {
        return tca_refuse(context, tcaErrorIO, "tcaWaitDMARecvDesc: the board does not answer");
    }
    return tcaSuccess;
}
