#include "fixture.h"

#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "sim/kernel/sim.h"
#include "tests/shim/test.h"

static void append(char *text, size_t room, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s", more);
}

static void line_take(void *ctx, const char *text)
{
    struct fixture *fixture = ctx;
    append(fixture->lines, sizeof fixture->lines, text);
    append(fixture->lines, sizeof fixture->lines, "\n");
}

static void trace_take(void *ctx, const struct sim_trace_record *record)
{
    const struct sim_trace_point *point = record->point;
    const uint64_t *values = record->values;
    struct fixture *fixture = ctx;
    char text[256];
    snprintf(text, sizeof text, "%llu %s %s", (unsigned long long)record->time_ps, record->component, point->name);
    append(fixture->traced, sizeof fixture->traced, text);
    for (unsigned i = 0; i < point->field_count; i++) {
        const struct sim_trace_field *field = &point->fields[i];
        if (field->form == SIM_TRACE_NAME) {
            snprintf(text, sizeof text, " %s=%s", field->name, field->names[values[i]]);
        } else {
            snprintf(text, sizeof text, " %s=%llu", field->name, (unsigned long long)values[i]);
        }
        append(fixture->traced, sizeof fixture->traced, text);
    }
    if (record->number != 0) {
        snprintf(text, sizeof text, " number=%u cause=%u", record->number, record->cause);
        append(fixture->traced, sizeof fixture->traced, text);
    }
    append(fixture->traced, sizeof fixture->traced, "\n");
}

void fixture_open(struct fixture *fixture, const struct observe_options *options)
{
    struct observe_options own = *options;
    memset(fixture, 0, sizeof *fixture);
    own.trace = trace_take;
    own.trace_ctx = fixture;
    own.line = line_take;
    own.line_ctx = fixture;
    ASSERT_EQ(sim_create(&(struct sim_config){0}, &fixture->sim), SIM_OK);
    fixture->observe = observe_create(fixture->sim, &own);
    ASSERT_NOT_NULL(fixture->observe);
    fixture->node0 =
        observe_process_begin(fixture->observe, &(struct observe_identity){.node = "node0", .number = 1, .name = "a"});
    fixture->node1 =
        observe_process_begin(fixture->observe, &(struct observe_identity){.node = "node1", .number = 1, .name = "b"});
}

void fixture_close(struct fixture *fixture)
{
    observe_destroy(fixture->observe);
    sim_destroy(fixture->sim);
}

void fixture_note(observe_process_t *process, uint64_t at_ps, const struct journal_record *record)
{
    observe_note(process, &(struct observe_call){.thread = "t", .at_ps = at_ps}, record);
}

void fixture_connect(observe_process_t *process, uint32_t lid, uint32_t other_lid, uint32_t key)
{
    const struct journal_record records[] = {
        {.call = JOURNAL_OPEN_DEVICE, .device = {.device = "ibsim0", .lid = lid}},
        {.call = JOURNAL_REG_MR,
         .mr = {.address = 0x1000,
                .iova = 0x1000,
                .bytes = 4096,
                .rkey = key,
                .lkey = key,
                .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE}},
        {.call = JOURNAL_CREATE_CQ, .cq = {.handle = 2, .entries = 16}},
        {.call = JOURNAL_CREATE_QP,
         .qp = {.number = 1, .type = IBV_QPT_RC, .send_cq = 2, .receive_cq = 3, .max_send = 16, .max_receive = 16}},
        {.call = JOURNAL_MODIFY_QP,
         .modify = {.number = 1,
                    .mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU | IBV_QP_RNR_RETRY,
                    .to = IBV_QPS_RTS,
                    .dest = 1,
                    .dlid = other_lid,
                    .mtu_bytes = 1024,
                    .rnr_retry = 3}}};
    for (unsigned i = 0; i < sizeof records / sizeof records[0]; i++) {
        fixture_note(process, 1000, &records[i]);
    }
}

void fixture_state_set(observe_process_t *process, uint64_t at_ps, uint32_t state)
{
    const struct journal_record record = {.call = JOURNAL_MODIFY_QP,
                                          .modify = {.number = 1, .mask = IBV_QP_STATE, .to = state}};
    fixture_note(process, at_ps, &record);
}

void fixture_connect_both(const struct fixture *fixture)
{
    fixture_connect(fixture->node0, 1, 2, 0x100);
    fixture_connect(fixture->node1, 2, 1, 0x200);
}

const char *fixture_written(const struct fixture *fixture, void (*write)(const observe_t *observe, FILE *out))
{
    static char text[8192];
    FILE *out = fmemopen(text, sizeof text, "w");
    write(fixture->observe, out);
    fclose(out);
    return text;
}
