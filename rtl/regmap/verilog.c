// The package of names and types, and the register file.
#include <inttypes.h>
#include <string.h>

#include "map.h"

static bool is_of(const struct reg *reg, const struct block *block)
{
    return strcmp(reg->block, block->name) == 0;
}

// --- the package ----------------------------------------------------------------------------------------------------

static void gap_write(FILE *out, uint32_t msb, uint32_t lsb)
{
    if (msb == lsb) {
        fprintf(out, "        logic        unused_%" PRIu32 ";\n", msb);
    } else {
        fprintf(out, "        logic [%" PRIu32 ":0] unused_%" PRIu32 "_%" PRIu32 ";\n", msb - lsb, msb, lsb);
    }
}

static void member_write(FILE *out, uint32_t width, const char *name)
{
    if (width == 1) {
        fprintf(out, "        logic        %s;\n", name);
    } else {
        fprintf(out, "        logic [%" PRIu32 ":0] %s;\n", width - 1, name);
    }
}

// From the highest bit down.
static void reg_type_write(FILE *out, const struct reg *reg)
{
    uint32_t above = reg->width;
    fprintf(out, "    typedef struct packed {\n");
    for (size_t i = field_count; i-- > 0;) {
        const struct field *field = &fields[i];
        if (!field_is_of(field, reg)) {
            continue;
        }
        if (field->lsb + field->width < above) {
            gap_write(out, above - 1, field->lsb + field->width);
        }
        member_write(out, field->width, lower(field->name).text);
        above = field->lsb;
    }
    if (above > 0) {
        gap_write(out, above - 1, 0);
    }
    fprintf(out, "    } %s_%s_t;\n", lower(reg->block).text, lower(reg->name).text);
}

// The registers of a block that software writes (rw), or whose value the chip gives (ro).
static void block_type_write(FILE *out, const struct block *block, enum access access, const char *suffix)
{
    uint32_t bits = block_bits(block, access);
    if (bits == 0) {
        return;
    }
    fprintf(out, "    typedef struct packed {\n");
    for (size_t i = reg_count; i-- > 0;) {
        const struct reg *reg = &regs[i];
        if (is_of(reg, block) && reg->access == access) {
            struct lower name = lower(reg->name);
            if (reg_has_fields(reg)) {
                fprintf(out, "        %s_%s_t %s;\n", lower(block->name).text, name.text, name.text);
            } else {
                member_write(out, reg->width, name.text);
            }
        }
    }
    fprintf(out, "    } %s_%s_t;\n", lower(block->name).text, suffix);
    fprintf(out, "    localparam int unsigned %s_%s_BITS = %" PRIu32 ";\n", block->name,
            access == ACCESS_RW ? "RW" : "RO", bits);
}

static void pulse_type_write(FILE *out, const struct block *block)
{
    uint32_t bits = block_pulse_bits(block);
    if (bits == 0) {
        return;
    }
    fprintf(out, "    typedef struct packed { // for a cycle after a write\n");
    for (EACH(reg)) {
        const struct reg *reg = &regs[reg_i];
        if (is_of(reg, block) && reg->access == ACCESS_WO) {
            struct lower name = lower(reg->name);
            fprintf(out, "        logic        %s_written;\n", name.text);
            member_write(out, reg->width, name.text);
        }
    }
    for (EACH(field)) {
        const struct field *field = &fields[field_i];
        if (strcmp(field->block, block->name) == 0 && field->access == ACCESS_WO) {
            char name[160];
            snprintf(name, sizeof name, "%s_%s", lower(field->reg).text, lower(field->name).text);
            member_write(out, field->width, name);
        }
    }
    fprintf(out, "    } %s_pulse_t;\n", lower(block->name).text);
    fprintf(out, "    localparam int unsigned %s_PULSE_BITS = %" PRIu32 ";\n", block->name, bits);
}

static void block_write(FILE *out, const struct block *block)
{
    fprintf(out, "\n    // %s\n", block->doc);
    fprintf(out, "    localparam int unsigned %s_BASE = 'h%" PRIx32 ";\n", block->name, block->base);
    fprintf(out, "    localparam int unsigned %s_STRIDE = 'h%" PRIx32 ";\n", block->name, block->stride);
    fprintf(out, "    localparam int unsigned %s_COUNT = %" PRIu32 ";\n", block->name, block->count);
    for (EACH(reg)) {
        const struct reg *reg = &regs[reg_i];
        if (is_of(reg, block)) {
            fprintf(out, "    localparam int unsigned %s_%s_OFFSET = 'h%" PRIx32 ";\n", reg->block, reg->name,
                    reg->offset);
        }
    }
    for (EACH(reg)) {
        if (is_of(&regs[reg_i], block) && reg_has_fields(&regs[reg_i])) {
            reg_type_write(out, &regs[reg_i]);
        }
    }
    block_type_write(out, block, ACCESS_RW, "rw");
    block_type_write(out, block, ACCESS_RO, "ro");
    pulse_type_write(out, block);
}

static void enum_write(FILE *out, const struct codes *set)
{
    const char *separator = "";
    fprintf(out, "\n    // %s\n    typedef enum logic [%" PRIu32 ":0] {", set->doc, set->width - 1);
    for (EACH(code)) {
        const struct code *code = &codes[code_i];
        if (strcmp(code->codes, set->name) == 0) {
            fprintf(out, "%s\n        %s_%s = %" PRIu32 "'d%" PRIu32, separator, set->prefix, code->name, set->width,
                    code->value);
            separator = ",";
        }
    }
    fprintf(out, "\n    } %s_e;\n", lower(set->name).text);
}

// A value in several parts has one member for each part, named after its bits.
static void layout_write(FILE *out, const struct layout *layout)
{
    fprintf(out, "\n    // %s\n    typedef struct packed {\n", layout->doc);
    for (size_t i = part_count; i-- > 0;) {
        const struct part *part = &parts[i];
        char name[160];
        if (strcmp(part->layout, layout->name) != 0) {
            continue;
        }
        snprintf(name, sizeof name, "%s", lower(part->name).text);
        if (part_value_bits(part) != part->width) {
            snprintf(name, sizeof name, "%s_%" PRIu32 "_%" PRIu32, lower(part->name).text, part->from + part->width - 1,
                     part->from);
        }
        member_write(out, part->width, name);
    }
    fprintf(out, "    } %s_t;\n", lower(layout->name).text);
    for (EACH(part)) {
        const struct part *part = &parts[part_i];
        if (strcmp(part->layout, layout->name) == 0 && part_is_first(part)) {
            fprintf(out, "    localparam int unsigned %s_%s_LSB = %" PRIu32 ";\n", layout->name, part->name, part->lsb);
        }
    }
    fprintf(out, "    localparam int unsigned %s_BITS = %" PRIu32 ";\n", layout->name, layout->bits);
}

void verilog_package_write(FILE *out)
{
    fprintf(out, "// Generated by regmap from registers.def.\npackage peach2_regs_pkg;\n");
    for (EACH(block)) {
        block_write(out, &blocks[block_i]);
    }
    for (EACH(enum)) {
        enum_write(out, &enums[enum_i]);
    }
    for (EACH(layout)) {
        layout_write(out, &layouts[layout_i]);
    }
    fprintf(out, "\n");
    for (EACH(constant)) {
        fprintf(out, "    localparam int unsigned %s = %" PRIu32 "; // %s\n", constants[constant_i].name,
                constants[constant_i].value, constants[constant_i].doc);
    }
    fprintf(out, "\nendpackage\n");
}
