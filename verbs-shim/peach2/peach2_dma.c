// Register mode, starts, and completions.
#include <errno.h>
#include <stddef.h>

#include "rtl/peach2_regs.h"
#include "verbs-shim/peach2/peach2_internal.h"

// STATUS is the upper half of a status word.
#define STATUS_SHIFT 32

#define POLLS_PER_CHECK 64u
#define PS_PER_NS       1000u

const char *peach2_dma_error_name(unsigned error)
{
    static const char *const names[] = {
#define NAME(name, value, text) [value] = text,
        PEACH2_DMA_ERRORS(NAME)
#undef NAME
    };
    return error < sizeof names / sizeof names[0] && names[error] != NULL ? names[error] : "unknown error";
}

uint64_t peach2_dmac_register(unsigned channel, unsigned reg)
{
    return PEACH2_DMAC_BASE + (uint64_t)channel * PEACH2_DMAC_STRIDE + reg;
}

// --- prepare -------------------------------------------------------------------------------------------------------

int peach2_notify_prepare(peach2_handle_t *handle, unsigned channel, const struct peach2_notify *notify,
                          uint32_t *control_out)
{
    *control_out = 0;
    if (notify == NULL) {
        return 0;
    }
    // The board reports no error for these: it would not write the word.
    if (notify->local_address % 8 != 0 || notify->remote_address % 8 != 0) {
        return -EINVAL;
    }
    if (notify->local_address != 0) {
        *control_out |= PEACH2_DMAC_CONTROL_NOTIFY_LOCAL_MASK;
        peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_NOTIFY_LOCAL), notify->local_address,
                              8);
    }
    if (notify->remote_address != 0) {
        *control_out |= PEACH2_DMAC_CONTROL_NOTIFY_REMOTE_MASK;
        peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_NOTIFY_REMOTE), notify->remote_address,
                              8);
    }
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_NOTIFY_VALUE), notify->value, 4);
    return 0;
}

void peach2_mode_prepare(peach2_handle_t *handle, unsigned channel, enum peach2_dma_mode mode, uint32_t notify_control)
{
    handle->control[channel] = PEACH2_DMAC_CONTROL_START_MASK | PEACH2_PUT(mode, DMAC_CONTROL_MODE) | notify_control;
}

int peach2_transfer_check(const struct peach2_transfer *transfer)
{
    if (!peach2_transfer_is_block(transfer)) {
        return 0;
    }
    if (transfer->width % 4 != 0 || transfer->source_pitch % 4 != 0 || transfer->destination_pitch % 4 != 0) {
        return -EINVAL;
    }
    bool fits = transfer->width <= PEACH2_DMA_WIDTH_MAX && transfer->source_pitch <= PEACH2_DMA_PITCH_MAX &&
                transfer->destination_pitch <= PEACH2_DMA_PITCH_MAX;
    return fits ? 0 : -ERANGE;
}

static void stride_prepare(peach2_handle_t *handle, unsigned channel, const struct peach2_transfer *transfer)
{
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_STRIDE_WIDTH), transfer->width, 4);
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_STRIDE_SOURCE_PITCH),
                          transfer->source_pitch, 4);
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_STRIDE_DESTINATION_PITCH),
                          transfer->destination_pitch, 4);
}

int peach2_dma_prepare(peach2_handle_t *handle, unsigned channel, const struct peach2_transfer *transfer,
                       const struct peach2_notify *notify)
{
    if (handle == NULL || channel >= PEACH2_CHANNELS || transfer == NULL) {
        return -EINVAL;
    }
    if (peach2_transfer_check(transfer) != 0) {
        return -EINVAL;
    }
    peach2_pay_call(handle);
    uint32_t control;
    int error = peach2_notify_prepare(handle, channel, notify, &control);
    if (error != 0) {
        return error;
    }
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_SOURCE), transfer->source, 8);
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_DESTINATION), transfer->destination, 8);
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_LENGTH), transfer->bytes, 4);
    if (peach2_transfer_is_block(transfer)) {
        stride_prepare(handle, channel, transfer);
        control |= PEACH2_DMAC_CONTROL_STRIDE_MASK;
    }
    if ((transfer->flags & PEACH2_TRANSFER_INTERRUPT) != 0) {
        control |= PEACH2_DMAC_CONTROL_INTERRUPT_MASK;
    }
    peach2_mode_prepare(handle, channel, PEACH2_MODE_REGISTER, control);
    return 0;
}

int peach2_dma_start(peach2_handle_t *handle, unsigned channel)
{
    if (handle == NULL || channel >= PEACH2_CHANNELS || handle->control[channel] == 0) {
        return -EINVAL;
    }
    peach2_register_write(handle, peach2_dmac_register(channel, PEACH2_DMAC_CONTROL), handle->control[channel], 4);
    return 0;
}

// --- completion ----------------------------------------------------------------------------------------------------

static int status_split(uint64_t status, unsigned *error_out)
{
    *error_out = (unsigned)PEACH2_FIELD(status, DMAC_STATUS_ERROR);
    return *error_out == PEACH2_DMA_OK ? 0 : -EREMOTEIO;
}

int peach2_wait_status(peach2_handle_t *handle, volatile uint64_t *status_word, uint64_t timeout_ns,
                       uint32_t *value_out, unsigned *error_out)
{
    const struct backend *backend = &handle->backend;
    // Every status word has DONE set, so waiting for DONE is waiting for the word.
    const uint64_t done = (uint64_t)PEACH2_DMAC_STATUS_DONE_MASK << STATUS_SHIFT;
    int error = backend->ops->wait_word(backend->ctx, status_word, done, done, timeout_ns);
    if (error != 0) {
        return error;
    }
    uint64_t word = *status_word;
    *status_word = 0;
    backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, 1);
    if (value_out != NULL) {
        *value_out = (uint32_t)word;
    }
    return status_split(word >> STATUS_SHIFT, error_out);
}

int peach2_dma_poll(peach2_handle_t *handle, unsigned channel, unsigned *error_out)
{
    if (channel >= PEACH2_CHANNELS) {
        return -EINVAL;
    }
    uint64_t status;
    int error = peach2_register_read(handle, peach2_dmac_register(channel, PEACH2_DMAC_STATUS), 4, &status);
    if (error != 0) {
        return error;
    }
    if ((status & PEACH2_DMAC_STATUS_BUSY_MASK) != 0) {
        return -EAGAIN;
    }
    return status_split(status, error_out);
}

bool peach2_poll_timer_ends(const struct backend *backend, struct peach2_poll_timer *timer)
{
    if (++timer->polls % POLLS_PER_CHECK != 0) {
        return false;
    }
    uint64_t now_ps = backend->ops->time_ps(backend->ctx);
    if (timer->polls == POLLS_PER_CHECK) {
        timer->start_ps = now_ps;
    }
    timer->waited_ns = (now_ps - timer->start_ps) / PS_PER_NS;
    return timer->timeout_ns != 0 && timer->waited_ns >= timer->timeout_ns;
}

int peach2_dma_wait(peach2_handle_t *handle, unsigned channel, unsigned *error_out)
{
    struct peach2_poll_timer timer = {.timeout_ns = PEACH2_DMA_TIMEOUT_NS};
    int error;
    do {
        error = peach2_dma_poll(handle, channel, error_out);
    } while (error == -EAGAIN && !peach2_poll_timer_ends(&handle->backend, &timer));
    return error == -EAGAIN ? -ETIMEDOUT : error;
}
