// docs/registers.md
#include <inttypes.h>
#include <string.h>

#include "map.h"

static void reg_write(FILE *out, const struct reg *reg)
{
    fprintf(out, "| 0x%02" PRIx32 " | %s | %" PRIu32 " | %s | 0x%" PRIx64 " | %s |\n", reg->offset, reg->name,
            reg->width, access_name(reg->access), reg->reset, reg->doc);
    for (EACH(field)) {
        const struct field *field = &fields[field_i];
        if (field_is_of(field, reg)) {
            fprintf(out, "| | %s.%s | %" PRIu32 ":%" PRIu32 " | %s | | %s |\n", reg->name, field->name,
                    field->lsb + field->width - 1, field->lsb, access_name(field->access), field->doc);
        }
    }
}

static void block_write(FILE *out, const struct block *block)
{
    fprintf(out, "\n## %s\n\n%s.\n\n", block->name, block->doc);
    if (block->count > 1) {
        fprintf(out, "From 0x%05" PRIx32 " on, %" PRIu32 " times, every 0x%" PRIx32 " bytes.\n", block->base,
                block->count, block->stride);
    } else {
        fprintf(out, "From 0x%05" PRIx32 " on.\n", block->base);
    }
    bool first = true;
    for (EACH(reg)) {
        if (strcmp(regs[reg_i].block, block->name) == 0) {
            if (first) {
                fprintf(out, "\n| offset | register | bits | access | reset | meaning |\n|---|---|---|---|---|---|\n");
                first = false;
            }
            reg_write(out, &regs[reg_i]);
        }
    }
}

static void enum_write(FILE *out, const struct codes *set)
{
    fprintf(out, "\n## %s\n\n%s.\n\n| code | name | meaning |\n|---|---|---|\n", set->name, set->doc);
    for (EACH(code)) {
        if (strcmp(codes[code_i].codes, set->name) == 0) {
            fprintf(out, "| %" PRIu32 " | %s | %s |\n", codes[code_i].value, codes[code_i].name, codes[code_i].doc);
        }
    }
}

static void layout_write(FILE *out, const struct layout *layout)
{
    fprintf(out, "\n## %s\n\n%s. %" PRIu32 " bytes, little-endian.\n\n| bits | name | meaning |\n|---|---|---|\n",
            layout->name, layout->doc, layout->bits / 8);
    for (EACH(part)) {
        const struct part *part = &parts[part_i];
        if (strcmp(part->layout, layout->name) != 0) {
            continue;
        }
        fprintf(out, "| %" PRIu32 ":%" PRIu32 " | %s", part->lsb + part->width - 1, part->lsb, part->name);
        if (part_value_bits(part) != part->width) {
            fprintf(out, ", bits %" PRIu32 ":%" PRIu32, part->from + part->width - 1, part->from);
        }
        fprintf(out, " | %s |\n", part->doc);
    }
}

void markdown_write(FILE *out)
{
    fprintf(
        out,
        "# Registers of PEACH2\n\n"
        "Generated from `rtl/registers.def` by `rtl/regmap`; a test holds this file to it. Offsets are bytes from the "
        "start of\n"
        "BAR 0 (128 KiB). A 64-bit register may be accessed as two 32-bit halves; byte enables are honoured. Bits of a "
        "register with\n"
        "fields that belong to none are ignored and read as 0. A read of an offset where nothing lies, or of more than "
        "16 DWs of\n"
        "registers, is answered Unsupported Request.\n\n"
        "Access: RW; RO, the chip gives the value; WO, a write acts once and reads as 0; ID, always the reset "
        "value.\n");
    for (EACH(block)) {
        block_write(out, &blocks[block_i]);
    }
    for (EACH(enum)) {
        enum_write(out, &enums[enum_i]);
    }
    for (EACH(layout)) {
        layout_write(out, &layouts[layout_i]);
    }
    fprintf(out, "\n## Constants\n\n| constant | value | meaning |\n|---|---|---|\n");
    for (EACH(constant)) {
        fprintf(out, "| %s | %" PRIu32 " | %s |\n", constants[constant_i].name, constants[constant_i].value,
                constants[constant_i].doc);
    }
}
