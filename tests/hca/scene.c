#include "scene.h"

#include <string.h>

struct scene scene;

void scene_init(enum hca_qp_type type)
{
    memset(&scene, 0, sizeof scene);
    rig_init(&scene.rig, "connectx-qdr");
    scene.near = rig_process(&scene.rig, 0);
    scene.far = rig_process(&scene.rig, 1);
    scene.a = rig_qp(scene.near, type);
    scene.b = rig_qp(scene.far, type);
    rig_connect(&scene.a, &scene.b);
    memset(scene.near->memory, 0x3c, 65536);
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
