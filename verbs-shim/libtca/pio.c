// Stores of the processor into memory of any node (tca-api.h).
#include "verbs-shim/libtca/internal.h"
#include "verbs-shim/libtca/tca-api.h"

tcaresult tcaSetPIORegion(tcaPIOHandle *pio, const tcaHandle *handle, size_t offset, size_t size)
{
    static const char call[] = "tcaSetPIORegion", role[] = "memory that is written";
    struct tca_context *context = tca_context_current();
    (void)size;
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    if (pio == NULL) {
        return tca_refuse(context, tcaErrorArgument, "%s: the region is null", call);
    }
    int error = tca_handle_check_any(context, call, role, handle);
    if (error != tcaSuccess) {
        return error;
    }
    if (offset > handle->size) {
        return tca_refuse(context, tcaErrorRange, "%s: byte %zu lies beyond the %llu B of the handle", call, offset,
                          (unsigned long long)handle->size);
    }
    *pio = (tcaPIOHandle){tca_handle_window(context, handle, offset), handle->size - offset};
    return tcaSuccess;
}

tcaresult tcaSendPIO(const tcaPIOHandle *pio, size_t offset, const void *data, size_t bytes)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    if (pio == NULL || (data == NULL && bytes != 0)) {
        return tca_refuse(context, tcaErrorArgument, "tcaSendPIO: the region or the data is null");
    }
    if (offset > pio->size || bytes > pio->size - offset) {
        return tca_refuse(context, tcaErrorRange, "tcaSendPIO: %zu B at byte %zu end beyond the %llu B of the memory",
                          bytes, offset, (unsigned long long)pio->size);
    }
    if (peach2_pio_write(context->board, pio->windowAddress + offset, data, bytes) != 0) {
        return tca_refuse(context, tcaErrorHandle, "tcaSendPIO: not a region of tcaSetPIORegion");
    }
    return tcaSuccess;
}

tcaresult tcaSendPIOCommit(void)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    context->backend.ops->fence(context->backend.ctx);
    return tcaSuccess;
}
