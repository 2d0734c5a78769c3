// Handles: memory of any node as plain bytes.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/libtca/internal.h"

#define HANDLE_MAGIC 0x54434168u

// FNV-1a.
static uint32_t checksum(const tcaHandle *handle)
{
    const uint8_t *bytes = (const uint8_t *)handle;
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < offsetof(tcaHandle, check); i++) {
        sum = (sum ^ bytes[i]) * 16777619u;
    }
    return sum;
}

// --- checks --------------------------------------------------------------------------------------------------------

int tca_handle_check(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle)
{
    if (handle == NULL) {
        return tca_refuse(context, tcaErrorArgument, "%s: the handle of the %s is null", call, role);
    }
    if (handle->magic != HANDLE_MAGIC) {
        return tca_refuse(context, tcaErrorHandle,
                          "%s: the %s is not a handle: make it with tcaCreateHandle and pass all its bytes on", call,
                          role);
    }
    if (handle->bytes != sizeof *handle) {
        return tca_refuse(context, tcaErrorHandle,
                          "%s: the handle of the %s has %u B, not %zu B: build all programs with the same library",
                          call, role, handle->bytes, sizeof *handle);
    }
    if (handle->check != checksum(handle) || handle->node >= peach2_node_count(context->board)) {
        return tca_refuse(context, tcaErrorHandle,
                          "%s: the handle of the %s was changed on its way: pass all its bytes on unchanged", call,
                          role);
    }
    return tcaSuccess;
}

int tca_handle_check_any(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle)
{
    int error = tca_handle_check(context, call, role, handle);
    if (error == tcaSuccess && handle->node == peach2_node(context->board) && handle->size != 0 &&
        tca_allocation_find(context, handle->allocation) == NULL) {
        return tca_refuse(context, tcaErrorFreed, "%s: the memory of the %s was freed: make a new handle", call, role);
    }
    return error;
}

int tca_handle_check_local(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle)
{
    int error = tca_handle_check_any(context, call, role, handle);
    if (error == tcaSuccess && handle->node != peach2_node(context->board)) {
        return tca_refuse(context, tcaErrorNotLocal,
                          "%s: the %s lies in node %u, this is node %u: the call takes memory of the own node", call,
                          role, handle->node, peach2_node(context->board));
    }
    return error;
}

uint64_t tca_handle_address(const struct tca_context *context, const tcaHandle *handle, uint64_t offset)
{
    return handle->node == peach2_node(context->board) ? handle->busAddress + offset
                                                       : tca_handle_window(context, handle, offset);
}

uint64_t tca_handle_window(const struct tca_context *context, const tcaHandle *handle, uint64_t offset)
{
    return handle->type == tcaMemoryGPU
               ? peach2_gpu_window_address(context->board, handle->node, handle->gpu, handle->blockOffset + offset)
               : peach2_window_address(context->board, handle->node, handle->blockOffset + offset);
}

// --- creation ------------------------------------------------------------------------------------------------------

static int cpu_find(struct tca_context *context, const char *call, void *ptr, size_t size,
                    const struct tca_allocation **allocation_out)
{
    const struct tca_allocation *allocation = tca_allocation_around(context, ptr, tcaMemoryCPU);
    if (allocation == NULL || allocation->borrowed) {
        return tca_host_borrow(context, call, ptr, size, allocation_out);
    }
    size_t offset = (uintptr_t)ptr - (uintptr_t)allocation->address;
    if (size == 0 || size > allocation->size - offset) {
        return tca_refuse(context, tcaErrorRange, "%s: %zu B from byte %zu on do not lie in an allocation of %zu B",
                          call, size, offset, allocation->size);
    }
    *allocation_out = allocation;
    return tcaSuccess;
}

// Sets the fields that are the same in all handles of this process.
static void handle_seal(const struct tca_context *context, tcaHandle *handle)
{
    handle->magic = HANDLE_MAGIC;
    handle->bytes = sizeof *handle;
    handle->node = (uint8_t)peach2_node(context->board);
    handle->slotsAddress = context->inbox.slots.bus_address;
    handle->check = checksum(handle);
}

// A handle of no memory.
static void handle_make_empty(const struct tca_context *context, tcaHandle *handle, tcaMemoryType type)
{
    *handle = (tcaHandle){.type = (uint8_t)type};
    handle_seal(context, handle);
}

static int handle_make(struct tca_context *context, const char *call, tcaHandle *handle, void *ptr, size_t size,
                       tcaMemoryType type)
{
    const struct tca_allocation *allocation;
    if ((uintptr_t)ptr % 4 != 0) {
        return tca_refuse(context, tcaErrorAlignment, "%s: the address is no multiple of 4", call);
    }
    int error = type == tcaMemoryGPU ? tca_gpu_borrow(context, call, ptr, size, &allocation)
                                     : cpu_find(context, call, ptr, size, &allocation);
    if (error != tcaSuccess) {
        return error;
    }
    const struct cuda_pin *pin = allocation->pin;
    uint64_t offset = pin != NULL ? cuda_pin_offset(pin, ptr) : (uintptr_t)ptr - (uintptr_t)allocation->address;
    uint64_t bus_address = (pin != NULL ? pin->bus_address : allocation->bus_address) + offset;
    *handle = (tcaHandle){
        .type = (uint8_t)type,
        .busAddress = bus_address,
        .blockOffset = pin != NULL ? pin->bar_offset + offset : bus_address,
        .size = size,
        .allocation = allocation->number,
        .gpu = pin != NULL ? pin->gpu : 0,
    };
    handle_seal(context, handle);
    return tcaSuccess;
}

int tcaCreateHandle(tcaHandle *handle, void *ptr, size_t size, tcaMemoryType type)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    if (handle != NULL && ptr == NULL && size == 0 && type == tcaMemoryGPU) { // tcaMalloc returns NULL for no bytes
        handle_make_empty(context, handle, type);
        return tcaSuccess;
    }
    if (handle == NULL || ptr == NULL || (type != tcaMemoryCPU && type != tcaMemoryGPU)) {
        return tca_refuse(context, tcaErrorArgument, "tcaCreateHandle: handle or memory is null, or of no known kind");
    }
    return handle_make(context, "tcaCreateHandle", handle, ptr, size, type);
}

static tcaMemoryType type_of(const void *ptr)
{
    struct cuda_tokens tokens;
    return cuda_tokens_of(ptr, &tokens) ? tcaMemoryGPU : tcaMemoryCPU;
}

// What a rank sends to the others: its handle, or why it has none.
struct message {
    tcaHandle handle;
    int64_t error;
};

static int messages_check(struct tca_context *context, const struct message *messages, int nranks)
{
    for (int i = 0; i < nranks; i++) {
        int error = (int)messages[i].error;
        if (error == tcaSuccess) {
            continue;
        }
        // The rank keeps its own message.
        return i == context->comm.rank
                   ? error
                   : tca_refuse(context, error, "tcaCreateHandleList: rank %d: %s", i, tcaStrError(error));
    }
    return tcaSuccess;
}

// Gathers the messages of the first nranks ranks.
static int messages_gather(struct tca_context *context, const struct message *mine, struct message *messages,
                           int nranks)
{
    const struct tcaComm *comm = &context->comm;
    struct message all[tcaNodesMax];
    int error;
    if (nranks < comm->ranks && context->comm_is_environments) {
        error = tca_gather_of_environment(mine, messages, sizeof *mine, nranks);
    } else {
        error = comm->allgather(comm->ctx, mine, all, sizeof *mine);
        if (error == 0) {
            memcpy(messages, all, (size_t)nranks * sizeof *mine);
        }
    }
    if (error != 0) {
        return tca_refuse(context, tcaErrorComm, "tcaCreateHandleList: the ranks could not exchange their handles");
    }
    return messages_check(context, messages, nranks);
}

static int list_check(struct tca_context *context, tcaHandle **list, int nranks)
{
    struct tcaComm given;
    if (context->comm.allgather == NULL && tca_comm_of_environment != NULL && tca_comm_of_environment(&given)) {
        context->comm = given; // there may be more ranks than nodes in a sub-cluster
        context->comm_is_environments = true;
    }
    if (nranks < 1 || nranks > tcaNodesMax) {
        return tca_refuse(context, tcaErrorNodes, "tcaCreateHandleList: %d ranks: a sub-cluster has at most %d nodes",
                          nranks, tcaNodesMax);
    }
    if (context->comm.allgather == NULL) {
        return tca_refuse(context, tcaErrorComm, "tcaCreateHandleList: call tcaSetComm first");
    }
    if (nranks > context->comm.ranks) {
        return tca_refuse(context, tcaErrorNodes, "tcaCreateHandleList: %d handles for %d ranks", nranks,
                          context->comm.ranks);
    }
    if (list == NULL) {
        return tca_refuse(context, tcaErrorArgument, "tcaCreateHandleList: list is null");
    }
    return tcaSuccess;
}

int tcaCreateHandleList(tcaHandle **list, int nranks, void *ptr, size_t size)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    int error = list_check(context, list, nranks);
    if (error != tcaSuccess) {
        return error;
    }
    // On the stack until the exchange is over: a process that ends during the exchange leaks nothing.
    struct message messages[tcaNodesMax], mine = {0};
    if (ptr == NULL && size == 0) {
        handle_make_empty(context, &mine.handle, tcaMemoryGPU);
    } else if (context->comm.rank < nranks) {
        mine.error = handle_make(context, "tcaCreateHandleList", &mine.handle, ptr, size, type_of(ptr));
    }
    error = messages_gather(context, &mine, messages, nranks);
    if (error != tcaSuccess) {
        return error;
    }
    tcaHandle *handles = malloc((size_t)nranks * sizeof *handles);
    if (handles == NULL) {
        return tca_refuse(context, tcaErrorNoMemory, "tcaCreateHandleList: no memory");
    }
    for (int i = 0; i < nranks; i++) {
        handles[i] = messages[i].handle;
    }
    *list = handles;
    return tcaSuccess;
}
