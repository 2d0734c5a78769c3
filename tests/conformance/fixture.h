// Sets up programs on two to four nodes that use only libibverbs, for the rules that every device must keep. The device
// is tca0 (TCA Verbs on twin boards in a line), ibsim0 (the HCA model; two nodes on a cable, more on a switch), or the
// device in memory, which is the reference for the other two.
//
// A rule is written once and becomes a test for each device: RULE for all three, TIMED_RULE for those on which requests
// take time and use a fabric that can fail.
#pragma once

#include "tests/shim/test.h"
#include "verbs-shim/ibverbs/device.h"

#define NS 1000ull
#define US 1000000ull

#define FIXTURE_NODES_MAX 4
#define FIXTURE_BYTES     (1u << 20) // of each side's region
#define FIXTURE_DEPTH     16
#define FIXTURE_QKEY      0x11111111u
#define FIXTURE_GUARD     4096u // bytes around the region that must not change
#define FIXTURE_ALL                                                                                                    \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum device { IN_MEMORY, ON_TCA0, ON_IBSIM0 };

#define RULE_TEST(suite_, name_, where_, device_)                                                                      \
    TEST(suite_##where_, name_)                                                                                        \
    {                                                                                                                  \
        suite_##_##name_(device_);                                                                                     \
    }
#define TIMED_RULE(suite_, name_)                                                                                      \
    static void suite_##_##name_(enum device device);                                                                  \
    RULE_TEST(suite_, name_, OnTca0, ON_TCA0)                                                                          \
    RULE_TEST(suite_, name_, OnIbsim0, ON_IBSIM0)                                                                      \
    static void suite_##_##name_(enum device device)
#define RULE(suite_, name_)                                                                                            \
    static void suite_##_##name_(enum device device);                                                                  \
    RULE_TEST(suite_, name_, InMemory, IN_MEMORY)                                                                      \
    RULE_TEST(suite_, name_, OnTca0, ON_TCA0)                                                                          \
    RULE_TEST(suite_, name_, OnIbsim0, ON_IBSIM0)                                                                      \
    static void suite_##_##name_(enum device device)

struct fixture;
struct side;
struct machine;
typedef void (*program_fn)(struct side *side);

struct side {
    struct fixture *fixture;
    unsigned index;
    program_fn program;
    struct side *peer; // with two nodes the other one; with more the next one
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq, *idle_cq; // idle_cq: never gets a completion
    struct ibv_srq *srq;         // NULL: no shared queue
    struct ibv_ah *ah;           // to the peer; datagrams only
    struct ibv_qp *qp;           // to the peer, in RTS when the program runs
    struct ibv_qp *qps[FIXTURE_NODES_MAX];
    struct ibv_mr *mr; // all rights on the memory
    uint32_t rkey;     // of the last registration of the memory, which may be gone
    uint8_t *memory;   // FIXTURE_BYTES; side 0's holds a pattern, the others' zeros
    void *pages;       // pageable memory
    uint16_t lid;
    struct ibv_qp_attr attr; // of later connected queue pairs; initially those of the fixture
    uint64_t value[8];       // shared by programs and the test
};

struct fixture {
    enum device device;
    enum ibv_qp_type type; // of all queue pairs: RC, or UD with FIXTURE_QKEY
    struct machine *machine;
    unsigned nodes;
    struct side sides[FIXTURE_NODES_MAX];
    unsigned waiting, round; // for fixture_barrier
    bool gone;               // a program has left: no barrier at the end
    bool all_qps;            // queue pairs between all nodes, and of each node with itself
    bool shared_receives;    // for all but side 0
    bool unconnected;        // queue pairs stay in RESET
    bool abandon;            // programs end without releasing anything
    bool pageable;           // regions are memory that the device did not know before, if it supports this
    uint64_t harass_ps;      // 0: no. Otherwise the average time between damaged or lost TLPs
    unsigned loss_every;     // 0: no. Otherwise one of this many InfiniBand packets is lost
    uint64_t seed;           // for harass_ps
    uint64_t cut_ps;         // 0: no. Otherwise the run ends at this time
    unsigned cq_entries;
    bool all_signaled;
    struct ibv_qp_cap cap;
    struct ibv_qp_attr attr; // of all queue pairs; dest_qp_num and the path are filled in
};

// Options may be changed before fixture_run.
struct fixture *fixture_new(enum device device);
// Side 0 runs near, the others far; NULL: it does only what its library needs. Then everything is closed, and no object
// may be left.
void fixture_run(struct fixture *fixture, program_fn near, program_fn far);
// Called after the checks of memory: checks the guards, and that no packet is left anywhere.
void fixture_end(struct fixture *fixture);
// fixture_new, fixture_run and fixture_end with two nodes.
void fixture_play(enum device device, program_fn near, program_fn far);

// --- for programs ----------------------------------------------------------------------------------------------------

uint64_t fixture_now_ps(const struct side *side);
// Passes simulated time; the library makes progress.
void fixture_sleep(struct side *side, uint64_t ps);
// A barrier of all programs.
void fixture_barrier(struct side *side);

struct ibv_qp *fixture_qp(struct side *side);
// The memory with all rights; side->mr may have been deregistered, which leaves side->rkey as it was.
void fixture_register(struct side *side);
// The transition with every attribute that it needs, from side->attr; returns the device's result.
int fixture_modify(struct side *side, struct ibv_qp *qp, enum ibv_qp_state to, const struct side *peer,
                   uint32_t number);
void fixture_connect(struct side *side, struct ibv_qp *qp, const struct side *peer, uint32_t number); // RESET to RTS
enum ibv_qp_state fixture_state(struct ibv_qp *qp);

struct ibv_sge fixture_sge(const struct side *side, uint32_t offset, uint32_t bytes);
// A signalled request to remote_offset of the peer's memory.
struct ibv_send_wr fixture_wr(const struct side *side, uint64_t id, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
                              uint32_t remote_offset);
int fixture_post(struct side *side, struct ibv_send_wr *wr);
// One request of one segment, which the device must accept.
void fixture_send(struct side *side, uint64_t id, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t bytes,
                  uint32_t remote_offset);
int fixture_receive(struct side *side, uint64_t id, uint32_t offset, uint32_t bytes);
// Waits for a completion; false: none came within the timeout.
bool fixture_await(struct side *side, uint64_t timeout_ps);
struct ibv_wc fixture_completion(struct side *side); // the next; fails the test after a second
struct ibv_wc fixture_expect(struct side *side, uint64_t id, enum ibv_wc_status status);
void fixture_expect_none(struct side *side, uint64_t during_ps);
// Expects that this is the next asynchronous event.
void fixture_expect_event(struct side *side, enum ibv_event_type type, const void *element);
void fixture_expect_no_event(struct side *side);

static inline uint64_t *fixture_word(const struct side *side, uint32_t offset)
{
    return (uint64_t *)(void *)(side->memory + offset);
}
// side's memory is zero except [at, at + bytes), which holds the bytes of `from` at `source`.
void fixture_expect_only(const struct side *side, uint32_t at, const struct side *from, uint32_t source,
                         uint32_t bytes);
void fixture_fill(uint8_t *data, uint32_t bytes, uint32_t seed);
bool fixture_is_filled(const uint8_t *data, uint32_t bytes, uint32_t seed);
