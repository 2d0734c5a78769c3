// Tags of outstanding reads: part of every requester.
//
// Models clause 2.3.2 of the PCI Express Base Specification 3.0: a completion is matched with its request by requester
// ID and tag; the completions of one request come in the order of addresses, and each has the number of bytes left. A
// completion that matches no request, or not the bytes left, is unexpected. Tags are given out in turn, so that a tag
// is not reused soon. Leaves out: extended tags beyond 8 bits, phantom functions.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "models/pcie/tlp.h"

enum { PCIE_TAGS_MAX = 256 };

struct pcie_tag {
    void *owner; // the requester's; NULL: the tag is free
    uint32_t bytes, left;
    uint8_t generation; // upper bits of the tag, if the table uses them
};

struct pcie_tags {
    struct pcie_tag list[PCIE_TAGS_MAX];
    uint16_t requester;
    uint32_t first, count; // the tags of this requester
    uint32_t next, outstanding;
    unsigned
        slot_bits; // bits of a tag for its slot; the others are a generation that reveals a late completion; 8: none
};

// Tags [first, first + count), of at most 8 bits.
void pcie_tags_init(struct pcie_tags *tags, uint16_t requester, uint32_t first, uint32_t count, unsigned slot_bits);
static inline bool pcie_tags_free(const struct pcie_tags *tags) // is a tag free?
{
    return tags->outstanding < tags->count;
}
// Takes a tag for a read of so many bytes; the caller has checked that one is free. Returns the packet's tag field.
uint8_t pcie_tags_take(struct pcie_tags *tags, void *owner, uint32_t bytes);

enum pcie_answer {
    PCIE_ANSWER_UNEXPECTED,
    PCIE_ANSWER_PART,  // with data; more follows
    PCIE_ANSWER_LAST,  // with data; nothing follows
    PCIE_ANSWER_FAILED // with a status; nothing follows
};
// Matches a completion with its request. slot_out: slot of the tag, which the caller releases after the last answer;
// at_out: offset of its data in the read; bytes_out: number of bytes.
enum pcie_answer pcie_tags_answer(struct pcie_tags *tags, const pcie_tlp_t *completion, uint32_t *slot_out,
                                  uint32_t *at_out, uint32_t *bytes_out);
void pcie_tags_give(struct pcie_tags *tags, uint32_t slot);
static inline uint32_t pcie_tags_slot(const struct pcie_tags *tags, uint8_t tag)
{
    return tag & ((1u << tags->slot_bits) - 1);
}
