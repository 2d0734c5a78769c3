// The page: its JSON, the notes on rows, figure.yaml. tests/page looks at it in a browser.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fixture.h"
#include "sim/report/figure.h"
#include "sim/report/json.h"
#include "sim/report/notes.h"
#include "sim/report/page.h"
#include "tests/shim/test.h"

static void write_file(const char *directory, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    ASSERT_NOT_NULL(file);
    fputs(text, file);
    fclose(file);
}

static char *text_written(const char *text)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    json_text_write(out, text);
    fclose(out);
    return bytes;
}

TEST(Json, TextsAreValidAndSafeInAScriptElement)
{
    static const struct {
        const char *text, *json;
    } cases[] = {{"", "\"\""},
                 {"a \"b\" \\c", "\"a \\\"b\\\" \\\\c\""},
                 {"one\ntwo\x1b", "\"one\\u000atwo\\u001b\""},
                 {"</script><!--", "\"\\u003c/script>\\u003c!--\""},
                 {"\xc2\xb5s \xe2\x82\xac", "\"\xc2\xb5s \xe2\x82\xac\""},
                 {"a\xff\xc2", "\"a??\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TEST_TRACE("case %zu", i);
        char *json = text_written(cases[i].text);
        EXPECT_STREQ(json, cases[i].json);
        free(json);
    }
}

static bool is_second(const struct table *table, size_t row)
{
    (void)table;
    return row == 1;
}

TEST(Json, FieldsThatJsonCanHaveAsNumbersAreNumbers)
{
    struct fixture fixture;
    struct table table;
    char path[256], error[256] = "", *json = NULL;
    size_t size = 0;
    fixture_create(&fixture);
    write_file(fixture.directory, "t.csv", "a,b,published\n1,-2.5,1.0\n01,1e9,<5.0\n0x1,1.,3\n,+1,-\n");
    snprintf(path, sizeof path, "%s/t.csv", fixture.directory);
    ASSERT_EQ(table_read(path, &table, error, sizeof error), SIM_OK);
    FILE *out = open_memstream(&json, &size);
    json_table_write(out, &table, NULL);
    fputc('\n', out);
    json_table_write(out, &table, is_second);
    fclose(out);
    EXPECT_STREQ(
        json, "{\"columns\":[\"a\",\"b\",\"published\"],\"rows\":[\n[1,-2.5,\"1.0\"],\n[\"01\",1e9,\"\\u003c5.0\"],\n"
              "[\"0x1\",\"1.\",\"3\"],\n[\"\",\"+1\",\"-\"]]}\n"
              "{\"columns\":[\"a\",\"b\",\"published\"],\"rows\":[\n[\"01\",1e9,\"\\u003c5.0\"]]}");
    free(json);
    table_free(&table);
    fixture_destroy(&fixture);
}

static char *notes_of(const struct fixture *fixture, const char *document)
{
    char path[256], *bytes = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "%s/d.md", fixture->directory);
    write_file(fixture->directory, "d.md", document);
    FILE *out = open_memstream(&bytes, &size);
    notes_write(path, out);
    fclose(out);
    return bytes;
}

TEST(Notes, AreTheParagraphsThatBeginWithIds)
{
    static const struct {
        const char *document, *notes;
    } cases[] = {
        {"# Title\n\nH01 is not in bold.\n\n**Steps.** No id.\n", "{}"},
        {"**H15, +50 %.** One\ntwo.\n\nAnother H15.\n", "{\"H15\":[\"H15, +50 %. One two.\"]}"},
        {"**H06, -8 %, and H05.** Both.\n**S26 to S28.** Three.\n",
         "{\"H06\":[\"H06, -8 %, and H05. Both.\"],\"H05\":[\"H06, -8 %, and H05. Both.\"],\"S26\":[\"S26 to S28. "
         "Three.\"],\"S27\":[\"S26 to S28. Three.\"],\"S28\":[\"S26 to S28. Three.\"]}"},
        {"**A05.** First.\n\n**A05 again.** Second.\n", "{\"A05\":[\"A05. First.\",\"A05 again. Second.\"]}"},
        {"**XH15 H155 H1.** None.\n", "{}"},
        {"**H15 is not closed.\n", "{}"},
    };
    struct fixture fixture;
    fixture_create(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TEST_TRACE("case %zu", i);
        char *notes = notes_of(&fixture, cases[i].document);
        EXPECT_STREQ(notes, cases[i].notes);
        free(notes);
    }
    fixture_destroy(&fixture);
}

TEST(Notes, WithoutADocumentThereAreNone)
{
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    notes_write("/nowhere/accuracy.md", out);
    fclose(out);
    EXPECT_STREQ(bytes, "{}");
    free(bytes);
}

TEST(FigureFile, NamesTheRowsOfComparedPointsInTheUnitOfTheColumn)
{
    struct fixture fixture;
    char error[256] = "";
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    fixture_panel_add(&fixture, "bytes", "latency_us");
    fixture_compare_add(&fixture, "H08", fixture_value("pio", "latency_us", SCN_TAKE_MIN));
    fixture_compare_add(&fixture, "A01", fixture_value("pio", "bandwidth_GBps", SCN_TAKE_MAX)); // 1590 MB/s of 2^20 B
    fixture_compare_add(&fixture, "H09", fixture_value("pio", "latency_us", SCN_TAKE_MEAN));    // of three rows
    ASSERT_EQ(report_write(fixture.report, fixture.directory, fixture.input, error, sizeof error), SIM_OK);
    char *text = fixture_read(&fixture, ".", "figure.yaml");
    ASSERT_NOT_NULL(text);
    EXPECT_CONTAINS(text, "x: bytes, y: latency_us");
    EXPECT_CONTAINS(text, "- {id: H08, row: 0, column: latency_us, low: 0.9, high: 0.9, what: ");
    EXPECT_CONTAINS(text, "- {id: A01, row: 2, column: bandwidth_GBps, low: 1.66723584, high: 1.66723584, what: ");
    EXPECT_NULL(strstr(text, "H09"));
    free(text);
    fixture_destroy(&fixture);
}

static void expect_title(const struct fixture *fixture, bool flow)
{
    char title[REPORT_TITLE_MAX];
    report_title_make(fixture->report, title);
    if (flow) {
        EXPECT_CONTAINS(title, " (fidelity: flow)");
    } else {
        EXPECT_NULL(strstr(title, " (fidelity: flow)"));
    }
}

TEST(Figure, SaysThatItIsOfFidelityFlow)
{
    static const char *const sets[] = {"seed=1", "nodes.*.board.fidelity=twin"};
    const struct scn_sweep_point points[] = {{"1", "1", "1", "", sets, 1}, {"twin", "twin", "twin", "", sets + 1, 1}};
    struct scn_sweep sweep = {.title = "", .axis_title = "", .others_title = "", .point_count = 1};
    struct fixture fixture;
    fixture_create(&fixture);
    struct scn_scenario *scenario = fixture.scenario;
    scenario->node_count = 2;
    expect_title(&fixture, false);
    scenario->fidelity = SCN_FIDELITY_FLOW; // of nodes without a board
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        scenario->nodes[i].board.given = true;
        scenario->nodes[i].board.fidelity = SCN_FIDELITY_RTL;
    }
    expect_title(&fixture, false);
    scenario->nodes[0].board.given = false;
    expect_title(&fixture, true);
    scenario->sweep = &sweep;
    sweep.points = &points[0];
    expect_title(&fixture, true);
    sweep.points = &points[1]; // each point has its own
    expect_title(&fixture, false);
    scenario->sweep = NULL;
    scenario->node_count = 0;
    fixture_destroy(&fixture);
}

TEST(Figure, HasTheAxisOfASweep)
{
    static const char *const sets[] = {"seed=1"};
    const struct scn_sweep_point points[] = {{"1, a", "1, a", "1", "a", sets, 1},
                                             {"1, b", "1, b", "1", "b", sets, 1},
                                             {"2, a", "2, a", "2", "a", sets, 1},
                                             {"2, b", "2, b", "2", "b", sets, 1}};
    const struct scn_sweep sweep = {.title = "seed, x",
                                    .axis_title = "seed",
                                    .others_title = "x",
                                    .axis_count = 2,
                                    .axis_stride = 2,
                                    .points = points,
                                    .point_count = 4};
    struct fixture fixture;
    char *text = NULL;
    size_t size = 0;
    fixture_create(&fixture);
    fixture.scenario->sweep = &sweep;
    FILE *out = open_memstream(&text, &size);
    report_figure_write(fixture.report, out);
    fclose(out);
    EXPECT_CONTAINS(text, "sweep:\n  axis: \"seed\"\n  stride: 2\n  values: [\"1\", \"2\"]\n");
    EXPECT_CONTAINS(text,
                    "  others: [\"a\", \"b\", \"a\", \"b\"]\n  curves: [\"1, a\", \"1, b\", \"2, a\", \"2, b\"]\n");
    free(text);
    fixture.scenario->sweep = NULL;
    fixture_destroy(&fixture);
}

static enum sim_status page_of(const struct fixture *fixture, const char *directory, char *error, size_t error_size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/page.html", fixture->directory);
    const struct page_request request = {.directories = &directory, .count = 1};
    return page_write(&request, path, error, error_size);
}

TEST(Page, HasTheResultsAndIsTheSameTwice)
{
    struct fixture fixture;
    char error[512] = "", directory[256];
    fixture_create(&fixture);
    fixture_rows_add(&fixture);
    snprintf(directory, sizeof directory, "%s/out", fixture.directory);
    ASSERT_EQ(report_write(fixture.report, directory, fixture.input, error, sizeof error), SIM_OK);
    EXPECT_TRUE(page_has_results(directory));
    EXPECT_FALSE(page_has_results(fixture.directory));
    char *pages[2];
    for (unsigned i = 0; i < 2; i++) {
        EXPECT_EQ(page_of(&fixture, directory, error, sizeof error), SIM_OK);
        pages[i] = fixture_read(&fixture, ".", "page.html");
        ASSERT_NOT_NULL(pages[i]);
    }
    EXPECT_STREQ(pages[1], pages[0]);
    EXPECT_CONTAINS(pages[0], "{\"name\":\"out\",\"directory\":");
    EXPECT_CONTAINS(pages[0], "[\"dma, \\\"fast\\\"\",4096,3");
    EXPECT_CONTAINS(pages[0], "Redistribution"); // D3's licence
    EXPECT_NULL(strstr(pages[0], "@SCRIPT@"));
    free(pages[0]);
    free(pages[1]);
    fixture_destroy(&fixture);
}

TEST(Page, HasTheDifferencesOfDirectoriesOfOneName)
{
    static const char *const parents[] = {"a", "b", "c"};
    static const char *const latencies[] = {"1.0", "1.5", "1.0"};
    struct fixture fixture;
    char error[512] = "", paths[3][256], page_path[256];
    fixture_create(&fixture);
    for (unsigned i = 0; i < 3; i++) {
        char parent[256], data[128];
        snprintf(parent, sizeof parent, "%s/%s", fixture.directory, parents[i]);
        snprintf(paths[i], sizeof paths[i], "%s/%s/%s", fixture.directory, parents[i], i < 2 ? "same" : "other");
        snprintf(data, sizeof data, "series,bytes,descriptors,latency_us\ns,8,1,%s\n", latencies[i]);
        ASSERT_EQ(mkdir(parent, 0777), 0);
        ASSERT_EQ(mkdir(paths[i], 0777), 0);
        write_file(paths[i], "data.csv", data);
        write_file(paths[i], "counters.csv",
                   i == 0 ? "series,component,name,unit,value\ns,c,n,B,0\ns,c,m,B,4\n"
                          : "series,component,name,unit,value\ns,c,n,B,7\ns,c,m,B,4\n");
    }
    const char *const directories[] = {paths[0], paths[1], paths[2]};
    const struct page_request request = {.directories = directories, .count = 3};
    snprintf(page_path, sizeof page_path, "%s/page.html", fixture.directory);
    EXPECT_EQ(page_write(&request, page_path, error, sizeof error), SIM_OK);
    char *page = fixture_read(&fixture, ".", "page.html");
    ASSERT_NOT_NULL(page);
    const char *differences =
        strstr(page, "\"differences\":[{\"first\":0,\"second\":1,\"numbers\":3,\"resolved\":false");
    ASSERT_NOT_NULL(differences);
    EXPECT_CONTAINS(differences, "[\"s\",8,1,0,0,\"latency_us\",\"1.0\",\"1.5\",\"+0.5\",50]]");
    EXPECT_CONTAINS(differences, "[\"s\",\"c\",\"n\",\"0\",\"7\",\"+7\",\"+inf\"]]}}]}"); // the equal one is left out
    free(page);
    fixture_destroy(&fixture);
}

TEST(Page, ADirectoryWithABrokenTableIsRefusedAndAnEarlierPageStays)
{
    struct fixture fixture;
    char error[512] = "", directory[256];
    fixture_create(&fixture);
    snprintf(directory, sizeof directory, "%s/out", fixture.directory);
    ASSERT_EQ(mkdir(directory, 0777), 0);
    write_file(directory, "data.csv", "series,bytes\na,1\nb\n");
    write_file(fixture.directory, "page.html", "earlier");
    EXPECT_EQ(page_of(&fixture, directory, error, sizeof error), SIM_ERR_INVALID);
    EXPECT_CONTAINS(error, "data.csv:3: 1 fields, expected 2");
    char *page = fixture_read(&fixture, ".", "page.html");
    ASSERT_NOT_NULL(page);
    EXPECT_STREQ(page, "earlier");
    free(page);
    write_file(directory, "data.csv", "series,bytes\na,1\n");
    write_file(directory, "figure.yaml", "title: [\n");
    EXPECT_EQ(page_of(&fixture, directory, error, sizeof error), SIM_ERR_INVALID);
    EXPECT_CONTAINS(error, "figure.yaml: this is no YAML that tcasim has written");
    fixture_destroy(&fixture);
}
