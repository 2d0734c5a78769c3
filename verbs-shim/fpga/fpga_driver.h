// The driver of the FPGA endpoint: descriptors by 32-bit PIO, completions by polling status words, the endpoint's own
// counter. It does what kobayashi2018's program does with mmap'ed BARs (figure 6).
//
// Functions return 0 or a negative errno. The driver refuses what a descriptor cannot hold (-EINVAL); everything else
// goes to the endpoint, whose error comes with fpga_wait (-EREMOTEIO). An id is in flight from fpga_read or fpga_write
// until fpga_wait has reported its end.
//
// Time: fpga_open pays a library call; stores and loads of the BARs cost what the backend charges. The driver never
// polls host memory: every poll of a status word is a read over PCI Express.
//
// A handle belongs to one thread.
#pragma once

#include "models/fpga/registers/fpga_regs.h"
#include "verbs-shim/backend/backend.h"

typedef struct fpga_handle fpga_handle_t;

// memory_bar, control_bar: the BARs that the platform has given to the FPGA.
// -ENODEV: the node has no FPGA. -EBUSY: descriptors of another program are in flight. -EIO: the FPGA does not answer.
int fpga_open(const struct backend *backend, enum backend_bar memory_bar, enum backend_bar control_bar,
              fpga_handle_t **handle_out);
void fpga_close(fpga_handle_t *handle);

const struct backend *fpga_backend(const fpga_handle_t *handle);
uint64_t fpga_memory_bytes(const fpga_handle_t *handle);
uint64_t fpga_memory_bus_address(const fpga_handle_t *handle, uint64_t offset); // for other devices
// Accesses of the processor to the on-chip memory. -EINVAL: beyond its end.
int fpga_store(fpga_handle_t *handle, uint64_t offset, const void *data, size_t bytes);
int fpga_load(fpga_handle_t *handle, uint64_t offset, void *data, size_t bytes);

// From a bus address to the on-chip memory, and back. bytes: a multiple of 4, at most FPGA_BYTES_MAX.
// -EBUSY: the id is in flight in this direction. -EAGAIN: FPGA_DESCRIPTORS are in flight.
int fpga_read(fpga_handle_t *handle, uint64_t source, uint64_t offset, uint32_t bytes, uint8_t id);
int fpga_write(fpga_handle_t *handle, uint64_t offset, uint64_t destination, uint32_t bytes, uint8_t id);

// Polls until the descriptor has ended. timeout_ns 0: forever. error_out may be NULL. -ENOENT: no such id is in flight;
// -ETIMEDOUT: it stays in flight; -EREMOTEIO: ended with *error_out; -EIO: the endpoint does not answer.
int fpga_wait(fpga_handle_t *handle, enum fpga_direction direction, uint8_t id, uint64_t timeout_ns,
              enum fpga_error *error_out);
// For example "a read was answered Unsupported Request".
const char *fpga_error_name(enum fpga_error error);
// The time that the endpoint measured for the last descriptor of that id, from its controller to the completion signal.
int fpga_counter(fpga_handle_t *handle, enum fpga_direction direction, uint8_t id, uint64_t *ns_out);
