// Protection domains and memory regions: the accesses that a key allows, and the bus memory of a range.
#include <stdlib.h>
#include <string.h>

#include "models/hca/internal.h"

bool hca_pd_valid(const hca_t *hca, uint32_t pdn)
{
    return pdn < hca->pd_capacity && hca->pds[pdn].used;
}

enum sim_status hca_cmd_pd_create(hca_t *hca, struct hca_command *command)
{
    uint32_t pdn = 0;
    while (hca_pd_valid(hca, pdn)) {
        pdn++;
    }
    struct hca_pd *pds =
        pdn >= hca->config.max_pd ? NULL : hca_table_grown(hca->pds, &hca->pd_capacity, pdn, sizeof *pds);
    if (pds == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    hca->pds = pds;
    pds[pdn].used = true;
    command->number = pdn;
    return SIM_OK;
}

bool hca_xrcd_valid(const hca_t *hca, uint32_t xrcdn)
{
    return xrcdn != HCA_NO_XRCD && xrcdn < hca->xrcd_capacity && hca->xrcds[xrcdn].used;
}

enum sim_status hca_cmd_xrcd_create(hca_t *hca, struct hca_command *command)
{
    uint32_t xrcdn = HCA_NO_XRCD + 1;
    while (hca_xrcd_valid(hca, xrcdn)) {
        xrcdn++;
    }
    struct hca_pd *xrcds =
        xrcdn > hca->config.max_pd ? NULL : hca_table_grown(hca->xrcds, &hca->xrcd_capacity, xrcdn, sizeof *xrcds);
    if (xrcds == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    hca->xrcds = xrcds;
    xrcds[xrcdn].used = true;
    command->number = xrcdn;
    return SIM_OK;
}

enum sim_status hca_cmd_xrcd_destroy(hca_t *hca, struct hca_command *command)
{
    if (!hca_xrcd_valid(hca, command->number)) {
        return SIM_ERR_INVALID;
    }
    if (hca->xrcds[command->number].users > 0) {
        return SIM_ERR_BUSY;
    }
    hca->xrcds[command->number].used = false;
    return SIM_OK;
}

enum sim_status hca_cmd_pd_destroy(hca_t *hca, struct hca_command *command)
{
    if (!hca_pd_valid(hca, command->number)) {
        return SIM_ERR_INVALID;
    }
    if (hca->pds[command->number].users > 0) {
        return SIM_ERR_BUSY;
    }
    hca->pds[command->number].used = false;
    return SIM_OK;
}

// --- regions -------------------------------------------------------------------------------------------------------

static uint32_t page_count(const struct hca_mr_init *init)
{
    uint64_t first = init->iova / init->page_bytes, last = (init->iova + init->bytes - 1) / init->page_bytes;
    return (uint32_t)(last - first + 1);
}

static bool init_valid(const hca_t *hca, const struct hca_mr_init *init)
{
    bool power = init->page_bytes >= 4096 && (init->page_bytes & (init->page_bytes - 1)) == 0;
    // 10.6.6.3.1: remote writes and remote atomics require the right of local write.
    bool rights = (init->access & (HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC)) == 0 || (init->access & HCA_LOCAL_WRITE) != 0;
    return power && rights && init->bytes > 0 && init->iova <= UINT64_MAX - init->bytes && hca_pd_valid(hca, init->pdn);
}

enum sim_status hca_cmd_mr_register(hca_t *hca, struct hca_command *command)
{
    const struct hca_mr_init *init = &command->mr_register;
    if (!init_valid(hca, init)) {
        return SIM_ERR_INVALID;
    }
    if (hca->mr_count == hca->config.max_mr) {
        return SIM_ERR_NO_MEMORY;
    }
    while (hca->mr_next < hca->mr_capacity && hca->mrs[hca->mr_next].used) {
        hca->mr_next = (hca->mr_next + 1) % hca->config.max_mr;
    }
    struct hca_mr *mrs = hca_table_grown(hca->mrs, &hca->mr_capacity, hca->mr_next, sizeof *mrs);
    if (mrs == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    hca->mrs = mrs;
    struct hca_mr *mr = &mrs[hca->mr_next];
    uint32_t count = page_count(init);
    uint64_t *pages = malloc(count * sizeof *pages);
    if (pages == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    memcpy(pages, init->pages, count * sizeof *pages);
    uint32_t variant = (mr->key >> HCA_KEY_INDEX_BITS) + 1; // of the previous region with this index
    *mr = (struct hca_mr){.key = hca->mr_next | variant << HCA_KEY_INDEX_BITS,
                          .pdn = init->pdn,
                          .access = init->access,
                          .page_shift = (uint32_t)__builtin_ctz(init->page_bytes),
                          .iova = init->iova,
                          .bytes = init->bytes,
                          .pages = pages,
                          .used = true};
    hca->mr_next = (hca->mr_next + 1) % hca->config.max_mr;
    hca->mr_count++;
    hca->pds[init->pdn].users++;
    command->number = mr->key;
    return SIM_OK;
}

static struct hca_mr *mr_find(const hca_t *hca, uint32_t key)
{
    uint32_t index = key & ((1u << HCA_KEY_INDEX_BITS) - 1);
    struct hca_mr *mr = index < hca->mr_capacity ? &hca->mrs[index] : NULL;
    return mr != NULL && mr->used && mr->key == key ? mr : NULL;
}

enum sim_status hca_cmd_mr_deregister(hca_t *hca, struct hca_command *command)
{
    struct hca_mr *mr = mr_find(hca, command->number);
    if (mr == NULL) {
        return SIM_ERR_INVALID;
    }
    free(mr->pages);
    mr->pages = NULL;
    mr->used = false;
    hca->mr_count--;
    hca->pds[mr->pdn].users--;
    return SIM_OK;
}

enum hca_fault hca_mr_fault(const hca_t *hca, uint32_t key, uint32_t pdn, uint32_t access, uint64_t address,
                            uint64_t bytes)
{
    const struct hca_mr *mr = mr_find(hca, key);
    if (mr == NULL) {
        return HCA_FAULT_KEY;
    }
    if (mr->pdn != pdn) {
        return HCA_FAULT_DOMAIN;
    }
    if ((mr->access & access) != access) {
        return HCA_FAULT_RIGHTS;
    }
    bool inside = address >= mr->iova && bytes <= mr->bytes && address - mr->iova <= mr->bytes - bytes;
    return inside ? HCA_FAULT_NONE : HCA_FAULT_RANGE;
}

const struct hca_mr *hca_mr_check(const hca_t *hca, uint32_t key, uint32_t pdn, uint32_t access, uint64_t address,
                                  uint64_t bytes)
{
    return hca_mr_fault(hca, key, pdn, access, address, bytes) == HCA_FAULT_NONE ? mr_find(hca, key) : NULL;
}

unsigned hca_mr_pieces(const struct hca_mr *mr, uint64_t address, uint32_t bytes, struct hca_piece *pieces,
                       unsigned count, unsigned max)
{
    uint64_t page_bytes = UINT64_C(1) << mr->page_shift, first_page = mr->iova >> mr->page_shift;
    while (bytes > 0) {
        uint64_t within = address & (page_bytes - 1);
        uint64_t room = page_bytes - within;
        uint32_t part = bytes < room ? bytes : (uint32_t)room;
        uint64_t bus = mr->pages[(address >> mr->page_shift) - first_page] + within;
        if (count > 0 && pieces[count - 1].bus + pieces[count - 1].bytes == bus) {
            pieces[count - 1].bytes += part;
        } else if (count < max) {
            pieces[count++] = (struct hca_piece){bus, part};
        } else {
            sim_panic("hca", "a packet of more than %u pieces", max); // HCA_SEGMENTS_MAX and the MTU bound them
        }
        address += part;
        bytes -= part;
    }
    return count;
}

uint64_t hca_segments_bytes(const struct hca_wqe_data *segments, unsigned count)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        bytes += segments[i].bytes;
    }
    return bytes;
}

bool hca_segments_pieces(const hca_t *hca, uint32_t pdn, uint32_t access, const struct hca_wqe_data *segments,
                         unsigned segment_count, uint32_t offset, uint32_t bytes, struct hca_piece *pieces,
                         unsigned *count_out, unsigned max)
{
    unsigned count = 0;
    for (unsigned i = 0; i < segment_count && bytes > 0; i++) {
        const struct hca_wqe_data *segment = &segments[i];
        if (offset >= segment->bytes) {
            offset -= segment->bytes;
            continue;
        }
        uint32_t part = segment->bytes - offset < bytes ? segment->bytes - offset : bytes;
        uint64_t address = segment->address + offset;
        const struct hca_mr *mr = hca_mr_check(hca, segment->lkey, pdn, access, address, part);
        if (mr == NULL) {
            return false;
        }
        count = hca_mr_pieces(mr, address, part, pieces, count, max);
        bytes -= part;
        offset = 0;
    }
    *count_out = count;
    return bytes == 0;
}

enum hca_fault hca_segments_fault(const hca_t *hca, uint32_t pdn, uint32_t access, const struct hca_wqe_data *segments,
                                  unsigned segment_count, uint32_t offset, uint32_t bytes)
{
    for (unsigned i = 0; i < segment_count && bytes > 0; i++) {
        uint32_t before = offset < segments[i].bytes ? offset : segments[i].bytes;
        uint32_t left = segments[i].bytes - before, part = left < bytes ? left : bytes;
        enum hca_fault fault =
            part > 0 ? hca_mr_fault(hca, segments[i].lkey, pdn, access, segments[i].address + before, part)
                     : HCA_FAULT_NONE;
        if (fault != HCA_FAULT_NONE) {
            return fault;
        }
        offset -= before;
        bytes -= part;
    }
    return bytes > 0 ? HCA_FAULT_RANGE : HCA_FAULT_NONE;
}
