#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "sim/report/files.h"
#include "tests/shim/test.h"

static enum sim_status write_to(const struct fixture *fixture, const char *name, char error[256])
{
    char directory[512];
    snprintf(directory, sizeof directory, "%s/%s", fixture->directory, name);
    error[0] = '\0';
    return report_write(fixture->report, directory, fixture->input, error, 256);
}

static void written_is(const struct fixture *fixture, const char *name, const char *expected)
{
    char error[256];
    EXPECT_EQ(write_to(fixture, "out", error), SIM_OK);
    EXPECT_STREQ(error, "");
    char *text = fixture_read(fixture, "out", name);
    EXPECT_STREQ(text, expected);
    free(text);
}

TEST(Files, DataHasOneLineARow)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    written_is(&fixture, "data.csv",
               "series,bytes,latency_us,bandwidth_GBps,descriptors,operations,min_latency_us,max_latency_us\n"
               "pio,8,1.000000,0.008000,1,10,0.999999,1.000001\n"
               "pio,64,2.000000,0.032000,1,10,1.999999,2.000001\n"
               "pio,4096,4.000000,1.024000,1,10,3.999999,4.000001\n"
               "\"dma, \"\"fast\"\"\",8,2.000000,0.004000,1,10,1.999999,2.000001\n"
               "\"dma, \"\"fast\"\"\",64,2.000000,0.032000,1,10,1.999999,2.000001\n"
               "\"dma, \"\"fast\"\"\",4096,3.000000,1.365333,1,10,2.999999,3.000001\n");
    fixture_destroy(&fixture);
}

TEST(Files, DataIsEmptyWhereNothingWasMeasured)
{
    struct fixture fixture;
    const struct report_point nothing = {.series = "pio", .bytes = 8, .descriptors = 1};
    fixture_create(&fixture);
    report_add_point(fixture.report, &nothing);
    written_is(&fixture, "data.csv",
               "series,bytes,latency_us,bandwidth_GBps,descriptors,operations,min_latency_us,max_latency_us\n"
               "pio,8,,,1,0,,\n");
    fixture_destroy(&fixture);
}

TEST(Files, DataHasMemoryInUnitsOf2To20Bytes)
{
    struct fixture fixture;
    const struct report_point point = {.series = "pio", .bytes = 8, .descriptors = 1, .memory_bytes = 3 << 19};
    fixture_create(&fixture);
    report_add_point(fixture.report, &point);
    written_is(&fixture, "data.csv",
               "series,bytes,latency_us,bandwidth_GBps,descriptors,operations,min_latency_us,max_latency_us,memory_MB\n"
               "pio,8,,,1,0,,,1.500000\n");
    fixture_destroy(&fixture);
}

TEST(Files, CountersHaveOneLineEach)
{
    struct fixture fixture;
    fixture_create(&fixture);
    report_add_counter(fixture.report, "pio", "node0.board", "tlps_sent", "TLPs", 1000000000000);
    written_is(&fixture, "counters.csv",
               "series,component,name,unit,value\npio,node0.board,tlps_sent,TLPs,1000000000000\n");
    fixture_destroy(&fixture);
}

TEST(Files, CompareHasALineForEveryId)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    fixture_compare_add(&fixture, "H08", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    struct scn_check *half = fixture_compare_add(&fixture, "H15", fixture_value("pio", "bandwidth_GBps", SCN_TAKE_MAX));
    half->over = fixture_value("pio", "bandwidth_GBps", SCN_TAKE_MAX);
    half->first_reaching = 0.5;
    snprintf(half->what, sizeof half->what, "half of the peak, reached");
    struct scn_check *order = fixture_compare_add(&fixture, "H16", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    order->value.bytes_max = 0;
    written_is(&fixture, "compare.csv",
               "id,what,simulated,published,unit,error_percent,use,doubt\n"
               "H08,pingpong_latency_pio_cpu_cpu,1.000000,0.9,us,11.11,calibrate,\n"
               "H15,\"half of the peak, reached\",4.000000,2-8,KB,0.00,predict,\n"
               "H16,latency_order_gpu_gpu,,order,-,,predict,\n");
    fixture_destroy(&fixture);
}

TEST(Files, ManifestNamesHashesAndTools)
{
    struct fixture fixture;
    fixture_create(&fixture);
    fixture.scenario->seed = 42;
    report_add_run(fixture.report, "pio", 1000, 20, 3);
    report_add_run(fixture.report, "dma", 500, 2, 1);
    report_add_set(fixture.report, "title=a \"b\"");
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    char *text = fixture_read(&fixture, "out", "manifest.yaml");
    EXPECT_CONTAINS(text, "scenario: \"example\"\nseed: 42\nset:\n  - \"title=a \\\"b\\\"\"\n");
    // SHA-256 of "abc", from FIPS 180-4's examples.
    EXPECT_CONTAINS(text, "  scenario: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n");
    EXPECT_CONTAINS(text, "simulated_ps: 1500\n");
    EXPECT_CONTAINS(text, "  - series: \"dma\"\n    simulated_ps: 500\n    events: 2\n    rtl_cycles: 1\n");
    EXPECT_CONTAINS(text, "  systemc: \"2.3");
    EXPECT_LACKS(text, "gnuplot");
    free(text);
    fixture_destroy(&fixture);
}

static void draw(struct fixture *fixture)
{
    fixture_create(fixture);
    fixture_rows_add(fixture);
    fixture_compare_add(fixture, "H08", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    fixture_compare_add(fixture, "H10", fixture_value("dma, \"fast\"", "latency_us", SCN_TAKE_LAST));
    fixture_panel_add(fixture, "bytes", "latency_us");
    fixture_panel_add(fixture, "bytes", "bandwidth_GBps");
}

TEST(Plot, ShowsCurvesTitlesAndPublishedPoints)
{
    struct fixture fixture;
    draw(&fixture);
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    char *svg = fixture_read(&fixture, "out", "plot.svg");
    EXPECT_CONTAINS(svg, "An example's title");
    EXPECT_CONTAINS(svg, "latency_us's panel");
    EXPECT_CONTAINS(svg, "dma, \"fast\"");
    EXPECT_CONTAINS(svg, ">H08<");
    EXPECT_CONTAINS(svg, "H10<");
    EXPECT_CONTAINS(svg, ">4K<");
    char *manifest = fixture_read(&fixture, "out", "manifest.yaml");
    EXPECT_CONTAINS(manifest, "  gnuplot: \"5.");
    free(manifest);
    free(svg);
    fixture_destroy(&fixture);
}

TEST(Plot, PublishedValuesThatMeetHaveOneLabel)
{
    struct fixture fixture;
    draw(&fixture); // H08: 0.9 us, H10: below 5 us
    fixture_compare_add(&fixture, "H10", fixture_value("dma, \"fast\"", "latency_us", SCN_TAKE_LAST));
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    char *svg = fixture_read(&fixture, "out", "plot.svg");
    EXPECT_CONTAINS(svg, ">H08<");
    EXPECT_CONTAINS(svg, "H10 ≤H10<");
    free(svg);
    fixture_destroy(&fixture);
}

TEST(Plot, ScriptDrawsTheSamePictureWhenTheUserRunsIt)
{
    struct fixture fixture;
    draw(&fixture);
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    char *before = fixture_read(&fixture, "out", "plot.svg");
    char command[512];
    snprintf(command, sizeof command, "cd %s/out && rm plot.svg && gnuplot plot.gp", fixture.directory);
    EXPECT_EQ(system(command), 0);
    char *after = fixture_read(&fixture, "out", "plot.svg");
    EXPECT_STREQ(after, before);
    free(before);
    free(after);
    fixture_destroy(&fixture);
}

TEST(Plot, OfAnEarlierRunDoesNotOutliveItsPanels)
{
    struct fixture fixture;
    draw(&fixture);
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    fixture.scenario->panel_count = 0;
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    char *svg = fixture_read(&fixture, "out", "plot.svg");
    EXPECT_NULL(svg);
    free(svg);
    fixture_destroy(&fixture);
}

// The text of plot.gp after a title.
static void drawn_as(const struct fixture *fixture, const char *rows, const char *title)
{
    char *script = fixture_read(fixture, "out", "plot.gp");
    char line[256];
    snprintf(line, sizeof line, "%s with linespoints linetype %s", rows, title);
    EXPECT_CONTAINS(script, line);
    free(script);
}

// Two sizes for each of one and two descriptors.
static void chains_add(struct fixture *fixture)
{
    fixture_row_add(fixture, "pio", 64, 1, 1000000);
    fixture_row_add(fixture, "pio", 128, 2, 1000000);
    fixture_row_add(fixture, "pio", 4096, 1, 2000000);
    fixture_row_add(fixture, "pio", 8192, 2, 2000000);
}

TEST(Plot, DrawsALineForEachSizeOverDescriptors)
{
    struct fixture fixture;
    char error[256];
    fixture_create(&fixture);
    chains_add(&fixture);
    fixture_panel_add(&fixture, "descriptors", "latency_us");
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    drawn_as(&fixture, "every ::0::1 using 5:3", "1 title 'pio, 64 B'");
    drawn_as(&fixture, "every ::2::3 using 5:3", "2 title 'pio, 4 KiB'");
    fixture_destroy(&fixture);
}

TEST(Plot, DrawsALineForEachNumberOfDescriptorsOverBytes)
{
    struct fixture fixture;
    char error[256];
    fixture_create(&fixture);
    chains_add(&fixture);
    fixture_panel_add(&fixture, "bytes", "latency_us");
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    drawn_as(&fixture, "using (strstrt(' 0 2 ', sprintf(' %d ', $0)) ? $2 : NaN):3", "1 title 'pio, 1 descriptor'");
    drawn_as(&fixture, "using (strstrt(' 1 3 ', sprintf(' %d ', $0)) ? $2 : NaN):3", "2 title 'pio, 2 descriptors'");
    fixture_destroy(&fixture);
}

TEST(Plot, KeepsOneLineForChainsOfOneSize)
{
    struct fixture fixture;
    char error[256];
    fixture_create(&fixture);
    fixture_row_add(&fixture, "pio", 64, 1, 1000000);
    fixture_row_add(&fixture, "pio", 128, 2, 1000000);
    fixture_panel_add(&fixture, "bytes", "latency_us");
    fixture_panel_add(&fixture, "descriptors", "latency_us");
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    drawn_as(&fixture, "every ::0::1 using 2:3", "1 title 'pio'");
    drawn_as(&fixture, "every ::0::1 using 5:3", "1 title 'pio'");
    fixture_destroy(&fixture);
}

TEST(Plot, APanelShowsTheSeriesAndTheSizeThatItChooses)
{
    struct fixture fixture;
    char error[256];
    fixture_create(&fixture);
    fixture_row_add(&fixture, "pio", 64, 1, 1000000);
    fixture_row_add(&fixture, "dma, near", 64, 1, 2000000);
    fixture_row_add(&fixture, "dma, near", 128, 1, 2000000);
    fixture_row_add(&fixture, "dma, far", 128, 1, 3000000);
    fixture_panel_add(&fixture, "bytes", "latency_us");
    fixture_panel_add(&fixture, "descriptors", "latency_us");
    snprintf(fixture.scenario->panels[0].series, sizeof fixture.scenario->panels[0].series, "dma, *");
    fixture.scenario->panels[1].at = 64;
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    EXPECT_STREQ(error, "");
    drawn_as(&fixture, "every ::1::2 using 2:3", "1 title 'dma, near'");
    drawn_as(&fixture, "every ::3::3 using 2:3", "2 title 'dma, far'");
    drawn_as(&fixture, "every ::0::0 using 5:3", "1 title 'pio'");
    drawn_as(&fixture, "every ::1::1 using 5:3", "2 title 'dma, near'");
    char *plot = fixture_read(&fixture, "out", "plot.gp");
    EXPECT_LACKS(plot, "using 2:3 with linespoints linetype 1 title 'pio'");
    EXPECT_LACKS(plot, "using 5:3 with linespoints linetype 3 title");
    free(plot);
    fixture_destroy(&fixture);
}

TEST(Plot, EveryKindOfPanelIsAcceptedByGnuplot)
{
    struct fixture fixture;
    draw(&fixture);
    fixture_panel_add(&fixture, "descriptors", "bandwidth_GBps");
    fixture_panel_add(&fixture, "bytes", "max_latency_us");
    fixture.scenario->panels[2].x_log = false;
    fixture.scenario->panels[3].x_log = false;
    fixture.scenario->panels[3].y_log = true;
    fixture.scenario->panels[3].x_max = 2048;
    fixture.scenario->panels[2].at = 3; // no row
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    EXPECT_STREQ(error, "");
    fixture_destroy(&fixture);
}

static void same_in_both(const struct fixture *fixture, const char *name)
{
    char *one = fixture_read(fixture, "one", name);
    char *two = fixture_read(fixture, "two", name);
    EXPECT_STREQ(one, two);
    free(one);
    free(two);
}

TEST(Files, TwoWritesGiveTheSameBytes)
{
    static const char *const names[] = {"data.csv", "counters.csv",  "compare.csv",  "plot.gp",
                                        "plot.svg", "resolved.yaml", "manifest.yaml"};
    struct fixture fixture;
    draw(&fixture);
    char error[256];
    EXPECT_EQ(write_to(&fixture, "one", error), SIM_OK);
    EXPECT_EQ(write_to(&fixture, "two", error), SIM_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        same_in_both(&fixture, names[i]);
    }
    fixture_destroy(&fixture);
}

static unsigned entries(const char *path)
{
    unsigned count = 0;
    DIR *directory = opendir(path);
    if (directory != NULL) {
        while (readdir(directory) != NULL) {
            count++;
        }
        closedir(directory);
    }
    return count;
}

TEST(Files, NothingTemporaryIsLeftBehind)
{
    struct fixture fixture;
    draw(&fixture);
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_OK);
    char directory[512];
    snprintf(directory, sizeof directory, "%s/out", fixture.directory);
    EXPECT_EQ(entries(directory), 2 + 8);
    fixture_destroy(&fixture);
}

TEST(Files, AFailingGnuplotLeavesNothingBehind)
{
    struct fixture fixture;
    draw(&fixture);
    char *path = strdup(getenv("PATH"));
    setenv("PATH", "/nonexistent", 1);
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_ERR_IO);
    setenv("PATH", path, 1);
    free(path);
    EXPECT_CONTAINS(error, "cannot run gnuplot");
    char directory[512];
    snprintf(directory, sizeof directory, "%s/out", fixture.directory);
    EXPECT_EQ(entries(directory), 2);
    fixture_destroy(&fixture);
}

TEST(Files, AFileInPlaceOfTheDirectoryIsRefused)
{
    struct fixture fixture;
    fixture_create(&fixture);
    char error[256];
    EXPECT_EQ(write_to(&fixture, "input.yaml", error), SIM_ERR_IO);
    EXPECT_CONTAINS(error, "Not a directory");
    EXPECT_EQ(write_to(&fixture, "input.yaml/deeper", error), SIM_ERR_IO);
    fixture_destroy(&fixture);
}

TEST(Files, AFullDiskIsNoticed)
{
    struct fixture fixture;
    fixture_create(&fixture);
    char link[512];
    snprintf(link, sizeof link, "%s/out", fixture.directory);
    ASSERT_EQ(mkdir(link, 0777), 0);
    snprintf(link, sizeof link, "%s/out/.data.csv.%ld.tmp", fixture.directory, (long)getpid());
    ASSERT_EQ(symlink("/dev/full", link), 0);
    fixture_rows_add(&fixture);
    char error[256];
    EXPECT_EQ(write_to(&fixture, "out", error), SIM_ERR_IO);
    EXPECT_CONTAINS(error, "No space left on device");
    fixture_destroy(&fixture);
}

// The disk is full for the first part of the text, and has room again for the second.
static void parts_write(void *ctx, FILE *out)
{
    int disk = dup(fileno(out)), full = open("/dev/full", O_WRONLY);
    (void)ctx;
    EXPECT_GE(dup2(full, fileno(out)), 0);
    fputs("first", out);
    EXPECT_EQ(fflush(out), EOF);
    EXPECT_GE(dup2(disk, fileno(out)), 0);
    fputs("second", out);
    close(full);
    close(disk);
}

TEST(Files, AFileThatLacksAPartIsNotPutInPlace)
{
    struct fixture fixture;
    char path[256], error[512] = "", message[512];
    fixture_create(&fixture);
    snprintf(path, sizeof path, "%s/text", fixture.directory);
    snprintf(message, sizeof message, "cannot write %s: ", path);
    EXPECT_EQ(files_one_write(path, parts_write, NULL, error, sizeof error), SIM_ERR_IO);
    EXPECT_CONTAINS(error, message);
    EXPECT_EQ(entries(fixture.directory), 2 + 1); // only the input
    fixture_destroy(&fixture);
}
