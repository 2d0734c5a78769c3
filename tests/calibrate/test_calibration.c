// The file of a calibration.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/calibrate/calibration.h"
#include "tests/shim/test.h"

struct loading {
    char path[64];
    calibration_t *calibration;
    struct scn_messages messages;
    enum sim_status status;
};

static void load(struct loading *loading, const char *text)
{
    *loading = (struct loading){.path = "/tmp/tcasim-calibration-XXXXXX"};
    int file = mkstemp(loading->path);
    ASSERT_GE(file, 0);
    ASSERT_EQ(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    loading->status = calibration_load(loading->path, &loading->calibration, &loading->messages);
}

static void unload(struct loading *loading)
{
    calibration_free(loading->calibration);
    scn_messages_free(&loading->messages);
    unlink(loading->path);
}

// The file is refused with this as the only message, behind its place.
static void expect_refused(const char *text, const char *place, const char *message)
{
    struct loading loading;
    char line[512];
    load(&loading, text);
    snprintf(line, sizeof line, "%s:%s: %s", loading.path, place, message);
    EXPECT_EQ(loading.status, SIM_ERR_INVALID);
    EXPECT_EQ(loading.messages.count, 1);
    if (loading.messages.count == 1) {
        EXPECT_STREQ(loading.messages.lines[0], line);
    }
    unload(&loading);
}

TEST(Calibration, ReadsScenariosKeysAndRows)
{
    struct loading loading;
    load(&loading,
         "title: A title\nscenarios: [a.yaml, /b.yaml]\nrows: [H08]\nkeys:\n"
         "  - {key: [nodes.*.host.poll, nodes.*.host.load], from: 10 ns, to: 1 us, step: 30 ns, source: here}\n"
         "  - {key: seed, from: 1, to: 3, step: 2, source: there}\n");
    ASSERT_EQ(loading.status, SIM_OK);
    const struct calibration *calibration = loading.calibration;
    EXPECT_STREQ(calibration->title, "A title");
    EXPECT_EQ(calibration->scenario_count, 2);
    EXPECT_STREQ(calibration->scenarios[0], "/tmp/a.yaml"); // beside the file
    EXPECT_STREQ(calibration->scenarios[1], "/b.yaml");
    EXPECT_EQ(calibration->row_count, 1);
    EXPECT_STREQ(calibration->rows[0], "H08");
    ASSERT_EQ(calibration->key_count, 2);
    const struct calibration_key *poll = &calibration->keys[0], *seed = &calibration->keys[1];
    EXPECT_EQ(poll->path_count, 2);
    EXPECT_STREQ(poll->paths[1], "nodes.*.host.load");
    EXPECT_STREQ(poll->source, "here");
    EXPECT_EQ(poll->value_count, 34); // 10, 40, ... 1000 ns
    EXPECT_EQ(calibration_value(poll, 33), 1000000);
    EXPECT_EQ(seed->value_count, 2);
    EXPECT_EQ(calibration_value(seed, 1), 3);
    EXPECT_STREQ(poll->name, "host.poll");
    EXPECT_STREQ(seed->name, "seed");
    unload(&loading);
}

TEST(Calibration, FormatsValuesAsYamlHasThem)
{
    struct loading loading;
    char text[CALIBRATION_VALUE_MAX];
    load(&loading, "scenarios: a.yaml\nkeys:\n"
                   "  - {key: a, from: 500 ns, to: 2 us, step: 500 ns, source: s}\n"
                   "  - {key: b, from: 256 B, to: 1 KiB, step: 256 B, source: s}\n"
                   "  - {key: c, from: 7, to: 9, step: 1, source: s}\n");
    ASSERT_EQ(loading.status, SIM_OK);
    calibration_value_format(&loading.calibration->keys[0], 0, text);
    EXPECT_STREQ(text, "500 ns");
    calibration_value_format(&loading.calibration->keys[0], 1, text);
    EXPECT_STREQ(text, "1 us");
    calibration_value_format(&loading.calibration->keys[1], 3, text);
    EXPECT_STREQ(text, "1 KiB");
    calibration_value_format(&loading.calibration->keys[2], 2, text);
    EXPECT_STREQ(text, "9");
    unload(&loading);
}

TEST(Calibration, FindsTheValueNearestToAText)
{
    struct loading loading;
    load(&loading, "scenarios: a.yaml\nkeys: [{key: a, from: 100 ns, to: 200 ns, step: 10 ns, source: s}]\n");
    ASSERT_EQ(loading.status, SIM_OK);
    static const struct {
        const char *text;
        uint32_t index;
    } cases[] = {{"100 ns", 0},  {"0.1 us", 0}, {"99 ns", 0}, {"104 ns", 0}, {"105 ns", 1}, {"150 ns", 5},
                 {"200 ns", 10}, {"1 ms", 10},  {"", 5},      {"150", 5},    {"3 KiB", 5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TEST_TRACE("text '%s'", cases[i].text);
        EXPECT_EQ(calibration_value_nearest(&loading.calibration->keys[0], cases[i].text), cases[i].index);
    }
    unload(&loading);
}

#define KEY(range) "scenarios: [a.yaml]\nkeys:\n  - {key: a, " range "}\n"

TEST(Calibration, RefusesWhatItCannotUse)
{
    expect_refused("keys: []\nscenarios: [a.yaml]\n", "1:7", "'keys' needs a list of keys with their ranges");
    expect_refused("scenarios: []\nkeys: [{key: a, from: 1, to: 2, step: 1, source: s}]\n", "1:12",
                   "'scenarios' needs a list of texts");
    expect_refused("scenarios: [a.yaml]\n", "1:1", "a calibration needs 'keys'");
    expect_refused("[]\n", "1:1", "a calibration is a mapping, not a list");
    expect_refused("scenarios: [a.yaml]\nkey: 3\nkeys: []\n", "2:1",
                   "unknown key 'key' of a calibration (did you mean 'keys'?)");
    expect_refused(KEY("from: 1, to: 2, step: 1"), "3:5", "an entry of 'keys' needs 'source'");
    expect_refused(KEY("from: 1, to: 1, step: 1, source: s"), "3:20",
                   "'from', 'to' and 'step' leave the key a single value");
    expect_refused(KEY("from: 1, to: 9, step: 0, source: s"), "3:20",
                   "'from', 'to' and 'step' leave the key a single value");
    expect_refused(KEY("from: 1, to: 9, step: 9, source: s"), "3:20",
                   "'from', 'to' and 'step' leave the key a single value");
    expect_refused(KEY("from: 1 ns, to: 9, step: 1 ns, source: s"), "3:30", "'to: 9' is not a quantity from 0 on as 'from' is");
    expect_refused(KEY("from: much, to: 9, step: 1, source: s"), "3:20",
                   "'from' needs a whole number, or a quantity such as '30 ns', '256 B', '250 MHz'");
    expect_refused(KEY("from: 0, to: 18446744073709551615, step: 1, source: s"), "3:55", "more than 10000 values");
    expect_refused("scenarios: [a.yaml]\nkeys: [{key: a=1, from: 1, to: 2, step: 1, source: s}]\n", "2:8",
                   "'key: a=1' is no path as --set takes it");
}

TEST(Calibration, KeysWithOneNameKeepTheirNodes)
{
    struct loading loading;
    load(&loading, "scenarios: a.yaml\nkeys:\n"
                   "  - {key: nodes.0.host.poll, from: 1 ns, to: 2 ns, step: 1 ns, source: s}\n"
                   "  - {key: nodes.1.host.poll, from: 1 ns, to: 2 ns, step: 1 ns, source: s}\n"
                   "  - {key: nodes.1.host.load, from: 1 ns, to: 2 ns, step: 1 ns, source: s}\n");
    ASSERT_EQ(loading.status, SIM_OK);
    EXPECT_STREQ(loading.calibration->keys[0].name, "nodes.0.host.poll");
    EXPECT_STREQ(loading.calibration->keys[1].name, "nodes.1.host.poll");
    EXPECT_STREQ(loading.calibration->keys[2].name, "host.load");
    unload(&loading);
}

TEST(Calibration, RefusesMoreThanItCanKeep)
{
    char text[2048] = "scenarios: [a.yaml]\nkeys:\n";
    for (unsigned i = 0; i < CALIBRATION_KEYS_MAX + 1; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "  - {key: k%u, from: 1, to: 2, step: 1, source: s}\n", i);
    }
    expect_refused(text, "11:5", "more than 8 keys");
}

TEST(Calibration, AFileThatIsNotThereIsNamed)
{
    calibration_t *calibration = NULL;
    struct scn_messages messages = {0};
    EXPECT_EQ(calibration_load("/nowhere/c.yaml", &calibration, &messages), SIM_ERR_IO);
    ASSERT_EQ(messages.count, 1);
    EXPECT_CONTAINS(messages.lines[0], "/nowhere/c.yaml");
    scn_messages_free(&messages);
}
