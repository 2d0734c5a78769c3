#include "scene.h"

#include <string.h>

struct scene scene;

static void pair_init(enum hca_qp_type type)
{
    scene.near = rig_process(&scene.rig, 0);
    scene.far = rig_process(&scene.rig, 1);
    scene.a = rig_qp(scene.near, type);
    scene.b = rig_qp(scene.far, type);
    rig_connect(&scene.a, &scene.b);
    memset(scene.near->memory, 0x3c, 65536);
}

void scene_init(enum hca_qp_type type)
{
    memset(&scene, 0, sizeof scene);
    rig_init(&scene.rig, "connectx-qdr");
    pair_init(type);
}

void scene_init_adversarial(enum adversary_purpose purpose, uint32_t permille)
{
    struct hca_config config = preset_hca("connectx-qdr");
    memset(&scene, 0, sizeof scene);
    ASSERT_EQ(adversary_create(1, &scene.adversary), SIM_OK);
    adversary_only(scene.adversary, purpose, permille);
    config.adversary = scene.adversary;
    rig_init_with(&scene.rig, &config, "core-i7-2600k");
    pair_init(HCA_RC);
}

void scene_fini(void)
{
    rig_fini(&scene.rig);
    adversary_destroy(scene.adversary);
}

void scene_run(void (*near)(void *), void (*far)(void *))
{
    if (far != NULL) {
        rig_spawn(&scene.rig, "far", far, NULL);
    }
    rig_spawn(&scene.rig, "near", near, NULL);
    rig_run(&scene.rig);
}

void scene_expect_event(struct rig_process *process, enum hca_event_type type)
{
    struct hca_event event = {0};
    EXPECT_EQ(hca_event_get(process->context, 1000000, &event), 0);
    EXPECT_EQ(event.type, type);
}
