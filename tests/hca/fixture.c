#include "fixture.h"

#include <string.h>

struct fixture fixture;

static void pair_init(enum hca_qp_type type)
{
    fixture.near = hca_fixture_process(&fixture.base, 0);
    fixture.far = hca_fixture_process(&fixture.base, 1);
    fixture.a = hca_fixture_qp(fixture.near, type);
    fixture.b = hca_fixture_qp(fixture.far, type);
    hca_fixture_connect(&fixture.a, &fixture.b);
    memset(fixture.near->memory, 0x3c, 65536);
}

void fixture_init(enum hca_qp_type type)
{
    memset(&fixture, 0, sizeof fixture);
    hca_fixture_init(&fixture.base, "connectx-qdr");
    pair_init(type);
}

void fixture_init_with(const struct hca_config *config, enum hca_qp_type type)
{
    memset(&fixture, 0, sizeof fixture);
    hca_fixture_init_with(&fixture.base, config, "core-i7-2600k");
    pair_init(type);
}

void fixture_reconnect(void (*change)(struct hca_qp_attr *attr))
{
    const struct hca_qp_attr reset = {.state = HCA_RESET};
    struct hca_qp_attr to_b = hca_fixture_attr(&fixture.b), to_a = hca_fixture_attr(&fixture.a);
    change(&to_b);
    change(&to_a);
    EXPECT_EQ(hca_qp_modify(fixture.a.qp, HCA_QP_STATE, &reset), 0);
    EXPECT_EQ(hca_qp_modify(fixture.b.qp, HCA_QP_STATE, &reset), 0);
    hca_fixture_connect_with(&fixture.a, &to_b);
    hca_fixture_connect_with(&fixture.b, &to_a);
}

void fixture_init_adversarial(enum adversary_purpose purpose, uint32_t permille)
{
    struct hca_config config = preset_hca("connectx-qdr");
    memset(&fixture, 0, sizeof fixture);
    ASSERT_EQ(adversary_create(1, &fixture.adversary), SIM_OK);
    adversary_only(fixture.adversary, purpose, permille);
    config.adversary = fixture.adversary;
    hca_fixture_init_with(&fixture.base, &config, "core-i7-2600k");
    pair_init(HCA_RC);
}

void fixture_fini(void)
{
    hca_fixture_fini(&fixture.base);
    adversary_destroy(fixture.adversary);
}

void fixture_run(void (*near)(void *), void (*far)(void *))
{
    if (far != NULL) {
        hca_fixture_spawn(&fixture.base, "far", far, NULL);
    }
    hca_fixture_spawn(&fixture.base, "near", near, NULL);
    hca_fixture_run(&fixture.base);
}

void fixture_expect_event(struct hca_fixture_process *process, enum hca_event_type type)
{
    struct hca_event event = {0};
    EXPECT_EQ(hca_event_get(process->context, 1000000, &event), 0);
    EXPECT_EQ(event.type, type);
}
