// The endpoint kit of every endpoint (egress.h, tags.h, completer.h): its rules, tested once for all of them.
#include <string.h>

#include "models/pcie/completer.h"
#include "models/pcie/egress.h"
#include "models/pcie/tags.h"
#include "pair.h"
#include "tests/shim/test.h"

// --- order of leaving -----------------------------------------------------------------------------------------------

struct slot {
    struct pcie_leaving base;
    unsigned number;
};

struct sender {
    struct pair *pair;
    struct pcie_egress egress;
    unsigned sent[64], sent_count, dropped_count;
};

static void sent(void *ctx, const void *slot)
{
    struct sender *sender = ctx;
    sender->sent[sender->sent_count++] = ((const struct slot *)slot)->number;
}

static void dropped(void *ctx, const void *slot)
{
    struct sender *sender = ctx;
    (void)slot;
    sender->dropped_count++;
}

static const struct pcie_egress_ops OPS = {.sent = sent, .dropped = dropped};

// A link that takes one TLP of each class at a time; the other end keeps arriving TLPs, with room for `credits` of each
// class.
static void sender_init(struct sender *sender, uint32_t credits)
{
    struct pcie_link_config config = pair_config();
    config.ends[0].tx_queue_tlps = 1;
    for (enum pcie_class class = PCIE_POSTED; class < PCIE_CLASS_COUNT; class ++) {
        pair_set_credits(&config, 1, class, credits, 1024);
    }
    memset(sender, 0, sizeof *sender);
    sender->pair = pair_create(&config);
    sender->pair->owners[1].holds = true;
    pcie_egress_init(&sender->egress, sender->pair->sim, "sender", sizeof(struct slot), &OPS, sender);
    sender->egress.end = sender->pair->owners[0].end;
}

static void sender_fini(struct sender *sender)
{
    pcie_egress_fini(&sender->egress);
    pair_release_all(&sender->pair->owners[1]);
    pair_destroy(sender->pair);
}

static pcie_tlp_t *tlp_make(struct sender *sender, enum pcie_tlp_kind kind, uint8_t number)
{
    pcie_pool_t *pool = sender->pair->pool;
    if (kind == PCIE_TLP_MWR) {
        return pcie_tlp_write(pool, 0, 0x1000u * number, 4, &(uint32_t){number});
    }
    pcie_tlp_t *read = pcie_tlp_read(pool, 0, number, 0x1000u * number, 4);
    if (kind == PCIE_TLP_MRD) {
        return read;
    }
    pcie_tlp_t *completion = pcie_tlp_completion(read, 0, 0, 4, &(uint32_t){number});
    pcie_tlp_unref(read);
    return completion;
}

static uint64_t send_at(struct sender *sender, enum pcie_tlp_kind kind, uint8_t number, uint64_t ready_ps)
{
    const struct slot slot = {.base = {.tlp = tlp_make(sender, kind, number), .ready_ps = ready_ps}, .number = number};
    return pcie_egress_send(&sender->egress, &slot);
}

static void send(struct sender *sender, enum pcie_tlp_kind kind, uint8_t number)
{
    EXPECT_EQ(send_at(sender, kind, number, 0), SIM_NEVER_PS);
}

// The peer releases the receive buffer, one TLP at a time, until nothing moves any more.
static void drain(struct sender *sender)
{
    struct pair_owner *peer = &sender->pair->owners[1];
    for (unsigned i = 0; i < 64; i++) {
        (void)sim_run(sender->pair->sim);
        (void)pcie_egress_pump(&sender->egress);
        (void)sim_run(sender->pair->sim);
        if (peer->held != NULL) {
            pair_release_one(peer);
        }
    }
}

static unsigned position_of(const struct sender *sender, unsigned number)
{
    unsigned position = 0;
    while (position < sender->sent_count && sender->sent[position] != number) {
        position++;
    }
    EXPECT_LT(position, sender->sent_count);
    return position;
}

TEST(PcieEgress, NothingPassesAWriteThatCameBeforeIt)
{
    struct sender sender;
    sender_init(&sender, 1);
    for (uint8_t number = 1; number <= 4; number++) {
        send(&sender, PCIE_TLP_MWR, number);
    }
    EXPECT_GT(pcie_egress_count(&sender.egress, PCIE_POSTED), 0);
    send(&sender, PCIE_TLP_MRD, 5);
    send(&sender, PCIE_TLP_CPLD, 6);
    EXPECT_EQ(pcie_egress_count(&sender.egress, PCIE_NONPOSTED), 1);
    EXPECT_EQ(pcie_egress_count(&sender.egress, PCIE_COMPLETION), 1);
    drain(&sender);
    EXPECT_EQ(sender.sent_count, 6);
    for (unsigned number = 1; number <= 4; number++) {
        EXPECT_EQ(sender.sent[number - 1], number);
    }
    sender_fini(&sender);
}

TEST(PcieEgress, WritesAndCompletionsPassReadsThatWait)
{
    struct sender sender;
    sender_init(&sender, 1);
    for (uint8_t number = 1; number <= 4; number++) {
        send(&sender, PCIE_TLP_MRD, number);
    }
    send(&sender, PCIE_TLP_MWR, 5);
    send(&sender, PCIE_TLP_CPLD, 6);
    EXPECT_EQ(pcie_egress_count(&sender.egress, PCIE_POSTED), 0);
    EXPECT_EQ(pcie_egress_count(&sender.egress, PCIE_COMPLETION), 0);
    EXPECT_GT(pcie_egress_count(&sender.egress, PCIE_NONPOSTED), 0);
    drain(&sender);
    EXPECT_EQ(sender.sent_count, 6);
    EXPECT_LT(position_of(&sender, 5), position_of(&sender, 4));
    EXPECT_LT(position_of(&sender, 6), position_of(&sender, 4));
    sender_fini(&sender);
}

TEST(PcieEgress, AReadBeforeAWriteThatWaitsMayGoAndOneBehindItMayNot)
{
    struct sender sender;
    sender_init(&sender, 1);
    send(&sender, PCIE_TLP_MRD, 1);
    send(&sender, PCIE_TLP_MRD, 2); // waits, before any write
    send(&sender, PCIE_TLP_MWR, 3);
    send(&sender, PCIE_TLP_MWR, 4);
    send(&sender, PCIE_TLP_MWR, 5);
    send(&sender, PCIE_TLP_MRD, 6);
    drain(&sender);
    EXPECT_EQ(sender.sent_count, 6);
    EXPECT_LT(position_of(&sender, 2), position_of(&sender, 5));
    EXPECT_GT(position_of(&sender, 6), position_of(&sender, 5));
    sender_fini(&sender);
}

TEST(PcieEgress, UnorderedReadsPassWritesThatWait)
{
    struct sender sender;
    sender_init(&sender, 1);
    for (uint8_t number = 1; number <= 3; number++) {
        send(&sender, PCIE_TLP_MWR, number);
    }
    const struct slot free = {.base = {.tlp = tlp_make(&sender, PCIE_TLP_MRD, 4)}, .number = 4};
    (void)pcie_egress_send_unordered(&sender.egress, &free);
    EXPECT_EQ(sender.sent[sender.sent_count - 1], 4);
    EXPECT_GT(pcie_egress_count(&sender.egress, PCIE_POSTED), 0);
    drain(&sender);
    EXPECT_EQ(sender.sent_count, 4);
    sender_fini(&sender);
}

static void pump_run(void *egress)
{
    (void)pcie_egress_pump(egress);
}

TEST(PcieEgress, WhatIsNotReadyWaitsForItsTimeAndKeepsItsOrder)
{
    struct sender sender;
    sender_init(&sender, 64);
    EXPECT_EQ(send_at(&sender, PCIE_TLP_MWR, 1, 5000), 5000);
    EXPECT_EQ(send_at(&sender, PCIE_TLP_MRD, 2, 0), 5000); // after the write
    EXPECT_EQ(sender.sent_count, 0);
    sim_event_t later;
    sim_event_init(&later, pump_run, &sender.egress);
    sim_event_schedule_at(sender.pair->sim, &later, 5000);
    (void)sim_run(sender.pair->sim);
    EXPECT_EQ(sender.sent_count, 2);
    EXPECT_EQ(sender.sent[0], 1);
    EXPECT_GT(sender.pair->owners[1].first_ps, 5000);
    sender_fini(&sender);
}

TEST(PcieEgress, SaysWhenTheFirstOfSeveralIsReady)
{
    struct sender sender;
    sender_init(&sender, 64);
    EXPECT_EQ(send_at(&sender, PCIE_TLP_MRD, 1, 5000), 5000);
    EXPECT_EQ(send_at(&sender, PCIE_TLP_CPLD, 2, 9000), 5000);
    EXPECT_EQ(pcie_egress_pump(&sender.egress), 5000);
    EXPECT_EQ(sender.sent_count, 0);
    sender_fini(&sender);
}

TEST(PcieEgress, WhatIsLeftAtItsEndIsGivenBack)
{
    struct sender sender;
    sender_init(&sender, 1);
    for (uint8_t number = 1; number <= 5; number++) {
        send(&sender, PCIE_TLP_MWR, number);
    }
    unsigned waiting = pcie_egress_count(&sender.egress, PCIE_POSTED), before = sender.sent_count;
    EXPECT_GT(waiting, 0);
    (void)sim_run(sender.pair->sim);
    pcie_egress_fini(&sender.egress);
    EXPECT_EQ(sender.dropped_count, waiting);
    EXPECT_EQ(before + waiting, 5);
    pair_release_all(&sender.pair->owners[1]);
    pair_destroy(sender.pair); // no TLP is lost
}

// --- tags -----------------------------------------------------------------------------------------------------------

enum { REQUESTER = 0x128 };

struct answers {
    pcie_pool_t *pool;
    struct pcie_tags tags;
    uint32_t slot, at, bytes; // of the last completion
    int owner;
};

static void answers_init(struct answers *answers, uint32_t first, uint32_t count, unsigned slot_bits)
{
    EXPECT_EQ(pcie_pool_create(&answers->pool), SIM_OK);
    pcie_tags_init(&answers->tags, REQUESTER, first, count, slot_bits);
}

static void answers_fini(struct answers *answers)
{
    EXPECT_EQ(pcie_pool_destroy(answers->pool), 0);
}

// Completes bytes [offset, offset + bytes) of a read of 256 B under the tag, for the requester.
static enum pcie_answer answer(struct answers *answers, uint16_t requester, uint8_t tag, uint32_t offset,
                               uint32_t bytes)
{
    pcie_tlp_t *read = pcie_tlp_read(answers->pool, requester, tag, 0x4000, 256);
    pcie_tlp_t *completion =
        bytes != 0 ? pcie_tlp_completion(read, 0, offset, bytes, NULL) : pcie_tlp_error(read, 0, PCIE_CPL_UR);
    enum pcie_answer what = pcie_tags_answer(&answers->tags, completion, &answers->slot, &answers->at, &answers->bytes);
    pcie_tlp_unref(completion);
    pcie_tlp_unref(read);
    return what;
}

TEST(PcieTags, ThePartsOfAnAnswerComeInOrderUntilTheLast)
{
    struct answers a;
    answers_init(&a, 0, 8, 8);
    uint8_t tag = pcie_tags_take(&a.tags, &a.owner, 256);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 0, 64), PCIE_ANSWER_PART);
    EXPECT_EQ(a.at, 0);
    EXPECT_EQ(a.bytes, 64);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 128, 128), PCIE_ANSWER_UNEXPECTED); // a part is missing
    EXPECT_EQ(answer(&a, REQUESTER, tag, 0, 64), PCIE_ANSWER_UNEXPECTED);    // it has arrived before
    EXPECT_EQ(answer(&a, REQUESTER, tag, 64, 64), PCIE_ANSWER_PART);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 128, 128), PCIE_ANSWER_LAST);
    EXPECT_EQ(a.at, 128);
    EXPECT_EQ(a.tags.list[a.slot].owner, &a.owner);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 128, 128), PCIE_ANSWER_UNEXPECTED);
    pcie_tags_give(&a.tags, a.slot);
    EXPECT_EQ(a.tags.outstanding, 0);
    answers_fini(&a);
}

TEST(PcieTags, WhatNobodyAskedForIsUnexpected)
{
    struct answers a;
    answers_init(&a, 32, 8, 8);
    EXPECT_EQ(answer(&a, REQUESTER, 32, 0, 256), PCIE_ANSWER_UNEXPECTED);
    uint8_t tag = pcie_tags_take(&a.tags, &a.owner, 256);
    EXPECT_EQ(tag, 32);
    EXPECT_EQ(answer(&a, REQUESTER + 1, tag, 0, 256), PCIE_ANSWER_UNEXPECTED);
    EXPECT_EQ(answer(&a, REQUESTER, (uint8_t)(tag + 1), 0, 256), PCIE_ANSWER_UNEXPECTED);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 0, 256), PCIE_ANSWER_LAST);
    answers_fini(&a);
}

TEST(PcieTags, AFailedReadIsAnsweredOnce)
{
    struct answers a;
    answers_init(&a, 0, 8, 8);
    uint8_t tag = pcie_tags_take(&a.tags, &a.owner, 256);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 0, 64), PCIE_ANSWER_PART);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 0, 0), PCIE_ANSWER_FAILED);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 64, 192), PCIE_ANSWER_UNEXPECTED);
    EXPECT_EQ(answer(&a, REQUESTER, tag, 0, 0), PCIE_ANSWER_UNEXPECTED);
    answers_fini(&a);
}

TEST(PcieTags, AreUsedInTurnAndOnlyWhenTheyAreFree)
{
    struct answers a;
    answers_init(&a, 4, 3, 8);
    EXPECT_EQ(pcie_tags_take(&a.tags, &a.owner, 256), 4);
    EXPECT_EQ(pcie_tags_take(&a.tags, &a.owner, 256), 5);
    pcie_tags_give(&a.tags, 4);
    EXPECT_EQ(pcie_tags_take(&a.tags, &a.owner, 256), 6); // not the tag that was just released
    EXPECT_EQ(pcie_tags_take(&a.tags, &a.owner, 256), 4);
    EXPECT_FALSE(pcie_tags_free(&a.tags));
    pcie_tags_give(&a.tags, 5);
    EXPECT_TRUE(pcie_tags_free(&a.tags));
    EXPECT_EQ(pcie_tags_take(&a.tags, &a.owner, 256), 5);
    answers_fini(&a);
}

TEST(PcieTags, ALateAnswerToAnEarlierGenerationIsRecognised)
{
    struct answers a;
    answers_init(&a, 0, 1, 4);
    uint8_t first = pcie_tags_take(&a.tags, &a.owner, 256);
    pcie_tags_give(&a.tags, 0); // the read is given up
    uint8_t second = pcie_tags_take(&a.tags, &a.owner, 256);
    EXPECT_EQ(pcie_tags_slot(&a.tags, second), pcie_tags_slot(&a.tags, first));
    EXPECT_EQ(answer(&a, REQUESTER, first, 0, 256), PCIE_ANSWER_UNEXPECTED);
    EXPECT_EQ(answer(&a, REQUESTER, second, 0, 256), PCIE_ANSWER_LAST);
    answers_fini(&a);
}

// --- completions ----------------------------------------------------------------------------------------------------

TEST(PcieCompletions, EndAtBoundariesAndCarryNoMoreThanThePayload)
{
    static const struct {
        uint64_t address;
        uint32_t bytes, mps, boundary;
        uint32_t parts[5];
    } rows[] = {
        {0x1000, 4, 256, 64, {4}},
        {0x1000, 256, 256, 64, {256}},
        {0x1004, 256, 256, 64, {252, 4}},
        {0x103c, 300, 128, 64, {68, 128, 104}},
        {0x1001, 511, 128, 128, {127, 128, 128, 128}},
        {0x1040, 256, 128, 128, {64, 128, 64}},
    };
    pcie_pool_t *pool;
    EXPECT_EQ(pcie_pool_create(&pool), SIM_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pcie_tlp_t *read = pcie_tlp_read(pool, 0, 0, rows[i].address, rows[i].bytes);
        struct pcie_completions completions = pcie_completions_of(read, rows[i].mps, rows[i].boundary);
        uint32_t offset, bytes, expected = 0;
        unsigned part = 0;
        while (pcie_completions_next(&completions, &offset, &bytes)) {
            EXPECT_EQ(offset, expected);
            EXPECT_EQ(bytes, rows[i].parts[part++]);
            expected += bytes;
            EXPECT_EQ(pcie_completions_over(&completions), expected == rows[i].bytes);
        }
        EXPECT_EQ(expected, rows[i].bytes);
        pcie_tlp_unref(read);
    }
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}

TEST(PcieCompletions, OnlyReadsThatNobodyServesAreAnswered)
{
    pcie_pool_t *pool;
    EXPECT_EQ(pcie_pool_create(&pool), SIM_OK);
    pcie_tlp_t *read = pcie_tlp_read(pool, REQUESTER, 3, 0x1000, 64), *write = pcie_tlp_write(pool, 0, 0x1000, 4, NULL);
    pcie_tlp_t *error = pcie_unsupported(read, 7);
    EXPECT_EQ(error->cpl_status, PCIE_CPL_UR);
    EXPECT_EQ(error->tag, 3);
    EXPECT_EQ(error->requester, REQUESTER);
    EXPECT_NULL(pcie_unsupported(write, 7));
    pcie_tlp_unref(error);
    pcie_tlp_unref(write);
    pcie_tlp_unref(read);
    EXPECT_EQ(pcie_pool_destroy(pool), 0);
}
