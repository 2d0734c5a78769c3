// The keys of faults.
#include "sim/scenario/keys.h"

static const struct scn_choice faults[] = {
    {"pull", SCN_FAULT_PULL}, {"unpin", SCN_FAULT_UNPIN}, {"reset", SCN_FAULT_RESET}, {NULL, 0}};
static const struct scn_choice devices[] = {
    {"none", SCN_FAULT_NO_DEVICE}, {"board", SCN_FAULT_BOARD}, {"hca", SCN_FAULT_HCA},   {"gpu0", SCN_FAULT_GPU0},
    {"gpu1", SCN_FAULT_GPU1},      {"gpu2", SCN_FAULT_GPU2},   {"gpu3", SCN_FAULT_GPU3}, {NULL, 0}};

static const struct scn_key fault_ends_keys[] = {
    {.name = "from",
     .unit = SCN_UNIT_ENDPOINT,
     SCN_FIELD(struct scn_fault_ends, from_node),
     SCN_SECOND(struct scn_fault_ends, from_port),
     .doc = "one end, such as node0.E"},
    {.name = "to",
     .unit = SCN_UNIT_ENDPOINT,
     SCN_FIELD(struct scn_fault_ends, to_node),
     SCN_SECOND(struct scn_fault_ends, to_port),
     .doc = "other end, such as node1.W"},
};
static void ends_loaded(void *object, const struct scn_tree *tree)
{
    (void)tree;
    ((struct scn_fault_ends *)object)->given = true;
}

const struct scn_kind scn_kind_fault_ends = {.name = "cable of a fault",
                                             .doc = "a cable, by its two ends; topology: may have made it",
                                             SCN_ROWS(fault_ends_keys),
                                             .size = sizeof(struct scn_fault_ends),
                                             .loaded = ends_loaded};

static const struct scn_key fault_ib_ends_keys[] = {
    {.name = "from",
     .unit = SCN_UNIT_NODE,
     .flags = SCN_KEY_SWITCHES,
     SCN_FIELD(struct scn_fault_ib_ends, from_node),
     .doc = "one end: a node with an HCA, or a switch, whose port to the other end it is"},
    {.name = "to",
     .unit = SCN_UNIT_NODE,
     .flags = SCN_KEY_SWITCHES,
     SCN_FIELD(struct scn_fault_ib_ends, to_node),
     .doc = "other end"},
};
static void ib_ends_loaded(void *object, const struct scn_tree *tree)
{
    (void)tree;
    ((struct scn_fault_ib_ends *)object)->given = true;
}

const struct scn_kind scn_kind_fault_ib_ends = {.name = "ib_cable of a fault",
                                                .doc =
                                                    "an InfiniBand cable, by its two ends; topology: may have made it",
                                                SCN_ROWS(fault_ib_ends_keys),
                                                .size = sizeof(struct scn_fault_ib_ends),
                                                .loaded = ib_ends_loaded};

static const struct scn_key fault_keys[] = {
    {.name = "cable",
     .unit = SCN_UNIT_OBJECT,
     .child = &scn_kind_fault_ends,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_fault, ends),
     .doc = "the cable between boards that fails, by its ends"},
    {.name = "ib_cable",
     .unit = SCN_UNIT_OBJECT,
     .child = &scn_kind_fault_ib_ends,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_fault, ib_ends),
     .doc = "instead of cable: the InfiniBand cable that fails, and with it the ports at both ends"},
    {.name = "kind",
     .unit = SCN_UNIT_CHOICE,
     .choices = faults,
     .fallback = "pull",
     SCN_FIELD(struct scn_fault, kind),
     .doc = "pull: the cable is pulled, and its link is down; unpin: the GPU's memory leaves its window, so that "
            "reads of other devices there are answered Unsupported Request, and their writes are dropped; reset: the "
            "board or the HCA loses what is in it, its registers and connections, and its links are down"},
    {.name = "node",
     .unit = SCN_UNIT_NODE,
     .fallback = "",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_fault, node),
     .doc = "with kind: unpin or reset, the node of the device"},
    {.name = "device",
     .unit = SCN_UNIT_CHOICE,
     .choices = devices,
     .fallback = "none",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_fault, device),
     .doc = "with kind: unpin the GPU, with kind: reset the board or the HCA"},
    {.name = "at",
     .unit = SCN_UNIT_TIME,
     .fallback = "18446744073709551615 ps",
     .max = UINT64_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_fault, at_ps),
     .doc = "time of the fault, from the instant at which all boards are booted and programs start, in every series"},
    {.name = "after_tlps",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "18446744073709551615",
     .max = UINT64_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_fault, after_tlps),
     .doc = "instead of at: number of TLPs that are sent over the cable before it fails, both directions together, "
            "counted from the start of the programs"},
    {.name = "for",
     .unit = SCN_UNIT_TIME,
     .fallback = "18446744073709551615 ps",
     .min = 1,
     .max = UINT64_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_fault, for_ps),
     .doc = "time until the cable is put back and its link is trained; without it the link stays down. A link between "
            "boards then carries packets again when nothing was sent to it for 20 us. With kind: reset, until the "
            "links are trained and the driver programs the board again; without it the device stays away"},
};
const struct scn_kind scn_kind_fault = {.name = "fault",
                                        .doc = "a failure of a cable or a device, once in every series",
                                        SCN_ROWS(fault_keys),
                                        .size = sizeof(struct scn_fault)};
