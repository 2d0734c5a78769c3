// Devices in the slots of a node: which exist, their bus numbers, their BARs, and their drivers.
#include <string.h>

#include "sim/platform/internal.h"
#include "tests/support/site.h"

#define SCENARIO TCASIM_SOURCE_DIR "/tests/platform/all_devices.yaml"

static void devices_site(struct site *site)
{
    const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
    struct scn_messages messages = {0};
    *site = (struct site){0};
    EXPECT_EQ(scn_load(SCENARIO, &options, &site->scenario, &messages), SIM_OK);
    ASSERT_EQ(messages.count, 0);
    site_build(site);
}

static void devices_site_end(struct site *site)
{
    plat_machine_destroy(site->machine);
    scn_free(site->scenario);
}

// The device with that name; NULL: there is none.
static const struct plat_device *find(const struct site *site, uint32_t node, const char *name)
{
    const struct plat_device *devices = site->machine->nodes[node].devices;
    for (unsigned i = 0; i < PLAT_DEVICES_MAX; i++) {
        if (devices[i].ops != NULL && strcmp(devices[i].name, name) == 0) {
            return &devices[i];
        }
    }
    return NULL;
}

TEST(Devices, AreThoseOfTheScenarioWithASlotEach)
{
    struct site site;
    devices_site(&site);
    static const char *const names[] = {"all.board", "all.gpu0", "all.gpu1", "all.fpga", "all.hca"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        ASSERT_NOT_NULL(find(&site, 0, names[i]));
        EXPECT_NOT_NULL(find(&site, 0, names[i])->slot);
    }
    EXPECT_NOT_NULL(find(&site, 1, "some.gpu0"));
    EXPECT_NOT_NULL(find(&site, 1, "some.hca"));
    EXPECT_NULL(find(&site, 1, "some.fpga"));
    EXPECT_NULL(plat_device_find(&site.machine->nodes[1], SCN_DEVICE_ID_FPGA));
    EXPECT_EQ(plat_device_find(&site.machine->nodes[1], SCN_DEVICE_ID_HCA), find(&site, 1, "some.hca"));
    devices_site_end(&site);
}

// A missing device leaves a gap, so that the addresses in traces of two nodes are comparable.
TEST(Devices, HaveTheSameBusNumbersAndAddressesInEveryNode)
{
    struct site site;
    devices_site(&site);
    EXPECT_EQ(find(&site, 0, "all.board")->requester, 0x0100);
    EXPECT_EQ(find(&site, 0, "all.gpu1")->requester, 0x0300);
    EXPECT_EQ(find(&site, 0, "all.fpga")->bars[0].base, 0x3000000000);
    EXPECT_EQ(find(&site, 0, "all.fpga")->bars[1].base, 0x3100000000);
    for (unsigned node = 0; node < 2; node++) {
        const struct plat_device *hca = find(&site, node, node == 0 ? "all.hca" : "some.hca");
        EXPECT_EQ(hca->requester, 0x0700);
        EXPECT_EQ(hca->bars[0].base, 0x3200000000);
    }
    devices_site_end(&site);
}

TEST(Devices, DoNotOverlapInAnyAddressOrName)
{
    struct site site;
    devices_site(&site);
    const struct plat_device *devices = site.machine->nodes[0].devices;
    struct plat_device_bar bars[PLAT_DEVICES_MAX * PLAT_DEVICE_BARS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < PLAT_DEVICES_MAX; i++) {
        for (unsigned j = 0; j < PLAT_DEVICE_BARS_MAX && devices[i].bars[j].bytes != 0; j++) {
            bars[count++] = devices[i].bars[j];
        }
    }
    EXPECT_GE(count, 7); // board 2, GPUs 1 each, FPGA 2, HCA 1; a new device has more
    for (unsigned i = 0; i < count; i++) {
        EXPECT_EQ(site.machine->nodes[0].backend.bars[bars[i].number].base, bars[i].base);
        for (unsigned j = 0; j < i; j++) {
            unsigned low = bars[i].base < bars[j].base ? i : j, high = low == i ? j : i;
            EXPECT_LE(bars[low].base + bars[low].bytes, bars[high].base);
            EXPECT_NE(bars[i].number, bars[j].number);
        }
    }
    devices_site_end(&site);
}

static void drivers_look(void *arg, peach2_handle_t *board)
{
    struct site *site = arg;
    site->value[0] = board != NULL;
    site->value[1] = plat_machine_driver(site->machine, 0, SCN_DEVICE_ID_FPGA) != NULL;
    site->value[2] = plat_machine_driver(site->machine, 0, SCN_DEVICE_ID_HCA) != NULL;
    site->value[3] = plat_machine_driver(site->machine, 1, SCN_DEVICE_ID_FPGA) != NULL;
}

TEST(Devices, AreBootedBeforeProgramsStartWhereTheirDriverIsThePlatforms)
{
    struct site site;
    devices_site(&site);
    site_run(&site, drivers_look);
    EXPECT_EQ(site.value[0], 1);
    EXPECT_EQ(site.value[1], 1);
    EXPECT_EQ(site.value[2], 0); // NULL, because programs open it with libibverbs
    EXPECT_EQ(site.value[3], 0);
    devices_site_end(&site);
}
