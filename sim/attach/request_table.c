// What the table of requests (verbs-shim/attach/requests.def) defines for each request: the size of its arguments, the
// checks of its fields, the function that serves it, and its line in the IPC trace.
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "sim/attach/internal.h"

const char *attach_op_name(uint32_t op)
{
    static const char *const names[] = {
#define REQUEST(ID, name, ARGUMENTS, REPLY) #ID,
#include "verbs-shim/attach/requests.def"
#undef REQUEST
    };
    return op < ATTACH_OPS ? names[op] : "?";
}

void attach_args_take(union attach_args *args, uint32_t op, const struct attach_slot *slot)
{
    static const size_t sizes[] = {
#define REQUEST(ID, name, ARGUMENTS, REPLY) sizeof(struct attach_args_##name),
#include "verbs-shim/attach/requests.def"
#undef REQUEST
    };
    size_t bytes = op < ATTACH_OPS ? sizes[op] : 0;
    if (op == ATTACH_OP_POLL && slot->args.poll.polled.page_count == 0) {
        bytes = offsetof(struct attach_args_poll, polled.pages);
    }
    memcpy(args, &slot->args, bytes);
    if (op == ATTACH_OP_POLL && bytes < sizeof args->poll) {
        args->poll.polled.page_count = 0; // whatever the slot contains by now
    }
}

// --- checks ---------------------------------------------------------------------------------------------------------

static bool gpu_is(const struct attach_thread *thread, uint32_t gpu)
{
    const struct plat_backend_inproc *backend = &thread->backend;
    return gpu < backend->ops.gpu->count((void *)(uintptr_t)backend);
}

static bool queue_is(const struct attach_thread *thread, uint32_t gpu, uint32_t queue)
{
    return attach_object_find(thread->process, OBJECT_GPU_QUEUE, gpu, queue) != NULL;
}

#define U64(field)
#define U32(field)
#define FLAG(field)                                                                                                    \
    if (args->field > 1) {                                                                                             \
        return -EINVAL;                                                                                                \
    }
#define GPU(field)                                                                                                     \
    if (!gpu_is(thread, args->field)) {                                                                                \
        return -ENODEV;                                                                                                \
    }
#define GPU_QUEUE(field)                                                                                               \
    if (!queue_is(thread, args->gpu, args->field)) {                                                                   \
        return -EINVAL;                                                                                                \
    }
#define HOST_ID(field)
#define STRUCT(type, field)
#define COMMAND(field)                                                                                                 \
    if (thread->backend.hca == NULL) {                                                                                 \
        return -ENODEV;                                                                                                \
    }                                                                                                                  \
    if (hca_command_info(args->field.id) == NULL) {                                                                    \
        return -EINVAL;                                                                                                \
    }
#define NONE
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    static int64_t check_##name(const struct attach_thread *thread, const struct attach_args_##name *args)             \
    {                                                                                                                  \
        (void)thread;                                                                                                  \
        (void)args;                                                                                                    \
        ARGUMENTS                                                                                                      \
        return 0;                                                                                                      \
    }
#include "verbs-shim/attach/requests.def"
#undef REQUEST
#include "verbs-shim/attach/fields_end.h"

// --- service --------------------------------------------------------------------------------------------------------

int64_t attach_request_do(struct attach_thread *thread, const struct attach_request *request)
{
    switch (request->op) {
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    case ATTACH_OP_##ID: {                                                                                             \
        struct attach_reply_##name answer = {0};                                                                       \
        int64_t result = check_##name(thread, &request->args.name);                                                    \
        result = result != 0 ? result : attach_serve_##name(thread, &request->args.name, &answer);                     \
        thread->slot->reply.name = answer;                                                                             \
        return result;                                                                                                 \
    }
#include "verbs-shim/attach/requests.def"
#undef REQUEST
    }
    return -ENOSYS;
}

// --- the trace ------------------------------------------------------------------------------------------------------

#define U64(field)          fprintf(file, " " #field "=0x%" PRIx64, args->field);
#define U32(field)          fprintf(file, " " #field "=0x%" PRIx32, args->field);
#define FLAG(field)         fprintf(file, " " #field "=%" PRIu32, args->field);
#define GPU(field)          fprintf(file, " " #field "=%" PRIu32, args->field);
#define GPU_QUEUE(field)    fprintf(file, " " #field "=%" PRIu32, args->field);
#define HOST_ID(field)
#define STRUCT(type, field)
#define COMMAND(field)                                                                                                 \
    const struct hca_command_info *info = hca_command_info(args->field.id);                                            \
    fprintf(file, " %s %" PRIu32, info != NULL ? info->name : "?", args->field.number);
#define NONE
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    static void write_##name(FILE *file, const struct attach_args_##name *args)                                        \
    {                                                                                                                  \
        (void)file;                                                                                                    \
        (void)args;                                                                                                    \
        ARGUMENTS                                                                                                      \
    }
#include "verbs-shim/attach/requests.def"
#undef REQUEST
#include "verbs-shim/attach/fields_end.h"

void attach_trace_write(FILE *file, const struct attach_thread *thread, const struct attach_request *request)
{
    fprintf(file, "%" PRIu64 " %s %s", sim_now_ps(thread->process->server->sim), thread->name,
            attach_op_name(request->op));
    switch (request->op) {
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    case ATTACH_OP_##ID:                                                                                               \
        write_##name(file, &request->args.name);                                                                       \
        break;
#include "verbs-shim/attach/requests.def"
#undef REQUEST
    }
    fprintf(file, " after %" PRIu64 " ps and %" PRIu32 " stores\n", request->own_ps, request->entry_count);
}
