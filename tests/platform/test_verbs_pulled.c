// A cable that is pulled while tca0 moves messages: messages that completed have arrived, other requests end with an
// error, and no byte outside the messages changes.
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

static const struct message {
    unsigned at, bytes;
} messages[] = {{11, 70}, {1008, 60001}, {70000, 5000}, {80001, 20000}, {110000, 8}};
#define MESSAGES (sizeof messages / sizeof messages[0])

// value[0]: the number of successful completions. value[1]: the status of the next one.
static void writes(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board)), *far = &pair->ends[1][0];
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct ibv_sge sge = {(uintptr_t)end->data + messages[i].at, messages[i].bytes, end->mr->lkey};
        struct ibv_send_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
        wr.wr.rdma.remote_addr = (uintptr_t)far->data + messages[i].at;
        wr.wr.rdma.rkey = far->mr->rkey;
        EXPECT_EQ(ibv_post_send(end->qp, &wr, &bad), 0);
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct ibv_wc wc = verbs_wc(end);
        EXPECT_EQ(wc.wr_id, i);
        pair->value[0] += wc.status == IBV_WC_SUCCESS;
        pair->value[1] = i == pair->value[0] ? (uint64_t)wc.status : pair->value[1];
        if (i > pair->value[0]) {
            EXPECT_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
        }
    }
    verbs_pair_meet(pair, 0);
}

static void is_written(void *arg, peach2_handle_t *board)
{
    struct verbs_pair *pair = arg;
    struct verbs_end *end = verbs_enter(pair, peach2_node(board));
    verbs_pair_meet(pair, 1);
    verbs_look(end);
}

static uint8_t *expected(unsigned complete)
{
    uint8_t *bytes = malloc(2 * VERBS_BYTES);
    site_fill(bytes, VERBS_BYTES, 1);
    site_fill(bytes + VERBS_BYTES, VERBS_BYTES, 0);
    for (unsigned i = 0; i < complete; i++) {
        memcpy(bytes + messages[i].at, bytes + VERBS_BYTES + messages[i].at, messages[i].bytes);
    }
    return bytes;
}

// A message that did not complete may have arrived in part.
static void expect_image(const uint8_t *image, unsigned complete)
{
    uint8_t *bytes = expected(complete);
    unsigned at = 0;
    for (unsigned i = complete; i < MESSAGES; i++) {
        EXPECT_MEMEQ(image + at, bytes + at, messages[i].at - at);
        at = messages[i].at + messages[i].bytes;
    }
    EXPECT_MEMEQ(image + at, bytes + at, VERBS_BYTES - at);
    free(bytes);
}

static unsigned run_pulled(uint64_t after_tlps)
{
    struct verbs_pair pair;
    verbs_pair_init(&pair, SCN_FIDELITY_TWIN);
    pair.attr.timeout = 6; // 262 us
    pair.attr.retry_cnt = 1;
    pair.scenario->faults[pair.scenario->fault_count++] = (struct scn_fault){
        .ends = {.given = true}, .cable = 0, .at_ps = SCN_NOT_GIVEN, .after_tlps = after_tlps, .for_ps = SCN_NOT_GIVEN};
    verbs_pair_run(&pair, writes, is_written);
    if (pair.value[0] != MESSAGES) {
        EXPECT_EQ(pair.value[1], IBV_WC_RETRY_EXC_ERR);
    }
    expect_image(pair.ends[1][0].image, (unsigned)pair.value[0]);
    unsigned complete = (unsigned)pair.value[0];
    verbs_pair_fini(&pair);
    return complete;
}

TEST(TcaPulled, LosesOnlyWhatIsNotToldToBeThere)
{
    unsigned last = 0;
    for (uint64_t tlps = 0; last < MESSAGES && tlps < 1000; tlps += tlps < 40 ? 1 : 9) {
        unsigned complete = run_pulled(tlps);
        EXPECT_GE(complete, last);
        last = complete;
    }
    EXPECT_EQ(last, MESSAGES);
}
