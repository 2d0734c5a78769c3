#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"
#include "sim/cli/output.h"
#include "tests/shim/test.h"

#define SCENARIOS TCASIM_SOURCE_DIR "/scenarios/"

// Puts a copy of a scenario of the tree into the scratch directory.
static void scenario_copy(const struct process *process, const char *folder, const char *name)
{
    char path[1024], copy[256], text[8192] = "";
    snprintf(path, sizeof path, SCENARIOS "%s/%s.yaml", folder, name);
    snprintf(copy, sizeof copy, "%s.yaml", name);
    FILE *file = fopen(path, "r");
    if (file == NULL || fread(text, 1, sizeof text - 1, file) == 0) {
        FAIL("cannot read %s", path);
    }
    if (file != NULL) {
        fclose(file);
    }
    process_file_write(process, copy, text);
}

static void topo(struct process *process, const char *scenario, const char *rest)
{
    char words[256];
    snprintf(words, sizeof words, "topo %s.yaml %s", scenario, rest);
    process_init(process);
    scenario_copy(process, "topology", scenario);
    process_run(process, words);
}

static unsigned occurrences(const char *text, const char *part)
{
    unsigned count = 0;
    for (const char *found = strstr(text, part); found != NULL; found = strstr(found + 1, part)) {
        count++;
    }
    return count;
}

TEST(TopoCommand, PrintsCablesHopsAndRoutesOfTwoRings)
{
    struct process process;
    topo(&process, "two-rings-8", "--out x.svg");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "8 nodes, 12 cables\n");
    EXPECT_CONTAINS(process.output, "  11  node3.S  node7.S  Gen2 x8, 15 ns\n");
    EXPECT_CONTAINS(process.output, "\n  node1      1      -      1      2      2      1      2      3\n");
    EXPECT_CONTAINS(process.output, "\n  at most 3, on average 1.71\n");
    // Node 2: E to node 3 and, around the end of the ring, to node 0; S to the other ring.
    EXPECT_CONTAINS(process.output, "routes of node2\n"
                                    "  entry  port   mask          lower         upper\n"
                                    "      0  N      0x7e00000000  0x1000000000  0x1000000000\n"
                                    "      1  E      0x7800000000  0x0000000000  0x0000000000\n"
                                    "      2  W      0x7800000000  0x0800000000  0x0800000000\n"
                                    "      3  S      0x7800000000  0x2000000000  0x3800000000\n"
                                    "      4  board  0x7e00000000  0x1600000000  0x1600000000\n"
                                    "      5  E      0x7800000000  0x1800000000  0x1800000000\n");
    process_fini(&process);
}

TEST(TopoCommand, CountsHopsOfTheOtherShapes)
{
    static const struct {
        const char *scenario, *hops;
    } cases[] = {{"pair", "at most 1, on average 1.00"},
                 {"ring8", "at most 4, on average 2.29"},
                 {"two-rings-16", "at most 5, on average 2.67"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct process process;
        topo(&process, cases[i].scenario, "");
        EXPECT_EQ(process.status, 0);
        EXPECT_CONTAINS(process.output, cases[i].hops);
        process_fini(&process);
    }
}

TEST(TopoCommand, DrawsEveryNodeAndEveryPort)
{
    struct process process;
    topo(&process, "two-rings-16", "--out x.svg");
    char *svg = process_file_read(&process, "x.svg");
    ASSERT_NOT_NULL(svg);
    EXPECT_EQ(occurrences(svg, "<path "), 24);
    EXPECT_EQ(occurrences(svg, ">S</text>"), 16);
    EXPECT_EQ(occurrences(svg, ">E</text>"), 16);
    EXPECT_EQ(occurrences(svg, ">W</text>"), 16);
    EXPECT_EQ(occurrences(svg, ">node"), 16);
    EXPECT_EQ(occurrences(svg, "nan"), 0);
    EXPECT_CONTAINS(svg, "</svg>\n");
    free(svg);
    process_fini(&process);
}

TEST(TopoCommand, FoldsSubClustersThatAreAlike)
{
    struct process process;
    topo(&process, "ha-pacs-tca-64", "--out x.svg");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "64 nodes, 96 cables, 128 InfiniBand cables\n");
    EXPECT_CONTAINS(process.output,
                    "\nsub-clusters\n     4  tcag-0001 .. tcag-0058        two rings of 8, at most 5 hops, on "
                    "average 2.67  ha-pacs-tca-2014, HCA\n");
    EXPECT_CONTAINS(process.output, "     4  leaf0 .. leaf3                32 of 36 ports, 16 nodes, 100 ns\n"
                                    "     2  spine0 .. spine1              32 of 36 ports, 0 nodes, 100 ns\n");
    EXPECT_CONTAINS(process.output, "InfiniBand cables between nodes: at most 4, on average 3.52\n"
                                    "InfiniBand routes: shortest\n");
    char *svg = process_file_read(&process, "x.svg");
    ASSERT_NOT_NULL(svg);
    EXPECT_EQ(occurrences(svg, "<rect "), 1 + 4 + 6);
    EXPECT_EQ(occurrences(svg, "<path "), 4 + 4 * 2); // a leaf has one line to its nodes and one to each spine
    EXPECT_EQ(occurrences(svg, ">16 nodes<"), 4);
    EXPECT_EQ(occurrences(svg, "nan"), 0);
    EXPECT_CONTAINS(svg, "</svg>\n");
    free(svg);
    process_fini(&process);
}

TEST(TopoCommand, PrintsEveryNodeIfAsked)
{
    struct process process;
    topo(&process, "ha-pacs-tca-64", "--full");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "\n  63  tcag-0058  ha-pacs-tca-2014, HCA\n");
    EXPECT_CONTAINS(process.output, "\nroutes of tcag-0058\n");
    process_fini(&process);
}

TEST(TopoCommand, NamesTheRootOfUpDownRoutes)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "torus.yaml",
                       "title: t\ntopology: {kind: separate, preset: rx200-s7, nodes: 48, "
                       "ib_fabric: {kind: torus, switch: qdr-36, size: [4, 4]}}\n");
    process_run(&process, "topo torus.yaml --out x.svg");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "\n    48  node0 .. node47               one node  rx200-s7, HCA\n");
    EXPECT_CONTAINS(process.output, "\n    16  switch-0-0 .. switch-3-3      7 of 36 ports, 3 nodes, 100 ns\n");
    EXPECT_CONTAINS(process.output, "InfiniBand routes: up*/down*, from the root switch-0-0\n");
    char *svg = process_file_read(&process, "x.svg");
    EXPECT_EQ(occurrences(svg != NULL ? svg : "", "<path "), 16 + 32);
    EXPECT_EQ(occurrences(svg != NULL ? svg : "", ">3 nodes<"), 16);
    free(svg);
    process_fini(&process);
}

TEST(TopoCommand, DrawsIntoTheResultsUnlessToldOtherwise)
{
    struct process process;
    topo(&process, "pair", "");
    char *svg = process_file_read(&process, "results/pair/topology.svg");
    EXPECT_CONTAINS(process.output, "drawing: results/pair/topology.svg\n");
    EXPECT_CONTAINS(svg != NULL ? svg : "", "Two nodes on one cable");
    free(svg);
    process_fini(&process);
}

static void refuse(const char *words, const char *errors)
{
    struct process process;
    process_init(&process);
    scenario_copy(&process, "topology", "pair");
    scenario_copy(&process, "invalid", "odd-two-rings");
    process_run(&process, words);
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, errors);
    EXPECT_EQ(process_entries(&process), 2);
    process_fini(&process);
}

TEST(TopoCommand, RefusesBadInput)
{
    refuse("topo", "a scenario file is missing");
    refuse("topo nothing.yaml", "nothing.yaml: cannot be read");
    refuse("topo a.yaml b.yaml", "too many arguments: 'b.yaml'");
    refuse("topo odd-two-rings.yaml", "odd-two-rings.yaml:4:36: nodes: 7 nodes; two_rings needs an even number");
    refuse("topo pair.yaml --out nowhere/x.svg", "cannot write nowhere/x.svg: its folder does not exist");
}

TEST(TopoCommand, HelpsAndTakesOverrides)
{
    struct process process;
    process_init(&process);
    process_run(&process, "topo --help");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "usage: tcasim topo FILE.yaml");
    process_fini(&process);
    topo(&process, "ring8", "--set topology.nodes=12");
    EXPECT_CONTAINS(process.output, "12 nodes, 12 cables\n");
    EXPECT_CONTAINS(process.output, "at most 6,");
    process_fini(&process);
}

static void expect_kept(const char *command, const char *out, const char *message)
{
    struct process process;
    char words[256];
    process_init(&process);
    scenario_copy(&process, "topology", "two-rings-8");
    char *before = process_file_read(&process, "two-rings-8.yaml");
    snprintf(words, sizeof words, command, out);
    process_run(&process, words);
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, message);
    EXPECT_EQ(process_entries(&process), 1);
    char *after = process_file_read(&process, "two-rings-8.yaml");
    EXPECT_STREQ(after, before);
    free(before);
    free(after);
    process_fini(&process);
}

TEST(OutputFile, IsNeverTheScenario)
{
    expect_kept("topo two-rings-8.yaml --out ./%s", "two-rings-8.yaml",
                "./two-rings-8.yaml: it is the scenario itself");
    expect_kept("run two-rings-8.yaml --quiet --out out --trace %s", "two-rings-8.yaml", "it is the scenario itself");
}

TEST(OutputFile, IsNeverAPresetOrThePublishedValues)
{
    struct process process;
    struct cli_paths paths = {0};
    char file[128];
    process_init(&process);
    process_file_write(&process, "papers.csv", "");
    snprintf(paths.reference, sizeof paths.reference, "%s/./papers.csv", process.directory);
    snprintf(file, sizeof file, "%s/papers.csv", process.directory);
    EXPECT_TRUE(!cli_output_usable(file, "x.yaml", &paths));
    snprintf(paths.reference, sizeof paths.reference, "%s/other.csv", process.directory);
    EXPECT_TRUE(cli_output_usable(file, "x.yaml", &paths));
    snprintf(paths.configs, sizeof paths.configs, "%s", process.directory);
    EXPECT_TRUE(!cli_output_usable(file, "x.yaml", &paths));
    process_fini(&process);
}

TEST(OutputFile, MayHaveANameThatBeginsLikeThePresetsFolder)
{
    struct process process;
    struct cli_paths paths = {0};
    char file[128];
    process_init(&process);
    snprintf(paths.configs, sizeof paths.configs, "%s/configs", process.directory);
    ASSERT_EQ(mkdir(paths.configs, 0777), 0);
    process_file_write(&process, "configs.svg", "");
    process_file_write(&process, "configs/a.yaml", "");
    snprintf(file, sizeof file, "%s/configs.svg", process.directory);
    EXPECT_TRUE(cli_output_usable(file, "x.yaml", &paths));
    snprintf(file, sizeof file, "%s/configs/a.yaml", process.directory);
    EXPECT_FALSE(cli_output_usable(file, "x.yaml", &paths));
    process_fini(&process);
}

TEST(TopoCommand, DrawsIntoOrdinaryFilesAlone)
{
    struct process process;
    char path[128];
    process_init(&process);
    scenario_copy(&process, "topology", "two-rings-8");
    snprintf(path, sizeof path, "%s/pipe", process.directory);
    EXPECT_EQ(mkfifo(path, 0600), 0);
    process_run(&process, "topo two-rings-8.yaml --out pipe");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "cannot write pipe: it is not a regular file");
    process_fini(&process);
}

TEST(TopoCommand, ShowsHcasSwitchesAndTheirCables)
{
    struct process process;
    process_init(&process);
    scenario_copy(&process, "fabric", "ib-switches-on-the-way");
    process_run(&process, "topo ib-switches-on-the-way.yaml --out x.svg");
    char *svg = process_file_read(&process, "x.svg");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "6 nodes, 0 cables, 7 InfiniBand cables\n");
    EXPECT_CONTAINS(process.output, "   0  leaf0  3 of 36 ports, "); // two nodes and the spine
    EXPECT_CONTAINS(process.output, "   2  spine  2 of 36 ports, 200 ns\n");
    EXPECT_CONTAINS(process.output, "   4  leaf0 - spine  75 ns\n");
    EXPECT_CONTAINS(process.output, "\n  node1      2      -      4      4      -      -\n");
    ASSERT_NOT_NULL(svg);
    EXPECT_EQ(occurrences(svg, "<path "), 7);
    EXPECT_EQ(occurrences(svg, ">HCA</text>"), 6);
    EXPECT_EQ(occurrences(svg, ">leaf"), 2);
    EXPECT_EQ(occurrences(svg, ">spine"), 1);
    free(svg);
    process_fini(&process);
}
