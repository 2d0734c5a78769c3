// The names, ends and rates of a scenario's links.
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/links.h"

static void link_print(void *ctx, const struct scn_named_link *link)
{
    FILE *out = ctx;
    fprintf(out, "%s: %s to %s", link->name, link->ends[0], link->ends[1]);
    if (link->pcie != NULL) {
        fprintf(out, ", Gen%u x%u\n", (unsigned)link->pcie->generation, (unsigned)link->pcie->lanes);
    } else {
        fprintf(out, ", %llu B/us\n", (unsigned long long)link->bytes_per_us);
    }
}

TEST(Links, HaveTheNamesOfCountersAndTheRateOfTheSlowerPort)
{
    struct fixture fixture;
    fixture_load_text(&fixture,
                      "title: t\n"
                      "nodes:\n"
                      "  - {name: a, preset: ha-pacs-tca-2013, with: {hca: {preset: connectx3-qdr}}}\n"
                      "  - {name: b, preset: ha-pacs-tca-2013, with: {hca: {preset: connectx3-qdr}}}\n"
                      "cables:\n  - {from: a.E, to: b.W, preset: pearl-gen2-x8}\n"
                      "ib_switches:\n  - {name: leaf, preset: qdr-36, with: {rate: 1000 MB/s}}\n"
                      "ib_cables:\n  - {from: a, to: leaf, flight: 75 ns}\n  - {from: leaf, to: b, flight: 75 ns}\n"
                      "runs: [{series: s, workload: pingpong, method: pio, node: a, peer: b, bytes: 8 B}]\n",
                      NULL);
    EXPECT_STREQ(fixture_message(&fixture), "");
    ASSERT_EQ(fixture.status, SIM_OK);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ASSERT_NOT_NULL(out);
    scn_links_visit(fixture.scenario, link_print, out);
    fclose(out);
    EXPECT_CONTAINS(text, "a.slot: a to a.board, Gen2 x8\n");
    EXPECT_CONTAINS(text, "a.hca.slot: a to a.hca, Gen3 x8\n");
    EXPECT_CONTAINS(text, "b.hca.slot: b to b.hca, Gen3 x8\n");
    EXPECT_CONTAINS(text, "\na.E-b.W: a.E to b.W, Gen2 x8\n");
    EXPECT_CONTAINS(text, "\na.hca-leaf.ib: a.hca to leaf.ib, 1000 B/us\n");
    EXPECT_CONTAINS(text, "\nleaf.ib-b.hca: leaf.ib to b.hca, 1000 B/us\n");
    free(text);
    fixture_fini(&fixture);
}
