#include "models/pcie/tags.h"

#include "sim/kernel/status.h"

void pcie_tags_init(struct pcie_tags *tags, uint16_t requester, uint32_t first, uint32_t count, unsigned slot_bits)
{
    if (slot_bits > 8 || first + count > 1u << slot_bits) {
        sim_panic("pcie", "%u tags from %u on, in %u bits", count, first, slot_bits);
    }
    *tags = (struct pcie_tags){.requester = requester, .first = first, .count = count, .slot_bits = slot_bits};
}

uint8_t pcie_tags_take(struct pcie_tags *tags, void *owner, uint32_t bytes)
{
    uint32_t slot = tags->first + tags->next;
    while (tags->list[slot].owner != NULL) {
        tags->next = (tags->next + 1) % tags->count;
        slot = tags->first + tags->next;
    }
    tags->next = (tags->next + 1) % tags->count;
    struct pcie_tag *tag = &tags->list[slot];
    uint8_t generation = (uint8_t)((tag->generation + 1u) % (1u << (8 - tags->slot_bits)));
    *tag = (struct pcie_tag){.owner = owner, .bytes = bytes, .left = bytes, .generation = generation};
    tags->outstanding++;
    return (uint8_t)((unsigned)generation << tags->slot_bits | slot);
}

enum pcie_answer pcie_tags_answer(struct pcie_tags *tags, const pcie_tlp_t *completion, uint32_t *slot_out,
                                  uint32_t *at_out, uint32_t *bytes_out)
{
    uint32_t slot = pcie_tags_slot(tags, completion->tag);
    struct pcie_tag *tag = &tags->list[slot];
    *slot_out = slot;
    *at_out = *bytes_out = 0;
    bool is_data = completion->kind == PCIE_TLP_CPLD;
    if (tag->owner == NULL || tag->left == 0 || completion->requester != tags->requester ||
        completion->tag >> tags->slot_bits != tag->generation) {
        return PCIE_ANSWER_UNEXPECTED;
    }
    if (completion->cpl_status != PCIE_CPL_SC) {
        tag->left = 0;
        return PCIE_ANSWER_FAILED;
    }
    uint32_t bytes = pcie_tlp_byte_count(completion);
    if (!is_data || completion->byte_count != tag->left || bytes == 0) {
        return PCIE_ANSWER_UNEXPECTED;
    }
    *at_out = tag->bytes - tag->left;
    *bytes_out = bytes < tag->left ? bytes : tag->left;
    tag->left -= *bytes_out;
    return tag->left == 0 ? PCIE_ANSWER_LAST : PCIE_ANSWER_PART;
}

void pcie_tags_give(struct pcie_tags *tags, uint32_t slot)
{
    tags->list[slot].owner = NULL;
    tags->list[slot].left = 0;
    tags->outstanding--;
}
