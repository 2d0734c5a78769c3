// Making and reading TLPs: lengths, byte enables, completions.
#include "models/pcie/tlp.h"

#include <string.h>

#include "models/pcie/pool.h"

// Framing 2 (STP, END), sequence number 2, LCRC 4 (clauses 3.5.2, 4.2.2; Gen3 moves bytes between the first two but
// keeps their sum), and the header of 4 DWs, or 3 DWs for a completion (clause 2.2.1).
enum { LINK_BYTES = 8, REQUEST_HEADER_BYTES = 16, COMPLETION_HEADER_BYTES = 12 };
enum { PAGE_BYTES = 4096 }; // no request crosses one (clause 2.2.7)

static const char *const KIND_NAMES[] = {
    [PCIE_TLP_MRD] = "MRd", [PCIE_TLP_MWR] = "MWr", [PCIE_TLP_CPL] = "Cpl", [PCIE_TLP_CPLD] = "CplD"};

const char *pcie_tlp_kind_name(enum pcie_tlp_kind kind)
{
    return KIND_NAMES[kind];
}

uint32_t pcie_tlp_wire_bytes(const pcie_tlp_t *tlp)
{
    bool completion = pcie_tlp_class(tlp) == PCIE_COMPLETION;
    return LINK_BYTES + (completion ? COMPLETION_HEADER_BYTES : REQUEST_HEADER_BYTES) + pcie_tlp_payload_bytes(tlp);
}

uint8_t *pcie_tlp_data(pcie_tlp_t *tlp)
{
    return tlp->payload == NULL ? NULL : tlp->payload->data;
}

// --- byte enables (clause 2.2.5) -----------------------------------------------------------------------------------

static uint32_t lowest_lane(uint8_t be)
{
    return (uint32_t)__builtin_ctz(be);
}

static uint32_t highest_lane(uint8_t be)
{
    return 31u - (uint32_t)__builtin_clz(be);
}

static void enables_derive(pcie_tlp_t *tlp, uint64_t address, uint32_t bytes)
{
    uint32_t offset = (uint32_t)(address & 3);
    uint32_t end = offset + bytes;
    tlp->address = address - offset;
    tlp->dwords = (uint16_t)((end + 3) / 4);
    tlp->first_be = (uint8_t)(0xfu << offset & 0xfu);
    tlp->last_be = (uint8_t)(0xfu >> (tlp->dwords * 4u - end));
    if (tlp->dwords == 1) {
        tlp->first_be &= tlp->last_be;
        tlp->last_be = 0;
    }
}

uint64_t pcie_tlp_first_byte(const pcie_tlp_t *tlp)
{
    switch (tlp->kind) {
    case PCIE_TLP_MRD:
    case PCIE_TLP_MWR:
        return tlp->address + (tlp->first_be == 0 ? 0 : lowest_lane(tlp->first_be));
    case PCIE_TLP_CPL:
    case PCIE_TLP_CPLD:
        break;
    }
    return tlp->lower_address;
}

// From the first to the last enabled byte, as in table 2-38.
static uint32_t request_byte_count(const pcie_tlp_t *tlp)
{
    if (tlp->first_be == 0) {
        // A read of no bytes is answered with one DW and a count of 1 (clause 2.2.5); a write of no bytes writes
        // nothing.
        return tlp->kind == PCIE_TLP_MRD ? 1 : 0;
    }
    if (tlp->last_be == 0) {
        return highest_lane(tlp->first_be) - lowest_lane(tlp->first_be) + 1;
    }
    return tlp->dwords * 4u - lowest_lane(tlp->first_be) - (3 - highest_lane(tlp->last_be));
}

uint32_t pcie_tlp_byte_count(const pcie_tlp_t *tlp)
{
    switch (tlp->kind) {
    case PCIE_TLP_MRD:
    case PCIE_TLP_MWR:
        return request_byte_count(tlp);
    case PCIE_TLP_CPL:
        return 0;
    case PCIE_TLP_CPLD:
        break;
    }
    uint32_t carried = tlp->dwords * 4u - (tlp->lower_address & 3u);
    return carried < tlp->byte_count ? carried : tlp->byte_count;
}

static bool byte_enabled(const pcie_tlp_t *tlp, uint32_t offset)
{
    uint32_t dword = offset / 4;
    if (dword == 0) {
        return tlp->first_be >> offset & 1;
    }
    return dword < tlp->dwords - 1u || (tlp->last_be >> offset % 4 & 1);
}

static bool run_is_single(const pcie_tlp_t *tlp)
{
    // A contiguous run ends at the top of the first DW and begins at the bottom of the last one.
    static const uint16_t UP_TO_TOP = 1 << 0xf | 1 << 0xe | 1 << 0xc | 1 << 0x8;
    static const uint16_t FROM_BOTTOM = 1 << 0xf | 1 << 0x7 | 1 << 0x3 | 1 << 0x1;
    return tlp->dwords > 1 && (UP_TO_TOP >> tlp->first_be & 1) && (FROM_BOTTOM >> tlp->last_be & 1);
}

void pcie_tlp_for_runs(pcie_tlp_t *tlp, pcie_tlp_run_fn run, void *ctx)
{
    const uint8_t *data = pcie_tlp_data(tlp);
    uint32_t begin = (uint32_t)(pcie_tlp_first_byte(tlp) - tlp->address);
    uint32_t end = begin + pcie_tlp_byte_count(tlp);
    if (run_is_single(tlp)) {
        run(ctx, tlp->address + begin, data + begin, end - begin);
        return;
    }
    while (begin < end) {
        uint32_t stop = begin;
        while (stop < end && byte_enabled(tlp, stop)) {
            stop++;
        }
        run(ctx, tlp->address + begin, data + begin, stop - begin);
        begin = stop;
        while (begin < end && !byte_enabled(tlp, begin)) {
            begin++;
        }
    }
}

// --- making TLPs ---------------------------------------------------------------------------------------------------

// Bytes that are not enabled are zero instead of data of an earlier TLP.
static void payload_take(pcie_tlp_t *tlp)
{
    uint32_t size = tlp->dwords * 4u;
    tlp->payload = pcie_pool_take_payload(tlp->pool, size);
    memset(tlp->payload->data, 0, 4);
    memset(tlp->payload->data + size - 4, 0, 4);
}

static void payload_attach(pcie_tlp_t *tlp, uint32_t offset, uint32_t bytes, const void *data)
{
    payload_take(tlp);
    if (data == NULL) {
        memset(tlp->payload->data, 0, tlp->dwords * 4u);
        return;
    }
    memcpy(tlp->payload->data + offset, data, bytes);
}

static void request_check(const char *what, uint64_t address, uint32_t bytes)
{
    if (bytes == 0 || bytes > PAGE_BYTES - address % PAGE_BYTES) {
        sim_panic("pcie", "%s of %u bytes at 0x%llx crosses 4 KiB or is empty", what, bytes,
                  (unsigned long long)address);
    }
}

static pcie_tlp_t *write_make(pcie_pool_t *pool, uint16_t requester, uint64_t address, uint32_t bytes)
{
    request_check("a write", address, bytes);
    pcie_tlp_t *tlp = pcie_pool_take_tlp(pool);
    tlp->kind = PCIE_TLP_MWR;
    tlp->requester = requester;
    enables_derive(tlp, address, bytes);
    return tlp;
}

pcie_tlp_t *pcie_tlp_write_shared(uint16_t requester, uint64_t address, const pcie_tlp_t *data)
{
    pcie_tlp_t *tlp = write_make(data->pool, requester, address, data->dwords * 4u);
    tlp->payload = data->payload;
    tlp->payload->references++;
    return tlp;
}

pcie_tlp_t *pcie_tlp_write(pcie_pool_t *pool, uint16_t requester, uint64_t address, uint32_t bytes, const void *data)
{
    pcie_tlp_t *tlp = write_make(pool, requester, address, bytes);
    payload_attach(tlp, (uint32_t)(address & 3), bytes, data);
    return tlp;
}

pcie_tlp_t *pcie_tlp_read(pcie_pool_t *pool, uint16_t requester, uint8_t tag, uint64_t address, uint32_t bytes)
{
    request_check("a read", address, bytes);
    pcie_tlp_t *tlp = pcie_pool_take_tlp(pool);
    tlp->kind = PCIE_TLP_MRD;
    tlp->requester = requester;
    tlp->tag = tag;
    enables_derive(tlp, address, bytes);
    return tlp;
}

pcie_tlp_t *pcie_tlp_completion(const pcie_tlp_t *request, uint16_t completer, uint32_t offset, uint32_t bytes,
                                const void *data)
{
    uint32_t total = pcie_tlp_byte_count(request);
    if (bytes == 0 || offset > total || bytes > total - offset) {
        sim_panic("pcie", "a completion of bytes %u..%u for a read of %u", offset, offset + bytes, total);
    }
    pcie_tlp_t *tlp = pcie_pool_take_tlp(request->pool);
    uint64_t address = pcie_tlp_first_byte(request) + offset;
    uint32_t lane = (uint32_t)(address & 3);
    tlp->kind = PCIE_TLP_CPLD;
    tlp->requester = request->requester;
    tlp->tag = request->tag;
    tlp->completer = completer;
    tlp->cpl_status = PCIE_CPL_SC;
    tlp->byte_count = (uint16_t)(total - offset);
    tlp->lower_address = (uint8_t)(address & 0x7f);
    tlp->dwords = (uint16_t)((lane + bytes + 3) / 4);
    payload_take(tlp);
    if (data != NULL) {
        memcpy(tlp->payload->data + lane, data, bytes);
    }
    return tlp;
}

pcie_tlp_t *pcie_tlp_error(const pcie_tlp_t *request, uint16_t completer, enum pcie_cpl_status status)
{
    pcie_tlp_t *tlp = pcie_pool_take_tlp(request->pool);
    tlp->kind = PCIE_TLP_CPL;
    tlp->requester = request->requester;
    tlp->tag = request->tag;
    tlp->completer = completer;
    tlp->cpl_status = status;
    tlp->byte_count = (uint16_t)pcie_tlp_byte_count(request);
    tlp->lower_address = (uint8_t)(pcie_tlp_first_byte(request) & 0x7f);
    return tlp;
}

pcie_tlp_t *pcie_tlp_copy(const pcie_tlp_t *tlp)
{
    pcie_tlp_t *copy = pcie_pool_take_tlp(tlp->pool);
    *copy = *tlp;
    copy->references = 1;
    copy->next = NULL;
    if (copy->payload != NULL) {
        copy->payload->references++;
    }
    return copy;
}

pcie_tlp_t *pcie_tlp_blank(pcie_pool_t *pool, enum pcie_tlp_kind kind, uint16_t payload_dwords)
{
    pcie_tlp_t *tlp = pcie_pool_take_tlp(pool);
    tlp->kind = kind;
    tlp->dwords = payload_dwords;
    if (payload_dwords > 0) {
        payload_attach(tlp, 0, 0, NULL);
    }
    return tlp;
}

void pcie_tlp_free(pcie_tlp_t *tlp)
{
    pcie_payload_t *payload = tlp->payload;
    if (payload != NULL && --payload->references == 0) {
        pcie_pool_give_payload(tlp->pool, payload);
    }
    pcie_pool_give_tlp(tlp);
}
