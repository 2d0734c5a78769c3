// Output side of a link port: packets of all sources in turn, the N port's address translation, and an output buffer.
//
// Each packet stays whole. A packet that enters a ring here needs room for two in the hard IP, one that stays on its
// ring for one: the bubble rule (bubble flow control) of docs/decisions/0005-whole-board.md. When a packet that enters
// has its turn and there is no room, packets of the ring are held so that the hard IP can free some. A hold has a time
// limit, at least one packet of the ring goes before the next hold, and many go after a hold without effect.
//
// With two entries in the buffer, ready_o comes from a register and a beat still moves every cycle. At N, a request to
// an address of the shared window leaves with the offset of its block subtracted.
module peach2_egress #(
    // The port translates addresses of the window.
    parameter bit NORTH = 1'b0,
    // Sources whose packets are on this port's ring already; all sources if there is no ring.
    parameter logic [peach2_pkg::SOURCES-1:0] ON_RING = '1
) (
    input  logic                           clk_i,
    input  logic                           rst_i,
    input  logic [peach2_pkg::SOURCES-1:0] request_i,     // source k has a beat for this port
    input  peach2_pkg::beat_t              beat_n_i,
    input  peach2_pkg::beat_t              beat_e_i,
    input  peach2_pkg::beat_t              beat_w_i,
    input  peach2_pkg::beat_t              beat_s_i,
    input  peach2_pkg::beat_t              beat_local_i,
    input  peach2_pkg::beat_t              beat_read_i,
    input  peach2_pkg::beat_t              beat_write_i,
    output logic [peach2_pkg::SOURCES-1:0] ready_o,       // source k's beat is taken
    input  logic [63:peach2_regs_pkg::WINDOW_BITS]                    window_base_i,
    input  logic [peach2_regs_pkg::OFFSET_COUNT*peach2_regs_pkg::OFFSET_RW_BITS-1:0] offsets_i,
    output logic                           tx_valid_o,
    output peach2_pkg::beat_t              tx_beat_o,
    input  logic                           tx_ready_i,
    input  logic                           tx_room_i,     // the hard IP has room for two packets
    output logic [31:0]                    tlps_o,        // counter: packets that left
    output logic [31:0]                    holds_o,       // counter: holds that ended
    output logic                           idle_o,
    output logic                           still_o        // no beat moves inside
);
    logic [peach2_pkg::SOURCES-1:0] grant;
    logic [peach2_pkg::SOURCES-1:0] allowed; // may move now
    logic                           inside_q; // between a header and its last beat
    logic                           lacks;    // the packet that has its turn waits for room
    logic                           holds;    // and a packet of the ring is held for it
    logic                           space, push, pop;
    peach2_pkg::beat_t              chosen, translated;
    // The older beat is in front_q.
    peach2_pkg::beat_t              front_q, back_q;
    logic                           front_valid_q, back_valid_q;
    logic [31:0]                    tlps_q, holds_q;

    localparam int unsigned LEVELS = peach2_regs_pkg::RING_LEVELS;
    localparam int unsigned LEVEL_BITS = $clog2(LEVELS);
    localparam int unsigned HOLD_BITS = $clog2(peach2_regs_pkg::RING_HOLD_CYCLES << (LEVELS - 1)) + 1;
    localparam int unsigned REST_BITS = $clog2(peach2_regs_pkg::RING_REST_TLPS << (LEVELS - 1)) + 1;
    localparam logic [HOLD_BITS-1:0] HOLD = peach2_regs_pkg::RING_HOLD_CYCLES[HOLD_BITS-1:0];
    localparam logic [REST_BITS-1:0] REST = peach2_regs_pkg::RING_REST_TLPS[REST_BITS-1:0];
    logic [LEVEL_BITS-1:0]          level_d, level_q;
    logic [HOLD_BITS-1:0]           full;           // the longest hold of the level
    logic [HOLD_BITS-1:0]           hold_d, hold_q; // how long packets of the ring may still be held
    logic [REST_BITS-1:0]           rest_d, rest_q; // how many packets of the ring go before the next hold
    logic                           passes;         // the packet is on the ring

    assign space = !back_valid_q;
    assign pop = front_valid_q && tx_ready_i;

    always_comb begin
        allowed = '0;
        if (request_i != '0) begin
            // Once begun, a packet continues.
            allowed = inside_q || tx_room_i || hold_q != '0 ? request_i : request_i & ON_RING;
        end
    end

    always_comb begin
        lacks = 1'b0;
        push = 1'b0;
        holds = 1'b0;
        ready_o = '0;
        if (grant != '0) begin
            lacks = !inside_q && !tx_room_i && (grant & ~ON_RING) != '0;
            push = space && !lacks;
            // While the hard IP takes nothing from this port, no packet is held.
            holds = lacks && !front_valid_q && (request_i & ON_RING) != '0;
            if (push) begin
                ready_o = grant;
            end
        end
    end

    // Each packet decides the next hold.
    always_comb begin
        level_d = level_q;
        rest_d = rest_q;
        hold_d = hold_q;
        full = '0;
        passes = 1'b0;
        if (ON_RING != '1 && grant != '0) begin
            passes = (grant & ON_RING) != '0;
            if (push && !inside_q) begin
                full = HOLD << level_q;
                if (passes && rest_q != '0) begin
                    rest_d = rest_q - 1'b1;
                end else if (passes && hold_q == '0) begin // without effect: the link is slower than that, or stalls
                    rest_d = REST << level_q;
                    level_d = {{(32 - LEVEL_BITS){1'b0}}, level_q} == LEVELS - 1 ? level_q : level_q + 1'b1;
                end else if (!passes && hold_q != full && hold_q >= full - (full >> 2) && level_q != '0) begin
                    level_d = level_q - 1'b1; // a quarter of it was enough
                end
                hold_d = rest_d != '0 ? '0 : HOLD << level_d;
            end else if (holds) begin
                hold_d = hold_q - 1'b1;
            end
        end
    end

    peach2_arbiter #(.COUNT(peach2_pkg::SOURCES)) i_arbiter (
        .clk_i, .rst_i, .request_i(allowed), .taken_i(push), .last_i(chosen.eop), .grant_o(grant)
    );

    // The order is that of DEST_* and SOURCE_*.
    always_comb begin
        chosen = '0;
        if (push) begin
            case (1'b1)
                grant[peach2_pkg::DEST_N]: chosen = beat_n_i;
                grant[peach2_pkg::DEST_E]: chosen = beat_e_i;
                grant[peach2_pkg::DEST_W]: chosen = beat_w_i;
                grant[peach2_pkg::DEST_S]: chosen = beat_s_i;
                grant[peach2_pkg::SOURCE_LOCAL]: chosen = beat_local_i;
                grant[peach2_pkg::SOURCE_READ]: chosen = beat_read_i;
                default: chosen = beat_write_i;
            endcase
        end
    end

    peach2_pkg::request_t request, moved;
    logic [63:0]          address, target;
    logic [1:0]           block;
    peach2_regs_pkg::offset_rw_t offset;

    assign request = chosen.data;
    assign address = {request.address_hi, request.address_lo, 2'b00};
    assign block = address[peach2_regs_pkg::BLOCK_BITS +: 2];

    always_comb begin
        translated = chosen;
        offset = '0;
        target = '0;
        moved = request;
        if (NORTH && push && chosen.sop && request.dw0.typ == peach2_pkg::TYPE_MEMORY &&
            address[63:peach2_regs_pkg::WINDOW_BITS] == window_base_i) begin
            offset = offsets_i[peach2_regs_pkg::OFFSET_RW_BITS*block +: peach2_regs_pkg::OFFSET_RW_BITS];
            target = address - {offset.subtract.pages, 12'd0};
            moved.address_hi = target[63:32];
            moved.address_lo = target[31:2];
            translated.data = moved;
        end
    end

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            front_valid_q <= 1'b0;
            back_valid_q <= 1'b0;
            tlps_q <= '0;
            inside_q <= 1'b0;
            level_q <= '0;
            hold_q <= HOLD;
            rest_q <= '0;
            holds_q <= '0;
        end else begin
            if (push) begin
                inside_q <= !chosen.eop;
            end
            if (ON_RING != '1 && grant != '0) begin
                if (push && !inside_q && rest_q == '0 && hold_q != full) begin
                    holds_q <= holds_q + 32'd1;
                end
                level_q <= level_d;
                hold_q <= hold_d;
                rest_q <= rest_d;
            end
            if (push || front_valid_q) begin
                front_valid_q <= push || back_valid_q || !pop;
                back_valid_q <= !pop && (back_valid_q || (front_valid_q && push));
                if (pop && front_q.eop) begin
                    tlps_q <= tlps_q + 32'd1;
                end
            end
        end
    end

    always_ff @(posedge clk_i) begin
        if (push || front_valid_q) begin
            if (pop && back_valid_q) begin
                front_q <= back_q;
            end else if (push && (pop || !front_valid_q)) begin
                front_q <= translated;
            end
            if (push && front_valid_q && !pop) begin
                back_q <= translated;
            end
        end
    end

    assign tx_valid_o = front_valid_q;
    assign tx_beat_o = front_q;
    assign tlps_o = tlps_q;
    assign holds_o = holds_q;
    assign idle_o = !front_valid_q;
    assign still_o = !push && !holds;

`ifndef SYNTHESIS
    buffer_fills_from_the_front: assert property (@(posedge clk_i) disable iff (rst_i)
        back_valid_q |-> front_valid_q);
    buffer_never_overflows: assert property (@(posedge clk_i) disable iff (rst_i)
        push |-> !back_valid_q);
    every_hold_ends: assert property (@(posedge clk_i) disable iff (rst_i)
        holds |-> hold_q != '0);
    no_packet_enters_a_ring_without_room: assert property (@(posedge clk_i) disable iff (rst_i)
        push && chosen.sop && !tx_room_i |-> (grant & ~ON_RING) == '0);
    beat_is_stable_until_taken: assert property (@(posedge clk_i) disable iff (rst_i)
        tx_valid_o && !tx_ready_i |=> tx_valid_o && $stable(tx_beat_o));
`endif

    logic unused_ok;
    assign unused_ok = &{1'b0, window_base_i, offsets_i, target[1:0]};
endmodule
