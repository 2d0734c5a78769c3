// Global addresses and registered regions, as the program sees them.
#include "verbs-shim/acp/internal.h"

acp_ga_t acpb_address(uint32_t rank, uint32_t color, uint32_t tag, uint64_t offset)
{
    return (((uint64_t)(rank + 1) << 1 | color) << ACPB_TAG_BITS | tag) << ACPB_OFFSET_BITS | offset;
}

const struct acpb_region *acpb_region_find(const struct acpb_process *process, acp_ga_t ga, uint64_t bytes)
{
    const struct acpb_region *region = &process->regions[acpb_tag_of(ga)];
    uint64_t offset = acpb_offset_of(ga);
    bool own = acpb_is_address(process, ga) && acpb_is_own(process, ga) && acpb_color_of(ga) == region->color;
    return own && offset <= region->bytes && bytes <= region->bytes - offset && region->bytes != 0 ? region : NULL;
}

acp_ga_t acp_query_starter_ga(int rank)
{
    const struct acpb_process *process = acpb_current();
    bool exists = process != NULL && rank >= 0 && (uint32_t)rank < process->ranks;
    return exists ? acpb_address((uint32_t)rank, 0, ACPB_TAG_STARTER, 0) : ACP_GA_NULL;
}

acp_atkey_t acp_register_memory(void *address, size_t bytes, int color)
{
    struct acpb_process *process = acpb_current();
    if (process == NULL || address == NULL || bytes == 0 || bytes > ACPB_OFFSET_MASK + 1 || color < 0 || color > 1) {
        return ACP_ATKEY_NULL;
    }
    struct acpb_request *request = &process->request;
    request->address = address;
    request->bytes = bytes;
    request->color = (uint32_t)color;
    return acpb_request_wait(process, ACPB_CALL_REGISTER) == 0
               ? acpb_address(process->rank, request->color, request->tag, 0)
               : ACP_ATKEY_NULL;
}

int acp_unregister_memory(acp_atkey_t atkey)
{
    struct acpb_process *process = acpb_current();
    if (process == NULL || acpb_offset_of(atkey) != 0 || acpb_tag_of(atkey) == ACPB_TAG_STARTER ||
        acpb_region_find(process, atkey, 1) == NULL) {
        return -1;
    }
    process->request.tag = acpb_tag_of(atkey);
    return acpb_request_wait(process, ACPB_CALL_UNREGISTER) == 0 ? 0 : -1;
}

acp_ga_t acp_query_ga(acp_atkey_t atkey, void *address)
{
    const struct acpb_process *process = acpb_current();
    const struct acpb_region *region =
        process != NULL && acpb_offset_of(atkey) == 0 ? acpb_region_find(process, atkey, 1) : NULL;
    uint64_t offset = region != NULL ? (uintptr_t)address - region->address : 0;
    return region != NULL && offset < region->bytes ? atkey + offset : ACP_GA_NULL;
}

void *acp_query_address(acp_ga_t ga)
{
    const struct acpb_process *process = acpb_current();
    const struct acpb_region *region = process != NULL ? acpb_region_find(process, ga, 1) : NULL;
    return region != NULL ? (void *)(uintptr_t)(region->address + acpb_offset_of(ga)) : NULL;
}

int acp_query_rank(acp_ga_t ga)
{
    const struct acpb_process *process = acpb_current();
    return process != NULL && acpb_is_address(process, ga) ? (int)acpb_rank_of(ga) : -1;
}

int acp_query_color(acp_ga_t ga)
{
    const struct acpb_process *process = acpb_current();
    return process != NULL && acpb_is_address(process, ga) ? (int)acpb_color_of(ga) : -1;
}

int acp_colors(void)
{
    return acpb_current() != NULL ? 2 : -1;
}
