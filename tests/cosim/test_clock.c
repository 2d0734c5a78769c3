// The edges at which boards are evaluated.
#include "sim/kernel/thread.h"
#include "tests/cosim/chip.h"

TEST(Clock, RefusesPeriodsThatHaveNoHalf)
{
    struct sim_config config = {.seed = 1};
    sim_t *sim;
    cosim_clock_t *clock;
    ASSERT_EQ(sim_create(&config, &sim), SIM_OK);
    EXPECT_EQ(cosim_clock_create(sim, 0, &clock), SIM_ERR_INVALID);
    EXPECT_EQ(cosim_clock_create(sim, 4001, &clock), SIM_ERR_INVALID);
    sim_destroy(sim);
}

TEST(Board, RefusesValuesThatTheChipCannotTake)
{
    struct chip *chip = chip_create(NULL);
    struct cosim_peach2_ops ops = {0};
    cosim_peach2_t *board = NULL;
    struct cosim_peach2_config wrong[8];
    for (unsigned i = 0; i < 8; i++) {
        wrong[i] = chip_config();
    }
    wrong[0].mps_bytes = 64;
    wrong[1].mps_bytes = 300;
    wrong[2].read_bytes = 1024;
    wrong[3].read_tags = 33;
    wrong[4].prefetch = 0;
    wrong[5].start_cycles = 65536;
    wrong[6].fetch_cycles = 65536;
    wrong[7].finish_cycles = 65536;
    for (unsigned i = 0; i < 8; i++) {
        TEST_TRACE("wrong value %u", i);
        EXPECT_EQ(cosim_peach2_create(chip->clock, chip->pool, "wrong", &wrong[i], &ops, NULL, NULL, &board),
                  SIM_ERR_RANGE);
    }
    EXPECT_NULL(board);
    chip_destroy(chip);
}

TEST(Clock, EvaluatesNothingWhileBoardsAreIdle)
{
    struct chip *chip = chip_create(NULL);
    chip_run(chip);
    EXPECT_EQ(cosim_peach2_cycles(chip->board), 0);
    chip_destroy(chip);
}

TEST(Clock, StopsSoonAfterTheLastBeat)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    uint64_t before = cosim_peach2_cycles(chip->board);
    chip_write(chip, PORT_W, 0, chip_window(3, 0, 0), 256, NULL);
    EXPECT_BETWEEN(cosim_peach2_cycles(chip->board) - before, 17 + 3, 17 + 6);
    chip_destroy(chip);
}

TEST(Clock, StopsWhileTheOnlyThingLeftIsAStalledPort)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    cosim_peach2_set_tx_ready(chip->board, PORT_E, false);
    chip_write(chip, PORT_N, BAR_WINDOW, chip_window(3, 0, 0), 8, "1234567");
    uint64_t before = cosim_peach2_cycles(chip->board);
    chip_run(chip);
    EXPECT_EQ(cosim_peach2_cycles(chip->board), before);
    cosim_peach2_set_tx_ready(chip->board, PORT_E, true);
    chip_run(chip);
    EXPECT_BETWEEN(cosim_peach2_cycles(chip->board) - before, 2, 6);
    EXPECT_EQ(chip->ports[PORT_E].count, 1);
    chip_destroy(chip);
}

static void stall_e(void *ctx)
{
    struct chip *chip = ctx;
    cosim_peach2_set_tx_ready(chip->board, PORT_E, false);
}

TEST(Clock, FinishesAPacketThatBeganBeforeThePortStalled)
{
    struct chip *chip = chip_create(NULL);
    sim_event_t stall;
    chip_join(chip);
    chip_send(chip, PORT_N, BAR_WINDOW, pcie_tlp_write(chip->pool, 0, chip_window(3, 0, 0), 256, NULL));
    chip_send(chip, PORT_N, BAR_WINDOW, pcie_tlp_write(chip->pool, 0, chip_window(3, 0, 256), 256, NULL));
    sim_event_init(&stall, stall_e, chip);
    sim_event_schedule(chip->sim, &stall, 10 * CHIP_PERIOD_PS);
    chip_run(chip);
    EXPECT_EQ(chip->ports[PORT_E].count, 1);
    chip_destroy(chip);
}

static void reset_and_stall_e(void *ctx)
{
    struct chip *chip = ctx;
    cosim_peach2_reset(chip->board);
    cosim_peach2_set_tx_ready(chip->board, PORT_E, false);
}

// The first beats of a packet have left when the chip is reset; nothing is left to be finished.
TEST(Board, StallsAPortAfterAResetInTheMiddleOfItsPacket)
{
    struct chip *chip = chip_create(NULL);
    sim_event_t reset;
    chip_join(chip);
    chip_send(chip, PORT_N, BAR_WINDOW, pcie_tlp_write(chip->pool, 0, chip_window(3, 0, 0), 256, NULL));
    sim_event_init(&reset, reset_and_stall_e, chip);
    sim_event_schedule(chip->sim, &reset, 10 * CHIP_PERIOD_PS + CHIP_PERIOD_PS / 2);
    chip_run(chip);
    EXPECT_EQ(chip->ports[PORT_E].count, 0); // the packet is lost
    chip_join(chip);
    chip_write(chip, PORT_N, BAR_WINDOW, chip_window(3, 0, 0), 8, "1234567");
    EXPECT_EQ(chip->ports[PORT_E].count, 0);
    cosim_peach2_set_tx_ready(chip->board, PORT_E, true);
    chip_run(chip);
    EXPECT_EQ(chip->ports[PORT_E].count, 1);
    chip_destroy(chip);
}

static void reset_now(void *ctx)
{
    struct chip *chip = ctx;
    cosim_peach2_reset(chip->board);
}

static void reset_between_edges(struct chip *chip, sim_event_t *event, unsigned cycles)
{
    sim_event_init(event, reset_now, chip);
    sim_event_schedule(chip->sim, event, cycles * CHIP_PERIOD_PS + CHIP_PERIOD_PS / 2);
}

TEST(Board, TakesWhatLeavesItsPortsAfterAReset)
{
    struct chip *chip = chip_create(NULL);
    sim_event_t reset;
    chip_join(chip);
    cosim_peach2_set_tx_ready(chip->board, PORT_E, false);
    cosim_peach2_set_tx_room(chip->board, PORT_E, false);
    chip_write(chip, PORT_W, BAR_WINDOW, chip_window(3, 0, 0), 8, "1234567");
    EXPECT_EQ(chip->ports[PORT_E].count, 0);
    reset_between_edges(chip, &reset, 1);
    chip_run(chip);
    chip_join(chip);
    chip_write(chip, PORT_N, BAR_WINDOW, chip_window(3, 0, 0), 8, "1234567"); // enters the ring
    EXPECT_EQ(chip->ports[PORT_E].count, 1);
    chip_destroy(chip);
}

TEST(Board, GivesBackWhatAResetFindsUntaken)
{
    enum { PACKETS = 10 };
    struct chip *chip = chip_create(NULL);
    sim_event_t reset;
    chip_join(chip);
    unsigned before = chip->ports[PORT_N].taken;
    for (unsigned i = 0; i < PACKETS; i++) { // 17 cycles each
        chip_send(chip, PORT_N, BAR_WINDOW, pcie_tlp_write(chip->pool, 0, chip_window(3, 0, 0), 256, NULL));
    }
    reset_between_edges(chip, &reset, 40);
    chip_run(chip);
    EXPECT_LT(chip->ports[PORT_E].count, PACKETS);
    EXPECT_EQ(chip->ports[PORT_N].taken - before, PACKETS);
    chip_destroy(chip);
}

struct late_write {
    struct chip *chip;
    sim_event_t event;
};

static void send_late(void *ctx)
{
    struct late_write *late = ctx;
    chip_send(late->chip, PORT_W, 0, pcie_tlp_write(late->chip->pool, 0, chip_window(3, 0, 0), 8, "1234567"));
}

// Time from arrival to departure of a packet that arrives `phase_ps` after an edge.
static uint64_t latency(uint64_t phase_ps)
{
    struct chip *chip = chip_create(NULL);
    chip_join(chip);
    struct late_write late = {.chip = chip};
    uint64_t start_ps = (sim_now_ps(chip->sim) / CHIP_PERIOD_PS + 10) * CHIP_PERIOD_PS + phase_ps;
    sim_event_init(&late.event, send_late, &late);
    sim_event_schedule_at(chip->sim, &late.event, start_ps);
    chip_run(chip);
    uint64_t end_ps = chip->ports[PORT_E].count == 1 ? chip->ports[PORT_E].left[0].time_ps : 0;
    chip_destroy(chip);
    return end_ps - start_ps;
}

TEST(Clock, OffersAPacketAtTheNextEdge)
{
    // 3 cycles in the chip, and the second beat after the first.
    EXPECT_EQ(latency(0), 5 * CHIP_PERIOD_PS);
    EXPECT_EQ(latency(1), 5 * CHIP_PERIOD_PS - 1);
    EXPECT_EQ(latency(CHIP_PERIOD_PS - 1), 4 * CHIP_PERIOD_PS + 1);
}

TEST(Clock, DrivesSeveralBoards)
{
    struct chip *chip = chip_create(NULL);
    cosim_peach2_t *other;
    struct cosim_peach2_config config = chip_config();
    struct cosim_peach2_ops ops = {0};
    ASSERT_EQ(cosim_peach2_create(chip->clock, chip->pool, "other", &config, &ops, NULL, NULL, &other), SIM_OK);
    chip_join(chip);
    EXPECT_GT(cosim_peach2_cycles(chip->board), 0);
    EXPECT_EQ(cosim_peach2_cycles(other), 0);
    cosim_peach2_destroy(other);
    chip_destroy(chip);
}

TEST(Bench, StreamsPacketsWithoutABubble)
{
    struct cosim_peach2_config config = chip_config();
    uint64_t few = 0, many = 0;
    ASSERT_EQ(cosim_bench_bare(&config, 10, &few), SIM_OK);
    ASSERT_EQ(cosim_bench_bare(&config, 110, &many), SIM_OK);
    EXPECT_EQ(many - few, 100 * 17);
}

TEST(Bench, CountsTheCyclesUntilTheLastBeatHasLeft)
{
    struct cosim_peach2_config config = chip_config();
    uint64_t none = 0, one = 0;
    ASSERT_EQ(cosim_bench_bare(&config, 0, &none), SIM_OK);
    ASSERT_EQ(cosim_bench_bare(&config, 1, &one), SIM_OK);
    EXPECT_BETWEEN(one - none, 17 + 3, 17 + 6); // 17 beats, each of which takes three cycles through the chip
}
