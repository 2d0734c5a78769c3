// Verbs calls as trace points, a line a call, between the trace points of devices in the order of simulated time.
//
// What a program did since its last call is known only at the call, with times that are later than the devices'. So
// lines wait in a heap until the simulation reaches their time.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/observe/internal.h"

struct observe_line {
    uint64_t at_ps, order, took_ps;
    uint32_t number, cause; // in the trace
    char component[104];
    char *text;         // a sentence, owned; NULL: the line is a call
    bool is_empty_poll; // of which the record has no more than the call
    struct journal_record record;
};

// --- fields ---------------------------------------------------------------------------------------------------------

enum form { DECIMAL, HEX, STATE, OPCODE, WC_OPCODE, STATUS, TYPE };

struct field {
    const char *name;
    size_t offset;
    uint8_t bytes;
    enum form form;
};

#define FIELD(name, member, form)                                                                                      \
    {                                                                                                                  \
        name, offsetof(struct journal_record, member), sizeof((struct journal_record *)0)->member, form                \
    }
#define FIELDS_MAX 12

// The fields of a member of a record; unused ones have no name.
struct fields {
    struct field list[FIELDS_MAX];
};

static const struct fields of_object = {
    {FIELD("handle", object.handle, DECIMAL), FIELD("value", object.value, DECIMAL)}};
static const struct fields of_empty_poll = {{{0}}};
static const struct fields of_device = {{FIELD("lid", device.lid, DECIMAL)}};
static const struct fields of_mr = {{FIELD("handle", mr.handle, DECIMAL), FIELD("address", mr.address, HEX),
                                     FIELD("length_bytes", mr.bytes, DECIMAL), FIELD("lkey", mr.lkey, HEX),
                                     FIELD("rkey", mr.rkey, HEX), FIELD("access", mr.access, HEX)}};
static const struct fields of_cq = {{FIELD("cq", cq.handle, DECIMAL), FIELD("entries", cq.entries, DECIMAL)}};
static const struct fields of_qp = {{FIELD("qp", qp.number, DECIMAL), FIELD("type", qp.type, TYPE),
                                     FIELD("send_cq", qp.send_cq, DECIMAL), FIELD("max_send_wr", qp.max_send, DECIMAL),
                                     FIELD("max_recv_wr", qp.max_receive, DECIMAL),
                                     FIELD("max_inline_data", qp.max_inline, DECIMAL)}};
static const struct fields of_modify = {{FIELD("qp", modify.number, DECIMAL), FIELD("from", modify.from, STATE),
                                         FIELD("to", modify.to, STATE), FIELD("mask", modify.mask, HEX),
                                         FIELD("dest_qp", modify.dest, DECIMAL), FIELD("dlid", modify.dlid, DECIMAL)}};
static const struct fields of_send = {{FIELD("qp", send.qp, DECIMAL), FIELD("wr_id", send.wr_id, HEX),
                                       FIELD("opcode", send.opcode, OPCODE), FIELD("length_bytes", send.bytes, DECIMAL),
                                       FIELD("address", send.address, HEX), FIELD("lkey", send.lkey, HEX),
                                       FIELD("remote_address", send.remote_address, HEX), FIELD("rkey", send.rkey, HEX),
                                       FIELD("send_flags", send.flags, HEX)}};
static const struct fields of_receive = {{FIELD("queue", receive.queue, DECIMAL), FIELD("wr_id", receive.wr_id, HEX),
                                          FIELD("length_bytes", receive.bytes, DECIMAL),
                                          FIELD("address", receive.address, HEX), FIELD("lkey", receive.lkey, HEX)}};
static const struct fields of_completion = {
    {FIELD("cq", completion.cq, DECIMAL), FIELD("qp", completion.qp, DECIMAL), FIELD("wr_id", completion.wr_id, HEX),
     FIELD("status", completion.status, STATUS), FIELD("opcode", completion.opcode, WC_OPCODE),
     FIELD("length_bytes", completion.bytes, DECIMAL), FIELD("vendor_err", completion.vendor_error, HEX)}};
static const struct fields of_dma = {{FIELD("channel", dma.channel, DECIMAL), FIELD("length_bytes", dma.bytes, DECIMAL),
                                      FIELD("sender", dma.sender, DECIMAL), FIELD("slot", dma.slot, DECIMAL),
                                      FIELD("tag", dma.tag, DECIMAL)}};
static const struct fields of_refusal = {{{NULL, 0, 0, DECIMAL}}};
static const struct fields of_check = {{FIELD("mistake", check.mistake, DECIMAL), FIELD("qp", check.qp, DECIMAL),
                                        FIELD("wr_id", check.wr_id, HEX), FIELD("address", check.address, HEX),
                                        FIELD("length_bytes", check.bytes, DECIMAL)}};

static const struct fields *const fields_of[JOURNAL_CALL_COUNT] = {
#define CALL(name, text, member) [JOURNAL_##name] = &of_##member,
    JOURNAL_CALLS(CALL)
#undef CALL
};

static uint64_t value_of(const struct field *field, const struct journal_record *record)
{
    uint64_t value = 0;
    memcpy(&value, (const unsigned char *)record + field->offset, field->bytes); // little endian
    return value;
}

// sim_trace expects a table of names by value. Here the table has one entry: the name of this value.
static void form_fill(const struct field *field, uint64_t value, struct sim_trace_field *out, const char **name,
                      uint64_t *value_out)
{
    static const char *(*const names[])(uint64_t) = {
        [STATE] = observe_state_name,   [OPCODE] = observe_opcode_name, [WC_OPCODE] = observe_wc_opcode_name,
        [STATUS] = observe_status_name, [TYPE] = observe_qp_type_name,
    };
    *out = (struct sim_trace_field){field->name, field->form == HEX ? SIM_TRACE_HEX : SIM_TRACE_DECIMAL, NULL};
    *value_out = value;
    if (value == SIM_TRACE_ABSENT) { // a program's wr_id may have this value; it is a number here
        static const char *const most = "0xffffffffffffffff";
        *out = (struct sim_trace_field){field->name, SIM_TRACE_NAME, &most};
        *value_out = 0;
        return;
    }
    if (field->form != DECIMAL && field->form != HEX) {
        *name = names[field->form](value);
        out->form = SIM_TRACE_NAME;
        out->names = name;
        *value_out = 0;
    }
}

static void line_pass(const observe_t *observe, const struct observe_line *line, const struct sim_trace_point *point,
                      const uint64_t *values)
{
    observe->options.trace(observe->options.trace_ctx, &(struct sim_trace_record){.time_ps = line->at_ps,
                                                                                  .component = line->component,
                                                                                  .point = point,
                                                                                  .values = values,
                                                                                  .number = line->number,
                                                                                  .cause = line->cause});
}

static void sentence_write(const observe_t *observe, const struct observe_line *line)
{
    const char *const text = line->text;
    const struct sim_trace_field field = {"text", SIM_TRACE_NAME, &text};
    const struct sim_trace_point point = {"diagnosis", &field, 1, "what is said of it"};
    line_pass(observe, line, &point, (const uint64_t[]){0});
}

static void line_write(const observe_t *observe, const struct observe_line *line)
{
    static const struct field took = {"took_ps", 0, 0, DECIMAL}, error = {"errno", 0, 0, DECIMAL};
    struct sim_trace_field fields[FIELDS_MAX + 2];
    const char *names[FIELDS_MAX];
    uint64_t values[FIELDS_MAX + 2];
    unsigned count = 0;
    const struct fields *of = line->is_empty_poll ? &of_empty_poll : fields_of[line->record.call];
    for (unsigned i = 0; i < FIELDS_MAX && of->list[i].name != NULL; i++, count++) {
        form_fill(&of->list[i], value_of(&of->list[i], &line->record), &fields[count], &names[count], &values[count]);
    }
    form_fill(&took, line->took_ps, &fields[count], NULL, &values[count]);
    count++;
    if (line->record.error != 0) {
        form_fill(&error, (uint64_t)line->record.error, &fields[count], NULL, &values[count]);
        count++;
    }
    const struct sim_trace_point point = {observe_call_name(line->record.call), fields, count, "a call of the program"};
    line_pass(observe, line, &point, values);
}

// --- the heap -------------------------------------------------------------------------------------------------------

static bool before(const struct observe_line *a, const struct observe_line *b)
{
    return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->order < b->order;
}

static void exchange(struct observe_line *a, struct observe_line *b)
{
    struct observe_line line = *a;
    *a = *b;
    *b = line;
}

static void push(observe_t *observe, const struct observe_line *line)
{
    if (observe->line_count == observe->line_room) {
        size_t room = observe->line_room == 0 ? 256 : 2 * observe->line_room;
        struct observe_line *lines = realloc(observe->lines, room * sizeof *lines);
        if (lines == NULL) {
            sim_panic("observe", "no memory for the trace");
        }
        observe->lines = lines;
        observe->line_room = room;
    }
    size_t at = observe->line_count++;
    for (observe->lines[at] = *line; at > 0 && before(&observe->lines[at], &observe->lines[(at - 1) / 2]);
         at = (at - 1) / 2) {
        exchange(&observe->lines[at], &observe->lines[(at - 1) / 2]);
    }
}

static void first_drop(observe_t *observe)
{
    struct observe_line *lines = observe->lines;
    size_t count = --observe->line_count, at = 0;
    lines[0] = lines[count];
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            least = before(&lines[child], &lines[least]) ? child : least;
        }
        if (least == at) {
            return;
        }
        exchange(&lines[at], &lines[least]);
        at = least;
    }
}

static void lines_write(observe_t *observe, uint64_t until_ps)
{
    while (observe->line_count > 0 && observe->lines[0].at_ps <= until_ps) {
        struct observe_line *first = &observe->lines[0];
        if (first->text != NULL) {
            sentence_write(observe, first);
            free(first->text);
        } else {
            line_write(observe, first);
        }
        first_drop(observe);
    }
}

void observe_trace_say(observe_process_t *process, uint64_t at_ps, const char *text)
{
    observe_t *observe = process->observe;
    struct observe_line line = {.at_ps = at_ps, .order = observe->line_order++, .text = strdup(text)};
    snprintf(line.component, sizeof line.component, "%s.process%u.verbs", process->node, process->number);
    if (line.text != NULL) {
        push(observe, &line);
    }
}

void observe_trace_write_due(observe_t *observe)
{
    lines_write(observe, sim_now_ps(observe->sim));
}

void observe_trace_flush(observe_t *observe)
{
    lines_write(observe, UINT64_MAX);
}

// --- numbers --------------------------------------------------------------------------------------------------------

struct observe_traced {
    uint64_t at_ps;
    uint32_t cause;
    bool is_upcoming; // of a call that has not returned; at_ps is the time since when it may have begun
    bool is_cause;    // of a record
    bool is_nothing;  // of a call that is in no record, and from which nothing had followed when it ended
};

static void traced_set(observe_t *observe, uint32_t number, const struct observe_traced *traced)
{
    if (number >= observe->traced_room) {
        size_t room = 2 * (size_t)number + 1024;
        struct observe_traced *larger = realloc(observe->traced, room * sizeof *larger);
        if (larger == NULL) {
            sim_panic("observe", "no memory for the causes of the trace");
        }
        memset(larger + observe->traced_room, 0, (room - observe->traced_room) * sizeof *larger);
        observe->traced = larger;
        observe->traced_room = room;
    }
    observe->traced[number] = *traced;
}

// A store may leave its core after the call has ended.
uint32_t observe_trace_cause(const observe_t *observe, uint32_t cause)
{
    while (cause < observe->traced_room && observe->traced[cause].is_nothing) {
        cause = observe->traced[cause].cause;
    }
    return cause;
}

void observe_trace_follow(observe_t *observe, uint32_t number, uint32_t cause, uint64_t at_ps)
{
    traced_set(observe, number, &(struct observe_traced){.at_ps = at_ps, .cause = cause});
    if (cause < observe->traced_room) {
        observe->traced[cause].is_cause = true;
    }
}

// Gives the next call of the thread its number. cause: what it follows from unless it waits.
static void upcoming_reserve(observe_t *observe, struct observe_upcoming *upcoming, uint32_t cause)
{
    upcoming->number = sim_trace_reserve(observe->sim);
    upcoming->cause = cause;
    traced_set(
        observe, upcoming->number,
        &(struct observe_traced){.at_ps = sim_now_ps(observe->sim), .cause = upcoming->cause, .is_upcoming = true});
}

// More records than any call waits for; who waits for more is said to follow from what its thread did before.
enum { FOLLOWED_MAX = 65536 };

// Whether the record follows from a call that has not returned. All between them are not earlier than since_ps, the time
// since when the call may have begun: what the program says of that does not matter, else records could follow from
// each other in a circle.
static bool follows(const observe_t *observe, uint32_t number, uint32_t from, uint64_t since_ps)
{
    unsigned steps = 0;
    while (number != 0 && number != from && number < observe->traced_room &&
           observe->traced[number].at_ps >= since_ps && steps < FOLLOWED_MAX) {
        number = observe->traced[number].cause;
        steps++;
    }
    return number == from || steps == FOLLOWED_MAX;
}

// Another thread that woke this one did so before its next call, as far as is known.
static uint32_t cause_settle(const observe_t *observe, uint32_t cause, uint32_t own)
{
    while (cause != own && cause < observe->traced_room &&
           (observe->traced[cause].is_upcoming || observe->traced[cause].is_nothing)) {
        cause = observe->traced[cause].cause;
    }
    return cause;
}

// A call that waited follows from what ended its wait, unless that is its own doing; otherwise from what the thread did
// before.
static void line_number(observe_t *observe, struct observe_upcoming *upcoming, struct observe_line *line)
{
    if (upcoming->number == 0) {
        upcoming_reserve(observe, upcoming, cause_settle(observe, sim_trace_cause(observe->sim), 0));
    }
    uint32_t cause = cause_settle(observe, sim_trace_cause(observe->sim), upcoming->number);
    uint64_t since_ps = observe->traced[upcoming->number].at_ps;
    line->number = upcoming->number;
    line->cause = follows(observe, cause, line->number, since_ps) ? upcoming->cause : cause;
    observe_trace_follow(observe, line->number, line->cause, line->at_ps);
    if (upcoming->begins) {
        sim_trace_follow(observe->sim, line->number);
        upcoming->number = 0;
    } else {
        upcoming_reserve(observe, upcoming, line->number);
    }
}

static struct observe_line call_line(observe_t *observe, const char *thread, uint64_t at_ps, uint64_t took_ps)
{
    struct observe_line line = {.at_ps = at_ps, .order = observe->line_order++, .took_ps = took_ps};
    snprintf(line.component, sizeof line.component, "%s.verbs", thread);
    return line;
}

void observe_call_begins(observe_process_t *process, struct observe_upcoming *upcoming)
{
    observe_t *observe = process != NULL ? process->observe : NULL;
    if (observe != NULL && observe->options.trace_causes) {
        upcoming->begins = true;
        upcoming_reserve(observe, upcoming, cause_settle(observe, sim_trace_cause(observe->sim), 0));
    }
}

void observe_call_goes_on(observe_process_t *process, struct observe_upcoming *upcoming)
{
    observe_t *observe = process != NULL ? process->observe : NULL;
    if (observe == NULL || upcoming->number == 0) {
        return;
    }
    uint32_t cause = sim_trace_cause(observe->sim);
    if (cause != upcoming->number && cause < observe->traced_room && observe->traced[cause].is_upcoming) {
        upcoming->cause = cause_settle(observe, cause, upcoming->number);
        sim_trace_follow(observe->sim, upcoming->number);
    }
}

void observe_call_found_nothing(observe_process_t *process, const char *thread, struct observe_upcoming *upcoming)
{
    uint32_t number = upcoming->number;
    if (process == NULL || number == 0) {
        return;
    }
    observe_t *observe = process->observe;
    struct observe_traced *traced = &observe->traced[number];
    upcoming->number = 0;
    if (!traced->is_cause) {
        *traced = (struct observe_traced){.cause = traced->cause, .is_nothing = true};
        return;
    }
    uint64_t now_ps = sim_now_ps(observe->sim);
    struct observe_line line = call_line(observe, thread, now_ps, now_ps - traced->at_ps);
    line.is_empty_poll = true;
    line.record.call = JOURNAL_POLL_CQ;
    line.number = number;
    line.cause = traced->cause;
    observe_trace_follow(observe, number, line.cause, now_ps);
    push(observe, &line);
}

void observe_trace_note(observe_process_t *process, const struct observe_call *call,
                        const struct journal_record *record)
{
    observe_t *observe = process->observe;
    struct observe_line line = call_line(observe, call->thread, call->at_ps, call->took_ps);
    line.record = *record;
    if (observe->options.trace_causes && call->upcoming != NULL) {
        line_number(observe, call->upcoming, &line);
    }
    push(observe, &line);
}

void observe_trace_free(observe_t *observe)
{
    for (size_t i = 0; i < observe->line_count; i++) {
        free(observe->lines[i].text);
    }
    free(observe->lines);
    free(observe->traced);
}
