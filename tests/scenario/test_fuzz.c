// Random damage to a valid scenario: the loader accepts or refuses the result. Meant for the sanitizer build.
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATIONS 2000

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// One edit: changes a byte, removes a piece, repeats a piece, or inserts a token.
static size_t mutate(char *text, size_t length, uint64_t *state)
{
    static const char *const tokens[] = {
        "{",   "}",  "[",   "]",  ": ", "- ", "\n",      "&a ",      "*a", "!!x ", "0",     "99999999999999999999",
        "-1",  " B", " ns", "\"", "'",  "#",  "with: {", "preset: ", "\t", "|\n",  "---\n", "\x80",
        "name"};
    size_t at = next_random(state) % (length + 1);
    size_t span = next_random(state) % 40;
    if (span > length - at) {
        span = length - at;
    }
    switch (next_random(state) % 4) {
    case 0:
        if (at < length) {
            text[at] = (char)next_random(state);
        }
        return length;
    case 1:
        memmove(text + at, text + at + span, length - at - span);
        return length - span;
    case 2:
        memmove(text + at + span, text + at, length - at);
        return length + span;
    }
    const char *token = tokens[next_random(state) % (sizeof tokens / sizeof tokens[0])];
    memmove(text + at + strlen(token), text + at, length - at);
    memcpy(text + at, token, strlen(token));
    return length + strlen(token);
}

static void load_mutated(const char *path, const char *text, size_t length)
{
    struct fixture fixture;
    fixture_write(path, text, length);
    fixture_load_file(&fixture, path, FIXTURE_CONFIGS, NULL);
    if (fixture.status == SIM_OK) {
        EXPECT_EQ(fixture.messages.count, 0);
        char *resolved = fixture_resolved(fixture.scenario);
        struct fixture again;
        fixture_write(path, resolved, strlen(resolved));
        fixture_load_file(&again, path, FIXTURE_CONFIGS, NULL);
        EXPECT_STREQ(fixture_message(&again), "");
        fixture_fini(&again);
        free(resolved);
    } else {
        EXPECT_GT(fixture.messages.count, 0);
    }
    fixture_fini(&fixture);
}

TEST(Fuzz, DamagedScenariosAreAnsweredAndWhatIsAcceptedResolvesToAnAcceptedOne)
{
    char folder[64], path[128];
    char *whole = fixture_read(FIXTURE_FULL);
    char *text = calloc(1, FIXTURE_TEXT_MAX);
    ASSERT_NOT_NULL(whole);
    ASSERT_NOT_NULL(text);
    fixture_folder_create(folder);
    snprintf(path, sizeof path, "%s/fuzz.yaml", folder);
    uint64_t state = 20130222;
    for (unsigned i = 0; i < MUTATIONS; i++) {
        size_t length = strlen(whole);
        memcpy(text, whole, length);
        for (uint64_t edits = 1 + next_random(&state) % 4; edits > 0; edits--) {
            length = mutate(text, length, &state);
        }
        load_mutated(path, text, length);
    }
    fixture_folder_remove(folder);
    free(text);
    free(whole);
}

static void expect_answered(const char *text, size_t length, const char *message)
{
    char folder[64], path[128];
    struct fixture fixture;
    fixture_folder_create(folder);
    snprintf(path, sizeof path, "%s/x.yaml", folder);
    fixture_write(path, text, length);
    fixture_load_file(&fixture, path, FIXTURE_CONFIGS, NULL);
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    EXPECT_CONTAINS(fixture.messages.count > 0 ? fixture.messages.lines[0] : "", message);
    fixture_fini(&fixture);
    fixture_folder_remove(folder);
}

static void expect_filled_answered(char fill, size_t length, const char *message)
{
    char *text = malloc(length);
    ASSERT_NOT_NULL(text);
    memset(text, fill, length);
    expect_answered(text, length, message);
    free(text);
}

TEST(Fuzz, DeepNestingIsRefused)
{
    expect_filled_answered('[', 100000, "nested deeper than 16 levels");
    expect_filled_answered('{', 100000, "a key must be a single word");
}

TEST(Fuzz, LargeFilesAreRefused)
{
    expect_filled_answered('a', (1u << 24) + 1, "larger than 16384 KiB");
    expect_filled_answered('\0', 1000, "not YAML: control characters are not allowed");
}

TEST(Fuzz, ManyEntriesAreRefused)
{
    size_t length = 0;
    char *text = malloc(200000);
    ASSERT_NOT_NULL(text);
    for (unsigned i = 0; i < 10000; i++) {
        length += (size_t)sprintf(text + length, "k%u: 1\n", i);
    }
    expect_answered(text, length, "more than 4096 entries in a mapping");
    free(text);
}
