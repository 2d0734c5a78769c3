// The beat adaptor.
#include "sim/cosim/adaptor.h"

#include <string.h>

enum { FMT_3DW = 0, FMT_4DW = 1, FMT_3DW_DATA = 2, FMT_4DW_DATA = 3 };
enum { TYPE_MEMORY = 0x00, TYPE_COMPLETION = 0x0a };

static const struct kind_row {
    uint8_t fmt, type;
    bool has_data;
} kinds[] = {
    [PCIE_TLP_MRD] = {FMT_4DW, TYPE_MEMORY, false},
    [PCIE_TLP_MWR] = {FMT_4DW_DATA, TYPE_MEMORY, true},
    [PCIE_TLP_CPL] = {FMT_3DW, TYPE_COMPLETION, false},
    [PCIE_TLP_CPLD] = {FMT_3DW_DATA, TYPE_COMPLETION, true},
};

static bool is_completion(const pcie_tlp_t *tlp)
{
    return kinds[tlp->kind].type == TYPE_COMPLETION;
}

// The word that carries the first DW of payload.
static uint32_t first_lane(const pcie_tlp_t *tlp)
{
    uint32_t address = is_completion(tlp) ? tlp->lower_address : (uint32_t)tlp->address;
    return address / 4 % COSIM_BEAT_WORDS;
}

// --- packet to beats -----------------------------------------------------------------------------------------------

uint32_t cosim_beat_count(const pcie_tlp_t *tlp)
{
    if (!kinds[tlp->kind].has_data) {
        return 1;
    }
    return 1 + (first_lane(tlp) + tlp->dwords + COSIM_BEAT_WORDS - 1) / COSIM_BEAT_WORDS;
}

static void header_get(const pcie_tlp_t *tlp, uint32_t words[COSIM_BEAT_WORDS])
{
    const struct kind_row *kind = &kinds[tlp->kind];
    words[0] = (uint32_t)kind->fmt << 29 | (uint32_t)kind->type << 24 | (tlp->dwords & 0x3ffu);
    if (kind->type == TYPE_COMPLETION) {
        words[1] = (uint32_t)tlp->completer << 16 | (uint32_t)tlp->cpl_status << 13 | (tlp->byte_count & 0xfffu);
        words[2] = (uint32_t)tlp->requester << 16 | (uint32_t)tlp->tag << 8 | tlp->lower_address;
        words[3] = 0;
    } else {
        words[1] = (uint32_t)tlp->requester << 16 | (uint32_t)tlp->tag << 8 | (uint32_t)tlp->last_be << 4 |
                   tlp->first_be;
        words[2] = (uint32_t)(tlp->address >> 32);
        words[3] = (uint32_t)tlp->address;
    }
}

void cosim_beat_get(pcie_tlp_t *tlp, uint32_t index, struct cosim_beat *beat_out)
{
    if (index == 0) {
        beat_out->sop = true;
        beat_out->eop = !kinds[tlp->kind].has_data;
        beat_out->empty = 0;
        header_get(tlp, beat_out->words);
        return;
    }
    const uint8_t *data = pcie_tlp_data(tlp);
    uint32_t lane = first_lane(tlp);
    uint32_t begin = (index - 1) * COSIM_BEAT_WORDS; // in DWs from lane 0 of the first beat
    uint32_t end = lane + tlp->dwords;
    beat_out->sop = false;
    beat_out->eop = end <= begin + COSIM_BEAT_WORDS;
    beat_out->empty = beat_out->eop ? (uint8_t)(begin + COSIM_BEAT_WORDS - end) : 0;
    if (begin >= lane && !beat_out->eop) {
        memcpy(beat_out->words, data + (begin - lane) * 4u, sizeof beat_out->words);
        return;
    }
    memset(beat_out->words, 0, sizeof beat_out->words);
    uint32_t first = begin < lane ? lane : begin;
    uint32_t last = end < begin + COSIM_BEAT_WORDS ? end : begin + COSIM_BEAT_WORDS;
    memcpy(&beat_out->words[first - begin], data + (first - lane) * 4u, (last - first) * 4u);
}

// --- beats to packet -----------------------------------------------------------------------------------------------

static enum pcie_tlp_kind kind_of(const char *component, uint32_t word)
{
    for (unsigned kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        if (kinds[kind].fmt == word >> 29 && kinds[kind].type == (word >> 24 & 0x1f)) {
            return (enum pcie_tlp_kind)kind;
        }
    }
    sim_panic(component, "a header begins with 0x%08x, which is no TLP that the chip knows", word);
}

static void header_add(struct cosim_assembly *assembly, pcie_pool_t *pool, const char *component,
                       const uint32_t words[COSIM_BEAT_WORDS])
{
    enum pcie_tlp_kind kind = kind_of(component, words[0]);
    uint16_t length = words[0] & 0x3ff;
    uint16_t dwords = length == 0 ? 1024 : length;
    pcie_tlp_t *tlp = pcie_tlp_blank(pool, kind, kinds[kind].has_data ? dwords : 0);
    if (kinds[kind].type == TYPE_COMPLETION) {
        tlp->completer = (uint16_t)(words[1] >> 16);
        tlp->cpl_status = (enum pcie_cpl_status)(words[1] >> 13 & 7);
        tlp->byte_count = (words[1] & 0xfff) == 0 ? 4096 : words[1] & 0xfff;
        tlp->requester = (uint16_t)(words[2] >> 16);
        tlp->tag = (uint8_t)(words[2] >> 8);
        tlp->lower_address = words[2] & 0x7f;
    } else {
        tlp->dwords = dwords;
        tlp->requester = (uint16_t)(words[1] >> 16);
        tlp->tag = (uint8_t)(words[1] >> 8);
        tlp->last_be = words[1] >> 4 & 0xf;
        tlp->first_be = words[1] & 0xf;
        tlp->address = (uint64_t)words[2] << 32 | (words[3] & ~3u);
    }
    assembly->tlp = tlp;
    assembly->dwords = 0;
    assembly->lane = first_lane(tlp);
}

static void data_add(struct cosim_assembly *assembly, const char *component, const struct cosim_beat *beat)
{
    uint32_t end = COSIM_BEAT_WORDS - (beat->eop ? beat->empty : 0);
    uint32_t count = end - assembly->lane;
    if (end <= assembly->lane || assembly->dwords + count > assembly->tlp->dwords) {
        sim_panic(component, "a packet of %u DWs has a beat with words %u..%u after %u DWs", assembly->tlp->dwords,
                  assembly->lane, end, assembly->dwords);
    }
    memcpy(pcie_tlp_data(assembly->tlp) + assembly->dwords * 4u, &beat->words[assembly->lane], count * 4u);
    assembly->dwords += count;
    assembly->lane = 0;
}

pcie_tlp_t *cosim_assembly_add(struct cosim_assembly *assembly, pcie_pool_t *pool, const char *component,
                               const struct cosim_beat *beat)
{
    if (beat->sop != (assembly->tlp == NULL)) {
        sim_panic(component, "a packet begins inside another one, or without a header");
    }
    if (beat->sop) {
        header_add(assembly, pool, component, beat->words);
    } else {
        data_add(assembly, component, beat);
    }
    if (!beat->eop) {
        return NULL;
    }
    pcie_tlp_t *tlp = assembly->tlp;
    if (kinds[tlp->kind].has_data && assembly->dwords != tlp->dwords) {
        sim_panic(component, "a packet of %u DWs ends after %u", tlp->dwords, assembly->dwords);
    }
    assembly->tlp = NULL;
    return tlp;
}

void cosim_assembly_fini(struct cosim_assembly *assembly)
{
    if (assembly->tlp != NULL) {
        pcie_tlp_unref(assembly->tlp);
        assembly->tlp = NULL;
    }
}
