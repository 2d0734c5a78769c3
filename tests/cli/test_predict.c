// `tcasim predict`, and its files against measurements.
#include <stdlib.h>
#include <string.h>

#include "process.h"
#include "tests/shim/test.h"

static const char scenario[] =
    "# Question: what will be measured?\n"
    "title: A ping-pong\n"
    "topology: {kind: pair, preset: ha-pacs-tca-2013, with: {board: {fidelity: twin}}, cable: pearl-gen2-x8}\n"
    "runs:\n"
    "  - {series: dma, workload: pingpong, method: register, node: node0, peer: node1,\n"
    "     bytes: [8 B, 4 KiB], iterations: 2, warmup: 1}\n"
    "  - {series: pio, workload: pingpong, method: pio, node: node0, peer: node1, bytes: 8 B, iterations: 2, warmup: "
    "1}\n";

static void predict(struct process *process)
{
    process_init(process);
    process_file_write(process, "s.yaml", scenario);
    process_run(process, "predict s.yaml --draws 20 --out p.txt");
    EXPECT_EQ(process->status, 0);
    EXPECT_CONTAINS(process->output, "Prediction: p.txt, SHA-256 ");
}

static void compare(struct process *process, const char *measured)
{
    process_file_write(process, "m.csv", measured);
    process_run(process, "compare p.txt m.csv");
}

TEST(Predict, SaysWhetherMeasurementsAreInside)
{
    struct process process;
    predict(&process);
    compare(&process, "series,bytes,latency_us\ndma,8,1.0\ndma,4096,3.676\npio,8,99\n");
    EXPECT_EQ(process.status, 1);
    EXPECT_CONTAINS(process.output, "us; 1 of 3 are inside their intervals.");
    EXPECT_CONTAINS(process.output, "p.txt: SHA-256 ");
    EXPECT_CONTAINS(process.output, "; 20 draws\n");
    compare(&process, "bytes,latency_us\n4096,3.676\n"); // no other row has so many bytes
    EXPECT_EQ(process.status, 0);
    compare(&process, "bandwidth_GBps,bytes\n1.114,4096\n");
    EXPECT_EQ(process.status, 0);
    EXPECT_CONTAINS(process.output, "GB/s; 1 of 1 are inside their intervals.");
    process_fini(&process);
}

TEST(Predict, RefusesMeasurementsThatAreNotOfItsRows)
{
    static const struct {
        const char *measured, *error;
    } cases[] = {
        {"bytes,latency_us\n8,1\n", "m.csv: measurement 1 is several rows of the prediction"},
        {"bytes,latency_us\n16,1\n", "m.csv: measurement 1 is no row of the prediction"},
        {"bytes,nodes,latency_us\n8,2,1\n", "m.csv: the prediction has no column 'nodes'"},
        {"bytes\n8\n", "m.csv: no column is called latency_us or bandwidth_GBps"},
        {"bytes,latency_us\n4096,fast\n", "m.csv: measurement 1 has no number"},
        {"", "m.csv"},
        {"bytes,latency_us\n", "m.csv: there is no measurement"},
        {"bytes,latency_us,bandwidth_GBps\n4096,3,1\n", "m.csv: expected latency_us or bandwidth_GBps, not both"},
    };
    struct process process;
    predict(&process);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        TEST_TRACE("%s", cases[i].measured);
        compare(&process, cases[i].measured);
        EXPECT_EQ(process.status, 2);
        EXPECT_CONTAINS(process.errors, cases[i].error);
    }
    process_fini(&process);
}

TEST(Predict, IsNotTakenIfItWasChanged)
{
    struct process process;
    predict(&process);
    char *text = process_file_read(&process, "p.txt"), *number = strstr(text, "dma,4096");
    EXPECT_CONTAINS(text, "\n## manifest.yaml\n");
    EXPECT_CONTAINS(text, "\n## resolved.yaml\n");
    number[5] = '5';
    process_file_write(&process, "p.txt", text);
    compare(&process, "bytes,latency_us\n4096,1\n");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "p.txt was changed: below its hash is what has the hash ");
    free(text);
    process_fini(&process);
}

TEST(Predict, TakesANumberOfDraws)
{
    struct process process;
    process_init(&process);
    process_file_write(&process, "s.yaml", scenario);
    process_run(&process, "predict s.yaml --draws many");
    EXPECT_EQ(process.status, 2);
    EXPECT_CONTAINS(process.errors, "--draws many: expected a number of draws, 20 to 10000");
    process_fini(&process);
}

TEST(Predict, HasTheSameBytesEveryTime)
{
    struct process process;
    predict(&process);
    process_run(&process, "predict s.yaml --draws 20 --out q.txt --jobs 1");
    char *one = process_file_read(&process, "p.txt"), *two = process_file_read(&process, "q.txt");
    EXPECT_STREQ(one, two);
    free(one);
    free(two);
    process_fini(&process);
}
