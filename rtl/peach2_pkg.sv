// Types shared by the modules of PEACH2: TLP headers, packet beats, ports, and the DMAC's vocabulary.
//
// A packet is a stream of 128-bit beats. Beat 0 is the header (four DWs; completions leave the fourth unused). Payload
// starts in beat 1 and lies on the lanes of its address: the DW for address A travels on lane A[3:2], its byte A on
// bits 8*A[1:0] +: 8; for a completion, A is lower_address. `empty` counts the unused DWs behind the last one of the
// final beat and is 0 in a packet without payload. Lanes outside the payload hold anything. Because source and
// destination of a DMA agree in their low four address bits, no data path in the chip needs a shifter.
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

    // Where packets go. N E W S are links; LOCAL the register file and internal memory; DMAC takes completions;
    // DISCARD counts and swallows what no route takes.
    localparam int unsigned DEST_N = 0;
    localparam int unsigned DEST_E = 1;
    localparam int unsigned DEST_W = 2;
    localparam int unsigned DEST_S = 3;
    localparam int unsigned DEST_LOCAL = 4;
    localparam int unsigned DEST_DMAC = 5;
    localparam int unsigned DEST_DISCARD = 6;
    localparam int unsigned DESTS = 7;

    // Where packets come from: the four links, LOCAL (completions of register reads), and the DMAC's two streams.
    localparam int unsigned SOURCE_LOCAL = 4;
    localparam int unsigned SOURCE_READ = 5;
    localparam int unsigned SOURCE_WRITE = 6;
    localparam int unsigned SOURCES = 7;

    // The shared window: 512 GB, 16 nodes of 32 GB, four blocks of 8 GB each (host memory, GPU0, GPU1, board).
    localparam int unsigned WINDOW_BITS = 39;
    localparam int unsigned NODE_BITS = 35;
    localparam int unsigned BLOCK_BITS = 33;
    // Entries of the route table: N E W S, this board, and E W S once more. Compared in units of 4 KB.
    localparam int unsigned ROUTES = 8;
    localparam int unsigned ROUTE_LSB = 12;
    localparam int unsigned ROUTE_BITS = WINDOW_BITS - ROUTE_LSB;

    // Errors of a DMA, as in STATUS.ERROR and in the completion status word.
    typedef enum logic [3:0] {
        DMA_OK          = 4'd0,
        DMA_MISALIGNED  = 4'd1,  // an address or the length is no multiple of 4, or the low 4 address bits differ
        DMA_LENGTH      = 4'd2,  // length 0, or more than 24 bits
        DMA_UNROUTABLE  = 4'd3,  // no route takes all of the destination, or the source lies in another node
        DMA_READ_UR     = 4'd4,  // a read was answered Unsupported Request
        DMA_READ_ABORT  = 4'd5,  // a read was answered Completer Abort
        DMA_READ_LOST   = 4'd6,  // a read was not answered in time
        DMA_CHAIN_LOOP  = 4'd7,  // the chain comes back to a descriptor it had
        DMA_DESCRIPTOR  = 4'd8,  // a descriptor address is no multiple of 32 or outside the board's memory
        DMA_INVALID     = 4'd9   // no such mode, or reserved bits of a descriptor are set
    } dma_error_e;

    typedef enum logic [1:0] {
        MODE_REGISTER   = 2'd0,
        MODE_CHAIN_HOST = 2'd1,
        MODE_CHAIN_BOARD = 2'd2
    } dma_mode_e;

    // A descriptor, 32 bytes, DW 0 in bits 31:0 (docs/decisions/0005-whole-board.md).
    typedef struct packed {
        logic [19:0] destination_pitch; // DWs
        logic [3:0]  source_pitch_hi;
        logic [39:0] next;              // bus address, or byte offset in the board's memory
        logic [15:0] source_pitch_lo;   // DWs
        logic [15:0] width;             // DWs in a row
        logic        last;              // end of the chain
        logic        stride;            // rows of width, pitches apart
        logic        irq;               // when its last write is issued
        logic        fence;             // not before every earlier write of the channel is issued
        logic [3:0]  reserved;          // must be 0
        logic [23:0] length;            // bytes
        logic [63:0] destination;
        logic [63:0] source;
    } descriptor_t;
    localparam int unsigned DESCRIPTOR_BITS = 256;

endpackage
