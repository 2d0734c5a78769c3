// The keys of programs on libibverbs. Defaults are those of perftest.
#include "sim/scenario/keys.h"
#include "sim/scenario/sizes.h"

static const struct scn_choice devices[] = {
    {"none", SCN_DEVICE_NONE}, {"tca0", SCN_DEVICE_TCA0}, {"ibsim0", SCN_DEVICE_IBSIM0}, {NULL, 0}};
const struct scn_choice scn_choices_operation[] = {{"none", SCN_OPERATION_NONE},
#define VERBS_OPERATION(ID, name, verb) {name, SCN_OPERATION_##ID},
#define ACP_OPERATION(ID, name)         {name, SCN_OPERATION_##ID},
#include "sim/scenario/operations.def"
                                                   {NULL, 0}};
static const struct scn_choice transports[] = {
    {"rc", SCN_TRANSPORT_RC}, {"uc", SCN_TRANSPORT_UC}, {"ud", SCN_TRANSPORT_UD}, {NULL, 0}};

#define DEPTH_MAX      8192             // of a queue; both devices accept it
#define SEND_DEPTH_MAX (DEPTH_MAX - 32) // room for the programs' own requests in addition to the measured ones (flow.c)

static const struct scn_key verbs_keys[] = {
    {.name = "device",
     .unit = SCN_UNIT_CHOICE,
     .choices = devices,
     .fallback = "none",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_verbs, device),
     .doc = "device of libibverbs. tca0: TCA Verbs on the boards; ibsim0: the HCAs"},
    {.name = "operation",
     .unit = SCN_UNIT_CHOICE,
     .choices = scn_choices_operation,
     .fallback = "none",
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_verbs, operation),
     .doc = "operation that is measured; the node performs it on the peer, in a ping-pong both do. put, get, "
            "remote-copy (by rank 0, from rank 1 to rank 2), fetch-add (by all ranks on rank 1) and barrier are "
            "operations of programs on ACP"},
    {.name = "transport",
     .unit = SCN_UNIT_CHOICE,
     .choices = transports,
     .fallback = "rc",
     .flags = SCN_KEY_OPEN | SCN_KEY_SHOWN,
     SCN_FIELD(struct scn_verbs, transport),
     .doc = "rc: reliable connection; uc: unreliable connection; ud: unreliable datagrams"},
    {.name = "queue_pairs",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "1",
     .min = 1,
     .max = 16,
     .flags = SCN_KEY_OPEN | SCN_KEY_SHOWN,
     SCN_FIELD(struct scn_verbs, queue_pairs),
     .doc = "verbs-bandwidth: number of queue pairs, which take the requests in turn"},
    {.name = "depth",
     .unit = SCN_UNIT_INTEGER,
     .fallback = SCN_FALLBACK(SCN_FALLBACK_DEPTH),
     .min = 1,
     .max = SEND_DEPTH_MAX,
     .flags = SCN_KEY_OPEN | SCN_KEY_SHOWN,
     SCN_FIELD(struct scn_verbs, depth),
     .doc =
         "largest number of outstanding requests of a queue pair; of acp-bandwidth: of commands in the command queue"},
    {.name = "receive_depth",
     .unit = SCN_UNIT_INTEGER,
     .fallback = SCN_FALLBACK(SCN_FALLBACK_RECEIVE_DEPTH),
     .min = 1,
     .max = DEPTH_MAX,
     .flags = SCN_KEY_OPEN | SCN_KEY_SHOWN,
     SCN_FIELD(struct scn_verbs, receive_depth),
     .doc = "receive requests that wait in a queue pair"},
    {.name = "cq_mod",
     .unit = SCN_UNIT_INTEGER,
     .fallback = SCN_FALLBACK(SCN_FALLBACK_CQ_MOD),
     .min = 1,
     .max = DEPTH_MAX,
     .flags = SCN_KEY_OPEN | SCN_KEY_SHOWN,
     SCN_FIELD(struct scn_verbs, cq_mod),
     .doc = "one completion for this many requests of a queue pair; if depth is less, for depth requests"},
    {.name = "inline",
     .unit = SCN_UNIT_SIZE,
     .fallback = "4294967295 B",
     .max = UINT32_MAX,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_verbs, inline_bytes),
     .doc = "messages of up to this size from host memory are put into the request; unless given, 220 B or as much as "
            "the device takes for verbs-latency, none for verbs-bandwidth"},
    {.name = "bidirectional",
     .unit = SCN_UNIT_BOOL,
     .fallback = "false",
     .flags = SCN_KEY_OPEN | SCN_KEY_SHOWN,
     SCN_FIELD(struct scn_verbs, bidirectional),
     .doc = "verbs-bandwidth: the peer also performs the operation on the node, and both directions count"},
    {.name = "volume",
     .unit = SCN_UNIT_SIZE,
     .fallback = "0 B",
     .max = 1024 * GIB,
     .flags = SCN_KEY_OPEN,
     SCN_FIELD(struct scn_verbs, volume_bytes),
     .doc =
         "reduces the iterations of large messages to as many as fit into this size, but not below 4; 0 B: no limit"},
    {.name = "qp_timeout",
     .unit = SCN_UNIT_INTEGER,
     .fallback = SCN_FALLBACK(SCN_FALLBACK_QP_TIMEOUT),
     .max = 31,
     .flags = SCN_KEY_OPEN | SCN_KEY_SHOWN,
     SCN_FIELD(struct scn_verbs, qp_timeout),
     .doc =
         "time without an acknowledge after which a queue pair sends again: 4.096 us times 2 to this power; 0: never"},
    {.name = "retry_count",
     .unit = SCN_UNIT_INTEGER,
     .fallback = SCN_FALLBACK(SCN_FALLBACK_RETRY_COUNT),
     .max = 7,
     .flags = SCN_KEY_OPEN | SCN_KEY_SHOWN,
     SCN_FIELD(struct scn_verbs, retry_count),
     .doc = "times that a queue pair sends again before its request fails"},
};
const struct scn_kind scn_kind_verbs = {.name = "verbs",
                                        .doc = "the keys of a run that only programs on libibverbs use",
                                        SCN_ROWS(verbs_keys),
                                        .size = sizeof(struct scn_verbs)};

static const struct scn_key beside_keys[] = {
    {.name = "operation",
     .unit = SCN_UNIT_CHOICE,
     .choices = scn_choices_operation,
     SCN_FIELD(struct scn_beside, operation),
     .doc = "operation of the interfering flow"},
    {.name = "bytes",
     .unit = SCN_UNIT_SIZE,
     .fallback = "8 B",
     .min = 1,
     .max = GIB,
     SCN_FIELD(struct scn_beside, bytes),
     .doc = "size of a message of the interfering flow"},
    {.name = "depth",
     .unit = SCN_UNIT_INTEGER,
     .fallback = SCN_FALLBACK(SCN_FALLBACK_DEPTH),
     .min = 1,
     .max = SEND_DEPTH_MAX,
     SCN_FIELD(struct scn_beside, depth),
     .doc = "largest number of outstanding requests of the interfering flow"},
    {.name = "cq_mod",
     .unit = SCN_UNIT_INTEGER,
     .fallback = SCN_FALLBACK(SCN_FALLBACK_CQ_MOD),
     .min = 1,
     .max = DEPTH_MAX,
     SCN_FIELD(struct scn_beside, cq_mod),
     .doc = "one completion for this many requests of the interfering flow; if depth is less, for depth requests"},
};

static void beside_loaded(void *object, const struct scn_tree *tree)
{
    (void)tree;
    ((struct scn_beside *)object)->given = true;
}

const struct scn_kind scn_kind_beside = {
    .name = "beside",
    .doc = "an interfering flow with its own processes and queue pair, over the same HCAs, from memory of the same "
           "kinds; it begins before the measured flow and ends after it",
    SCN_ROWS(beside_keys),
    .size = sizeof(struct scn_beside),
    .loaded = beside_loaded};
