// Traces and waveforms of a run, and the files that remain of a run that was stopped.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"
#include "tests/shim/test.h"

static const char scenario[] = "# Question: what does a DMA do on the wires?\n"
                               "title: A small ping-pong\n"
                               "nodes:\n"
                               "  - {name: node, count: 2, preset: ha-pacs-tca-2013}\n"
                               "cables:\n"
                               "  - {from: node0.E, to: node1.W, preset: pearl-gen2-x8}\n"
                               "runs:\n"
                               "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,\n"
                               "     bytes: [64 B], iterations: 2, warmup: 1}\n";

static void start(struct process *process)
{
    process_init(process);
    process_file_write(process, "small.yaml", scenario);
}

TEST(TraceOption, TellsWhatEachTlpWas)
{
    struct process process;
    start(&process);
    process_run(&process, "run small.yaml --quiet --trace trace.csv");
    EXPECT_EQ(process.status, 0);
    char *trace = process_file_read(&process, "trace.csv");
    EXPECT_CONTAINS(trace, "series,time_ps,component,point,kind,address,length_bytes,requester,tag,status,details\n");
    EXPECT_CONTAINS(trace, ",node0.E-node1.W.0,tlp_sent,MWr,0x8");
    EXPECT_CONTAINS(trace, ",node0.slot.1,tlp_sent,MRd,0x");
    EXPECT_CONTAINS(trace, ",node0.slot.1,tlp_received,CplD,,64,0x100,");
    EXPECT_CONTAINS(trace, ",SC,\ndma,");
    free(trace);
    EXPECT_EQ(process_entries(&process), 3); // the scenario, results, the trace
    process_fini(&process);
}

// The columns before the number are those of a trace without causes.
TEST(TraceOption, NumbersRecordsAndNamesTheirCauses)
{
    struct process process;
    start(&process);
    process_run(&process, "run small.yaml --quiet --trace trace.csv --trace-causes");
    EXPECT_EQ(process.status, 0);
    char *trace = process_file_read(&process, "trace.csv");
    EXPECT_CONTAINS(trace, ",requester,tag,status,details,number,cause\n");
    EXPECT_CONTAINS(trace, "dma,385000,node0.slot.0,tlp_sent,MRd,0x4000000000,4,0x0,32,,,1,\n");
    EXPECT_CONTAINS(trace, ",node0.slot.1,tlp_received,MRd,0x4000000000,4,0x0,32,,,3,1\n");
    EXPECT_CONTAINS(trace, ",node0.slot.1,tlp_sent,CplD,,4,0x0,32,SC,,5,3\n");
    EXPECT_CONTAINS(trace, ",node0.slot.0,tlp_received,CplD,,4,0x0,32,SC,,7,5\n");
    free(trace);
    process_fini(&process);
}

TEST(TraceOption, NamesTheNearestCauseThatIsWritten)
{
    struct process process;
    start(&process);
    process_run(&process, "run small.yaml --quiet --trace trace.csv --trace-causes --trace-only *p?sent");
    EXPECT_EQ(process.status, 0);
    char *trace = process_file_read(&process, "trace.csv");
    EXPECT_CONTAINS(trace, ",node0.slot.1,tlp_sent,CplD,,4,0x0,32,SC,,5,1\n");
    free(trace);
    process_fini(&process);
}

// The line whose record has that number. "": there is none, or the number is 0.
static const char *line_of(const char *trace, unsigned long number)
{
    for (const char *line = trace; number != 0 && *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *comma = strchr(line, '\n');
        for (unsigned commas = 0; commas < 2; commas += *comma == ',') {
            comma--;
        }
        if (strtoul(comma + 1, NULL, 10) == number) {
            return line;
        }
    }
    return "";
}

static unsigned long cause_of(const char *line)
{
    const char *comma = strchr(line, '\n');
    while (*comma != ',') {
        comma--;
    }
    return strtoul(comma + 1, NULL, 10);
}

// The point of the nearest cause of that component, after how many steps.
static const char *cause_at(const char *trace, const char *line, const char *component, unsigned *steps_out)
{
    const char *found = NULL;
    *steps_out = 0;
    while (*line != '\0' && found == NULL && *steps_out < 100) {
        const char *end = strchr(line, '\n');
        found = strstr(line, component);
        found = found != NULL && found < end ? found + strlen(component) : NULL;
        line = found == NULL ? line_of(trace, cause_of(line)) : line;
        *steps_out += found == NULL;
    }
    return found != NULL ? found : "";
}

TEST(TraceOption, LeadsFromAReceivedMessageToTheCallThatSentIt)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "verbs.yaml",
                       "title: a message\n"
                       "nodes:\n"
                       "  - {name: node, count: 2, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}, hca: "
                       "{preset: connectx3-qdr}}}\n"
                       "ib_cables: [{from: node0, to: node1, flight: 10 ns}]\n"
                       "runs:\n"
                       "  - {series: s, workload: verbs-latency, device: ibsim0, operation: send, node: node0, peer: "
                       "node1, bytes: 8 B,\n"
                       "     iterations: 1, warmup: 0}\n");
    process_run(&process, "run verbs.yaml --quiet --trace trace.csv --trace-causes");
    EXPECT_EQ(process.status, 0);
    char *trace = process_file_read(&process, "trace.csv"), *polled = strstr(trace, ",node1.verbs,ibv_poll_cq,,,8,");
    ASSERT_NOT_NULL(polled);
    while (*polled != '\n') {
        polled--;
    }
    unsigned steps = 0;
    EXPECT_EQ(strncmp(cause_at(trace, polled + 1, ",node0.verbs,", &steps), "ibv_post_send,", 14), 0);
    EXPECT_BETWEEN(steps, 8, 20); // the doorbell's TLP, the packet, TLPs of data and completion
    free(trace);
    process_run(&process, "run verbs.yaml --quiet --trace again.csv --trace-causes");
    char *again = process_file_read(&process, "again.csv");
    trace = process_file_read(&process, "trace.csv");
    EXPECT_STREQ(again, trace);
    EXPECT_NULL(strstr(trace, "0x7f")); // an address of the simulator's own process
    EXPECT_NULL(strstr(trace, "0x55"));
    free(again);
    free(trace);
    process_fini(&process);
}

TEST(TraceOption, KeepsToThePatternsGiven)
{
    struct process process;
    start(&process);
    process_run(&process, "run small.yaml --quiet --trace trace.csv --trace-only *-node1.W.? --trace-only none");
    EXPECT_EQ(process.status, 0);
    char *trace = process_file_read(&process, "trace.csv");
    EXPECT_CONTAINS(trace, ",node0.E-node1.W.1,tlp_received,");
    EXPECT_LACKS(trace, ".slot.");
    free(trace);
    process_fini(&process);
}

TEST(TraceOption, KeepsToTracePointsWhoseNamesMatch)
{
    struct process process;
    start(&process);
    process_run(&process, "run small.yaml --quiet --trace trace.csv --trace-only *p?sent");
    EXPECT_EQ(process.status, 0);
    EXPECT_STREQ(process.errors, "");
    char *trace = process_file_read(&process, "trace.csv");
    EXPECT_CONTAINS(trace, ",tlp_sent,");
    EXPECT_LACKS(trace, ",tlp_received,");
    free(trace);
    process_fini(&process);
}

static void refused(const char *words, const char *errors)
{
    struct process process;
    start(&process);
    process_run(&process, words);
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, errors);
    EXPECT_EQ(process_entries(&process), 1);
    process_fini(&process);
}

TEST(TraceOption, RefusesAtOnceWhatCannotBeWritten)
{
    refused("run small.yaml --trace /tmp", "cannot write /tmp: it is a directory");
    refused("run small.yaml --trace none/trace.csv", "cannot write none/trace.csv: its folder does not exist");
    refused("run small.yaml --trace-only x", "--trace-only needs --trace");
    refused("run small.yaml --trace-causes", "--trace-causes needs --trace");
    refused("run small.yaml other.yaml --trace t.csv", "--trace takes one scenario at a time");
}

// A rename over a device file, as root, would remove the device for all users.
TEST(TraceOption, ReplacesNothingButOrdinaryFiles)
{
    struct process process;
    char path[128];
    start(&process);
    snprintf(path, sizeof path, "%s/pipe", process.directory);
    ASSERT_EQ(mkfifo(path, 0600), 0);
    process_run(&process, "run small.yaml --trace pipe");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "cannot write pipe: it is not a regular file");
    EXPECT_EQ(process_entries(&process), 2);
    process_fini(&process);
}

static void waveform_is(const struct process *process, const char *name, bool there)
{
    char *waveform = process_file_read(process, name);
    if ((waveform != NULL) != there) {
        FAIL("%s is %s", name, there ? "missing" : "still there");
    }
    free(waveform);
}

TEST(Waveforms, AreThoseOfTheLatestRunAlone)
{
    struct process process;
    start(&process);
    process_run(&process, "run small.yaml --quiet --trace-rtl --out out");
    EXPECT_EQ(process.status, 0);
    waveform_is(&process, "out/waves/dma-node0.fst", true);
    waveform_is(&process, "out/waves/dma-node1.fst", true);
    process_run(&process, "run small.yaml --quiet --trace-rtl --out out --set runs.0.series=other");
    waveform_is(&process, "out/waves/dma-node0.fst", false);
    waveform_is(&process, "out/waves/other-node0.fst", true);
    process_run(&process, "run small.yaml --quiet --out out");
    waveform_is(&process, "out/waves/other-node0.fst", false);
    process_fini(&process);
}

TEST(Interrupt, SaysSoAndLeavesNothingBehind)
{
    struct process process;
    start(&process);
    process_run_stopped(&process, "run small.yaml --trace trace.csv --trace-rtl --set runs.0.iterations=1000000",
                        SIGINT, "results");
    EXPECT_EQ(process.status, 128 + SIGINT);
    EXPECT_CONTAINS(process.errors, "tcasim: interrupted; the scenario that was running leaves no results\n");
    char *trace = process_file_read(&process, "trace.csv");
    EXPECT_NULL(trace);
    waveform_is(&process, "results/small/waves/dma-node0.fst", false);
    waveform_is(&process, "results/small/data.csv", false);
    process_fini(&process);
}
