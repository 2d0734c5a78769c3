// The register map (registers.def) as tables, and the generators of its outputs.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum access { ACCESS_RW, ACCESS_RO, ACCESS_WO, ACCESS_ID };

#define MAP_BYTES 4096u // of the register file

struct block {
    const char *name;
    uint32_t base, stride, count;
    const char *doc;
};

struct reg {
    const char *block, *name;
    uint32_t offset, width;
    enum access access;
    uint64_t reset;
    const char *doc;
};

struct counter {
    const char *name, *unit;
};

struct field {
    const char *block, *reg, *name;
    uint32_t lsb, width;
    enum access access;
    const char *doc;
};

struct codes {
    const char *name, *prefix;
    uint32_t width;
    const char *doc;
};

struct code {
    const char *codes, *name;
    uint32_t value;
    const char *text, *doc;
};

struct layout {
    const char *name;
    uint32_t bits;
    const char *doc;
};

struct part {
    const char *layout, *name;
    uint32_t lsb, width, from; // from: bit of the value
    const char *doc;
};

struct constant {
    const char *name;
    uint32_t value;
    const char *doc;
};

extern const struct block blocks[];
extern const struct reg regs[];
extern const struct counter counters[];
extern const struct field fields[];
extern const struct codes enums[];
extern const struct code codes[];
extern const struct layout layouts[];
extern const struct part parts[];
extern const struct constant constants[];
extern const size_t block_count, reg_count, counter_count, field_count, enum_count, code_count, layout_count,
    part_count, constant_count;

#define EACH(table)                                                                                                    \
    size_t table##_i = 0;                                                                                              \
    table##_i < table##_count;                                                                                         \
    table##_i++

const char *access_name(enum access access);
const struct block *block_find(const char *name);
bool reg_has_fields(const struct reg *reg);
bool field_is_of(const struct field *field, const struct reg *reg);
// Bits of the register that software can set and read back.
uint64_t reg_kept(const struct reg *reg);
// Bits of all registers of the block with that kind of access.
uint32_t block_bits(const struct block *block, enum access access);
// Bits of the pulses that a write to the block's WO registers and fields gives the chip.
uint32_t block_pulse_bits(const struct block *block);
// Of the value, over all parts with that name.
uint32_t part_value_bits(const struct part *part);
bool part_is_first(const struct part *part); // of its value

// Reports errors on stderr.
bool map_check(void);

void verilog_package_write(FILE *out);
void verilog_register_file_write(FILE *out);
void header_write(FILE *out);
void table_write(FILE *out);
void markdown_write(FILE *out);

// In lower case.
struct lower {
    char text[64];
};
struct lower lower(const char *name);
