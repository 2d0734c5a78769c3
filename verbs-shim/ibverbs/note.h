// What the library reports about the program's calls (verbs-shim/backend/journal.h). Private to the folder.
//
// A function that makes, changes or ends something has `NOTE(library)` at its beginning, which keeps when it began and
// why it was refused, and reports its result with ibverbs_note_end. Without a journal both are only a branch.
#pragma once

#include "verbs-shim/ibverbs/internal.h"

// For the current call. Helpers set the reason of a refusal; the first reason counts.
void ibverbs_refuse_why(struct ibverbs_library *library, enum journal_reason reason, uint64_t a, uint64_t b);

// For a helper that refuses: sets the reason and returns the code.
static inline int ibverbs_refuse(struct ibverbs_library *library, int code, enum journal_reason reason, uint64_t a,
                                 uint64_t b)
{
    if (library->journal != NULL) {
        ibverbs_refuse_why(library, reason, a, b);
    }
    return code;
}

// Returns the caller's own time and clears the reason. 0: no journal is kept.
uint64_t ibverbs_note_begin(struct ibverbs_library *library);
// Adds what the library knows and writes the record. error: a positive errno value or 0.
void ibverbs_note_end(struct ibverbs_context *context, uint64_t began_ps, enum journal_call call, int error,
                      struct journal_record *record);
// For calls without a context; record->context is 0.
void ibverbs_note_library(struct ibverbs_library *library, uint64_t began_ps, enum journal_call call, int error,
                          struct journal_record *record);
static inline bool ibverbs_notes(const struct ibverbs_library *library)
{
    return library->journal != NULL;
}
// true: posts, polls and waits are reported as well.
static inline bool ibverbs_notes_all(const struct ibverbs_library *library)
{
    return library->journal_all;
}

// --- the records of each object -------------------------------------------------------------------------------------

void ibverbs_note_object(struct ibverbs_context *context, uint64_t began_ps, enum journal_call call, int error,
                         uint32_t handle, uint32_t value);
void ibverbs_note_context(struct ibverbs_context *context, uint64_t began_ps, int error);
void ibverbs_note_mr(const struct ibverbs_mr *mr, uint64_t began_ps);
void ibverbs_note_mr_refused(struct ibverbs_pd *pd, uint64_t began_ps, int error, const struct ibverbs_region *region);
void ibverbs_note_cq(struct ibverbs_cq *cq, uint64_t began_ps, enum journal_call call, int error);
struct journal_record ibverbs_record_cq(const struct ibverbs_cq *cq);
void ibverbs_note_cq_refused(struct ibverbs_context *context, uint64_t began_ps, int error, uint32_t entries);
void ibverbs_note_qp(struct ibverbs_qp *qp, uint64_t began_ps, int error);
// For a record that is written after the object was destroyed.
struct journal_record ibverbs_record_qp(const struct ibverbs_qp *qp);
void ibverbs_note_qp_refused(struct ibverbs_context *context, uint64_t began_ps, int error,
                             const struct ibv_qp_init_attr *init);
void ibverbs_note_modify(struct ibverbs_qp *qp, uint64_t began_ps, int error, const struct ibv_qp_attr *attr, int mask,
                         enum ibv_qp_state from);

// The state of queue pairs and completion queues; arg: the library. Takes no lock.
unsigned ibverbs_describe(void *arg, struct journal_state *states, unsigned room);

// --- posts and polls ------------------------------------------------------------------------------------------------

// count: how many requests of the list were accepted; with an error, the next one was refused.
void ibverbs_note_sends(struct ibverbs_qp *qp, uint64_t began_ps, const struct ibv_send_wr *wr, unsigned count,
                        int error);
// caller: an instruction of the code that posts.
void ibverbs_note_receives(struct ibverbs_context *context, uint64_t began_ps, enum journal_call call, uint32_t queue,
                           const void *caller, const struct ibv_recv_wr *wr, unsigned count, int error);
// A queue pair of the context. NULL: it has none with this number, or no longer.
struct ibverbs_qp *ibverbs_qp_of_number(const struct ibverbs_context *context, uint32_t number);
// Reports the result of a poll, and records the last completion taken. Completions in error are always reported.
void ibverbs_note_poll(struct ibverbs_cq *cq, uint64_t began_ps, const struct ibv_wc *wc, int count);
