// Channels: set, start, wait.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "verbs-shim/libtca/internal.h"
#include "verbs-shim/libtca/note.h"

// How long to wait for a channel whose DMA seems to run before a call that would take something from it is refused: a
// notification at the end of its chain arrives a little before the channel reports its end.
#define SETTLE_NS 1000ull

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
    if (state->running) {
        unsigned dma_error = PEACH2_DMA_OK;
        int error = peach2_wait_status(context->board, status_word(context, channel), SETTLE_NS, NULL, &dma_error);
        if (error != -ETIMEDOUT) {
            channel_ended(state, error, dma_error);
        }
    }
    return state->running;
}

// Reports a failed DMA, once.
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

const char *tca_duration_text(uint64_t ns, char text[TCA_DURATION_MAX])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    unsigned unit = 0;
    while (unit < 3 && ns % 1000 == 0) {
        ns /= 1000;
        unit++;
    }
    snprintf(text, TCA_DURATION_MAX, "%" PRIu64 " %s", ns, units[unit]);
    return text;
}

// Waits until the channel's DMA has ended, if one runs.
static int channel_await(struct tca_context *context, const char *call, unsigned channel)
{
    char text[TCA_DURATION_MAX];
    struct tca_channel *state = &context->channels[channel];
    if (state->running) {
        unsigned dma_error = PEACH2_DMA_OK;
        int status =
            peach2_wait_status(context->board, status_word(context, channel), context->timeout_ns, NULL, &dma_error);
        if (status == -ETIMEDOUT) {
            return tca_refuse(
                context, tcaErrorTimeout,
                "%s: the DMA of channel %u still runs after %s: call again, or wait longer with tcaSetTimeout", call,
                channel, tca_duration_text(context->timeout_ns, text));
        }
        channel_ended(state, status, dma_error);
    }
    return tcaSuccess;
}

// Of calls that give the channel work: programs start a chain as soon as a notification of the last one has come, while its
// other copies are still made.
static int channel_own(struct tca_context *context, const char *call, int channel)
{
    int error = channel_check(context, call, channel);
    if (error == tcaSuccess && context->channels[channel].taken) {
        return tca_refuse(context, tcaErrorBusy,
                          "%s: TCA Verbs has channel %d for the queue pairs on tca0: use channel 0 or 1", call,
                          channel);
    }
    return error != tcaSuccess ? error : channel_await(context, call, (unsigned)channel);
}

// Memory may have been freed since the copies were added.
static int copies_check(struct tca_context *context, const char *call, const tcaDesc *desc)
{
    for (const struct tca_copy *copy = desc->copies; copy != NULL; copy = copy->next) {
        int error = tca_handle_check_local(context, call, "source", &copy->from);
        if (error == tcaSuccess) {
            error = tca_handle_check_any(context, call, "destination", &copy->to);
        }
        if (error != tcaSuccess) {
            return error;
        }
    }
    return tcaSuccess;
}

// Writes the registers that must change: none if the descriptor is already set.
static int registers_write(struct tca_context *context, const tcaDesc *desc, unsigned channel)
{
    struct tca_channel *state = &context->channels[channel];
    const struct peach2_notify notify = {.local_address = context->status.bus_address + channel * sizeof(uint64_t),
                                         .value = 1};
    if (!state->prepared) {
        int error = peach2_chain_prepare(context->board, channel, desc->chain, &notify);
        state->prepared = error == 0;
        return error;
    }
    context->backend.ops->cost(context->backend.ctx, BACKEND_COST_CALL, 1);
    return state->desc == desc ? 0 : peach2_chain_select(context->board, channel, desc->chain);
}

bool tca_channel_take(struct tca_context *context, unsigned channel)
{
    if (tca_channel_is_running(context, channel)) {
        return false;
    }
    context->channels[channel] = (struct tca_channel){.taken = true};
    return true;
}

void tca_channel_give(struct tca_context *context, unsigned channel)
{
    context->channels[channel].taken = false;
}

int tca_desc_set(struct tca_context *context, const char *call, tcaDesc *desc, int channel)
{
    int error = channel_own(context, call, channel);
    for (unsigned other = 0; other < tcaChannels && error == tcaSuccess; other++) {
        error = context->channels[other].desc == desc ? channel_await(context, call, other) : error;
    }
    if (error == tcaSuccess) {
        error = tca_desc_check(context, call, desc);
    }
    if (error == tcaSuccess && desc->copies == NULL) {
        error = tca_refuse(context, tcaErrorNotSet, "%s: no copies: add them with tcaDescSetMemcpy", call);
    }
    if (error == tcaSuccess) {
        error = copies_check(context, call, desc);
    }
    if (error == tcaSuccess && desc->chain == NULL) {
        error = tca_desc_build(desc, call);
    }
    if (error != tcaSuccess) {
        return error;
    }
    if (registers_write(context, desc, (unsigned)channel) != 0) {
        return tca_refuse(context, tcaErrorIO, "%s: the driver refuses the descriptor", call);
    }
    context->channels[channel].desc = desc;
    return tcaSuccess;
}

int tcaDescSet(tcaDesc *desc, int channel)
{
    struct tca_context *context = tca_context_current();
    return context != NULL ? tca_desc_set(context, "tcaDescSet", desc, channel) : tcaErrorNotInitialized;
}

static uint64_t bytes_of(const tcaDesc *desc)
{
    uint64_t bytes = 0;
    for (const struct tca_copy *copy = desc->copies; copy != NULL; copy = copy->next) {
        bytes += copy->width * copy->count;
    }
    return bytes;
}

int tcaStartDMADesc(int channel)
{
    struct tca_context *context = tca_context_current();
    uint64_t began_ps = tca_note_begin(context);
    int error = channel_own(context, "tcaStartDMADesc", channel);
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
    tca_note_dma(context, began_ps, JOURNAL_TCA_START,
                 &(struct journal_dma){.channel = (uint32_t)channel, .bytes = bytes_of(state->desc)});
    return tcaSuccess;
}

int tcaWaitDMAC(int channel)
{
    struct tca_context *context = tca_context_current();
    uint64_t began_ps = tca_note_begin(context);
    int error = channel_check(context, "tcaWaitDMAC", channel);
    if (error != tcaSuccess) {
        return error;
    }
    error = channel_await(context, "tcaWaitDMAC", (unsigned)channel);
    if (error != tcaSuccess) {
        return error;
    }
    tca_note_dma(context, began_ps, JOURNAL_TCA_WAIT, &(struct journal_dma){.channel = (uint32_t)channel});
    return failure_take(context, "tcaWaitDMAC", (unsigned)channel);
}
