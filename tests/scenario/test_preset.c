// Presets in a folder that the test creates.
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The cable between the other nodes, complete without a preset.
#define OTHERS                                                                                                         \
    "{from: node1.E, to: ring0.W, generation: Gen2, lanes: x8, flight: 1 ns}, "                                        \
    "{from: ring0.E, to: ring1.W, generation: Gen2, lanes: x8, flight: 1 ns}"

struct presets {
    char folder[64];
};

static void presets_create(struct presets *presets)
{
    static const char *const kinds[] = {"link", "ib_switch"};
    fixture_folder_create(presets->folder);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", presets->folder, kinds[i]);
        EXPECT_EQ(mkdir(path, 0700), 0);
    }
}

static void preset_write(const struct presets *presets, const char *kind, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s/%s.yaml", presets->folder, kind, name);
    fixture_write(path, text, strlen(text));
}

// Loads a scenario whose only presets are those of the cable and of `more`; the nodes are complete, from a resolved
// scenario.
static void load_with(struct fixture *fixture, const struct presets *presets, const char *cable, const char *more,
                      const char *set)
{
    char path[128];
    struct fixture full;
    fixture_load_file(&full, FIXTURE_FULL, FIXTURE_CONFIGS, NULL);
    char *text = fixture_resolved(full.scenario);
    fixture_fini(&full);
    char *cables = strstr(text, "cables:\n  - ");
    char *rest = strstr(text, "\nruns:");
    snprintf(path, sizeof path, "%s/case.yaml", presets->folder);
    FILE *out = fopen(path, "w");
    fprintf(out, "%.*scables: [{from: node0.E, to: node1.W, %s}, " OTHERS "]\n%s%s", (int)(cables - text), text, cable,
            more, rest);
    fclose(out);
    free(text);
    fixture_load_file(fixture, path, presets->folder, set);
}

static void load(struct fixture *fixture, const struct presets *presets, const char *cable, const char *more)
{
    load_with(fixture, presets, cable, more, NULL);
}

static const char good_link[] = "generation: {value: Gen1, source: s}\nlanes: {value: x2, source: s}\n"
                                "flight: {value: 1 ns, assumption: a}\n";

static void expect_line(const char *preset, const char *cable, const char *line)
{
    struct presets presets;
    struct fixture fixture;
    presets_create(&presets);
    preset_write(&presets, "link", "good", good_link);
    preset_write(&presets, "link", "case", preset);
    load(&fixture, &presets, cable, "");
    EXPECT_STREQ(fixture_message(&fixture), line);
    EXPECT_EQ(fixture.messages.count, line[0] != '\0');
    fixture_fini(&fixture);
    fixture_folder_remove(presets.folder);
}

#define NO_PRESET "no preset of the scenario gives that value; expected presets.KIND.NAME.KEY=VALUE"

// One cable has the preset, another one over a value of its own; a second preset builds on it.
TEST(Preset, IsSetForAllThatUseIt)
{
    static const struct {
        const char *cable, *set;
        uint64_t flight_ps;
        const char *message;
    } cases[] = {
        {"preset: good", "presets.link.good.flight=5 ns", 5000, ""},
        {"preset: good, with: {flight: 3 ns}", "presets.link.good.flight=5 ns", 3000, ""},
        {"preset: case", "presets.link.good.flight=5 ns", 5000, ""},
        {"preset: case", "presets.link.case.lanes=x1", 1000, ""},
        {"preset: good", "presets.link.good.flight=5 B", 0, "flight: "},
        {"preset: good", "presets.link.goo.flight=5 ns", 0, NO_PRESET},
        {"preset: good", "presets.link.good.flights=5 ns", 0, NO_PRESET},
        {"preset: good", "presets.ib_switch.good.flight=5 ns", 0, NO_PRESET},
        {"preset: good", "presets.link=5 ns", 0, NO_PRESET},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct presets presets;
        struct fixture fixture;
        TEST_TRACE("%s, %s", cases[i].cable, cases[i].set);
        presets_create(&presets);
        preset_write(&presets, "link", "good", good_link);
        preset_write(&presets, "link", "case", "preset: good\nwith: {lanes: {value: x4, source: s}}");
        load_with(&fixture, &presets, cases[i].cable, "", cases[i].set);
        const char *message = fixture_message(&fixture);
        EXPECT_EQ(strncmp(message, cases[i].message, strlen(cases[i].message)), 0);
        EXPECT_EQ(message[0] == '\0', cases[i].message[0] == '\0');
        if (fixture.status == SIM_OK) {
            EXPECT_EQ(fixture.scenario->cables[0].link.flight_ps, cases[i].flight_ps);
        }
        fixture_fini(&fixture);
        fixture_folder_remove(presets.folder);
    }
}

TEST(Preset, GivesItsValues)
{
    expect_line("", "preset: good", "");
}

TEST(Preset, BuildsOnAnother)
{
    expect_line("preset: good\nwith: {lanes: {value: x4, source: s}}", "preset: case", "");
}

TEST(Preset, MayHaveTheNameOfOneOfAnotherKind)
{
    struct presets presets;
    struct fixture fixture;
    presets_create(&presets);
    preset_write(&presets, "link", "good", good_link);
    preset_write(&presets, "ib_switch", "good",
                 "ports: {value: 8, source: s}\nlatency: {value: 200 ns, source: s}\nrate: {value: 4 GB/s, source: s}\n"
                 "packet_gap: {value: 56 B, source: s}\nreceive_buffer: {value: 32 KiB, source: s}\n");
    load(&fixture, &presets, "preset: good", "ib_switches: [{name: s, preset: good}]\n");
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    EXPECT_EQ(fixture.scenario->cables[0].link.lanes, 2);
    EXPECT_EQ(fixture.scenario->ib_switches[0].ports, 8);
    fixture_fini(&fixture);
    fixture_folder_remove(presets.folder);
}

TEST(Preset, MustNotGoInCircles)
{
    expect_line("preset: case", "preset: case", "presets refer to one another in a circle");
}

TEST(Preset, NamesASourceForEveryValue)
{
    expect_line("generation: {value: Gen1, source: s}\nlanes: x2\nflight: {value: 1 ns, source: s}", "preset: case",
                "lanes: a preset names its sources: write {value: ..., source: ...} or {value: ..., assumption: ...}, with range: [LEAST, MOST]");
    expect_line("generation: {value: Gen1, source: s}\nlanes: {value: x2}\nflight: {value: 1 ns, source: s}",
                "preset: case", "lanes: expected {value: ..., source: ...} or {value: ..., assumption: ...}, with range: [LEAST, MOST]");
}

TEST(Preset, HoldsAValueWithinItsRange)
{
    static const char head[] = "generation: {value: Gen1, source: s}\nlanes: {value: x2, source: s}\n";
    static const struct {
        const char *flight, *message;
    } cases[] = {
        {"{value: 1 ns, range: [500 ps, 2 ns], assumption: a}", ""},
        {"{value: 1 ns, range: [1 ns, 1 ns], source: s}", ""},
        {"{value: 3 ns, range: [1 ns, 2 ns], source: s}", "flight: 3 ns is outside of its range, 1 ns to 2 ns"},
        {"{value: 0.9 ns, range: [1 ns, 2 ns], source: s}", "flight: 0.9 ns is outside of its range, 1 ns to 2 ns"},
        {"{value: 1 ns, range: [1 ns, 2 B], source: s}", "flight: range: '2 B' has no known unit (ps, ns, us, ms, s)"},
        {"{value: 1 ns, range: [1 ns], source: s}", "flight: range: expected [LEAST, MOST]"},
        {"{value: 1 ns, range: 1 ns, source: s}", "flight: range: expected [LEAST, MOST]"},
        {"{value: 1 ns, range: [1 ns, 2 ns]}", "flight: expected {value: ..., source: ...} or {value: ..., assumption: ...}, with range: [LEAST, MOST]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%sflight: %s", head, cases[i].flight);
        TEST_TRACE("%s", cases[i].flight);
        expect_line(text, "preset: case", cases[i].message);
    }
}

TEST(Preset, ThatLacksAKeyIsReportedWhereItIsUsed)
{
    expect_line("generation: {value: Gen1, source: s}\nlanes: {value: x2, source: s}", "preset: case",
                "missing key 'flight' in link");
    expect_line("generation: {value: Gen1, source: s}\nlanes: {value: x2, source: s}",
                "preset: case, with: {flight: 3 ns}", "");
}

TEST(Preset, HoldsNoKeysOfTheOneObject)
{
    expect_line("preset: good\nfrom: node0.E", "preset: case",
                "'from' belongs to one cable, not into a preset or with:");
}

TEST(Preset, ThatIsUnknownListsThoseThereAre)
{
    expect_line("", "preset: other", "unknown link preset 'other' (there are: case, good)");
    expect_line("", "preset: goood", "unknown link preset 'goood' (did you mean 'good'?)");
    expect_line("", "preset: ../link/good", "unknown link preset '../link/good' (there are: case, good)");
    expect_line("", "with: {lanes: x4}", "with: needs preset: beside it");
}

TEST(Preset, ThatIsEmptySaysSo)
{
    expect_line("", "preset: case", "the file is empty");
}

static enum sim_status load_shared(scn_presets_t *shared, const struct presets *presets, struct scn_messages *messages)
{
    char path[128];
    struct scn_scenario *scenario = NULL;
    const struct scn_load_options options = {.configs_dir = presets->folder, .presets = shared};
    snprintf(path, sizeof path, "%s/case.yaml", presets->folder);
    enum sim_status status = scn_load(path, &options, &scenario, messages);
    if (status == SIM_OK) {
        scn_free(scenario);
    }
    return status;
}

TEST(Preset, IsReadOnceForLoadsThatShareIt)
{
    struct presets presets;
    struct fixture fixture;
    presets_create(&presets);
    preset_write(&presets, "link", "good", good_link);
    load(&fixture, &presets, "preset: good", "");
    EXPECT_EQ(fixture.status, SIM_OK);
    fixture_fini(&fixture);
    scn_presets_t *shared = scn_presets_create();
    for (unsigned i = 0; i < 3; i++) {
        TEST_TRACE("load %u", i);
        struct scn_messages messages = {0};
        EXPECT_EQ(load_shared(shared, &presets, &messages), SIM_OK);
        scn_messages_free(&messages);
        preset_write(&presets, "link", "good", "[changed meanwhile");
    }
    scn_presets_destroy(shared);
    fixture_folder_remove(presets.folder);
}

TEST(Preset, WithAMistakeIsReportedByEachLoadThatSharesIt)
{
    struct presets presets;
    struct fixture fixture;
    presets_create(&presets);
    preset_write(&presets, "link", "case", "lanes: [");
    load(&fixture, &presets, "preset: case", "");
    EXPECT_EQ(fixture.status, SIM_ERR_INVALID);
    scn_presets_t *shared = scn_presets_create();
    for (unsigned i = 0; i < 2; i++) {
        TEST_TRACE("load %u", i);
        struct scn_messages messages = {0};
        EXPECT_EQ(load_shared(shared, &presets, &messages), SIM_ERR_INVALID);
        ASSERT_EQ(messages.count, fixture.messages.count);
        EXPECT_STREQ(messages.lines[0], fixture.messages.lines[0]);
        scn_messages_free(&messages);
    }
    scn_presets_destroy(shared);
    fixture_fini(&fixture);
    fixture_folder_remove(presets.folder);
}
