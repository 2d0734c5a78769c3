#include "verbs-shim/peach2/peach2_proxy.h"

#include <errno.h>
#include <stdlib.h>

#include "rtl/peach2_regs.h"
#include "verbs-shim/peach2/peach2_internal.h"

#define INTERRUPT_REQUEST 0x100u
#define INTERRUPT_STOP    0x200u

// One write-combining line, so that it arrives as one write. `sequence` is last and shows that the request is complete.
struct request {
    uint64_t source;      // bus address of the owner
    uint64_t destination; // window addresses of the requester
    uint64_t completion;
    uint32_t bytes;
    uint32_t node;
    uint64_t reserved[3];
    uint64_t sequence; // from 1
};
_Static_assert(sizeof(struct request) == 64, "a request is one line");

struct ring {
    struct request requests[PEACH2_PROXY_REQUESTS];
};

// --- the owner -----------------------------------------------------------------------------------------------------

struct peach2_proxy {
    peach2_handle_t *handle;
    unsigned channel;
    struct backend_buffer rings; // one for each node
    uint64_t served[PEACH2_NODES_MAX];
};

int peach2_proxy_create(peach2_handle_t *handle, unsigned channel, peach2_proxy_t **proxy_out)
{
    if (handle == NULL || channel >= PEACH2_CHANNELS || proxy_out == NULL) {
        return -EINVAL;
    }
    peach2_proxy_t *proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL) {
        return -ENOMEM;
    }
    *proxy = (peach2_proxy_t){.handle = handle, .channel = channel};
    const struct backend *backend = &handle->backend;
    int error = backend->ops->alloc_pinned(backend->ctx, PEACH2_NODES_MAX * sizeof(struct ring), &proxy->rings);
    if (error != 0) {
        free(proxy);
        return error;
    }
    *proxy_out = proxy;
    return 0;
}

void peach2_proxy_destroy(peach2_proxy_t *proxy)
{
    if (proxy == NULL) {
        return;
    }
    const struct backend *backend = &proxy->handle->backend;
    backend->ops->free_pinned(backend->ctx, &proxy->rings);
    free(proxy);
}

struct peach2_proxy_address peach2_proxy_address(const peach2_proxy_t *proxy)
{
    return (struct peach2_proxy_address){.ring = proxy->rings.bus_address, .node = proxy->handle->routing.node};
}

// The board notifies the requester itself unless the DMA failed.
static int answer(peach2_proxy_t *proxy, const struct request *request)
{
    const struct peach2_transfer transfer = {
        .source = request->source, .destination = request->destination, .bytes = request->bytes};
    const struct peach2_notify notify = {.remote_address = request->completion, .value = (uint32_t)request->sequence};
    unsigned dma_error = PEACH2_DMA_OK;
    int error = peach2_dma_prepare(proxy->handle, proxy->channel, &transfer, &notify);
    if (error == 0) {
        error = peach2_dma_start(proxy->handle, proxy->channel);
    }
    if (error == 0) {
        error = peach2_dma_wait(proxy->handle, proxy->channel, &dma_error);
    }
    if (error != -EREMOTEIO) {
        return error;
    }
    uint64_t status = PEACH2_DMAC_STATUS_DONE_MASK | dma_error << PEACH2_DMAC_STATUS_ERROR_LSB;
    uint64_t word = status << 32 | (uint32_t)request->sequence;
    return peach2_pio_write(proxy->handle, request->completion, &word, sizeof word);
}

static int ring_serve(peach2_proxy_t *proxy, uint32_t node)
{
    struct ring *ring = (struct ring *)proxy->rings.address + node;
    const struct backend *backend = &proxy->handle->backend;
    for (;;) {
        const struct request *request = &ring->requests[proxy->served[node] % PEACH2_PROXY_REQUESTS];
        backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, 1);
        if (*(const volatile uint64_t *)&request->sequence != proxy->served[node] + 1) {
            return 0;
        }
        struct request taken = *request;
        backend->ops->cost(backend->ctx, BACKEND_COST_LOAD_STORE, sizeof taken / 8);
        proxy->served[node]++;
        int error = answer(proxy, &taken);
        if (error != 0) {
            return error;
        }
    }
}

int peach2_proxy_serve(peach2_proxy_t *proxy)
{
    int error = peach2_interrupt_enable(proxy->handle, INTERRUPT_REQUEST | INTERRUPT_STOP);
    uint32_t pending = 0;
    // Requests may have come before interrupts were enabled: the first round waits for none.
    while (error == 0) {
        for (uint32_t node = 0; error == 0 && node < proxy->handle->routing.node_count; node++) {
            error = ring_serve(proxy, node);
        }
        if (error != 0 || (pending & INTERRUPT_STOP) != 0) {
            break;
        }
        error = peach2_interrupt_wait(proxy->handle, 0, &pending);
    }
    return error;
}

int peach2_proxy_stop(peach2_handle_t *handle, uint32_t node)
{
    return peach2_interrupt_raise(handle, node, INTERRUPT_STOP);
}

// --- the requester -------------------------------------------------------------------------------------------------

struct peach2_reader {
    peach2_handle_t *handle;
    struct peach2_reader *next; // link of the handle's list
    struct peach2_proxy_address address;
    struct backend_buffer completions; // a word for each entry of the ring
    uint64_t started, finished;
};

int peach2_reader_create(peach2_handle_t *handle, const struct peach2_proxy_address *address,
                         peach2_reader_t **reader_out)
{
    if (handle == NULL || address == NULL || reader_out == NULL || address->node >= handle->routing.node_count ||
        address->ring % sizeof(struct request) != 0) {
        return -EINVAL;
    }
    peach2_reader_t *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return -ENOMEM;
    }
    *reader = (peach2_reader_t){.handle = handle, .address = *address};
    const struct backend *backend = &handle->backend;
    int error =
        backend->ops->alloc_pinned(backend->ctx, PEACH2_PROXY_REQUESTS * sizeof(uint64_t), &reader->completions);
    if (error != 0) {
        free(reader);
        return error;
    }
    reader->next = handle->readers;
    handle->readers = reader;
    *reader_out = reader;
    return 0;
}

void peach2_reader_destroy(peach2_reader_t *reader)
{
    if (reader == NULL) {
        return;
    }
    const struct backend *backend = &reader->handle->backend;
    struct peach2_reader **link = &reader->handle->readers;
    while (*link != reader) {
        link = &(*link)->next;
    }
    *link = reader->next;
    backend->ops->free_pinned(backend->ctx, &reader->completions);
    free(reader);
}

void peach2_readers_destroy(peach2_handle_t *handle)
{
    while (handle->readers != NULL) {
        peach2_reader_destroy(handle->readers);
    }
}

int peach2_reader_start(peach2_reader_t *reader, uint64_t source, uint64_t destination, uint32_t bytes)
{
    peach2_handle_t *handle = reader->handle;
    if (reader->started - reader->finished == PEACH2_PROXY_REQUESTS) {
        return -EAGAIN;
    }
    uint32_t node = handle->routing.node;
    uint64_t entry = reader->started % PEACH2_PROXY_REQUESTS;
    const struct request request = {
        .source = source,
        .destination = peach2_window_address(handle, node, destination),
        .completion = peach2_window_address(handle, node, reader->completions.bus_address + entry * sizeof(uint64_t)),
        .bytes = bytes,
        .node = node,
        .sequence = reader->started + 1,
    };
    uint64_t address = reader->address.ring + node * sizeof(struct ring) + entry * sizeof request;
    peach2_pay_call(handle);
    int error = peach2_pio_write(handle, peach2_window_address(handle, reader->address.node, address), &request,
                                 sizeof request);
    if (error == 0) {
        error = peach2_interrupt_raise(handle, reader->address.node, INTERRUPT_REQUEST);
    }
    reader->started += error == 0;
    return error;
}

int peach2_reader_wait(peach2_reader_t *reader, uint64_t timeout_ns, unsigned *error_out)
{
    if (reader->started == reader->finished) {
        return -EINVAL;
    }
    volatile uint64_t *word =
        (volatile uint64_t *)reader->completions.address + reader->finished % PEACH2_PROXY_REQUESTS;
    uint64_t limit_ns = timeout_ns != 0 ? timeout_ns : PEACH2_DMA_TIMEOUT_NS;
    int error = peach2_wait_status(reader->handle, word, limit_ns, NULL, error_out);
    reader->finished += error != -ETIMEDOUT;
    return error;
}
