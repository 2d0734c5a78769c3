// What a packet that leaves the chip is attributed to.
#include <stdlib.h>

#include "sim/kernel/cause.h"
#include "tests/cosim/chip.h"

static const struct sim_work sending = {"test", "sending", false};

struct path {
    struct sim_piece *pieces;
    size_t count;
    uint64_t sent_ps, left_ps;
};

static void path_keep(struct chip *chip, unsigned port, pcie_tlp_t *tlp)
{
    struct path *path = chip->user;
    (void)tlp;
    if (port == PORT_E) {
        path->left_ps = sim_now_ps(chip->sim);
        EXPECT_TRUE(sim_cause_path_since(chip->sim, 0, &path->pieces, &path->count));
    }
}

static void send_labelled(void *ctx)
{
    struct chip *chip = ctx;
    ((struct path *)chip->user)->sent_ps = sim_now_ps(chip->sim);
    sim_cause_label(chip->sim, "sender", &sending);
    chip_send(chip, PORT_N, BAR_WINDOW, pcie_tlp_write(chip->pool, 0, chip_window(3, 0, 0), 8, "1234567"));
}

TEST(Causes, OfAPacketThatLeavesTheChipIsTheLastOneThatCame)
{
    struct chip *chip = chip_create(NULL);
    struct path path = {0};
    sim_event_t send;
    sim_causes_record(chip->sim, 0);
    chip_join(chip);
    chip->user = &path;
    chip->on_tx = path_keep;
    sim_event_init(&send, send_labelled, chip);
    sim_event_schedule(chip->sim, &send, 100 * CHIP_PERIOD_PS);
    chip_run(chip);
    if (EXPECT_GE(path.count, 2)) {
        const struct sim_piece *before = &path.pieces[path.count - 2], *last = &path.pieces[path.count - 1];
        EXPECT_EQ(before->work, &sending);
        EXPECT_EQ(before->end_ps, path.sent_ps);
        EXPECT_STREQ(last->component, "chip");
        EXPECT_EQ(last->begin_ps, path.sent_ps);
        EXPECT_EQ(last->end_ps, path.left_ps);
    }
    free(path.pieces);
    chip_destroy(chip);
}
