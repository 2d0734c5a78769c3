// Types shared by the modules of PEACH2: TLP headers, packet beats, ports and the shared window.
//
// A packet is a stream of 128-bit beats. Beat 0 is the header (four DWs; completions do not use the fourth). Payload
// starts in beat 1 and lies on the lanes of its address: the DW for address A travels on lane A[3:2], its byte A on
// bits 8*A[1:0] +: 8; for a completion, A is lower_address. `empty` counts the unused DWs after the last one of the
// final beat and is 0 in a packet without payload. Lanes outside the payload have undefined contents. Because source
// and destination of a DMA agree in their low four address bits, no data path in the chip needs a shifter.
//
// Source: header layouts are those of the PCI Express Base Specification, clause 2.2, DW 0 in bits 31:0, with the bytes
// of each DW in big-endian order as printed there (byte 0 in bits 31:24).
package peach2_pkg;

    localparam int unsigned BEAT_BITS = 128;

    // fmt and type of the TLPs that the chip knows
    localparam logic [2:0] FMT_3DW = 3'b000;
    localparam logic [2:0] FMT_4DW = 3'b001;
    localparam logic [2:0] FMT_3DW_DATA = 3'b010;
    localparam logic [2:0] FMT_4DW_DATA = 3'b011;
    localparam logic [4:0] TYPE_MEMORY = 5'b00000;
    localparam logic [4:0] TYPE_COMPLETION = 5'b01010;

    localparam logic [2:0] CPL_SUCCESS = 3'b000;
    localparam logic [2:0] CPL_UNSUPPORTED = 3'b001;
    localparam logic [2:0] CPL_ABORT = 3'b100;

    typedef struct packed {
        logic [2:0] fmt;
        logic [4:0] typ;
        logic [7:0] traffic;   // T9, TC, T8, attr[2], LN, TH
        logic [5:0] flags;     // TD, EP, attr[1:0], AT
        logic [9:0] length;    // DWs, 0 means 1024
    } dw0_t;

    typedef struct packed {
        logic [29:0] address_lo;
        logic [1:0]  hint;
        logic [31:0] address_hi;
        logic [15:0] requester;
        logic [7:0]  tag;
        logic [3:0]  last_be;
        logic [3:0]  first_be;
        dw0_t        dw0;
    } request_t;

    typedef struct packed {
        logic [31:0] unused;
        logic [15:0] requester;
        logic [7:0]  tag;
        logic        reserved;
        logic [6:0]  lower_address;
        logic [15:0] completer;
        logic [2:0]  status;
        logic        modified;
        logic [11:0] byte_count; // 0 means 4096
        dw0_t        dw0;
    } completion_t;

    // A beat as it moves inside the chip.
    typedef struct packed {
        logic         sop;
        logic         eop;
        logic [1:0]   empty;
        logic [127:0] data;
    } beat_t;
    localparam int unsigned BEAT_T_BITS = 132;

    // Destinations of packets. N E W S are links; LOCAL is the register file and internal memory; DMAC takes
    // completions; DISCARD counts and drops packets without a route.
    localparam int unsigned DEST_N = 0;
    localparam int unsigned DEST_E = 1;
    localparam int unsigned DEST_W = 2;
    localparam int unsigned DEST_S = 3;
    localparam int unsigned DEST_LOCAL = 4;
    localparam int unsigned DEST_DMAC = 5;
    localparam int unsigned DEST_DISCARD = 6;
    localparam int unsigned DESTS = 7;

    // Sources of packets: the four links, LOCAL (completions of register reads), and the DMAC's two streams.
    localparam int unsigned SOURCE_LOCAL = 4;
    localparam int unsigned SOURCE_READ = 5;
    localparam int unsigned SOURCE_WRITE = 6;
    localparam int unsigned SOURCES = 7;

endpackage
