// Consistency of the table of keys.
#include "fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sim/scenario/value.h"

static void each_key(void (*check)(const struct scn_kind *kind, const struct scn_key *key))
{
    for (size_t i = 0; scn_kinds[i] != NULL; i++) {
        for (size_t j = 0; j < scn_kinds[i]->key_count; j++) {
            check(scn_kinds[i], &scn_kinds[i]->keys[j]);
        }
    }
}

static void check_doc(const struct scn_kind *kind, const struct scn_key *key)
{
    if (key->doc == NULL || key->doc[0] == '\0') {
        FAIL("%s.%s has no doc", kind->name, key->name);
    }
}

TEST(Keys, AllSayWhatTheyMean)
{
    each_key(check_doc);
}

static void check_unique(const struct scn_kind *kind, const struct scn_key *key)
{
    void *base = NULL;
    if (key->unit != SCN_UNIT_EMBED && scn_key_find(kind, key->name, &base) != key) {
        FAIL("%s.%s is there twice", kind->name, key->name);
    }
}

TEST(Keys, NamesAreUniqueInTheirKind)
{
    each_key(check_unique);
}

static void check_default(const struct scn_kind *kind, const struct scn_key *key)
{
    uint64_t value = 0;
    char why[SCN_WHY_MAX] = "";
    bool number = key->unit <= SCN_UNIT_BOOL || key->unit == SCN_UNIT_INTEGERS;
    if (number && key->fallback != NULL && key->second == 0 && !scn_number_parse(key, key->fallback, &value, why)) {
        FAIL("default of %s.%s: %s", kind->name, key->name, why);
    }
}

TEST(Keys, DefaultsLieInTheirRange)
{
    each_key(check_default);
}

static void check_range(const struct scn_kind *kind, const struct scn_key *key)
{
    uint64_t limit = key->size == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;
    if (scn_key_has_range(key) && (key->min > key->max || key->max > limit)) {
        FAIL("range of %s.%s does not fit", kind->name, key->name);
    }
    if (key->unit == SCN_UNIT_CHOICE && key->choices == NULL) {
        FAIL("%s.%s has no choices", kind->name, key->name);
    }
}

TEST(Keys, RangesFitTheirFields)
{
    each_key(check_range);
}

// --- boundaries ------------------------------------------------------------------------------------------------------

static const char *walked_file;
static const struct scn_key *walked[1024];
static unsigned walked_count;

static uint64_t largest_of(const struct scn_key *key)
{
    return key->size == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;
}

static bool is_bounded_number(const struct scn_key *key)
{
    bool number = key->unit < SCN_UNIT_CHOICE || key->unit == SCN_UNIT_SIZES || key->unit == SCN_UNIT_INTEGERS;
    return number && (key->min > 0 || key->max < largest_of(key));
}

// The key at a path as --set takes it; NULL: its values are no numbers in a range, or it was walked before.
static const struct scn_key *walk_next(const char *path)
{
    const struct scn_kind *kind = &scn_kind_scenario;
    const struct scn_key *key = NULL;
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *word = strtok_r(copy, ".", &rest); word != NULL; word = strtok_r(NULL, ".", &rest)) {
        if (word[0] >= '0' && word[0] <= '9') {
            continue; // the position in a list
        }
        key = scn_key_find(kind, word, NULL);
        if (key == NULL) {
            FAIL("there is no %s of %s", word, path);
            return NULL;
        }
        kind = key->child;
    }
    for (unsigned i = 0; i < walked_count; i++) {
        key = key == walked[i] ? NULL : key;
    }
    bool number =
        key != NULL && (key->unit < SCN_UNIT_CHOICE || key->unit == SCN_UNIT_SIZES || key->unit == SCN_UNIT_INTEGERS);
    return number && scn_key_has_range(key) ? key : NULL;
}

static void number_print(FILE *out, const struct scn_key *key, uint64_t number)
{
    static const enum scn_quantity quantities[] = {
        [SCN_UNIT_SIZE] = SCN_QUANTITY_SIZE,
        [SCN_UNIT_TIME] = SCN_QUANTITY_TIME,
        [SCN_UNIT_FREQUENCY] = SCN_QUANTITY_FREQUENCY,
        [SCN_UNIT_RATE] = SCN_QUANTITY_RATE,
    };
    char text[SCN_QUANTITY_MAX];
    if (key->unit <= SCN_UNIT_RATE) {
        scn_quantity_format(quantities[key->unit], number, text);
        fputs(text, out);
    } else if (key->unit == SCN_UNIT_SIZES) {
        scn_quantity_format(SCN_QUANTITY_SIZE, number, text);
        fprintf(out, "[%s]", text);
    } else {
        fprintf(out, key->unit == SCN_UNIT_INTEGERS ? "[%" PRIu64 "]" : "%" PRIu64, number);
    }
}

// A value in its range may still break a rule between keys.
static void try_number(const char *path, const struct scn_key *key, uint64_t number, bool in_range)
{
    struct fixture fixture;
    char set[512] = "";
    FILE *out = fmemopen(set, sizeof set, "w");
    ASSERT_NOT_NULL(out);
    fprintf(out, "%s=", path);
    number_print(out, key, number);
    fclose(out);
    TEST_TRACE("--set %s", set);
    fixture_load_file(&fixture, walked_file, FIXTURE_CONFIGS, set);
    if (in_range) {
        EXPECT_LACKS(fixture.status == SIM_OK ? "" : fixture_message(&fixture), "is out of range (");
    } else {
        EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
        EXPECT_EQ(fixture.messages.count, 1);
        EXPECT_CONTAINS(fixture_message(&fixture), "is out of range (");
    }
    fixture_fini(&fixture);
}

static void walk_boundaries(void *context, const char *path, const char *value, const char *source)
{
    (void)context, (void)value, (void)source;
    const struct scn_key *key = walk_next(path);
    if (key == NULL) {
        return;
    }
    ASSERT_LT(walked_count, sizeof walked / sizeof *walked);
    walked[walked_count++] = key;
    try_number(path, key, key->min, true);
    try_number(path, key, key->max, true);
    if (key->min > 0) {
        try_number(path, key, key->min - 1, false);
    }
    if (key->max < largest_of(key)) {
        try_number(path, key, key->max + 1, false);
    }
}

static bool is_taken(const struct scn_key *key, uint64_t number)
{
    char text[64] = "", why[SCN_WHY_MAX] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    uint64_t taken = 0;
    if (out == NULL) {
        return false;
    }
    number_print(out, key, number);
    fclose(out);
    return scn_number_parse(key, text, &taken, why) && taken == number;
}

// Keys that stand for others have no value of their own.
static void try_alone(const struct scn_kind *kind, const struct scn_key *key)
{
    bool walk_has_it = !is_bounded_number(key);
    for (unsigned i = 0; i < walked_count; i++) {
        walk_has_it = walk_has_it || key == walked[i];
    }
    if (!walk_has_it) {
        TEST_TRACE("%s.%s", kind->name, key->name);
        bool without = key->unit == SCN_UNIT_ABSENT || kind == &scn_kind_topology || kind == &scn_kind_ib_fabric;
        EXPECT_NE(without ? SCN_KEY_OPEN : key->flags & SCN_KEY_OPEN, 0);
        EXPECT_TRUE(is_taken(key, key->min));
        EXPECT_TRUE(is_taken(key, key->max));
        if (key->min > 0) {
            EXPECT_FALSE(is_taken(key, key->min - 1));
        }
        if (key->max < largest_of(key)) {
            EXPECT_FALSE(is_taken(key, key->max + 1));
        }
    }
}

TEST(Keys, TakeTheEndsOfTheirRangeAndNothingBeyond)
{
    static const char *const files[] = {"tests/scenario/full.yaml", "tests/scenario/verbs.yaml",
                                        "tests/platform/all_devices.yaml"};
    walked_count = 0;
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
        struct fixture fixture;
        char path[512];
        snprintf(path, sizeof path, TCASIM_SOURCE_DIR "/%s", files[i]);
        walked_file = path;
        fixture_load_file(&fixture, path, FIXTURE_CONFIGS, NULL);
        ASSERT_EQ(fixture.status, SIM_OK);
        scn_visit(fixture.scenario, walk_boundaries, NULL);
        fixture_fini(&fixture);
    }
    each_key(try_alone);
}

TEST(Keys, OfALinkStandDirectlyInACable)
{
    struct scn_cable cable;
    void *base = &cable;
    const struct scn_key *key = scn_key_find(&scn_kind_cable, "lanes", &base);
    ASSERT_NOT_NULL(key);
    EXPECT_EQ((char *)base + key->offset, (char *)&cable.link.lanes);
}

TEST(Keys, OfPortsMethodsAndProgramsHaveNames)
{
    EXPECT_STREQ(scn_port_name(SCN_PORT_N), "N");
    EXPECT_STREQ(scn_port_name(SCN_PORT_E), "E");
    EXPECT_STREQ(scn_port_name(SCN_PORT_W), "W");
    EXPECT_STREQ(scn_port_name(SCN_PORT_S), "S");
    EXPECT_STREQ(scn_method_name(SCN_METHOD_CHAIN_HOST), "chain-host");
    EXPECT_STREQ(scn_workload_name(SCN_WORKLOAD_LOCAL_DMA), "local-dma");
}
