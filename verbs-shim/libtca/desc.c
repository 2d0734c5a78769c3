// Descriptors as programs fill them: lists of copies.
#include <stdlib.h>

#include "verbs-shim/libtca/internal.h"

#define FLAGS_ALL                                                                                                      \
    (tcaDMAUseInternal | tcaDMAUseNotifyInternal | tcaDMANotify | tcaDMANotifySelf | tcaDMAPipeline | tcaDMAContinue)

// --- life ----------------------------------------------------------------------------------------------------------

tcaDesc *tcaDescNew(void)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return NULL;
    }
    tcaDesc *desc = calloc(1, sizeof *desc);
    if (desc == NULL) {
        (void)tca_refuse(context, tcaErrorNoMemory, "tcaDescNew: no memory");
        return NULL;
    }
    desc->context = context;
    desc->copies_end = &desc->copies;
    desc->next = context->descs;
    context->descs = desc;
    return desc;
}

static void copies_free(tcaDesc *desc)
{
    while (desc->copies != NULL) {
        struct tca_copy *copy = desc->copies;
        desc->copies = copy->next;
        free(copy);
    }
}

void tca_descs_free(struct tca_context *context)
{
    while (context->descs != NULL) {
        tcaDesc *desc = context->descs;
        context->descs = desc->next;
        copies_free(desc);
        free(desc);
    }
}

void tca_desc_release(tcaDesc *desc)
{
    struct tca_context *context = desc->context;
    peach2_chain_destroy(desc->chain);
    desc->chain = NULL;
    if (desc->tags.address != NULL) {
        context->backend.ops->free_pinned(context->backend.ctx, &desc->tags);
    }
    tca_board_give(context, desc->board_index, desc->board_count);
    desc->board_count = 0;
    for (unsigned channel = 0; channel < tcaChannels; channel++) {
        if (tca_desc_is_set(desc, channel)) {
            context->channels[channel].desc = NULL;
        }
    }
}

bool tca_desc_is_set(const tcaDesc *desc, unsigned channel)
{
    return desc->context->channels[channel].desc == desc;
}

bool tca_desc_is_running(const tcaDesc *desc)
{
    for (unsigned channel = 0; channel < tcaChannels; channel++) {
        if (tca_desc_is_set(desc, channel) && tca_channel_is_running(desc->context, channel)) {
            return true;
        }
    }
    return false;
}

// The link in the list; NULL: the descriptor does not belong to this process.
static tcaDesc **desc_link(struct tca_context *context, const tcaDesc *desc)
{
    for (tcaDesc **link = &context->descs; *link != NULL; link = &(*link)->next) {
        if (*link == desc) {
            return link;
        }
    }
    return NULL;
}

int tca_desc_check(struct tca_context *context, const char *call, const tcaDesc *desc)
{
    if (desc == NULL || desc_link(context, desc) == NULL) {
        return tca_refuse(context, tcaErrorArgument, "%s: not a descriptor of tcaDescNew, or freed before", call);
    }
    if (tca_desc_is_running(desc)) {
        return tca_refuse(context, tcaErrorBusy, "%s: the descriptor's DMA runs: call tcaWaitDMAC first", call);
    }
    return tcaSuccess;
}

int tcaDescFree(tcaDesc *desc)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    int error = tca_desc_check(context, "tcaDescFree", desc);
    if (error != tcaSuccess) {
        return error;
    }
    tca_desc_release(desc);
    *desc_link(context, desc) = desc->next;
    copies_free(desc);
    free(desc);
    return tcaSuccess;
}

// --- adding a copy -------------------------------------------------------------------------------------------------

// Bytes from the first one to the end of the last row; false: the number overflows.
static bool extent(uint64_t width, uint64_t pitch, uint64_t count, uint64_t *bytes_out)
{
    uint64_t gaps;
    return !__builtin_mul_overflow(pitch, count - 1, &gaps) && !__builtin_add_overflow(gaps, width, bytes_out);
}

static int side_check(struct tca_context *context, const char *call, const char *role, const tcaHandle *handle,
                      uint64_t offset, uint64_t pitch, const struct tca_copy *copy)
{
    uint64_t bytes;
    if (!extent(copy->width, pitch, copy->count, &bytes) || offset > handle->size || bytes > handle->size - offset) {
        return tca_refuse(context, tcaErrorRange,
                          "%s: the copy ends beyond the %llu B of the %s: check offset, size and pitch", call,
                          (unsigned long long)handle->size, role);
    }
    return tcaSuccess;
}

static int sizes_check(struct tca_context *context, const char *call, const struct tca_copy *copy)
{
    if (copy->width == 0 || copy->count == 0 || copy->width % 4 != 0) {
        return tca_refuse(context, tcaErrorSize, "%s: %llu x %llu B: sizes and widths are multiples of 4, and not 0",
                          call, (unsigned long long)copy->count, (unsigned long long)copy->width);
    }
    if (copy->source_pitch % 4 != 0 || copy->destination_pitch % 4 != 0 ||
        (copy->count > 1 && (copy->source_pitch < copy->width || copy->destination_pitch < copy->width))) {
        return tca_refuse(context, tcaErrorSize, "%s: a pitch is a multiple of 4 B and not less than the width", call);
    }
    return tcaSuccess;
}

static int addresses_check(struct tca_context *context, const char *call, const struct tca_copy *copy)
{
    if (copy->source % 4 != 0 || copy->destination % 4 != 0) {
        return tca_refuse(context, tcaErrorAlignment, "%s: an offset is no multiple of 4", call);
    }
    if (copy->source % 16 != copy->destination % 16 ||
        (copy->count > 1 && copy->source_pitch % 16 != copy->destination_pitch % 16)) {
        return tca_refuse(context, tcaErrorAlignment,
                          "%s: source and destination differ in their low 4 address bits: shift one by %u B", call,
                          (unsigned)((copy->source - copy->destination) % 16));
    }
    return tcaSuccess;
}

static int flags_check(struct tca_context *context, const char *call, const struct tca_copy *copy, int wait_slot)
{
    if ((copy->flags & ~FLAGS_ALL) != 0) {
        return tca_refuse(context, tcaErrorArgument, "%s: unknown flags 0x%x", call,
                          (unsigned)(copy->flags & ~FLAGS_ALL));
    }
    if ((copy->flags & (tcaDMANotify | tcaDMANotifySelf)) != 0 && (wait_slot < 0 || wait_slot >= tcaSlots)) {
        return tca_refuse(context, tcaErrorSlot, "%s: slot %d: they are 0 to %d", call, wait_slot, tcaSlots - 1);
    }
    return tcaSuccess;
}

static int copy_check(struct tca_context *context, const char *call, struct tca_copy *copy, uint64_t dst_offset,
                      uint64_t src_offset, int wait_slot)
{
    int error = sizes_check(context, call, copy);
    if (error == tcaSuccess) {
        error = side_check(context, call, "destination", &copy->to, dst_offset, copy->destination_pitch, copy);
    }
    if (error == tcaSuccess) {
        error = side_check(context, call, "source", &copy->from, src_offset, copy->source_pitch, copy);
    }
    if (error != tcaSuccess) {
        return error;
    }
    copy->source = tca_handle_address(context, &copy->from, src_offset);
    copy->destination = tca_handle_address(context, &copy->to, dst_offset);
    error = addresses_check(context, call, copy);
    return error == tcaSuccess ? flags_check(context, call, copy, wait_slot) : error;
}

static int handles_check(struct tca_context *context, const char *call, const tcaHandle *dst, const tcaHandle *src)
{
    int error = tca_handle_check_any(context, call, "destination", dst);
    return error == tcaSuccess ? tca_handle_check_local(context, call, "source", src) : error;
}

int tca_copy_resolve(struct tca_context *context, const char *call, struct tca_copy *copy, const tcaHandle *dst,
                     uint64_t dst_offset, const tcaHandle *src, uint64_t src_offset, int wait_slot)
{
    int error = handles_check(context, call, dst, src);
    if (error != tcaSuccess) {
        return error;
    }
    copy->to = *dst;
    copy->from = *src;
    copy->slot = (uint32_t)wait_slot;
    return copy_check(context, call, copy, dst_offset, src_offset, wait_slot);
}

int tca_desc_add(tcaDesc *desc, const char *call, const struct tca_copy *copy)
{
    struct tca_context *context = desc->context;
    if (desc->copies != NULL && ((desc->copies->flags ^ copy->flags) & tcaDMAUseInternal) != 0) {
        return tca_refuse(context, tcaErrorArgument,
                          "%s: all copies of a descriptor have tcaDMAUseInternal, or none: use two descriptors", call);
    }
    struct tca_copy *added = malloc(sizeof *added);
    if (added == NULL) {
        return tca_refuse(context, tcaErrorNoMemory, "%s: no memory for a copy", call);
    }
    *added = *copy;
    added->next = NULL;
    tca_desc_release(desc);
    *desc->copies_end = added;
    desc->copies_end = &added->next;
    if ((copy->flags & (tcaDMANotify | tcaDMANotifySelf)) != 0) {
        context->notify_internal = (copy->flags & tcaDMAUseNotifyInternal) != 0;
    }
    context->backend.ops->cost(context->backend.ctx, BACKEND_COST_CALL, 1);
    return tcaSuccess;
}

static int copy_set(const char *call, tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, const tcaHandle *src,
                    size_t src_offset, struct tca_copy *copy, int wait_slot)
{
    struct tca_context *context = tca_context_current();
    if (context == NULL) {
        return tcaErrorNotInitialized;
    }
    int error = tca_desc_check(context, call, desc);
    if (error == tcaSuccess) {
        error = tca_copy_resolve(context, call, copy, dst, dst_offset, src, src_offset, wait_slot);
    }
    return error == tcaSuccess ? tca_desc_add(desc, call, copy) : error;
}

int tcaDescSetMemcpy(tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, const tcaHandle *src, size_t src_offset,
                     size_t size, int flags, int wait_slot, uint32_t wait_tag)
{
    struct tca_copy copy = {.width = size, .count = 1, .flags = flags, .tag = wait_tag};
    return copy_set("tcaDescSetMemcpy", desc, dst, dst_offset, src, src_offset, &copy, wait_slot);
}

int tcaDescSetMemcpy2D(tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, size_t dst_pitch, const tcaHandle *src,
                       size_t src_offset, size_t src_pitch, size_t width, size_t count, int flags, int wait_slot,
                       uint32_t wait_tag)
{
    struct tca_copy copy = {.width = width,
                            .count = count,
                            .source_pitch = src_pitch,
                            .destination_pitch = dst_pitch,
                            .flags = flags,
                            .tag = wait_tag};
    return copy_set("tcaDescSetMemcpy2D", desc, dst, dst_offset, src, src_offset, &copy, wait_slot);
}
