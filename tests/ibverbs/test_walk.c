// Random walks over the creation and destruction of objects: each use is counted, and only unused objects can be
// destroyed.
#include <errno.h>

#include "pair.h"

enum { PER_KIND = 4, STEPS = 4000, SEEDS = 8 };

// Objects by kind; users: how many other objects use each.
struct walk {
    struct pair pair;
    uint32_t seed;
    struct ibv_pd *pd[PER_KIND];
    struct ibv_cq *cq[PER_KIND];
    struct ibv_comp_channel *channel[PER_KIND];
    struct ibv_srq *srq[PER_KIND];
    struct ibv_mr *mr[PER_KIND];
    struct ibv_ah *ah[PER_KIND];
    struct ibv_qp *qp[PER_KIND];
    unsigned destroyed, busy;
};

static unsigned draw(struct walk *w, unsigned below)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (w->seed >> 16) % below;
}

// --- creation --------------------------------------------------------------------------------------------------------

static void create_small(struct walk *w, struct ibv_pd *pd, unsigned at)
{
    struct ibv_ah_attr attr = {.dlid = 2, .port_num = 1};
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    switch (draw(w, 3)) {
    case 0:
        w->mr[at] = w->mr[at] != NULL ? w->mr[at] : ibv_reg_mr(pd, w->pair.side[0].buffer, 64, 0);
        break;
    case 1:
        w->ah[at] = w->ah[at] != NULL ? w->ah[at] : ibv_create_ah(pd, &attr);
        break;
    default:
        w->srq[at] = w->srq[at] != NULL ? w->srq[at] : ibv_create_srq(pd, &init);
        break;
    }
}

static void create_qp(struct walk *w, struct ibv_pd *pd, unsigned at)
{
    struct ibv_cq *send_cq = w->cq[draw(w, PER_KIND)], *recv_cq = w->cq[draw(w, PER_KIND)];
    struct ibv_qp_init_attr init = {.send_cq = send_cq,
                                    .recv_cq = recv_cq,
                                    .srq = w->srq[draw(w, PER_KIND)],
                                    .qp_type = (enum ibv_qp_type)(IBV_QPT_RC + draw(w, 3))};
    if (w->qp[at] == NULL) {
        w->qp[at] = ibv_create_qp(pd, &init);
        EXPECT_EQ(w->qp[at] != NULL, send_cq != NULL && recv_cq != NULL);
    }
}

static void create(struct walk *w)
{
    struct ibv_context *context = w->pair.side[0].context;
    unsigned at = draw(w, PER_KIND);
    struct ibv_pd *pd = w->pd[draw(w, PER_KIND)];
    switch (draw(w, 6)) {
    case 0:
        w->pd[at] = w->pd[at] != NULL ? w->pd[at] : ibv_alloc_pd(context);
        break;
    case 1:
        w->channel[at] = w->channel[at] != NULL ? w->channel[at] : ibv_create_comp_channel(context);
        break;
    case 2:
        w->cq[at] = w->cq[at] != NULL ? w->cq[at] : ibv_create_cq(context, 8, NULL, w->channel[draw(w, PER_KIND)], 0);
        break;
    case 3:
        if (pd != NULL) {
            create_qp(w, pd, at);
        }
        break;
    default:
        if (pd != NULL) {
            create_small(w, pd, at);
        }
        break;
    }
}

// --- users of objects -----------------------------------------------------------------------------------------------

static bool pd_used(const struct walk *w, const struct ibv_pd *pd)
{
    bool used = false;
    for (unsigned i = 0; i < PER_KIND; i++) {
        used |= (w->mr[i] != NULL && w->mr[i]->pd == pd) || (w->ah[i] != NULL && w->ah[i]->pd == pd) ||
                (w->srq[i] != NULL && w->srq[i]->pd == pd) || (w->qp[i] != NULL && w->qp[i]->pd == pd);
    }
    return used;
}

static bool cq_used(const struct walk *w, const struct ibv_cq *cq)
{
    bool used = false;
    for (unsigned i = 0; i < PER_KIND; i++) {
        used |= w->qp[i] != NULL && (w->qp[i]->send_cq == cq || w->qp[i]->recv_cq == cq);
    }
    return used;
}

static bool srq_used(const struct walk *w, const struct ibv_srq *srq)
{
    bool used = false;
    for (unsigned i = 0; i < PER_KIND; i++) {
        used |= w->qp[i] != NULL && w->qp[i]->srq == srq;
    }
    return used;
}

static bool channel_used(const struct walk *w, const struct ibv_comp_channel *channel)
{
    bool used = false;
    for (unsigned i = 0; i < PER_KIND; i++) {
        used |= w->cq[i] != NULL && w->cq[i]->channel == channel;
    }
    return used;
}

// --- the end ---------------------------------------------------------------------------------------------------------

// Destroys the object in the slot; expects a refusal if it is used.
#define END(w, slot, used, function)                                                                                   \
    do {                                                                                                               \
        if ((slot) != NULL) {                                                                                          \
            bool is_used = (used);                                                                                     \
            EXPECT_EQ(function(slot), is_used ? EBUSY : 0);                                                            \
            (slot) = is_used ? (slot) : NULL;                                                                          \
            (w)->busy += is_used;                                                                                      \
            (w)->destroyed += !is_used;                                                                                \
        }                                                                                                              \
    } while (0)

static void destroy(struct walk *w, unsigned kind, unsigned at)
{
    switch (kind) {
    case 0:
        END(w, w->qp[at], false, ibv_destroy_qp);
        break;
    case 1:
        END(w, w->ah[at], false, ibv_destroy_ah);
        break;
    case 2:
        END(w, w->mr[at], false, ibv_dereg_mr);
        break;
    case 3:
        END(w, w->srq[at], srq_used(w, w->srq[at]), ibv_destroy_srq);
        break;
    case 4:
        END(w, w->cq[at], cq_used(w, w->cq[at]), ibv_destroy_cq);
        break;
    case 5:
        END(w, w->channel[at], channel_used(w, w->channel[at]), ibv_destroy_comp_channel);
        break;
    default:
        END(w, w->pd[at], pd_used(w, w->pd[at]), ibv_dealloc_pd);
        break;
    }
}

static void walk_steps(struct walk *w)
{
    pair_init(&w->pair);
    for (unsigned step = 0; step < STEPS; step++) {
        if (draw(w, 2) == 0) {
            create(w);
        } else {
            destroy(w, draw(w, 7), draw(w, PER_KIND));
        }
    }
}

TEST(Walk, OnlyWhatNobodyUsesMayGo)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct walk w = {.seed = seed};
        walk_steps(&w);
        EXPECT_GT(w.busy, 100);
        EXPECT_GT(w.destroyed, 100);
        for (unsigned kind = 0; kind < 7; kind++) {
            for (unsigned at = 0; at < PER_KIND; at++) {
                destroy(&w, kind, at);
            }
        }
        pair_fini(&w.pair);
    }
}

TEST(Walk, MayEndAnywhere)
{
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        struct walk w = {.seed = 100 + seed};
        walk_steps(&w);
        EXPECT_EQ(ibv_close_device(w.pair.side[0].context), 0);
        for (unsigned kind = 0; kind < IBVERBS_KINDS; kind++) {
            EXPECT_EQ(ibverbs_live(&w.pair.fixture->processes[0], (enum ibverbs_kind)kind), 0);
        }
        cuda_fixture_close(w.pair.fixture);
        EXPECT_EQ(memory_world_live(w.pair.world), 0);
        memory_world_destroy(w.pair.world);
        pair_free(&w.pair);
    }
}
