// Memory is used again only after every user and every access in flight has ended (docs/ownership.md): what the end of
// each kind of object waits for.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/gpu/gpu.h"
#include "sim/platform/gpus.h"
#include "tests/shim/test.h"
#include "tests/support/script.h"

enum { PAGE = 4096, DEVICE_PAGE = 65536, LATER_US = 200 };

static uint64_t command_at(struct attach_thread *thread, enum hca_command_id id, uint32_t number)
{
    struct hca_command command = {.id = id, .number = number};
    EXPECT_EQ(script_command(thread, &command), 0);
    return script_now_us(thread);
}

static void later(const struct attach_thread *thread)
{
    script_sleep_until_us(thread, script_now_us(thread) + LATER_US);
}

// --- the table -------------------------------------------------------------------------------------------------------

static bool settles(enum hca_command_id id)
{
    return (hca_command_info(id)->traits & HCA_SETTLES) != 0;
}

static void line_add(char *text, size_t size, const char *end, const char *title, unsigned waits)
{
    static const char *const names[] = {"accesses of the HCA", "its work", "copies", "stores"};
    size_t at = strlen(text);
    at += (size_t)snprintf(text + at, size - at, "| %s | %s | ", end, title);
    const char *between = "";
    for (unsigned i = 0; i < 4; i++) {
        if ((waits >> i & 1) != 0) {
            at += (size_t)snprintf(text + at, size - at, "%s%s", between, names[i]);
            between = ", ";
        }
    }
    (void)snprintf(text + at, size - at, "%s |\n", waits == 0 ? "-" : "");
}

// Commands that change what an object names; QP_MODIFY does so when it resets the queue pair.
static void changes_add(char *text, size_t size)
{
    static const char *const names[] = {
#define COMMAND(id, name, object, effect, traits, operand) #id,
#include "models/hca/abi/commands.def"
#undef COMMAND
    };
    for (int id = 0; id < HCA_COMMANDS; id++) {
        const struct hca_command_info *info = hca_command_info((enum hca_command_id)id);
        bool resets = (info->traits & HCA_SETTLES_RESET) != 0;
        if (info->effect != HCA_DESTROYS && (settles((enum hca_command_id)id) || resets)) {
            line_add(text, size, names[id], resets ? "rings, when it resets the queue pair" : "ring", ATTACH_ACCESSES);
        }
    }
}

// docs/ownership.md has the table between two comments.
TEST(InFlight, TheTableOfTheDocumentIsThatOfTheCode)
{
    char text[4096] = "| request or command | ends | waits for |\n|---|---|---|\n", *document = NULL;
    size_t size = 0;
#define OBJECT(ID, title, by, end, waits) line_add(text, sizeof text, #end, title, waits);
#include "sim/attach/objects.def"
#undef OBJECT
    changes_add(text, sizeof text);
    FILE *file = fopen(TCASIM_SOURCE_DIR "/docs/ownership.md", "re");
    ASSERT_NOT_NULL(file);
    ASSERT_GT(getdelim(&document, &size, '\0', file), 0);
    (void)fclose(file);
    char *begin = strstr(document, "<!-- in flight -->\n") + strlen("<!-- in flight -->\n");
    *strstr(begin, "<!-- end -->") = '\0';
    EXPECT_STREQ(begin, text);
    free(document);
}

TEST(InFlight, EachCommandThatDropsANameOfMemoryWaitsForTheAdapter)
{
#define COMMAND(ID, end)                                                                                               \
    EXPECT_EQ(hca_command_info(HCA_CMD_##end)->effect, HCA_DESTROYS);                                                  \
    EXPECT_EQ(hca_command_info(HCA_CMD_##end)->object, HCA_OBJECT_##ID);                                               \
    EXPECT_EQ(settles(HCA_CMD_##end), (attach_object_waits(OBJECT_##ID) & ATTACH_ACCESSES) != 0);
#define REQUEST(ID, end)                  EXPECT_EQ(attach_object_waits(OBJECT_##ID) & ATTACH_ACCESSES, 0);
#define OBJECT(ID, title, by, end, waits) by(ID, end)
#include "sim/attach/objects.def"
#undef OBJECT
#undef REQUEST
#undef COMMAND
    EXPECT_TRUE(settles(HCA_CMD_CQ_RESIZE)); // the only command that changes what an object names
    EXPECT_NE(hca_command_info(HCA_CMD_QP_MODIFY)->traits & HCA_SETTLES_RESET, 0);
}

TEST(InFlight, MemoryOfEachKindWaitsForCopiesAndWhatIsStoredToForStores)
{
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        bool memory = kind == OBJECT_PINNED || kind == OBJECT_GPU_PIN || kind == OBJECT_GPU_MEMORY;
        bool stored_to = kind == OBJECT_UAR || kind == OBJECT_GPU_PIN || kind == OBJECT_BOARD;
        EXPECT_EQ((attach_object_waits(kind) & ATTACH_COPIES) != 0, memory);
        EXPECT_EQ((attach_object_waits(kind) & ATTACH_STORES) != 0, stored_to);
    }
}

// --- users -----------------------------------------------------------------------------------------------------------

static struct {
    uint64_t memory;
    uint32_t region, queue;
    uint64_t ended_us, freed_us;
} shared;

static void kernel_submit(struct attach_thread *thread, uint32_t queue, uint64_t us)
{
    const struct backend_gpu_work kernel = {.kind = BACKEND_GPU_KERNEL, .duration_ns = us * 1000};
    EXPECT_EQ(script_submit(thread, 0, queue, &kernel), 0);
}

static void free_while_a_kernel_runs(struct attach_thread *thread)
{
    uint32_t pd = script_create(thread, (struct hca_command){.id = HCA_CMD_PD_CREATE});
    shared.memory = script_pinned(thread, PAGE);
    shared.region = script_create(
        thread,
        (struct hca_command){
            .id = HCA_CMD_MR_REGISTER,
            .mr_register = {
                .pdn = pd, .iova = 16 * PAGE, .bytes = PAGE, .access = HCA_LOCAL_WRITE, .bus_address = shared.memory}});
    kernel_submit(thread, script_gpu_queue(thread, 0), 1000);
    EXPECT_EQ(script_free(thread, shared.memory), 0);
    shared.freed_us = script_now_us(thread);
    EXPECT_EQ(script_pinned(thread, PAGE), shared.memory);
}

static void region_end(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 100);
    shared.ended_us = command_at(thread, HCA_CMD_MR_DEREGISTER, shared.region);
    EXPECT_NE(script_pinned(thread, PAGE), shared.memory); // it is not free before the kernel has ended
}

TEST(InFlight, MemoryEndsOnceIfItsLastUserEndsWhileItIsFreed)
{
    script_run(&(struct script){.first = free_while_a_kernel_runs, .first_too = region_end});
    EXPECT_LT(shared.ended_us, 200);
    EXPECT_GE(shared.freed_us, 1000);
}

// --- copies ----------------------------------------------------------------------------------------------------------

static void free_beside_the_end_of_the_queue(struct attach_thread *thread)
{
    shared.memory = script_pinned(thread, PAGE);
    shared.queue = script_gpu_queue(thread, 0);
    kernel_submit(thread, shared.queue, 500);
    const struct backend_gpu_work copy = {.kind = BACKEND_GPU_TO_HOST,
                                          .device_address = script_device_memory(thread, 0, DEVICE_PAGE),
                                          .other_address = shared.memory,
                                          .bytes = PAGE,
                                          .rows = 1};
    EXPECT_EQ(script_submit(thread, 0, shared.queue, &copy), 0);
    script_sleep_until_us(thread, 60);
    EXPECT_EQ(script_free(thread, shared.memory), 0);
    shared.freed_us = script_now_us(thread);
}

static void queue_end(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 50);
    const union attach_args args = {.gpu_queue_destroy = {0, shared.queue}};
    EXPECT_EQ(script_request(thread, ATTACH_OP_GPU_QUEUE_DESTROY, &args), 0);
}

TEST(InFlight, FreeingMemoryWaitsForTheWorkOfAQueueThatIsBeingDestroyed)
{
    script_run(&(struct script){.first = free_beside_the_end_of_the_queue, .first_too = queue_end});
    EXPECT_GE(shared.freed_us, 500);
}

static void free_the_target_of_a_peer(struct attach_thread *thread)
{
    uint32_t queue = script_gpu_queue(thread, 0);
    uint64_t target = script_device_memory(thread, 1, DEVICE_PAGE);
    kernel_submit(thread, queue, 500);
    const struct backend_gpu_work copy = {.kind = BACKEND_GPU_TO_PEER,
                                          .device_address = script_device_memory(thread, 0, DEVICE_PAGE),
                                          .other_address = target,
                                          .peer = 1,
                                          .bytes = PAGE,
                                          .rows = 1};
    EXPECT_EQ(script_submit(thread, 0, queue, &copy), 0);
    EXPECT_EQ(script_request(thread, ATTACH_OP_GPU_FREE, &(union attach_args){.gpu_free = {1, target}}), 0);
    shared.freed_us = script_now_us(thread);
}

TEST(InFlight, FreeingDeviceMemoryWaitsForTheCopiesOfItsPeers)
{
    script_run(&(struct script){.first = free_the_target_of_a_peer});
    EXPECT_GE(shared.freed_us, 500);
}

enum { ROWS = 40000 }; // more than a queue holds

static void rows_submit(struct attach_thread *thread)
{
    shared.memory = script_pinned(thread, 64 * PAGE);
    shared.queue = script_gpu_queue(thread, 0);
    const struct backend_gpu_work copy = {.kind = BACKEND_GPU_TO_HOST,
                                          .device_address = script_device_memory(thread, 0, 4 * DEVICE_PAGE),
                                          .other_address = shared.memory,
                                          .bytes = 4,
                                          .rows = ROWS,
                                          .device_pitch = 4,
                                          .other_pitch = 4};
    EXPECT_EQ(script_submit(thread, 0, shared.queue, &copy), 0);
    shared.ended_us = script_now_us(thread);
    later(thread);
}

static void rows_free(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 50); // the other thread waits for room
    EXPECT_EQ(script_free(thread, shared.memory), 0);
    EXPECT_NE(script_pinned(thread, 64 * PAGE), shared.memory);
}

TEST(InFlight, MemoryStaysUntilASubmissionThatWaitsForRoomHasEnded)
{
    script_run(&(struct script){.first = rows_submit, .first_too = rows_free});
    EXPECT_GT(shared.ended_us, 100);
}

// --- the adapter -----------------------------------------------------------------------------------------------------

static void resize(struct attach_thread *thread)
{
    const struct script_queues own = script_queues(thread);
    const uint64_t old = script_pinned(thread, PAGE), fresh = script_pinned(thread, PAGE);
    const struct hca_cq_init init = {
        .eqn = own.eq, .uar = own.uar, .base = old, .record = own.memory + 1040, .entries = 16};
    uint32_t cq = script_create(thread, (struct hca_command){.id = HCA_CMD_CQ_CREATE, .cq_create = init});
    unsigned char *ring = host_memory_at(thread->backend.memory, old), there[PAGE];
    struct hca_command command = {.id = HCA_CMD_CQ_RESIZE, .number = cq, .cq_resize = {.base = fresh, .entries = 32}};
    memset(ring, 0x5a, PAGE);
    EXPECT_EQ(script_command(thread, &command), 0);
    memcpy(there, ring, PAGE);
    later(thread);
    EXPECT_MEMEQ(there, ring, PAGE);
    EXPECT_NE(there[0], 0x5a); // the entry that tells of the new ring
}

TEST(InFlight, TheLastEntryOfAnOldRingIsThereWhenTheQueueHasANewOne)
{
    script_run(&(struct script){.first = resize});
}

// --- stores ----------------------------------------------------------------------------------------------------------

// As if a program had made the store.
static void store(struct attach_thread *thread, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes)
{
    thread->process->stored_bars |= UINT64_C(1) << bar;
    thread->backend.ops.write_combined(&thread->backend, bar, offset, data, bytes);
}

static struct {
    uint64_t device, offset;
} window;

static void store_long(struct attach_thread *thread)
{
    static unsigned char data[DEVICE_PAGE - 32]; // its end stays in a buffer of the core
    memset(data, 0x41, sizeof data);
    script_sleep_until_us(thread, 50);
    store(thread, BACKEND_BAR_GPU0, window.offset, data, sizeof data);
    later(thread);
}

static void unpin(struct attach_thread *thread)
{
    window.device = script_device_memory(thread, 0, DEVICE_PAGE);
    EXPECT_EQ(
        script_request(thread, ATTACH_OP_GPU_PIN, &(union attach_args){.gpu_pin = {0, window.device, DEVICE_PAGE}}), 0);
    window.offset = thread->slot->reply.gpu_pin.offset;
    script_sleep_until_us(thread, 51); // the other thread is in its store
    EXPECT_EQ(script_request(thread, ATTACH_OP_GPU_UNPIN, &(union attach_args){.gpu_unpin = {0, window.offset}}), 0);
    const unsigned char *there = gpu_memory_at(thread->backend.gpus->list[0]->gpu, window.device, DEVICE_PAGE);
    for (unsigned i = 0; i < DEVICE_PAGE - 32; i++) {
        ASSERT_EQ(there[i], 0x41);
    }
}

TEST(InFlight, AWindowEndsAfterTheStoresOfAllThreadsHaveArrived)
{
    script_run(&(struct script){.first = unpin, .first_too = store_long});
}

static void load_long(struct attach_thread *thread)
{
    script_sleep_until_us(thread, 50);
    const union attach_args args = {.read_combined = {.bar = BACKEND_BAR_GPU0, .offset = window.offset, .bytes = PAGE}};
    EXPECT_EQ(script_request(thread, ATTACH_OP_READ_COMBINED, &args), 0);
}

static void unpin_beside_a_load(struct attach_thread *thread)
{
    const union attach_args pin = {.gpu_pin = {0, script_device_memory(thread, 0, DEVICE_PAGE), DEVICE_PAGE}};
    EXPECT_EQ(script_request(thread, ATTACH_OP_GPU_PIN, &pin), 0);
    window.offset = thread->slot->reply.gpu_pin.offset;
    script_sleep_until_us(thread, 51);
    const union attach_args args = {.gpu_unpin = {0, window.offset}};
    EXPECT_EQ(script_request(thread, ATTACH_OP_GPU_UNPIN, &args), -EBUSY);
    script_sleep_until_us(thread, 500);
    EXPECT_EQ(script_request(thread, ATTACH_OP_GPU_UNPIN, &args), 0);
}

TEST(InFlight, AWindowIsBusyWhileAThreadLoadsFromIt)
{
    script_run(&(struct script){.first = unpin_beside_a_load, .first_too = load_long});
}

// Takes no time, so the doorbell is still on its way.
static void pair_that_flushes(struct attach_thread *thread, const struct script_queues *own)
{
    ASSERT_EQ(script_pair(thread, own, own->cq, own->cq), 0);
    EXPECT_EQ(thread->slot->reply.hca_command.command.number, 1);
    struct hca_command modify = {
        .id = HCA_CMD_QP_MODIFY,
        .number = 1,
        .qp_modify = {.mask = HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS, .attr = {.state = HCA_INIT, .port = 1}}};
    EXPECT_EQ(script_command(thread, &modify), 0);
    modify.qp_modify = (struct hca_qp_modify){.mask = HCA_QP_STATE, .attr = {.state = HCA_ERROR}};
    EXPECT_EQ(script_command(thread, &modify), 0);
}

static void page_free_after_a_doorbell(struct attach_thread *thread)
{
    const uint32_t page = script_create(thread, (struct hca_command){.id = HCA_CMD_UAR_ALLOC});
    const uint64_t doorbell = hca_doorbell_send(1, 1);
    store(thread, BACKEND_BAR_HCA_UAR, page * HCA_UAR_BYTES + HCA_UAR_SEND_DOORBELL, &doorbell, sizeof doorbell);
    (void)command_at(thread, HCA_CMD_UAR_FREE, page);
    const struct script_queues next = script_queues(thread);
    EXPECT_EQ(next.uar, page);
    pair_that_flushes(thread, &next);
    const unsigned char *entries = host_memory_at(thread->backend.memory, next.memory + 2048);
    unsigned char before[sizeof(struct hca_cqe)];
    memcpy(before, entries, sizeof before);
    later(thread);
    EXPECT_MEMEQ(before, entries, sizeof before); // nobody has posted to the new queue pair
}

TEST(InFlight, ADoorbellOfAPageThatWasFreedRingsNothing)
{
    script_run(&(struct script){.first = page_free_after_a_doorbell});
}
