// Single values: from YAML to a field and back, by the row of the table.
#pragma once

#include <stdio.h>

#include "sim/scenario/loader.h"
#include "sim/scenario/units.h"

// Loads tree into the field of key at base, checks its range, records its source, and reports mistakes.
void scn_value_load(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree, void *base);

// Sets the field to the row's default.
void scn_value_default(const struct scn_key *key, void *base);

// Parses one number of the row's unit (for a list, of its elements) and checks its range. False: why is the reason.
bool scn_number_parse(const struct scn_key *key, const char *text, uint64_t *number_out, char why[SCN_WHY_MAX]);

// The value as YAML writes it.
void scn_value_print(FILE *out, const struct scn_scenario *scenario, const struct scn_key *key, const void *base);

// "1 ns .. 10 us, power of two"; nothing if the row has no range.
void scn_range_print(FILE *out, const struct scn_key *key);

// Whether resolved.yaml leaves the key out: an open bound, an absent object, a key from which others are made.
bool scn_key_is_left_out(const struct scn_key *key, const void *base);

// Whether the row's numbers are bounded.
bool scn_key_has_range(const struct scn_key *key);

// list.c: loads the numbers of a list, a sweep {from, to, factor | step} or a single value. False: reported.
bool scn_list_load(struct scn_loader *loader, const struct scn_key *key, const struct scn_tree *tree,
                   uint64_t items[SCN_LIST_MAX], uint32_t *count_out);
