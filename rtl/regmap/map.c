#include "map.h"

#include <ctype.h>
#include <string.h>

#define BLOCK(name, base, stride, count, doc)
#define REG(block, name, offset, width, access, reset, doc)
#define COUNTER(name, offset, unit, doc)
#define FIELD(block, reg, name, lsb, width, access, doc)
#define ENUM(name, prefix, width, doc)
#define CODE(codes, name, value, text, doc)
#define LAYOUT(name, bits, doc)
#define PART(layout, name, lsb, width, from, doc)
#define CONST(name, value, doc)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#undef BLOCK
#define BLOCK(name, base, stride, count, doc) {#name, base, stride, count, doc},
const struct block blocks[] = {
#include "registers.def"
};
#undef BLOCK
#define BLOCK(name, base, stride, count, doc)

#undef REG
#undef COUNTER
#define REG(block, name, offset, width, access, reset, doc) {#block, #name, offset, width, ACCESS_##access, reset, doc},
#define COUNTER(name, offset, unit, doc)                    REG(COUNTER, name, offset, 32, RO, 0, doc)
const struct reg regs[] = {
#include "registers.def"
};
#undef REG
#undef COUNTER
#define REG(block, name, offset, width, access, reset, doc)

#define COUNTER(name, offset, unit, doc) {#name, unit},
const struct counter counters[] = {
#include "registers.def"
};
#undef COUNTER
#define COUNTER(name, offset, unit, doc)

#undef FIELD
#define FIELD(block, reg, name, lsb, width, access, doc) {#block, #reg, #name, lsb, width, ACCESS_##access, doc},
const struct field fields[] = {
#include "registers.def"
};
#undef FIELD
#define FIELD(block, reg, name, lsb, width, access, doc)

#undef ENUM
#define ENUM(name, prefix, width, doc) {#name, #prefix, width, doc},
const struct codes enums[] = {
#include "registers.def"
};
#undef ENUM
#define ENUM(name, prefix, width, doc)

#undef CODE
#define CODE(codes, name, value, text, doc) {#codes, #name, value, text, doc},
const struct code codes[] = {
#include "registers.def"
};
#undef CODE
#define CODE(codes, name, value, text, doc)

#undef LAYOUT
#define LAYOUT(name, bits, doc) {#name, bits, doc},
const struct layout layouts[] = {
#include "registers.def"
};
#undef LAYOUT
#define LAYOUT(name, bits, doc)

#undef PART
#define PART(layout, name, lsb, width, from, doc) {#layout, #name, lsb, width, from, doc},
const struct part parts[] = {
#include "registers.def"
};
#undef PART
#define PART(layout, name, lsb, width, from, doc)

#undef CONST
#define CONST(name, value, doc) {#name, value, doc},
const struct constant constants[] = {
#include "registers.def"
};

const size_t block_count = COUNT(blocks), reg_count = COUNT(regs), counter_count = COUNT(counters),
             field_count = COUNT(fields), enum_count = COUNT(enums), code_count = COUNT(codes),
             layout_count = COUNT(layouts), part_count = COUNT(parts), constant_count = COUNT(constants);

// --- lookup ---------------------------------------------------------------------------------------------------------

const char *access_name(enum access access)
{
    static const char *const names[] = {"RW", "RO", "WO", "ID"};
    return names[access];
}

const struct block *block_find(const char *name)
{
    for (EACH(block)) {
        if (strcmp(blocks[block_i].name, name) == 0) {
            return &blocks[block_i];
        }
    }
    return NULL;
}

bool field_is_of(const struct field *field, const struct reg *reg)
{
    return strcmp(field->block, reg->block) == 0 && strcmp(field->reg, reg->name) == 0;
}

bool reg_has_fields(const struct reg *reg)
{
    for (EACH(field)) {
        if (field_is_of(&fields[field_i], reg)) {
            return true;
        }
    }
    return false;
}

static uint64_t ones(uint32_t count)
{
    return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

uint64_t reg_kept(const struct reg *reg)
{
    uint64_t kept = reg_has_fields(reg) ? 0 : ones(reg->width);
    for (EACH(field)) {
        if (field_is_of(&fields[field_i], reg) && fields[field_i].access == ACCESS_RW) {
            kept |= ones(fields[field_i].width) << fields[field_i].lsb;
        }
    }
    return reg->access == ACCESS_RW ? kept : 0;
}

uint32_t block_bits(const struct block *block, enum access access)
{
    uint32_t bits = 0;
    for (EACH(reg)) {
        bool counts = strcmp(regs[reg_i].block, block->name) == 0 && regs[reg_i].access == access;
        bits += counts ? regs[reg_i].width : 0;
    }
    return bits;
}

uint32_t block_pulse_bits(const struct block *block)
{
    uint32_t bits = 0;
    for (EACH(reg)) {
        bool counts = strcmp(regs[reg_i].block, block->name) == 0 && regs[reg_i].access == ACCESS_WO;
        bits += counts ? regs[reg_i].width + 1 : 0;
    }
    for (EACH(field)) {
        bool counts = strcmp(fields[field_i].block, block->name) == 0 && fields[field_i].access == ACCESS_WO;
        bits += counts ? fields[field_i].width : 0;
    }
    return bits;
}

static bool part_is_same(const struct part *a, const struct part *b)
{
    return strcmp(a->layout, b->layout) == 0 && strcmp(a->name, b->name) == 0;
}

uint32_t part_value_bits(const struct part *part)
{
    uint32_t bits = 0;
    for (EACH(part)) {
        uint32_t end = parts[part_i].from + parts[part_i].width;
        bits = part_is_same(&parts[part_i], part) && end > bits ? end : bits;
    }
    return bits;
}

bool part_is_first(const struct part *part)
{
    for (const struct part *other = parts; other < part; other++) {
        if (part_is_same(other, part)) {
            return false;
        }
    }
    return true;
}

struct lower lower(const char *name)
{
    struct lower result = {{0}};
    for (size_t i = 0; name[i] != '\0' && i + 1 < sizeof result.text; i++) {
        result.text[i] = (char)tolower((unsigned char)name[i]);
    }
    return result;
}

// --- checks ---------------------------------------------------------------------------------------------------------

static bool complain(const char *group, const char *name, const char *what)
{
    fprintf(stderr, "regmap: %s.%s: %s\n", group, name, what);
    return false;
}

// Of the register in a repetition of its block.
static uint32_t reg_address(const struct reg *reg, uint32_t repetition)
{
    const struct block *block = block_find(reg->block);
    return block->base + repetition * block->stride + reg->offset;
}

static bool regs_overlap(const struct reg *a, const struct reg *b)
{
    for (uint32_t i = 0; i < block_find(a->block)->count; i++) {
        for (uint32_t j = 0; j < block_find(b->block)->count; j++) {
            uint32_t at_a = reg_address(a, i), at_b = reg_address(b, j);
            if (at_a < at_b + b->width / 8 && at_b < at_a + a->width / 8) {
                return true;
            }
        }
    }
    return false;
}

static bool reg_check(const struct reg *reg)
{
    const struct block *block = block_find(reg->block);
    if (block == NULL) {
        return complain(reg->block, reg->name, "no such block");
    }
    if (reg->width != 32 && reg->width != 64) {
        return complain(reg->block, reg->name, "the width is neither 32 nor 64");
    }
    if (reg->access == ACCESS_WO && reg->width != 32) {
        return complain(reg->block, reg->name, "a WO register has 32 bits, so that a write is one pulse");
    }
    if (reg->offset % (reg->width / 8) != 0) {
        return complain(reg->block, reg->name, "the offset is not aligned");
    }
    if (block->count > 1 && reg->offset + reg->width / 8 > block->stride) {
        return complain(reg->block, reg->name, "lies beyond the stride of its block");
    }
    if (reg_address(reg, block->count - 1) + reg->width / 8 > MAP_BYTES) {
        return complain(reg->block, reg->name, "lies beyond the map");
    }
    for (const struct reg *other = regs; other < reg; other++) {
        if (regs_overlap(reg, other)) {
            return complain(reg->block, reg->name, "overlaps another register");
        }
    }
    return true;
}

static bool field_check(const struct field *field)
{
    const struct reg *reg = regs;
    while (reg < regs + reg_count && !field_is_of(field, reg)) {
        reg++;
    }
    if (reg == regs + reg_count) {
        return complain(field->block, field->name, "no such register");
    }
    if (field->lsb + field->width > reg->width) {
        return complain(field->block, field->name, "lies beyond its register");
    }
    if (field->access == ACCESS_WO && field->lsb + field->width > 32) {
        return complain(field->block, field->name,
                        "a WO field lies in the lower 32 bits, so that a write is one pulse");
    }
    if (field->access != reg->access && !(reg->access == ACCESS_RW && field->access == ACCESS_WO)) {
        return complain(field->block, field->name, "the access is not that of its register");
    }
    for (const struct field *other = fields; other < field; other++) {
        if (field_is_of(other, reg) && other->lsb + other->width > field->lsb) {
            return complain(field->block, field->name, "does not lie above the field before it");
        }
    }
    return true;
}

static bool code_check(const struct code *code)
{
    for (EACH(enum)) {
        if (strcmp(enums[enum_i].name, code->codes) == 0) {
            return code->value <= ones(enums[enum_i].width) || complain(code->codes, code->name, "has too many bits");
        }
    }
    return complain(code->codes, code->name, "no such set of codes");
}

// Parts must fill their layout from bit 0 on.
static bool layout_check(const struct layout *layout)
{
    uint32_t end = 0;
    for (EACH(part)) {
        const struct part *part = &parts[part_i];
        if (strcmp(part->layout, layout->name) != 0) {
            continue;
        }
        if (part->lsb != end) {
            return complain(part->layout, part->name, "does not begin where the part before it ends");
        }
        if (part->lsb / 64 != (part->lsb + part->width - 1) / 64) {
            return complain(part->layout, part->name, "lies in two words of 64 bits");
        }
        end += part->width;
    }
    return end == layout->bits || complain(layout->name, "", "is not filled");
}

// Counters must be contiguous, because readers read all of them as one range.
static bool counter_check(const struct reg *reg)
{
    static uint32_t next;
    bool follows = strcmp(reg->block, "COUNTER") != 0 || reg->offset == next;
    next += strcmp(reg->block, "COUNTER") == 0 ? 4 : 0;
    return follows || complain(reg->block, reg->name, "counters must be contiguous");
}

bool map_check(void)
{
    bool good = true;
    for (EACH(reg)) {
        good = reg_check(&regs[reg_i]) && counter_check(&regs[reg_i]) && good;
    }
    for (EACH(field)) {
        good = field_check(&fields[field_i]) && good;
    }
    for (EACH(code)) {
        good = code_check(&codes[code_i]) && good;
    }
    for (EACH(layout)) {
        good = layout_check(&layouts[layout_i]) && good;
    }
    return good;
}
