// Remote read by proxy: boards only write, so a node that wants to read leaves a request with the owner of the memory
// and interrupts the owner; the owner's driver writes the data back.
//
// The owner's memory holds a ring of requests for each node that may ask. A request and the RAISE after it take the
// same path, so the request is there when the interrupt comes. The service moves the data in register mode; the board's
// completion status follows the data into a word of the requester.
//
// Not modelled: access rights. The service reads any address that the request names, as the machine's does.
//
// Functions return 0 or a negative errno. Times: a request costs its stores and a fence; the service pays the
// interrupt.
#pragma once

#include "verbs-shim/peach2/peach2_driver.h"

#define PEACH2_PROXY_REQUESTS 8u // outstanding requests of one requester

// --- the owner -----------------------------------------------------------------------------------------------------

typedef struct peach2_proxy peach2_proxy_t;

// What requesters need to reach the service; plain bytes.
struct peach2_proxy_address {
    uint64_t ring; // bus address
    uint32_t node;
    uint32_t reserved;
};

// Uses the handle's interrupts and the channel exclusively: pass a handle of its own (peach2_open_shared).
int peach2_proxy_create(peach2_handle_t *handle, unsigned channel, peach2_proxy_t **proxy_out);
void peach2_proxy_destroy(peach2_proxy_t *proxy);
struct peach2_proxy_address peach2_proxy_address(const peach2_proxy_t *proxy);
// The service's thread: answers requests until peach2_proxy_stop is called. -EIO: the board does not answer.
int peach2_proxy_serve(peach2_proxy_t *proxy);
// Ends the service of a node; may be called on any node. Waiting requests are answered first.
int peach2_proxy_stop(peach2_handle_t *handle, uint32_t node);

// --- the requester -------------------------------------------------------------------------------------------------

typedef struct peach2_reader peach2_reader_t;

int peach2_reader_create(peach2_handle_t *handle, const struct peach2_proxy_address *address,
                         peach2_reader_t **reader_out);
// Outstanding requests are forgotten; their data still arrives. peach2_close calls it for the readers that still exist.
void peach2_reader_destroy(peach2_reader_t *reader);
// Asks for bytes from bus address `source` of the owner, to bus address `destination` of the own node; the limits are
// those of a DMA. -EAGAIN: PEACH2_PROXY_REQUESTS are outstanding.
int peach2_reader_start(peach2_reader_t *reader, uint64_t source, uint64_t destination, uint32_t bytes);
// Waits for the data of the oldest outstanding request. -EREMOTEIO: the owner's board refused or could not finish it,
// see *error_out. -EINVAL: none is outstanding. -ETIMEDOUT: it has not come within timeout_ns (0:
// PEACH2_DMA_TIMEOUT_NS), for example because a cable was pulled; it may still come, and one may wait again.
int peach2_reader_wait(peach2_reader_t *reader, uint64_t timeout_ns, unsigned *error_out);
