// The C headers: names for users of the board (peach2_regs.h), the registers as a table for models of the board
// (peach2_regs_table.h).
#include <inttypes.h>
#include <string.h>

#include "map.h"

static bool is_of(const struct reg *reg, const struct block *block)
{
    return strcmp(reg->block, block->name) == 0;
}

// --- registers ------------------------------------------------------------------------------------------------------

static void block_write(FILE *out, const struct block *block)
{
    fprintf(out, "\n// %s\nenum {\n", block->doc);
    fprintf(out, "    PEACH2_%s_BASE = 0x%" PRIx32 ",\n", block->name, block->base);
    fprintf(out, "    PEACH2_%s_STRIDE = 0x%" PRIx32 ",\n", block->name, block->stride);
    fprintf(out, "    PEACH2_%s_COUNT = %" PRIu32 ",\n", block->name, block->count);
    for (EACH(reg)) {
        const struct reg *reg = &regs[reg_i];
        if (is_of(reg, block)) {
            fprintf(out, "    PEACH2_%s_%s = 0x%" PRIx32 ", // %" PRIu32 " bits, %s: %s\n", reg->block, reg->name,
                    reg->offset, reg->width, access_name(reg->access), reg->doc);
        }
    }
    fprintf(out, "};\n");
}

static void fields_write(FILE *out)
{
    fprintf(out, "\nenum {\n");
    for (EACH(field)) {
        const struct field *field = &fields[field_i];
        uint64_t mask = UINT64_MAX >> (64 - field->width) << field->lsb;
        fprintf(out, "    // %s\n", field->doc);
        fprintf(out, "    PEACH2_%s_%s_%s_LSB = %" PRIu32 ",\n", field->block, field->reg, field->name, field->lsb);
        if (mask <= INT32_MAX) {
            fprintf(out, "    PEACH2_%s_%s_%s_MASK = 0x%" PRIx64 ",\n", field->block, field->reg, field->name, mask);
        } else {
            fprintf(out, "#define PEACH2_%s_%s_%s_MASK UINT64_C(0x%" PRIx64 ")\n", field->block, field->reg,
                    field->name, mask);
        }
    }
    fprintf(out, "};\n");
    fprintf(out,
            "\n// The field of a register's value: PEACH2_FIELD(status, DMAC_STATUS_ERROR)\n"
            "#define PEACH2_FIELD(value, field) (((value)&PEACH2_##field##_MASK) >> PEACH2_##field##_LSB)\n"
            "// The value as that field of a register: PEACH2_PUT(error, DMAC_STATUS_ERROR)\n"
            "#define PEACH2_PUT(value, field) ((uint64_t)(value) << PEACH2_##field##_LSB & PEACH2_##field##_MASK)\n");
}

static void resets_write(FILE *out)
{
    fprintf(out, "\n// Values after reset that are not 0\n");
    for (EACH(reg)) {
        const struct reg *reg = &regs[reg_i];
        if (reg->reset != 0) {
            fprintf(out, "#define PEACH2_%s_%s_RESET 0x%" PRIx64 "u\n", reg->block, reg->name, reg->reset);
        }
    }
}

// In the order of their offsets, without holes.
static void counters_write(FILE *out)
{
    fprintf(out, "\n// X(register, name in lower case, unit, what it counts), one behind the other from offset 0 on\n"
                 "#define PEACH2_COUNTERS(X)");
    for (EACH(counter)) {
        const struct reg *reg = regs;
        while (strcmp(reg->block, "COUNTER") != 0 || strcmp(reg->name, counters[counter_i].name) != 0) {
            reg++;
        }
        fprintf(out, " \\\n    X(%s, \"%s\", \"%s\", \"%s\")", reg->name, lower(reg->name).text,
                counters[counter_i].unit, reg->doc);
    }
    fprintf(out, "\nenum { PEACH2_COUNTER_REGISTERS = %zu };\n", counter_count);
}

// --- codes ----------------------------------------------------------------------------------------------------------

static void enum_write(FILE *out, const struct codes *set)
{
    fprintf(out, "\n// %s\nenum peach2_%s {\n", set->doc, lower(set->name).text);
    for (EACH(code)) {
        const struct code *code = &codes[code_i];
        if (strcmp(code->codes, set->name) == 0) {
            fprintf(out, "    PEACH2_%s_%s = %" PRIu32 ", // %s\n", set->prefix, code->name, code->value, code->doc);
        }
    }
    fprintf(out, "};\n// X(name, value, text for messages)\n#define PEACH2_%sS(X)", set->name);
    for (EACH(code)) {
        const struct code *code = &codes[code_i];
        if (strcmp(code->codes, set->name) == 0) {
            fprintf(out, " \\\n    X(%s, %" PRIu32 ", \"%s\")", code->name, code->value, code->text);
        }
    }
    fprintf(out, "\n");
}

// --- layouts --------------------------------------------------------------------------------------------------------

static const char *type_of(uint32_t bits)
{
    return bits == 1 ? "bool" : bits <= 32 ? "uint32_t" : "uint64_t";
}

static void struct_write(FILE *out, const struct layout *layout)
{
    struct lower name = lower(layout->name);
    fprintf(out, "\n// %s\nstruct peach2_%s {\n", layout->doc, name.text);
    for (EACH(part)) {
        const struct part *part = &parts[part_i];
        if (strcmp(part->layout, layout->name) == 0 && part_is_first(part)) {
            uint32_t bits = part_value_bits(part);
            fprintf(out, "    %s %s; // %" PRIu32 " bits: %s\n", type_of(bits), lower(part->name).text, bits,
                    part->doc);
        }
    }
    fprintf(out, "};\nenum { PEACH2_%s_BYTES = %" PRIu32 ", PEACH2_%s_WORDS = %" PRIu32 " };\n", layout->name,
            layout->bits / 8, layout->name, layout->bits / 64);
    for (EACH(part)) {
        const struct part *part = &parts[part_i];
        if (strcmp(part->layout, layout->name) == 0 && part_is_first(part) && part_value_bits(part) > 1 &&
            part_value_bits(part) < 64) {
            uint64_t most = (UINT64_C(1) << part_value_bits(part)) - 1;
            fprintf(out,
                    most <= UINT32_MAX ? "#define PEACH2_%s_%s_MAX 0x%" PRIx64 "u\n"
                                       : "#define PEACH2_%s_%s_MAX UINT64_C(0x%" PRIx64 ")\n",
                    layout->name, part->name, most);
        }
    }
}

static void codec_write(FILE *out, const struct layout *layout)
{
    struct lower name = lower(layout->name);
    fprintf(out,
            "// Words of 64 bits, as a little-endian machine stores them; bits that do not fit are lost.\n"
            "static inline void peach2_%s_pack(const struct peach2_%s *value, uint64_t words[PEACH2_%s_WORDS])\n{\n",
            name.text, name.text, layout->name);
    for (uint32_t word = 0; word < layout->bits / 64; word++) {
        const char *separator = "";
        fprintf(out, "    words[%" PRIu32 "] = ", word);
        for (EACH(part)) {
            const struct part *part = &parts[part_i];
            if (strcmp(part->layout, layout->name) == 0 && part->lsb / 64 == word) {
                fprintf(out, "%s((uint64_t)value->%s >> %" PRIu32 " & UINT64_C(0x%" PRIx64 ")) << %" PRIu32, separator,
                        lower(part->name).text, part->from,
                        part->width == 64 ? UINT64_MAX : (UINT64_C(1) << part->width) - 1, part->lsb % 64);
                separator = " |\n               ";
            }
        }
        fprintf(out, ";\n");
    }
    fprintf(out,
            "}\nstatic inline struct peach2_%s peach2_%s_unpack(const uint64_t words[PEACH2_%s_WORDS])\n{\n"
            "    struct peach2_%s value;\n",
            name.text, name.text, layout->name, name.text);
    for (EACH(part)) {
        const struct part *part = &parts[part_i];
        if (strcmp(part->layout, layout->name) == 0) {
            const char *type = type_of(part_value_bits(part));
            fprintf(out,
                    "    value.%s %s (%s)((words[%" PRIu32 "] >> %" PRIu32 " & UINT64_C(0x%" PRIx64 ")) << %" PRIu32
                    ");\n",
                    lower(part->name).text, part_is_first(part) ? "=" : "|=", type, part->lsb / 64, part->lsb % 64,
                    part->width == 64 ? UINT64_MAX : (UINT64_C(1) << part->width) - 1, part->from);
        }
    }
    fprintf(out, "    return value;\n}\n");
}

void header_write(FILE *out)
{
    fprintf(out, "// Generated by regmap from registers.def.\n"
                 "//\n"
                 "// Offsets of bytes in BAR 0: PEACH2_<BLOCK>_BASE + index * PEACH2_<BLOCK>_STRIDE + "
                 "PEACH2_<BLOCK>_<REGISTER>.\n"
                 "// Fields: PEACH2_<BLOCK>_<REGISTER>_<FIELD>_LSB and _MASK (in place).\n"
                 "#pragma once\n\n"
                 "#include <stdbool.h>\n"
                 "#include <stdint.h>\n");
    for (EACH(block)) {
        block_write(out, &blocks[block_i]);
    }
    resets_write(out);
    fields_write(out);
    counters_write(out);
    for (EACH(enum)) {
        enum_write(out, &enums[enum_i]);
    }
    for (EACH(layout)) {
        struct_write(out, &layouts[layout_i]);
        codec_write(out, &layouts[layout_i]);
    }
    fprintf(out, "\nenum {\n");
    for (EACH(constant)) {
        fprintf(out, "    PEACH2_%s = %" PRIu32 ", // %s\n", constants[constant_i].name, constants[constant_i].value,
                constants[constant_i].doc);
    }
    fprintf(out, "};\n");
}

// --- the table ------------------------------------------------------------------------------------------------------

static void words_write(FILE *out, const struct block *block)
{
    fprintf(out, "static const struct peach2_register_word peach2_%s_words[] = {\n", lower(block->name).text);
    for (EACH(reg)) {
        const struct reg *reg = &regs[reg_i];
        for (uint32_t half = 0; is_of(reg, block) && half < reg->width / 32; half++) {
            fprintf(out, "    {0x%" PRIx32 ", 0x%" PRIx32 ", 0x%" PRIx32 "}, // %s\n", reg->offset + 4 * half,
                    (uint32_t)(reg_kept(reg) >> 32 * half), (uint32_t)(reg->reset >> 32 * half), reg->name);
        }
    }
    fprintf(out, "};\n");
}

static bool has_registers(const struct block *block)
{
    for (EACH(reg)) {
        if (is_of(&regs[reg_i], block)) {
            return true;
        }
    }
    return false;
}

void table_write(FILE *out)
{
    fprintf(out, "// Generated by regmap from registers.def.\n"
                 "#pragma once\n\n"
                 "#include <stddef.h>\n"
                 "#include <stdint.h>\n\n"
                 "// A DW that software reads, and the bits of it that a write keeps.\n"
                 "struct peach2_register_word {\n"
                 "    uint32_t offset, kept, reset;\n"
                 "};\n\n");
    fprintf(out, "enum peach2_register_block_number {\n");
    for (EACH(block)) {
        if (has_registers(&blocks[block_i])) {
            fprintf(out, "    PEACH2_BLOCK_%s,\n", blocks[block_i].name);
        }
    }
    fprintf(out, "    PEACH2_BLOCKS\n};\n\n");
    for (EACH(block)) {
        if (has_registers(&blocks[block_i])) {
            words_write(out, &blocks[block_i]);
        }
    }
    fprintf(out, "\nstruct peach2_register_block {\n"
                 "    uint32_t base, stride, count;\n"
                 "    const struct peach2_register_word *words;\n"
                 "    size_t word_count;\n"
                 "};\n\n"
                 "static const struct peach2_register_block peach2_register_blocks[PEACH2_BLOCKS] = {\n");
    for (EACH(block)) {
        const struct block *block = &blocks[block_i];
        if (has_registers(block)) {
            struct lower name = lower(block->name);
            fprintf(out,
                    "    {0x%" PRIx32 ", 0x%" PRIx32 ", %" PRIu32
                    ", peach2_%s_words, sizeof peach2_%s_words / sizeof peach2_%s_words[0]},\n",
                    block->base, block->stride, block->count, name.text, name.text, name.text);
        }
    }
    fprintf(out, "};\n");
}
