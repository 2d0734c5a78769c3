// The FPGA endpoint's control BAR (BAR 2), as the endpoint and its driver see it: offsets, the words of a descriptor,
// the status word. 32-bit accesses only.
//
// Two controllers of the same shape lie FPGA_CONTROLLER_STRIDE apart: reads move data from a PCI Express address to the
// on-chip memory, writes from the on-chip memory to a PCI Express address.
//
// Source: kobayashi2018, table 1 (descriptor), figure 6 (five writes to one address), figure 7 (the module; its
// comparison of the completion with {1, id}). Offsets, the error field, BUSY, LEVEL and WORDS are defined by this
// model; the paper has none.
#pragma once

enum fpga_direction { FPGA_READ, FPGA_WRITE, FPGA_DIRECTIONS };

#define FPGA_CONTROL_BYTES     0x4000u
#define FPGA_CONTROLLER_STRIDE 0x2000u

// Offsets in a controller's half.
#define FPGA_DESCRIPTOR 0x0000u // write only: five writes, low word first, make a descriptor
#define FPGA_WORDS      0x0004u // words of a descriptor that have arrived; a write discards them
#define FPGA_LEVEL      0x0008u // read only: accepted descriptors whose completion has not been signalled
#define FPGA_STATUS     0x0800u // read only: 256 words, by id
#define FPGA_COUNT      0x1000u // read only: 256 words, by id: cycles from descriptor to completion signal

#define FPGA_IDS              256u
#define FPGA_DESCRIPTORS      128u // maximum that each controller holds
#define FPGA_DESCRIPTOR_WORDS 5u
#define FPGA_LENGTH_DWORDS    0x3ffffu // bits 145:128
#define FPGA_BYTES_MAX        0xffffcu // 1 MiB - 4 B: 1 MiB itself would be a length of 0
#define FPGA_ID_SHIFT         18u      // bits 153:146, in the fifth word
#define FPGA_CYCLE_NS         4u       // Gen3 x8

// A status word: id in bits 7:0.
#define FPGA_STATUS_DONE        (1u << 8) // the completion was signalled
#define FPGA_STATUS_BUSY        (1u << 9) // accepted and not yet signalled
#define FPGA_STATUS_ERROR_SHIFT 12u
#define FPGA_STATUS_ERROR_MASK  0xf000u

enum fpga_error {
    FPGA_OK,
    FPGA_ERROR_LENGTH,     // length 0
    FPGA_ERROR_MISALIGNED, // an address is no multiple of 4
    FPGA_ERROR_RANGE,      // beyond the on-chip memory, or wraps at the end of the address space
    FPGA_ERROR_UR,         // a read was answered Unsupported Request
    FPGA_ERROR_CA,         // a read was answered Completer Abort
    FPGA_ERROR_TIMEOUT,    // a read was not answered in time
    FPGA_ERROR_QUEUE_FULL, // refused: the controller is full
    FPGA_ERRORS
};
