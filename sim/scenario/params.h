// The table of keys as documentation: what `tcasim params` shows of a kind, and the forms in which it is printed. Private
// to the room.
#pragma once

#include <stdio.h>

#include "sim/scenario/keys.h"

// What a preset says of a key.
struct params_value {
    const char *preset, *text;
    const char *owner;               // the preset that it is built on and that gives the value; NULL: itself
    const char *source, *assumption; // NULL: none is given
    const char *least, *most;        // its range; NULL: it has none
};

struct params_key {
    const struct scn_key *key;
    const char *fallback, *range; // "-": none
    struct params_value *values;
    size_t value_count;
};

struct params_kind {
    const struct scn_kind *kind;
    struct params_key *keys; // those that are wanted
    size_t key_count;
};

// How the kinds are printed, one after the other.
struct params_form {
    const char *begin, *between, *end;
    void (*kind)(FILE *out, const struct params_kind *kind);
};

extern const struct params_form params_forms[]; // by enum scn_params_form

// Whether a word stands in the text, or one of the field's words that mean the same ("delay": "latency").
bool params_word_fits(const char *text, const char *word);
