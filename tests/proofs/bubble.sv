// The bubble rule (docs/decisions/0005-whole-board.md): a ring of three nodes never fills up so far that no packet on
// it can advance; and the holds that let other packets in are short and rare enough.
//
// bubble_ring: of a node, the output towards the ring is the RTL's. The rest is abstracted to what may wait for it:
//
//   receive buffer --W--+                     +-- hard IP's transmit buffer -- link to the next node's receive buffer
//   6 other sources ----+-- peach2_egress ----+
//
// Packets have any length of two beats or more. A buffer holds a number of whole packets, whatever their lengths: the
// transmit buffer one more than the smallest tx_buffer_tlps (5), because one packet waits outside while it is full. The
// hard IP reports room as that of the models does (PCIE_ROOM_TLPS): while four of the 5 are free. The solver chooses
// who sends when, where a packet leaves the ring, and all delays. docs/proofs.md says what this leaves out.
//
// prove bubble_ring by induction 1
// prove bubble_hold by induction 1
module bubble_node #(
    parameter int unsigned TRANSMIT = 6, // packets that the transmit buffer holds
    parameter int unsigned RECEIVE = 2,  // packets that the receive buffer holds
    parameter int unsigned COUNT_BITS = 5
) (
    input  logic                 clk_i,
    input  logic                 rst_i,
    // the solver's choices
    input  logic [6:0]           request_i,   // sources that offer a beat, if they have one
    input  logic [1:0]           last_i,      // it is the last of its packet; of one on the ring, of another
    input  logic                 stays_i,     // the packet that comes to the receive buffer's head stays on the ring
    input  logic                 leaves_i,    // the one that does not stay leaves now
    input  logic                 takes_i,     // the transmit buffer takes a beat
    // the ring
    input  logic                 arrives_i,   // a packet comes into the receive buffer
    input  logic                 sent_i,      // a packet leaves the transmit buffer
    output logic                 has_place_o, // in the receive buffer
    output logic                 has_packet_o, // in the transmit buffer
    output logic [COUNT_BITS-1:0] packets_o,   // of the ring, in this node: those that came less those that went
    output logic                 can_advance_o // a packet of the ring moves, or nothing keeps it from moving
);
    localparam int unsigned W = peach2_pkg::DEST_W;

    logic [COUNT_BITS-1:0] received_q; // packets in the receive buffer, until their last beat is in the output
    logic [COUNT_BITS-1:0] sending_q;  // whole packets in the transmit buffer
    logic                 part_q;     // and the first beats of one more
    logic                 stays_q;
    logic                 from_ring_q, from_other_q; // a packet is between its first and its last beat
    logic [6:0]           request, ready;
    logic                 ring_last, other_last, room;
    peach2_pkg::beat_t    ring_beat, other_beat, tx_beat;
    logic                 tx_valid, tx_ready, first_fits;
    (* hierconn *) wire         \dut.push ;
    (* hierconn *) wire         \dut.holds ;
    (* hierconn *) wire         \dut.inside_q ;
    (* hierconn *) wire         \dut.front_valid_q ;
    (* hierconn *) wire         \dut.back_valid_q ;
    (* hierconn *) wire [131:0] \dut.front_q ;
    (* hierconn *) wire [131:0] \dut.back_q ;
    (* hierconn *) wire         \dut.i_arbiter.locked_q ;
    (* hierconn *) wire [6:0]   \dut.i_arbiter.owner_q ;

    // --- what is offered to the output; no packet has only one beat ---
    always_comb begin
        request = request_i;
        request[W] = request_i[W] && received_q != '0 && stays_q;
        ring_last = last_i[0] && from_ring_q;
        other_last = last_i[1] && from_other_q;
        ring_beat = '0;
        ring_beat.sop = !from_ring_q;
        ring_beat.eop = ring_last;
        other_beat = '0;
        other_beat.sop = !from_other_q;
        other_beat.eop = other_last;
    end

    // --- the hard IP: a packet that has begun goes on, the next one begins if there is a place for it ---
    assign room = 32'(sending_q) + 5 <= TRANSMIT;
    assign first_fits = !tx_beat.sop || 32'(sending_q) < TRANSMIT;
    assign tx_ready = takes_i && first_fits;

    peach2_egress #(.ON_RING(7'd1 << W)) dut (
        .clk_i, .rst_i, .request_i(request), .beat_n_i(other_beat), .beat_e_i(other_beat), .beat_w_i(ring_beat),
        .beat_s_i(other_beat), .beat_local_i(other_beat), .beat_read_i(other_beat), .beat_write_i(other_beat),
        .ready_o(ready), .window_base_i('0), .offsets_i('0), .tx_valid_o(tx_valid), .tx_beat_o(tx_beat),
        .tx_ready_i(tx_ready), .tx_room_i(room), .tlps_o(), .holds_o(), .idle_o(), .still_o());

    logic pushes_ring, pushes_other, pops;
    logic enters, passed, left; // a packet begins to enter the ring; has gone from buffer to output; leaves the ring
    assign pushes_ring = ready[W];
    assign pushes_other = (ready & ~(7'd1 << W)) != '0;
    assign pops = tx_valid && tx_ready;
    assign enters = pushes_other && !from_other_q;
    assign left = leaves_i && received_q != '0 && !stays_q;
    assign passed = pushes_ring && ring_last;
    assign has_place_o = 32'(received_q) < RECEIVE;
    assign has_packet_o = sending_q != '0;

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            received_q <= '0;
            sending_q <= '0;
            part_q <= 1'b0;
            from_ring_q <= 1'b0;
            from_other_q <= 1'b0;
        end else begin
            received_q <= received_q + COUNT_BITS'(arrives_i) - COUNT_BITS'(passed || left);
            sending_q <= sending_q + COUNT_BITS'(pops && tx_beat.eop) - COUNT_BITS'(sent_i);
            if (pops) begin
                part_q <= !tx_beat.eop;
            end
            if (pushes_ring) begin
                from_ring_q <= !ring_last;
            end
            if (pushes_other) begin
                from_other_q <= !other_last;
            end
        end
        if (received_q == '0 || passed || left) begin
            stays_q <= stays_i;
        end
    end

    // --- the packets of the ring that are here ---
    logic front_first, front_last, back_first, back_last;
    logic whole; // a packet is in the output's buffer and nowhere else
    logic first; // the first beat of one that continues is still there
    logic [COUNT_BITS-1:0] packets_q, found;
    assign front_first = \dut.front_q [131];
    assign front_last = \dut.front_q [130];
    assign back_first = \dut.back_q [131];
    assign back_last = \dut.back_q [130];
    assign whole = \dut.front_valid_q && \dut.back_valid_q && front_first && back_last;
    assign first = \dut.back_valid_q ? back_first || (front_first && !back_last) : \dut.front_valid_q && front_first;
    assign found = COUNT_BITS'(received_q) + COUNT_BITS'(sending_q) + COUNT_BITS'(part_q) +
                       COUNT_BITS'(whole) + COUNT_BITS'(from_other_q && first) -
                       COUNT_BITS'(from_ring_q && !first);

    assign packets_o = packets_q;

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            packets_q <= '0;
        end else begin
            packets_q <= packets_q + COUNT_BITS'(arrives_i) + COUNT_BITS'(enters) - COUNT_BITS'(left) -
                         COUNT_BITS'(sent_i);
        end
    end

    // A source that has begun a packet, and the receive buffer, offer their next beat sooner or later, and so does the
    // hard IP take one for which it has a place.
    logic owes;
    assign owes = \dut.inside_q ? (request & \dut.i_arbiter.owner_q ) == '0
                                : received_q != '0 && (!stays_q || !request_i[W]);
    assign can_advance_o = \dut.push || \dut.holds || owes || (tx_valid && first_fits);

    // what makes the induction go through: the beats in the output's buffer and the states of both sides agree
    logic after; // the last beat that the output got is not the last of its packet
    always_comb begin
        after = \dut.back_valid_q ? !back_last : \dut.front_valid_q ? !front_last : part_q;
        if (!rst_i) begin
            every_packet_of_the_ring_is_in_a_place: assert (packets_q == found);
            an_entering_packet_leaves_three_places: assert (
                !enters || 32'(sending_q) + 32'(part_q) + 1 + 3 <= TRANSMIT);
            the_output_sends_whole_packets: assert (
                32'(received_q) <= RECEIVE && 32'(sending_q) + 32'(part_q) <= TRANSMIT &&
                \dut.inside_q == (from_ring_q || from_other_q) && !(from_ring_q && from_other_q) &&
                \dut.inside_q == after && (!from_ring_q || (received_q != '0 && stays_q)) &&
                (!\dut.front_valid_q || (front_first == !part_q && !(front_first && front_last))) &&
                (!\dut.back_valid_q || (\dut.front_valid_q && back_first == front_last && !(back_first && back_last))));
            the_arbiter_keeps_the_packet: assert (
                \dut.i_arbiter.locked_q == \dut.inside_q && $onehot(\dut.i_arbiter.owner_q ) &&
                (!\dut.inside_q || \dut.i_arbiter.owner_q [W] == from_ring_q));
        end
    end
endmodule

module bubble_ring #(
    parameter int unsigned NODES = 3,
    parameter int unsigned TRANSMIT = 6,
    parameter int unsigned RECEIVE = 2,
    parameter int unsigned COUNT_BITS = 5
) (
    input logic               clk_i,
    input logic               rst_i,
    input logic [7*NODES-1:0] request_i,
    input logic [2*NODES-1:0] last_i,
    input logic [NODES-1:0]   stays_i,
    input logic [NODES-1:0]   leaves_i,
    input logic [NODES-1:0]   takes_i,
    input logic [NODES-1:0]   sends_i
);
    logic [NODES-1:0] has_place, has_packet, can_advance, sent, arrives;
    logic [NODES*COUNT_BITS-1:0] packets;
    logic [COUNT_BITS-1:0] total;

    assign sent = sends_i & has_packet & {has_place[0], has_place[NODES-1:1]};
    assign arrives = {sent[NODES-2:0], sent[NODES-1]};

    for (genvar k = 0; k < NODES; k++) begin : g_node
        bubble_node #(.TRANSMIT(TRANSMIT), .RECEIVE(RECEIVE), .COUNT_BITS(COUNT_BITS)) node (
            .clk_i, .rst_i, .request_i(request_i[7*k +: 7]), .last_i(last_i[2*k +: 2]), .stays_i(stays_i[k]),
            .leaves_i(leaves_i[k]), .takes_i(takes_i[k]), .arrives_i(arrives[k]), .sent_i(sent[k]),
            .has_place_o(has_place[k]), .has_packet_o(has_packet[k]),
            .packets_o(packets[COUNT_BITS*k +: COUNT_BITS]), .can_advance_o(can_advance[k]));
    end

    always_comb begin
        total = '0;
        for (int unsigned k = 0; k < NODES; k++) begin
            total = total + packets[COUNT_BITS*k +: COUNT_BITS];
        end
    end

    initial assume (rst_i);

    always_comb begin
        if (!rst_i) begin
            a_place_of_the_ring_stays_free: assert (32'(total) < NODES * (TRANSMIT + RECEIVE));
            some_packet_can_advance: assert (
                total == '0 || can_advance != '0 || (has_packet & {has_place[0], has_place[NODES-1:1]}) != '0);
        end
    end
endmodule

// One output of a ring, and anything around it.
module bubble_hold (
    input logic         clk_i,
    input logic         rst_i,
    input logic [6:0]   request_i,
    input logic [6:0]   last_i,
    input logic         tx_ready_i,
    input logic         tx_room_i
);
    localparam int unsigned W = peach2_pkg::DEST_W;
    localparam int unsigned CYCLES = peach2_regs_pkg::RING_HOLD_CYCLES;
    localparam int unsigned REST = peach2_regs_pkg::RING_REST_TLPS;
    localparam int unsigned LEVELS = peach2_regs_pkg::RING_LEVELS;

    (* hierconn *) wire        \dut.push ;
    (* hierconn *) wire        \dut.inside_q ;
    (* hierconn *) wire        \dut.holds ;
    (* hierconn *) wire [2:0]  \dut.level_q ;
    (* hierconn *) wire [12:0] \dut.hold_q ;
    (* hierconn *) wire [12:0] \dut.rest_q ;
    (* hierconn *) wire        \dut.i_arbiter.locked_q ;
    (* hierconn *) wire [6:0]  \dut.i_arbiter.owner_q ;
    logic [6:0]  ready;
    logic [15:0] held_q;    // cycles that a packet of the ring has been held, since the last packet began
    logic [15:0] unhindered_q; // packets of the ring that must still go before the next hold
    logic        begins, passes, in_vain;

    peach2_egress #(.ON_RING(7'd1 << W)) dut (
        .clk_i, .rst_i, .request_i,
        .beat_n_i({!\dut.inside_q , last_i[0], 130'd0}), .beat_e_i({!\dut.inside_q , last_i[1], 130'd0}),
        .beat_w_i({!\dut.inside_q , last_i[2], 130'd0}), .beat_s_i({!\dut.inside_q , last_i[3], 130'd0}),
        .beat_local_i({!\dut.inside_q , last_i[4], 130'd0}), .beat_read_i({!\dut.inside_q , last_i[5], 130'd0}),
        .beat_write_i({!\dut.inside_q , last_i[6], 130'd0}), .ready_o(ready), .window_base_i('0), .offsets_i('0),
        .tx_valid_o(), .tx_beat_o(), .tx_ready_i, .tx_room_i, .tlps_o(), .holds_o(), .idle_o(), .still_o());

    assign begins = ready != '0 && !\dut.inside_q ;
    assign passes = begins && ready[W];
    assign in_vain = passes && held_q == 16'(CYCLES << \dut.level_q ); // it was held to the end of the hold

    always_ff @(posedge clk_i) begin
        if (rst_i) begin
            held_q <= '0;
            unhindered_q <= '0;
        end else begin
            held_q <= begins ? '0 : held_q + 16'(\dut.holds );
            if (in_vain) begin
                unhindered_q <= 16'(REST << \dut.level_q );
            end else if (passes && unhindered_q != '0) begin
                unhindered_q <= unhindered_q - 1'b1;
            end
        end
    end

    initial assume (rst_i);

    always_comb begin
        if (!rst_i) begin
            a_hold_has_an_end: assert (32'(held_q) + 32'(\dut.hold_q ) <= CYCLES << \dut.level_q );
            a_hold_in_vain_is_followed_by_a_rest: assert (!(\dut.holds && unhindered_q != '0));
            no_rest_is_longer_than_that_of_the_highest_level: assert (
                32'(\dut.rest_q ) <= REST << (LEVELS - 1) && 32'(\dut.level_q ) < LEVELS);
        end
    end

    // what makes the induction go through
    always_comb begin
        if (!rst_i) begin
            a_hold_is_counted_down: assert (
                unhindered_q <= 16'(\dut.rest_q ) &&
                32'(held_q) + 32'(\dut.hold_q ) == (\dut.rest_q == '0 ? CYCLES << \dut.level_q : 0));
            the_arbiter_keeps_what_has_begun: assert (
                \dut.i_arbiter.locked_q == \dut.inside_q && $onehot(\dut.i_arbiter.owner_q ));
        end
    end
endmodule
